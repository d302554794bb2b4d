//! One decision table for each plugin; texts as a real kube-apiserver v1.37.2 answered them.

use std::sync::Arc;

use coffer_types::meta::Meta as _;
use coffer_types::{Status, Value};

use super::*;
use crate::authz::rbac::tests::{rbac, user};
use crate::ports::{Admit, Attributes, Operation};
use crate::testing::{ContextParts, FixedRandom, MemoryObjects, OneForm, TestClock, block_on};

const NOW: &str = "2026-01-02T03:04:05Z";

/// A tree from `path=text` pairs; `[]` after a field makes a list, `path:=true` a boolean.
fn tree(pairs: &[&str]) -> Value {
    fn set(value: &mut Value, path: &str, leaf: Value) {
        let (field, rest) = path.split_once('.').map_or((path, None), |(field, rest)| (field, Some(rest)));
        // `/` stands for a dot inside a field's name.
        let (field, list) = field.strip_suffix("[]").map_or((field, false), |field| (field, true));
        let field = field.replace('|', ".");
        let members = value.object_at_mut(&[]);
        let slot = members.entry(field).or_insert(Value::Null);
        if list && slot.is_null() {
            *slot = Value::Array(vec![Value::Null]);
        }
        let slot = match slot {
            Value::Array(items) => &mut items[0],
            other => other,
        };
        match rest {
            Some(rest) => set(slot, rest, leaf),
            None => *slot = leaf,
        }
    }
    let mut value = Value::object();
    for pair in pairs {
        match pair.split_once(":=") {
            Some((path, flag)) => set(&mut value, path, Value::from(flag == "true")),
            None => {
                let (path, text) = pair.split_once('=').expect("path=text");
                set(&mut value, path, Value::from(text));
            }
        }
    }
    value
}

struct Case<'a> {
    operation: Operation,
    resource: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

fn attributes(case: &Case<'_>) -> Attributes {
    let (group, resource) = case.resource.split_once(':').unwrap_or(("", case.resource));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Attributes {
        user: user("ann", &[]),
        group: group.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        namespace: case.namespace.into(),
        name: case.name.into(),
        resource_request: true,
        ..Attributes::default()
    }
}

/// Both phases, as the handlers run them.
fn run(plugin: &dyn Admit, case: &Case<'_>, object: Option<Value>) -> Result<Option<Value>, Status> {
    let attributes = attributes(case);
    let forms = OneForm::default();
    let parts = ContextParts::default();
    let request = Admission {
        attributes: &attributes,
        operation: case.operation,
        kind: case.kind,
        old: None,
        dry_run: false,
        context: &parts.context(&forms),
    };
    let mut object = object;
    let mut warnings = Vec::new();
    block_on(async {
        plugin.mutate(&request, object.as_mut(), &mut warnings).await?;
        plugin.validate(&request, object.as_ref(), &mut warnings).await
    })?;
    Ok(object)
}

fn namespaces() -> Arc<MemoryObjects> {
    let namespace =
        |name: &str, phase: &str| tree(&[&format!("metadata.name={name}"), &format!("status.phase={phase}")]);
    MemoryObjects::with(&[
        ("", "namespaces", namespace("live", "Active")),
        ("", "namespaces", namespace("dying", "Terminating")),
    ])
}

