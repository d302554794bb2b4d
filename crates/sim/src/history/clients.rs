//! Clients that do a bit of everything at once, and watchers that are cut off and resume.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use coffer_store::kv::{
    Compare, Kv, KvError, Op, OpResponse, RangeRequest, Revision, SharedValue, Txn, WatchMessage,
    WatchRequest, prefix_end,
};
use futures::StreamExt as _;

use super::record::{Outcome, Recorder, Request, WatchRecord};
use crate::random::SeededRandom;

/// Keys that all clients fight for.
const KEYS: u64 = 6;
/// Pause of a client or watcher whose store is away.
const PAUSE: Duration = Duration::from_millis(5);
/// A watcher that hears nothing for so long asks how far it is.
const QUIET: Duration = Duration::from_millis(20);
/// How long a watcher waits for the last changes before it says what it has.
const PATIENCE: Duration = Duration::from_secs(60);

/// What clients do, and for how long.
#[derive(Default)]
pub struct Load {
    /// All keys begin with it.
    pub prefix: String,
    /// How many clients.
    pub clients: usize,
    /// What they do follows from it.
    pub seed: u64,
    /// Ends them.
    pub stop: AtomicBool,
    /// Calls so far, for whoever wants to do something after so many.
    pub calls: AtomicUsize,
    /// The revision that watchers wait for before they end; 0 while there is none.
    pub last: AtomicI64,
}

impl Load {
    /// All keys.
    pub fn range(&self) -> RangeRequest {
        let start = Bytes::copy_from_slice(self.prefix.as_bytes());
        RangeRequest { end: prefix_end(&start), start, ..RangeRequest::default() }
    }

    /// A watch of all keys.
    pub fn watch(&self, from: Revision) -> WatchRequest {
        let RangeRequest { start, end, .. } = self.range();
        WatchRequest { start, end, from, previous: true, progress: true }
    }

    fn key(&self, random: &SeededRandom) -> Bytes {
        Bytes::from(format!("{}{}", self.prefix, random.below(KEYS)))
    }
}

/// Runs the clients until they are stopped.
///
/// # Panics
/// When a client does.
pub async fn run_clients(recorder: &Arc<Recorder>, kv: &Arc<dyn Kv>, load: &Arc<Load>) {
    let clients: Vec<_> = (0..load.clients)
        .map(|number| {
            let (recorder, kv, load) = (recorder.clone(), kv.clone(), load.clone());
            tokio::spawn(async move { client(&recorder, &*kv, &load, number).await })
        })
        .collect();
    for client in clients {
        client.await.expect("the client");
    }
}

async fn client(recorder: &Recorder, kv: &dyn Kv, load: &Load, number: usize) {
    let random = SeededRandom::new(load.seed.wrapping_mul(1_000).wrapping_add(number as u64));
    let mut known = HashMap::new();
    let mut written = 0;
    while !load.stop.load(Ordering::SeqCst) {
        let request = next(load, &random, &known, number, &mut written);
        let outcome = recorder.call(kv, number, request.clone()).await;
        load.calls.fetch_add(1, Ordering::SeqCst);
        learn(&mut known, &request, &outcome);
        if matches!(outcome, Outcome::Unknown | Outcome::Refused) {
            // No storm of writes while the store is away: first it must answer.
            while !load.stop.load(Ordering::SeqCst) {
                tokio::time::sleep(PAUSE).await;
                let probe = Request::Range(load.range());
                if !matches!(recorder.call(kv, number, probe).await, Outcome::Unknown) {
                    break;
                }
            }
        }
    }
}

