//! What the operator asks for and keeps of Secrets that are none of its concern (O19).

use http::Method;
use serde_json::json;

use crate::world::{ES, SECRETS, STORES, World, encode, external_secret, seconds, shown};

const SIZE: usize = 150 * 1024;

#[tokio::test]
async fn o19_values_of_others_never_travel() {
    let world = World::new();
    let value = encode(&"x".repeat(SIZE));
    for index in 0..1000 {
        world.namespace(&format!("team-{}", index % 10), json!({}));
        let secret = json!({"type": "Opaque", "data": {"k": value}});
        world.api.put(SECRETS, &format!("team-{}", index % 10), &format!("s-{index}"), secret);
    }
    let operator = world.start("operator", |_| {}).await;
    // A change of each, which the watch tells.
    let listed: usize = world.api.take().iter().map(|seen| seen.answered).sum();
    for index in 0..1000 {
        world.api.edit(SECRETS, &format!("team-{}", index % 10), &format!("s-{index}"), |secret| {
            secret["metadata"]["labels"]["touched"] = "yes".into();
        });
    }
    world.pass(seconds(60)).await;
    // 150 MB are stored; the names and versions of 1,000 Secrets are less than half a megabyte.
    assert!(0 < listed && listed < 512 * 1024, "{listed} bytes in answers");
    assert!(world.api.watched() < 512 * 1024, "{} bytes in watches", world.api.watched());
    operator.end().await;
}

/// `kubectl apply` keeps the whole object in an annotation, which metadata carries: one page is held at a time.
#[tokio::test]
async fn o19_a_page_of_metadata_is_bounded() {
    let world = World::new();
    let copy = "x".repeat(SIZE);
    for index in 0..200 {
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": copy});
        let secret = json!({"metadata": {"annotations": annotations}, "type": "Opaque"});
        world.api.put(SECRETS, "ns", &format!("s-{index}"), secret);
    }
    let operator = world.start("operator", |_| {}).await;
    let largest = world.api.take().iter().map(|seen| seen.answered).max().unwrap();
    assert!(largest < 8 * 1024 * 1024, "{largest} bytes in one answer");
    operator.end().await;
}

/// Of all Secrets, only the one that holds a store's credentials and the own targets are ever read.
#[tokio::test]
async fn o19_only_credentials_and_own_secrets_are_read_whole() {
    let world = World::new();
    for index in 0..100 {
        world.api.put(SECRETS, "ns", &format!("foreign-{index}"), json!({"data": {"k": encode("x")}}));
    }
    world.api.put(SECRETS, "ns", "token", json!({"data": {"token": encode("t")}}));
    world.remote.set("k", "v");
    world.store("s", json!({"token": "token"}));
    world.api.put(ES, "ns", "es", external_secret("s", "10s", &["k=k"]));
    let operator = world.start("operator", |_| {}).await;
    world.pass(seconds(60)).await;
    assert_eq!(shown(world.secret("es")), "k=v");
    let mut whole = Vec::new();
    for seen in world.api.take() {
        let place = &seen.place;
        if place.0 == SECRETS && seen.method == Method::GET {
            if seen.accept.contains("as=PartialObjectMetadata") {
                assert_eq!(place.2, "", "lists and watches: {seen:?}");
            } else {
                whole.push(place.2.clone());
            }
        }
        assert!(
            seen.method != Method::GET || place.0 != STORES || place.2.is_empty(),
            "from the cache: {seen:?}"
        );
    }
    whole.sort();
    whole.dedup();
    assert!(whole.iter().all(|name| name == "token" || name == "es"), "{whole:?}");
    operator.end().await;
}
