//! Managed fields of a `scale` subresource, made of those of its object and brought back into them.
//!
//! A Scale knows one field of the object: the wanted number. Upstream compares managers by text, and an
//! updater's text has the version in it; so an entry that was written as a Scale has no time.

use std::collections::BTreeMap;

use crate::Value;
use crate::fields::element::PathElement;
use crate::fields::error::SetError;
use crate::fields::managers::{Managers, Owned};
use crate::fields::set::Set;

/// The version of a Scale.
const SCALE: &str = "autoscaling/v1";

/// Where the wanted number is, in each version of an object; `None` where the version has no scale.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicasPaths(BTreeMap<String, Option<Vec<PathElement>>>);

impl ReplicasPaths {
    /// Adds a version with the names of the fields on the way.
    pub fn insert(&mut self, api_version: String, names: Option<&[String]>) {
        let path = names.map(|names| names.iter().map(|name| PathElement::field(name)).collect());
        self.0.insert(api_version, path);
    }

    /// Gives a Scale the entries of the object that own the wanted number.
    pub fn to_scale(&self, object: &Value, scale: &mut Value) -> Result<(), SetError> {
        let mut owners = Managers::default();
        for (key, owned) in Managers::of(object)?.0 {
            let Some(Some(path)) = self.0.get(&owned.api_version) else { continue };
            if owned.set.contains(path) {
                owners.0.insert(key, Owned { set: in_scale(), api_version: SCALE.to_owned(), ..owned });
            }
        }
        owners.write_to(scale);
        Ok(())
    }

    /// Brings the entries of a Scale back into the object, which is in `api_version`.
    pub fn to_object(&self, scale: &Value, object: &mut Value, api_version: &str) -> Result<(), SetError> {
        let stored = Managers::of(object)?;
        let mut owners = Managers::of(scale)?.0;
        let mut all = Managers::default();
        for (key, owned) in &stored.0 {
            // Who wrote in a version that is gone owns nothing.
            let Some(path) = self.0.get(&owned.api_version) else { continue };
            let Some(path) = path.as_ref().filter(|path| owned.set.contains(path)) else {
                all.0.insert(key.clone(), owned.clone());
                continue;
            };
            if owners.remove(key).is_some() {
                all.0.insert(key.clone(), owned.clone());
                continue;
            }
            let mut lost = Set::default();
            lost.insert(path);
            let set = owned.set.difference(&lost);
            if !set.is_empty() {
                all.0.insert(key.clone(), Owned { set, ..owned.clone() });
            }
        }
        let own = self.0.get(api_version).and_then(Option::as_ref);
        let replicas = [PathElement::field("spec"), PathElement::field("replicas")];
        for (key, owned) in owners {
            let (true, Some(path)) = (owned.set.contains(&replicas), own) else { continue };
            let mut set = Set::default();
            set.insert(path);
            let time = stored.0.get(&key).and_then(|stored| stored.time.clone());
            all.0.insert(key, Owned { set, api_version: api_version.to_owned(), time, ..owned });
        }
        all.write_to(object);
        Ok(())
    }
}

