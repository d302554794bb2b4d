//! Each controller over its table, and the shell over stored objects in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::*;
use crate::ports::{Change, GroupResource, Objects as _, Propagation, ServedResource};
use crate::testing::{MemoryObjects, TestClock};

const NOW: &str = "2026-01-02T03:04:05Z";

/// `namespace/name` (or `name`) and `path=text` pairs; a path that ends in `[]` takes a list of one,
/// one that ends in `:` a boolean.
pub(super) fn object(key: &str, pairs: &[(&str, &str)]) -> Value {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    let mut object = Value::object();
    object.set_meta_str("namespace", namespace);
    object.set_meta_str("name", name);
    object.set_meta_str("uid", &format!("{name}-uid"));
    for (path, text) in pairs {
        let list = path.strip_suffix("[]");
        let flag = path.strip_suffix(':');
        let fields: Vec<&str> = list.or(flag).unwrap_or(path).split('.').collect();
        match (list, flag) {
            (Some(_), _) => object.set(&fields, vec![Value::from(*text)]),
            (_, Some(_)) => object.set(&fields, *text == "true"),
            _ => object.set(&fields, *text),
        }
    }
    object
}

pub(super) fn reset(resource: &str, objects: &[Value]) -> Event {
    Event::Changed(core(resource), Change::Reset(objects.to_vec()))
}

pub(super) fn applied(resource: &str, object: &Value) -> Event {
    Event::Changed(core(resource), Change::Applied(Box::new(object.clone())))
}

pub(super) fn deleted(resource: &str, object: &Value) -> Event {
    Event::Changed(core(resource), Change::Deleted(Box::new(object.clone())))
}

/// Actions in short.
fn show(actions: &[Action]) -> Vec<String> {
    let target =
        |target: &Target| format!("{} {}/{}", target.resource.resource, target.namespace, target.name);
    actions
        .iter()
        .map(|action| match action {
            Action::Create(resource, object) => format!("create {}", target(&Target::of(resource, object))),
            Action::Edit(of, edit) => {
                let edit = match edit {
                    Edit::Replace(_) => "replace".to_owned(),
                    Edit::ReplaceStatus(new) => format!("status {}", status_text(new)),
                    Edit::Set(field, _) => format!("set {field}"),
                    Edit::RemoveFinalizer(name) => format!("-finalizer {name}"),
                    Edit::RemoveOwners(uids) => format!("-owners {}", uids.join(",")),
                    Edit::Finalize => "finalize".to_owned(),
                    Edit::FillToken(_) => "fill".to_owned(),
                    Edit::NodeTaints(key) => format!("taint {key}"),
                    Edit::ForgetSecret(name) => format!("-secret {name}"),
                    Edit::Conditions(conditions) | Edit::AcceptNames(_, conditions) => {
                        let shown = conditions.iter().map(|condition| {
                            format!("{}={}:{}", condition.kind, condition.status, condition.reason)
                        });
                        shown.collect::<Vec<_>>().join(" ")
                    }
                };
                format!("{}: {edit}", target(of))
            }
            Action::Delete(of, propagation) => format!("delete {} {propagation:?}", target(of)),
            Action::Bind { namespace, pod, node, .. } => format!("bind {namespace}/{pod} to {node}"),
            Action::EmptyNamespace(name) => format!("empty {name}"),
            Action::EmptyResource(resource) => format!("empty {}.{}", resource.resource, resource.group),
            Action::CheckOwners(of, owners) => {
                let uids: Vec<&str> = owners.iter().map(|owner| owner.uid.as_str()).collect();
                format!("check {} {}", target(of), uids.join(","))
            }
            Action::Read { namespace, resources } => {
                let names: Vec<&str> = resources.iter().map(|resource| resource.resource.as_str()).collect();
                format!("read {namespace}: {}", names.join(","))
            }
            Action::Rewatch => "rewatch".to_owned(),
            Action::Later(after, _) => format!("later {}", after.as_secs()),
        })
        .collect()
}

/// The members of a status in short.
fn status_text(object: &Value) -> String {
    let member = |field: &str| {
        let amounts = crate::quota::amounts::amounts(object, &["status", field]);
        let shown: Vec<String> =
            amounts.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect();
        format!("{field}:{}", shown.join(","))
    };
    format!("{} {}", member("hard"), member("used"))
}

/// Events in order, each with the actions it must cause.
pub(super) fn check(controller: &mut dyn Controller, steps: Vec<(Event, Vec<&str>)>) {
    for (index, (event, expected)) in steps.into_iter().enumerate() {
        let label = format!("{} step {index}: {event:?}", controller.name());
        assert_eq!(show(&controller.step(event)), expected, "{label}");
    }
}

fn namespace(name: &str) -> Value {
    object(name, &[("status.phase", "Active"), ("spec.finalizers[]", "kubernetes")])
}

