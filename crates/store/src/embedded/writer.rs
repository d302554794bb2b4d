//! The writer: one thread that commits whatever has queued up with one sync.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redb::{Durability, Table, WriteTransaction};
use tokio::sync::mpsc;

use super::index::{Entry, RowKey};
use super::lease::Lease;
use super::read::{Fault, fill, resolve};
use super::reserve::{NO_SPACE, Reserve, grows};
use super::rows::{LEASES, META, META_COMMIT, META_COMPACTED, META_LEASE, META_REVISION, ROWS, encode, load};
use super::watch::Change;
use super::{Command, Reply, Shared};
use crate::kv::{KeyValue, KvError, KvEvent, LeaseId, Op, OpResponse, Revision, Txn, TxnResponse};

/// A batch ends after so many requests,
const BATCH_REQUESTS: usize = 1024;
/// or so many bytes of values.
const BATCH_BYTES: usize = 8 << 20;

/// How many rows of the forgotten history are deleted along with a batch.
const SWEEP_ROWS: usize = 500;

/// After a second failure in a row the disk is left alone for so long.
pub(crate) const DISK_REST: Duration = Duration::from_secs(1);

type Rows<'txn> = Table<'txn, RowKey, &'static [u8]>;

/// The writer's own state.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    /// The store's revision, including what is not committed yet.
    pub(crate) current: Revision,
    /// The number of the last commit.
    pub(crate) commits: i64,
    last_lease: LeaseId,
    /// Which keys each lease ends.
    pub(crate) attached: HashMap<LeaseId, BTreeSet<Bytes>>,
    /// Rows of the forgotten history.
    dead: VecDeque<RowKey>,
    pub(crate) health: Health,
    pub(crate) reserve: Reserve,
    row: Vec<u8>,
}

/// Where the writer begins.
pub(crate) struct Start {
    pub(crate) revision: Revision,
    pub(crate) commits: i64,
    pub(crate) last_lease: LeaseId,
    /// Rows that the last compaction has yet to delete.
    pub(crate) dead: Vec<RowKey>,
}

/// How the disk is.
pub(crate) struct Health {
    /// What is open can be written. If not, reading may go on over memory.
    pub(crate) writable: bool,
    /// Nothing but what was acknowledged can be on the disk.
    pub(crate) certain: bool,
    /// Failed batches since the last good one.
    pub(crate) failures: u32,
    /// Not to be tried before this time.
    pub(crate) rest_until: Duration,
    /// What the last failure was.
    pub(crate) reason: String,
}

/// What a batch did, so that it can be acknowledged or taken back.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) answers: Vec<Answer>,
    pub(crate) changes: Vec<Change>,
    pub(crate) granted: Vec<LeaseId>,
    pub(crate) revoked: Vec<(LeaseId, Lease)>,
    compacted: Option<Revision>,
    swept: usize,
}

impl Batch {
    /// Whether there is something to commit.
    fn changed(&self) -> bool {
        !self.changes.is_empty()
            || !self.granted.is_empty()
            || !self.revoked.is_empty()
            || self.compacted.is_some()
            || 0 < self.swept
    }
}

/// An answer that is held back until the batch is on stable storage.
pub(crate) enum Answer {
    /// The transaction itself, if it may go on when the disk is full.
    Txn(Reply<TxnResponse>, Result<TxnResponse, KvError>, Option<Txn>),
    Lease(Reply<LeaseId>, Result<LeaseId, KvError>),
    Done(Reply<()>, Result<(), KvError>, Option<Freeing>),
}

/// What may go on when the disk is full, beside deletions.
pub(crate) enum Freeing {
    Revoke(LeaseId),
    Expire,
    Compact(Revision),
}

impl Answer {
    pub(crate) fn send(self, failure: Option<&KvError>) {
        fn send<T>(reply: Reply<T>, result: Result<T, KvError>, failure: Option<&KvError>) {
            // Whoever asked may have gone away.
            let _gone = reply.send(failure.map_or(result, |error| Err(error.clone())));
        }
        match self {
            Self::Txn(reply, result, _) => send(reply, result, failure),
            Self::Lease(reply, result) => send(reply, result, failure),
            Self::Done(reply, result, _) => send(reply, result, failure),
        }
    }

