//! A value's way from the store to the Secret, and what follows a rotation.

use std::time::Duration;

use coffer_providers::contract::ProviderError;
use coffer_runtime::api::SECRETS;
use serde_json::{Value as Json, json};

use crate::world::{EXTERNAL_SECRETS, STORES, SYNCED, World, external_secret};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_arrives_and_its_rotation_is_followed() {
    let mut world = World::new("trip").await;
    world.start(|_| {});
    world
        .write("db", json!({"user": "app", "password": "one", "port": 5432, "nested": {"a": ["x", "y"]}}))
        .await;
    world.vault("bao").await;
    let db = world.remote("db");
    let mut object = external_secret(
        "bao",
        "1s",
        &[
            ("password", &format!("{db}#password")),
            ("port", &format!("{db}#port")),
            ("second", &format!("{db}#nested.a.1")),
        ],
    );
    object["metadata"] = json!({"labels": {"team": "db"}, "annotations": {"note": "x"}});
    world.create(&EXTERNAL_SECRETS, "db", object).await;
    let secret = world.secret("db", &[("password", "one"), ("port", "5432"), ("second", "y")]).await;
    assert_eq!(secret["metadata"]["labels"]["reconcile.external-secrets.io/managed"], "true");
    assert_eq!(secret["metadata"]["labels"]["team"], "db");
    assert_eq!(secret["metadata"]["annotations"]["note"], "x");
    assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "ExternalSecret");
    assert_eq!(secret["metadata"]["managedFields"][0]["manager"], "externalsecrets.external-secrets.io/db");
    let object = world.ready("db", SYNCED).await;
    assert_eq!(object["status"]["binding"]["name"], "db");
    assert_eq!(
        object["metadata"]["finalizers"][0],
        "externalsecrets.external-secrets.io/externalsecret-cleanup"
    );

    world.write("db", json!({"password": "two", "port": 5433, "nested": {"a": ["x", "z"]}})).await;
    world.secret("db", &[("password", "two"), ("port", "5433"), ("second", "z")]).await;
    world
        .until("the events", || async {
            let events = world.events("db").await;
            let all = ["Created secret created", "Updated secret updated"];
            all.iter().all(|event| events.iter().any(|found| found == event)).then_some(())
        })
        .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o5_the_version_at_the_source_is_recorded_when_it_changes() {
    let mut world = World::new("versions").await;
    world.start(|_| {});
    world.vault("bao").await;
    world.fake("plain", &[("k", "v")]).await;
    world.write("db", json!({"v": "one"})).await;
    let db = world.remote("db");
    world.create(&EXTERNAL_SECRETS, "db", external_secret("bao", "1s", &[("k", &format!("{db}#v"))])).await;
    world.create(&EXTERNAL_SECRETS, "plain", external_secret("plain", "1s", &[("k", "k")])).await;
    let recorded = |version: &str| json!({ db.clone(): version }).to_string();
    let versions = |object: &Json| object["metadata"]["annotations"]["coffer.dev/source-versions"].clone();
    for name in ["db", "plain"] {
        world.ready(name, SYNCED).await;
    }
    let before = world.get(&EXTERNAL_SECRETS, "db").await.unwrap();
    assert_eq!(versions(&before), recorded("1"), "whoever sees the sync sees its versions");
    tokio::time::sleep(Duration::from_millis(1500)).await;

    // As long as nothing changes there is nothing but the status to write, and nobody is woken by it.
    let reconciled = world.reconciled("db");
    world.operator().requests.take();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let kind = format!("/apis/external-secrets.io/v1/namespaces/{}/externalsecrets", world.namespace);
    let (status, object) = (format!("PATCH {kind}/db/status"), format!("PATCH {kind}/db"));
    let requests = world.operator().requests.take();
    let plain = format!("PATCH {kind}/plain/status");
    assert!(requests.iter().all(|request| *request == status || *request == plain), "{requests:?}");
    let passes = world.reconciled("db") - reconciled;
    assert!((2.0..=4.0).contains(&passes), "{passes} reconciliations in three intervals");

    // A rotation is one write more.
    let reconciled = world.reconciled("db");
    world.write("db", json!({"v": "two"})).await;
    let secret = world.secret("db", &[("k", "two")]).await;
    assert_eq!(secret["metadata"]["annotations"]["coffer.dev/source-versions"], Json::Null);
    let after = world
        .until("the new version", || async {
            let object = world.get(&EXTERNAL_SECRETS, "db").await?;
            (versions(&object) == recorded("2")).then_some(object)
        })
        .await;
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let requests = world.operator().requests.take();
    assert_eq!(requests.iter().filter(|request| **request == object).count(), 1, "{requests:?}");
    let passes = world.reconciled("db") - reconciled;
    // The interval's, and one more that hears of the Secret.
    assert!((2.0..=6.0).contains(&passes), "{passes} reconciliations in about four intervals");
    let now = world.get(&EXTERNAL_SECRETS, "db").await.unwrap();
    let synced = |object: &Json| object["status"]["syncedResourceVersion"].clone();
    assert_eq!(synced(&now), synced(&before), "it is no change of the object");
    let plain = world.get(&EXTERNAL_SECRETS, "plain").await.unwrap();
    assert_eq!(versions(&plain), Json::Null, "a store without versions");

    // Told not to, the operator leaves it alone.
    world.stop().await;
    world.start(|config| config.record_source_versions = false);
    world.write("db", json!({"v": "three"})).await;
    world.secret("db", &[("k", "three")]).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let object = world.get(&EXTERNAL_SECRETS, "db").await.unwrap();
    assert_eq!(versions(&object), recorded("2"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_source_holds_now_is_told_by_its_version_alone() {
    let world = World::new("current").await;
    world.vault("bao").await;
    let openbao = json!({
        "server": world.plane.bao, "path": "secret",
        "auth": {"tokenSecretRef": {"name": "bao-token", "key": "token"}},
    });
    world.create(&STORES, "own", json!({"spec": {"provider": {"openBao": openbao}}})).await;
    world.kubernetes("kube").await;
    for value in ["one", "two"] {
        world.write("db", json!({"v": value})).await;
    }
    let token = world.get(&SECRETS, "bao-token").await.unwrap();
    let stored = token["metadata"]["resourceVersion"].as_str().unwrap();
    let db = world.remote("db");
    for (store, key, expected) in
        [("bao", db.as_str(), "2"), ("own", &db, "2"), ("kube", "bao-token", stored)]
    {
        assert_eq!(world.current_version(store, key).await, Ok(Some(expected.to_owned())), "{store}");
        let missing = world.current_version(store, "absent").await;
        assert_eq!(missing, Err(ProviderError::NotFound), "{store}");
    }

    // A policy for the values alone: the version comes with the value, which is dropped.
    let rules = format!("path \"secret/data/{}/*\" {{ capabilities = [\"read\"] }}", world.namespace);
    world.bao("PUT", "sys/policies/acl/values", json!({"policy": rules})).await;
    let token = world.bao("POST", "auth/token/create", json!({"policies": ["values"]})).await;
    let token = &token["auth"]["client_token"];
    world.patch(&SECRETS, "bao-token", json!({"stringData": {"token": token}})).await;
    for store in ["bao", "own"] {
        assert_eq!(world.current_version(store, &db).await, Ok(Some("2".to_owned())), "{store}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extract_find_rewrite_and_versions() {
    let mut world = World::new("extract").await;
    world.start(|_| {});
    for (key, data) in [("app/one", json!({"a": "1"})), ("app/two", json!({"b": "2"}))] {
        world.write(key, data).await;
    }
    world.write("app/one", json!({"a": "1 new"})).await;
    world.vault("bao").await;
    let store = json!({"name": "bao", "kind": "SecretStore"});
    let one = world.remote("app/one");
    world
        .create(
            &EXTERNAL_SECRETS,
            "all",
            json!({"spec": {"secretStoreRef": store, "dataFrom": [
                {"extract": {"key": one}, "rewrite": [{"regexp": {"source": "(.*)", "target": "my_$1"}}]},
                {"extract": {"key": one, "version": "1"}},
                {"find": {"path": world.remote("app"), "name": {"regexp": "two$"}}},
            ]}}),
        )
        .await;
    let found = format!("{}_app_two", world.namespace);
    world.secret("all", &[("my_a", "1 new"), ("a", "1"), (&found, r#"{"b":"2"}"#)]).await;
    world.stop().await;
}

/// The approle login, OpenBao's own provider, and the kubernetes provider on the same API server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_logins_and_providers() {
    let mut world = World::new("logins").await;
    world.start(|_| {});
    world.write("db", json!({"password": "x"})).await;
    let mounts = world.bao("GET", "sys/auth", Json::Null).await;
    if mounts["data"]["approle/"].is_null() {
        world.bao("POST", "sys/auth/approle", json!({"type": "approle"})).await;
    }
    world
        .bao(
            "PUT",
            "sys/policies/acl/read-all",
            json!({"policy": "path \"secret/*\" {capabilities = [\"read\", \"list\"]}"}),
        )
        .await;
    world
        .bao("POST", "auth/approle/role/peer", json!({"token_policies": ["read-all"], "token_ttl": "1h"}))
        .await;
    let role = world.bao("GET", "auth/approle/role/peer/role-id", Json::Null).await;
    let secret = world.bao("POST", "auth/approle/role/peer/secret-id", json!({})).await;
    world.create(&SECRETS, "role", json!({"stringData": {"secret": secret["data"]["secret_id"]}})).await;
    let approle = json!({"roleId": role["data"]["role_id"], "secretRef": {"name": "role", "key": "secret"}});
    let auth = json!({"appRole": approle});
    let server = world.plane.bao.clone();
    let vault = json!({"server": server, "path": "secret", "auth": auth});
    world.create(&STORES, "approle", json!({"spec": {"provider": {"vault": vault}}})).await;
    world.create(&STORES, "own", json!({"spec": {"provider": {"openBao": vault}}})).await;
    world.create(&SECRETS, "source", json!({"stringData": {"k": "from here"}})).await;
    world.kubernetes("cluster").await;
    let db = format!("{}#password", world.remote("db"));
    for (name, store, remote, value) in [
        ("a", "approle", db.as_str(), "x"),
        ("b", "own", &db, "x"),
        ("c", "cluster", "source#k", "from here"),
    ] {
        world.create(&EXTERNAL_SECRETS, name, external_secret(store, "1h", &[("v", remote)])).await;
        world.secret(name, &[("v", value)]).await;
    }
    let store = world.get(&STORES, "own").await.unwrap();
    assert_eq!(store["status"]["capabilities"], "ReadOnly");
    assert_eq!(crate::world::condition(&store), "True Valid store validated");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_rewrites_nothing() {
    let mut world = World::new("restart").await;
    world.start(|_| {});
    world.fake("store", &[("k", "v")]).await;
    world.create(&EXTERNAL_SECRETS, "a", external_secret("store", "1h", &[("k", "k")])).await;
    world.ready("a", SYNCED).await;
    let before = (world.get(&SECRETS, "a").await.unwrap(), world.get(&EXTERNAL_SECRETS, "a").await.unwrap());
    world.stop().await;
    world.start(|_| {});
    world
        .until("the reconciliation after the start", || async {
            (1.0 <= world.reconciled("a")).then_some(())
        })
        .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = (world.get(&SECRETS, "a").await.unwrap(), world.get(&EXTERNAL_SECRETS, "a").await.unwrap());
    assert_eq!(before, after);
    assert_eq!(world.calls("Fake", "GetSecret"), 0.0, "the store is not asked before it is due");
    let writes: Vec<String> =
        world.operator().requests.take().into_iter().filter(|request| !request.starts_with("GET")).collect();
    assert!(writes.is_empty(), "{writes:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_is_repaired_and_a_deleted_secret_comes_back() {
    let mut world = World::new("drift").await;
    world.start(|_| {});
    world.fake("store", &[("k", "v")]).await;
    world.create(&EXTERNAL_SECRETS, "a", external_secret("store", "1h", &[("k", "k")])).await;
    world.ready("a", SYNCED).await;
    world.patch(&SECRETS, "a", json!({"data": {"k": "dGFtcGVyZWQ=", "more": "eA=="}})).await;
    world.secret("a", &[("k", "v")]).await;
    world.delete(&SECRETS, "a").await;
    world.secret("a", &[("k", "v")]).await;
    world.stop().await;
}

/// A store whose credential is wrong is noticed when the credential is mended, not at the next interval.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mended_credential_is_noticed_at_once() {
    let mut world = World::new("mend").await;
    world.start(|_| {});
    world.write("db", json!({"password": "x"})).await;
    world.create(&SECRETS, "token", json!({"stringData": {"token": "wrong"}})).await;
    let auth = json!({"tokenSecretRef": {"name": "token", "key": "token"}});
    let vault = json!({"server": world.plane.bao, "path": "secret", "auth": auth});
    world.create(&STORES, "bao", json!({"spec": {"provider": {"vault": vault}}})).await;
    let db = format!("{}#password", world.remote("db"));
    world.create(&EXTERNAL_SECRETS, "a", external_secret("bao", "1h", &[("v", &db)])).await;
    world.ready("a", "False SecretSyncedError could not get secret data from provider").await;
    // The store's own status may be written a moment later.
    let refused = "False InvalidProviderConfig unable to validate store";
    world
        .until("the store to be refused", async || {
            let store = world.get(&STORES, "bao").await?;
            (crate::world::condition(&store) == refused).then_some(())
        })
        .await;
    let mended = std::time::Instant::now();
    world.patch(&SECRETS, "token", json!({"stringData": {"token": crate::plane::BAO_TOKEN}})).await;
    world.secret("a", &[("v", "x")]).await;
    assert!(mended.elapsed() < Duration::from_secs(10), "{:?}", mended.elapsed());
    world.stop().await;
}