fn dying(name: &str) -> Value {
    object(
        name,
        &[
            ("status.phase", "Terminating"),
            ("spec.finalizers[]", "kubernetes"),
            ("metadata.deletionTimestamp", NOW),
        ],
    )
}

#[test]
fn system_namespaces_are_always_there() {
    let all: Vec<Value> = namespaces::SYSTEM_NAMESPACES.iter().map(|name| namespace(name)).collect();
    check(
        &mut namespaces::SystemNamespaces::default(),
        vec![
            (Event::Resync, vec![]),
            (
                reset("namespaces", &[]),
                vec![
                    "create namespaces /kube-system",
                    "create namespaces /kube-public",
                    "create namespaces /kube-node-lease",
                    "create namespaces /default",
                ],
            ),
            (reset("namespaces", &all), vec![]),
            (Event::Resync, vec![]),
            (deleted("namespaces", &all[2]), vec!["create namespaces /kube-node-lease"]),
            (Event::Resync, vec!["create namespaces /kube-node-lease"]),
            (applied("namespaces", &all[2]), vec![]),
        ],
    );
}

#[test]
fn default_service_accounts() {
    let account = object("a/default", &[]);
    check(
        &mut service_accounts::DefaultServiceAccounts::default(),
        vec![
            (reset("namespaces", &[namespace("a"), dying("b")]), vec![]),
            (reset("serviceaccounts", &[object("a/other", &[])]), vec!["create serviceaccounts a/default"]),
            (applied("serviceaccounts", &account), vec![]),
            (applied("namespaces", &namespace("c")), vec!["create serviceaccounts c/default"]),
            (deleted("namespaces", &namespace("c")), vec![]),
            (deleted("serviceaccounts", &account), vec!["create serviceaccounts a/default"]),
            (applied("namespaces", &dying("a")), vec![]),
        ],
    );
}

#[test]
fn the_root_ca_is_published_and_kept() {
    let map = |data: &str, described: bool| {
        let mut map = object("a/kube-root-ca.crt", &[]);
        map.set(&["data", "ca.crt"], data);
        if described {
            map.set(&["metadata", "annotations", "kubernetes.io/description"], "text");
        }
        map
    };
    check(
        &mut root_ca::RootCa::new("PEM"),
        vec![
            (reset("namespaces", &[namespace("a")]), vec![]),
            (reset("configmaps", &[object("a/other", &[])]), vec!["create configmaps a/kube-root-ca.crt"]),
            (applied("configmaps", &object("a/other2", &[])), vec![]),
            (applied("configmaps", &map("PEM", true)), vec![]),
            (applied("configmaps", &map("other", true)), vec!["configmaps a/kube-root-ca.crt: replace"]),
            (applied("configmaps", &map("PEM", false)), vec!["configmaps a/kube-root-ca.crt: replace"]),
            (deleted("configmaps", &map("PEM", true)), vec!["create configmaps a/kube-root-ca.crt"]),
            (applied("namespaces", &dying("a")), vec![]),
        ],
    );
}

#[test]
fn pods_are_bound_to_the_ready_node() {
    let node = |name: &str, ready: &str, cordoned: bool| {
        let mut node = object(name, &[]);
        node.set(&["status", "conditions"], vec![Value::from([("type", "Ready"), ("status", ready)])]);
        node.set(&["spec", "unschedulable"], cordoned);
        node
    };
    let pod = object("a/p", &[("spec.schedulerName", "default-scheduler")]);
    check(
        &mut pod_binder::PodBinder::default(),
        vec![
            (
                reset(
                    "pods",
                    &[
                        pod.clone(),
                        object("a/bound", &[("spec.nodeName", "n1")]),
                        object("a/other", &[("spec.schedulerName", "mine")]),
                    ],
                ),
                vec![],
            ),
            (reset("nodes", &[node("n1", "False", false)]), vec![]),
            (applied("nodes", &node("n1", "True", true)), vec![]),
            (applied("nodes", &node("n1", "True", false)), vec!["bind a/p to n1"]),
            (applied("nodes", &node("n0", "True", false)), vec!["bind a/p to n0"]),
            (applied("pods", &object("a/p", &[("spec.nodeName", "n1")])), vec![]),
            (applied("pods", &object("a/going", &[("metadata.deletionTimestamp", NOW)])), vec![]),
            (applied("pods", &object("a/gated", &[("spec.schedulingGates[]", "g")])), vec![]),
            (applied("pods", &object("a/q", &[])), vec!["bind a/q to n0"]),
            (deleted("nodes", &node("n0", "True", false)), vec!["bind a/q to n1"]),
        ],
    );
}

const GOOD: &str = "NamespaceDeletionDiscoveryFailure=False:ResourcesDiscovered NamespaceDeletionGroupVersionParsingFailure=False:ParsedGroupVersions";