fn in_scale() -> Set {
    Set::of_fields(&[&["spec", "replicas"]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::json;

    /// Operation, manager, version, subresource, fields; a time where one is named.
    type Entry = (&'static str, &'static str, &'static str, &'static str, &'static str);

    const REPLICAS: &str = r#"{"f:spec":{"f:replicas":{}}}"#;
    const BOTH: &str = r#"{"f:spec":{"f:replicas":{},"f:selector":{}}}"#;
    const SELECTOR: &str = r#"{"f:spec":{"f:selector":{}}}"#;

    fn with(entries: &[Entry]) -> Value {
        let entries: Vec<Value> = entries
            .iter()
            .map(|(operation, manager, version, subresource, fields)| {
                let (manager, time) = manager.split_once('@').unwrap_or((manager, ""));
                let mut entry = Value::from([
                    ("manager", manager),
                    ("operation", *operation),
                    ("apiVersion", *version),
                    ("fieldsType", "FieldsV1"),
                ]);
                entry.set_str(&["subresource"], subresource);
                entry.set_str(&["time"], time);
                let fields = json::decode_untyped(fields.as_bytes()).expect("JSON").object;
                entry.set(&["fieldsV1"], fields);
                entry
            })
            .collect();
        let mut object = Value::object();
        if !entries.is_empty() {
            object.set(&["metadata", "managedFields"], entries);
        }
        object
    }

    fn paths(all: &[(&str, Option<&str>)]) -> ReplicasPaths {
        let mut paths = ReplicasPaths::default();
        for (version, path) in all {
            let names = path.map(|path| path.split('.').map(str::to_owned).collect::<Vec<_>>());
            paths.insert((*version).to_owned(), names.as_deref());
        }
        paths
    }

    /// Cases of upstream's TestTransformManagedFieldsToSubresource.
    #[test]
    fn a_scale_has_the_owners_of_the_number() {
        let check = |object: &[Entry], expected: &[Entry]| {
            let mut scale = Value::object();
            let paths = paths(&[("apps/v1", Some("spec.replicas"))]);
            paths.to_scale(&with(object), &mut scale).expect("readable");
            assert!(scale == with(expected), "{object:?}");
        };
        check(
            &[
                ("Apply", "manager-1", "apps/v1", "", r#"{"f:spec":{"f:another-field":{}}}"#),
                ("Apply", "manager-2@2013-02-03T00:00:00Z", "apps/v1", "", REPLICAS),
            ],
            &[("Apply", "manager-2@2013-02-03T00:00:00Z", SCALE, "", REPLICAS)],
        );
        check(
            &[
                ("Apply", "manager-1", "apps/v1", "", REPLICAS),
                ("Apply", "manager-2", "apps/v1", "", REPLICAS),
                ("Apply", "manager-3", "apps/v1", "scale", REPLICAS),
            ],
            &[
                ("Apply", "manager-1", SCALE, "", REPLICAS),
                ("Apply", "manager-2", SCALE, "", REPLICAS),
                ("Apply", "manager-3", SCALE, "scale", REPLICAS),
            ],
        );
        check(&[("Apply", "manager-1", "apps/v10", "", REPLICAS)], &[]);
    }

    /// Cases of upstream's TestTransformingManagedFieldsToParent.
    #[test]
    fn the_owner_of_a_scale_owns_the_number() {
        let check = |title: &str, object: &[Entry], scale: &[Entry], expected: &[Entry]| {
            let mut found = with(object);
            let paths = paths(&[("apps/v1", Some("spec.replicas"))]);
            paths.to_object(&with(scale), &mut found, "apps/v1").expect("readable");
            found.object_at_mut(&["metadata"]);
            let mut expected = with(expected);
            expected.object_at_mut(&["metadata"]);
            assert!(found == expected, "{title}");
        };
        let of = |operation, version, fields| [(operation, "test", version, "", fields)];
        let scaled = |operation, manager, version| [(operation, manager, version, "scale", REPLICAS)];
        check(
            "different managers: apply, update",
            &of("Apply", "apps/v1", BOTH),
            &scaled("Update", "scale", SCALE),
            &[of("Apply", "apps/v1", SELECTOR)[0], scaled("Update", "scale", "apps/v1")[0]],
        );
        check(
            "different managers: apply, apply",
            &of("Apply", "apps/v1", BOTH),
            &scaled("Apply", "scale", SCALE),
            &[scaled("Apply", "scale", "apps/v1")[0], of("Apply", "apps/v1", SELECTOR)[0]],
        );
        check(
            "different managers: update, update",
            &of("Update", "apps/v1", BOTH),
            &scaled("Update", "scale", SCALE),
            &[scaled("Update", "scale", "apps/v1")[0], of("Update", "apps/v1", SELECTOR)[0]],
        );
        check(
            "different managers: update, apply",
            &of("Update", "apps/v1", BOTH),
            &scaled("Apply", "scale", SCALE),
            &[scaled("Apply", "scale", "apps/v1")[0], of("Update", "apps/v1", SELECTOR)[0]],
        );
        check(
            "same manager: apply, apply",
            &of("Apply", "apps/v1", BOTH),
            &scaled("Apply", "test", SCALE),
            &[of("Apply", "apps/v1", SELECTOR)[0], scaled("Apply", "test", "apps/v1")[0]],
        );
        check(
            "same manager: update, update",
            &of("Update", "apps/v1", BOTH),
            &scaled("Update", "test", SCALE),
            &[of("Update", "apps/v1", SELECTOR)[0], scaled("Update", "test", "apps/v1")[0]],
        );
        check(
            "same manager: update, apply",
            &of("Update", "apps/v1", BOTH),
            &scaled("Apply", "test", SCALE),
            &[scaled("Apply", "test", "apps/v1")[0], of("Update", "apps/v1", SELECTOR)[0]],
        );
        check(
            "same manager: apply, update",
            &of("Apply", "apps/v1", BOTH),
            &scaled("Update", "test", SCALE),
            &[of("Apply", "apps/v1", SELECTOR)[0], scaled("Update", "test", "apps/v1")[0]],
        );
        check(
            "the scale does not own the number any more",
            &of("Apply", "apps/v1", SELECTOR),
            &[("Update", "scale", SCALE, "scale", r#"{"f:status":{"f:replicas":{}}}"#)],
            &of("Apply", "apps/v1", SELECTOR),
        );
        check(
            "all that the object's manager owns is taken",
            &of("Apply", "apps/v1", REPLICAS),
            &scaled("Update", "scale", SCALE),
            &scaled("Update", "scale", "apps/v1"),
        );
        check(
            "applied without taking",
            &of("Apply", "apps/v1", BOTH),
            &[of("Apply", SCALE, REPLICAS)[0], scaled("Apply", "test", SCALE)[0]],
            &[of("Apply", "apps/v1", BOTH)[0], scaled("Apply", "test", "apps/v1")[0]],
        );
        check(
            "a version that is not known",
            &[of("Apply", "apps/v1", REPLICAS)[0], ("Apply", "another", "apps/v10", "", SELECTOR)],
            &[("Update", "scale", SCALE, "", REPLICAS)],
            &[("Update", "scale", "apps/v1", "", REPLICAS)],
        );
    }

    /// Cases of upstream's TestTransformingManagedFieldsToParentMultiVersion.
    #[test]
    fn each_version_has_its_own_path() {
        let scale = [("Update", "scale", SCALE, "scale", REPLICAS)];
        let first = r#"{"f:spec":{"f:selector":{},"f:the-replicas":{}}}"#;
        let second = r#"{"f:spec":{"f:not-the-replicas":{},"f:selector":{}}}"#;
        let moved = r#"{"f:spec":{"f:the-replicas":{}}}"#;
        let known =
            paths(&[("apps/v1", Some("spec.the-replicas")), ("apps/v2", Some("spec.not-the-replicas"))]);
        let mut found =
            with(&[("Apply", "test", "apps/v1", "", first), ("Apply", "test-other", "apps/v2", "", second)]);
        known.to_object(&with(&scale), &mut found, "apps/v1").expect("readable");
        assert!(
            found
                == with(&[
                    ("Apply", "test", "apps/v1", "", SELECTOR),
                    ("Apply", "test-other", "apps/v2", "", SELECTOR),
                    ("Update", "scale", "apps/v1", "scale", moved),
                ])
        );
        let other = r#"{"f:spec":{"f:test-other":{}}}"#;
        let known = paths(&[("mygroup/v1", Some("spec.the-replicas")), ("mygroup/v2", None)]);
        let mut found = with(&[
            ("Apply", "test", "mygroup/v1", "", first),
            ("Apply", "test-other", "mygroup/v2", "", other),
        ]);
        known.to_object(&with(&scale), &mut found, "mygroup/v1").expect("readable");
        assert!(
            found
                == with(&[
                    ("Apply", "test", "mygroup/v1", "", SELECTOR),
                    ("Apply", "test-other", "mygroup/v2", "", other),
                    ("Update", "scale", "mygroup/v1", "scale", moved),
                ])
        );
    }
}
