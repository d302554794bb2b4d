//! The same requests to etcd and to the embedded engine get the same answers.

use std::sync::Arc;
use std::time::Duration;

use coffer_sim::{SeededRandom, SimClock};
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::{
    Compare, KeyValue, Kv, KvError, Op, OpResponse, RangeRequest, RangeResponse, Txn, TxnResponse,
};

use crate::etcd::Etcd;
use crate::kv::helpers::{bytes, delete_op, events, put_op, put_with_lease, show, watch};

const SEEDS: u64 = 12;
const STEPS: usize = 250;
const KEYS: u64 = 6;

/// A request and the answers to it, as text.
struct Pair {
    ours: Embedded,
    theirs: coffer_store::etcd::EtcdKv,
    /// The same lease on both sides.
    leases: Vec<(i64, i64)>,
}

fn show_range(range: &RangeResponse, lease: impl Fn(i64) -> String) -> String {
    // When only keys are asked for, etcd 3.7 has lost the lease (etcd-io/etcd#22209).
    let lease = |kv: &KeyValue| if kv.value.is_empty() { "-".into() } else { lease(kv.lease) };
    let leases: Vec<_> = range.items.iter().map(lease).collect();
    format!("{} {} {} {:?} {leases:?}", range.revision, range.count, range.more, show(range))
}

fn show_txn(done: Result<TxnResponse, KvError>, lease: impl Fn(i64) -> String + Copy) -> String {
    let done = match done {
        Ok(done) => done,
        // etcd does not say up to where it was compacted.
        Err(KvError::Compacted(_)) => return "compacted".into(),
        Err(error) => return error.to_string(),
    };
    let responses: Vec<_> = done
        .responses
        .iter()
        .map(|response| match response {
            OpResponse::Put => "put".into(),
            OpResponse::Deleted(count) => format!("deleted {count}"),
            // The revision in an inner header differs between etcd's versions, and nobody reads it.
            OpResponse::Range(range) => show_range(&RangeResponse { revision: 0, ..range.clone() }, lease),
        })
        .collect();
    format!("{} {} {responses:?}", done.revision, done.succeeded)
}

struct Maker<'a> {
    random: &'a SeededRandom,
    revision: i64,
}

impl Maker<'_> {
    fn key(&self) -> String {
        format!("/{}", (b'a' + self.random.below(KEYS) as u8) as char)
    }

    fn range(&self) -> RangeRequest {
        let random = self.random;
        let start = bytes(self.key());
        let end = match random.below(4) {
            0 => bytes(""),
            1 => bytes("\0"),
            _ => bytes(self.key()),
        };
        RangeRequest {
            start,
            end,
            revision: if random.one_in(3) { random.below(self.revision as u64 + 3) as i64 } else { 0 },
            limit: if random.one_in(3) { random.below(4) as i64 } else { 0 },
            count_only: random.one_in(5),
            keys_only: random.one_in(5),
            serializable: random.one_in(5),
        }
    }

    /// A step for us and the same for them.
    fn op(&self, leases: &[(i64, i64)]) -> (Op, Op) {
        let random = self.random;
        let same = |op: Op| (op.clone(), op);
        match random.below(10) {
            0..4 => same(put_op(&self.key(), &random.below(1000).to_string())),
            4 if !leases.is_empty() => {
                let (ours, theirs) = leases[random.below(leases.len() as u64) as usize];
                let (key, value) = (self.key(), random.below(1000).to_string());
                (put_with_lease(&key, &value, ours), put_with_lease(&key, &value, theirs))
            }
            4..6 => same(delete_op(&self.key())),
            6 => same(Op::DeleteRange { start: bytes(self.key()), end: bytes(self.key()) }),
            _ => same(Op::Range(self.range())),
        }
    }

    fn ops(&self, leases: &[(i64, i64)]) -> (Vec<Op>, Vec<Op>) {
        (0..self.random.below(4)).map(|_| self.op(leases)).unzip()
    }

    fn txn(&self, leases: &[(i64, i64)]) -> (Txn, Txn) {
        let random = self.random;
        let compare: Vec<_> = (0..random.below(3))
            .map(|_| match random.below(3) {
                0 => Compare::Version(bytes(self.key()), random.below(3) as i64),
                1 => Compare::ModRevision(bytes(self.key()), 0),
                _ => Compare::ModRevision(bytes(self.key()), random.below(self.revision as u64 + 1) as i64),
            })
            .collect();
        let (our_success, their_success) = self.ops(leases);
        let (our_failure, their_failure) = self.ops(leases);
        (
            Txn { compare: compare.clone(), success: our_success, failure: our_failure },
            Txn { compare, success: their_success, failure: their_failure },
        )
    }
}