#[test]
fn namespaces_are_emptied_then_let_go() {
    let report = |remaining: &[(&str, usize)], finalizers: &[(&str, usize)], errors: &[&str], estimate| {
        Event::Emptied {
            namespace: "a".to_owned(),
            report: Report {
                remaining: remaining.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
                finalizers: finalizers.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
                errors: errors.iter().map(|error| (*error).to_owned()).collect(),
                estimate,
            },
        }
    };
    let again = || Event::Emptied { namespace: "a".to_owned(), report: Report::pending() };
    let remain = format!(
        "namespaces /a: {GOOD} NamespaceDeletionContentFailure=False:ContentDeleted NamespaceContentRemaining=True:SomeResourcesRemain NamespaceFinalizersRemaining=True:SomeFinalizersRemain"
    );
    let failed = format!(
        "namespaces /a: {GOOD} NamespaceDeletionContentFailure=True:ContentDeletionFailed NamespaceContentRemaining=False:ContentRemoved NamespaceFinalizersRemaining=False:ContentHasNoFinalizers"
    );
    let done = format!(
        "namespaces /a: {GOOD} NamespaceDeletionContentFailure=False:ContentDeleted NamespaceContentRemaining=False:ContentRemoved NamespaceFinalizersRemaining=False:ContentHasNoFinalizers"
    );
    let mut finalized = dying("a");
    finalized.remove(&["spec", "finalizers"]);
    check(
        &mut namespace_deletion::NamespaceDeletion::default(),
        vec![
            (reset("namespaces", &[namespace("a"), namespace("b")]), vec![]),
            (applied("namespaces", &dying("a")), vec!["empty a"]),
            (applied("namespaces", &dying("a")), vec![]),
            (Event::Resync, vec![]),
            (report(&[("secrets.", 2)], &[("x/y", 1)], &[], 15), vec![&remain, "later 8"]),
            (again(), vec!["empty a"]),
            (report(&[], &[], &["boom"], 0), vec![&failed, "later 1"]),
            (again(), vec!["empty a"]),
            (report(&[], &[], &[], 0), vec![&done, "namespaces /a: finalize"]),
            (applied("namespaces", &finalized), vec![]),
            (deleted("namespaces", &finalized), vec![]),
            (report(&[], &[], &[], 0), vec![]),
            (Event::Resync, vec![]),
        ],
    );
}

#[test]
fn what_remains_is_told_as_upstream() {
    let mut controller = namespace_deletion::NamespaceDeletion::default();
    controller.step(reset("namespaces", &[dying("a")]));
    let report = Report {
        remaining: vec![("externalsecrets.external-secrets.io".to_owned(), 1), ("secrets.".to_owned(), 2)],
        finalizers: vec![("x/y".to_owned(), 2)],
        errors: vec!["b".to_owned(), "a".to_owned()],
        estimate: 1,
    };
    let actions = controller.step(Event::Emptied { namespace: "a".to_owned(), report });
    let Action::Edit(_, Edit::Conditions(conditions)) = &actions[0] else { panic!("conditions first") };
    let messages: Vec<&str> = conditions.iter().map(|condition| condition.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "All resources successfully discovered",
            "All legacy kube types successfully parsed",
            "Failed to delete all resource types, 2 remaining: a, b",
            "Some resources are remaining: externalsecrets.external-secrets.io has 1 resource instances, secrets. has 2 resource instances",
            "Some content in the namespace has finalizers remaining: x/y in 2 resource instances",
        ]
    );
}

/// A dependent of owners given as `uid` or `uid!` for one that blocks.
fn dependent(key: &str, owners: &[&str], finalizers: &[&str], is_deleted: bool) -> Value {
    let mut object = object(key, &[]);
    let references = owners.iter().map(|owner| {
        let uid = owner.trim_end_matches('!');
        let mut reference =
            Value::from([("apiVersion", "v1"), ("kind", "ConfigMap"), ("name", uid), ("uid", uid)]);
        reference.set(&["blockOwnerDeletion"], owner.ends_with('!'));
        reference
    });
    object.set(&["metadata", "ownerReferences"], references.collect::<Vec<_>>());
    object.set(
        &["metadata", "finalizers"],
        finalizers.iter().map(|name| Value::from(*name)).collect::<Vec<_>>(),
    );
    if is_deleted {
        object.set_meta_str("deletionTimestamp", NOW);
    }
    object
}

fn watching() -> Event {
    Event::Watching(vec![core("configmaps"), core("secrets")])
}

fn checked(uid: &str, absent: &[&str]) -> Event {
    Event::OwnersChecked { uid: uid.to_owned(), absent: absent.iter().map(|uid| (*uid).to_owned()).collect() }
}

