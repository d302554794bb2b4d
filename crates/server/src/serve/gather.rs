//! What a connection writes, gathered: answers that are ready together go out together.
//!
//! HTTP/2 flushes after nearly every answer, and over TLS each flush is a record and a system call.
//! Here a flush is only noted, and everything is written at once when the connection has done what it
//! could. If more requests are open, it gets one more turn before that, behind all tasks that are ready
//! to run: they may have answers to send.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is gathered at first: as much as one TLS record holds.
const RECORD: usize = 16 * 1024;

/// How much is gathered at most: records that go to the system together. Four large frames of HTTP/2 have
/// room with what stands before each; one by one each would end in a record of nine bytes.
/// What is larger than this is not copied.
pub(super) const ROOM: usize = 4 * (RECORD + 9);

/// A stream whose writes are gathered; the connection's half.
pub(super) struct Gathering<S>(Arc<Mutex<Gathered<S>>>);

/// The half of whoever drives the connection.
pub(super) struct Sending<S>(Arc<Mutex<Gathered<S>>>);

struct Gathered<S> {
    stream: S,
    bytes: Vec<u8>,
    /// How many of them have been written.
    written: usize,
    /// Whether the others have had their turn.
    waited: bool,
    /// Whether something has been written since the last flush.
    unflushed: bool,
    /// Why writing failed, until the connection is told.
    failed: Option<io::Error>,
}

/// The two halves of a stream. They may only be used by the same task.
pub(super) fn gather<S>(stream: S) -> (Gathering<S>, Sending<S>) {
    let bytes = Vec::new();
    let gathered = Gathered { stream, bytes, written: 0, waited: false, unflushed: false, failed: None };
    let gathered = Arc::new(Mutex::new(gathered));
    (Gathering(Arc::clone(&gathered)), Sending(gathered))
}

