//! The body of a large list: encoded and compressed piece by piece, as fast as the client takes it.
//!
//! So a list of any size takes the memory of a few pieces, and no request holds a thread for the time
//! that all of it takes.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;

use crate::body::BoxError;
use crate::gzip::Encoder;
use crate::wire::Pieces;

/// Bytes of a piece. Larger ones would come from the system and go back to it each time.
const PIECE: usize = 64 * 1024;

/// A list on its way out.
pub(crate) struct ListBody {
    pieces: Pieces,
    /// What has been written already.
    ready: Vec<u8>,
    gzip: Option<Encoder>,
    done: bool,
}

impl ListBody {
    /// The rest of `pieces` after what is `ready`.
    pub(crate) fn new(pieces: Pieces, ready: Vec<u8>, compressed: bool) -> Self {
        let gzip = compressed.then(Encoder::new);
        Self { pieces, ready, gzip, done: false }
    }

    /// The next piece; an empty one is the end.
    fn next_piece(&mut self) -> Result<Vec<u8>, BoxError> {
        loop {
            if self.done {
                return Ok(Vec::new());
            }
            let mut piece = std::mem::take(&mut self.ready);
            if piece.is_empty() {
                piece.reserve(PIECE + PIECE / 8);
                self.done = !self.pieces.write(PIECE, &mut piece)?;
            }
            let Some(gzip) = &mut self.gzip else { return Ok(piece) };
            gzip.write(&piece);
            if self.done {
                gzip.finish();
            }
            if self.done || PIECE / 2 <= gzip.ready() {
                return Ok(gzip.take(Vec::with_capacity(PIECE)));
            }
        }
    }
}

impl http_body::Body for ListBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(match self.next_piece() {
            Ok(piece) if piece.is_empty() => None,
            Ok(piece) => Some(Ok(Frame::data(Bytes::from(piece)))),
            Err(error) => {
                // The connection tells the client that the answer is not whole.
                self.done = true;
                Some(Err(error))
            }
        })
    }
}
