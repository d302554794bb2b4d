//! Field management: who wrote which field.

use std::sync::OnceLock;

use coffer_types::fields::{Applied, Apply, ApplyError, Schema, Set, VersionError, Versions, Write, update};
use coffer_types::meta::split_api_version;
use coffer_types::time::{Timestamp, rfc3339};
use coffer_types::{Value, schema};

use super::{Wire, events};

/// Who writes, and what.
pub(crate) struct Writer<'a> {
    /// Name of the manager.
    pub(crate) manager: &'a str,
    /// Version of the object.
    pub(crate) api_version: &'a str,
    /// Subresource, or "".
    pub(crate) subresource: &'a str,
    /// Fields that this kind of write ignores.
    pub(crate) reset: &'static [&'static [&'static str]],
    /// When.
    pub(crate) now: Timestamp,
}

impl Writer<'_> {
    /// Records that the writer changed `object` from `old`.
    pub(crate) fn record(&self, wire: &Wire, old: Option<&Value>, object: &mut Value) {
        let nothing = Value::object();
        self.with(wire, |write| update(old.unwrap_or(&nothing), object, &write));
    }

    /// What the writer's configuration makes of `live`, or of nothing.
    pub(crate) fn apply(
        &self,
        wire: &Wire,
        kind: &str,
        live: Option<&Value>,
        applied: &Value,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        self.with(wire, |write| Apply { write, kind, force }.run(live, applied))
    }

    fn with<T>(&self, wire: &Wire, run: impl FnOnce(Write<'_>) -> T) -> T {
        let time = rfc3339(self.now);
        let versions = KindVersions {
            wire,
            api_version: self.api_version,
            // A custom resource's status ignores the same in every version.
            everywhere: matches!(wire, Wire::Custom(_)) && !self.subresource.is_empty(),
            reset: self.reset,
            set: OnceLock::new(),
        };
        run(Write {
            versions: &versions,
            api_version: self.api_version,
            subresource: self.subresource,
            manager: self.manager,
            time: &time,
        })
    }
}

/// The versions of one kind, for field management.
struct KindVersions<'a> {
    wire: &'a Wire,
    /// The version that is written.
    api_version: &'a str,
    everywhere: bool,
    reset: &'static [&'static [&'static str]],
    set: OnceLock<Set>,
}

impl Versions for KindVersions<'_> {
    fn schema(&self, api_version: &str) -> Result<Schema<'_>, VersionError> {
        match self.wire {
            Wire::BuiltIn(wire) if api_version == self.api_version => Ok(Schema::Message(wire.kind.message)),
            Wire::BuiltIn(wire) => {
                let (group, version) = split_api_version(api_version);
                // Events are the one kind that two groups share.
                let shared = wire.kind.kind == "Event" && matches!(group, "" | "events.k8s.io");
                match schema::lookup(group, version, wire.kind.kind) {
                    Some(kind) if shared => Ok(Schema::Message(kind.message)),
                    _ => Err(VersionError::Missing),
                }
            }
            Wire::Custom(wire) => match wire.versions.get(api_version) {
                Some(Some(schema)) => Ok(Schema::CustomResource(schema)),
                Some(None) => Ok(Schema::Untyped),
                None => Err(VersionError::Failed(format!(
                    "request to convert CR to an invalid group/version: {api_version}"
                ))),
            },
        }
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let mut object = object.clone();
        if matches!(self.wire, Wire::BuiltIn(_)) {
            return Ok(match api_version {
                "v1" => events::to_core(object),
                _ => events::from_core(object),
            });
        }
        object.set(&["apiVersion"], api_version);
        Ok(object)
    }

    fn reset(&self, api_version: &str) -> Option<&Set> {
        let applies = self.everywhere || api_version == self.api_version;
        applies.then(|| self.set.get_or_init(|| Set::of_fields(self.reset)))
    }
}
