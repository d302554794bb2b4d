//! Field management: who wrote which field.

use std::sync::{Arc, OnceLock};

use coffer_types::fields::{Applied, Apply, ApplyError, Schema, Set, VersionError, Versions, Write, update};
use coffer_types::meta::split_api_version;
use coffer_types::time::{Timestamp, rfc3339};
use coffer_types::{Value, schema};
use parking_lot::Mutex;

use super::{Wire, events};
use crate::conversion::Converter;

impl Wire {
    /// What converts the objects between versions, if that is a webhook.
    fn converter(&self) -> Option<&Arc<Converter>> {
        match self {
            Self::BuiltIn(_) => None,
            Self::Custom(wire) => wire.converter.as_ref(),
        }
    }
}

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
    pub(crate) async fn record(&self, wire: &Wire, old: Option<&Value>, object: &mut Value) {
        let nothing = Value::object();
        let old = old.unwrap_or(&nothing);
        let conversions = Conversions::default();
        if wire.converter().is_none() {
            return self.with(wire, &conversions, |write| update(old, object, &write));
        }
        loop {
            let mut recorded = object.clone();
            self.with(wire, &conversions, |write| update(old, &mut recorded, &write));
            if !conversions.done(wire).await {
                *object = recorded;
                return;
            }
        }
    }

    /// What the writer's configuration makes of `live`, or of nothing.
    pub(crate) async fn apply(
        &self,
        wire: &Wire,
        kind: &str,
        live: Option<&Value>,
        applied: &Value,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let conversions = Conversions::default();
        loop {
            let outcome =
                self.with(wire, &conversions, |write| Apply { write, kind, force }.run(live, applied));
            if !conversions.done(wire).await {
                return outcome;
            }
        }
    }

    fn with<T>(&self, wire: &Wire, conversions: &Conversions, run: impl FnOnce(Write<'_>) -> T) -> T {
        let time = rfc3339(self.now);
        let versions = KindVersions {
            wire,
            conversions,
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

/// Conversions that a webhook has to make. Field management is a pure function and cannot wait: what it
/// lacks is noted, made, and the function is run again.
#[derive(Default)]
struct Conversions(Mutex<Vec<Conversion>>);

struct Conversion {
    object: Value,
    api_version: String,
    /// `None` while it is to be made.
    outcome: Option<Result<Value, String>>,
}

impl Conversions {
    fn find(&self, object: Value, api_version: &str) -> Result<Value, String> {
        let mut all = self.0.lock();
        let found = all.iter().find(|one| one.api_version == api_version && one.object == object);
        if let Some(found) = found {
            return found.outcome.clone().unwrap_or_else(|| Err("the conversion is to be made".to_owned()));
        }
        all.push(Conversion { object, api_version: api_version.to_owned(), outcome: None });
        Err("the conversion is to be made".to_owned())
    }

    /// Makes the conversions that were lacking; `false` when none was.
    async fn done(&self, wire: &Wire) -> bool {
        let Some(converter) = wire.converter() else { return false };
        let lacking: Vec<(usize, Value, String)> = {
            let all = self.0.lock();
            let open = all.iter().enumerate().filter(|(_, one)| one.outcome.is_none());
            open.map(|(index, one)| (index, one.object.clone(), one.api_version.clone())).collect()
        };
        if lacking.is_empty() {
            return false;
        }
        for (index, object, api_version) in lacking {
            let converted = converter.convert(vec![object], &api_version).await;
            let outcome = converted.map_err(|status| status.message);
            let outcome =
                outcome.and_then(|all| all.into_iter().next().ok_or("nothing was converted".to_owned()));
            self.0.lock()[index].outcome = Some(outcome);
        }
        true
    }
}

/// The versions of one kind, for field management.
struct KindVersions<'a> {
    wire: &'a Wire,
    conversions: &'a Conversions,
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
            Wire::Custom(wire) => match wire.schemas.trees.get(api_version) {
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
        if self.wire.converter().is_some() {
            return self.conversions.find(object, api_version);
        }
        object.set(&["apiVersion"], api_version);
        Ok(object)
    }

    fn reset(&self, api_version: &str) -> Option<&Set> {
        let applies = self.everywhere || api_version == self.api_version;
        applies.then(|| self.set.get_or_init(|| Set::of_fields(self.reset)))
    }
}
