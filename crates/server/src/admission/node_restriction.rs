//! NodeRestriction: a node changes its own Node, its own lease and its own pods, and no other's.
//!
//! Texts are upstream's. Absent: claims, CSINodes and resource slices, which are not served.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::Meta as _;
use coffer_types::{Status, Value};

use super::forbid;
use crate::authz::node::{LEASE_NAMESPACE, MIRROR_ANNOTATION, node_name};
use crate::authz::quote::quote;
use crate::pod_references::{config_maps, secret_references};
use crate::ports::{Admission, Admit, GroupResource, Objects, Operation};

/// Labels below these domains that a node may set on itself.
const OWN_LABELS: [&str; 9] = [
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
const OLD_LABELS: [&str; 2] =
    ["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"];
const OWN_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// Labels that say what a node may be trusted with: never its own word.
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

/// The plugin.
pub struct NodeRestriction {
    objects: Arc<dyn Objects>,
}

impl NodeRestriction {
    /// Over the stored pods.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self { objects }
    }
}

#[async_trait]
impl Admit for NodeRestriction {
    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let attributes = request.attributes;
        let Some(node) = node_name(&attributes.user) else { return Ok(()) };
        let refused = if node.is_empty() {
            Err(format!("could not determine node from user {}", quote(&attributes.user.name)))
        } else {
            match (attributes.group.as_str(), attributes.resource.as_str()) {
                ("", "pods") => check_pod(node, request, object),
                ("", "nodes") => check_node(node, request, object),
                ("", "serviceaccounts") if attributes.subresource == "token" => {
                    self.check_token(node, request, object).await?
                }
                ("coordination.k8s.io", "leases") => check_lease(node, request, object),
                _ => Ok(()),
            }
        };
        refused.map_err(|why| forbid(request, object, why))
    }
}

type Check = Result<(), String>;

impl NodeRestriction {
    /// A node asks for tokens that are bound to its pods only.
    async fn check_token(
        &self,
        node: &str,
        request: &Admission<'_>,
        object: Option<&Value>,
    ) -> Result<Check, Status> {
        let reference = object.and_then(|object| object.at(&["spec", "boundObjectRef"]));
        let Some(reference) = reference.filter(|reference| {
            reference.str_at(&["apiVersion"]) == "v1"
                && reference.str_at(&["kind"]) == "Pod"
                && !reference.str_at(&["name"]).is_empty()
        }) else {
            return Ok(Err("node requested token not bound to a pod".to_owned()));
        };
        let uid = reference.str_at(&["uid"]);
        if uid.is_empty() {
            return Ok(Err("node requested token with a pod binding without a uid".to_owned()));
        }
        let pods = GroupResource::new("", "pods");
        let namespace = &request.attributes.namespace;
        let pod = self.objects.get(&pods, namespace, reference.str_at(&["name"]), true).await?;
        let Some(pod) = pod else {
            return Err(Status::not_found("", "pods", reference.str_at(&["name"])));
        };
        if pod.uid() != uid {
            return Ok(Err(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            )));
        }
        if pod.str_at(&["spec", "nodeName"]) != node {
            return Ok(Err("node requested token bound to a pod scheduled on a different node".to_owned()));
        }
        Ok(Ok(()))
    }
}

fn check_pod(node: &str, request: &Admission<'_>, object: Option<&Value>) -> Check {
    let node_text = quote(node);
    let of = |pod: &Value| pod.str_at(&["spec", "nodeName"]).to_owned();
    match (request.attributes.subresource.as_str(), request.operation) {
        ("", Operation::Create) => object.map_or(Ok(()), |pod| check_new_pod(node, pod)),
        ("", Operation::Delete) => match request.old {
            Some(pod) if of(pod) != node => {
                Err(format!("node {node_text} can only delete pods with spec.nodeName set to itself"))
            }
            _ => Ok(()),
        },
        ("", Operation::Update) => Err(format!(
            "unexpected operation \"UPDATE\", node {node_text} can only create and delete mirror pods"
        )),
        ("status", Operation::Update) => {
            let (Some(old), Some(new)) = (request.old, object) else { return Ok(()) };
            if of(old) != node {
                return Err(format!(
                    "node {node_text} can only update pod status for pods with spec.nodeName set to itself"
                ));
            }
            if old.at(&["metadata", "labels"]) != new.at(&["metadata", "labels"]) {
                return Err(format!("node {node_text} cannot update labels through pod status"));
            }
            Ok(())
        }
        ("eviction", _) => Ok(()),
        (other, _) => Err(format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            quote(other)
        )),
    }
}

