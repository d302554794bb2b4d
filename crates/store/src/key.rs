//! Where an object lies in etcd.
//!
//! `<prefix>/<resource path>/[<namespace>/]<name>`, as upstream lays it out. A
//! [`KeySpace`] belongs to one resource, and nothing that it hands out can point
//! outside of that resource: namespaces and names become keys only through
//! [`Segment`], which refuses whatever could climb or descend the path.

use std::cmp::Ordering;
use std::fmt;

use bytes::Bytes;
use coffer_types::Status;
use coffer_types::validation::field::go_quote;

use crate::kv::prefix_end;

/// `--etcd-prefix` where none is given.
pub const DEFAULT_PREFIX: &str = "/registry";

/// Built-in resources whose path is not their plural.
const IRREGULAR: [(&str, &str, &str); 6] = [
    ("", "replicationcontrollers", "controllers"),
    ("", "endpoints", "services/endpoints"),
    ("", "nodes", "minions"),
    ("", "services", "services/specs"),
    ("networking.k8s.io", "ingresses", "ingress"),
    ("extensions", "ingresses", "ingress"),
];

/// Who defines a resource, which decides whether its group is part of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The API server itself: the group is dropped.
    BuiltIn,
    /// A CustomResourceDefinition, or one of the kinds that came later (CRDs, APIServices): `<group>/<plural>`.
    Extension,
}

/// Why something is not part of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no name.
    #[error("Name parameter required.")]
    NameRequired,
    /// There is no namespace.
    #[error("Namespace parameter required.")]
    NamespaceRequired,
    /// The name cannot be a path segment.
    #[error("Name parameter invalid: {}: {reason}", go_quote(.text))]
    InvalidName {
        /// The name.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The namespace cannot be a path segment.
    #[error("Namespace parameter invalid: {}: {reason}", go_quote(.text))]
    InvalidNamespace {
        /// The namespace.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Group or plural cannot be part of a path, or the group could be taken for a built-in resource.
    #[error("invalid resource path: {}", go_quote(.0))]
    InvalidResource(String),
}

impl From<KeyError> for Status {
    fn from(error: KeyError) -> Self {
        Status::bad_request(error.to_string())
    }
}

/// A namespace or name that is exactly one segment of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a>(&'a str);

impl<'a> Segment<'a> {
    /// Checks `text`; the error says what is wrong, in upstream's words.
    pub fn new(text: &'a str) -> Result<Self, String> {
        let mut reasons = Vec::new();
        if text.is_empty() {
            reasons.push("may not be empty".to_owned());
        }
        if let Some(illegal) = [".", ".."].into_iter().find(|illegal| text == *illegal) {
            reasons.push(format!("may not be '{illegal}'"));
        }
        for illegal in ['/', '%', '\0'] {
            if text.contains(illegal) {
                reasons.push(format!("may not contain '{}'", illegal.escape_default()));
            }
        }
        if reasons.is_empty() { Ok(Self(text)) } else { Err(reasons.join(";")) }
    }

    /// The text.
    pub fn as_str(self) -> &'a str {
        self.0
    }
}

/// The full key of one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    bytes: Bytes,
    /// Where the part after the resource's root begins.
    tail: usize,
}

impl ObjectKey {
    /// The key in etcd.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// What values are bound to when they are encrypted: the same bytes.
    pub fn context(&self) -> &[u8] {
        &self.bytes
    }

    /// `<namespace>/<name>` or `<name>`.
    pub fn tail(&self) -> &[u8] {
        &self.bytes[self.tail..]
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.bytes))
    }
}

/// All keys of a resource, or of one namespace of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key; ends with `/`.
    pub start: Bytes,
    /// The first key past the end.
    pub end: Bytes,
    /// Where the part after the resource's root begins.
    tail: usize,
}

impl KeyRange {
    /// `start` without the resource's root: "" or `<namespace>/`.
    pub fn tail(&self) -> &[u8] {
        &self.start[self.tail..]
    }
}

/// The keys of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpace {
    /// `/registry/secrets/`.
    root: String,
    /// Length of `/registry`, without its trailing slash.
    prefix: usize,
    namespaced: bool,
}

