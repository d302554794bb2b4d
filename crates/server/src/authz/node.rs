//! The Node authorizer: a node may read what pods that are bound to it refer to, and little else.
//!
//! A user `system:node:NAME` in the group `system:nodes` is the node NAME. Secrets and ConfigMaps are
//! readable one by one when a pod of the node names them; tokens are made for service accounts that such
//! pods run as. Everything else is what the ClusterRole `system:node` lists.
//!
//! Unlike upstream, what the graph does not know yet is looked up in the cached pods of the namespace: a
//! node often asks right after it has seen a new pod, and would wait for its next attempt.
//!
//! Absent: claims, volumes, and resources that this server does not serve.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use coffer_types::Value;
use coffer_types::meta::Meta as _;
use parking_lot::RwLock;

use super::bootstrap;
use super::quote::quote;
use super::rule::Rule;
use crate::pod_references::{config_maps, secret_references};
use crate::ports::{Attributes, Change, Decision, GroupResource, Objects, UserInfo};

const GROUP: &str = "system:nodes";
const USER_PREFIX: &str = "system:node:";
const ROLE: &str = "system:node";
/// The annotation of a pod that a node made itself.
pub(crate) const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
/// Where nodes keep their leases.
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The node that a user is; `None` for everyone else. "" when the user's name lacks the node's.
pub(crate) fn node_name(user: &UserInfo) -> Option<&str> {
    let name = user.name.strip_prefix(USER_PREFIX)?;
    user.groups.iter().any(|group| group == GROUP).then_some(name)
}

/// What a pod may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    Secret,
    ConfigMap,
    ServiceAccount,
    /// The pod itself.
    Pod,
}

/// Kind, namespace and name.
type Object = (Kind, String, String);

/// Which node has to do with which object, by the pods that are bound to it.
#[derive(Debug, Default)]
struct Graph {
    /// Node and objects of each pod, by namespace and name.
    pods: HashMap<(String, String), (String, BTreeSet<Object>)>,
    /// How many pods of each node refer to an object.
    nodes: HashMap<Object, HashMap<String, usize>>,
}

impl Graph {
    fn put(&mut self, pod: &Value) {
        self.remove(pod.namespace(), pod.name());
        let Some((node, objects)) = references(pod) else { return };
        for object in &objects {
            *self.nodes.entry(object.clone()).or_default().entry(node.clone()).or_default() += 1;
        }
        self.pods.insert((pod.namespace().to_owned(), pod.name().to_owned()), (node, objects));
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        let known = self.pods.remove(&(namespace.to_owned(), name.to_owned()));
        let Some((node, objects)) = known else { return };
        for object in objects {
            let Some(nodes) = self.nodes.get_mut(&object) else { continue };
            if let Some(count) = nodes.get_mut(&node) {
                *count -= 1;
                if *count == 0 {
                    nodes.remove(&node);
                }
            }
            if nodes.is_empty() {
                self.nodes.remove(&object);
            }
        }
    }

    fn related(&self, node: &str, object: &Object) -> bool {
        self.nodes.get(object).is_some_and(|nodes| nodes.contains_key(node))
    }
}

/// The node of a pod and everything that the pod lets it read.
fn references(pod: &Value) -> Option<(String, BTreeSet<Object>)> {
    let node = pod.str_at(&["spec", "nodeName"]);
    if node.is_empty() {
        return None;
    }
    let object = |kind, name: &str| (kind, pod.namespace().to_owned(), name.to_owned());
    let mut objects = BTreeSet::from([object(Kind::Pod, pod.name())]);
    // A node makes mirror pods as it likes: they give it nothing.
    if pod.annotation(MIRROR_ANNOTATION).is_none()
        && let Some(spec) = pod.get("spec")
    {
        objects.extend(secret_references(spec).iter().map(|found| object(Kind::Secret, found.name)));
        objects.extend(config_maps(spec).map(|name| object(Kind::ConfigMap, name)));
        let account = spec.str_at(&["serviceAccountName"]);
        if !account.is_empty() {
            objects.insert(object(Kind::ServiceAccount, account));
        }
    }
    Some((node.to_owned(), objects))
}

/// The authorizer, over pods that [`NodeAuthorizer::apply`] keeps up to date.
pub struct NodeAuthorizer {
    rules: Vec<Rule>,
    graph: RwLock<Graph>,
    objects: Arc<dyn Objects>,
}

impl NodeAuthorizer {
    /// Knows no pod yet.
    ///
    /// # Errors
    /// When the table of the bootstrap policy is malformed, which a test excludes.
    pub fn new(objects: Arc<dyn Objects>) -> Result<Self, String> {
        let roles = bootstrap::objects()?;
        let role = roles.iter().find(|role| role.kind() == "ClusterRole" && role.name() == ROLE);
        let rules = role.map(Rule::list_from).unwrap_or_default();
        Ok(Self { rules, graph: RwLock::default(), objects })
    }

