//! The schemas of a custom resource's versions, and what they make of objects.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use crate::crd::schema::Schema;
use crate::crd::validations::{self, Validations};
use crate::crd::{defaults, prune};

/// The schemas of all versions of a definition, by `apiVersion`.
pub(crate) struct Schemas {
    /// As the definition has them.
    pub(crate) trees: BTreeMap<String, Option<Value>>,
    read: BTreeMap<String, Option<Arc<Schema>>>,
    /// The rules of versions that have any, compiled when they are first asked.
    rules: BTreeMap<String, OnceLock<Option<Validations>>>,
}

impl Schemas {
    /// Reads the schemas of a definition.
    pub(crate) fn new(trees: BTreeMap<String, Option<Value>>) -> Self {
        let read = |tree: &Option<Value>| tree.as_ref().map(|tree| Arc::new(Schema::parse(tree)));
        let read: BTreeMap<_, _> =
            trees.iter().map(|(version, tree)| (version.clone(), read(tree))).collect();
        let with_rules =
            read.iter().filter(|(_, schema)| schema.as_deref().is_some_and(validations::has_any));
        let rules = with_rules.map(|(version, _)| (version.clone(), OnceLock::new())).collect();
        Self { trees, read, rules }
    }

    /// The schema of a version, if it has one.
    pub(crate) fn of(&self, api_version: &str) -> Option<&Arc<Schema>> {
        self.read.get(api_version)?.as_ref()
    }

    /// The rules of a version, if it has any.
    pub(super) fn rules(&self, api_version: &str) -> Option<&Validations> {
        let compile = || {
            let (tree, schema) = self.trees.get(api_version)?.as_ref().zip(self.of(api_version))?;
            Validations::compile(tree, schema, true)
        };
        self.rules.get(api_version)?.get_or_init(compile).as_ref()
    }

    /// An object as it is read from the store, in the version that it is stored in.
    pub(crate) fn settle(&self, mut object: Value) -> Result<Value, String> {
        match self.read.get(object.api_version()) {
            None => {
                return Err(format!(
                    "request to convert CR from an invalid group/version: {}",
                    object.api_version()
                ));
            }
            Some(None) => {}
            Some(Some(schema)) => {
                let _dropped = prune::prune(&mut object, schema);
                defaults::apply(&mut object, schema);
            }
        }
        Ok(object)
    }

    /// Fills in the defaults of the version that an object is in.
    pub(super) fn fill_in(&self, object: &mut Value) {
        if let Some(schema) = self.of(object.api_version()).cloned() {
            defaults::apply(object, &schema);
        }
    }

    /// The object in another version, when nothing converts but the version's name.
    pub(super) fn rename(&self, object: &mut Value, api_version: &str, kind: &str) {
        if object.api_version() == api_version && object.kind() == kind {
            return;
        }
        object.set_type(api_version, kind);
        self.trim(object, api_version);
    }

    /// Drops from an object that has come into a version what the version does not have.
    pub(crate) fn trim(&self, object: &mut Value, api_version: &str) {
        if let Some(schema) = self.of(api_version) {
            let _dropped = prune::prune(object, schema);
            defaults::drop_nulls(object, schema);
        }
    }
}
