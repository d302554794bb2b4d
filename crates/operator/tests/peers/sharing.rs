//! What a refresh costs, and who waits for whom.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::{EXTERNAL_SECRETS, STORES, SYNCED, World, external_secret};
use coffer_runtime::api::SECRETS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o3_o5_an_unchanged_refresh_is_one_reconciliation_and_one_write() {
    let mut world = World::new("cost").await;
    world.start(|_| {});
    world.vault("bao").await;
    world.write("db", json!({"v": "1"})).await;
    let db = format!("{}#v", world.remote("db"));
    world.create(&EXTERNAL_SECRETS, "a", external_secret("bao", "1s", &[("k", &db)])).await;
    world.ready("a", SYNCED).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let before = (world.reconciled("a"), world.calls("HashiCorp/Vault", "ReadSecretData"));
    world.operator().requests.take();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let requests = world.operator().requests.take();
    let reconciled = world.reconciled("a") - before.0;
    let read = world.calls("HashiCorp/Vault", "ReadSecretData") - before.1;
    assert!((5.0..=7.0).contains(&reconciled), "{reconciled} reconciliations in six intervals");
    assert!((reconciled - read).abs() <= 1.0, "{read} reads in {reconciled} reconciliations");
    let status =
        format!("PATCH /apis/external-secrets.io/v1/namespaces/{}/externalsecrets/a/status", world.namespace);
    assert!(requests.iter().all(|request| *request == status), "{requests:?}");
    assert!((requests.len() as f64 - reconciled).abs() <= 1.0, "{} writes", requests.len());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o11_o13_reads_are_shared() {
    let mut world = World::new("shared").await;
    world.start(|config| config.concurrent = 10);
    world.vault("one").await;
    world.vault("two").await;
    world.write("db", json!({"a": "1", "b": "2"})).await;
    let db = world.remote("db");
    let keys = [("a", format!("{db}#a")), ("b", format!("{db}#b"))];
    let keys: Vec<(&str, &str)> = keys.iter().map(|(key, remote)| (*key, remote.as_str())).collect();
    for (store, names) in [("one", 0..20), ("two", 20..21)] {
        world
            .until("the store", || async {
                let object = world.get(&STORES, store).await?;
                (crate::world::condition(&object) == "True Valid store validated").then_some(())
            })
            .await;
        for index in names {
            world
                .create(&EXTERNAL_SECRETS, &format!("es-{index}"), external_secret(store, "1h", &keys))
                .await;
        }
    }
    let start = Instant::now();
    for index in 0..21 {
        world.secret(&format!("es-{index}"), &[("a", "1"), ("b", "2")]).await;
    }
    let reads = world.calls("HashiCorp/Vault", "ReadSecretData");
    // One for each store, and one more for each window of 5 s that a slow machine needs.
    let windows = (start.elapsed().as_secs_f64() / 5.0).ceil() + 1.0;
    assert!((2.0..=2.0 * windows).contains(&reads), "{reads} reads");

    // A key that is missing costs one read for each step of the back-off: at 0, 1 and 3 s.
    for index in 0..10 {
        let missing = world.remote("missing");
        world
            .create(
                &EXTERNAL_SECRETS,
                &format!("no-{index}"),
                external_secret("one", "1h", &[("k", &missing)]),
            )
            .await;
    }
    for index in 0..10 {
        world
            .ready(&format!("no-{index}"), "False SecretSyncedError could not get secret data from provider")
            .await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let more = world.calls("HashiCorp/Vault", "ReadSecretData") - reads;
    assert!((1.0..=4.0).contains(&more), "{more} reads of a missing key");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o1_o7_a_new_one_and_another_store_do_not_wait() {
    let mut world = World::new("lanes").await;
    world.start(|config| config.enable_flood_gate = false);
    let hole = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", hole.local_addr().unwrap());
    world.create(&SECRETS, "token", json!({"stringData": {"token": "x"}})).await;
    let auth = json!({"tokenSecretRef": {"name": "token", "key": "token"}});
    let vault = json!({"server": server, "path": "secret", "auth": auth});
    world.create(&STORES, "hole", json!({"spec": {"provider": {"vault": vault}}})).await;
    world.fake("alive", &[("k", "v")]).await;
    for index in 0..40 {
        world
            .create(&EXTERNAL_SECRETS, &format!("dead-{index}"), external_secret("hole", "1s", &[("k", "k")]))
            .await;
        world
            .create(
                &EXTERNAL_SECRETS,
                &format!("busy-{index}"),
                external_secret("alive", "1s", &[("k", "k")]),
            )
            .await;
    }
    for index in 0..40 {
        world.secret(&format!("busy-{index}"), &[("k", "v")]).await;
    }
    let start = Instant::now();
    world.create(&EXTERNAL_SECRETS, "new", external_secret("alive", "1s", &[("k", "k")])).await;
    world.secret("new", &[("k", "v")]).await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    world.stop().await;
}

/// What the metric says is what the store itself has counted, for values and for a key that is missing; and all
/// of it was done with one login, which is given back at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o13_the_metric_is_the_stores_own_count_and_one_login_serves_all() {
    for (provider, label) in [("openBao", "OpenBao"), ("vault", "HashiCorp/Vault")] {
        let mut world = World::new(&format!("count-{}", provider.to_lowercase())).await;
        world.start(|config| config.concurrent = 10);
        let user = world.namespace.clone();
        world.password_user(&user).await;
        world.create(&SECRETS, "password", json!({"stringData": {"password": user}})).await;
        let auth = json!({"userPass": {
            "path": "userpass", "username": user, "secretRef": {"name": "password", "key": "password"},
        }});
        let spec = json!({"server": world.plane.bao, "path": "secret", "version": "v2", "auth": auth});
        world.create(&STORES, "s", json!({"spec": {"provider": {provider: spec}}})).await;
        world.write("db", json!({"k": "1"})).await;
        let (there, missing) = (format!("{}#k", world.remote("db")), world.remote("missing"));
        for index in 0..5 {
            let object = external_secret("s", "1s", &[("k", &there)]);
            world.create(&EXTERNAL_SECRETS, &format!("yes-{index}"), object).await;
            let object = external_secret("s", "1h", &[("k", &missing)]);
            world.create(&EXTERNAL_SECRETS, &format!("no-{index}"), object).await;
        }
        for index in 0..5 {
            world.secret(&format!("yes-{index}"), &[("k", "1")]).await;
        }
        tokio::time::sleep(Duration::from_secs(4)).await;
        world.write("db", json!({"k": "2"})).await;
        for index in 0..5 {
            world.secret(&format!("yes-{index}"), &[("k", "2")]).await;
        }
        // The token is given back: a call like any other.
        let metrics = world.operator().metrics.clone();
        world.stop().await;
        let text = metrics.render();
        let prefix = format!("externalsecret_provider_api_calls_count{{provider=\"{label}\"");
        let calls = |status: &str| -> f64 {
            let status = format!("status=\"{status}\"");
            let lines = text.lines().filter(|line| line.starts_with(&prefix) && line.contains(&status));
            lines.map(crate::world::last_number).sum()
        };
        let audited = world.plane.audited(&user);
        let count = |path: &str| audited.iter().filter(|line| line.contains(path)).count();
        assert_eq!(calls("success") + calls("error"), audited.len() as f64, "{label}: {audited:?}");
        assert_eq!(count("auth/userpass/login/"), 1, "{label}: {audited:?}");
        assert_eq!(count("auth/token/revoke-self"), 1, "{label}: {audited:?}");
        assert!(4 < count("/db"), "{label}: {audited:?}");
        // At 0, 1, 3, 7, 15 s: for all five together.
        assert!((1..=4).contains(&count("/missing")), "{label}: {audited:?}");
        assert_eq!(calls("error"), count("/missing") as f64, "{label}: {audited:?}");
    }
}
