//! What is noted of each call and watch.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use coffer_store::kv::{
    Kv, KvError, RangeRequest, RangeResponse, Revision, Txn, TxnResponse, WatchMessage, WatchRequest,
};
use parking_lot::Mutex;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A transaction.
    Txn(Txn),
    /// A linearizable read.
    Range(RangeRequest),
    /// A read of one key whose answer does not tell the store's revision, as of an API server.
    Peek(Bytes),
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The transaction's answer.
    Txn(TxnResponse),
    /// Only its revision: the rest is not told.
    Committed(Revision),
    /// What was read.
    Range(RangeResponse),
    /// What an API server listed: the revision, and for each key the one of its last change and the value.
    Listed(Revision, Vec<(Bytes, Revision, Bytes)>),
    /// Revision of the last change and value, or that there is none.
    Peek(Option<(Revision, Bytes)>),
    /// Only that the key exists, or not.
    Exists(bool),
    /// No answer: it may have happened, or happen later.
    Unknown,
    /// It was refused: it did not happen.
    Refused,
}

/// One call of one client.
#[derive(Debug, Clone)]
pub struct Call {
    /// Who.
    pub client: usize,
    /// When it began, in a time that all calls and watches of a history share.
    pub invoked: u64,
    /// When its answer was there. Without an answer, when it could no longer happen: `u64::MAX` unless
    /// somebody knows.
    pub returned: u64,
    /// What was asked.
    pub request: Request,
    /// What came back.
    pub outcome: Outcome,
}

/// One watch, from its request to its end.
#[derive(Debug, Clone)]
pub struct WatchRecord {
    /// What was asked for.
    pub request: WatchRequest,
    /// What came, and when.
    pub messages: Vec<(u64, WatchMessage)>,
    /// Everything up to this revision must have come; `None` when the watch was cut off.
    pub until: Option<Revision>,
}

/// Where a history is noted, its time, and whoever else wants to hear of each call as it begins and ends.
#[derive(Default)]
pub struct Recorder {
    time: AtomicU64,
    calls: Mutex<Vec<Call>>,
    listener: Option<Box<dyn Listener>>,
}

/// Hears of calls, so that a history outlives its process.
pub trait Listener: Send + Sync {
    /// A call is about to begin.
    fn begins(&self, id: u64, client: usize, request: &Request);
    /// Its answer is there.
    fn ended(&self, id: u64, outcome: &Outcome);
}

impl Recorder {
    /// A recorder that also tells `listener`.
    pub fn telling(listener: impl Listener + 'static) -> Self {
        Self { listener: Some(Box::new(listener)), ..Self::default() }
    }

    /// A recorder whose time begins later.
    pub fn starting(time: u64) -> Self {
        Self { time: AtomicU64::new(time), ..Self::default() }
    }

    /// The next moment. No two are equal.
    pub fn now(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes a call that someone else made. One without an answer may still happen.
    pub fn note(&self, mut call: Call) {
        if call.outcome == Outcome::Unknown {
            call.returned = u64::MAX;
        }
        self.calls.lock().push(call);
    }

    /// Makes a call and notes it.
    pub async fn call(&self, kv: &dyn Kv, client: usize, request: Request) -> Outcome {
        let invoked = self.now();
        if let Some(listener) = &self.listener {
            listener.begins(invoked, client, &request);
        }
        let answer = match &request {
            Request::Txn(txn) => kv.txn(txn.clone()).await.map(Outcome::Txn),
            Request::Range(range) => kv.range(range.clone()).await.map(Outcome::Range),
            Request::Peek(key) => {
                let range = RangeRequest { start: key.clone(), ..RangeRequest::default() };
                let found = kv.range(range).await;
                found.map(|found| {
                    Outcome::Peek(found.items.first().map(|kv| (kv.mod_revision, kv.value.clone())))
                })
            }
        };
        let outcome = answer.unwrap_or_else(|error| match error {
            KvError::Unavailable(_) | KvError::Timeout => Outcome::Unknown,
            KvError::Compacted(_)
            | KvError::FutureRevision
            | KvError::LeaseNotFound
            | KvError::TooLarge
            | KvError::Refused(_)
            | KvError::Other(_) => Outcome::Refused,
        });
        if let Some(listener) = &self.listener {
            listener.ended(invoked, &outcome);
        }
        let returned = self.now();
        self.note(Call { client, invoked, returned, request, outcome: outcome.clone() });
        outcome
    }

    /// All calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().clone()
    }
}