fn next(
    load: &Load,
    random: &SeededRandom,
    known: &HashMap<Bytes, Revision>,
    client: usize,
    written: &mut usize,
) -> Request {
    let key = load.key(random);
    let mut put = |key: &Bytes| {
        *written += 1;
        // No two writes are the same.
        let value = Bytes::from(format!("{}.{client}.{written}", load.seed));
        Op::Put { key: key.clone(), value: SharedValue(value), lease: 0 }
    };
    let success = |ops| Request::Txn(Txn { success: ops, ..Txn::default() });
    let one = RangeRequest { start: key.clone(), ..RangeRequest::default() };
    match random.below(16) {
        0..3 => success(vec![put(&key)]),
        3..6 => {
            // As an API server writes: if nobody else has.
            let revision = known.get(&key).copied().unwrap_or(0);
            Request::Txn(Txn {
                compare: vec![Compare::ModRevision(key.clone(), revision)],
                success: vec![put(&key)],
                failure: vec![Op::Range(one)],
            })
        }
        6 => success(vec![Op::Delete { key }]),
        7 => {
            let other = load.key(random);
            let mut ops = vec![put(&key), Op::Range(load.range())];
            if other != key {
                ops.push(put(&other));
            }
            success(ops)
        }
        8 if random.one_in(6) => {
            let RangeRequest { start, end, .. } = load.range();
            success(vec![Op::DeleteRange { start, end }])
        }
        9 => Request::Range(RangeRequest { limit: 2, ..load.range() }),
        10 => Request::Range(RangeRequest { count_only: true, ..load.range() }),
        11 => {
            let past = known.values().max().copied().unwrap_or(0);
            Request::Range(RangeRequest { revision: past, ..load.range() })
        }
        12 => Request::Range(RangeRequest { keys_only: true, ..load.range() }),
        13 => Request::Range(load.range()),
        _ => Request::Range(one),
    }
}

fn learn(known: &mut HashMap<Bytes, Revision>, request: &Request, outcome: &Outcome) {
    let found = match (request, outcome) {
        (_, Outcome::Range(found)) => std::slice::from_ref(found),
        (Request::Txn(txn), Outcome::Txn(answer)) => {
            for op in if answer.succeeded { &txn.success } else { &txn.failure } {
                if let Op::Put { key, .. } = op {
                    known.insert(key.clone(), answer.revision);
                }
            }
            match answer.responses.first() {
                Some(OpResponse::Range(found)) => std::slice::from_ref(found),
                _ => &[],
            }
        }
        _ => &[],
    };
    for kv in found.iter().flat_map(|found| &found.items) {
        known.insert(kv.key.clone(), kv.mod_revision);
    }
}

/// Watches from a revision until [`Load::last`] is reached: whenever the watch ends, and now and
/// then for no reason, it is resumed behind what has come.
///
/// # Panics
/// When the store refuses to resume the watch.
pub async fn follow(
    recorder: Arc<Recorder>,
    kv: Arc<dyn Kv>,
    load: Arc<Load>,
    from: Revision,
    seed: u64,
) -> Vec<WatchRecord> {
    let random = SeededRandom::new(seed);
    let mut parts: Vec<WatchRecord> = Vec::new();
    let mut from = from;
    let mut waited = Duration::ZERO;
    loop {
        let request = load.watch(from);
        let mut stream = match kv.watch(request.clone()).await {
            Ok(stream) => stream,
            Err(KvError::Unavailable(_) | KvError::Timeout) if waited < PATIENCE => {
                tokio::time::sleep(PAUSE).await;
                waited += PAUSE;
                continue;
            }
            Err(error) => panic!("a watch from {from} was refused: {error}"),
        };
        let mut part = WatchRecord { request, messages: Vec::new(), until: None };
        loop {
            let last = load.last.load(Ordering::SeqCst);
            if last != 0 && (last < from || PATIENCE <= waited) {
                part.until = Some(last);
                parts.push(part);
                return parts;
            }
            let Ok(message) = tokio::time::timeout(QUIET, stream.next()).await else {
                waited += if last == 0 { Duration::ZERO } else { QUIET };
                // It is asked again if this is lost.
                let _ = kv.request_progress(&part.request.start).await;
                continue;
            };
            let Some(Ok(message)) = message else {
                break;
            };
            match &message {
                WatchMessage::Created(revision) if from == 0 => from = revision + 1,
                WatchMessage::Created(_) => {}
                WatchMessage::Progress(revision) => from = from.max(revision + 1),
                WatchMessage::Events(events) => {
                    from = events.last().map_or(from, |event| event.kv.mod_revision + 1);
                }
            }
            part.messages.push((recorder.now(), message));
            if random.one_in(200) {
                break;
            }
        }
        parts.push(part);
        if waited < PATIENCE {
            tokio::time::sleep(PAUSE).await;
        }
    }
}