#[test]
fn garbage_is_collected_in_the_background() {
    let owner = object("a/o", &[]);
    let child = dependent("a/d", &["o-uid"], &[], false);
    check(
        &mut garbage::GarbageCollector::default(),
        vec![
            (watching(), vec![]),
            // Nothing is decided before all is seen.
            (reset("secrets", std::slice::from_ref(&child)), vec![]),
            (reset("configmaps", std::slice::from_ref(&owner)), vec![]),
            (Event::Resync, vec![]),
            (deleted("configmaps", &owner), vec!["check secrets a/d o-uid"]),
            (checked("d-uid", &[]), vec![]),
            (checked("d-uid", &["o-uid"]), vec!["delete secrets a/d Some(Background)"]),
            (Event::Resync, vec!["check secrets a/d o-uid"]),
            // It came back in the meantime.
            (applied("configmaps", &owner), vec![]),
            (checked("d-uid", &["o-uid"]), vec![]),
            (applied("secrets", &dependent("a/d", &["o-uid"], &[], true)), vec![]),
            (deleted("secrets", &child), vec![]),
            (checked("d-uid", &["o-uid"]), vec![]),
        ],
    );
}

#[test]
fn how_a_dependent_without_owners_is_deleted() {
    for (owners, finalizers, absent, expected) in [
        (vec!["x"], vec![], vec!["x"], vec!["delete secrets a/d Some(Background)"]),
        (vec!["x"], vec!["foregroundDeletion"], vec!["x"], vec!["delete secrets a/d Some(Foreground)"]),
        (vec!["x"], vec!["orphan"], vec!["x"], vec!["delete secrets a/d Some(Orphan)"]),
        (vec!["x", "y"], vec![], vec!["x", "y"], vec!["delete secrets a/d Some(Background)"]),
        (vec!["x", "y"], vec![], vec!["x"], vec!["secrets a/d: -owners x"]),
        (vec!["x", "o-uid"], vec![], vec!["x"], vec!["secrets a/d: -owners x"]),
        (vec!["x"], vec![], vec![], vec![]),
    ] {
        let mut controller = garbage::GarbageCollector::default();
        controller.step(watching());
        controller.step(reset("configmaps", &[object("a/o", &[])]));
        controller.step(reset("secrets", &[dependent("a/d", &owners, &finalizers, false)]));
        let actions = controller.step(checked("d-uid", &absent));
        assert_eq!(show(&actions), expected, "{owners:?} {finalizers:?} {absent:?}");
    }
}

#[test]
fn an_owner_in_another_namespace_is_none() {
    check(
        &mut garbage::GarbageCollector::default(),
        vec![
            (watching(), vec![]),
            (reset("configmaps", &[object("b/o", &[]), object("c", &[])]), vec![]),
            (
                reset(
                    "secrets",
                    &[dependent("a/d", &["o-uid"], &[], false), dependent("a/e", &["c-uid"], &[], false)],
                ),
                vec!["check secrets a/d o-uid"],
            ),
            (checked("d-uid", &["o-uid"]), vec!["delete secrets a/d Some(Background)"]),
        ],
    );
}

#[test]
fn foreground_deletion_waits_for_blocking_dependents() {
    let going = {
        let mut owner = dependent("a/o", &[], &["foregroundDeletion"], true);
        owner.remove(&["metadata", "ownerReferences"]);
        owner
    };
    let blocking = dependent("a/d", &["o-uid!"], &[], false);
    let free = dependent("a/f", &["o-uid"], &[], false);
    check(
        &mut garbage::GarbageCollector::default(),
        vec![
            (watching(), vec![]),
            (reset("secrets", &[blocking.clone(), free.clone()]), vec![]),
            (reset("configmaps", &[object("a/o", &[])]), vec![]),
            (
                applied("configmaps", &going),
                vec!["delete secrets a/d Some(Background)", "delete secrets a/f Some(Background)"],
            ),
            (deleted("secrets", &blocking), vec!["configmaps a/o: -finalizer foregroundDeletion"]),
            (deleted("configmaps", &going), vec!["check secrets a/f o-uid"]),
        ],
    );
}

#[test]
fn a_waiting_owner_among_others_is_only_let_go() {
    let going = dependent("a/o", &[], &["foregroundDeletion"], true);
    check(
        &mut garbage::GarbageCollector::default(),
        vec![
            (watching(), vec![]),
            (reset("configmaps", &[going, object("a/p", &[])]), vec![]),
            (
                reset("secrets", &[dependent("a/d", &["o-uid!", "p-uid"], &[], false)]),
                vec!["secrets a/d: -owners o-uid", "secrets a/d: -owners o-uid"],
            ),
            (
                applied("secrets", &dependent("a/d", &["p-uid"], &[], false)),
                vec!["configmaps a/o: -finalizer foregroundDeletion"],
            ),
        ],
    );
}

#[test]
fn orphans_are_let_go_before_their_owner() {
    let going = dependent("a/o", &[], &["orphan"], true);
    check(
        &mut garbage::GarbageCollector::default(),
        vec![
            (watching(), vec![]),
            (reset("secrets", &[dependent("a/d", &["o-uid"], &[], false)]), vec![]),
            (reset("configmaps", &[object("a/o", &[])]), vec![]),
            (applied("configmaps", &going), vec!["secrets a/d: -owners o-uid"]),
            (applied("secrets", &object("a/d", &[])), vec!["configmaps a/o: -finalizer orphan"]),
        ],
    );
}

