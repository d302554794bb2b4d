//! The update of `metadata.managedFields` that comes with every create, update and patch.

use std::collections::BTreeMap;

use crate::fields::compare::{Comparison, Schema, compare};
use crate::fields::set::{Set, SetError};
use crate::meta::Meta;
use crate::validation::field::go_json;
use crate::{Map, Value};

/// Most entries of operation `Update`; older ones are merged into one.
pub const UPDATE_ENTRIES_LIMIT: usize = 10;
/// Who owns what was merged.
const ANCIENT: &str = "ancient-changes";

/// One write.
pub struct Write<'a> {
    /// The type of the object.
    pub schema: Schema<'a>,
    /// The version in which the object was written.
    pub api_version: &'a str,
    /// The subresource that was written, or "".
    pub subresource: &'a str,
    /// Who writes; "" is `unknown`.
    pub manager: &'a str,
    /// The time of the write, RFC 3339 with whole seconds.
    pub time: &'a str,
    /// What this write cannot change (`status`, say), so that nobody comes to own it.
    pub reset: &'a Set,
}

/// Sets `metadata.managedFields` of `new`, which is about to replace `old`
/// (an empty object at creation). Nothing else of `new` changes.
pub fn update(old: &Value, new: &mut Value, write: &Write<'_>) {
    // Entries that cannot be read count as none, as upstream has it.
    let mut managers = Managers::of_write(old, new, write.subresource).unwrap_or_default();
    new.remove(&["metadata", "managedFields"]);
    // An object that is not tracked stays so, unless it is new.
    if !managers.0.is_empty() || old.uid().is_empty() {
        let comparison = compare(write.schema, old, new);
        managers.write(&comparison, write);
        managers.cap();
    }
    if !managers.0.is_empty() {
        let entries = managers.encode();
        new.set(&["metadata", "managedFields"], entries);
    }
}

/// Takes the entries of `old` when `new` differs from it in their times only,
/// so that a write that changes nothing is none.
pub fn ignore_timestamps(new: &mut Value, old: &Value) {
    let path = ["metadata", "managedFields"];
    let timeless = |object: &Value| -> Vec<Value> {
        let entries = object.at(&path).and_then(Value::as_array).unwrap_or_default();
        let mut entries = entries.to_vec();
        for entry in &mut entries {
            entry.remove(&["time"]);
        }
        // Without times the order of two entries may differ.
        entries.sort_by_key(go_json);
        entries
    };
    if timeless(new) != timeless(old) {
        return;
    }
    let rest = |object: &Value| {
        let mut object = object.clone();
        object.remove(&path);
        object.remove(&["metadata", "resourceVersion"]);
        object
    };
    if rest(new) == rest(old)
        && let Some(entries) = old.at(&path)
    {
        new.set(&path, entries.clone());
    }
}

/// What one manager owns.
#[derive(Debug, Clone)]
struct Owned {
    /// The entry without its fields and time.
    entry: Identity,
    set: Set,
    api_version: String,
    time: Option<String>,
}

/// Who an entry belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    manager: String,
    applied: bool,
    api_version: String,
    subresource: String,
}

impl Identity {
    /// The text by which upstream tells managers apart, and orders those of one time.
    fn key(&self) -> String {
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
}

#[derive(Debug, Clone, Default)]
struct Managers(BTreeMap<String, Owned>);

impl Managers {
    /// The entries that a write starts from: the request's own, or the stored ones.
    fn of_write(old: &Value, new: &Value, subresource: &str) -> Result<Self, SetError> {
        let path = ["metadata", "managedFields"];
        let stored = || Self::decode(old.at(&path).and_then(Value::as_array).unwrap_or_default());
        if !subresource.is_empty() {
            return stored();
        }
        let requested = new.at(&path).and_then(Value::as_array);
        match requested {
            // An empty list, or one empty entry, means: forget who owns what.
            Some([]) => return Ok(Self::default()),
            Some([only]) if only.as_object().is_some_and(Map::is_empty) => return Ok(Self::default()),
            _ => {}
        }
        match Self::decode(requested.unwrap_or_default()) {
            Ok(managers) if !managers.0.is_empty() => Ok(managers),
            _ => stored(),
        }
    }

