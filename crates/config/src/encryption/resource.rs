//! Names of resources, with the wildcards of this configuration.

use std::fmt;

/// A resource and its group; either may be `*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// API group; "" is the core group.
    pub group: String,
    /// Resource (plural).
    pub resource: String,
}

impl GroupResource {
    /// `group` and `resource` as they are.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.to_owned(), resource: resource.to_owned() }
    }

    /// Split at the first dot: `secrets`, `deployments.apps`, `*.`, `*.apps`, `*.*`.
    pub fn parse(text: &str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self::new(group, resource)
    }

    /// Every resource of the same group.
    pub(super) fn any_in_group(&self) -> Self {
        Self::new(&self.group, "*")
    }

    /// Every resource of every group.
    pub(super) fn any() -> Self {
        Self::new("*", "*")
    }
}

impl fmt::Display for GroupResource {
    /// As it is written in the configuration.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.group.as_str(), self.resource.as_str()) {
            ("", "*") => formatter.write_str("*."),
            ("", resource) => formatter.write_str(resource),
            (group, resource) => write!(formatter, "{resource}.{group}"),
        }
    }
}
