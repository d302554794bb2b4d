//! Who waits for whom, and how many remote reads are made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::Clock as _;
use serde_json::json;

use crate::api::Server;
use crate::remote::{Call, Counted};
use crate::world::{
    CLUSTER_STORES, ES, SECRETS, STORES, World, encode, external_secret, ready, seconds, shown,
};

/// When each Secret was created, by name.
fn created(api: &Server) -> BTreeMap<String, Duration> {
    let seen = api.take().into_iter();
    // A create names its object in the body; the update of the status that follows names it in the path.
    seen.filter(|seen| seen.place.0 == ES && seen.method == http::Method::PATCH)
        .map(|seen| (seen.place.2, seen.at))
        .collect()
}

/// 300 ExternalSecrets that want more than the one worker can do; a new one does not wait behind them.
#[tokio::test]
async fn o1_a_new_one_is_served_before_any_refresh() {
    let world = World::new();
    let delay = Duration::from_millis(50);
    world.store("busy", json!({"delay": 0.05}));
    for index in 0..300 {
        world.remote.set(&format!("k{index}"), "v");
        let object = external_secret("busy", "1s", &[&format!("k=k{index}")]);
        world.api.put(ES, "ns", &format!("old-{index}"), object);
    }
    let operator = world.start("operator", |config| config.concurrent = 1).await;
    // All are synced, and every one is due again.
    world.pass(delay * 300 + seconds(2)).await;
    assert_eq!(created(&world.api).len(), 300);
    for index in 0..5 {
        let (start, name) = (world.clock.monotonic(), format!("new-{index}"));
        world.remote.set(&name, "v");
        world.api.put(ES, "ns", &name, external_secret("busy", "1s", &[&format!("k={name}")]));
        world.pass(delay * 3).await;
        let at = created(&world.api)[&name];
        assert!(at - start <= delay * 3, "{name} waited {:?}", at - start);
    }
    operator.end().await;
}

