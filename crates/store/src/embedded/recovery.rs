//! What the writer does about a disk that fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use redb::Database;

use super::Command;
use super::backend::Through;
use super::open::{build, number};
use super::read::Fault;
use super::reserve::NO_SPACE;
use super::rows::META_COMMIT;
use super::writer::{Answer, Batch, DISK_REST, Writer};
use crate::kv::{KvError, Revision};

impl Writer {
    /// Whether a batch may be tried; if not, why.
    pub(crate) fn ready(&mut self) -> Result<(), String> {
        let resting = self.shared.clock.monotonic() < self.health.rest_until;
        if resting || (!self.health.writable && !self.reopen()) {
            if !resting {
                self.rest();
            }
            return Err(self.health.reason.clone());
        }
        Ok(())
    }

    /// Leaves the disk alone for a while.
    fn rest(&mut self) {
        self.health.rest_until = self.shared.clock.monotonic() + DISK_REST;
    }

    /// Reopens the database for readers that could not read, unless that has happened since.
    pub(crate) fn heal(&mut self, opened: u64) {
        let resting = self.shared.clock.monotonic() < self.health.rest_until;
        if opened == self.shared.opened.load(Ordering::Acquire) && !resting {
            self.rest();
            self.reopen();
        }
    }

    /// Takes back what is not committed for certain, and opens the database again. False if the disk
    /// refuses that; then reading goes on, if it can, from what was committed, and nothing is written.
    fn reopen(&mut self) -> bool {
        let mut slot = self.shared.database.write();
        // redb refuses everything after the first failure, so a new one is needed in any case.
        drop(slot.take());
        self.health.certain = false;
        let journal = &self.shared.journal;
        let reopened = journal.roll_back().map_err(Fault::from).and_then(|()| {
            self.health.certain = true;
            Ok(build(Through(Arc::clone(journal)), self.shared.cache_bytes)?)
        });
        self.health.writable = reopened.is_ok();
        *slot = match reopened {
            Ok(database) => Some(database),
            Err(fault) => {
                tracing::error!(
                    ?fault,
                    "the disk cannot be written; the embedded store is read-only for now"
                );
                self.read_only()
            }
        };
        self.shared.opened.fetch_add(1, Ordering::AcqRel);
        self.health.writable
    }

    /// Makes the file smaller, so that a full disk has space again. Readers wait meanwhile.
    pub(crate) fn shrink(&mut self) {
        let mut slot = self.shared.database.write();
        let Some(database) = slot.as_mut() else { return };
        let result = database.compact();
        drop(slot);
        match result {
            Ok(_) => self.reserve.note_smaller(),
            Err(error) => {
                tracing::warn!(%error, "the embedded store could not be made smaller");
                self.reopen();
            }
        }
    }

    fn read_only(&self) -> Option<Database> {
        let overlay = self.shared.journal.overlay().ok()?;
        build(overlay, self.shared.cache_bytes)
            .inspect_err(|error| tracing::error!(%error, "nor can it be read"))
            .ok()
    }

    /// The number of the last commit on the disk.
    fn commits_on_disk(&self) -> Option<i64> {
        number(self.shared.database.read().as_ref()?, META_COMMIT).ok()
    }

    /// The batch is not on stable storage, or nobody knows.
    /// Gives the commands that are to be run again, because a full disk has got some space for them.
    pub(crate) fn fail(&mut self, batch: Batch, fault: Fault) -> Vec<Command> {
        let (reason, full) = match fault {
            Fault::Disk(reason) => (reason, false),
            Fault::Full(reason) => (format!("{NO_SPACE}: {reason}"), true),
            Fault::Kv(error) => (error.to_string(), false),
        };
        tracing::error!(reason, requests = batch.answers.len(), "a commit of the embedded store failed");
        // Before anything is tried on the disk: opening the database may take space too.
        let relieved = full && self.reserve.run_out(self.shared.clock.monotonic());
        if !relieved {
            self.health.failures += 1;
        }
        self.health.reason.clone_from(&reason);
        if 1 < self.health.failures {
            self.rest();
        }
        self.reopen();
        if self.health.certain && self.commits_on_disk() == Some(self.commits + 1) {
            // The commit was complete, and what failed came after it.
            self.acknowledge(batch);
            return Vec::new();
        }
        let error = if self.health.certain {
            KvError::Refused(reason)
        } else {
            KvError::Unavailable(format!("the disk failed, and the write may show after a restart: {reason}"))
        };
        self.take_back(&batch);
        let mut again = Vec::new();
        for answer in batch.answers {
            match answer.again() {
                Ok(command) if relieved && self.health.certain => again.push(command),
                Ok(command) => {
                    if let Some(answer) = Answer::unanswered(command) {
                        answer.send(Some(&error));
                    }
                }
                Err(answer) => answer.send(Some(&error)),
            }
        }
        again
    }

    /// Makes memory what it was before the batch.
    fn take_back(&mut self, batch: &Batch) {
        {
            let mut state = self.shared.state.write();
            let visible = state.visible;
            for event in batch.changes.iter().flat_map(|(_, events)| events) {
                state.index.truncate(&event.kv.key, visible);
            }
            self.current = visible;
        }
        for lease in &batch.granted {
            self.shared.leases.remove(*lease);
        }
        for (id, lease) in &batch.revoked {
            self.shared.leases.insert(*id, *lease);
        }
        self.rebuild_attached();
    }

    /// Finds out which keys each lease ends.
    pub(crate) fn rebuild_attached(&mut self) {
        self.attached.clear();
        let state = self.shared.state.read();
        for (key, entry) in state.index.live(Revision::MAX).filter(|(_, entry)| entry.lease != 0) {
            self.attached.entry(entry.lease).or_default().insert(key.clone());
        }
    }
}
