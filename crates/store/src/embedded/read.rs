//! Reading: what is visible, at any revision that has not been compacted.

use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::index::{Entry, KeyIndex};
use super::rows::{ROWS, decode, load};
use super::{Shared, State};
use crate::kv::{
    KeyValue, KvError, KvEvent, Op, OpResponse, RangeRequest, RangeResponse, Revision, Txn, TxnResponse,
};

/// A piece of history ends after so many rows,
const PIECE_ROWS: usize = 1000;
/// or so many bytes.
const PIECE_BYTES: usize = 4 << 20;

/// Why something could not be done.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The request's fault, or its bad luck.
    Kv(KvError),
    /// The disk's.
    Disk(String),
    /// The disk is full.
    Full(String),
}

impl Fault {
    fn of_disk(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(source) => source.into(),
            error => Self::Disk(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full(error.to_string()),
            _ => Self::Disk(error.to_string()),
        }
    }
}

impl From<KvError> for Fault {
    fn from(error: KvError) -> Self {
        Self::Kv(error)
    }
}

macro_rules! disk_faults {
    ($($error:ty),*) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Self::of_disk(error.into())
            }
        }
    )*};
}

disk_faults!(
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError,
    redb::DatabaseError
);

/// A piece of history.
pub(crate) struct History {
    /// In order of revision; no revision is torn.
    pub(crate) events: Vec<KvEvent>,
    /// The first revision that was not read.
    pub(crate) next: Revision,
}

impl State {
    /// The revision that a request means, if it can be read.
    pub(crate) fn readable(&self, wanted: Revision, current: Revision) -> Result<Revision, KvError> {
        if current < wanted {
            return Err(KvError::FutureRevision);
        }
        let revision = if wanted <= 0 { current } else { wanted };
        if revision < self.compacted {
            return Err(KvError::Compacted(self.compacted));
        }
        Ok(revision)
    }
}

/// What a range holds, before the values are read.
pub(crate) struct Resolved {
    /// The keys within the limit.
    pub(crate) keys: Vec<(Bytes, Entry)>,
    /// How many there are without the limit.
    pub(crate) count: i64,
    /// Whether the limit cut.
    pub(crate) more: bool,
}

/// Finds the keys of a range as of `revision`.
pub(crate) fn resolve(index: &KeyIndex, request: &RangeRequest, revision: Revision) -> Resolved {
    if request.end.is_empty() {
        let found = index.at(&request.start, revision);
        let keys = match found {
            Some(entry) if !request.count_only => vec![(request.start.clone(), entry)],
            _ => Vec::new(),
        };
        return Resolved { keys, count: i64::from(found.is_some()), more: false };
    }
    let limit = match usize::try_from(request.limit) {
        _ if request.count_only => 0,
        Ok(0) | Err(_) => usize::MAX,
        Ok(limit) => limit,
    };
    let (mut keys, mut count) = (Vec::new(), 0_usize);
    for (key, entry) in index.range(&request.start, &request.end, revision) {
        if count < limit {
            keys.push((key.clone(), entry));
        }
        count += 1;
    }
    Resolved {
        more: !request.count_only && limit < count,
        count: i64::try_from(count).unwrap_or(i64::MAX),
        keys,
    }
}

/// Reads the values of what was found.
pub(crate) fn fill(
    found: Resolved,
    keys_only: bool,
    revision: Revision,
    rows: Option<&impl ReadableTable<super::index::RowKey, &'static [u8]>>,
) -> Result<RangeResponse, redb::StorageError> {
    let mut items = Vec::with_capacity(found.keys.len());
    for (key, entry) in found.keys {
        items.push(match rows {
            Some(rows) if !keys_only => load(rows, entry.row)?,
            _ => KeyValue {
                key,
                value: Bytes::new(),
                create_revision: entry.created,
                mod_revision: entry.row.0,
                version: entry.version,
                lease: entry.lease,
            },
        });
    }
    Ok(RangeResponse { revision, items, count: found.count, more: found.more })
}

