use serde_json::{Value as Json, json};

use super::*;

const UID: &str = "11111111-1111-4111-8111-111111111111";

fn owner(name: &str, target: Json) -> ExternalSecret {
    ExternalSecret::parse(&json!({
        "metadata": {"name": name, "namespace": "ns", "uid": UID, "labels": {"app": "db"}, "annotations": {"note": "x"}},
        "spec": {"target": target},
    }))
    .unwrap()
}

fn data(entries: &[(&str, &str)]) -> SecretMap {
    entries.iter().map(|(key, value)| ((*key).to_owned(), SecretBytes::from((*value).to_owned()))).collect()
}

fn secret(object: Json) -> Secret {
    serde_json::from_value(object).unwrap()
}

fn built(owner: &ExternalSecret, fetched: &SecretMap, existing: Option<&Secret>) -> Result<Wanted, Refusal> {
    build(owner, owner.spec.as_ref().unwrap(), fetched, existing)
}

fn keys(wanted: &Wanted) -> String {
    wanted.secret.data.keys().cloned().collect::<Vec<_>>().join(",")
}

/// Fields that `manager` wrote.
fn fields(manager: &str, data: &[&str], labels: &[&str], annotations: &[&str]) -> Json {
    let set = |keys: &[&str]| {
        keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect::<serde_json::Map<_, _>>()
    };
    json!([{"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {
        "f:data": set(data), "f:metadata": {"f:labels": set(labels), "f:annotations": set(annotations)},
    }}])
}

#[test]
fn a_new_secret_has_labels_annotations_owner_and_hash() {
    let owner = owner("es", json!({"name": "target"}));
    let wanted = built(&owner, &data(&[("foo", "value1"), ("bar", "value2")]), None).unwrap().secret;
    let object = serde_json::to_value(&wanted).unwrap();
    assert_eq!(
        object,
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": "target", "namespace": "ns",
                "labels": {
                    "app": "db",
                    "reconcile.external-secrets.io/managed": "true",
                    "reconcile.external-secrets.io/created-by": hash::owner_label("ns", "es"),
                },
                "annotations": {
                    "note": "x",
                    "reconcile.external-secrets.io/data-hash": "1bed8bcbcb4547ffe19a19cd47d9078e84aa6598266d86b99f992d64",
                },
                "ownerReferences": [{
                    "apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "name": "es", "uid": UID,
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "data": {"foo": "dmFsdWUx", "bar": "dmFsdWUy"},
        })
    );
}

#[test]
fn keys_by_creation_policy() {
    let cases = [
        ("Owner", "new", "mine,other"),
        ("Orphan", "new", "mine,other"),
        ("Merge", "new,other", ""),
        ("CreateOrMerge", "new,other", ""),
    ];
    for (policy, expected, dropped) in cases {
        let owner = owner("es", json!({"creationPolicy": policy}));
        let existing = secret(json!({"metadata": {"name": "es"}, "data": {"mine": "eA==", "other": "eA=="}}));
        let wanted = built(&owner, &data(&[("new", "1")]), Some(&existing)).unwrap();
        // Without managedFields nothing is ours, so a merge keeps all of it.
        let expected = if dropped.is_empty() { "mine,new,other" } else { expected };
        assert_eq!(keys(&wanted), expected, "{policy}");
        assert_eq!(wanted.dropped.join(","), dropped, "{policy}");

        let managed = fields("externalsecrets.external-secrets.io/es", &["mine"], &[], &[]);
        let existing = secret(json!({
            "metadata": {"name": "es", "managedFields": managed}, "data": {"mine": "eA==", "other": "eA=="},
        }));
        let wanted = built(&owner, &data(&[("new", "1")]), Some(&existing)).unwrap();
        let expected = if dropped.is_empty() { "new,other" } else { "new" };
        assert_eq!(keys(&wanted), expected, "{policy}: own stale keys go");
    }
}

#[test]
fn o21_keys_of_others_are_named() {
    let owner = owner("es", json!({}));
    let existing =
        secret(json!({"metadata": {"name": "es"}, "data": {"a": "eA==", "b": "eA==", "c": "eA=="}}));
    assert_eq!(built(&owner, &data(&[("c", "1")]), Some(&existing)).unwrap().dropped, ["a", "b"]);
    let ours = secret(json!({
        "metadata": {"name": "es", "labels": {"reconcile.external-secrets.io/managed": "true"}}, "data": {"a": "eA=="},
    }));
    assert!(built(&owner, &data(&[("c", "1")]), Some(&ours)).unwrap().dropped.is_empty());
}

/// O27: own metadata follows, foreign metadata stays, for names of any length.
#[test]
fn o27_stale_metadata_goes_and_foreign_metadata_stays() {
    for length in [5, 28, 63, 64, 200] {
        let name = "a".repeat(length);
        let template =
            json!({"template": {"metadata": {"labels": {"keep": "1"}, "annotations": {"keep": "1"}}}});
        let owner = owner(&name, template);
        let managed = fields(&hash::field_manager(&name), &[], &["keep", "stale"], &["keep", "stale"]);
        let existing = secret(json!({"metadata": {
            "name": name, "managedFields": managed,
            "labels": {"keep": "0", "stale": "0", "foreign": "0"},
            "annotations": {"keep": "0", "stale": "0", "foreign": "0"},
        }}));
        let wanted = built(&owner, &data(&[]), Some(&existing)).unwrap().secret;
        let shown = |map: &Option<BTreeMap<String, String>>| {
            let own = map.iter().flatten().filter(|(key, _)| !key.starts_with("reconcile"));
            own.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
        };
        assert_eq!(shown(&wanted.metadata.labels), "foreign=0,keep=1", "{length}");
        assert_eq!(shown(&wanted.metadata.annotations), "foreign=0,keep=1", "{length}");
    }
}