fn check_new_pod(node: &str, pod: &Value) -> Check {
    let node_text = quote(node);
    if pod.annotation(MIRROR_ANNOTATION).is_none() {
        return Err(format!(
            "pod does not have {} annotation, node {node_text} can only create mirror pods",
            quote(MIRROR_ANNOTATION)
        ));
    }
    if pod.str_at(&["spec", "nodeName"]) != node {
        return Err(format!("node {node_text} can only create pods with spec.nodeName set to itself"));
    }
    match pod.owner_references() {
        [] => {}
        [owner] if owner.str_at(&["kind"]) == "Node" && owner.str_at(&["name"]) == node => {}
        [_] => {
            return Err(format!(
                "node {node_text} can only create pods with an owner reference set to itself"
            ));
        }
        _ => {
            return Err(format!(
                "node {node_text} can only create pods with a single owner reference set to itself"
            ));
        }
    }
    let empty = Value::object();
    let spec = pod.get("spec").unwrap_or(&empty);
    let refers = if !spec.str_at(&["serviceAccountName"]).is_empty() {
        "serviceaccounts"
    } else if !secret_references(spec).is_empty() {
        "secrets"
    } else if config_maps(spec).next().is_some() {
        "configmaps"
    } else {
        return Ok(());
    };
    Err(format!("node {node_text} can not create pods that reference {refers}"))
}

fn check_node(node: &str, request: &Admission<'_>, object: Option<&Value>) -> Check {
    let node_text = quote(node);
    let name = match (request.operation, object) {
        (Operation::Create, Some(new)) => new.name(),
        _ => request.attributes.name.as_str(),
    };
    let forbidden = |changed: BTreeSet<&str>| {
        let forbidden: Vec<&str> = changed.into_iter().filter(|label| is_forbidden(label)).collect();
        (!forbidden.is_empty()).then(|| forbidden.join(", "))
    };
    if request.operation == Operation::Create
        && let Some(labels) = object.and_then(|new| forbidden(changed_labels(None, new)))
    {
        return Err(format!("node {node_text} is not allowed to set the following labels: {labels}"));
    }
    if name != node {
        return Err(format!("node {node_text} is not allowed to modify node {}", quote(name)));
    }
    let (Operation::Update, Some(old), Some(new)) = (request.operation, request.old, object) else {
        return Ok(());
    };
    if old.at(&["spec", "taints"]) != new.at(&["spec", "taints"]) {
        return Err(format!("node {node_text} is not allowed to modify taints"));
    }
    if let Some(labels) = forbidden(changed_labels(Some(old), new)) {
        return Err(format!("is not allowed to modify labels: {labels}"));
    }
    if old.owner_references() != new.owner_references() {
        return Err(format!("node {node_text} is not allowed to modify ownerReferences"));
    }
    Ok(())
}

fn changed_labels<'a>(old: Option<&'a Value>, new: &'a Value) -> BTreeSet<&'a str> {
    let labels = |object: &'a Value| {
        let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
        labels.map(|labels| labels.iter().map(|(key, value)| (key.as_ref(), value.as_str())).collect())
    };
    let held: BTreeSet<(&str, Option<&str>)> = old.and_then(labels).unwrap_or_default();
    let wanted: BTreeSet<(&str, Option<&str>)> = labels(new).unwrap_or_default();
    held.symmetric_difference(&wanted).map(|(key, _)| *key).collect()
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let below = |parent: &str| {
        domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'))
    };
    if below(RESTRICTED_DOMAIN) {
        return true;
    }
    if !below("kubernetes.io") && !below("k8s.io") {
        return false;
    }
    let own = OWN_LABELS.contains(&label) || OLD_LABELS.contains(&label);
    !own && !OWN_DOMAINS.iter().any(|domain| below(domain))
}