/// The own finalizer, the own annotation, the own status and the own Secret come back as changes, and none of
/// them is a reason to look again.
#[tokio::test]
async fn o1_a_first_sync_is_one_pass_and_one_read() {
    const EACH: usize = 20;
    let policies = ["Owner", "Orphan", "CreateOrMerge", "Merge", "None"];
    let world = World::new();
    world.store("s", json!({"delay": 0.05}));
    let mut metrics = None;
    let operator = world.start("operator", |config| metrics = Some(config.metrics.clone())).await;
    let mut names = Vec::new();
    for policy in policies {
        for index in 0..EACH {
            let name = format!("{}-{index}", policy.to_lowercase());
            world.remote.set(&name, "v");
            if policy == "Merge" {
                world.api.put(SECRETS, "ns", &name, json!({"type": "Opaque", "data": {}}));
            }
            let mut object = external_secret("s", "1h", &[&format!("k={name}")]);
            object["spec"]["target"] = json!({"creationPolicy": policy});
            world.api.put(ES, "ns", &name, object);
            names.push(name);
        }
    }
    world.pass(seconds(60)).await;
    let mut reads: Vec<String> = world.remote.take().into_iter().map(|call| call.key).collect();
    reads.sort();
    names.sort();
    assert_eq!(reads, names, "one read for each");
    let text = metrics.expect("set").render();
    for name in &names {
        let object = world.api.get(ES, "ns", name).unwrap();
        assert_eq!(ready(&object), "True SecretSynced", "{name}");
        assert_eq!(world.secret(name).is_some(), !name.starts_with("none"), "{name}");
        let line = format!("externalsecret_sync_calls_total{{name=\"{name}\",namespace=\"ns\"}} 1\n");
        assert!(text.contains(&line), "{name} was looked at more than once");
    }

    // What others do still counts: to the finalizer, and to the Secret.
    world.api.edit(ES, "ns", "owner-0", |object| object["metadata"]["finalizers"] = json!([]));
    world.api.edit(SECRETS, "ns", "owner-1", |secret| secret["data"]["k"] = encode("w").into());
    world.pass(seconds(60)).await;
    assert_eq!(shown(world.secret("owner-1")), "k=v");
    let finalizers = &world.api.get(ES, "ns", "owner-0").unwrap()["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["externalsecrets.external-secrets.io/externalsecret-cleanup"]));
    operator.end().await;
}

#[tokio::test]
async fn o7_a_slow_store_delays_only_its_own() {
    let world = World::new();
    world.store("slow", json!({"delay": 5}));
    world.store("fast", json!({}));
    for index in 0..100 {
        world.remote.set(&format!("k{index}"), "v");
        world.api.put(
            ES,
            "ns",
            &format!("slow-{index}"),
            external_secret("slow", "1m", &[&format!("k=k{index}")]),
        );
    }
    let operator = world.start("operator", |_| {}).await;
    world.pass(seconds(7)).await;
    world.api.take();
    // New ones, and their refreshes, while the other store's queue never drains.
    for index in 0..20 {
        let start = world.clock.monotonic();
        let name = format!("fast-{index}");
        world.api.put(ES, "ns", &name, external_secret("fast", "10s", &["k=k0"]));
        world.pass(Duration::from_millis(100)).await;
        let at = created(&world.api)[&name];
        assert!(at - start < Duration::from_millis(100), "{name} waited {:?}", at - start);
        assert_eq!(shown(world.secret(&name)), "k=v");
    }
    world.remote.take();
    world.pass(seconds(60)).await;
    let calls = world.remote.take();
    let count = |store: &str| calls.iter().filter(|call| call.store == store).count();
    assert_eq!(count("slow"), 12, "one worker of its own, 5 s for each");
    assert!(6 <= count("fast"), "{} refreshes of the other store", count("fast"));
    operator.end().await;
}

/// `--concurrent` counts for each store; the default of `coffer operator` is 16.
#[tokio::test]
async fn o7_so_many_of_one_store_run_at_once() {
    for concurrent in [1, 16] {
        let world = World::new();
        for store in ["a", "b"] {
            world.store(store, json!({"hangs": true}));
            for index in 0..40 {
                let name = format!("{store}-{index}");
                world.api.put(ES, "ns", &name, external_secret(store, "1m", &[&format!("k={name}")]));
            }
        }
        let operator = world.start("operator", |config| config.concurrent = concurrent).await;
        let calls = world.remote.take();
        for store in ["a", "b"] {
            assert_eq!(calls.iter().filter(|call| call.store == store).count(), concurrent, "{store}");
        }
        operator.end().await;
    }
}

#[tokio::test]
async fn o7_120_dead_stores_leave_the_living_one_alone() {
    let world = World::new();
    world.remote.set("k", "v");
    world.store("alive", json!({}));
    for index in 0..120 {
        let name = format!("dead-{index}");
        world.store(&name, json!({"hangs": true}));
        world.api.put(ES, "ns", &name, external_secret(&name, "1m", &["k=k"]));
    }
    let operator = world.start("operator", |_| {}).await;
    assert_eq!(world.remote.take().len(), 120, "each store has a worker of its own");
    let start = world.clock.monotonic();
    world.api.put(ES, "ns", "new", external_secret("alive", "1m", &["k=k"]));
    world.settle().await;
    assert_eq!((shown(world.secret("new")).as_str(), world.clock.monotonic()), ("k=v", start));
    operator.end().await;
}

#[tokio::test]
async fn o11_one_remote_read_for_each_store_key_and_version_in_a_window() {
    let world = World::new();
    world.remote.set("db", r#"{"user":"app","password":"x"}"#);
    for (name, token) in [("one-token", "1"), ("two-token", "2")] {
        world.api.put(SECRETS, "ns", name, json!({"data": {"token": encode(token)}}));
    }
    world.store("one", json!({"token": "one-token"}));
    world.store("two", json!({"token": "two-token"}));
    let operator = world.start("operator", |config| config.concurrent = 8).await;
    let call = |store: &str, token: &str, version: &str| Call {
        store: store.to_owned(),
        token: token.to_owned(),
        key: "db".to_owned(),
        version: version.to_owned(),
    };
    let entries = ["user=db#user", "password=db#password"];
    for index in 0..50 {
        world.api.put(ES, "ns", &format!("es-{index}"), external_secret("one", "1h", &entries));
    }
    world.settle().await;
    for index in 0..50 {
        assert_eq!(shown(world.secret(&format!("es-{index}"))), "password=x user=app");
    }
    assert_eq!(world.remote.take(), [call("one", "1", "")], "50 with two properties each");

    // Another version is another read; another store with other credentials too.
    world.api.put(
        ES,
        "ns",
        "pinned",
        external_secret("one", "1h", &["user=db#user@7", "password=db#password@7"]),
    );
    world.api.put(ES, "ns", "other", external_secret("two", "1h", &entries));
    world.settle().await;
    assert_eq!(world.remote.take(), [call("one", "1", "7"), call("two", "2", "")]);

    // When the interval is over there is one read for each of the three again.
    world.pass(seconds(3605)).await;
    let mut calls = world.remote.take();
    calls.sort();
    assert_eq!(calls, [call("one", "1", ""), call("one", "1", "7"), call("two", "2", "")]);
    operator.end().await;
}

/// Ten want a key that the store does not hold. The store counts for itself, when and how often it is asked:
/// once for each step of the back-off, for all ten together; and the metric says the same number.
#[tokio::test]
async fn o13_a_missing_key_costs_one_call_for_each_step_and_the_metric_is_the_stores_own_count() {
    let world = World::new();
    let calls = Arc::default();
    let fake = Counted { provider: coffer_providers::fake::Fake, calls: Arc::clone(&calls) };
    let mut metrics = None;
    let operator = world
        .start("operator", |config| {
            config.providers = vec![Arc::new(fake)];
            metrics = Some(config.metrics.clone());
        })
        .await;
    let data = json!([{"key": "there", "value": "v"}]);
    world.api.put(STORES, "ns", "s", json!({"spec": {"provider": {"fake": {"data": data}}}}));
    let start = world.clock.monotonic();
    for index in 0..10 {
        world.api.put(ES, "ns", &format!("no-{index}"), external_secret("s", "1h", &["k=missing"]));
    }
    world.api.put(ES, "ns", "yes", external_secret("s", "1h", &["k=there"]));
    world.pass(seconds(130)).await;
    let calls = std::mem::take(&mut *calls.lock());
    let missing: Vec<u64> =
        calls.iter().filter(|(_, found)| !found).map(|(at, _)| (*at - start).as_secs()).collect();
    assert_eq!(missing, [0, 1, 3, 7, 15, 31, 63, 127]);
    let found = calls.iter().filter(|(_, found)| *found).count();
    let line = |status: &str| {
        format!(
            "externalsecret_provider_api_calls_count{{provider=\"Fake\",call=\"GetSecret\",status=\"{status}\"}}"
        )
    };
    let text = metrics.expect("set").render();
    let counted: Vec<&str> =
        text.lines().filter(|line| line.starts_with("externalsecret_provider_api_calls_count")).collect();
    let expected = [format!("{} {}", line("error"), missing.len()), format!("{} {found}", line("success"))];
    assert_eq!(counted, expected);
    operator.end().await;
}

#[tokio::test]
async fn o11_a_cluster_store_with_credentials_of_who_asks_shares_within_a_namespace_only() {
    let world = World::new();
    world.namespace("other", json!({}));
    world.remote.set("db", "x");
    world.api.put(CLUSTER_STORES, "", "all", json!({"spec": {"provider": {"remote": {"token": "token"}}}}));
    for namespace in ["ns", "other"] {
        world.api.put(SECRETS, namespace, "token", json!({"data": {"token": encode(namespace)}}));
        for index in 0..10 {
            let mut object = external_secret("all", "1h", &["k=db"]);
            object["spec"]["secretStoreRef"]["kind"] = "ClusterSecretStore".into();
            world.api.put(ES, namespace, &format!("es-{index}"), object);
        }
    }
    let operator = world.start("operator", |_| {}).await;
    let mut tokens: Vec<String> = world.remote.take().into_iter().map(|call| call.token).collect();
    tokens.sort();
    assert_eq!(tokens, ["ns", "other"]);
    assert_eq!(world.api.count(SECRETS, "ns") + world.api.count(SECRETS, "other"), 22);
    operator.end().await;
}

#[tokio::test]
async fn o29_a_namespace_with_200_failing_ones_and_a_hung_remote_goes_at_once() {
    let world = World::new();
    world.remote.set("k", "v");
    world.store("hung", json!({"hangs": true}));
    world.store("alive", json!({}));
    for index in 0..200 {
        let store = if index < 100 { "hung".to_owned() } else { format!("hung-{index}") };
        if 100 <= index {
            world.store(&store, json!({"hangs": true}));
        }
        let mut object = external_secret(&store, "1m", &["k=k"]);
        object["metadata"] =
            json!({"finalizers": ["externalsecrets.external-secrets.io/externalsecret-cleanup"]});
        world.api.put(ES, "ns", &format!("es-{index}"), object);
    }
    // One that has a Secret which goes with it.
    let mut object = external_secret("alive", "1m", &["k=k"]);
    object["spec"]["target"] = json!({"deletionPolicy": "Delete"});
    world.api.put(ES, "ns", "held", object);
    let operator = world.start("operator", |_| {}).await;
    world.pass(seconds(30)).await;
    assert_eq!(ready(&world.api.get(ES, "ns", "held").unwrap()), "True SecretSynced");
    world.remote.take();
    let start = world.clock.monotonic();
    world.api.delete_namespace("ns");
    world.settle().await;
    assert_eq!(world.api.count(ES, "ns"), 0);
    assert_eq!(world.clock.monotonic(), start, "nothing waited for anything");
    assert_eq!(world.remote.take(), [], "no store is asked");
    assert_eq!(world.secret("held"), None);
    operator.end().await;
}