fn signing_key() -> crate::tokens::jws::SigningKey {
    crate::tokens::jws::SigningKey::from_pem(include_bytes!("../../testdata/tokens/es256.pem"))
        .expect("a key")
}

/// A token Secret of an account, with the data named.
fn token_secret(key: &str, account: &str, uid: &str, data: &[(&str, &str)]) -> Value {
    let mut secret = object(key, &[("type", "kubernetes.io/service-account-token")]);
    secret.set(&["metadata", "annotations", "kubernetes.io/service-account.name"], account);
    secret.set_str(&["metadata", "annotations", "kubernetes.io/service-account.uid"], uid);
    for (key, text) in data {
        secret.set(&["data", key], coffer_types::SecretBytes::from((*text).to_owned()));
    }
    secret
}

#[test]
fn token_secrets_are_filled_and_go_with_their_account() {
    let account = object("a/sa", &[]);
    let full = [("ca.crt", "PEM"), ("namespace", "a"), ("token", "t")];
    let referring = {
        let mut account = account.clone();
        account.set(&["secrets"], vec![Value::from([("name", "t")])]);
        account
    };
    let mut other = token_secret("a/o", "sa", "", &[]);
    other.set(&["type"], "Opaque");
    check(
        &mut token_secrets::TokenSecrets::new(signing_key(), "PEM"),
        vec![
            (reset("secrets", &[token_secret("a/t", "sa", "", &[]), other.clone()]), vec![]),
            (reset("serviceaccounts", std::slice::from_ref(&account)), vec!["secrets a/t: fill"]),
            (applied("secrets", &token_secret("a/t", "sa", "sa-uid", &full)), vec![]),
            (applied("secrets", &token_secret("a/t", "sa", "sa-uid", &full[1..])), vec!["secrets a/t: fill"]),
            (applied("secrets", &token_secret("a/t", "sa", "sa-uid", &full[..2])), vec!["secrets a/t: fill"]),
            (
                applied("secrets", &token_secret("a/t", "sa", "sa-uid", &[full[0], full[2]])),
                vec!["secrets a/t: fill"],
            ),
            (applied("secrets", &other), vec![]),
            (
                applied("secrets", &token_secret("a/t", "sa", "old-uid", &full)),
                vec!["check secrets a/t old-uid"],
            ),
            (checked("t-uid", &[]), vec![]),
            (checked("t-uid", &["old-uid"]), vec!["delete secrets a/t None"]),
            (applied("secrets", &token_secret("a/t", "sa", "sa-uid", &full)), vec![]),
            (applied("serviceaccounts", &referring), vec![]),
            (
                deleted("secrets", &token_secret("a/t", "sa", "sa-uid", &full)),
                vec!["serviceaccounts a/sa: -secret t"],
            ),
            (applied("secrets", &token_secret("a/t", "sa", "sa-uid", &full)), vec![]),
            (deleted("serviceaccounts", &account), vec!["check secrets a/t sa-uid"]),
        ],
    );
}

#[test]
fn a_filled_token_verifies_and_is_kept() {
    let mut controller = token_secrets::TokenSecrets::new(signing_key(), "PEM");
    controller.step(reset("serviceaccounts", &[object("a/sa", &[])]));
    let mut secret = token_secret("a/t", "sa", "", &[]);
    let actions = controller.step(reset("secrets", std::slice::from_ref(&secret)));
    let Action::Edit(_, edit) = &actions[0] else { panic!("an edit") };
    edit.apply(&mut secret, NOW.parse().expect("a time"));
    let text = |key: &str| {
        let bytes = secret.at(&["data", key]).and_then(Value::as_bytes).expect("data");
        std::str::from_utf8(bytes.expose()).expect("text").to_owned()
    };
    assert_eq!((text("ca.crt").as_str(), text("namespace").as_str()), ("PEM", "a"));
    let token = text("token");
    let jws = crate::tokens::jws::Jws::parse(&token).expect("a token");
    assert_eq!(signing_key().public().verify(&jws), Ok(()));
    let expected = serde_json::json!({
        "iss": "kubernetes/serviceaccount",
        "kubernetes.io/serviceaccount/namespace": "a",
        "kubernetes.io/serviceaccount/secret.name": "t",
        "kubernetes.io/serviceaccount/service-account.name": "sa",
        "kubernetes.io/serviceaccount/service-account.uid": "sa-uid",
        "sub": "system:serviceaccount:a:sa",
    });
    assert_eq!(serde_json::Value::Object(jws.claims), expected);
    let shown = format!("{actions:?}");
    assert!(token.split('.').all(|part| !shown.contains(part)), "s17: no token in the debug of an action");
    // Applied again to what has a token, it changes nothing.
    let before = secret.clone();
    edit.apply(&mut secret, NOW.parse().expect("a time"));
    assert_eq!(secret, before);
}

