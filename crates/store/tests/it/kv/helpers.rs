//! Short words for what the promises are about.

use std::time::Duration;

use bytes::Bytes;
use coffer_sim::SimClock;
use coffer_store::kv::{
    Compare, Kv, KvError, KvEvent, Op, OpResponse, RangeRequest, RangeResponse, Revision, SharedValue, Txn,
    TxnResponse, WatchMessage, WatchRequest, WatchStream, prefix_end,
};
use futures::StreamExt;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An engine under test and what keeps it alive.
pub(crate) struct Fixture {
    pub(crate) kv: Box<dyn Kv>,
    /// The engine's clock, or none if it has the machine's.
    pub(crate) clock: Option<SimClock>,
    /// Dropped last.
    pub(crate) _server: Box<dyn std::any::Any + Send + Sync>,
}

impl Fixture {
    pub(crate) fn as_kv(&self) -> &dyn Kv {
        &*self.kv
    }

    /// Lets time pass for the engine.
    pub(crate) async fn pass(&self, time: Duration) {
        match &self.clock {
            Some(clock) => {
                // Whoever is about to sleep gets there first.
                tokio::time::sleep(Duration::from_millis(20)).await;
                clock.advance(time);
            }
            None => tokio::time::sleep(time).await,
        }
    }
}

impl std::ops::Deref for Fixture {
    type Target = dyn Kv;

    fn deref(&self) -> &Self::Target {
        &*self.kv
    }
}

pub(crate) fn bytes(text: impl AsRef<[u8]>) -> Bytes {
    Bytes::copy_from_slice(text.as_ref())
}

pub(crate) fn put_op(key: &str, value: &str) -> Op {
    Op::Put { key: bytes(key), value: SharedValue(bytes(value)), lease: 0 }
}

pub(crate) fn put_with_lease(key: &str, value: &str, lease: i64) -> Op {
    Op::Put { key: bytes(key), value: SharedValue(bytes(value)), lease }
}

pub(crate) fn delete_op(key: &str) -> Op {
    Op::Delete { key: bytes(key) }
}

pub(crate) fn prefix(start: &str) -> RangeRequest {
    RangeRequest { start: bytes(start), end: prefix_end(start.as_bytes()), ..Default::default() }
}

pub(crate) fn single(key: &str) -> RangeRequest {
    RangeRequest { start: bytes(key), ..Default::default() }
}

/// Runs steps without a condition.
pub(crate) async fn run(kv: &dyn Kv, steps: Vec<Op>) -> Result<TxnResponse, KvError> {
    kv.txn(Txn { success: steps, ..Default::default() }).await
}

pub(crate) async fn put(kv: &dyn Kv, key: &str, value: &str) -> Revision {
    run(kv, vec![put_op(key, value)]).await.expect("a put").revision
}

pub(crate) async fn delete(kv: &dyn Kv, key: &str) -> (Revision, i64) {
    let done = run(kv, vec![delete_op(key)]).await.expect("a deletion");
    let [OpResponse::Deleted(count)] = done.responses[..] else { panic!("{:?}", done.responses) };
    (done.revision, count)
}

/// Writes if the key's last change is the one given.
pub(crate) async fn put_if(kv: &dyn Kv, key: &str, value: &str, revision: Revision) -> TxnResponse {
    kv.txn(Txn {
        compare: vec![Compare::ModRevision(bytes(key), revision)],
        success: vec![put_op(key, value)],
        failure: vec![Op::Range(single(key))],
    })
    .await
    .expect("a conditional put")
}

pub(crate) async fn read(kv: &dyn Kv, request: RangeRequest) -> RangeResponse {
    kv.range(request).await.expect("a read")
}

/// `key=value@create.mod.version` for each item.
pub(crate) fn show(response: &RangeResponse) -> Vec<String> {
    response.items.iter().map(show_kv).collect()
}

pub(crate) fn show_kv(kv: &coffer_store::kv::KeyValue) -> String {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}={}@{}.{}.{}", text(&kv.key), text(&kv.value), kv.create_revision, kv.mod_revision, kv.version)
}

/// `PUT k=v@1.2.3 was …` or `DEL k@7 was …`.
pub(crate) fn show_event(event: &KvEvent) -> String {
    let previous = event.previous.as_ref().map(|kv| format!(" was {}", show_kv(kv))).unwrap_or_default();
    let kind = if event.deleted { "DEL" } else { "PUT" };
    format!("{kind} {}{previous}", show_kv(&event.kv))
}

/// A watch of all keys with a prefix, after its first message.
pub(crate) async fn watch(kv: &dyn Kv, start: &str, from: Revision) -> WatchStream {
    let request = WatchRequest {
        start: bytes(start),
        end: prefix_end(start.as_bytes()),
        from,
        previous: true,
        progress: true,
    };
    watch_with(kv, request).await
}

pub(crate) async fn watch_with(kv: &dyn Kv, request: WatchRequest) -> WatchStream {
    let mut watch = kv.watch(request).await.expect("a watch");
    let first = next(&mut watch).await;
    assert!(matches!(first, Ok(WatchMessage::Created(_))), "{first:?}");
    watch
}

/// The next message, whatever it is.
pub(crate) async fn next(watch: &mut WatchStream) -> Result<WatchMessage, KvError> {
    tokio::time::timeout(PATIENCE, watch.next()).await.expect("a message in time").expect("the watch goes on")
}

/// The events of the next message that has some.
pub(crate) async fn batch(watch: &mut WatchStream) -> Vec<KvEvent> {
    loop {
        match next(watch).await.expect("no error") {
            WatchMessage::Events(events) => return events,
            WatchMessage::Progress(_) => {}
            WatchMessage::Created(revision) => panic!("created again at {revision}"),
        }
    }
}

/// At least `count` events, in as many messages as they come.
pub(crate) async fn events(watch: &mut WatchStream, count: usize) -> Vec<String> {
    let mut shown = Vec::new();
    while shown.len() < count {
        shown.extend(batch(watch).await.iter().map(show_event));
    }
    shown
}

/// The error that ends a watch.
pub(crate) async fn ends_with(watch: &mut WatchStream) -> KvError {
    loop {
        if let Err(error) = next(watch).await {
            assert!(watch.next().await.is_none(), "nothing follows an error");
            return error;
        }
    }
}