impl KeySpace {
    /// `etcd_prefix` is cleaned as upstream does: one `/` at both ends, none doubled.
    pub fn new(
        etcd_prefix: &str,
        group: &str,
        resource: &str,
        origin: Origin,
        namespaced: bool,
    ) -> Result<Self, KeyError> {
        let mut root = clean_prefix(etcd_prefix)?;
        let prefix = root.len() - 1;
        root.push_str(&resource_path(group, resource, origin)?);
        root.push('/');
        Ok(Self { root, prefix, namespaced })
    }

    /// Whether the objects live in namespaces.
    pub fn namespaced(&self) -> bool {
        self.namespaced
    }

    /// `/registry/secrets/`.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// `/registry/secrets`: what upstream reads to learn the current revision.
    pub fn root_without_slash(&self) -> Bytes {
        Bytes::copy_from_slice(self.root.trim_end_matches('/').as_bytes())
    }

    /// The key of one object.
    pub fn object(&self, namespace: &str, name: &str) -> Result<ObjectKey, KeyError> {
        let namespace = self.namespace(namespace)?;
        if self.namespaced && namespace.is_none() {
            return Err(KeyError::NamespaceRequired);
        }
        if name.is_empty() {
            return Err(KeyError::NameRequired);
        }
        let name =
            Segment::new(name).map_err(|reason| KeyError::InvalidName { text: name.to_owned(), reason })?;
        let mut key = self.root.clone();
        if let Some(namespace) = namespace {
            key.push_str(namespace.as_str());
            key.push('/');
        }
        key.push_str(name.as_str());
        Ok(ObjectKey { bytes: Bytes::from(key), tail: self.root.len() })
    }

    /// The keys of one namespace, or of all when `namespace` is "".
    pub fn range(&self, namespace: &str) -> Result<KeyRange, KeyError> {
        let mut start = self.root.clone();
        if let Some(namespace) = self.namespace(namespace)? {
            start.push_str(namespace.as_str());
            start.push('/');
        }
        let start = Bytes::from(start);
        Ok(KeyRange { end: prefix_end(&start), start, tail: self.root.len() })
    }

    /// Namespace and name of a key of this resource; whatever lies there, since others may write it too.
    pub fn split<'k>(&self, key: &'k [u8]) -> Option<(&'k str, &'k str)> {
        let tail = std::str::from_utf8(key.strip_prefix(self.root.as_bytes())?).ok()?;
        Some(match tail.split_once('/') {
            Some((namespace, name)) if self.namespaced => (namespace, name),
            _ => ("", tail),
        })
    }

    /// The key as upstream's errors on reads show it: without the etcd prefix.
    pub fn relative<'k>(&self, key: &'k ObjectKey) -> std::borrow::Cow<'k, str> {
        String::from_utf8_lossy(&key.bytes[self.prefix..])
    }

    /// `None` for a cluster-scoped resource, or when all namespaces are meant.
    fn namespace<'n>(&self, namespace: &'n str) -> Result<Option<Segment<'n>>, KeyError> {
        if namespace.is_empty() {
            return Ok(None);
        }
        let segment = Segment::new(namespace)
            .map_err(|reason| KeyError::InvalidNamespace { text: namespace.to_owned(), reason })?;
        if self.namespaced {
            Ok(Some(segment))
        } else {
            // A namespace would become a level of the path that cluster-scoped resources do not have.
            Err(KeyError::InvalidNamespace {
                text: namespace.to_owned(),
                reason: "the resource is not namespaced".to_owned(),
            })
        }
    }
}

/// Compares `<namespace>/<name>` with a tail without building it.
pub(crate) fn compare_tail(namespace: &str, name: &str, tail: &[u8]) -> Ordering {
    let namespace = namespace.as_bytes();
    if namespace.is_empty() {
        return name.as_bytes().cmp(tail);
    }
    let common = namespace.len().min(tail.len());
    namespace[..common].cmp(&tail[..common]).then_with(|| match tail.get(common) {
        // The tail ends within the namespace: the longer one is greater.
        None => Ordering::Greater,
        Some(next) => b'/'.cmp(next).then_with(|| name.as_bytes().cmp(&tail[common + 1..])),
    })
}

