//! The audit of a snapshot file.

use std::borrow::Cow;

use coffer_store::snapshot::{ReadAt, Snapshot, SnapshotError};

use super::misplaced::Suspects;
use super::newest::{Index, Newest};
use super::report::{Report, Tally};
use super::verdict::{Auditor, Verdict};

/// Whether the hash at the end of a snapshot is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashCheck {
    /// It is, when there is one.
    Check,
    /// It is not.
    Skip,
}

/// Reads a snapshot once to learn which record of each key counts. With keys to open the copies it then
/// reads again the pages with those, to judge them, since opening costs more than reading; without, they are
/// judged as they are seen. `progress` learns how far in the file it is, as often as it is read.
/// The hash is computed meanwhile, on a thread of its own.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn audit<R: ReadAt + Sync>(
    snapshot: &Snapshot<R>,
    auditor: &Auditor,
    hash: HashCheck,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, SnapshotError> {
    std::thread::scope(|scope| {
        let checked = (hash == HashCheck::Check).then(|| scope.spawn(|| snapshot.check_hash()));
        let report = read(snapshot, auditor, progress)?;
        if let Some(checked) = checked {
            checked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(report)
    })
}

fn read<R: ReadAt>(
    snapshot: &Snapshot<R>,
    auditor: &Auditor,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, SnapshotError> {
    let opens = auditor.opens();
    let total = if opens { snapshot.len() * 2 } else { snapshot.len() };
    let (mut tally, mut index) = (Tally::default(), Index::default());
    snapshot.records(
        &mut |record| {
            let Some(key) = key_text(auditor, record.key) else { return };
            let at = (record.revision, record.sub);
            let mut newest = Newest { at, group: None, page: record.page, bytes: 0, verdict: None };
            if !record.deleted {
                let judged = auditor.describe(&key, record.value);
                newest.group = Some(tally.group(&judged));
                if !opens {
                    newest.bytes = u32::try_from(record.value.len()).unwrap_or(u32::MAX);
                    newest.verdict = match auditor.judge(&judged, &key, record.value) {
                        Verdict::Good => None,
                        verdict => Some(Box::new(verdict)),
                    };
                }
            }
            if let Some(Newest { group: Some(group), .. }) = index.note(record.key, newest) {
                tally.old(group);
            }
        },
        &mut |read| progress(read, total),
    )?;
    let revision = index.revision().max(snapshot.compacted());
    if !opens {
        for (key, newest) in index.into_newest() {
            let Some(group) = newest.group else { continue };
            let key = String::from_utf8_lossy(&key);
            let verdict = newest.verdict.map_or(Verdict::Good, |verdict| *verdict);
            tally.live(group, &key, auditor.name_of(&key), newest.bytes as usize, verdict);
        }
        return Ok(tally.finish(revision, false, true));
    }
    let mut suspects = Suspects::default();
    snapshot.records_on(
        index.pages(),
        &mut |record| {
            let Some(group) = index.live(record.key, (record.revision, record.sub)) else { return };
            let Some(key) = key_text(auditor, record.key) else { return };
            let key = &*key;
            let judged = auditor.describe(key, record.value);
            let verdict = auditor.judge(&judged, key, record.value);
            suspects.note(&judged, &verdict, key, record.value);
            tally.live(group, key, judged.name, record.value.len(), verdict);
        },
        &mut |read| progress(total / 2 + read, total),
    )?;
    if !suspects.is_empty() {
        for key in index.keys() {
            suspects.try_key(auditor, &String::from_utf8_lossy(key), &mut tally);
        }
    }
    Ok(tally.finish(revision, true, true))
}

/// The key as text, if it lies below the prefix.
fn key_text<'k>(auditor: &Auditor, key: &'k [u8]) -> Option<Cow<'k, str>> {
    key.starts_with(auditor.root().as_bytes()).then(|| String::from_utf8_lossy(key))
}
