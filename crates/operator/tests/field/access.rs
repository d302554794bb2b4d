//! Who may use which store, and what a template may make (O39).

use serde_json::{Value as Json, json};

use crate::world::{CLUSTER_STORES, ES, SECRETS, STORES, World, external_secret, ready, seconds, shown};

const SYNCED: &str = "True SecretSynced";
const REFUSED: &str = "False SecretSyncedError";
const UNTOUCHED: &str = "- -";

/// The cells of an ExternalSecret in `ns`, whose label is `team: red`.
#[tokio::test]
async fn o39_only_allowed_cells_of_the_matrix_act() {
    let by_name = |names: &[&str]| json!([{"namespaces": names}]);
    let by_label = |team: &str| json!([{"namespaceSelector": {"matchLabels": {"team": team}}}]);
    let by_pattern = |pattern: &str| json!([{"namespaceRegexes": [pattern]}]);
    let own = ("SecretStore", "ns");
    let cluster = ("ClusterSecretStore", "");
    // What it is, the store's kind and namespace, its class, its conditions, how it ends.
    type Cell = (&'static str, (&'static str, &'static str), &'static str, Json, &'static str);
    let cells: [Cell; 14] = [
        ("own namespace", own, "", Json::Null, SYNCED),
        ("own namespace, own class", own, "default", Json::Null, SYNCED),
        ("own namespace, other class", own, "other", Json::Null, UNTOUCHED),
        ("other namespace", ("SecretStore", "other"), "", Json::Null, REFUSED),
        ("other namespace, other class", ("SecretStore", "other"), "other", Json::Null, REFUSED),
        ("cluster store", cluster, "", Json::Null, SYNCED),
        ("cluster store, other class", cluster, "other", Json::Null, UNTOUCHED),
        ("cluster store, admitted by name", cluster, "", by_name(&["x", "ns"]), SYNCED),
        ("cluster store, not admitted by name", cluster, "", by_name(&["other"]), REFUSED),
        ("cluster store, admitted by label", cluster, "", by_label("red"), SYNCED),
        ("cluster store, not admitted by label", cluster, "", by_label("blue"), REFUSED),
        ("cluster store, admitted by pattern", cluster, "", by_pattern("^n.$"), SYNCED),
        ("cluster store, not admitted by pattern", cluster, "", by_pattern("^o"), REFUSED),
        ("cluster store, other class, not admitted", cluster, "other", by_name(&["other"]), UNTOUCHED),
    ];
    for (cell, (kind, namespace), class, conditions, expected) in cells {
        let world = World::new();
        world.namespace("ns", json!({"team": "red"}));
        world.namespace("other", json!({"team": "blue"}));
        world.remote.set("k", "v");
        let mut store = json!({"spec": {"provider": {"remote": {}}}});
        if !class.is_empty() {
            store["spec"]["controller"] = class.into();
        }
        if !conditions.is_null() {
            store["spec"]["conditions"] = conditions;
        }
        let plural = if kind == "SecretStore" { STORES } else { CLUSTER_STORES };
        world.api.put(plural, namespace, "s", store);
        let mut object = external_secret("s", "10s", &["k=k"]);
        object["spec"]["secretStoreRef"]["kind"] = kind.into();
        world.api.put(ES, "ns", "es", object);
        let operator = world.start("operator", |_| {}).await;
        world.pass(seconds(60)).await;
        assert_eq!(ready(&world.api.get(ES, "ns", "es").unwrap()), expected, "{cell}");
        let acts = expected == SYNCED;
        assert_eq!(shown(world.secret("es")), if acts { "k=v" } else { "-" }, "{cell}");
        assert_eq!(world.remote.calls() != 0, acts, "{cell}: whether the store was asked");
        operator.end().await;
    }
}

/// An entry's own store stands under the same rules as the ExternalSecret's.
#[tokio::test]
async fn o39_a_store_of_one_entry_is_no_way_round() {
    let world = World::new();
    world.remote.set("k", "v");
    world.store("s", json!({}));
    let closed = json!({"spec": {"provider": {"remote": {}}, "conditions": [{"namespaces": ["other"]}]}});
    world.api.put(CLUSTER_STORES, "", "closed", closed);
    let mut object = external_secret("s", "10s", &["a=k", "b=k"]);
    object["spec"]["data"][1]["sourceRef"] =
        json!({"storeRef": {"kind": "ClusterSecretStore", "name": "closed"}});
    world.api.put(ES, "ns", "es", object);
    let operator = world.start("operator", |_| {}).await;
    world.pass(seconds(30)).await;
    assert_eq!(ready(&world.api.get(ES, "ns", "es").unwrap()), REFUSED);
    assert_eq!(world.secret("es"), None, "not even the part that is allowed");
    assert!(world.remote.take().iter().all(|call| call.store == "s"));
    operator.end().await;
}

#[tokio::test]
async fn o39_s23_no_template_makes_a_secret_that_the_control_plane_trusts() {
    let account = "kubernetes.io/service-account.name";
    // The template, whether it is made.
    let templates = [
        (
            json!({"type": "kubernetes.io/service-account-token", "metadata": {"annotations": {account: "admin"}}}),
            false,
        ),
        (json!({"type": "bootstrap.kubernetes.io/token"}), false),
        (json!({"type": "Opaque", "metadata": {"annotations": {account: "admin"}}}), true),
        (json!({"type": "kubernetes.io/basic-auth"}), true),
    ];
    for (template, made) in templates {
        let world = World::new();
        world.remote.set("k", "v");
        world.store("s", json!({}));
        let mut object = external_secret("s", "1h", &["k=k"]);
        object["spec"]["target"] = json!({"template": template});
        world.api.put(ES, "ns", "es", object);
        let operator = world.start("operator", |_| {}).await;
        world.pass(seconds(30)).await;
        let ready = ready(&world.api.get(ES, "ns", "es").unwrap());
        assert_eq!(ready, if made { SYNCED } else { REFUSED }, "{template}");
        assert_eq!(world.api.get(SECRETS, "ns", "es").is_some(), made, "{template}");
        operator.end().await;
    }
}

/// One entry is of a cluster store, another of a store of the namespace with somebody else's class: whichever
/// comes first, all of it is somebody else's.
#[tokio::test]
async fn o39_a_class_counts_in_whatever_order_the_stores_are_named() {
    let cluster = ("ClusterSecretStore", "all");
    type Case<'a> = (&'a str, [(&'a str, &'a str); 2], &'a str);
    let cases: [Case<'_>; 4] = [
        ("the cluster store first", [cluster, ("SecretStore", "foreign")], UNTOUCHED),
        ("the foreign one first", [("SecretStore", "foreign"), cluster], UNTOUCHED),
        ("the cluster store and an own one", [cluster, ("SecretStore", "own")], SYNCED),
        ("an own one and the cluster store", [("SecretStore", "own"), cluster], SYNCED),
    ];
    for (case, stores, expected) in cases {
        let world = World::new();
        world.remote.set("k", "v");
        let spec = |class: &str| json!({"spec": {"controller": class, "provider": {"remote": {}}}});
        world.api.put(CLUSTER_STORES, "", "all", spec(""));
        world.api.put(STORES, "ns", "own", spec("default"));
        world.api.put(STORES, "ns", "foreign", spec("other"));
        let mut object = external_secret("own", "1h", &["a=k", "b=k"]);
        for (entry, (kind, name)) in stores.into_iter().enumerate() {
            object["spec"]["data"][entry]["sourceRef"] = json!({"storeRef": {"kind": kind, "name": name}});
        }
        world.api.put(ES, "ns", "es", object);
        let operator = world.start("operator", |_| {}).await;
        world.pass(seconds(60)).await;
        assert_eq!(ready(&world.api.get(ES, "ns", "es").unwrap()), expected, "{case}");
        assert_eq!(shown(world.secret("es")), if expected == SYNCED { "a=v b=v" } else { "-" }, "{case}");
        operator.end().await;
    }
}
