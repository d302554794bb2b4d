//! Lists that are sent while they are still being made: the same bytes as in one piece.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use coffer_crypto::Identity;
use coffer_runtime::clock::SystemClock;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::{Kv, Op, SharedValue, Txn};
use coffer_types::codec::proto;
use http_body_util::BodyExt as _;
use serde_json::json;

use crate::support::{Answer, Client, secured_on};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// So many that lists of them are far larger than what is made at once, their metadata included.
const COUNT: usize = 1200;

/// A server with many Secrets of 700 bytes; the store is readable as it is.
async fn world() -> (Arc<dyn Kv>, Client) {
    let clock = Arc::new(SystemClock::new());
    let kv: Arc<dyn Kv> =
        Arc::new(Embedded::in_memory(EmbeddedOptions::new(clock.clone())).await.expect("a store in memory"));
    let api = secured_on(kv.clone(), Box::new(|_, _| Arc::new(Identity)), clock, Vec::new()).await;
    let admin = Client::in_groups(&api, "admin", &["system:masters"]);
    for number in 0..COUNT {
        let secret = json!({
            "metadata": {"name": format!("s{number:04}"), "labels": {"half": (number % 2).to_string()}},
            "data": {"k": "QUJD".repeat(200)}
        });
        assert_eq!(admin.post(SECRETS, &secret.to_string()).await.code, 201);
    }
    (kv, admin)
}

async fn list(admin: &Client, url: &str, accept: &str, gzip: bool) -> (Answer, Vec<u8>) {
    let coding = if gzip { "gzip" } else { "identity" };
    let answer = admin.send("GET", url, &[("accept", accept), ("accept-encoding", coding)], b"").await;
    assert_eq!(answer.code, 200, "{url} {accept}");
    assert_eq!(answer.header("content-encoding") == "gzip", gzip, "{url} {accept}");
    let mut plain = Vec::new();
    if gzip {
        flate2::read::GzDecoder::new(&*answer.bytes).read_to_end(&mut plain).expect("gzip");
    } else {
        plain.extend_from_slice(&answer.bytes);
    }
    (answer, plain)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_in_pieces_has_the_bytes_of_one_in_one_piece() {
    let (_kv, admin) = world().await;
    let partial = |media: &str| format!("{media};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    for (url, accept, count) in [
        (SECRETS.to_owned(), JSON.to_owned(), COUNT),
        (SECRETS.to_owned(), PROTOBUF.to_owned(), COUNT),
        (SECRETS.to_owned(), partial(JSON), COUNT),
        (SECRETS.to_owned(), partial(PROTOBUF), COUNT),
        (format!("{SECRETS}?labelSelector=half%3D1"), JSON.to_owned(), COUNT / 2),
        (format!("{SECRETS}?limit=1000"), JSON.to_owned(), 1000),
    ] {
        let (answer, plain) = list(&admin, &url, &accept, false).await;
        // Nobody knows the length before the end is made.
        assert_eq!(answer.header("content-length"), "", "{accept}");
        let (_, unzipped) = list(&admin, &url, &accept, true).await;
        assert!(plain == unzipped, "{accept}: compressed, it is another list");
        if accept.starts_with(JSON) {
            let whole: serde_json::Value = serde_json::from_slice(&plain).expect("JSON");
            assert_eq!(whole["items"].as_array().map(Vec::len), Some(count), "{accept}");
            // Indented lists are made in one piece.
            let separator = if url.contains('?') { '&' } else { '?' };
            let (answer, pretty) = list(&admin, &format!("{url}{separator}pretty=1"), &accept, false).await;
            assert_eq!(
                serde_json::from_slice::<serde_json::Value>(&pretty).expect("JSON"),
                whole,
                "{accept}"
            );
            assert!(answer.text.starts_with("{\n"));
        } else {
            let list = proto::decode_enveloped(&plain, None);
            let list = list.unwrap_or_else(|error| panic!("{accept}: {}", error.0));
            let items = list.get("items").and_then(|items| items.as_array()).expect("items");
            assert_eq!(items.len(), count);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_list_comes_in_many_small_pieces() {
    let (_kv, admin) = world().await;
    for (accept, coding) in [(JSON, "identity"), (PROTOBUF, "identity")] {
        let headers = [("accept", accept), ("accept-encoding", coding)];
        let mut body = admin.open("GET", SECRETS, &headers, b"").await.into_body();
        let mut sizes = Vec::new();
        while let Some(frame) = body.frame().await {
            sizes.push(frame.expect("no error").into_data().expect("data").len());
        }
        assert!(5 < sizes.len(), "{accept}: {sizes:?}");
        assert!(sizes.iter().all(|size| *size < 160 * 1024), "{accept}: {sizes:?}");
    }
}

/// What was sent cannot be taken back, so an object that cannot be written is found out before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_with_an_object_that_cannot_be_written_fails_before_anything_is_sent() {
    let (kv, admin) = world().await;
    // Metadata and type are as they should be; an entry of `data` is a number.
    let mut stored = Vec::new();
    proto::wrap(&mut stored, "v1", "Secret", |out| {
        out.extend_from_slice(b"\x0a\x0c\x0a\x01x\x1a\x07default\x10\x07\x1a\x06Opaque");
    });
    let key = Bytes::from_static(b"/registry/secrets/default/zzz");
    let put = Op::Put { key, value: SharedValue(Bytes::from(stored)), lease: 0 };
    kv.txn(Txn { success: vec![put], ..Txn::default() }).await.expect("written");
    let mut code = 200;
    for _ in 0..500 {
        code = admin.get(SECRETS).await.code;
        if code != 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(code, 500);
    let headers = [("accept", JSON), ("accept-encoding", "gzip")];
    assert_eq!(admin.send("GET", SECRETS, &headers, b"").await.code, 500);
    assert_eq!(admin.get(&format!("{SECRETS}/zzz")).await.code, 500);
    let partial = format!("{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    assert_eq!(admin.send("GET", SECRETS, &[("accept", &partial)], b"").await.code, 500);
}
