//! The audit of a running store, at one revision.

use bytes::Bytes;
use coffer_store::kv::{Kv, KvError, RangeRequest, Revision, prefix_end};

use super::misplaced::Suspects;
use super::report::{Report, Tally};
use super::verdict::Auditor;

/// How many copies are read at once.
const PAGE: i64 = 500;

/// Reads and judges every copy below the prefix. All pages are of the revision of the first one, as
/// long as the store remembers it: it is not asked to hold anything for longer. What is left to read
/// when it has forgotten is read as it is then, so that an audit may take as long as it needs; the
/// report tells that revision. `progress` learns how many of how many copies have been read, at
/// every answer of the store.
///
/// # Errors
/// When the store does not answer.
pub async fn audit(
    kv: &dyn Kv,
    auditor: &Auditor,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Report, KvError> {
    let (mut tally, mut suspects) = (Tally::default(), Suspects::default());
    let mut pages = Pages::new(auditor.root(), false);
    let mut done = 0;
    while let Some((items, left)) = pages.next(kv).await? {
        for item in &items {
            let key = &*String::from_utf8_lossy(&item.key);
            let judged = auditor.describe(key, &item.value);
            let verdict = auditor.judge(&judged, key, &item.value);
            suspects.note(&judged, &verdict, key, &item.value);
            let group = tally.group(&judged);
            tally.live(group, key, judged.name, item.value.len(), verdict);
        }
        done += items.len() as u64;
        progress(done, done + left);
    }
    let revision = pages.revision;
    if !suspects.is_empty() {
        let mut pages = Pages::new(auditor.root(), true);
        while let Some((items, _)) = pages.next(kv).await? {
            for item in &items {
                suspects.try_key(auditor, &String::from_utf8_lossy(&item.key), &mut tally);
            }
            progress(done, done);
        }
    }
    Ok(tally.finish(revision, auditor.opens(), false))
}

/// All keys below a prefix, page by page.
struct Pages {
    /// `None` after the last page.
    start: Option<Bytes>,
    end: Bytes,
    keys_only: bool,
    /// 0 until the first page.
    revision: Revision,
}

impl Pages {
    fn new(root: &str, keys_only: bool) -> Self {
        let start = Bytes::copy_from_slice(root.as_bytes());
        Self { end: prefix_end(&start), start: Some(start), keys_only, revision: 0 }
    }

    /// The next page, and how many copies are left after it.
    async fn next(&mut self, kv: &dyn Kv) -> Result<Option<(Vec<coffer_store::kv::KeyValue>, u64)>, KvError> {
        let Some(start) = self.start.take() else { return Ok(None) };
        let request = RangeRequest {
            start,
            end: self.end.clone(),
            revision: self.revision,
            limit: PAGE,
            keys_only: self.keys_only,
            ..RangeRequest::default()
        };
        let found = match kv.range(request.clone()).await {
            Err(KvError::Compacted(_)) if self.revision != 0 => {
                self.revision = 0;
                kv.range(RangeRequest { revision: 0, ..request }).await
            }
            answer => answer,
        }?;
        if self.revision == 0 {
            self.revision = found.revision;
        }
        if let Some(last) = found.items.last().filter(|_| found.more) {
            let mut next = last.key.to_vec();
            next.push(0);
            self.start = Some(Bytes::from(next));
        }
        let left = u64::try_from(found.count).unwrap_or(0).saturating_sub(found.items.len() as u64);
        Ok(Some((found.items, left)))
    }
}