fn definition(plural: &str, kind: &str) -> Value {
    let mut definition = object(&format!("{plural}.g.io"), &[("spec.group", "g.io")]);
    for (field, text) in [
        ("plural", plural),
        ("singular", &plural[..plural.len() - 1]),
        ("kind", kind),
        ("listKind", &format!("{kind}List")),
    ] {
        definition.set(&["spec", "names", field], text);
    }
    definition
}

fn crds() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

#[test]
fn definitions_get_their_names() {
    let first = definition("foos", "Foo");
    let mut controller = custom_resources::Naming::default();
    let actions = controller.step(Event::Changed(crds(), Change::Reset(vec![first.clone()])));
    assert_eq!(
        show(&actions),
        [
            "customresourcedefinitions /foos.g.io: NamesAccepted=True:NoConflicts Established=True:InitialNamesAccepted"
        ]
    );
    let Action::Edit(_, edit) = &actions[0] else { panic!("an edit") };
    let mut accepted = first;
    edit.apply(&mut accepted, NOW.parse().expect("a time"));
    assert_eq!(accepted.at(&["status", "acceptedNames"]), accepted.at(&["spec", "names"]));
    let condition = &accepted.at(&["status", "conditions"]).and_then(Value::as_array).expect("conditions")[0];
    assert_eq!(condition.str_at(&["message"]), "no conflicts found");
    assert_eq!(condition.str_at(&["lastTransitionTime"]), NOW);
    let change = |object: &Value| Event::Changed(crds(), Change::Applied(Box::new(object.clone())));
    assert_eq!(show(&controller.step(change(&accepted))), [""; 0]);

    for (plural, kind, reason, message) in [
        ("bars", "Foo", "KindConflict", "\"Foo\" is already in use"),
        ("foos", "Bar", "SingularConflict", "\"foo\" is already in use"),
    ] {
        let mut second = definition(plural, kind);
        second.set_meta_str("name", "second");
        if kind == "Foo" {
            second.set(&["spec", "names", "listKind"], "OtherList");
        }
        let actions = controller.step(change(&second));
        assert_eq!(
            show(&actions),
            [format!(
                "customresourcedefinitions /second: NamesAccepted=False:{reason} Established=False:NotAccepted"
            )]
        );
        let Action::Edit(_, Edit::AcceptNames(_, conditions)) = &actions[0] else { panic!("an edit") };
        assert_eq!(conditions[0].message, message);
        assert_eq!(conditions[1].message, "not all names are accepted");
    }
    let mut short = definition("bazs", "Baz");
    short.set(&["spec", "names", "shortNames"], vec![Value::from("foo"), Value::from("bz")]);
    let actions = controller.step(change(&short));
    let Action::Edit(_, Edit::AcceptNames(names, conditions)) = &actions[actions.len() - 1] else {
        panic!("an edit")
    };
    let edits = actions
        .iter()
        .filter(|action| matches!(action, Action::Edit(target, _) if target.name == "bazs.g.io"));
    assert_eq!(edits.count(), 1);
    let of_short = actions.iter().find_map(|action| match action {
        Action::Edit(target, Edit::AcceptNames(names, conditions)) if target.name == "bazs.g.io" => {
            Some((names, conditions))
        }
        _ => None,
    });
    let (short_names, short_conditions) = of_short.expect("names");
    assert_eq!(short_conditions[0].reason, "ShortNamesConflict");
    assert_eq!(short_names.get("shortNames"), None);
    assert!(!names.is_null() && !conditions.is_empty());
}

#[test]
fn definitions_are_emptied_before_they_go() {
    let mut going = definition("foos", "Foo");
    going.set_meta_str("deletionTimestamp", NOW);
    going.set(&["metadata", "finalizers"], vec![Value::from(custom_resources::FINALIZER)]);
    let report = |remaining: &[(&str, usize)], errors: &[&str]| Event::Emptied {
        namespace: "foos.g.io".to_owned(),
        report: Report {
            remaining: remaining.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            errors: errors.iter().map(|error| (*error).to_owned()).collect(),
            ..Report::default()
        },
    };
    let change = |object: &Value| Event::Changed(crds(), Change::Applied(Box::new(object.clone())));
    let terminating = |status: &str| format!("customresourcedefinitions /foos.g.io: Terminating={status}");
    check(
        &mut custom_resources::Naming::default(),
        vec![
            (change(&going), vec![&terminating("True:InstanceDeletionInProgress"), "empty foos.g.io"]),
            (Event::Resync, vec![]),
            (report(&[("foos.g.io", 1)], &[]), vec!["later 5"]),
            (
                Event::Emptied { namespace: "foos.g.io".to_owned(), report: Report::pending() },
                vec![&terminating("True:InstanceDeletionInProgress"), "empty foos.g.io"],
            ),
            (report(&[], &["boom"]), vec![&terminating("True:InstanceDeletionFailed"), "later 5"]),
            (
                report(&[], &[]),
                vec![
                    &terminating("False:InstanceDeletionCompleted"),
                    "customresourcedefinitions /foos.g.io: -finalizer customresourcecleanup.apiextensions.k8s.io",
                ],
            ),
            (Event::Changed(crds(), Change::Deleted(Box::new(going.clone()))), vec![]),
        ],
    );
}