impl Pair {
    async fn step(&mut self, random: &SeededRandom, revision: &mut i64) -> (String, String, String) {
        let maker = Maker { random, revision: *revision };
        let leases = self.leases.clone();
        let name = |ours: bool| {
            let leases = &leases;
            move |lease: i64| {
                let side = |pair: &(i64, i64)| if ours { pair.0 } else { pair.1 };
                match leases.iter().position(|pair| side(pair) == lease) {
                    _ if lease == 0 => "none".into(),
                    Some(number) => format!("#{number}"),
                    None => "unknown".to_owned(),
                }
            }
        };
        match random.below(20) {
            0 => {
                let ttl = Duration::from_secs(3600);
                let pair = (
                    self.ours.lease_grant(ttl).await.expect("granted"),
                    self.theirs.lease_grant(ttl).await.expect("granted"),
                );
                self.leases.push(pair);
                ("grant".into(), String::new(), String::new())
            }
            1 if !self.leases.is_empty() => {
                // A revoked one is kept, to be used and revoked again.
                let (ours, theirs) = self.leases[random.below(self.leases.len() as u64) as usize];
                let (ours, theirs) =
                    (self.ours.lease_revoke(ours).await, self.theirs.lease_revoke(theirs).await);
                ("revoke".into(), format!("{ours:?}"), format!("{theirs:?}"))
            }
            2 if random.one_in(3) => {
                let at = random.below(*revision as u64 + 3) as i64;
                let text = |done: Result<(), KvError>| match done {
                    Err(KvError::Compacted(_)) => "compacted".into(),
                    done => format!("{done:?}"),
                };
                let (ours, theirs) = (self.ours.compact(at).await, self.theirs.compact(at).await);
                (format!("compact {at}"), text(ours), text(theirs))
            }
            3..8 => {
                let request = maker.range();
                let text = |read: Result<RangeResponse, KvError>, ours| match read {
                    Ok(read) => show_range(&read, name(ours)),
                    Err(KvError::Compacted(_)) => "compacted".into(),
                    Err(error) => error.to_string(),
                };
                let ours = self.ours.range(request.clone()).await;
                let theirs = self.theirs.range(request.clone()).await;
                (format!("{request:?}"), text(ours, true), text(theirs, false))
            }
            _ => {
                let (ours, theirs) = maker.txn(&self.leases);
                let shown = format!("{theirs:?}");
                let (ours, theirs) = (self.ours.txn(ours).await, self.theirs.txn(theirs).await);
                if let Ok(done) = &theirs {
                    *revision = done.revision;
                }
                (shown, show_txn(ours, name(true)), show_txn(theirs, name(false)))
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_store_answers_as_etcd_does() {
    for seed in 0..SEEDS {
        let server = Etcd::start().await;
        let options = EmbeddedOptions::new(Arc::new(SimClock::default()));
        let ours = Embedded::in_memory(options).await.expect("opens");
        let mut pair = Pair { ours, theirs: server.client().await, leases: Vec::new() };
        let mut watches = (watch(&pair.ours, "/", 0).await, watch(&pair.theirs, "/", 0).await);
        let random = SeededRandom::new(seed);
        let mut revision = 1;
        for number in 0..STEPS {
            let (request, ours, theirs) = pair.step(&random, &mut revision).await;
            assert_eq!(ours, theirs, "seed {seed}, step {number}: {request}");
        }
        for kv in [&pair.ours as &dyn Kv, &pair.theirs] {
            kv.txn(Txn { success: vec![put_op("/end", "")], ..Default::default() }).await.expect("the end");
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (seen, watch) in [(&mut ours, &mut watches.0), (&mut theirs, &mut watches.1)] {
            while !seen.last().is_some_and(|event: &String| event.contains("/end")) {
                seen.extend(events(watch, 1).await);
            }
        }
        assert_eq!(ours, theirs, "seed {seed}: the watches differ");
        assert!(STEPS / 4 < ours.len(), "the steps did something");
    }
}
