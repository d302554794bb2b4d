//! etcd's data model, as simply as it can be said.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use coffer_store::kv::{
    Compare, KeyValue, KvEvent, Op, OpResponse, RangeRequest, RangeResponse, Revision, Txn, TxnResponse,
};

/// The store: every key with all that it ever was.
#[derive(Clone)]
pub struct Model {
    revision: Revision,
    keys: BTreeMap<Bytes, Vec<(Revision, Option<KeyValue>)>>,
}

/// What a transaction has done so far, seen by its later steps.
type Overlay = BTreeMap<Bytes, Option<KeyValue>>;

impl Model {
    /// An empty store at this revision.
    pub fn new(revision: Revision) -> Self {
        Self { revision, keys: BTreeMap::new() }
    }

    /// The revision of the last change.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The key as it is.
    pub fn get(&self, key: &Bytes) -> Option<&KeyValue> {
        self.keys.get(key)?.last()?.1.as_ref()
    }

    /// What a transaction would answer and change, without doing it.
    pub fn evaluate(&self, txn: &Txn) -> (TxnResponse, Vec<KvEvent>) {
        let succeeded = txn.compare.iter().all(|compare| match compare {
            Compare::ModRevision(key, revision) => self.get(key).map_or(0, |kv| kv.mod_revision) == *revision,
            Compare::Version(key, version) => self.get(key).map_or(0, |kv| kv.version) == *version,
        });
        let next = self.revision + 1;
        let (mut overlay, mut events, mut responses) = (Overlay::new(), Vec::new(), Vec::new());
        for op in if succeeded { &txn.success } else { &txn.failure } {
            responses.push(match op {
                Op::Put { key, value, lease } => {
                    let previous = self.now(&overlay, key);
                    let (create, version) =
                        previous.as_ref().map_or((next, 0), |kv| (kv.create_revision, kv.version));
                    let kv = KeyValue {
                        key: key.clone(),
                        value: value.0.clone(),
                        create_revision: create,
                        mod_revision: next,
                        version: version + 1,
                        lease: *lease,
                    };
                    overlay.insert(key.clone(), Some(kv.clone()));
                    events.push(KvEvent { kv, previous, deleted: false });
                    OpResponse::Put
                }
                Op::Delete { key } => {
                    OpResponse::Deleted(self.delete([key.clone()], next, &mut overlay, &mut events))
                }
                Op::DeleteRange { start, end } => {
                    let all = self.keys.keys().chain(overlay.keys());
                    let mut keys: Vec<_> = all.filter(|key| within(key, start, end)).cloned().collect();
                    keys.sort();
                    keys.dedup();
                    OpResponse::Deleted(self.delete(keys, next, &mut overlay, &mut events))
                }
                Op::Range(request) => OpResponse::Range(self.range(request, &overlay)),
            });
        }
        let revision = if events.is_empty() { self.revision } else { next };
        (TxnResponse { revision, succeeded, responses }, events)
    }

    /// Makes changes that [`Model::evaluate`] gave.
    pub fn commit(&mut self, events: &[KvEvent]) {
        self.revision += 1;
        for event in events {
            let state = (!event.deleted).then(|| event.kv.clone());
            self.keys.entry(event.kv.key.clone()).or_default().push((self.revision, state));
        }
    }

    /// Reads.
    pub fn read(&self, request: &RangeRequest) -> RangeResponse {
        self.range(request, &Overlay::new())
    }

    /// Tells two states of one revision apart.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (key, states) in &self.keys {
            let state = states.last().and_then(|(_, state)| state.as_ref());
            (key, state.map(|kv| (&kv.value, kv.create_revision, kv.mod_revision, kv.version)))
                .hash(&mut hasher);
        }
        hasher.finish()
    }

    fn now(&self, overlay: &Overlay, key: &Bytes) -> Option<KeyValue> {
        overlay.get(key).cloned().unwrap_or_else(|| self.get(key).cloned())
    }

    fn delete(
        &self,
        keys: impl IntoIterator<Item = Bytes>,
        revision: Revision,
        overlay: &mut Overlay,
        events: &mut Vec<KvEvent>,
    ) -> i64 {
        let mut count = 0;
        for key in keys {
            let Some(previous) = self.now(overlay, &key) else { continue };
            overlay.insert(key.clone(), None);
            let kv = KeyValue {
                key,
                value: Bytes::new(),
                create_revision: 0,
                mod_revision: revision,
                version: 0,
                lease: 0,
            };
            events.push(KvEvent { kv, previous: Some(previous), deleted: true });
            count += 1;
        }
        count
    }

    fn range(&self, request: &RangeRequest, overlay: &Overlay) -> RangeResponse {
        let as_of = |states: &Vec<(Revision, Option<KeyValue>)>| {
            let known = states.partition_point(|(revision, _)| *revision <= request.revision);
            known.checked_sub(1).and_then(|last| states[last].1.clone())
        };
        let mut found: BTreeMap<&Bytes, Option<KeyValue>> = self
            .keys
            .iter()
            .filter(|(key, _)| within(key, &request.start, &request.end))
            .map(|(key, states)| match request.revision {
                0 => (key, states.last().and_then(|(_, state)| state.clone())),
                _ => (key, as_of(states)),
            })
            .collect();
        if request.revision == 0 {
            found.extend(
                overlay
                    .iter()
                    .filter(|(key, _)| within(key, &request.start, &request.end))
                    .map(|(key, state)| (key, state.clone())),
            );
        }
        let mut items: Vec<KeyValue> = found.into_values().flatten().collect();
        let count = items.len();
        let limit = usize::try_from(request.limit).ok().filter(|limit| 0 < *limit).unwrap_or(usize::MAX);
        items.truncate(if request.count_only { 0 } else { limit });
        if request.keys_only {
            for item in &mut items {
                item.value = Bytes::new();
            }
        }
        let more = !request.count_only && limit < count;
        RangeResponse { revision: self.revision, items, count: count as i64, more }
    }
}

/// Whether a request's bounds include a key.
pub(super) fn within(key: &[u8], start: &[u8], end: &[u8]) -> bool {
    match end {
        [] => key == start,
        // Past every key.
        [0] => start <= key,
        _ => start <= key && key < end,
    }
}
