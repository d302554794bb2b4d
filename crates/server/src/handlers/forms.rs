//! The object of a write in its other forms, for webhooks and policies.

use async_trait::async_trait;
use coffer_types::Value;
use coffer_types::meta::{GroupVersionKind, Meta as _};

use crate::negotiate::Media;
use crate::ports::{Attributes, Equivalent, Forms};
use crate::resources::Resource;
use crate::resources::info::ResourceInfo;
use crate::state::Server;
use crate::wire::{Wire, events};

const EVENTS_GROUP: &str = "events.k8s.io";

/// The forms of one write's object.
pub(super) struct ResourceForms<'a> {
    server: &'a Server,
    resource: &'a Resource,
    attributes: &'a Attributes,
    kind: GroupVersionKind,
}

impl<'a> ResourceForms<'a> {
    pub(super) fn new(
        server: &'a Server,
        resource: &'a Resource,
        attributes: &'a Attributes,
        subresource: &str,
    ) -> Self {
        Self { server, resource, attributes, kind: kind_of(&resource.info, subresource) }
    }

    /// The codec of a kind: the resource's own, or a built-in one's.
    fn wire(&self, kind: &GroupVersionKind) -> Result<Wire, String> {
        let info = &self.resource.info;
        let own = kind.group == info.group && kind.kind == info.kind;
        if own && (kind.version == info.version || matches!(self.resource.wire, Wire::Custom(_))) {
            return Ok(self.resource.wire.clone());
        }
        Wire::built_in(&kind.group, &kind.version, &kind.kind, None)
            .ok_or_else(|| format!("no schema for {} {}", kind.api_version(), kind.kind))
    }
}

/// The kind that a write of a resource or its subresource is about.
fn kind_of(info: &ResourceInfo, subresource: &str) -> GroupVersionKind {
    match info.subresource(subresource) {
        Some(part) if !part.version.is_empty() => {
            GroupVersionKind::new(&part.group, &part.version, &part.kind)
        }
        Some(part) => GroupVersionKind::new(&info.group, &info.version, &part.kind),
        None => GroupVersionKind::new(&info.group, &info.version, &info.kind),
    }
}

#[async_trait]
impl Forms for ResourceForms<'_> {
    fn kind(&self) -> &GroupVersionKind {
        &self.kind
    }

    fn equivalents(&self) -> Vec<Equivalent> {
        let attributes = self.attributes;
        let (group, plural) = (attributes.group.as_str(), attributes.resource.as_str());
        let served = self.server.resources.load();
        let same = |info: &ResourceInfo| {
            let events = |group: &str| matches!(group, "" | EVENTS_GROUP);
            info.plural == plural
                && (info.group == group || (plural == "events" && events(group) && events(&info.group)))
                && (info.group != group || info.version != attributes.version)
        };
        let has = |info: &ResourceInfo| {
            attributes.subresource.is_empty() || info.subresource(&attributes.subresource).is_some()
        };
        let others = served.all().map(|resource| &resource.info).filter(|info| same(info) && has(info));
        let others = others.map(|info| Equivalent {
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.plural.clone(),
            kind: kind_of(info, &attributes.subresource),
        });
        others.collect()
    }

    async fn convert(&self, object: &Value, to: &GroupVersionKind) -> Result<Value, String> {
        let version = to.api_version();
        if object.api_version() == version && object.kind() == to.kind {
            return Ok(object.clone());
        }
        let wrong = || {
            let (from, kind) = (object.api_version(), object.kind());
            format!("converting ({from} {kind}) to ({version} {}): unknown conversion", to.kind)
        };
        if object.kind() != to.kind {
            return Err(wrong());
        }
        match &self.resource.wire {
            Wire::BuiltIn(_) if to.kind == "Event" && to.group == EVENTS_GROUP => {
                Ok(events::from_core(object.clone()))
            }
            Wire::BuiltIn(_) if to.kind == "Event" => Ok(events::to_core(object.clone())),
            Wire::BuiltIn(_) => Err(wrong()),
            Wire::Custom(wire) => match &wire.converter {
                Some(converter) => {
                    let converted = converter.convert(vec![object.clone()], &version).await;
                    let converted = converted.map_err(|status| status.message)?;
                    converted.into_iter().next().ok_or_else(wrong)
                }
                None => {
                    let mut object = object.clone();
                    object.set_type(&version, &to.kind);
                    Ok(object)
                }
            },
        }
    }

    fn encode(&self, object: &Value, kind: &GroupVersionKind) -> Result<Vec<u8>, String> {
        let bytes = self.wire(kind)?.value(object, Media::Json);
        let mut bytes = bytes.map_err(|status| status.message)?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        Ok(bytes)
    }

    fn decode(&self, patched: &Value, kind: &GroupVersionKind) -> Result<Value, String> {
        self.wire(kind)?.reshape(patched)
    }

    fn default(&self, object: &mut Value, kind: &GroupVersionKind) {
        if let Ok(wire) = self.wire(kind) {
            wire.fill_in(object);
        }
    }
}

/// The options of an operation as reviews carry them.
pub(super) fn options(kind: &str, members: &[(&'static str, Value)]) -> Value {
    let mut options = Value::from([("kind", kind), ("apiVersion", "meta.k8s.io/v1")]);
    for (name, value) in members {
        let empty = value.is_null() || value.as_str().is_some_and(str::is_empty);
        if !empty {
            options.set(&[*name], value.clone());
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_hold_what_was_asked() {
        let made = options(
            "CreateOptions",
            &[("dryRun", Value::Null), ("fieldManager", "m".into()), ("fieldValidation", "".into())],
        );
        let expected =
            Value::from([("kind", "CreateOptions"), ("apiVersion", "meta.k8s.io/v1"), ("fieldManager", "m")]);
        assert!(made == expected);
    }
}