#[test]
fn ownership() {
    let reference = |api_version: &str, kind: &str, name: &str, controller: bool| json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": controller});
    let ours = reference("external-secrets.io/v1beta1", "ExternalSecret", "es", true);
    let sibling = reference("external-secrets.io/v1", "ExternalSecret", "sibling", true);
    let foreign = reference("apps/v1", "Deployment", "web", true);
    let guest = reference("apps/v1", "Deployment", "web", false);
    let cases = [
        ("Owner", vec![], Ok("es")),
        ("Owner", vec![&ours], Ok("es")),
        ("Owner", vec![&guest], Ok("web,es")),
        ("Owner", vec![&sibling], Err("secret is owned by another ExternalSecret: sibling")),
        ("Orphan", vec![&sibling], Err("secret is owned by another ExternalSecret: sibling")),
        (
            "Owner",
            vec![&foreign],
            Err(
                "could not set controller reference on secret: Object ns/es is already owned by another Deployment controller web",
            ),
        ),
        ("Merge", vec![&foreign], Ok("web")),
        ("Orphan", vec![&ours], Ok("")),
        ("Merge", vec![&ours, &guest], Ok("web")),
    ];
    for (policy, references, expected) in cases {
        let owner = owner("es", json!({"creationPolicy": policy}));
        let existing = secret(json!({"metadata": {"name": "es", "ownerReferences": references}}));
        let result = built(&owner, &data(&[]), Some(&existing)).map(|wanted| {
            let owners = wanted.secret.metadata.owner_references.unwrap_or_default();
            owners.into_iter().map(|owner| owner.name).collect::<Vec<_>>().join(",")
        });
        let result = result.map_err(|refusal| match refusal {
            Refusal::OwnedByForeigner(text)
            | Refusal::OwnedByExternalSecret(text)
            | Refusal::Immutable(text) => text,
        });
        assert_eq!(result.as_deref().map_err(String::as_str), expected, "{policy} {references:?}");
    }
}

#[test]
fn immutable_targets() {
    let value = json!({"a": "eA=="});
    let immutable = secret(json!({"metadata": {"name": "es"}, "data": value, "immutable": true}));
    let mutable = secret(json!({"metadata": {"name": "es"}, "data": value}));
    let (plain, frozen) = (owner("es", json!({})), owner("es", json!({"immutable": true})));
    let refused = Refusal::Immutable("unable to update secret es: secret is immutable".to_owned());
    assert_eq!(built(&plain, &data(&[("a", "y")]), Some(&immutable)).err(), Some(refused));
    assert!(built(&plain, &data(&[("a", "x")]), Some(&immutable)).is_ok(), "metadata only");
    let kept = built(&frozen, &data(&[("a", "y")]), Some(&mutable)).unwrap().secret;
    assert_eq!(
        (kept.data["a"].expose(), kept.immutable),
        (b"x".as_slice(), Some(true)),
        "what is there stays"
    );
    let made = built(&frozen, &data(&[("a", "y")]), None).unwrap().secret;
    assert_eq!((made.data["a"].expose(), made.immutable), (b"y".as_slice(), Some(true)));
}

#[test]
fn templates_without_an_engine() {
    let cases = [
        (json!({"type": "kubernetes.io/tls"}), "kubernetes.io/tls a=1"),
        (json!({"data": {"b": "2"}}), "- b=2"),
        (json!({"data": {"b": "2"}, "mergePolicy": "Merge"}), "- a=1 b=2"),
        (json!({"data": {"a": "2"}, "mergePolicy": "Merge"}), "- a=2"),
    ];
    for (template, expected) in cases {
        let owner = owner("es", json!({"template": template}));
        let wanted = built(&owner, &data(&[("a", "1")]), None).unwrap().secret;
        let mut shown = wanted.secret_type.clone().unwrap_or_else(|| "-".to_owned());
        for (key, value) in &wanted.data {
            shown.push_str(&format!(" {key}={}", String::from_utf8_lossy(value.expose())));
        }
        assert_eq!(shown, expected, "{template}");
        assert_eq!(wanted.label("app"), None, "a template stops the copy of the ExternalSecret's labels");
    }
}

#[test]
fn the_second_write_is_none() {
    for policy in ["Owner", "Orphan", "Merge", "CreateOrMerge"] {
        let owner = owner("es", json!({"creationPolicy": policy}));
        let fetched = data(&[("a", "1")]);
        let mut first = built(&owner, &fetched, None).unwrap().secret;
        // What the API server adds.
        first.metadata.resource_version = Some("7".to_owned());
        first.secret_type = Some("Opaque".to_owned());
        let second = built(&owner, &fetched, Some(&first)).unwrap().secret;
        assert!(same(&first, &second), "{policy}");
        let other = built(&owner, &data(&[("a", "2")]), Some(&first)).unwrap().secret;
        assert!(!same(&first, &other), "{policy}");
    }
}