/// `<namespace>/<name>` or `<name>`.
pub(crate) fn tail_of(namespace: &str, name: &str) -> Vec<u8> {
    let mut tail = Vec::with_capacity(namespace.len() + name.len() + 1);
    if !namespace.is_empty() {
        tail.extend_from_slice(namespace.as_bytes());
        tail.push(b'/');
    }
    tail.extend_from_slice(name.as_bytes());
    tail
}

/// Where a resource lies below the etcd prefix, without slashes at the ends.
pub fn resource_path(group: &str, resource: &str, origin: Origin) -> Result<String, KeyError> {
    let invalid = || KeyError::InvalidResource(format!("{group}/{resource}"));
    Segment::new(resource).map_err(|_| invalid())?;
    if !group.is_empty() {
        Segment::new(group).map_err(|_| invalid())?;
    }
    match origin {
        Origin::BuiltIn => Ok(IRREGULAR
            .iter()
            .find(|(its_group, its_resource, _)| *its_group == group && *its_resource == resource)
            .map_or_else(|| resource.to_lowercase(), |(_, _, path)| (*path).to_owned())),
        // Without a dot the group could be the path of a built-in resource, whose objects the
        // extension would then share.
        Origin::Extension if group.contains('.') => Ok(format!("{group}/{resource}")),
        Origin::Extension => Err(invalid()),
    }
}

