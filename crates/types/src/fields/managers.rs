//! Who owns what: the entries of `metadata.managedFields`, decoded.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::fields::error::SetError;
use crate::fields::set::Set;
use crate::meta::Meta as _;
use crate::validation::field::{go_json, go_quote};
use crate::{Map, Value};

/// Most entries of operation `Update`; older ones are merged into one.
pub const UPDATE_ENTRIES_LIMIT: usize = 10;
/// Who owns what was merged.
const ANCIENT: &str = "ancient-changes";
/// Where the entries are.
pub(crate) const PATH: [&str; 2] = ["metadata", "managedFields"];

/// Who an entry belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) manager: String,
    pub(crate) applied: bool,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl Identity {
    /// The text by which upstream tells managers apart, and orders those of one time.
    pub(crate) fn key(&self) -> String {
        let mut parts = Vec::new();
        let mut add = |name: &str, text: &str| {
            if !text.is_empty() {
                parts.push(format!("\"{name}\":{}", go_json(&text.into())));
            }
        };
        add("manager", &self.manager);
        add("operation", if self.applied { "Apply" } else { "Update" });
        // An applier keeps its entry across versions.
        add("apiVersion", if self.applied { "" } else { &self.api_version });
        add("subresource", &self.subresource);
        format!("{{{}}}", parts.join(","))
    }

    /// As a conflict names it.
    pub(crate) fn shown(&self) -> String {
        let mut text = go_quote(&self.manager);
        if !self.subresource.is_empty() {
            text += &format!(" with subresource {}", go_quote(&self.subresource));
        }
        if !self.applied {
            text += &format!(" using {}", self.api_version);
        }
        text
    }
}

/// What one manager owns.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    pub(crate) identity: Identity,
    pub(crate) set: Set,
    /// The version in which the set is.
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
}

/// The managers of one object, by [`Identity::key`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Managers(pub(crate) BTreeMap<String, Owned>);

impl Managers {
    /// The entries that a write starts from: the request's own, or the stored ones. Those that cannot
    /// be read count as none.
    pub(crate) fn of_write(old: &Value, new: &Value, subresource: &str) -> Self {
        let stored = || Self::of(old).unwrap_or_default();
        if !subresource.is_empty() {
            return stored();
        }
        let requested = new.at(&PATH).and_then(Value::as_array);
        match requested {
            // An empty list, or one empty entry, means: forget who owns what.
            Some([]) => return Self::default(),
            Some([only]) if only.as_object().is_some_and(Map::is_empty) => return Self::default(),
            _ => {}
        }
        match Self::decode(requested.unwrap_or_default()) {
            Ok(managers) if !managers.0.is_empty() => managers,
            _ => stored(),
        }
    }

    /// The entries of an object.
    pub(crate) fn of(object: &Value) -> Result<Self, SetError> {
        Self::decode(object.at(&PATH).and_then(Value::as_array).unwrap_or_default())
    }

    fn decode(entries: &[Value]) -> Result<Self, SetError> {
        let mut managers = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate() {
            let owned = Owned::decode(index, entry)?;
            managers.insert(owned.identity.key(), owned);
        }
        Ok(Self(managers))
    }

    /// Merges the oldest updaters of one version into one, until there are few enough.
    pub(crate) fn cap(&mut self) {
        let mut updaters: Vec<(String, String)> = self
            .0
            .iter()
            .filter(|(_, owned)| !owned.identity.applied)
            .map(|(key, owned)| (owned.time.clone().unwrap_or_default(), key.clone()))
            .collect();
        let mut count = updaters.len();
        updaters.sort();
        let mut first_of: BTreeMap<String, String> = BTreeMap::new();
        for (time, key) in updaters {
            if count <= UPDATE_ENTRIES_LIMIT {
                return;
            }
            let Some(owned) = self.0.get(&key).cloned() else { continue };
            let version = owned.api_version.clone();
            let bucket = Identity {
                manager: ANCIENT.to_owned(),
                applied: false,
                api_version: version.clone(),
                subresource: String::new(),
            };
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, key);
                continue;
            };
            let bucket_key = bucket.key();
            if !self.0.contains_key(&bucket_key)
                && let Some(first) = self.0.remove(first)
            {
                self.0.insert(bucket_key.clone(), Owned { identity: bucket, ..first });
            }
            if let Some(merged) = self.0.get_mut(&bucket_key) {
                merged.set = owned.set.union(&merged.set);
                merged.time = (!time.is_empty()).then_some(time);
            }
            self.0.remove(&key);
            count -= 1;
        }
    }

    /// Writes the entries into an object, in upstream's order: appliers first, then by time, manager,
    /// version and subresource.
    pub(crate) fn write_to(self, object: &mut Value) {
        object.remove(&PATH);
        if self.0.is_empty() {
            return;
        }
        let mut all: Vec<Owned> = self.0.into_values().collect();
        all.sort_by(|left, right| left.order().cmp(&right.order()));
        object.set(&PATH, all.into_iter().map(Owned::encode).collect::<Vec<_>>());
    }
}