#[test]
fn conditions_keep_their_time_until_their_status_changes() {
    let mut object = Value::object();
    let condition = |status: &'static str, message: &str| {
        Edit::Conditions(vec![Condition {
            kind: "X",
            status,
            reason: "R".to_owned(),
            message: message.to_owned(),
        }])
    };
    for (edit, now, time, message) in [
        (condition("True", "a"), "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "a"),
        (condition("True", "b"), "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "b"),
        (condition("False", "c"), "2026-01-03T00:00:00Z", "2026-01-03T00:00:00Z", "c"),
    ] {
        edit.apply(&mut object, now.parse().expect("a time"));
        let held = object.at(&["status", "conditions"]).and_then(Value::as_array).expect("conditions");
        assert_eq!(held.len(), 1);
        assert_eq!((held[0].str_at(&["lastTransitionTime"]), held[0].str_at(&["message"])), (time, message));
    }
}

#[test]
fn a_replacement_made_from_an_old_state_changes_nothing() {
    for (version, expected) in [("7", "new"), ("8", "old")] {
        let stored = object("a/x", &[("metadata.resourceVersion", version), ("data.k", "old")]);
        let replacement = object("a/x", &[("metadata.resourceVersion", "7"), ("data.k", "new")]);
        let mut changed = stored.clone();
        Edit::Replace(replacement).apply(&mut changed, NOW.parse().expect("a time"));
        assert_eq!(changed.str_at(&["data", "k"]), expected, "{version}");
    }
}

fn served(resource: &str, kind: &str, namespaced: bool) -> ServedResource {
    ServedResource { name: core(resource), version: "v1".to_owned(), kind: kind.to_owned(), namespaced }
}

/// Runs a controller on objects in memory for a little while.
async fn run_for_a_while(controller: Box<dyn Controller>, objects: Arc<MemoryObjects>) {
    let clock = TestClock::at(NOW);
    let task = run(controller, objects, clock);
    let mut task = std::pin::pin!(task);
    for _ in 0..30 {
        tokio::select! {
            biased;
            () = &mut task => unreachable!("a controller runs for ever"),
            () = tokio::task::yield_now() => {}
        }
    }
}

#[tokio::test]
async fn the_shell_empties_and_finalizes_a_namespace() {
    let objects = MemoryObjects::serving(vec![
        served("nodes", "Node", false),
        served("secrets", "Secret", true),
        served("pods", "Pod", true),
    ]);
    for (resource, object) in [
        ("namespaces", dying("a")),
        ("secrets", object("a/s1", &[])),
        ("secrets", object("b/s2", &[])),
        ("pods", object("a/p", &[])),
        ("nodes", object("n", &[])),
    ] {
        objects.put("", resource, object);
    }
    let objects = Arc::new(objects);
    run_for_a_while(Box::new(namespace_deletion::NamespaceDeletion::default()), objects.clone()).await;
    let log = objects.log.lock().clone();
    assert_eq!(
        log[..4],
        [
            "delete pods a/p",
            "delete secrets a/s1",
            "update/status namespaces /a",
            "update/finalize namespaces /a"
        ]
    );
    let left = objects.get(&core("namespaces"), "", "a", true).await.expect("read").expect("there");
    assert_eq!(left.at(&["spec", "finalizers"]), None);
    assert_eq!(left.at(&["status", "conditions"]).and_then(Value::as_array).map(<[Value]>::len), Some(5));
}

#[tokio::test]
async fn the_shell_asks_the_store_before_it_deletes() {
    for (owner, kind, expected) in [
        (Some("o-uid"), "ConfigMap", vec![]),
        (Some("other-uid"), "ConfigMap", vec!["delete secrets a/d"]),
        (None, "ConfigMap", vec!["delete secrets a/d"]),
        (None, "Unknown", vec![]),
    ] {
        // The owner's resource is served, and not seen by the graph, as in the moment before its watch begins.
        let objects = MemoryObjects::serving(vec![
            served("secrets", "Secret", true),
            served("configmaps", "ConfigMap", true),
        ]);
        let mut child = dependent("a/d", &["o-uid"], &[], false);
        let mut reference = child.owner_references()[0].clone();
        reference.set(&["kind"], kind);
        reference.set(&["name"], "o");
        child.set(&["metadata", "ownerReferences"], vec![reference]);
        objects.put("", "secrets", child);
        if let Some(uid) = owner {
            let mut owner = object("a/o", &[]);
            owner.set_meta_str("uid", uid);
            objects.put("", "configmaps", owner);
        }
        let objects = Arc::new(objects);
        struct OnlySecrets(garbage::GarbageCollector);
        impl Controller for OnlySecrets {
            fn name(&self) -> &'static str {
                "test"
            }
            fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
                vec![core("secrets")]
            }
            fn step(&mut self, event: Event) -> Vec<Action> {
                self.0.step(event)
            }
        }
        run_for_a_while(Box::new(OnlySecrets(garbage::GarbageCollector::default())), objects.clone()).await;
        let mut log = objects.log.lock().clone();
        // The graph of the test never hears of the deletion, so it may be asked for again.
        log.dedup();
        assert_eq!(log, expected, "{owner:?} {kind}");
    }
}