    /// Takes one change of the stored pods.
    pub fn apply(&self, change: &Change) {
        let mut graph = self.graph.write();
        match change {
            Change::Reset(pods) => {
                *graph = Graph::default();
                for pod in pods {
                    graph.put(pod);
                }
            }
            Change::Applied(pod) => graph.put(pod),
            Change::Deleted(pod) => graph.remove(pod.namespace(), pod.name()),
        }
    }

    /// Decides about requests of nodes; has no opinion about others.
    pub async fn authorize(&self, request: &Attributes) -> Decision {
        let Some(node) = node_name(&request.user) else { return no("") };
        if node.is_empty() {
            return no(&format!("unknown node for user {}", quote(&request.user.name)));
        }
        if request.resource_request {
            match (request.group.as_str(), request.resource.as_str()) {
                ("", "secrets") => return self.read(node, Kind::Secret, request).await,
                ("", "configmaps") => return self.read(node, Kind::ConfigMap, request).await,
                ("", "serviceaccounts") => return self.account(node, request).await,
                ("coordination.k8s.io", "leases") => return lease(node, request),
                ("", "nodes") => return own_node(node, request),
                ("", "pods") => return self.pod(node, request).await,
                _ => {}
            }
        }
        if self.rules.iter().any(|rule| rule.allows(request)) { yes() } else { no("") }
    }

    async fn read(&self, node: &str, kind: Kind, request: &Attributes) -> Decision {
        if !matches!(request.verb.as_str(), "get" | "list" | "watch") {
            return no("can only read resources of this type");
        }
        if !request.subresource.is_empty() {
            return no("cannot read subresource");
        }
        if request.namespace.is_empty() {
            return no("can only read namespaced object of this type");
        }
        self.related(node, kind, request).await
    }

    async fn account(&self, node: &str, request: &Attributes) -> Decision {
        if request.verb == "get" && request.subresource.is_empty() {
            return self.related(node, Kind::ServiceAccount, request).await;
        }
        if request.verb != "create" || request.name.is_empty() {
            return no("can only create tokens for individual service accounts");
        }
        if request.subresource != "token" {
            return no("can only create token subresource of serviceaccount");
        }
        self.related(node, Kind::ServiceAccount, request).await
    }

    async fn pod(&self, node: &str, request: &Attributes) -> Decision {
        match (request.subresource.as_str(), request.verb.as_str()) {
            ("", "get") => self.related(node, Kind::Pod, request).await,
            ("", "list" | "watch") if request.selected_node == node => yes(),
            ("", "list" | "watch") if !request.name.is_empty() => {
                self.related(node, Kind::Pod, request).await
            }
            ("", "list" | "watch") => no("can only list/watch pods with spec.nodeName field selector"),
            // The admission plugin NodeRestriction limits these to the node's own pods.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => yes(),
            _ => no(""),
        }
    }

    async fn related(&self, node: &str, kind: Kind, request: &Attributes) -> Decision {
        if request.name.is_empty() {
            return no("No Object name found");
        }
        let object = (kind, request.namespace.clone(), request.name.clone());
        if self.graph.read().related(node, &object) || self.found(node, &object).await {
            return yes();
        }
        no(&format!("no relationship found between node '{node}' and this object"))
    }

    /// Looks where the node itself looks.
    async fn found(&self, node: &str, object: &Object) -> bool {
        let pods = self.objects.list(&GroupResource::new("", "pods"), &object.1).await.unwrap_or_default();
        pods.iter().filter_map(references).any(|(of, objects)| of == node && objects.contains(object))
    }
}

fn lease(node: &str, request: &Attributes) -> Decision {
    if !matches!(request.verb.as_str(), "get" | "create" | "update" | "patch" | "delete") {
        return no("can only get, create, update, patch, or delete a node lease");
    }
    if request.namespace != LEASE_NAMESPACE {
        return no(&format!("can only access leases in the {} system namespace", quote(LEASE_NAMESPACE)));
    }
    // The name of a new one is in its body: the admission plugin looks at it.
    if request.verb != "create" && request.name != node {
        return no("can only access node lease with the same name as the requesting node");
    }
    yes()
}

fn own_node(node: &str, request: &Attributes) -> Decision {
    match (request.subresource.as_str(), request.verb.as_str()) {
        // The admission plugin NodeRestriction limits these to the node itself.
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => yes(),
        ("", "get" | "list" | "watch") if request.name == node => yes(),
        ("", "get" | "list" | "watch") if request.name.is_empty() => {
            no(&format!("node '{node}' cannot read all nodes, only its own Node object"))
        }
        ("", "get" | "list" | "watch") => {
            no(&format!("node '{node}' cannot read '{}', only its own Node object", request.name))
        }
        _ => no(""),
    }
}

