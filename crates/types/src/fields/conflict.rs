//! What stands in the way of an apply, in upstream's words.

use std::collections::BTreeMap;
use std::fmt;

use crate::fields::element::{PathElement, path_text};
use crate::fields::managers::Identity;
use crate::fields::set::Set;

/// A field that somebody else owns and that would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub(crate) owner: Identity,
    pub(crate) path: Vec<PathElement>,
}

impl Conflict {
    /// `conflict with "kubectl" using v1`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.owner.shown())
    }

    /// The field's path.
    pub fn field(&self) -> String {
        path_text(&self.path)
    }
}

/// All of them, by owner and path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    /// The fields.
    pub(crate) fn paths(&self) -> Set {
        let mut paths: Vec<_> = self.0.iter().map(|conflict| &conflict.path).collect();
        paths.sort();
        let mut set = Set::default();
        for path in paths {
            set.insert(path);
        }
        set
    }

    /// Those whose fields are not in `allowed`.
    pub(crate) fn except(self, allowed: &Set) -> Self {
        Self(self.0.into_iter().filter(|conflict| !allowed.contains(&conflict.path)).collect())
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(
                formatter,
                "Apply failed with 1 conflict: conflict with {}: {}",
                only.owner.shown(),
                only.field()
            );
        }
        let mut by_owner: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
        for conflict in &self.0 {
            let owner = by_owner.entry(conflict.owner.key()).or_default();
            owner.0 = conflict.owner.shown();
            owner.1.push(conflict.field());
        }
        let lines: Vec<String> = by_owner
            .into_values()
            .flat_map(|(owner, fields)| {
                let fields = fields.into_iter().map(|field| format!("- {field}"));
                std::iter::once(format!("conflicts with {owner}:")).chain(fields)
            })
            .collect();
        write!(formatter, "Apply failed with {} conflicts: {}", self.0.len(), lines.join("\n"))
    }
}
