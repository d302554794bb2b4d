//! The task that fills a cache: lists, then follows.
//!
//! A watch that breaks is taken up again where it ended. Only when the store no
//! longer has the changes in between is everything listed anew.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{OptionFuture, join};
use futures::{FutureExt as _, StreamExt as _};

use super::snapshot::Slot;
use super::{Arrived, Cache};
use crate::kv::{
    KeyValue, KvError, KvEvent, RangeRequest, RangeResponse, Revision, WatchMessage, WatchRequest,
};
use crate::registry::objects::Objects;
use crate::statistics::Operation;

/// Objects of the first page while listing.
pub const FIRST_PAGE: i64 = 100;
/// Objects of a page at most, upstream's fixed size.
pub const PAGE: i64 = 10_000;
/// Bytes that the pages after the first are made for: a cache of small objects is filled in few round
/// trips, and one of large objects without holding thousands of them twice.
pub const PAGE_BYTES: usize = 2 * 1024 * 1024;
/// How much larger than the one before a page may be.
const GROWTH: i64 = 4;
/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// Objects that are decrypted before other tasks get their turn.
const YIELD_EVERY: usize = 256;

pub(super) async fn run(cache: Arc<Cache>) {
    let stop = cache.stop.clone();
    let filling = async {
        // A panic of the engine or of a codec must not leave a cache behind that looks ready and stands still.
        while AssertUnwindSafe(fill_for_ever(&cache)).catch_unwind().await.is_err() {
            tracing::error!(resource = cache.objects.resource.name, "filling the watch cache has panicked");
            cache.failed("filling it has panicked".to_owned());
            cache.clock().sleep(RETRY).await;
        }
    };
    tokio::select! {
        () = filling => {}
        () = stop.cancelled() => {}
    }
    cache.unready("apiserver cacher is stopped".to_owned());
}

async fn fill_for_ever(cache: &Cache) {
    loop {
        let began = cache.clock().monotonic();
        match list(cache).await {
            Ok((slots, revision)) => {
                cache.refill(slots, revision, cache.clock().monotonic().saturating_sub(began));
                let error = follow(cache, revision).await;
                tracing::warn!(resource = cache.objects.resource.name, %error, "the watch cache is filled anew");
                cache.failed(error.to_string());
            }
            Err(error) => {
                tracing::warn!(resource = cache.objects.resource.name, %error, "the watch cache cannot be filled");
                cache.failed(error.to_string());
                cache.clock().sleep(RETRY).await;
            }
        }
    }
}

/// Everything at one revision, in order.
async fn list(cache: &Cache) -> Result<(Vec<Slot>, Revision), KvError> {
    let root = Bytes::copy_from_slice(cache.objects.keys.root().as_bytes());
    let mut request = RangeRequest {
        end: crate::kv::prefix_end(&root),
        start: root,
        limit: FIRST_PAGE,
        ..RangeRequest::default()
    };
    let mut slots = Vec::new();
    let mut page = range(cache, &request).await?;
    request.revision = page.revision;
    loop {
        // The store looks for the next page while this one is decrypted.
        let next = match page.items.last() {
            Some(last) if page.more => {
                request.start = after(&last.key);
                request.limit = next_limit(request.limit, &page.items);
                Some(range(cache, &request))
            }
            _ => None,
        };
        let (next, ()) = join(OptionFuture::from(next), open(cache, &page.items, &mut slots)).await;
        match next {
            Some(next) => page = next?,
            None => return Ok((slots, request.revision)),
        }
    }
}

async fn range(cache: &Cache, request: &RangeRequest) -> Result<RangeResponse, KvError> {
    let page = cache.shared.kv.range(request.clone());
    cache.objects.counts.request(cache.clock(), Operation::List, page).await
}

async fn open(cache: &Cache, page: &[KeyValue], slots: &mut Vec<Slot>) {
    for kv in page {
        slots.push(match cache.objects.open_or_keep(kv) {
            Ok(stored) => Slot::Good(stored),
            Err(unreadable) => Slot::Corrupt(unreadable),
        });
        if slots.len().is_multiple_of(YIELD_EVERY) {
            tokio::task::yield_now().await;
        }
    }
}

/// Follows the changes after `revision` until that is not possible any more.
async fn follow(cache: &Cache, mut revision: Revision) -> KvError {
    loop {
        let error = match follow_once(cache, &mut revision).await {
            error @ (KvError::Compacted(_) | KvError::FutureRevision) => return error,
            error => error,
        };
        // What is cached stays readable meanwhile: it is as fresh as it was.
        tracing::debug!(resource = cache.objects.resource.name, %error, "the watch of the store is taken up again");
        cache.clock().sleep(RETRY).await;
    }
}

async fn follow_once(cache: &Cache, revision: &mut Revision) -> KvError {
    let root = Bytes::copy_from_slice(cache.objects.keys.root().as_bytes());
    let request = WatchRequest {
        end: crate::kv::prefix_end(&root),
        start: root,
        from: *revision + 1,
        // The cache knows what was there before.
        previous: false,
        progress: true,
    };
    let mut stream = match cache.shared.kv.watch(request).await {
        Ok(stream) => stream,
        Err(error) => return error,
    };
    while let Some(message) = stream.next().await {
        match message {
            Ok(WatchMessage::Created(_)) => {}
            Ok(WatchMessage::Events(events)) => {
                let arrived: Vec<_> =
                    events.iter().filter_map(|event| arrive(&cache.objects, event)).collect();
                if let Some(last) = arrived.last() {
                    *revision = (*revision).max(last.revision);
                }
                cache.apply(arrived);
            }
            Ok(WatchMessage::Progress(reached)) => {
                *revision = (*revision).max(reached);
                cache.progress(reached);
            }
            Err(error) => return error,
        }
    }
    KvError::Unavailable("the watch has ended".to_owned())
}

fn arrive(objects: &Objects, event: &KvEvent) -> Option<Arrived> {
    let tail: Box<[u8]> = event.kv.key.strip_prefix(objects.keys.root().as_bytes())?.into();
    let slot = (!event.deleted).then(|| match objects.open_or_keep(&event.kv) {
        Ok(stored) => Slot::Good(stored),
        Err(unreadable) => Slot::Corrupt(unreadable),
    });
    Some(Arrived { tail, revision: event.kv.mod_revision, slot })
}

/// How many objects like these a page may hold; never many more than the page before, because those that
/// follow may be larger.
fn next_limit(limit: i64, page: &[KeyValue]) -> i64 {
    let bytes: usize = page.iter().map(|kv| kv.key.len() + kv.value.len()).sum();
    let average = bytes.div_ceil(page.len().max(1)).max(1);
    i64::try_from(PAGE_BYTES / average).unwrap_or(PAGE).clamp(1, PAGE.min(limit.saturating_mul(GROWTH)))
}

/// The first key after `key`.
pub(crate) fn after(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}
