//! Reads that go to the store itself: what the cache cannot answer.

use std::sync::Arc;

use bytes::Bytes;
use coffer_types::Status;

use super::error::{UnreadableList, continue_expired, from_kv, list_expired, too_large_resource_version};
use super::objects::{Objects, Opened};
use super::{List, Predicate, Stored};
use crate::cache::fill_after;
use crate::continue_token::{ContinueToken, LATEST};
use crate::key::{KeyRange, ObjectKey};
use crate::kv::{KeyValue, KvError, RangeRequest, Revision};
use crate::shared::Shared;
use crate::statistics::{Listed, Operation};

/// Keys of a page at most, however large pages have grown. A larger limit of the client's is kept.
pub const MAX_PAGE: usize = 10_000;

/// What to list from the store.
pub(crate) struct RangeList<'a> {
    pub(crate) range: &'a KeyRange,
    /// First tail relative to `range`; empty for the beginning.
    pub(crate) start: &'a [u8],
    /// 0 means the latest.
    pub(crate) revision: Revision,
    /// The answer must not be older.
    pub(crate) not_older_than: Revision,
    pub(crate) limit: usize,
    /// Whether this is a further page.
    pub(crate) paging: bool,
    pub(crate) predicate: &'a dyn Predicate,
}

/// One key as of `revision` (0: the latest), with the revision of the store when it answered.
pub(crate) async fn read_key(
    shared: &Shared,
    objects: &Objects,
    key: Bytes,
    revision: Revision,
) -> Result<(Option<KeyValue>, Revision), KvError> {
    let request = RangeRequest { start: key, revision, limit: 1, ..RangeRequest::default() };
    let answer = shared.kv.range(request);
    let response = objects.counts.request(&*shared.clock, Operation::Get, answer).await?;
    Ok((response.items.into_iter().next(), response.revision))
}

/// Reads one object. `known` is what the cache has: an equal revision saves decrypting it again.
pub(crate) async fn get(
    shared: &Shared,
    objects: &Objects,
    key: &ObjectKey,
    name: &str,
    not_older_than: Revision,
    known: Option<Arc<Stored>>,
) -> Result<Arc<Stored>, Status> {
    let (kv, current) = read_key(shared, objects, key.bytes(), 0).await.map_err(from_kv)?;
    if current < not_older_than {
        return Err(too_large_resource_version(not_older_than, current, 0));
    }
    let kv = kv.ok_or_else(|| objects.resource.not_found(name))?;
    match known {
        Some(known) if known.revision == kv.mod_revision => Ok(known),
        _ => match objects.open(&kv) {
            Ok(Opened { stored, .. }) => Ok(stored),
            Err(error) => Err(error.on_get(&objects.keys.relative(key))),
        },
    }
}

/// Lists a range, page by page, until the limit is reached or nothing is left.
pub(crate) async fn list(shared: &Shared, objects: &Objects, request: RangeList<'_>) -> Result<List, Status> {
    let began = shared.clock.monotonic();
    let mut listed = Listed::default();
    let list = pages(shared, objects, request, &mut listed).await;
    listed.returned = list.as_ref().map_or(0, |list| list.items.len());
    // Failed ones too: they have cost as much.
    objects.counts.store_lists.add(listed);
    objects.counts.store_list_seconds.observe_time(shared.clock.monotonic().saturating_sub(began));
    list
}

async fn pages(
    shared: &Shared,
    objects: &Objects,
    request: RangeList<'_>,
    listed: &mut Listed,
) -> Result<List, Status> {
    let root = &request.range.start;
    let mut start = Bytes::from([root, request.start].concat());
    let mut revision = request.revision;
    let mut page_size = if request.limit == 0 { MAX_PAGE } else { request.limit };
    let mut items = Vec::new();
    let mut unreadable = UnreadableList::default();
    // The last key that was looked at, when the limit was reached with keys left.
    let mut stopped_at: Option<Bytes> = None;
    let remaining = 'pages: loop {
        let range = RangeRequest {
            start: start.clone(),
            end: request.range.end.clone(),
            revision,
            limit: i64::try_from(page_size).unwrap_or(i64::MAX),
            ..RangeRequest::default()
        };
        let page = shared.kv.range(range);
        let page = match objects.counts.request(&*shared.clock, Operation::List, page).await {
            Ok(page) => page,
            Err(error) => return Err(list_error(shared, error, &request, revision, &start).await),
        };
        if revision == 0 {
            revision = page.revision;
            if revision < request.not_older_than {
                return Err(too_large_resource_version(request.not_older_than, revision, 0));
            }
        }
        if page.items.is_empty() && page.more {
            return Err(Status::plain(
                "no results were found, but etcd indicated there were more values remaining",
            ));
        }
        listed.fetched += page.items.len();
        let remaining = page.count - i64::try_from(request.limit).unwrap_or(i64::MAX);
        for kv in &page.items {
            if request.limit != 0 && request.limit <= items.len() {
                stopped_at = Some(start);
                break 'pages remaining;
            }
            start = kv.key.clone();
            match objects.open(kv) {
                Ok(Opened { stored, .. }) => {
                    listed.evaluated += 1;
                    if request.predicate.is_everything() || request.predicate.matches(&stored) {
                        items.push(stored);
                    }
                }
                Err(error) => {
                    if unreadable.push(String::from_utf8_lossy(&kv.key).into_owned(), error) {
                        break 'pages remaining;
                    }
                }
            }
        }
        if !page.more {
            break remaining;
        }
        if request.limit != 0 && request.limit <= items.len() {
            stopped_at = Some(start);
            break remaining;
        }
        start = fill_after(&start);
        // A selector has left out objects of the page: fewer, larger pages from here on.
        page_size = page_size.max((page_size * 2).min(MAX_PAGE));
    };
    unreadable.finish(&objects.resource)?;
    let mut list = List { items, revision, continue_token: String::new(), remaining: None };
    if let Some(last) = stopped_at {
        list.continue_token = ContinueToken::after(&last[root.len()..], revision)
            .encode()
            .ok_or_else(|| Status::plain("unable to encode next field: the key is not UTF-8"))?;
        list.remaining = request.predicate.is_everything().then_some(remaining);
    }
    Ok(list)
}

async fn list_error(
    shared: &Shared,
    error: KvError,
    request: &RangeList<'_>,
    revision: Revision,
    start: &[u8],
) -> Status {
    match error {
        KvError::Compacted(_) if request.paging => {
            let rest = start[request.range.start.len()..].to_vec();
            continue_expired(ContinueToken { revision: LATEST, start: rest }.encode())
        }
        KvError::Compacted(_) => list_expired(),
        KvError::FutureRevision => {
            let current = shared.round_trips.current().await.unwrap_or(0);
            too_large_resource_version(revision, current, 0)
        }
        error => from_kv(error),
    }
}