    fn decode(entries: &[Value]) -> Result<Self, SetError> {
        let mut managers = BTreeMap::new();
        for entry in entries {
            let applied = match entry.str_at(&["operation"]) {
                "Apply" => true,
                "Update" => false,
                _ => return Err(SetError::entry()),
            };
            let api_version = entry.str_at(&["apiVersion"]).to_owned();
            if api_version.is_empty() || entry.str_at(&["fieldsType"]) != "FieldsV1" {
                return Err(SetError::entry());
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
            managers.insert(identity.key(), Owned { entry: identity, set, api_version, time });
        }
        Ok(Self(managers))
    }

    /// Moves the ownership of what changed.
    fn write(&mut self, comparison: &Comparison, write: &Write<'_>) {
        let kept = |set: &Set| set.recursive_difference(write.reset);
        let (removed, changed) =
            (kept(&comparison.removed), kept(&comparison.modified.union(&comparison.added)));
        for owned in self.0.values_mut() {
            owned.set = owned.set.difference(&changed).difference(&removed);
        }
        self.0.retain(|_, owned| !owned.set.is_empty());

        let gained = kept(&changed).difference(&never_owned());
        if gained.is_empty() {
            return;
        }
        let identity = Identity {
            manager: if write.manager.is_empty() { "unknown" } else { write.manager }.to_owned(),
            applied: false,
            api_version: write.api_version.to_owned(),
            subresource: write.subresource.to_owned(),
        };
        let key = identity.key();
        let set = match self.0.get(&key) {
            Some(previous) => gained.union(&previous.set),
            None => gained,
        };
        let api_version = write.api_version.to_owned();
        let time = Some(write.time.to_owned());
        self.0.insert(key, Owned { entry: identity, set, api_version, time });
    }

    /// Merges the oldest updaters of one version into one, until there are few enough.
    fn cap(&mut self) {
        let mut updaters: Vec<(String, String)> = self
            .0
            .iter()
            .filter(|(_, owned)| !owned.entry.applied)
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
                self.0.insert(bucket_key.clone(), Owned { entry: bucket, ..first });
            }
            if let Some(merged) = self.0.get_mut(&bucket_key) {
                merged.set = owned.set.union(&merged.set);
                merged.time = (!time.is_empty()).then_some(time);
            }
            self.0.remove(&key);
            count -= 1;
        }
    }

    /// The entries in upstream's order: appliers first, then by time, manager, version and subresource.
    fn encode(self) -> Vec<Value> {
        let mut all: Vec<Owned> = self.0.into_values().collect();
        all.sort_by(|left, right| {
            let key = |owned: &Owned| {
                (
                    !owned.entry.applied,
                    owned.time.clone().unwrap_or_default(),
                    owned.entry.manager.clone(),
                    owned.api_version.clone(),
                    owned.entry.subresource.clone(),
                )
            };
            key(left).cmp(&key(right))
        });
        all.into_iter().map(Owned::encode).collect()
    }
}

impl Owned {
    fn encode(self) -> Value {
        let operation = if self.entry.applied { "Apply" } else { "Update" };
        let mut entry = Value::from([("operation", operation), ("fieldsType", "FieldsV1")]);
        entry.set_str(&["manager"], &self.entry.manager);
        entry.set_str(&["apiVersion"], &self.api_version);
        entry.set_str(&["time"], &self.time.unwrap_or_default());
        entry.set_str(&["subresource"], &self.entry.subresource);
        entry.set(&["fieldsV1"], self.set.to_value());
        entry
    }
}

/// What nobody owns: the identity of the object and what the server keeps about it.
fn never_owned() -> Set {
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
}
