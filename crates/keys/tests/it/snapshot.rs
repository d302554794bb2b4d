//! The audit of a snapshot file, as far as no running peer is needed to make one.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use coffer_config::encryption::Transformers;
use coffer_keys::audit::snapshot::{self, HashCheck};
use coffer_keys::audit::{Auditor, Report};
use coffer_store::snapshot::{ReadAt, Snapshot};

/// Made by etcd 3.7: one Secret that was written twice in plaintext, and deleted.
const FILE: &[u8] = include_bytes!("../../../store/tests/golden/few-records.db");

/// A file that counts what is read of it.
struct Counted<'c>(&'c AtomicU64);

impl ReadAt for Counted<'_> {
    fn length(&self) -> io::Result<u64> {
        FILE.length()
    }

    fn read_exactly(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.fetch_add(out.len() as u64, Ordering::SeqCst);
        FILE.read_exactly(offset, out)
    }
}

/// The report, how many bytes were read for it, and how many that was said to be.
fn audit(transformers: Option<Transformers>) -> (Report, u64, u64) {
    let read = AtomicU64::new(0);
    let snapshot = Snapshot::open(Counted(&read)).expect("a snapshot");
    let auditor = Auditor::new("/registry", transformers).expect("a prefix");
    read.store(0, Ordering::SeqCst);
    let mut said = 0;
    let report = snapshot::audit(&snapshot, &auditor, HashCheck::Skip, &mut |_, total| said = total);
    drop(snapshot);
    (report.expect("a report"), read.into_inner(), said)
}

/// With keys it is read again where live copies are; here there are none.
#[test]
fn without_keys_the_file_is_read_once() {
    // Without the hash at its end.
    let content = FILE.len() as u64 - 32;
    let (blind, read, said) = audit(None);
    assert_eq!((read, said), (content, FILE.len() as u64));
    let (opened, read, said) = audit(Some(Transformers::identity()));
    assert_eq!((read, said), (content, 2 * FILE.len() as u64));
    // What was deleted is no live copy, and stays in the history.
    for report in [blind, opened] {
        let copies = &report.copies[0];
        assert_eq!((copies.resource.as_str(), copies.live, copies.old_revisions), ("secrets", 0, Some(2)));
        assert!(report.clean && report.revision == 4, "{report:?}");
    }
}