/// What is served changes rarely and events come often: the one is not worked out for each of the other.
#[tokio::test]
async fn the_watches_are_chosen_once_for_what_is_served() {
    struct Counting(Arc<AtomicUsize>, Arc<AtomicUsize>);
    impl Controller for Counting {
        fn name(&self) -> &'static str {
            "test"
        }
        fn watches(&self, served: &[ServedResource]) -> Vec<GroupResource> {
            self.0.fetch_add(1, Ordering::Relaxed);
            served.iter().map(|served| served.name.clone()).collect()
        }
        fn step(&mut self, event: Event) -> Vec<Action> {
            if matches!(event, Event::Changed(..)) {
                self.1.fetch_add(1, Ordering::Relaxed);
            }
            Vec::new()
        }
    }
    let kinds = [("secrets", "Secret"), ("configmaps", "ConfigMap"), ("pods", "Pod")];
    let objects = MemoryObjects::serving(kinds.map(|(name, kind)| served(name, kind, true)).to_vec());
    let (chosen, events) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    run_for_a_while(Box::new(Counting(chosen.clone(), events.clone())), Arc::new(objects)).await;
    assert_eq!((chosen.load(Ordering::Relaxed), events.load(Ordering::Relaxed)), (1, kinds.len()));
}

#[tokio::test]
async fn the_bootstrap_policy_is_stored_once() {
    let done = Arc::new(AtomicBool::new(false));
    let objects = Arc::new(MemoryObjects::default());
    let expected = crate::authz::bootstrap::objects().expect("a table");
    run_for_a_while(
        Box::new(bootstrap_policy::BootstrapPolicy::new(done.clone()).expect("a table")),
        objects.clone(),
    )
    .await;
    assert!(objects.log.lock().len() >= expected.len());
    // The watch of the test shows the first state only; a new start finds everything in place.
    let objects_after = objects.clone();
    objects_after.log.lock().clear();
    run_for_a_while(
        Box::new(bootstrap_policy::BootstrapPolicy::new(done.clone()).expect("a table")),
        objects.clone(),
    )
    .await;
    assert_eq!(objects.log.lock().clone(), [""; 0]);
    assert!(done.load(Ordering::Acquire));
}

#[tokio::test]
async fn aggregated_roles_are_filled() {
    let objects = Arc::new(MemoryObjects::default());
    for role in crate::authz::bootstrap::objects().expect("a table") {
        if role.kind() == "ClusterRole" {
            objects.put("rbac.authorization.k8s.io", "clusterroles", role);
        }
    }
    run_for_a_while(Box::new(role_aggregation::RoleAggregation::default()), objects.clone()).await;
    let resource = GroupResource::new("rbac.authorization.k8s.io", "clusterroles");
    let view = objects.get(&resource, "", "view", true).await.expect("read").expect("there");
    let part =
        objects.get(&resource, "", "system:aggregate-to-view", true).await.expect("read").expect("there");
    assert_eq!(view.get("rules"), part.get("rules"));
}

#[tokio::test]
async fn the_policy_is_fed_and_then_ready() {
    let objects = Arc::new(MemoryObjects::default());
    let rbac = Arc::new(crate::authz::Rbac::default());
    let ready = Arc::new(AtomicBool::new(false));
    let task = feed_policy(rbac, objects, ready.clone());
    let mut task = std::pin::pin!(task);
    tokio::select! {
        biased;
        () = &mut task => unreachable!("the policy is fed for ever"),
        () = tokio::task::yield_now() => {}
    }
    assert!(ready.load(Ordering::Acquire));
}

#[test]
fn every_controller_is_started() {
    let settings = Settings {
        root_ca: "PEM".to_owned(),
        policy_ready: Arc::default(),
        signing_key: Some(signing_key()),
        bind_pods: true,
        service_range: crate::service_addresses::Range::default(),
    };
    let names: Vec<&str> =
        all(&settings).expect("controllers").iter().map(|controller| controller.name()).collect();
    assert_eq!(names.len(), 13);
    let distinct: std::collections::BTreeSet<&&str> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert_eq!(Propagation::default(), Propagation::Background);
}
