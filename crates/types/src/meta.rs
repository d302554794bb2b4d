//! Reading and writing `apiVersion`, `kind` and `metadata` of a decoded object.

use crate::{Map, Value};

/// A group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct GroupVersionKind {
    /// API group; "" is the core group.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind, such as `Secret`.
    pub kind: String,
}

impl GroupVersionKind {
    /// From its three parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// `v1` for the core group, else `group/version`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

/// `v1` for the core group, else `group/version`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Splits an `apiVersion` into group and version.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// What is read from and written to `metadata`; absent strings read as "".
pub trait Meta {
    /// `apiVersion`.
    fn api_version(&self) -> &str;
    /// `kind`.
    fn kind(&self) -> &str;
    /// Sets `apiVersion` and `kind`.
    fn set_type(&mut self, api_version: &str, kind: &str);
    /// One text field of `metadata`.
    fn meta_str(&self, field: &str) -> &str;
    /// Sets or, when empty, removes one text field of `metadata`.
    fn set_meta_str(&mut self, field: &str, text: &str);
    /// `metadata.name`.
    fn name(&self) -> &str {
        self.meta_str("name")
    }
    /// `metadata.namespace`.
    fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }
    /// `metadata.uid`.
    fn uid(&self) -> &str {
        self.meta_str("uid")
    }
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }
    /// `metadata.deletionTimestamp`, when the object is being deleted.
    fn deletion_timestamp(&self) -> Option<&str>;
    /// `metadata.labels` or an empty map.
    fn labels(&self) -> &Map;
    /// `metadata.annotations` or an empty map.
    fn annotations(&self) -> &Map;
    /// The text of one label.
    fn label(&self, key: &str) -> Option<&str>;
    /// The text of one annotation.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// `metadata.finalizers`.
    fn finalizers(&self) -> Vec<&str>;
    /// `metadata.ownerReferences`.
    fn owner_references(&self) -> &[Value];
}

static EMPTY: Map = Map::new();

impl Meta for Value {
    fn api_version(&self) -> &str {
        self.str_at(&["apiVersion"])
    }

    fn kind(&self) -> &str {
        self.str_at(&["kind"])
    }

    fn set_type(&mut self, api_version: &str, kind: &str) {
        self.set(&["apiVersion"], api_version);
        self.set(&["kind"], kind);
    }

    fn meta_str(&self, field: &str) -> &str {
        self.str_at(&["metadata", field])
    }

    fn set_meta_str(&mut self, field: &str, text: &str) {
        self.set_str(&["metadata", field], text);
    }

    fn deletion_timestamp(&self) -> Option<&str> {
        self.at(&["metadata", "deletionTimestamp"])?.as_str()
    }

    fn labels(&self) -> &Map {
        self.at(&["metadata", "labels"]).and_then(Value::as_object).unwrap_or(&EMPTY)
    }

    fn annotations(&self) -> &Map {
        self.at(&["metadata", "annotations"]).and_then(Value::as_object).unwrap_or(&EMPTY)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key)?.as_str()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations().get(key)?.as_str()
    }

    fn finalizers(&self) -> Vec<&str> {
        self.at(&["metadata", "finalizers"])
            .and_then(Value::as_array)
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_str)
            .collect()
    }

    fn owner_references(&self) -> &[Value] {
        self.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_split_and_join() {
        assert_eq!(split_api_version("v1"), ("", "v1"));
        assert_eq!(split_api_version("apps/v1"), ("apps", "v1"));
        assert_eq!(api_version("", "v1"), "v1");
        assert_eq!(api_version("apps", "v1"), "apps/v1");
    }
}