impl<S: AsyncWrite + Unpin> Sending<S> {
    /// To be called whenever the connection has been polled and is not done. `more` says whether there
    /// may be more to send in a moment.
    pub(super) fn poll(&self, context: &mut Context<'_>, more: bool) {
        let mut gathered = self.0.lock();
        let gathered = &mut *gathered;
        if gathered.bytes.is_empty() && !gathered.unflushed {
            return;
        }
        if more && !gathered.bytes.is_empty() && !std::mem::replace(&mut gathered.waited, true) {
            context.waker().wake_by_ref();
            return;
        }
        match gathered.poll_send(context) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => gathered.waited = false,
            Poll::Ready(Err(error)) => {
                gathered.bytes = Vec::new();
                gathered.unflushed = false;
                gathered.failed = Some(error);
                // It finds out at its next read or write.
                context.waker().wake_by_ref();
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> Sending<S> {
    /// Sends the rest once the connection is done, which may not have come to its orderly end.
    pub(super) async fn rest(&self) {
        // Whom it was meant for is gone when that fails.
        let _ = poll_fn(|context| self.0.lock().poll_send(context)).await;
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    /// Hands all that is gathered to the stream.
    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.bytes.len() {
            let rest = &self.bytes[self.written..];
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
            self.unflushed = true;
        }
        self.bytes.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_out(context))?;
        // A connection that is idle keeps no room.
        self.bytes = Vec::new();
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.unflushed = false;
        Poll::Ready(Ok(()))
    }

    fn poll_gather(&mut self, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        if ROOM < self.bytes.len() + total {
            ready!(self.poll_write_out(context))?;
            if ROOM < total {
                self.unflushed = true;
                return Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
            }
        }
        if self.bytes.capacity() < self.bytes.len() + total {
            let room = if self.bytes.len() + total <= RECORD { RECORD } else { ROOM };
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        Poll::Ready(Ok(total))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathering<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut gathered = self.0.lock();
        if let Some(error) = gathered.failed.take() {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut gathered.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathering<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().poll_gather(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_gather(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// What is gathered is sent by [`Sending`].
    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0.lock().failed.take() {
            Some(error) => Poll::Ready(Err(error)),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathered = self.0.lock();
        let gathered = &mut *gathered;
        ready!(gathered.poll_send(context))?;
        Pin::new(&mut gathered.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Wake, Waker};

    use super::*;

    /// Takes so many bytes at a time, and notes what it was given.
    #[derive(Default)]
    struct Recorder {
        writes: Vec<Vec<u8>>,
        flushes: usize,
        /// Bytes that it takes before it is full.
        room: usize,
        broken: bool,
    }

    impl AsyncRead for Recorder {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Recorder {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.broken {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Poll::Pending;
            }
            self.room -= count;
            self.writes.push(bytes[..count].to_vec());
            Poll::Ready(Ok(count))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushes += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Counts how often the task was woken.
    #[derive(Default)]
    struct Woken(Mutex<usize>);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            *self.0.lock() += 1;
        }
    }

    struct World {
        connection: Gathering<Recorder>,
        sending: Sending<Recorder>,
        woken: Arc<Woken>,
    }

    impl World {
        fn new(room: usize) -> Self {
            let (connection, sending) = gather(Recorder { room, ..Recorder::default() });
            Self { connection, sending, woken: Arc::default() }
        }

        /// Writes and flushes, as a connection does with each answer; the bytes that were taken.
        fn write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let waker = Waker::from(Arc::clone(&self.woken));
            let mut context = Context::from_waker(&waker);
            let written = ready!(Pin::new(&mut self.connection).poll_write(&mut context, bytes))?;
            ready!(Pin::new(&mut self.connection).poll_flush(&mut context))?;
            Poll::Ready(Ok(written))
        }

        fn turn(&self, more: bool) {
            let waker = Waker::from(Arc::clone(&self.woken));
            self.sending.poll(&mut Context::from_waker(&waker), more);
        }

        /// The lengths of what was written, and how often that was flushed and the task woken.
        fn seen(&self) -> (Vec<usize>, usize, usize) {
            let gathered = self.sending.0.lock();
            let lengths = gathered.stream.writes.iter().map(Vec::len).collect();
            (lengths, gathered.stream.flushes, *self.woken.0.lock())
        }
    }

    fn taken(written: Poll<io::Result<usize>>) -> usize {
        match written {
            Poll::Ready(Ok(count)) => count,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_of_one_turn_are_one_write() {
        let mut world = World::new(usize::MAX);
        for _ in 0..3 {
            assert_eq!(taken(world.write(b"answer")), 6);
        }
        assert_eq!(world.seen(), (vec![], 0, 0));
        world.turn(false);
        assert_eq!(world.seen(), (vec![18], 1, 0));
        world.turn(false);
        assert_eq!(world.seen(), (vec![18], 1, 0), "nothing is left");
    }

    #[test]
    fn open_requests_get_one_turn_and_no_more() {
        let mut world = World::new(usize::MAX);
        taken(world.write(b"one"));
        world.turn(true);
        assert_eq!(world.seen(), (vec![], 0, 1), "the task comes again");
        taken(world.write(b"two"));
        world.turn(true);
        assert_eq!(world.seen(), (vec![6], 1, 1));
        // The next answers wait anew.
        taken(world.write(b"three"));
        world.turn(true);
        assert_eq!(world.seen(), (vec![6], 1, 2));
    }

    #[test]
    fn what_is_larger_than_the_room_is_not_copied_and_order_is_kept() {
        let mut world = World::new(usize::MAX);
        taken(world.write(b"head"));
        assert_eq!(taken(world.write(&[7; ROOM + 1])), ROOM + 1);
        assert_eq!(world.seen(), (vec![4, ROOM + 1], 0, 0));
        world.turn(true);
        assert_eq!(world.seen(), (vec![4, ROOM + 1], 1, 0), "flushed without a turn");
        // Many small ones fill the room.
        for _ in 0..ROOM / 1000 + 1 {
            taken(world.write(&[7; 1000]));
        }
        assert_eq!(world.seen().0, [4, ROOM + 1, ROOM / 1000 * 1000]);
    }

    #[test]
    fn four_frames_are_one_write() {
        let mut world = World::new(usize::MAX);
        for _ in 0..8 {
            taken(world.write(&[7; 9]));
            taken(world.write(&[7; RECORD]));
        }
        assert_eq!(world.seen().0, [ROOM]);
        world.turn(false);
        assert_eq!(world.seen().0, [ROOM, ROOM]);
        assert_eq!(world.sending.0.lock().bytes.capacity(), 0, "nothing is kept");
    }

    #[test]
    fn a_full_socket_holds_the_connection_back() {
        let mut world = World::new(ROOM + 10);
        for _ in 0..8 {
            taken(world.write(&[7; RECORD]));
        }
        assert!(world.write(&[7; RECORD]).is_pending());
        world.turn(false);
        world.sending.0.lock().stream.room = usize::MAX;
        world.turn(false);
        let (lengths, flushes, _) = world.seen();
        assert_eq!((lengths.iter().sum::<usize>(), flushes), (8 * RECORD, 1));
    }

    #[test]
    fn a_broken_socket_is_told_to_the_connection() {
        let mut world = World::new(usize::MAX);
        taken(world.write(b"answer"));
        world.sending.0.lock().stream.broken = true;
        world.turn(false);
        assert_eq!(*world.woken.0.lock(), 1);
        assert!(matches!(world.write(b"more"), Poll::Ready(Err(_))));
    }

    #[tokio::test]
    async fn the_rest_goes_out_when_the_connection_ended_early() {
        let mut world = World::new(usize::MAX);
        taken(world.write(b"answer"));
        world.sending.rest().await;
        assert_eq!(world.seen(), (vec![6], 1, 0));
    }

    #[tokio::test]
    async fn what_is_gathered_goes_out_before_the_end() {
        let mut world = World::new(usize::MAX);
        taken(world.write(b"goodbye"));
        poll_fn(|context| Pin::new(&mut world.connection).poll_shutdown(context)).await.expect("closed");
        assert_eq!(world.seen(), (vec![7], 1, 0));
    }
}