/// `--etcd-prefix` as upstream cleans it, with one `/` at both ends: `custom//prefix//` → `/custom/prefix/`.
pub fn clean_prefix(prefix: &str) -> Result<String, KeyError> {
    let mut cleaned = String::from("/");
    for segment in prefix.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
        Segment::new(segment).map_err(|_| KeyError::InvalidResource(prefix.to_owned()))?;
        cleaned.push_str(segment);
        cleaned.push('/');
    }
    Ok(cleaned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(
        prefix: &str,
        group: &str,
        resource: &str,
        origin: Origin,
        ns: &str,
        name: &str,
        expected: &str,
    ) {
        let space = KeySpace::new(prefix, group, resource, origin, !ns.is_empty()).expect("a key space");
        assert_eq!(space.object(ns, name).expect("a key").to_string(), expected);
    }

    #[test]
    fn keys_lie_where_upstream_puts_them() {
        use Origin::{BuiltIn, Extension};
        check("/registry", "", "secrets", BuiltIn, "default", "s1", "/registry/secrets/default/s1");
        check("registry", "", "namespaces", BuiltIn, "", "default", "/registry/namespaces/default");
        check("/registry", "", "nodes", BuiltIn, "", "n1", "/registry/minions/n1");
        check("/registry", "", "services", BuiltIn, "a", "b", "/registry/services/specs/a/b");
        check("/registry", "", "endpoints", BuiltIn, "a", "b", "/registry/services/endpoints/a/b");
        check("/registry", "", "replicationcontrollers", BuiltIn, "a", "b", "/registry/controllers/a/b");
        check("/registry", "networking.k8s.io", "ingresses", BuiltIn, "a", "b", "/registry/ingress/a/b");
        check("/registry", "apps", "deployments", BuiltIn, "a", "b", "/registry/deployments/a/b");
        check("/registry", "coordination.k8s.io", "leases", BuiltIn, "a", "b", "/registry/leases/a/b");
        check(
            "/registry",
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            Extension,
            "",
            "pandas.awesome.bears.com",
            "/registry/apiextensions.k8s.io/customresourcedefinitions/pandas.awesome.bears.com",
        );
        check(
            "/registry",
            "external-secrets.io",
            "externalsecrets",
            Extension,
            "ns",
            "db",
            "/registry/external-secrets.io/externalsecrets/ns/db",
        );
    }

    // TestPrefix
    #[test]
    fn prefixes_are_cleaned() {
        for (prefix, expected) in [
            ("custom/prefix", "/custom/prefix/secrets/"),
            ("/custom//prefix//", "/custom/prefix/secrets/"),
            ("/registry", "/registry/secrets/"),
        ] {
            let space = KeySpace::new(prefix, "", "secrets", Origin::BuiltIn, true).expect("a key space");
            assert_eq!(space.root(), expected, "{prefix}");
        }
        assert!(KeySpace::new("/a/../b", "", "secrets", Origin::BuiltIn, true).is_err());
    }

    // S3: names with path parts never become keys.
    #[test]
    fn s3_hostile_names_are_refused() {
        let space = KeySpace::new("/registry", "", "secrets", Origin::BuiltIn, true).expect("a key space");
        for (name, expected) in [
            ("", "Name parameter required."),
            (".", r#"Name parameter invalid: ".": may not be '.'"#),
            ("..", r#"Name parameter invalid: "..": may not be '..'"#),
            ("a/b", r#"Name parameter invalid: "a/b": may not contain '/'"#),
            ("../x", r#"Name parameter invalid: "../x": may not contain '/'"#),
            ("%2e%2e", r#"Name parameter invalid: "%2e%2e": may not contain '%'"#),
            ("/%", r#"Name parameter invalid: "/%": may not contain '/';may not contain '%'"#),
        ] {
            assert_eq!(space.object("default", name).expect_err(name).to_string(), expected);
        }
        assert_eq!(space.object("", "x").expect_err("no namespace"), KeyError::NamespaceRequired);
    }

    // S1: no namespace reaches a sibling resource.
    #[test]
    fn s1_hostile_namespaces_are_refused() {
        for resource in ["widgets", "widgetsx"] {
            let space = KeySpace::new("/registry", "acme.example", resource, Origin::Extension, true)
                .expect("a key space");
            for namespace in [".", "..", "%2e%2e", "a/b", "../widgetsx", "/"] {
                assert!(space.range(namespace).is_err(), "{namespace}");
                assert!(space.object(namespace, "x").is_err(), "{namespace}");
            }
            let all = space.range("").expect("all namespaces");
            assert_eq!(all.start, format!("/registry/acme.example/{resource}/"));
            assert_eq!(all.end, format!("/registry/acme.example/{resource}0"));
        }
        // An extension cannot lie over a built-in resource.
        assert!(KeySpace::new("/registry", "secrets", "default", Origin::Extension, true).is_err());
        let cluster = KeySpace::new("/registry", "", "nodes", Origin::BuiltIn, false).expect("a key space");
        assert!(cluster.range("x").is_err());
    }

    proptest! {
        #[test]
        fn s1_s39_every_key_stays_inside_its_resource(
            group in "([a-z./%]{0,6}\\.)?[a-z./%]{0,6}",
            resource in "[a-z./%]{0,6}",
            namespace in "[a-z./%\\x00]{0,6}",
            name in "\\PC{0,6}|[./%]{0,3}",
            namespaced in any::<bool>(),
        ) {
            for origin in [Origin::BuiltIn, Origin::Extension] {
                let Ok(space) = KeySpace::new("/registry", &group, &resource, origin, namespaced) else {
                    continue;
                };
                prop_assert!(space.root().starts_with("/registry/") && space.root().ends_with('/'));
                prop_assert!(space.root().len() > "/registry/".len() + 1);
                prop_assert!(!space.root().split('/').any(|part| part == ".." || part == "."));
                if let Ok(range) = space.range(&namespace) {
                    prop_assert!(range.start.starts_with(space.root().as_bytes()));
                    prop_assert!(range.start.ends_with(b"/"));
                    prop_assert_eq!(&range.end, &prefix_end(&range.start));
                    // Never open-ended: the first key past all keys is still below the etcd prefix.
                    prop_assert!(range.end.starts_with(b"/registry/") && range.start < range.end);
                }
                if let Ok(key) = space.object(&namespace, &name) {
                    let parts = if namespaced { 2 } else { 1 };
                    prop_assert!(key.bytes().starts_with(space.root().as_bytes()));
                    prop_assert_eq!(key.tail().split(|byte| *byte == b'/').count(), parts);
                    let expected = (if namespaced { namespace.as_str() } else { "" }, name.as_str());
                    prop_assert_eq!(space.split(key.context()), Some(expected));
                }
            }
        }

        #[test]
        fn tails_compare_as_their_bytes(
            namespace in "[a-c/.-]{0,3}", name in "[a-c/.-]{0,3}", tail in "[a-c/.-]{0,6}",
        ) {
            prop_assert_eq!(
                compare_tail(&namespace, &name, tail.as_bytes()),
                tail_of(&namespace, &name).as_slice().cmp(tail.as_bytes())
            );
        }
    }
}
