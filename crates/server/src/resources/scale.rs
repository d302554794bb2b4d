//! What serves the `scale` subresource of a custom resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_types::Value;
use coffer_types::fields::scale::ReplicasPaths;
use coffer_types::validation::field::FieldErrors;

use super::Resource;
use super::info::{Behaviour, ResourceInfo};
use super::printer::Printer;
use super::strategy::Strategy;
use crate::crd::columns::Columns;
use crate::crd::scale::ScalePaths;
use crate::negotiate::Offers;
use crate::wire::Wire;

/// The subresource of one version.
pub(crate) struct Scale {
    /// The fields of the object that a Scale stands for.
    pub(crate) paths: ScalePaths,
    /// Who owns the wanted number, in every version of the object.
    pub(crate) managed: Arc<ReplicasPaths>,
    /// How Scales are read, written and printed; nothing is stored.
    pub(crate) resource: Resource,
}

impl Scale {
    /// The subresource of a version whose objects are described by `object`.
    pub(crate) fn new(paths: ScalePaths, managed: Arc<ReplicasPaths>, object: &ResourceInfo) -> Option<Self> {
        let wire = Wire::built_in("autoscaling", "v1", "Scale", None)?;
        let info = ResourceInfo {
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            subresources: Vec::new(),
            behaviour: Behaviour {
                offers: Offers::BuiltIn,
                go_type: "autoscaling.Scale",
                ..object.behaviour
            },
            ..object.clone()
        };
        let resource = Resource {
            info,
            registry: None,
            wire,
            strategy: Arc::new(Nothing),
            create_only: None,
            create_only_subresources: BTreeMap::new(),
            printer: Printer::Custom(Arc::new(Columns::of_version(&paths.columns()))),
            terminating: false,
            deprecation: None,
            definition_version: String::new(),
            scale: None,
        };
        Some(Self { paths, managed, resource })
    }

    /// The Scale of an object, and whether the object says how many are wanted.
    pub(crate) fn of(&self, object: &Value) -> Result<(Value, bool), String> {
        let (scale, found) = self.paths.scale(object)?;
        self.resource.wire.retype(&scale).map(|decoded| (decoded.object, found))
    }
}

/// A Scale has no rules: those of the object hold.
struct Nothing;

impl Strategy for Nothing {
    fn default(&self, _object: &mut Value) {}

    fn prepare_create(&self, _object: &mut Value) {}

    fn validate_create(&self, _object: &Value) -> FieldErrors {
        FieldErrors::new()
    }

    fn prepare_update(&self, _subresource: &str, _new: &mut Value, _old: &Value) {}

    fn validate_update(&self, _subresource: &str, _new: &Value, _old: &Value) -> FieldErrors {
        FieldErrors::new()
    }
}