impl Shared {
    /// Reads under the two locks. The snapshot is taken while the index cannot change, so every row
    /// that the index names is in it.
    fn snapshot<T>(
        &self,
        look: impl FnOnce(&State, &dyn Fn() -> Result<ReadTransaction, Fault>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let slot = self.database.read();
        let database: &Database =
            slot.as_ref().ok_or_else(|| Fault::Disk("the data file cannot be read".into()))?;
        let state = self.state.read();
        look(&state, &|| Ok(database.begin_read()?))
    }

    /// Reads a range.
    pub(crate) fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Fault> {
        let (found, visible, snapshot) = self.snapshot(|state, begin| {
            let revision = state.readable(request.revision, state.visible)?;
            let found = resolve(&state.index, request, revision);
            let needed = !request.keys_only && !found.keys.is_empty();
            Ok((found, state.visible, if needed { Some(begin()?) } else { None }))
        })?;
        let rows = snapshot.map(|snapshot| snapshot.open_table(ROWS)).transpose()?;
        Ok(fill(found, request.keys_only, visible, rows.as_ref())?)
    }

    /// Runs a transaction that changes nothing, whichever way it goes.
    pub(crate) fn read_only(&self, txn: &Txn) -> Result<TxnResponse, Fault> {
        let (succeeded, found, visible, snapshot) = self.snapshot(|state, begin| {
            let succeeded = txn.compare.iter().all(|compare| state.index.holds_at(compare, state.visible));
            let mut found = Vec::new();
            for op in if succeeded { &txn.success } else { &txn.failure } {
                if let Op::Range(request) = op {
                    let revision = state.readable(request.revision, state.visible)?;
                    found.push((resolve(&state.index, request, revision), request.keys_only));
                }
            }
            Ok((succeeded, found, state.visible, begin()?))
        })?;
        let rows = snapshot.open_table(ROWS)?;
        let responses = found
            .into_iter()
            .map(|(found, keys_only)| Ok(OpResponse::Range(fill(found, keys_only, visible, Some(&rows))?)))
            .collect::<Result<_, redb::StorageError>>()?;
        Ok(TxnResponse { revision: visible, succeeded, responses })
    }

    /// Reads a piece of the history of the keys that `wanted` picks.
    pub(crate) fn history(
        self: &Arc<Self>,
        from: Revision,
        previous: bool,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<History, Fault> {
        let (visible, snapshot) = self.snapshot(|state, begin| {
            if from < state.compacted {
                return Err(KvError::Compacted(state.compacted).into());
            }
            Ok((state.visible, begin()?))
        })?;
        let rows = snapshot.open_table(ROWS)?;
        let mut history = History { events: Vec::new(), next: visible + 1 };
        let (mut seen, mut bytes) = (0, 0);
        let mut before = Vec::new();
        let mut last = from;
        for row in rows.range((from, 0)..(visible + 1, 0))? {
            let (row, value) = row?;
            let row = row.value();
            if row.0 != last && (PIECE_ROWS <= seen || PIECE_BYTES <= bytes) {
                history.next = row.0;
                break;
            }
            last = row.0;
            seen += 1;
            let row = decode(row, value.value())?;
            if !wanted(&row.kv.key) {
                continue;
            }
            bytes += row.kv.key.len() + row.kv.value.len();
            before.push(row.kv.key.clone());
            history.events.push(KvEvent { kv: row.kv, previous: None, deleted: row.deleted });
        }
        if previous {
            let state = self.state.read();
            if from < state.compacted {
                // It has been compacted since, and what was there before is forgotten.
                return Err(KvError::Compacted(state.compacted).into());
            }
            let found: Vec<_> = before
                .iter()
                .zip(&history.events)
                .map(|(key, event)| state.index.at(key, event.kv.mod_revision - 1))
                .collect();
            drop(state);
            for (event, entry) in history.events.iter_mut().zip(found) {
                if let Some(entry) = entry {
                    event.previous = Some(load(&rows, entry.row)?);
                }
            }
        }
        Ok(history)
    }
}
