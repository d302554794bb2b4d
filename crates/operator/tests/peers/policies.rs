//! Creation, deletion and refresh policies, ownership, refusals.

use std::time::{Duration, Instant};

use coffer_runtime::api::SECRETS;
use serde_json::{Value as Json, json};

use crate::world::{CLUSTER_STORES, EXTERNAL_SECRETS, STORES, SYNCED, World, condition, external_secret};

fn with_target(mut object: Json, target: Json) -> Json {
    object["spec"]["target"] = target;
    object
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletion_policies() {
    let mut world = World::new("deletion").await;
    world.start(|_| {});
    world.vault("bao").await;
    for key in ["stays", "goes"] {
        world.write(key, json!({"v": "1"})).await;
    }
    let (stays, goes) = (format!("{}#v", world.remote("stays")), format!("{}#v", world.remote("goes")));
    for policy in ["Delete", "Retain", "Merge"] {
        let name = policy.to_lowercase();
        let keys: &[(&str, &str)] =
            if policy == "Merge" { &[("a", &stays), ("b", &goes)] } else { &[("b", &goes)] };
        let object = with_target(external_secret("bao", "1s", keys), json!({"deletionPolicy": policy}));
        world.create(&EXTERNAL_SECRETS, &name, object).await;
        world.ready(&name, SYNCED).await;
    }
    world.bao("DELETE", &format!("secret/metadata/{}", world.remote("goes")), Json::Null).await;
    world.ready("delete", "True SecretDeleted secret deleted due to DeletionPolicy=Delete").await;
    assert_eq!(world.get(&SECRETS, "delete").await, None);
    world.ready("retain", "False SecretSyncedError could not get secret data from provider").await;
    world.secret("retain", &[("b", "1")]).await;
    world.ready("merge", "True SecretSynced secret synced; 1 entries do not exist at the provider").await;
    world.secret("merge", &[("a", "1")]).await;
    // And back again.
    world.write("goes", json!({"v": "2"})).await;
    world.secret("delete", &[("b", "2")]).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creation_and_refresh_policies() {
    let mut world = World::new("creation").await;
    world.start(|_| {});
    world.fake("store", &[("k", "v")]).await;
    world.create(&SECRETS, "merge", json!({"stringData": {"other": "x"}})).await;
    let cases = [
        ("merge", json!({"creationPolicy": "Merge"}), SYNCED),
        (
            "absent",
            json!({"creationPolicy": "Merge"}),
            "True SecretMissing secret will not be created due to CreationPolicy=Merge",
        ),
        ("orphan", json!({"creationPolicy": "Orphan"}), SYNCED),
        ("none", json!({"creationPolicy": "None"}), SYNCED),
        ("frozen", json!({"immutable": true}), SYNCED),
    ];
    for (name, target, expected) in cases {
        let object = with_target(external_secret("store", "1h", &[("k", "k")]), target);
        world.create(&EXTERNAL_SECRETS, name, object).await;
        world.ready(name, expected).await;
    }
    world.secret("merge", &[("k", "v"), ("other", "x")]).await;
    for name in ["absent", "none"] {
        assert_eq!(world.get(&SECRETS, name).await, None, "{name}");
    }
    let orphan = world.secret("orphan", &[("k", "v")]).await;
    assert!(orphan["metadata"]["ownerReferences"].is_null());
    let frozen = world.secret("frozen", &[("k", "v")]).await;
    assert_eq!(frozen["immutable"], true);
    // The name changes: the old Secret goes, the new one comes.
    world.create(&EXTERNAL_SECRETS, "moves", external_secret("store", "1h", &[("k", "k")])).await;
    world.secret("moves", &[("k", "v")]).await;
    world.patch(&EXTERNAL_SECRETS, "moves", json!({"spec": {"target": {"name": "moved"}}})).await;
    world.secret("moved", &[("k", "v")]).await;
    world
        .until("the old Secret to go", || async {
            world.get(&SECRETS, "moves").await.is_none().then_some(())
        })
        .await;
    // CreatedOnce does not follow.
    let mut once = external_secret("store", "1s", &[("k", "k")]);
    once["spec"]["refreshPolicy"] = "CreatedOnce".into();
    world.create(&EXTERNAL_SECRETS, "once", once).await;
    world.ready("once", SYNCED).await;
    let calls = world.reconciled("once");
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(world.reconciled("once") <= calls + 1.0, "it does not wake by itself");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o25_an_owner_that_goes_away_lets_it_heal() {
    let mut world = World::new("owner").await;
    world.start(|_| {});
    world.fake("store", &[("k", "v")]).await;
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
        "uid": "11111111-1111-4111-8111-111111111111", "controller": true}]);
    world
        .create(&SECRETS, "a", json!({"metadata": {"ownerReferences": owner}, "stringData": {"k": "theirs"}}))
        .await;
    world.create(&EXTERNAL_SECRETS, "a", external_secret("store", "2s", &[("k", "k")])).await;
    world.ready("a", "False SecretSyncedError failed to take ownership of target secret").await;
    world.secret("a", &[("k", "theirs")]).await;
    world
        .create(
            &EXTERNAL_SECRETS,
            "b",
            with_target(external_secret("store", "2s", &[("k", "k")]), json!({"name": "c"})),
        )
        .await;
    world.ready("b", SYNCED).await;
    world.create(&EXTERNAL_SECRETS, "c", external_secret("store", "2s", &[("k", "k")])).await;
    world.ready("c", "False SecretSyncedError target is owned by another ExternalSecret").await;
    world.patch(&SECRETS, "a", json!({"metadata": {"ownerReferences": null}})).await;
    world.ready("a", SYNCED).await;
    world.secret("a", &[("k", "v")]).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o21_keys_of_others_are_named_or_guarded() {
    let mut world = World::new("foreign").await;
    world.start(|_| {});
    world.fake("store", &[("c", "v")]).await;
    for name in ["taken", "guarded"] {
        world.create(&SECRETS, name, json!({"stringData": {"a": "1", "b": "2"}})).await;
    }
    world.create(&EXTERNAL_SECRETS, "taken", external_secret("store", "1h", &[("c", "c")])).await;
    world.secret("taken", &[("c", "v")]).await;
    world
        .until("the event", || async {
            let events = world.events("taken").await;
            let expected = "ForeignKeysDropped keys of others were dropped from secret taken: a, b";
            events.iter().any(|event| event == expected).then_some(())
        })
        .await;
    world.stop().await;
    world.start(|config| config.refuse_foreign_keys = true);
    world.create(&EXTERNAL_SECRETS, "guarded", external_secret("store", "1h", &[("c", "c")])).await;
    world.ready("guarded", "False SecretSyncedError target secret has keys of others").await;
    world.secret("guarded", &[("a", "1"), ("b", "2")]).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o33_every_missing_entry_is_named() {
    let mut world = World::new("missing").await;
    world.start(|_| {});
    world.fake("store", &[("k", "v")]).await;
    let keys = [("a", "k"), ("b", "no-b"), ("c", "no-c")];
    world.create(&EXTERNAL_SECRETS, "retain", external_secret("store", "1h", &keys)).await;
    world
        .ready(
            "retain",
            "False SecretSyncedError could not get secret data from provider: not found: spec.data[1] (key: no-b), spec.data[2] (key: no-c)",
        )
        .await;
    assert_eq!(world.get(&SECRETS, "retain").await, None);
    let merge = with_target(external_secret("store", "1h", &keys), json!({"deletionPolicy": "Merge"}));
    world.create(&EXTERNAL_SECRETS, "merge", merge).await;
    world.ready("merge", "True SecretSynced secret synced; 2 entries do not exist at the provider").await;
    world.secret("merge", &[("a", "v")]).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o29_o31_deletion_waits_for_no_store_and_writes_nothing() {
    let mut world = World::new("removal").await;
    world.start(|config| config.enable_flood_gate = false);
    // It takes connections and never answers.
    let hole = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", hole.local_addr().unwrap());
    world.create(&SECRETS, "token", json!({"stringData": {"token": "x"}})).await;
    let auth = json!({"tokenSecretRef": {"name": "token", "key": "token"}});
    let vault = json!({"server": server, "path": "secret", "auth": auth});
    world.create(&STORES, "hole", json!({"spec": {"provider": {"vault": vault}}})).await;
    for index in 0..30 {
        world
            .create(&EXTERNAL_SECRETS, &format!("es-{index}"), external_secret("hole", "1h", &[("k", "k")]))
            .await;
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    let start = Instant::now();
    for index in 0..30 {
        world.delete(&EXTERNAL_SECRETS, &format!("es-{index}")).await;
    }
    for index in 0..30 {
        let name = format!("es-{index}");
        world
            .until("it to be gone", || async {
                world.get(&EXTERNAL_SECRETS, &name).await.is_none().then_some(())
            })
            .await;
    }
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());

    world.fake("store", &[("k", "v")]).await;
    let mut object = external_secret("store", "1s", &[("k", "k")]);
    object["metadata"] = json!({"finalizers": ["peer.test/hold"]});
    world.create(&EXTERNAL_SECRETS, "held", object).await;
    world.secret("held", &[("k", "v")]).await;
    world.delete(&EXTERNAL_SECRETS, "held").await;
    world
        .until("its own finalizer to go", || async {
            let held = world.get(&EXTERNAL_SECRETS, "held").await?;
            (held["metadata"]["finalizers"] == json!(["peer.test/hold"])).then_some(())
        })
        .await;
    world.delete(&SECRETS, "held").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(world.get(&SECRETS, "held").await, None, "nothing is written once it is being deleted");
    world.patch(&EXTERNAL_SECRETS, "held", json!({"metadata": {"finalizers": null}})).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s19_s23_what_is_refused() {
    let mut world = World::new("refused").await;
    world.start(|_| {});
    world.fake("store", &[("k", "v")]).await;
    // A template that only an engine could follow, and one that would mint a token.
    for (name, template, text) in [
        (
            "engine",
            json!({"data": {"url": "{{ .k }}"}}),
            "templates are not supported yet: spec.target.template.data[url] holds an action",
        ),
        (
            "token",
            json!({"type": "kubernetes.io/service-account-token", "metadata": {"annotations": {"kubernetes.io/service-account.name": "default"}}}),
            "template.type=\"kubernetes.io/service-account-token\" with annotation \"kubernetes.io/service-account.name\" is not allowed",
        ),
    ] {
        let object =
            with_target(external_secret("store", "1h", &[("k", "k")]), json!({"template": template}));
        world.create(&EXTERNAL_SECRETS, name, object).await;
        world.ready(name, &format!("False SecretSyncedError could not apply template: {text}")).await;
        assert_eq!(world.get(&SECRETS, name).await, None);
    }
    // What this operator does not do is named.
    let manifest = json!({"manifest": {"apiVersion": "v1", "kind": "ConfigMap"}});
    let generator =
        json!({"apiVersion": "generators.external-secrets.io/v1alpha1", "kind": "Fake", "name": "f"});
    let mut generated = external_secret("store", "1h", &[]);
    generated["spec"]["dataFrom"] = json!([{"sourceRef": {"generatorRef": generator}}]);
    for (name, object, field) in [
        (
            "manifest",
            with_target(external_secret("store", "1h", &[("k", "k")]), manifest),
            "spec.target.manifest",
        ),
        ("generator", generated, "spec.dataFrom[0].sourceRef.generatorRef"),
    ] {
        world.create(&EXTERNAL_SECRETS, name, object).await;
        let expected = format!("False SecretSyncedError {field} is not supported by this operator");
        world.ready(name, &expected).await;
        assert_eq!(world.get(&SECRETS, name).await, None);
    }
    // A namespaced store may not reach into another namespace.
    let auth = json!({"tokenSecretRef": {"name": "token", "namespace": "default", "key": "token"}});
    let vault = json!({"server": world.plane.bao, "path": "secret", "auth": auth});
    world.create(&STORES, "thief", json!({"spec": {"provider": {"vault": vault}}})).await;
    world
        .until("the refusal", || async {
            let store = world.get(&STORES, "thief").await?;
            (condition(&store) == "False InvalidProviderConfig unable to validate store").then_some(())
        })
        .await;
    // A cluster store chooses who may use it.
    for (name, namespaces, expected) in [
        ("open", json!([world.namespace]), SYNCED),
        ("closed", json!(["elsewhere"]), "False SecretSyncedError could not get secret data from provider"),
    ] {
        let store = format!("{name}-{}", world.namespace);
        let fake = json!({"data": [{"key": "k", "value": "v"}]});
        world
            .create(
                &CLUSTER_STORES,
                &store,
                json!({"spec": {"provider": {"fake": fake}, "conditions": [{"namespaces": namespaces}]}}),
            )
            .await;
        let mut object = external_secret(&store, "1h", &[("k", "k")]);
        object["spec"]["secretStoreRef"]["kind"] = "ClusterSecretStore".into();
        world.create(&EXTERNAL_SECRETS, name, object).await;
        world.ready(name, expected).await;
    }
    world.stop().await;
}