#[test]
fn namespace_lifecycle_decisions() {
    use Operation::{Create, Delete, Update};
    let dying = "secrets \"x\" is forbidden: unable to create new content in namespace dying because it is being terminated";
    let stays = |name: &str| {
        Some((403, format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted")))
    };
    for (operation, resource, kind, namespace, name, expected) in [
        (Create, "secrets", "Secret", "live", "x", None),
        (Create, "secrets", "Secret", "dying", "x", Some((403, dying.to_owned()))),
        (Create, "secrets", "Secret", "gone", "x", Some((404, "namespaces \"gone\" not found".to_owned()))),
        (Update, "secrets", "Secret", "dying", "x", None),
        (Update, "secrets", "Secret", "gone", "x", None),
        (Delete, "secrets", "Secret", "dying", "x", None),
        (Create, "nodes", "Node", "", "x", None),
        (
            Create,
            "authorization.k8s.io:localsubjectaccessreviews",
            "LocalSubjectAccessReview",
            "gone",
            "",
            None,
        ),
        (Create, "namespaces", "Namespace", "new", "new", None),
        (Delete, "namespaces", "Namespace", "live", "live", None),
        (Delete, "namespaces", "Namespace", "default", "default", stays("default")),
        (Delete, "namespaces", "Namespace", "kube-system", "kube-system", stays("kube-system")),
        (Delete, "namespaces", "Namespace", "kube-public", "kube-public", stays("kube-public")),
        (Delete, "namespaces", "Namespace", "kube-node-lease", "kube-node-lease", None),
        (Update, "namespaces", "Namespace", "default", "default", None),
        (Delete, "example.com:namespaces", "Namespace", "live", "default", None),
    ] {
        let plugin = NamespaceLifecycle::new(namespaces(), TestClock::at(NOW));
        let case = Case { operation, resource, kind, namespace, name };
        let found =
            run(&plugin, &case, Some(Value::object())).err().map(|status| (status.code, status.message));
        assert_eq!(found, expected, "{operation:?} {resource} in {namespace}");
    }
}

#[test]
fn a_terminating_namespace_is_named_as_cause() {
    let plugin = NamespaceLifecycle::new(namespaces(), TestClock::at(NOW));
    let case = Case {
        operation: Operation::Create,
        resource: "secrets",
        kind: "Secret",
        namespace: "dying",
        name: "",
    };
    let status = run(&plugin, &case, Some(tree(&["metadata.generateName=x-"]))).expect_err("terminating");
    let details = status.details.expect("details");
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("x-", "secrets"));
    let cause = &details.causes[0];
    assert_eq!(cause.reason, "NamespaceTerminating");
    assert_eq!(cause.message, "namespace dying is being terminated");
    assert_eq!(cause.field, "metadata.namespace");
}

fn accounts(changes: &[&str]) -> Arc<MemoryObjects> {
    let account = |name: &str, changes: &[&str]| {
        let name = format!("metadata.name={name}");
        tree(&[&[name.as_str(), "metadata.namespace=ns"], changes].concat())
    };
    MemoryObjects::with(&[
        ("", "serviceaccounts", account("default", &[])),
        ("", "serviceaccounts", account("sa", changes)),
    ])
}

fn pod(changes: &[&str]) -> Value {
    tree(&[&["metadata.name=p", "spec.containers[].name=c"], changes].concat())
}

fn admit(account: &[&str], operation: Operation, resource: &str, pod: Value) -> Result<Value, String> {
    let plugin = ServiceAccounts::new(accounts(account), TestClock::at(NOW), Arc::new(FixedRandom(0)));
    let case = Case { operation, resource, kind: "Pod", namespace: "ns", name: "p" };
    match run(&plugin, &case, Some(pod)) {
        Ok(pod) => Ok(pod.expect("a pod")),
        Err(status) => {
            assert_eq!(status.code, 403);
            Err(status
                .message
                .strip_prefix("pods \"p\" is forbidden: ")
                .expect("a pod is refused")
                .to_owned())
        }
    }
}

#[test]
fn a_pod_gets_its_account_token_and_pull_secrets() {
    let made = admit(
        &["imagePullSecrets[].name=pull"],
        Operation::Create,
        "pods",
        pod(&["spec.serviceAccountName=sa", "spec.initContainers[].name=i"]),
    )
    .expect("admitted");
    let name = "kube-api-access-bbbbb";
    let mut mount =
        Value::from([("name", name), ("mountPath", "/var/run/secrets/kubernetes.io/serviceaccount")]);
    mount.set(&["readOnly"], true);
    for containers in ["containers", "initContainers"] {
        let items = made.at(&["spec", containers]).and_then(Value::as_array).expect("containers");
        assert_eq!(items[0].get("volumeMounts"), Some(&Value::from(vec![mount.clone()])), "{containers}");
    }
    let volume = &made.at(&["spec", "volumes"]).and_then(Value::as_array).expect("volumes")[0];
    assert_eq!(volume.str_at(&["name"]), name);
    assert_eq!(volume.at(&["projected", "defaultMode"]), Some(&Value::Int(420)));
    let sources = volume.at(&["projected", "sources"]).and_then(Value::as_array).expect("sources");
    assert_eq!(sources[0].at(&["serviceAccountToken", "expirationSeconds"]), Some(&Value::Int(3607)));
    assert_eq!(sources[0].str_at(&["serviceAccountToken", "path"]), "token");
    assert_eq!(
        sources[1],
        tree(&[
            "configMap.name=kube-root-ca.crt",
            "configMap.items[].key=ca.crt",
            "configMap.items[].path=ca.crt"
        ])
    );
    assert_eq!(
        sources[2],
        tree(&[
            "downwardAPI.items[].path=namespace",
            "downwardAPI.items[].fieldRef.apiVersion=v1",
            "downwardAPI.items[].fieldRef.fieldPath=metadata.namespace"
        ])
    );
    assert_eq!(made.at(&["spec", "imagePullSecrets"]), tree(&["x[].name=pull"]).get("x"));

    let made = admit(&[], Operation::Create, "pods", pod(&[])).expect("admitted");
    assert_eq!(made.str_at(&["spec", "serviceAccountName"]), "default");
    assert_eq!(made.str_at(&["spec", "serviceAccount"]), "default");
}

#[test]
fn whether_the_token_is_mounted() {
    let mounted = [
        "spec.serviceAccountName=sa",
        "spec.containers[].volumeMounts[].mountPath=/var/run/secrets/kubernetes.io/serviceaccount",
    ];
    let own_volume = ["spec.serviceAccountName=sa", "spec.volumes[].name=kube-api-access-mine"];
    for (account, changes, volumes, mount) in [
        (vec![], vec!["spec.serviceAccountName=sa"], 1, "kube-api-access-bbbbb"),
        (vec!["automountServiceAccountToken:=false"], vec!["spec.serviceAccountName=sa"], 0, ""),
        (
            vec!["automountServiceAccountToken:=false"],
            vec!["spec.serviceAccountName=sa", "spec.automountServiceAccountToken:=true"],
            1,
            "kube-api-access-bbbbb",
        ),
        (vec![], vec!["spec.serviceAccountName=sa", "spec.automountServiceAccountToken:=false"], 0, ""),
        (vec![], mounted.to_vec(), 0, ""),
        (vec![], own_volume.to_vec(), 1, "kube-api-access-mine"),
    ] {
        let made = admit(&account, Operation::Create, "pods", pod(&changes)).expect("admitted");
        let count = made.at(&["spec", "volumes"]).and_then(Value::as_array).map_or(0, <[Value]>::len);
        assert_eq!(count, volumes, "{account:?} {changes:?}");
        let container = &made.at(&["spec", "containers"]).and_then(Value::as_array).expect("containers")[0];
        let mounts = container.get("volumeMounts").and_then(Value::as_array).unwrap_or_default();
        let name = mounts.last().map(|mount| mount.str_at(&["name"])).unwrap_or_default();
        assert_eq!(name, mount, "{account:?} {changes:?}");
    }
}

#[test]
fn pods_are_refused_as_upstream() {
    let mirror = "metadata.annotations.kubernetes|io/config|mirror=x";
    for (changes, expected) in [
        (
            vec!["spec.serviceAccountName=nope"],
            "error looking up service account ns/nope: serviceaccount \"nope\" not found",
        ),
        (vec![mirror, "spec.serviceAccountName=sa"], "a mirror pod may not reference service accounts"),
        (vec![mirror, "spec.volumes[].secret.secretName=s"], "a mirror pod may not reference secrets"),
        (vec![mirror, "spec.imagePullSecrets[].name=s"], "a mirror pod may not reference secrets"),
        (
            vec![mirror, "spec.volumes[].projected.sources[].serviceAccountToken.path=t"],
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ] {
        assert_eq!(
            admit(&[], Operation::Create, "pods", pod(&changes)),
            Err(expected.to_owned()),
            "{changes:?}"
        );
    }
    let unchanged = pod(&[mirror]);
    assert_eq!(admit(&[], Operation::Create, "pods", unchanged.clone()), Ok(unchanged));
    let updated = pod(&[]);
    assert_eq!(admit(&[], Operation::Update, "pods", updated.clone()), Ok(updated.clone()));
    assert_eq!(admit(&[], Operation::Create, "pods/binding", updated.clone()), Ok(updated));
}

#[test]
fn s9_only_the_accounts_own_secrets_in_every_place() {
    let enforce = "metadata.annotations.kubernetes|io/enforce-mountable-secrets=true";
    let account = [enforce, "secrets[].name=mine", "imagePullSecrets[].name=pull"];
    let because = "is not allowed because service account sa does not reference that secret";
    for (path, expected) in [
        ("spec.volumes[].secret.secretName", format!("volume with secret.secretName=\"other\" {because}")),
        ("spec.volumes[].projected.sources[].secret.name", format!("volume  referencing secret.secretName=\"other\" {because}")),
        ("spec.volumes[].csi.nodePublishSecretRef.name", format!("volume  referencing secret.secretName=\"other\" {because}")),
        ("spec.volumes[].azureFile.secretName", format!("volume  referencing secret.secretName=\"other\" {because}")),
        ("spec.containers[].env[].valueFrom.secretKeyRef.name", format!("container c with envVar  referencing secret.secretName=\"other\" {because}")),
        ("spec.containers[].envFrom[].secretRef.name", format!("container c with envFrom referencing secret.secretName=\"other\" {because}")),
        ("spec.initContainers[].env[].valueFrom.secretKeyRef.name", format!("init container  with envVar  referencing secret.secretName=\"other\" {because}")),
        ("spec.initContainers[].envFrom[].secretRef.name", format!("init container  with envFrom referencing secret.secretName=\"other\" {because}")),
        ("spec.ephemeralContainers[].env[].valueFrom.secretKeyRef.name", format!("ephemeral container  with envVar  referencing secret.secretName=\"other\" {because}")),
        ("spec.ephemeralContainers[].envFrom[].secretRef.name", format!("ephemeral container  with envFrom referencing secret.secretName=\"other\" {because}")),
        ("spec.imagePullSecrets[].name", "imagePullSecrets[0].name=\"other\" is not allowed because service account sa does not reference that imagePullSecret".to_owned()),
    ] {
        let with = |secret: &str| pod(&["spec.serviceAccountName=sa", &format!("{path}={secret}")]);
        assert_eq!(admit(&account, Operation::Create, "pods", with("other")), Err(expected.clone()), "{path}");
        let own = if path.contains("imagePull") { "pull" } else { "mine" };
        assert!(admit(&account, Operation::Create, "pods", with(own)).is_ok(), "{path}");
        assert!(admit(&account[1..], Operation::Create, "pods", with("other")).is_ok(), "{path} not enforced");
        // Ephemeral containers come later, through their own subresource, which looks at nothing else.
        let later = admit(&account, Operation::Update, "pods/ephemeralcontainers", with("other"));
        let expected = if path.contains("ephemeral") { Err(expected) } else { Ok(with("other")) };
        assert_eq!(later, expected, "{path} later");
    }
}

#[test]
fn rbac_escalation_is_checked_on_writes() {
    let rbac =
        Arc::new(rbac("ClusterRole r\n  get core secrets\nClusterRoleBinding b ClusterRole r User:ann\n"));
    let plugin = RbacEscalation::new(rbac.clone(), rbac);
    let role = |verb: &str| {
        Some(tree(&[
            "metadata.name=r",
            &format!("rules[].verbs[]={verb}"),
            "rules[].apiGroups[]=",
            "rules[].resources[]=secrets",
        ]))
    };
    use Operation::{Create, Delete, Update};
    for (operation, resource, object, refused) in [
        (Create, "rbac.authorization.k8s.io:clusterroles", role("get"), false),
        (Create, "rbac.authorization.k8s.io:clusterroles", role("list"), true),
        (Update, "rbac.authorization.k8s.io:roles", role("list"), true),
        (Delete, "rbac.authorization.k8s.io:clusterroles", None, false),
        (Create, "clusterroles", role("list"), false),
    ] {
        let case = Case { operation, resource, kind: "ClusterRole", namespace: "", name: "r" };
        assert_eq!(run(&plugin, &case, object).is_err(), refused, "{operation:?} {resource}");
    }
}

#[test]
fn the_chain_is_in_order() {
    let rbac = Arc::new(rbac(""));
    let chain = chain(Dependencies {
        objects: namespaces(),
        clock: TestClock::at(NOW),
        random: Arc::new(FixedRandom(0)),
        rbac: rbac.clone(),
        authorizer: rbac,
        enabled: Enabled::default(),
    });
    assert_eq!(chain.len(), 13);
    // The missing namespace is seen before the missing account.
    let case =
        Case { operation: Operation::Create, resource: "pods", kind: "Pod", namespace: "gone", name: "p" };
    let refusals: Vec<u16> = chain
        .iter()
        .filter_map(|plugin| run(&**plugin, &case, Some(pod(&[]))).err())
        .map(|status| status.code)
        .collect();
    // Of the webhooks nothing is known before the server is put together.
    assert_eq!(refusals, [404, 403, 403, 403]);
    assert_eq!(pod(&[]).name(), "p");
}

#[test]
fn a_quota_whose_use_is_not_known_lets_nothing_in() {
    let quota = tree(&["metadata.name=q", "metadata.namespace=live", "status.hard.configmaps=1"]);
    let objects = MemoryObjects::with(&[("", "resourcequotas", quota)]);
    let plugin = Quotas::new(objects, TestClock::at(NOW));
    let create = |resource, kind| {
        let case = Case { operation: Operation::Create, resource, kind, namespace: "live", name: "x" };
        run(&plugin, &case, Some(tree(&["metadata.name=x", "metadata.namespace=live"])))
    };
    let refused = create("configmaps", "ConfigMap").expect_err("a refusal");
    let expected = "configmaps \"x\" is forbidden: status unknown for quota: q, resources: configmaps";
    assert_eq!((refused.code, refused.message.as_str()), (403, expected));
    // What the quota is not about.
    create("secrets", "Secret").expect("let in");
}
