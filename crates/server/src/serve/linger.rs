//! A connection that is closed so that the client can still read the last answer.
//!
//! An answer may go out before the request's body has been read: 413, 401, a deadline. A socket that
//! is closed with unread bytes resets the connection, and the reset overtakes the answer. So the
//! writing side is closed first, and what still comes in is thrown away, for a moment and up to a size.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use coffer_types::time::{Clock, Sleep};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// How long a client that goes on sending is listened to.
pub const LINGER: Duration = Duration::from_secs(1);

/// How much of it is thrown away: a client that sends more than this beyond a refused body may
/// miss the answer.
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// A TLS connection whose end lingers.
pub(super) struct Lingering {
    stream: TlsStream<TcpStream>,
    clock: Arc<dyn Clock>,
    /// Set once the writing side is closed.
    until: Option<Sleep>,
    left: usize,
}

impl Lingering {
    pub(super) fn new(stream: TlsStream<TcpStream>, clock: Arc<dyn Clock>) -> Self {
        Self { stream, clock, until: None, left: LINGER_BYTES }
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let until = match &mut this.until {
            Some(until) => until,
            none => {
                ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
                none.insert(this.clock.sleep(LINGER))
            }
        };
        let mut bytes = [0_u8; 16 * 1024];
        while 0 < this.left && until.as_mut().poll(context).is_pending() {
            // From the socket itself: nobody needs the plaintext.
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *this.stream.get_mut().0).poll_read(context, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    this.left = this.left.saturating_sub(buffer.filled().len());
                }
                // The client is done, or gone.
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
