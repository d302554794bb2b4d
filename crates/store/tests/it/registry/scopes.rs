//! Lists and watches of one object, one namespace or all, with selectors on top: every combination of
//! upstream's tables, held against what a plain comparison says.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_store::key::Origin;
use coffer_store::registry::{ListRequest, Preconditions, Predicate, Registry, Store, Stored, WatchOptions};
use coffer_types::Value;
use coffer_types::meta::Meta;

use super::world::*;

/// What is wanted: `metadata.namespace`, `metadata.name`, and `spec.nodeName` being `bar` or not.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    /// The request's, rather than a selector's.
    in_path: bool,
    namespace: Option<&'static str>,
    name: Option<&'static str>,
    assigned: Option<bool>,
}

impl Wanted {
    fn wants(self, namespace: &str, name: &str, node: &str) -> bool {
        self.namespace.is_none_or(|wanted| wanted == namespace)
            && self.name.is_none_or(|wanted| wanted == name)
            && self.assigned.is_none_or(|assigned| assigned == (node == "bar"))
    }
}

impl Predicate for Wanted {
    fn is_everything(&self) -> bool {
        (self.namespace.is_none() || self.in_path) && self.name.is_none() && self.assigned.is_none()
    }

    fn matches(&self, stored: &Stored) -> bool {
        let field = |wanted: &str| stored.field(wanted).unwrap_or_default();
        self.wants(field("metadata.namespace"), field("metadata.name"), field("spec.nodeName"))
    }
}

/// Namespace, name and node of each write; `None` deletes.
const WRITES: &[(&str, &str, Option<&str>)] = &[
    ("ns1", "foo1", Some("")),
    ("ns2", "foo1", Some("")),
    ("ns1", "foo2", Some("bar")),
    ("ns1", "foo1", Some("other")),
    ("ns2", "foo1", Some("bar")),
    ("ns1", "foo1", Some("bar")),
    ("ns1", "foo2", Some("")),
    ("ns1", "foo1", None),
    ("ns2", "foo2", Some("bar")),
    ("ns2", "foo1", None),
];

async fn check(store: &Arc<Store>, namespaced: bool, wanted: Wanted) {
    let place = |namespace: &'static str| if namespaced { namespace } else { "" };
    let path = if wanted.in_path { wanted.namespace.unwrap_or_default() } else { "" };
    let name = wanted.name.map(str::to_owned);
    let from = store.list(list("")).await.expect("a list").revision;
    let options = WatchOptions { name: name.clone(), predicate: Arc::new(wanted), ..watch(path, Some(from)) };
    let mut watching = Watching(store.watch(options).await.expect("a watch"));
    let mut present: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for (namespace, object_name, node) in WRITES {
        if !namespaced && *namespace != "ns1" {
            continue;
        }
        let namespace = place(namespace);
        let before = present.get(&(namespace, *object_name)).cloned();
        let revision = match node {
            Some(node) => {
                let object = with(pod(namespace, object_name), &["spec", "nodeName"], node);
                let written = put(store, object).await;
                present.insert((namespace, *object_name), (*node).to_owned());
                written
            }
            None => {
                let mut check = Always;
                let none = Preconditions::default();
                let deleted = store.delete(namespace, object_name, &none, &mut check).await;
                present.remove(&(namespace, *object_name));
                deleted.expect("deleted").revision
            }
        };
        let wants = |node: Option<&str>| node.is_some_and(|node| wanted.wants(namespace, object_name, node));
        let expected = match (wants(before.as_deref()), wants(*node)) {
            (false, false) => None,
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
        };
        if let Some(kind) = expected {
            let shown = watching.shown(1).await;
            assert_eq!(shown, [format!("{kind} {namespace}/{object_name}@{revision}")], "{wanted:?}");
        }
        let request = ListRequest { name: name.clone(), predicate: Arc::new(wanted), ..list(path) };
        let found = store.list(request).await.expect("a list");
        let found: Vec<(&str, &str)> =
            found.items.iter().map(|item| (item.namespace.as_str(), item.name.as_str())).collect();
        let expected = present.iter().filter(|((namespace, name), node)| wanted.wants(namespace, name, node));
        assert_eq!(found, expected.map(|(key, _)| *key).collect::<Vec<_>>(), "{wanted:?}");
    }
    // Nothing else was sent: the next change is the next event.
    for ((namespace, name), _) in present {
        let none = Preconditions::default();
        store.delete(namespace, name, &none, &mut Always).await.expect("deleted");
    }
}

async fn put(store: &Store, object: Value) -> i64 {
    let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
    let mut replace = Replace(object);
    let none = Preconditions::default();
    store.update(&namespace, &name, &none, true, &mut replace).await.expect("written").revision
}

const SELECTED: [Option<bool>; 3] = [None, Some(true), Some(false)];

// TestClusterScopedWatch
pub(crate) async fn cluster_scoped_watch(world: World) {
    let nodes = world.storage.open(config("", "nodes", Origin::BuiltIn, false)).expect("a store");
    for name in [None, Some("foo1")] {
        for assigned in SELECTED {
            check(&nodes, false, Wanted { in_path: false, namespace: None, name, assigned }).await;
        }
    }
}

// TestNamespaceScopedWatch, TestNamespaceScopedList
pub(crate) async fn namespace_scoped_watch_and_list(world: World) {
    for (in_path, namespace) in [(false, None), (true, Some("ns1")), (false, Some("ns1")), (true, Some("ns"))]
    {
        for name in [None, Some("foo1")] {
            for assigned in SELECTED {
                check(&world.store, true, Wanted { in_path, namespace, name, assigned }).await;
            }
        }
    }
}
