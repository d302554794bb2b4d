//! Questions about the present: those that come together share one round trip to the store.
//!
//! A question is never answered by a round trip that began before the question came: while
//! one is under way, all who come wait for the next. So an answer is never older than the question, and a
//! thousand readers cost the store two round trips.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::kv::{Kv, KvError, Op, OpResponse, RangeRequest, RangeResponse, Revision, Txn, contained};
use crate::limits::MAX_TXN_OPS;

/// The round trips that all readers of a store share.
pub(crate) struct RoundTrips {
    inner: Arc<Inner>,
    /// The key that is read to learn the current revision; it need not exist.
    probe: Bytes,
}

struct Inner {
    kv: Arc<dyn Kv>,
    waiting: Mutex<Waiting>,
    made: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    /// Whether a round trip is under way, or about to begin.
    asking: bool,
    questions: Vec<Question>,
}

struct Question {
    key: Bytes,
    answer: oneshot::Sender<Result<Present, KvError>>,
}

/// What the store says of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Present {
    /// When the key was last changed; 0 when it does not exist.
    changed: Revision,
    /// The store's revision.
    current: Revision,
}

impl RoundTrips {
    pub(crate) fn new(kv: Arc<dyn Kv>, probe: Bytes) -> Self {
        Self { inner: Arc::new(Inner { kv, waiting: Mutex::default(), made: AtomicU64::new(0) }), probe }
    }

    /// A revision that is not below what was acknowledged to anyone before this call.
    pub(crate) async fn current(&self) -> Result<Revision, KvError> {
        let present = self.ask(self.probe.clone()).await?;
        if present.current <= 0 {
            return Err(KvError::Other("the current resource version must be greater than 0".to_owned()));
        }
        Ok(present.current)
    }

    /// When a key was last changed, every change included that was acknowledged before this call; 0 when
    /// it does not exist.
    pub(crate) async fn last_change(&self, key: Bytes) -> Result<Revision, KvError> {
        Ok(self.ask(key).await?.changed)
    }

    /// How many round trips were made.
    pub(crate) fn made(&self) -> u64 {
        self.inner.made.load(Ordering::Relaxed)
    }

    async fn ask(&self, key: Bytes) -> Result<Present, KvError> {
        let (answer, receiver) = oneshot::channel();
        let begin = {
            let mut waiting = self.inner.waiting.lock();
            waiting.questions.push(Question { key, answer });
            !std::mem::replace(&mut waiting.asking, true)
        };
        if begin {
            // A task of its own, because the request that asks may be given up while others wait.
            tokio::spawn(ask_while_wanted(Arc::clone(&self.inner)));
        }
        receiver.await.unwrap_or_else(|_| Err(KvError::Unavailable("the store is closed".to_owned())))
    }
}

async fn ask_while_wanted(inner: Arc<Inner>) {
    loop {
        let questions = {
            let mut waiting = inner.waiting.lock();
            if waiting.questions.is_empty() {
                waiting.asking = false;
                return;
            }
            std::mem::take(&mut waiting.questions)
        };
        let mut keys: Vec<Bytes> = questions.iter().map(|question| question.key.clone()).collect();
        keys.sort_unstable();
        keys.dedup();
        let trips = keys.chunks(MAX_TXN_OPS).map(|keys| contained(trip(&*inner.kv, keys)));
        inner.made.fetch_add(trips.len() as u64, Ordering::Relaxed);
        let answers = join_all(trips).await;
        for Question { key, answer } in questions {
            let found = keys.binary_search(&key).unwrap_or_default();
            let found = match answers.get(found / MAX_TXN_OPS) {
                Some(Ok(present)) => present.get(found % MAX_TXN_OPS).copied().ok_or_else(incomplete),
                Some(Err(error)) => Err(error.clone()),
                None => Err(incomplete()),
            };
            // Whoever has given up does not need the answer.
            let _ = answer.send(found);
        }
    }
}

/// Asks for the present of some keys, at one revision.
async fn trip(kv: &dyn Kv, keys: &[Bytes]) -> Result<Vec<Present>, KvError> {
    if let [key] = keys {
        let response = kv.range(question(key)).await?;
        return Ok(vec![present(&response, response.revision)]);
    }
    let success = keys.iter().map(|key| Op::Range(question(key))).collect();
    let response = kv.txn(Txn { success, ..Txn::default() }).await?;
    let answers = response.responses.iter().map(|answer| match answer {
        OpResponse::Range(range) => Ok(present(range, response.revision)),
        OpResponse::Put | OpResponse::Deleted(_) => Err(incomplete()),
    });
    answers.collect()
}