fn yes() -> Decision {
    Decision::Allow(String::new())
}

fn no(why: &str) -> Decision {
    Decision::NoOpinion(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MemoryObjects, block_on};

    fn pod(key: &str, node: &str, spec: &str) -> Value {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        let text = format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}"}},"spec":{{"nodeName":"{node}"{spec}}}}}"#
        );
        coffer_types::codec::json::decode_untyped(text.as_bytes()).expect("JSON").object
    }

    fn node() -> UserInfo {
        UserInfo { name: "system:node:n1".into(), groups: vec![GROUP.into()], ..UserInfo::default() }
    }

    /// `verb group:resource/subresource namespace name` and a selected node.
    fn request(line: &str) -> Attributes {
        let words: Vec<&str> = line.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
        let (group, resource) = words[1].split_once(':').unwrap_or(("", words[1]));
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes {
            user: node(),
            verb: words[0].into(),
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: words[2].into(),
            name: words[3].into(),
            selected_node: words.get(4).copied().unwrap_or_default().into(),
            resource_request: true,
            ..Attributes::default()
        }
    }

    fn show(decision: Decision) -> String {
        match decision {
            Decision::Allow(_) => "yes".to_owned(),
            Decision::Deny(why) => format!("never: {why}"),
            Decision::NoOpinion(why) => format!("no: {why}"),
        }
    }

    const NONE: &str = "no: no relationship found between node 'n1' and this object";

    #[test]
    fn a_node_reads_what_its_pods_refer_to() {
        let spec = r#","serviceAccountName":"sa","volumes":[
            {"name":"s","secret":{"secretName":"in-volume"}},
            {"name":"c","configMap":{"name":"map-in-volume"}},
            {"name":"p","projected":{"sources":[{"secret":{"name":"projected"}},{"configMap":{"name":"map-projected"}}]}}],
            "imagePullSecrets":[{"name":"pull"}],
            "initContainers":[{"name":"i","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"in-env","key":"k"}}}]}],
            "containers":[{"name":"c","envFrom":[{"secretRef":{"name":"in-env-from"}},{"configMapRef":{"name":"map-in-env-from"}}],
                "env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"map-in-env","key":"k"}}}]}]"#;
        let authorizer = NodeAuthorizer::new(Arc::new(MemoryObjects::default())).expect("a table");
        authorizer.apply(&Change::Reset(vec![
            pod("ns/own", "n1", spec),
            pod("ns/other", "n2", r#","volumes":[{"name":"s","secret":{"secretName":"of-n2"}}]"#),
        ]));
        let cases = [
            ("get secrets ns in-volume", "yes"),
            ("list secrets ns in-volume", "yes"),
            ("watch secrets ns in-volume", "yes"),
            ("get secrets ns projected", "yes"),
            ("get secrets ns pull", "yes"),
            ("get secrets ns in-env", "yes"),
            ("get secrets ns in-env-from", "yes"),
            ("get configmaps ns map-in-volume", "yes"),
            ("get configmaps ns map-projected", "yes"),
            ("get configmaps ns map-in-env", "yes"),
            ("get configmaps ns map-in-env-from", "yes"),
            // Neither another node's, nor another kind's, nor another namespace's, nor what nobody names.
            ("get secrets ns of-n2", NONE),
            ("get secrets ns map-in-env", NONE),
            ("get configmaps ns in-env", NONE),
            ("get secrets other in-volume", NONE),
            ("get secrets ns unnamed", NONE),
            ("list secrets ns -", "no: No Object name found"),
            ("watch secrets ns -", "no: No Object name found"),
            ("list secrets - -", "no: can only read namespaced object of this type"),
            ("get secrets/x ns in-volume", "no: cannot read subresource"),
            ("update secrets ns in-volume", "no: can only read resources of this type"),
            ("create secrets ns -", "no: can only read resources of this type"),
            ("delete configmaps ns map-in-env", "no: can only read resources of this type"),
            ("create serviceaccounts/token ns sa", "yes"),
            ("create serviceaccounts/token ns other", NONE),
            ("create serviceaccounts ns -", "no: can only create tokens for individual service accounts"),
            ("create serviceaccounts ns sa", "no: can only create token subresource of serviceaccount"),
            ("get serviceaccounts ns sa", "yes"),
            ("get serviceaccounts ns other", NONE),
            ("get pods ns own", "yes"),
            ("get pods ns other", NONE),
            ("list pods - - n1", "yes"),
            ("watch pods ns - n1", "yes"),
            ("list pods - - n2", "no: can only list/watch pods with spec.nodeName field selector"),
            ("list pods - -", "no: can only list/watch pods with spec.nodeName field selector"),
            ("watch pods ns own", "yes"),
            ("watch pods ns other", NONE),
            ("patch pods/status ns own", "yes"),
            ("update pods ns own", "no: "),
            ("delete pods ns own", "yes"),
            ("create pods/eviction ns own", "yes"),
            ("get nodes - n1", "yes"),
            ("watch nodes - n1", "yes"),
            ("get nodes - n2", "no: node 'n1' cannot read 'n2', only its own Node object"),
            ("list nodes - -", "no: node 'n1' cannot read all nodes, only its own Node object"),
            ("create nodes - -", "yes"),
            ("patch nodes/status - n1", "yes"),
            ("delete nodes - n1", "no: "),
            ("get coordination.k8s.io:leases kube-node-lease n1", "yes"),
            ("create coordination.k8s.io:leases kube-node-lease -", "yes"),
            (
                "patch coordination.k8s.io:leases kube-node-lease n2",
                "no: can only access node lease with the same name as the requesting node",
            ),
            (
                "get coordination.k8s.io:leases kube-system n1",
                "no: can only access leases in the \"kube-node-lease\" system namespace",
            ),
            (
                "list coordination.k8s.io:leases kube-node-lease -",
                "no: can only get, create, update, patch, or delete a node lease",
            ),
            ("create events.k8s.io:events ns -", "yes"),
            ("list services - -", "yes"),
            ("get rbac.authorization.k8s.io:roles ns x", "no: "),
            ("delete namespaces - ns", "no: "),
        ];
        for (line, expected) in cases {
            assert_eq!(show(block_on(authorizer.authorize(&request(line)))), expected, "{line}");
        }
        for (name, groups, expected) in [
            ("system:node:n1", vec!["system:authenticated"], "no: "),
            ("ann", vec![GROUP], "no: "),
            ("system:node:", vec![GROUP], "no: unknown node for user \"system:node:\""),
        ] {
            let groups = groups.into_iter().map(str::to_owned).collect();
            let user = UserInfo { name: name.into(), groups, ..UserInfo::default() };
            let request = Attributes { user, ..request("get secrets ns in-volume") };
            assert_eq!(show(block_on(authorizer.authorize(&request))), expected, "{name}");
        }
    }

    #[test]
    fn the_graph_follows_the_pods() {
        let authorizer = NodeAuthorizer::new(Arc::new(MemoryObjects::default())).expect("a table");
        let may = |expected: bool, what: &str| {
            let found = block_on(authorizer.authorize(&request("get secrets ns s")));
            assert_eq!(found == yes(), expected, "{what}");
        };
        let volume = r#","volumes":[{"name":"v","secret":{"secretName":"s"}}]"#;
        let apply = |pod: Value| authorizer.apply(&Change::Applied(Box::new(pod)));
        let delete = |key: &str| authorizer.apply(&Change::Deleted(Box::new(pod(key, "n1", volume))));
        may(false, "no pod");
        apply(pod("ns/a", "", volume));
        may(false, "a pod without a node");
        apply(pod("ns/a", "n1", volume));
        may(true, "bound");
        apply(pod("ns/b", "n1", volume));
        delete("ns/a");
        may(true, "another pod is left");
        delete("ns/b");
        may(false, "no pod is left");
        apply(pod("ns/a", "n1", ""));
        let ephemeral = r#","ephemeralContainers":[{"name":"e","envFrom":[{"secretRef":{"name":"s"}}]}]"#;
        apply(pod("ns/a", "n1", ephemeral));
        may(true, "an ephemeral container came");
        let mut mirror = pod("ns/a", "n1", volume);
        mirror.set(&["metadata", "annotations", MIRROR_ANNOTATION], "x");
        apply(mirror);
        may(false, "a mirror pod gives nothing");
        authorizer.apply(&Change::Reset(vec![pod("ns/c", "n1", volume)]));
        may(true, "all anew");
        authorizer.apply(&Change::Reset(vec![]));
        may(false, "all gone");
        assert!(authorizer.graph.read().nodes.is_empty());
    }

    /// The node has seen its pod before the graph has.
    #[test]
    fn what_the_graph_does_not_know_yet_is_looked_up() {
        let volume = r#","volumes":[{"name":"v","secret":{"secretName":"s"}}]"#;
        let objects = MemoryObjects::with(&[("", "pods", pod("ns/a", "n1", volume))]);
        let authorizer = NodeAuthorizer::new(objects).expect("a table");
        assert_eq!(show(block_on(authorizer.authorize(&request("get secrets ns s")))), "yes");
        assert_eq!(show(block_on(authorizer.authorize(&request("get secrets ns t")))), NONE);
    }
}