impl Owned {
    fn decode(index: usize, entry: &Value) -> Result<Self, SetError> {
        let applied = match entry.str_at(&["operation"]) {
            "Apply" => true,
            "Update" => false,
            _ => return Err(SetError::new("operation must be `Apply` or `Update`")),
        };
        let api_version = entry.str_at(&["apiVersion"]).to_owned();
        if api_version.is_empty() {
            return Err(SetError::new("apiVersion must not be empty"));
        }
        match entry.str_at(&["fieldsType"]) {
            "FieldsV1" => {}
            "" => return Err(SetError::new(format!("missing fieldsType in managed fields entry {index}"))),
            other => {
                return Err(SetError::new(format!(
                    "invalid fieldsType {} in managed fields entry {index}",
                    go_quote(other)
                )));
            }
        }
        let set = match entry.get("fieldsV1").filter(|fields| !fields.is_null()) {
            Some(fields) => Set::from_value(fields)?,
            None => Set::default(),
        };
        let identity = Identity {
            manager: entry.str_at(&["manager"]).to_owned(),
            applied,
            api_version: api_version.clone(),
            subresource: entry.str_at(&["subresource"]).to_owned(),
        };
        let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { identity, set, api_version, time })
    }

    fn encode(self) -> Value {
        let operation = if self.identity.applied { "Apply" } else { "Update" };
        let mut entry = Value::from([("operation", operation), ("fieldsType", "FieldsV1")]);
        entry.set_str(&["manager"], &self.identity.manager);
        entry.set_str(&["apiVersion"], &self.api_version);
        entry.set_str(&["time"], &self.time.unwrap_or_default());
        entry.set_str(&["subresource"], &self.identity.subresource);
        entry.set(&["fieldsV1"], self.set.to_value());
        entry
    }

    fn order(&self) -> (bool, &str, &str, &str, &str) {
        (
            !self.identity.applied,
            self.time.as_deref().unwrap_or_default(),
            &self.identity.manager,
            &self.api_version,
            &self.identity.subresource,
        )
    }
}

/// What nobody owns: the identity of the object and what the server keeps about it.
pub(crate) fn never_owned() -> &'static Set {
    static NEVER_OWNED: LazyLock<Set> = LazyLock::new(|| {
        Set::of_fields(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    });
    &NEVER_OWNED
}

/// Takes the entries of `old` when `new` differs from it in their times only,
/// so that a write that changes nothing is none.
pub fn ignore_timestamps(new: &mut Value, old: &Value) {
    if !are_same_but_for_times(entries_of(new), entries_of(old)) || !is_same_beside_entries(new, old) {
        return;
    }
    if let Some(entries) = old.at(&PATH) {
        new.set(&PATH, entries.clone());
    }
}

fn entries_of(object: &Value) -> &[Value] {
    object.at(&PATH).and_then(Value::as_array).unwrap_or_default()
}

/// Without times the order of two entries may differ.
fn are_same_but_for_times(new: &[Value], old: &[Value]) -> bool {
    let mut left: Vec<&Value> = old.iter().collect();
    new.len() == old.len()
        && new.iter().all(|entry| {
            let same = |other: &&Value| match (entry, other) {
                (Value::Object(entry), Value::Object(other)) => are_same_beside(entry, other, &["time"]),
                _ => entry == *other,
            };
            left.iter().position(same).map(|index| left.swap_remove(index)).is_some()
        })
}

fn is_same_beside_entries(new: &Value, old: &Value) -> bool {
    let (Value::Object(new), Value::Object(old)) = (new, old) else { return new == old };
    let same_metadata = match (new.get("metadata"), old.get("metadata")) {
        (Some(Value::Object(new)), Some(Value::Object(old))) => {
            are_same_beside(new, old, &["managedFields", "resourceVersion"])
        }
        (new, old) => new == old,
    };
    same_metadata && are_same_beside(new, old, &["metadata"])
}

/// Whether two objects have the same members, whatever the ones of these names are.
fn are_same_beside(left: &Map, right: &Map, names: &[&str]) -> bool {
    let other = |(name, _): &(&String, &Value)| !names.contains(&name.as_str());
    left.iter().filter(other).eq(right.iter().filter(other))
}

/// Whether the entries of an object can be read, in upstream's words.
pub fn check(object: &Value) -> Result<(), SetError> {
    Managers::of(object).map(drop)
}

/// The version of an object, as a manager's entry names it.
pub(crate) fn version_of(object: &Value) -> &str {
    object.api_version()
}