    /// The command anew, if it may go on when the disk is full.
    pub(crate) fn again(self) -> Result<Command, Self> {
        match self {
            Self::Txn(reply, _, Some(txn)) => Ok(Command::Txn(txn, reply)),
            Self::Done(reply, _, Some(Freeing::Revoke(lease))) => Ok(Command::Revoke(lease, reply)),
            Self::Done(reply, _, Some(Freeing::Expire)) => Ok(Command::Expire(reply)),
            Self::Done(reply, _, Some(Freeing::Compact(revision))) => Ok(Command::Compact(revision, reply)),
            other => Err(other),
        }
    }

    /// The reply of a command that was not run.
    pub(crate) fn unanswered(command: Command) -> Option<Self> {
        match command {
            Command::Txn(txn, reply) => {
                let again = (!grows(&txn)).then_some(txn);
                Some(Self::Txn(reply, Err(unknown()), again))
            }
            Command::Grant(_, reply) => Some(Self::Lease(reply, Err(unknown()))),
            Command::Revoke(lease, reply) => {
                Some(Self::Done(reply, Err(unknown()), Some(Freeing::Revoke(lease))))
            }
            Command::Expire(reply) => Some(Self::Done(reply, Err(unknown()), Some(Freeing::Expire))),
            Command::Compact(revision, reply) => {
                Some(Self::Done(reply, Err(unknown()), Some(Freeing::Compact(revision))))
            }
            Command::Look(reply) => Some(Self::Done(reply, Err(unknown()), None)),
            Command::Heal(..) | Command::Close => None,
        }
    }
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, reserve: Reserve, start: Start) -> Self {
        let health = Health {
            writable: true,
            certain: true,
            failures: 0,
            rest_until: Duration::ZERO,
            reason: String::new(),
        };
        let mut writer = Self {
            shared,
            current: start.revision,
            commits: start.commits,
            last_lease: start.last_lease,
            attached: HashMap::new(),
            dead: start.dead.into(),
            health,
            reserve,
            row: Vec::new(),
        };
        writer.rebuild_attached();
        writer
    }

    /// Works until nobody can ask any more.
    pub(crate) fn run(mut self, mut queue: mpsc::Receiver<Command>) {
        loop {
            let sweeping = !self.dead.is_empty() && self.health.writable && self.health.failures == 0;
            let first = match queue.try_recv() {
                Ok(command) => Some(command),
                Err(mpsc::error::TryRecvError::Disconnected) => return,
                Err(mpsc::error::TryRecvError::Empty) if sweeping => None,
                Err(mpsc::error::TryRecvError::Empty) => match queue.blocking_recv() {
                    Some(command) => Some(command),
                    None => return,
                },
            };
            let (mut commands, mut closing, mut bytes) = (Vec::new(), false, 0);
            let mut next = first;
            while let Some(command) = next {
                match command {
                    Command::Close => {
                        closing = true;
                        break;
                    }
                    Command::Heal(opened, reply) => {
                        self.heal(opened);
                        let _gone = reply.send(());
                    }
                    command => {
                        bytes += weight(&command);
                        commands.push(command);
                    }
                }
                next = if commands.len() < BATCH_REQUESTS && bytes < BATCH_BYTES {
                    queue.try_recv().ok()
                } else {
                    None
                };
            }
            self.process(commands);
            if closing {
                return;
            }
            if self.reserve.take_freed() {
                self.shrink();
            }
        }
    }

    fn process(&mut self, commands: Vec<Command>) {
        let commands = self.admit(commands);
        if commands.is_empty() && self.dead.is_empty() {
            return;
        }
        if let Err(reason) = self.ready() {
            let error = KvError::Refused(reason);
            for answer in commands.into_iter().filter_map(Answer::unanswered) {
                answer.send(Some(&error));
            }
            return;
        }
        let mut batch = Batch::default();
        match self.commit(commands, &mut batch) {
            Ok(()) => self.acknowledge(batch),
            Err(fault) => {
                // What a full disk has stopped and the reserve lets go on; each time there is less of it.
                let again = self.fail(batch, fault);
                if !again.is_empty() {
                    self.process(again);
                }
            }
        }
    }

    /// On a full disk, refuses what would make the store larger.
    fn admit(&mut self, commands: Vec<Command>) -> Vec<Command> {
        self.reserve.look(self.shared.clock.monotonic());
        let full = self.reserve.full();
        let mut admitted = Vec::with_capacity(commands.len());
        for command in commands {
            match command {
                Command::Look(reply) => Answer::Done(reply, Ok(()), None).send(None),
                Command::Txn(txn, reply) if full && grows(&txn) => {
                    Answer::Txn(reply, Err(KvError::Refused(NO_SPACE.to_owned())), None).send(None);
                }
                Command::Grant(_, reply) if full => {
                    Answer::Lease(reply, Err(KvError::Refused(NO_SPACE.to_owned()))).send(None);
                }
                command => admitted.push(command),
            }
        }
        admitted
    }

    /// Runs the commands and commits what they changed. On failure all of them are in `batch`.
    fn commit(&mut self, commands: Vec<Command>, batch: &mut Batch) -> Result<(), Fault> {
        let mut commands = commands.into_iter();
        let result = self.try_commit(&mut commands, batch);
        // Those that were not reached share the fate of the batch.
        batch.answers.extend(commands.filter_map(Answer::unanswered));
        result
    }

    fn try_commit(
        &mut self,
        commands: &mut impl Iterator<Item = Command>,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        let write = self.begin()?;
        {
            let mut rows = write.open_table(ROWS)?;
            for command in commands {
                self.run_one(&write, &mut rows, command, batch)?;
            }
            for row in self.dead.iter().take(SWEEP_ROWS) {
                rows.remove(row)?;
                batch.swept += 1;
            }
            if batch.changed() {
                let mut meta = write.open_table(META)?;
                meta.insert(META_COMMIT, self.commits + 1)?;
                meta.insert(META_REVISION, self.current)?;
                meta.insert(META_LEASE, self.last_lease)?;
                if let Some(revision) = batch.compacted {
                    meta.insert(META_COMPACTED, revision)?;
                }
            }
        }
        if batch.changed() {
            write.commit()?
        } else {
            write.abort()?
        }
        Ok(())
    }

    fn begin(&self) -> Result<WriteTransaction, Fault> {
        let slot = self.shared.database.read();
        let database = slot.as_ref().ok_or_else(|| Fault::Disk("the data file is closed".into()))?;
        let mut write = database.begin_write()?;
        write
            .set_durability(Durability::Immediate)
            .map_err(|error| Fault::Disk(format!("no durable transaction: {error}")))?;
        Ok(write)
    }

    fn run_one(
        &mut self,
        write: &WriteTransaction,
        rows: &mut Rows<'_>,
        command: Command,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        // A failing disk must find the reply in the batch, so the answer is put there in any case.
        macro_rules! answer {
            ($kind:ident, $reply:expr, $result:expr $(, $again:expr)?) => {
                match $result {
                    Ok(value) => batch.answers.push(Answer::$kind($reply, Ok(value) $(, $again)?)),
                    Err(Fault::Kv(error)) => batch.answers.push(Answer::$kind($reply, Err(error) $(, $again)?)),
                    Err(fault) => {
                        batch.answers.push(Answer::$kind($reply, Err(unknown()) $(, $again)?));
                        return Err(fault);
                    }
                }
            };
        }
        match command {
            Command::Txn(txn, reply) => {
                let again = (!grows(&txn)).then(|| txn.clone());
                answer!(Txn, reply, self.txn(rows, txn, batch), again);
            }
            Command::Grant(seconds, reply) => answer!(Lease, reply, self.grant(write, seconds, batch)),
            Command::Revoke(lease, reply) => {
                let again = Some(Freeing::Revoke(lease));
                answer!(Done, reply, self.revoke(write, rows, &[lease], batch), again);
            }
            Command::Expire(reply) => {
                let ended = self.shared.leases.ended(self.shared.clock.monotonic());
                answer!(Done, reply, self.expire(write, rows, &ended, batch), Some(Freeing::Expire));
            }
            Command::Compact(revision, reply) => {
                answer!(Done, reply, self.compact(revision, batch), Some(Freeing::Compact(revision)));
            }
            // They have been taken out before.
            Command::Heal(..) | Command::Look(_) | Command::Close => {}
        }
        Ok(())
    }

    fn txn(&mut self, rows: &mut Rows<'_>, txn: Txn, batch: &mut Batch) -> Result<TxnResponse, Fault> {
        let (succeeded, steps) = {
            let state = self.shared.state.read();
            let succeeded = txn.compare.iter().all(|compare| state.index.holds_at(compare, Revision::MAX));
            let steps = if succeeded { txn.success } else { txn.failure };
            // All that can go wrong is found before anything is changed.
            for step in &steps {
                match step {
                    Op::Put { lease, .. } if *lease != 0 && !self.shared.leases.contains(*lease) => {
                        return Err(KvError::LeaseNotFound.into());
                    }
                    Op::Range(request) => {
                        state.readable(request.revision, self.current)?;
                    }
                    Op::Put { .. } | Op::Delete { .. } | Op::DeleteRange { .. } => {}
                }
            }
            (succeeded, steps)
        };
        let mut change: Change = (self.current + 1, Vec::new());
        let mut responses = Vec::with_capacity(steps.len());
        let mut failed = Ok(());
        for step in steps {
            match self.step(rows, step, &mut change) {
                Ok(response) => responses.push(response),
                Err(fault) => {
                    failed = Err(fault);
                    break;
                }
            }
        }
        self.record(change, batch);
        failed?;
        Ok(TxnResponse { revision: self.current, succeeded, responses })
    }

    /// Counts a change, if there was one.
    fn record(&mut self, change: Change, batch: &mut Batch) {
        if !change.1.is_empty() {
            self.current = change.0;
            batch.changes.push(change);
        }
    }

    fn step(&mut self, rows: &mut Rows<'_>, step: Op, change: &mut Change) -> Result<OpResponse, Fault> {
        match step {
            Op::Put { key, value, lease } => {
                self.put(rows, key, value.0, lease, change)?;
                Ok(OpResponse::Put)
            }
            Op::Delete { key } => Ok(OpResponse::Deleted(i64::from(self.delete(rows, &key, change)?))),
            Op::DeleteRange { start, end } => {
                let keys: Vec<Bytes> = {
                    let state = self.shared.state.read();
                    state.index.range(&start, &end, Revision::MAX).map(|(key, _)| key.clone()).collect()
                };
                let mut deleted = 0;
                for key in keys {
                    deleted += i64::from(self.delete(rows, &key, change)?);
                }
                Ok(OpResponse::Deleted(deleted))
            }
            Op::Range(request) => {
                let found = {
                    let state = self.shared.state.read();
                    // Without a revision it sees the steps before it.
                    let at = if request.revision <= 0 { Revision::MAX } else { request.revision };
                    resolve(&state.index, &request, at)
                };
                let revision = if change.1.is_empty() { self.current } else { change.0 };
                Ok(OpResponse::Range(fill(found, request.keys_only, revision, Some(&*rows))?))
            }
        }
    }

    fn put(
        &mut self,
        rows: &mut Rows<'_>,
        key: Bytes,
        value: Bytes,
        lease: LeaseId,
        change: &mut Change,
    ) -> Result<(), Fault> {
        let before = self.shared.state.read().index.at(&key, Revision::MAX);
        let previous = self.previous(rows, before)?;
        let entry = Entry {
            row: next_row(change),
            version: before.map_or(1, |entry| entry.version + 1),
            created: before.map_or(change.0, |entry| entry.created),
            lease,
        };
        let kv = KeyValue {
            key,
            value,
            create_revision: entry.created,
            mod_revision: change.0,
            version: entry.version,
            lease,
        };
        self.store(rows, entry, before, KvEvent { kv, previous, deleted: false }, change)
    }

    /// Deletes a key if it exists.
    fn delete(&mut self, rows: &mut Rows<'_>, key: &Bytes, change: &mut Change) -> Result<bool, Fault> {
        let Some(before) = self.shared.state.read().index.at(key, Revision::MAX) else { return Ok(false) };
        let previous = self.previous(rows, Some(before))?;
        let entry = Entry { row: next_row(change), version: 0, created: 0, lease: 0 };
        let kv = KeyValue {
            key: key.clone(),
            value: Bytes::new(),
            create_revision: 0,
            mod_revision: change.0,
            version: 0,
            lease: 0,
        };
        self.store(rows, entry, Some(before), KvEvent { kv, previous, deleted: true }, change)?;
        Ok(true)
    }

    /// What was there before, if a watch wants to know.
    fn previous(&self, rows: &Rows<'_>, before: Option<Entry>) -> Result<Option<KeyValue>, Fault> {
        match before {
            Some(entry) if self.shared.hub.wants_previous() => Ok(Some(load(rows, entry.row)?)),
            _ => Ok(None),
        }
    }

    fn store(
        &mut self,
        rows: &mut Rows<'_>,
        entry: Entry,
        before: Option<Entry>,
        event: KvEvent,
        change: &mut Change,
    ) -> Result<(), Fault> {
        encode(&mut self.row, &entry, &event.kv.key, &event.kv.value);
        rows.insert(entry.row, &*self.row)?;
        let key = &event.kv.key;
        self.shared.state.write().index.push(key, entry);
        if let Some(old) = before.map(|entry| entry.lease).filter(|old| *old != 0 && *old != entry.lease)
            && let Some(keys) = self.attached.get_mut(&old)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.attached.remove(&old);
            }
        }
        if entry.lease != 0 {
            self.attached.entry(entry.lease).or_default().insert(key.clone());
        }
        change.1.push(event);
        Ok(())
    }

    fn grant(&mut self, write: &WriteTransaction, seconds: u64, batch: &mut Batch) -> Result<LeaseId, Fault> {
        self.last_lease += 1;
        let id = self.last_lease;
        write.open_table(LEASES)?.insert(id, seconds)?;
        let ttl = Duration::from_secs(seconds);
        batch.granted.push(id);
        self.shared.leases.insert(id, Lease { ttl, end: self.shared.clock.monotonic() + ttl });
        Ok(id)
    }

    /// Ends leases, each in a revision of its own if it has keys.
    fn revoke(
        &mut self,
        write: &WriteTransaction,
        rows: &mut Rows<'_>,
        leases: &[LeaseId],
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        for id in leases {
            let lease = self.shared.leases.remove(*id).ok_or(KvError::LeaseNotFound)?;
            batch.revoked.push((*id, lease));
            write.open_table(LEASES)?.remove(id)?;
            let mut change: Change = (self.current + 1, Vec::new());
            let mut failed = Ok(());
            for key in self.attached.get(id).cloned().unwrap_or_default() {
                if let Err(fault) = self.delete(rows, &key, &mut change) {
                    failed = Err(fault);
                    break;
                }
            }
            self.record(change, batch);
            failed?;
        }
        Ok(())
    }

    fn expire(
        &mut self,
        write: &WriteTransaction,
        rows: &mut Rows<'_>,
        ended: &[LeaseId],
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        for lease in ended {
            match self.revoke(write, rows, &[*lease], batch) {
                // It was revoked by somebody in the meantime.
                Ok(()) | Err(Fault::Kv(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    fn compact(&self, revision: Revision, batch: &mut Batch) -> Result<(), Fault> {
        let compacted = batch.compacted.unwrap_or_else(|| self.shared.state.read().compacted);
        if revision <= compacted {
            return Err(KvError::Compacted(compacted).into());
        }
        if self.current < revision {
            return Err(KvError::FutureRevision.into());
        }
        batch.compacted = Some(revision);
        Ok(())
    }

    /// The batch is on stable storage: shows it, and only then acknowledges it.
    pub(crate) fn acknowledge(&mut self, batch: Batch) {
        self.health.failures = 0;
        self.commits += i64::from(batch.changed());
        self.dead.drain(..batch.swept);
        if 0 < batch.swept && self.dead.is_empty() {
            self.reserve.note_freed();
        }
        self.shared.hub.publish(&batch.changes, || self.shared.state.write().visible = self.current);
        if let Some(revision) = batch.compacted {
            let mut state = self.shared.state.write();
            state.compacted = revision;
            self.dead.extend(state.index.compact(revision));
        }
        for answer in batch.answers {
            answer.send(None);
        }
    }
}

fn next_row(change: &Change) -> RowKey {
    // A transaction has far fewer steps, and a range far fewer keys.
    (change.0, u32::try_from(change.1.len()).unwrap_or(u32::MAX))
}

fn unknown() -> KvError {
    KvError::Unavailable("the disk failed".into())
}

/// How many bytes a command will write, roughly.
fn weight(command: &Command) -> usize {
    let Command::Txn(txn, _) = command else { return 0 };
    let bytes = |op: &Op| match op {
        Op::Put { key, value, .. } => key.len() + value.0.len(),
        _ => 0,
    };
    txn.success.iter().map(bytes).sum::<usize>() + txn.failure.iter().map(bytes).sum::<usize>()
}
