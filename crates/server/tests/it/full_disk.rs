//! A server whose disk is full: it says so, goes on reading and deleting, and recovers.

use std::sync::Arc;

use coffer_crypto::Identity;
use coffer_runtime::clock::SystemClock;
use coffer_sim::FaultyDisk;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use serde_json::json;

use crate::support::{Client, eventually, secured_on};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_and_can_be_emptied_over_http() {
    let clock = Arc::new(SystemClock::new());
    let disk = FaultyDisk::default();
    let options = EmbeddedOptions { reserve_bytes: 512 * 4096, ..EmbeddedOptions::new(clock.clone()) };
    let reserve = Arc::new(disk.beside());
    let kv = Embedded::open_disks(Arc::new(disk.clone()), Some(reserve), options).await.expect("opens");
    let api = secured_on(Arc::new(kv), Box::new(|_, _| Arc::new(Identity)), clock, Vec::new()).await;
    let admin = Client::in_groups(&api, "admin", &["system:masters"]);
    disk.set_capacity(Some(disk.blocks() + 300));
    let write = async |number: usize| {
        let map = json!({"metadata": {"name": format!("m{number}")}, "data": {"k": "x".repeat(20_000)}});
        admin.post(MAPS, &map.to_string()).await
    };
    let mut written = 0;
    let refused = loop {
        let answer = write(written).await;
        if answer.code != 201 {
            break answer;
        }
        written += 1;
        assert!(written < 1000, "it never fills up");
    };
    assert_eq!(refused.code, 500);
    let message = refused.json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("etcdserver: mvcc: database space exceeded"), "{message}");
    let ready = admin.get("/readyz").await;
    assert_eq!(ready.code, 500);
    assert!(ready.text.contains("[-]storage-space failed: reason withheld\n"), "{}", ready.text);
    assert_eq!(admin.get("/livez").await.code, 200);
    assert_eq!(admin.get(MAPS).await.code, 200);
    for number in 0..written {
        let answer = admin.delete(&format!("{MAPS}/m{number}"), "").await;
        assert_eq!(answer.code, 200, "{number}: {}", answer.text);
    }
    assert_eq!(write(0).await.code, 500);
    disk.set_capacity(None);
    eventually(&admin, "/readyz", |answer| answer.code == 200).await;
    assert_eq!(write(0).await.code, 201);
}