fn check_lease(node: &str, request: &Admission<'_>, object: Option<&Value>) -> Check {
    if request.attributes.namespace != LEASE_NAMESPACE {
        return Err(format!("can only access leases in the {} system namespace", quote(LEASE_NAMESPACE)));
    }
    let name = match (request.operation, object) {
        (Operation::Create, Some(new)) => new.name(),
        _ => request.attributes.name.as_str(),
    };
    if name != node {
        return Err("can only access node lease with the same name as the requesting node".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{Attributes, UserInfo};
    use crate::testing::{MemoryObjects, block_on};

    fn tree(text: &str) -> Value {
        coffer_types::codec::json::decode_untyped(text.as_bytes()).expect("JSON").object
    }

    fn pod(node: &str, more: &str) -> Value {
        tree(&format!(
            r#"{{"metadata":{{"name":"p","namespace":"ns","uid":"u"{more}}},"spec":{{"nodeName":"{node}"}}}}"#
        ))
    }

    fn mirror(spec: &str) -> Value {
        tree(&format!(
            r#"{{"metadata":{{"name":"p","annotations":{{"{MIRROR_ANNOTATION}":"x"}}}},"spec":{{"nodeName":"n1"{spec}}}}}"#
        ))
    }

    fn node(name: &str, more: &str) -> Value {
        tree(&format!(r#"{{"metadata":{{"name":"{name}"{more}}},"spec":{{}}}}"#))
    }

    fn check(what: &str, name: &str, old: Option<Value>, new: Option<Value>) -> String {
        let (operation, resource) = what.split_once(' ').expect("operation and resource");
        let (group, resource) = resource.split_once(':').unwrap_or(("", resource));
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let attributes = Attributes {
            user: UserInfo {
                name: "system:node:n1".into(),
                groups: vec!["system:nodes".into()],
                ..UserInfo::default()
            },
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: if resource == "leases" { LEASE_NAMESPACE.into() } else { "ns".into() },
            name: name.into(),
            resource_request: true,
            ..Attributes::default()
        };
        let operation = match operation {
            "create" => Operation::Create,
            "update" => Operation::Update,
            _ => Operation::Delete,
        };
        let forms = crate::testing::OneForm::default();
        let parts = crate::testing::ContextParts::default();
        let context = parts.context(&forms);
        let request = Admission {
            attributes: &attributes,
            operation,
            kind: "",
            old: old.as_ref(),
            dry_run: false,
            context: &context,
        };
        let plugin = NodeRestriction::new(MemoryObjects::with(&[
            ("", "pods", pod("n1", "")),
            (
                "",
                "pods",
                tree(r#"{"metadata":{"name":"q","namespace":"ns","uid":"v"},"spec":{"nodeName":"n2"}}"#),
            ),
        ]));
        let mut warnings = Vec::new();
        match block_on(plugin.validate(&request, new.as_ref(), &mut warnings)) {
            Ok(()) => "yes".to_owned(),
            Err(status) => status.message.split(" is forbidden: ").last().unwrap_or_default().to_owned(),
        }
    }

    #[test]
    fn a_node_changes_only_what_is_its_own() {
        let labels = |text: &str| format!(r#","labels":{{{text}}}"#);
        let tainted = tree(r#"{"metadata":{"name":"n1"},"spec":{"taints":[{"key":"x"}]}}"#);
        let token = |reference: &str| Some(tree(&format!(r#"{{"spec":{{"boundObjectRef":{reference}}}}}"#)));
        // What is done, the name in the path, the object before and after, and the answer.
        type Case<'a> = (&'a str, &'a str, Option<Value>, Option<Value>, &'a str);
        let cases: Vec<Case<'_>> = vec![
            (
                "create pods",
                "p",
                None,
                Some(pod("n1", "")),
                "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can only create mirror pods",
            ),
            ("create pods", "p", None, Some(mirror("")), "yes"),
            (
                "create pods",
                "p",
                None,
                Some(mirror(r#","serviceAccountName":"sa""#)),
                "node \"n1\" can not create pods that reference serviceaccounts",
            ),
            (
                "create pods",
                "p",
                None,
                Some(mirror(r#","imagePullSecrets":[{"name":"s"}]"#)),
                "node \"n1\" can not create pods that reference secrets",
            ),
            (
                "create pods",
                "p",
                None,
                Some(mirror(r#","volumes":[{"name":"c","configMap":{"name":"m"}}]"#)),
                "node \"n1\" can not create pods that reference configmaps",
            ),
            ("delete pods", "p", Some(pod("n1", "")), None, "yes"),
            (
                "delete pods",
                "p",
                Some(pod("n2", "")),
                None,
                "node \"n1\" can only delete pods with spec.nodeName set to itself",
            ),
            (
                "update pods",
                "p",
                Some(pod("n1", "")),
                Some(pod("n1", "")),
                "unexpected operation \"UPDATE\", node \"n1\" can only create and delete mirror pods",
            ),
            (
                "update pods/status",
                "p",
                Some(pod("n1", "")),
                Some(pod("n1", r#","annotations":{"a":"b"}"#)),
                "yes",
            ),
            (
                "update pods/status",
                "p",
                Some(pod("n2", "")),
                Some(pod("n2", "")),
                "node \"n1\" can only update pod status for pods with spec.nodeName set to itself",
            ),
            (
                "update pods/status",
                "p",
                Some(pod("n1", "")),
                Some(pod("n1", &labels(r#""a":"b""#))),
                "node \"n1\" cannot update labels through pod status",
            ),
            (
                "create pods/exec",
                "p",
                None,
                None,
                "unexpected pod subresource \"exec\", only 'status' and 'eviction' are allowed",
            ),
            (
                "create nodes",
                "",
                None,
                Some(node(
                    "n1",
                    &labels(r#""kubernetes.io/hostname":"n1","kubernetes.io/os":"linux","mine":"x""#),
                )),
                "yes",
            ),
            (
                "create nodes",
                "",
                None,
                Some(node("n2", "")),
                "node \"n1\" is not allowed to modify node \"n2\"",
            ),
            (
                "create nodes",
                "",
                None,
                Some(node("n1", &labels(r#""node-restriction.kubernetes.io/trusted":"yes""#))),
                "node \"n1\" is not allowed to set the following labels: node-restriction.kubernetes.io/trusted",
            ),
            (
                "create nodes",
                "",
                None,
                Some(node("n1", &labels(r#""x.k8s.io/role":"db""#))),
                "node \"n1\" is not allowed to set the following labels: x.k8s.io/role",
            ),
            (
                "update nodes",
                "n1",
                Some(node("n1", "")),
                Some(node("n1", &labels(r#""mine":"x","node.kubernetes.io/y":"z""#))),
                "yes",
            ),
            (
                "update nodes",
                "n1",
                Some(node("n1", &labels(r#""node-restriction.kubernetes.io/a":"b""#))),
                Some(node("n1", "")),
                "is not allowed to modify labels: node-restriction.kubernetes.io/a",
            ),
            (
                "update nodes",
                "n2",
                Some(node("n2", "")),
                Some(node("n2", "")),
                "node \"n1\" is not allowed to modify node \"n2\"",
            ),
            (
                "update nodes/status",
                "n2",
                Some(node("n2", "")),
                Some(node("n2", "")),
                "node \"n1\" is not allowed to modify node \"n2\"",
            ),
            (
                "update nodes",
                "n1",
                Some(tainted),
                Some(node("n1", "")),
                "node \"n1\" is not allowed to modify taints",
            ),
            ("create coordination.k8s.io:leases", "", None, Some(node("n1", "")), "yes"),
            (
                "create coordination.k8s.io:leases",
                "",
                None,
                Some(node("n2", "")),
                "can only access node lease with the same name as the requesting node",
            ),
            ("update coordination.k8s.io:leases", "n1", None, Some(node("n1", "")), "yes"),
            (
                "create serviceaccounts/token",
                "sa",
                None,
                token(r#"{"kind":"Pod","apiVersion":"v1","name":"p","uid":"u"}"#),
                "yes",
            ),
            (
                "create serviceaccounts/token",
                "sa",
                None,
                token("null"),
                "node requested token not bound to a pod",
            ),
            (
                "create serviceaccounts/token",
                "sa",
                None,
                token(r#"{"kind":"Secret","apiVersion":"v1","name":"p","uid":"u"}"#),
                "node requested token not bound to a pod",
            ),
            (
                "create serviceaccounts/token",
                "sa",
                None,
                token(r#"{"kind":"Pod","apiVersion":"v1","name":"p"}"#),
                "node requested token with a pod binding without a uid",
            ),
            (
                "create serviceaccounts/token",
                "sa",
                None,
                token(r#"{"kind":"Pod","apiVersion":"v1","name":"p","uid":"old"}"#),
                "the UID in the bound object reference (old) does not match the UID in record. The object might have been deleted and then recreated",
            ),
            (
                "create serviceaccounts/token",
                "sa",
                None,
                token(r#"{"kind":"Pod","apiVersion":"v1","name":"q","uid":"v"}"#),
                "node requested token bound to a pod scheduled on a different node",
            ),
            (
                "create serviceaccounts/token",
                "sa",
                None,
                token(r#"{"kind":"Pod","apiVersion":"v1","name":"gone","uid":"v"}"#),
                "pods \"gone\" not found",
            ),
            ("create secrets", "s", None, None, "yes"),
        ];
        for (what, name, old, new, expected) in cases {
            let label = format!("{what} {name} {new:?}");
            assert_eq!(check(what, name, old, new), expected, "{label}");
        }
    }
}
