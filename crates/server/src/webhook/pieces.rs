//! A body of several parts, which are sent without being put together: webhooks share the large ones.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Parts, in the order in which they are sent.
#[derive(Debug, Default)]
pub(crate) struct Pieces(VecDeque<Bytes>);

impl Pieces {
    /// Adds a part, unless it is empty.
    pub(crate) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.0.push_back(piece);
        }
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|piece| piece.len() as u64).sum()
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(whole: Vec<u8>) -> Self {
        let mut pieces = Self::default();
        pieces.push(Bytes::from(whole));
        pieces
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn parts_are_sent_in_their_order_and_the_length_is_known() {
        let mut pieces = Pieces::from(b"one ".to_vec());
        pieces.push(Bytes::new());
        pieces.push(Bytes::from_static(b"two"));
        assert_eq!((pieces.len(), pieces.size_hint().exact()), (7, Some(7)));
        let whole = pieces.collect().await.expect("never fails").to_bytes();
        assert_eq!(whole, &b"one two"[..]);
    }
}