fn question(key: &Bytes) -> RangeRequest {
    RangeRequest { start: key.clone(), limit: 1, keys_only: true, ..RangeRequest::default() }
}

fn present(range: &RangeResponse, current: Revision) -> Present {
    Present { changed: range.items.first().map_or(0, |kv| kv.mod_revision), current }
}

fn incomplete() -> KvError {
    KvError::Other("the store has not answered every read of a transaction".to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};
    use std::time::Duration;

    use async_trait::async_trait;
    use proptest::prelude::*;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::kv::{KeyValue, LeaseId, TxnResponse, WatchRequest, WatchStream};

    /// A store whose answers are made when it is asked, and held back until the test lets them go: the
    /// oldest that a store may give.
    #[derive(Default)]
    struct Slow(Mutex<Held>);

    #[derive(Default)]
    struct Held {
        revision: Revision,
        changed: BTreeMap<Bytes, Revision>,
        gates: VecDeque<oneshot::Sender<()>>,
        trips: usize,
        most_at_once: usize,
        most_keys: usize,
        /// The next answer that is let go is a panic.
        panics: bool,
    }

    impl Slow {
        fn write(&self, key: &Bytes) {
            let mut held = self.0.lock();
            held.revision += 1;
            let revision = held.revision;
            held.changed.insert(key.clone(), revision);
        }

        /// Lets the oldest answer go; whether there was one.
        fn let_go(&self) -> bool {
            let gate = self.0.lock().gates.pop_front();
            gate.is_some_and(|gate| gate.send(()).is_ok())
        }

        async fn answer(&self, requests: Vec<RangeRequest>) -> (Vec<RangeResponse>, Revision) {
            let (gate, closed) = oneshot::channel();
            let answer = {
                let mut held = self.0.lock();
                held.trips += 1;
                held.gates.push_back(gate);
                held.most_at_once = held.most_at_once.max(held.gates.len());
                held.most_keys = held.most_keys.max(requests.len());
                let revision = held.revision;
                let answer = |request: &RangeRequest| {
                    assert!(request.keys_only && !request.serializable, "{request:?}");
                    let changed = held.changed.get(&request.start).copied();
                    let items = changed.map(|mod_revision| KeyValue {
                        key: request.start.clone(),
                        value: Bytes::new(),
                        create_revision: 1,
                        mod_revision,
                        version: 1,
                        lease: 0,
                    });
                    let items: Vec<_> = items.into_iter().collect();
                    RangeResponse { revision, count: 1, items, more: false }
                };
                (requests.iter().map(answer).collect(), revision)
            };
            closed.await.expect("let go");
            assert!(!std::mem::take(&mut self.0.lock().panics), "as the test wants it");
            answer
        }
    }

    #[async_trait]
    impl Kv for Slow {
        async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
            Ok(self.answer(vec![request]).await.0.remove(0))
        }

        async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
            assert!(txn.compare.is_empty() && txn.failure.is_empty());
            let requests = txn.success.into_iter().map(|op| match op {
                Op::Range(request) => request,
                op => panic!("{op:?}"),
            });
            let (ranges, revision) = self.answer(requests.collect()).await;
            let responses = ranges.into_iter().map(OpResponse::Range).collect();
            Ok(TxnResponse { revision, succeeded: true, responses })
        }

        async fn watch(&self, _: WatchRequest) -> Result<WatchStream, KvError> {
            unreachable!("nothing is watched")
        }

        async fn request_progress(&self, _: &Bytes) -> Result<(), KvError> {
            unreachable!("nothing is watched")
        }

        async fn lease_grant(&self, _: Duration) -> Result<LeaseId, KvError> {
            unreachable!("nothing is leased")
        }

        async fn lease_revoke(&self, _: LeaseId) -> Result<(), KvError> {
            unreachable!("nothing is leased")
        }

        async fn lease_keep_alive(&self, _: LeaseId) -> Result<Duration, KvError> {
            unreachable!("nothing is leased")
        }

        async fn compact(&self, _: Revision) -> Result<(), KvError> {
            unreachable!("nothing is compacted")
        }

        async fn size(&self) -> Result<u64, KvError> {
            unreachable!("nobody asks")
        }

        fn supports_progress(&self) -> bool {
            true
        }
    }

    fn key(number: usize) -> Bytes {
        Bytes::from(format!("/registry/pods/ns/{number:04}"))
    }

    /// Lets every task run until it waits for something else than its turn.
    async fn settle() {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }

    struct World {
        store: Arc<Slow>,
        trips: Arc<RoundTrips>,
    }

    impl World {
        fn new() -> Self {
            let store = Arc::new(Slow::default());
            store.write(&key(9999));
            let trips = Arc::new(RoundTrips::new(store.clone(), Bytes::from_static(b"/registry/health")));
            Self { store, trips }
        }

        /// A read of a key; fails when its answer is older than the read.
        fn read(&self, number: usize) -> JoinHandle<()> {
            let known = self.store.0.lock().changed.get(&key(number)).copied().unwrap_or(0);
            let trips = self.trips.clone();
            tokio::spawn(async move {
                let changed = trips.last_change(key(number)).await.expect("an answer");
                assert!(known <= changed, "changed at {known} before the read, which says {changed}");
            })
        }

        /// A read of the revision.
        fn read_current(&self) -> JoinHandle<()> {
            let known = self.store.0.lock().revision;
            let trips = self.trips.clone();
            tokio::spawn(async move {
                let current = trips.current().await.expect("an answer");
                assert!(known <= current, "at {known} before the read, which says {current}");
            })
        }

        async fn finish(&self, reads: Vec<JoinHandle<()>>) {
            settle().await;
            while self.store.let_go() {
                settle().await;
            }
            for read in reads {
                read.await.expect("the read was right");
            }
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(usize),
        Read(usize),
        ReadCurrent,
        LetGo,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_usize..4).prop_map(Step::Write),
            (0_usize..4).prop_map(Step::Read),
            Just(Step::ReadCurrent),
            Just(Step::LetGo),
        ]
    }

    proptest! {
        /// Whatever the order of writes, reads and answers: no answer is older than its question, and
        /// there is one round trip at a time.
        #[test]
        fn no_answer_is_older_than_its_question(steps in prop::collection::vec(step(), 0..60)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                let world = World::new();
                let mut reads = Vec::new();
                for step in steps {
                    match step {
                        Step::Write(number) => world.store.write(&key(number)),
                        Step::Read(number) => reads.push(world.read(number)),
                        Step::ReadCurrent => reads.push(world.read_current()),
                        Step::LetGo => { world.store.let_go(); }
                    }
                    settle().await;
                }
                let asked = reads.len();
                world.finish(reads).await;
                let held = world.store.0.lock();
                assert!(held.trips <= asked && held.most_at_once <= 1, "{} for {asked}", held.trips);
            });
        }
    }

    #[tokio::test]
    async fn all_who_come_during_a_round_trip_share_the_next() {
        let world = World::new();
        let mut reads = vec![world.read(0)];
        settle().await;
        // The answer to the first is made by now: it must not serve those who come after this.
        world.store.write(&key(1));
        for number in 0..1000 {
            reads.push(if number % 3 == 0 { world.read_current() } else { world.read(number % 20) });
        }
        settle().await;
        world.finish(reads).await;
        assert_eq!(world.store.0.lock().trips, 2);
    }

    #[tokio::test]
    async fn no_transaction_is_larger_than_the_store_takes() {
        let world = World::new();
        let mut reads = vec![world.read_current()];
        settle().await;
        reads.extend((0..2 * MAX_TXN_OPS + 1).map(|number| world.read(number)));
        world.finish(reads).await;
        let held = world.store.0.lock();
        assert_eq!((held.trips, held.most_keys, held.most_at_once), (1 + 3, MAX_TXN_OPS, 3));
    }

    /// Those whose round trip it was are told, and so are those who came meanwhile: by the next one.
    #[tokio::test]
    async fn an_engine_that_panics_leaves_no_reader_waiting() {
        let world = World::new();
        let ask = |number: usize| {
            let trips = world.trips.clone();
            tokio::spawn(async move { trips.last_change(key(number)).await })
        };
        for _ in 0..3 {
            let first = [ask(0), ask(1)];
            settle().await;
            let meanwhile = ask(0);
            settle().await;
            world.store.0.lock().panics = true;
            assert!(world.store.let_go());
            for asked in first {
                let told = asked.await.expect("no panic here");
                assert!(matches!(told, Err(KvError::Unavailable(_)) | Ok(0)), "{told:?}");
            }
            settle().await;
            while world.store.let_go() {
                settle().await;
            }
            assert!(meanwhile.is_finished(), "it waits for ever");
            assert_eq!(meanwhile.await.expect("no panic here"), Ok(0));
        }
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_takes_nobody_with_it() {
        let world = World::new();
        let first = world.read(0);
        settle().await;
        first.abort();
        let rest = vec![world.read(0), world.read(1)];
        world.finish(rest).await;
    }
}
