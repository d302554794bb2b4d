//! Watches: one stream of the connection for each.
//!
//! etcd can carry many watches in one stream. Here each has its own, because then HTTP/2's flow
//! control holds back just the watch that is not read, a progress report speaks for exactly one
//! watch, and cancelling is dropping.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::error::CallError;
use super::wire::{
    WatchCreateRequest, WatchKind, WatchProgressRequest, WatchRequest, WatchResponse, revision,
};
use crate::kv::{self, KvError, WatchMessage, WatchStream};

/// A watch's own requests on their way: its creation, and progress requests. When it is full, a
/// progress request is on its way already.
const REQUESTS: usize = 2;

/// The way to ask one watch for its progress.
pub(super) struct Asker {
    /// The first key that it watches.
    start: Bytes,
    requests: mpsc::Sender<WatchRequest>,
}

impl Asker {
    /// Asks if it begins at this key; a watch that is ending is none of our business.
    pub(super) fn ask(&self, start: &Bytes) {
        if self.start != start {
            return;
        }
        let request = WatchRequest { request: Some(WatchKind::Progress(WatchProgressRequest {})) };
        let _full_or_gone = self.requests.try_send(request);
    }
}

/// The requests of a new watch.
pub(super) fn requests(request: &kv::WatchRequest) -> (Arc<Asker>, ReceiverStream<WatchRequest>) {
    let (sender, receiver) = mpsc::channel(REQUESTS);
    let create = WatchCreateRequest {
        key: request.start.clone(),
        range_end: request.end.clone(),
        start_revision: request.from,
        progress_notify: request.progress,
        prev_kv: request.previous,
    };
    // The channel is empty, so there is room.
    let _room = sender.try_send(WatchRequest { request: Some(WatchKind::Create(create)) });
    let asker = Asker { start: request.start.clone(), requests: sender };
    (Arc::new(asker), ReceiverStream::new(receiver))
}

/// What the server has said about a watch that was to be created.
pub(super) fn created(first: Option<&WatchResponse>) -> Result<WatchMessage, KvError> {
    match first {
        Some(response) if response.canceled => Err(cancelled(response)),
        Some(response) if response.created => Ok(WatchMessage::Created(revision(response.header))),
        Some(_) => Err(KvError::Other("etcd answered a watch with something else".into())),
        None => Err(ended()),
    }
}

/// The watch after its creation.
pub(super) fn run(
    first: WatchMessage,
    responses: Streaming<WatchResponse>,
    endpoint: String,
    progress: bool,
    asker: Arc<Asker>,
) -> WatchStream {
    let state = Some((responses, asker, endpoint));
    let rest = stream::unfold(state, move |state| async move {
        let (mut responses, asker, endpoint) = state?;
        loop {
            let failed = match responses.message().await {
                Ok(Some(response)) if response.canceled => cancelled(&response),
                Ok(Some(response)) if !response.events.is_empty() => {
                    let events = response.events.into_iter().map(Into::into).collect();
                    return Some((Ok(WatchMessage::Events(events)), Some((responses, asker, endpoint))));
                }
                Ok(Some(response)) if progress && !response.created => {
                    let reached = WatchMessage::Progress(revision(response.header));
                    return Some((Ok(reached), Some((responses, asker, endpoint))));
                }
                Ok(Some(_)) => continue,
                Ok(None) => ended(),
                Err(status) => CallError::Status(status).meaning(&endpoint),
            };
            return Some((Err(failed), None));
        }
    });
    Box::pin(stream::iter([Ok(first)]).chain(rest).fuse())
}

fn cancelled(response: &WatchResponse) -> KvError {
    match &*response.cancel_reason {
        _ if response.compact_revision != 0 => KvError::Compacted(response.compact_revision),
        "" => ended(),
        reason => KvError::Unavailable(reason.to_owned()),
    }
}

fn ended() -> KvError {
    KvError::Unavailable("the server ended the watch".into())
}

/// Those that are still running.
pub(super) fn running(askers: &mut Vec<Weak<Asker>>) -> Vec<Arc<Asker>> {
    askers.retain(|asker| 0 < asker.strong_count());
    askers.iter().filter_map(Weak::upgrade).collect()
}
