//! The `Kv` promises.

use std::sync::Arc;

use coffer_sim::SimClock;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::*;
use futures::StreamExt;

#[tokio::test]
async fn smoke() {
    let kv = Embedded::in_memory(EmbeddedOptions::new(Arc::new(SimClock::default()))).await.unwrap();
    let mut watch = kv
        .watch(WatchRequest { start: "a".into(), end: "z".into(), previous: true, ..Default::default() })
        .await
        .unwrap();
    let put = |key: &'static str, value: &'static str| Txn {
        compare: vec![Compare::ModRevision(key.into(), 0)],
        success: vec![Op::Put { key: key.into(), value: SharedValue(value.into()), lease: 0 }],
        failure: vec![Op::Range(RangeRequest { start: key.into(), ..Default::default() })],
    };
    let done = kv.txn(put("k", "v")).await.unwrap();
    assert_eq!((done.revision, done.succeeded), (2, true));
    let done = kv.txn(put("k", "v")).await.unwrap();
    assert_eq!((done.revision, done.succeeded), (2, false));
    let read = kv.range(RangeRequest { start: "k".into(), ..Default::default() }).await.unwrap();
    assert_eq!((read.revision, read.count, &*read.items[0].value), (2, 1, &b"v"[..]));
    assert!(matches!(watch.next().await, Some(Ok(WatchMessage::Created(1)))));
    let Some(Ok(WatchMessage::Events(events))) = watch.next().await else { panic!("no event") };
    assert_eq!(events[0].kv.mod_revision, 2);
}
