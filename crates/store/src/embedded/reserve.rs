//! Space that is kept so that a full disk can be emptied.
//!
//! The database copies on write: a deletion takes new pages before it gives any back, and so does the
//! forgetting of history. On a full disk neither would work, and nothing could ever be freed. So a
//! second file holds some space. When the disk is full, writes are refused (etcd's alarm `NOSPACE`),
//! and the file gives its space to deletions, piece by piece.
//!
//! Writes are let in again when the file has all of its space back and there is some more. That may be
//! due to others, or to the database: once history has been forgotten on a full disk, it is made smaller.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::disk::Disk;
use crate::compactor::COMPACT_KEY;
use crate::kv::{Op, Txn};

/// What etcd says when its quota is used up.
pub(crate) const NO_SPACE: &str = "etcdserver: mvcc: database space exceeded";

/// The file grows and shrinks in so many pieces.
const PIECES: u64 = 16;

/// Space that must be free beside the reserve before writes are let in again, in pieces.
const HEADROOM: u64 = 4;

/// How long writes are refused before it is looked again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The reserve, and whether it is needed.
pub(crate) struct Reserve {
    /// `None` when there is none: then deletions fail on a full disk too.
    disk: Option<Arc<dyn Disk>>,
    size: u64,
    /// Read by the health check.
    full: Arc<AtomicBool>,
    look_at: Duration,
    /// History was forgotten since the disk was full: the database has pages to give back.
    freed: bool,
}

impl Reserve {
    /// Over a disk of its own; takes its space at once, as far as there is any.
    pub(crate) fn new(disk: Option<Arc<dyn Disk>>, size: u64, full: Arc<AtomicBool>) -> Self {
        let reserve = Self { disk, size, full, look_at: Duration::ZERO, freed: false };
        if let Err(error) = reserve.take(reserve.size) {
            tracing::warn!(
                %error, bytes = reserve.size,
                "there is too little space to keep some for deletions: free some on the disk of the store"
            );
            let _ = reserve.take_what_there_is();
        }
        reserve
    }

    pub(crate) fn full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// The disk is full: gives a part of the reserve back to it. False when nothing is left.
    pub(crate) fn run_out(&mut self, now: Duration) -> bool {
        if !self.full.swap(true, Ordering::AcqRel) {
            tracing::error!("the disk of the store is full: writes are refused, reading and deleting go on");
        }
        self.look_at = now + LOOK_AGAIN;
        let Some(disk) = &self.disk else { return false };
        let held = disk.len().unwrap_or(0);
        let piece = self.piece();
        // Half of it, then half of the rest: one deletion more is always worth something.
        let kept = if held <= 2 * piece { 0 } else { held / 2 };
        0 < held && disk.set_len(kept).is_ok()
    }

    /// History was forgotten, and its pages are free.
    pub(crate) fn note_freed(&mut self) {
        self.freed = self.full();
    }

    /// Whether the database should be made smaller; asks once.
    pub(crate) fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }

    /// The database has been made smaller: it is worth looking at once.
    pub(crate) fn note_smaller(&mut self) {
        self.look_at = Duration::ZERO;
    }

    /// Looks whether writes can be let in again.
    pub(crate) fn look(&mut self, now: Duration) {
        if !self.full() || now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_AGAIN;
        let whole = self.take(self.size + HEADROOM * self.piece()).and_then(|()| self.take(self.size));
        if whole.is_err() {
            // So that others do not use it up.
            let _ = self.take_what_there_is();
        } else {
            self.full.store(false, Ordering::Release);
            tracing::info!("the disk of the store has space again: writes are let in");
        }
    }

    fn piece(&self) -> u64 {
        self.size.div_ceil(PIECES).max(1)
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.allocate(bytes))
    }

    fn take_what_there_is(&self) -> io::Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let mut held = disk.len()?;
        while held < self.size {
            held = (held + self.piece()).min(self.size);
            disk.allocate(held)?;
        }
        Ok(())
    }
}

/// Whether a transaction may make the store larger. The compactor's mark may not: without it no
/// history is ever forgotten.
pub(crate) fn grows(txn: &Txn) -> bool {
    let put = |op: &Op| matches!(op, Op::Put { key, .. } if key != COMPACT_KEY);
    txn.success.iter().chain(&txn.failure).any(put)
}
