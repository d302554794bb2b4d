//! The stored form of objects, and what selectors see of them.

use std::sync::Arc;

use coffer_store::registry::{Attributes, ObjectCodec};
use coffer_types::Value;
use coffer_types::codec::{DecodeError, autoscaling, definitions, json, proto, transcode};
use coffer_types::meta::Meta as _;
use coffer_types::schema::{self, Kind};

use super::{CustomCodec, Form, events};

/// How the objects of one resource are stored.
pub(crate) enum StorageCodec {
    /// A built-in kind, as it is served.
    BuiltIn(&'static Kind, Form),
    /// A custom resource.
    Custom(Arc<CustomCodec>),
}

impl StorageCodec {
    /// The codec of a built-in kind.
    pub(crate) fn built_in(group: &str, version: &str, kind: &str) -> Option<Self> {
        let form = Form::of(group, version, kind);
        schema::lookup(group, version, kind).map(|kind| Self::BuiltIn(kind, form))
    }
}

/// The served object of stored bytes.
pub(super) fn decode(kind: &'static Kind, form: Form, stored: &[u8]) -> Result<Value, DecodeError> {
    match form {
        Form::Same => proto::decode_enveloped(stored, Some(kind)),
        Form::Autoscaler => proto::decode_enveloped(stored, None).map(|object| autoscaling::to_v1(&object)),
        Form::Json => {
            let mut object = json::decode(kind.message, stored)?.object;
            object.set_type(&kind.api_version(), kind.kind);
            Ok(object)
        }
        Form::Version(_) => {
            // Whichever version wrote it: they are one message.
            let mut object = proto::decode(kind.message, proto::open(stored)?.raw)?;
            object.set_type(&kind.api_version(), kind.kind);
            Ok(object)
        }
        Form::CoreEvent => proto::decode_enveloped(stored, core_event()).map(events::from_core),
        Form::Definition => {
            // Upstream writes v1beta1; v1 is read as well.
            let (api_version, _) = json::peek_type(stored)?;
            let (_, version) = coffer_types::meta::split_api_version(&api_version);
            let tables = schema::lookup(kind.group, version, kind.kind).unwrap_or(kind);
            let mut object = json::decode(tables.message, stored)?.object;
            object.set_type(&tables.api_version(), tables.kind);
            Ok(if tables.version == kind.version { object } else { definitions::to_served(&object) })
        }
    }
}

fn core_event() -> Option<&'static Kind> {
    schema::lookup("", "v1", "Event")
}

/// Both versions of the kind have one store, whose codec is the newer's.
fn is_older_autoscaler(object: &Value) -> bool {
    object.api_version() == "autoscaling/v1" && object.kind() == "HorizontalPodAutoscaler"
}

impl ObjectCodec for StorageCodec {
    fn decode(&self, stored: &[u8]) -> Result<Value, String> {
        match self {
            Self::BuiltIn(kind, form) => decode(kind, *form, stored).map_err(|error| error.0),
            Self::Custom(codec) => codec.decode(stored),
        }
    }

    fn encode(&self, object: &Value) -> Result<Vec<u8>, String> {
        match self {
            Self::BuiltIn(kind, Form::Same) if is_older_autoscaler(object) => {
                Ok(proto::encode_enveloped(kind, &autoscaling::to_v2(object)))
            }
            Self::BuiltIn(kind, Form::Same) => Ok(proto::encode_enveloped(kind, object)),
            Self::BuiltIn(_, Form::Autoscaler) => Err("it is stored in its newer version".to_owned()),
            Self::BuiltIn(kind, Form::Json) => {
                let mut out = Vec::with_capacity(1024);
                json::encode_line(kind.message, object, &mut out);
                Ok(out)
            }
            Self::BuiltIn(kind, Form::Version(version)) => {
                let mut out = Vec::with_capacity(256);
                let api_version = coffer_types::meta::api_version(kind.group, version);
                proto::wrap(&mut out, &api_version, kind.kind, |out| {
                    proto::encode(kind.message, object, out);
                });
                Ok(out)
            }
            Self::BuiltIn(_, Form::CoreEvent) => {
                let kind = core_event().ok_or("no schema for Event")?;
                Ok(proto::encode_enveloped(kind, &events::to_core(object.clone())))
            }
            Self::BuiltIn(kind, Form::Definition) => {
                let tables =
                    schema::lookup(kind.group, "v1beta1", kind.kind).ok_or("no schema of what is stored")?;
                let mut out = Vec::with_capacity(4096);
                json::encode_line(tables.message, &definitions::to_stored(object), &mut out);
                Ok(out)
            }
            Self::Custom(codec) => codec.encode(object),
        }
    }

    fn attributes(&self, stored: &[u8]) -> Result<Attributes, String> {
        let (tables, more) = match self {
            Self::BuiltIn(kind, Form::Same | Form::Version(_)) => (Some(*kind), selectable(kind.kind)),
            Self::BuiltIn(_, Form::CoreEvent) => (core_event(), selectable("Event")),
            Self::BuiltIn(_, Form::Definition | Form::Json | Form::Autoscaler) | Self::Custom(_) => {
                (None, &[] as Selectable)
            }
        };
        let paths: Vec<&[&str]> = more.iter().map(|(_, path)| *path).collect();
        let found = transcode::attributes(tables, stored, &paths).map_err(|error| error.0)?;
        let mut fields: Vec<(&'static str, String)> =
            more.iter().zip(found.fields).map(|((name, path), text)| (*name, or_false(path, text))).collect();
        source_of_event(&mut fields);
        let custom = match self {
            Self::BuiltIn(..) => Box::default(),
            Self::Custom(codec) => codec.selected(stored),
        };
        Ok(Attributes { labels: found.labels, fields, custom })
    }
}

/// An Event that names no source is of whoever reported it.
fn source_of_event(fields: &mut [(&'static str, String)]) {
    let named = |wanted: &str| fields.iter().position(|(name, _)| *name == wanted);
    let (Some(source), Some(reporter)) = (named("source"), named("reportingComponent")) else { return };
    if fields[source].1.is_empty() {
        fields[source].1 = fields[reporter].1.clone();
    }
}

/// Booleans that are left out when they are false can be selected as `false`.
fn or_false(path: &[&str], text: String) -> String {
    let is_flag = matches!(path.last(), Some(&"unschedulable" | &"hostNetwork"));
    if is_flag && text.is_empty() { "false".to_owned() } else { text }
}

type Selectable = &'static [(&'static str, &'static [&'static str])];

/// Fields by which a kind is selected, besides name and namespace.
fn selectable(kind: &str) -> Selectable {
    match kind {
        "Secret" => &[("type", &["type"])],
        "Namespace" => &[("status.phase", &["status", "phase"]), ("name", &["metadata", "name"])],
        "Node" => &[("spec.unschedulable", &["spec", "unschedulable"])],
        "Service" => &[("spec.clusterIP", &["spec", "clusterIP"]), ("spec.type", &["spec", "type"])],
        "Pod" => &[
            ("spec.nodeName", &["spec", "nodeName"]),
            ("spec.restartPolicy", &["spec", "restartPolicy"]),
            ("spec.schedulerName", &["spec", "schedulerName"]),
            ("spec.serviceAccountName", &["spec", "serviceAccountName"]),
            ("spec.hostNetwork", &["spec", "hostNetwork"]),
            ("status.phase", &["status", "phase"]),
            ("status.podIP", &["status", "podIP"]),
            ("status.podIPs", &["status", "podIP"]),
            ("status.nominatedNodeName", &["status", "nominatedNodeName"]),
        ],
        "Event" => &[
            ("involvedObject.kind", &["involvedObject", "kind"]),
            ("involvedObject.namespace", &["involvedObject", "namespace"]),
            ("involvedObject.name", &["involvedObject", "name"]),
            ("involvedObject.uid", &["involvedObject", "uid"]),
            ("involvedObject.apiVersion", &["involvedObject", "apiVersion"]),
            ("involvedObject.resourceVersion", &["involvedObject", "resourceVersion"]),
            ("involvedObject.fieldPath", &["involvedObject", "fieldPath"]),
            ("regarding.kind", &["involvedObject", "kind"]),
            ("regarding.namespace", &["involvedObject", "namespace"]),
            ("regarding.name", &["involvedObject", "name"]),
            ("regarding.uid", &["involvedObject", "uid"]),
            ("reason", &["reason"]),
            ("reportingComponent", &["reportingComponent"]),
            ("reportingController", &["reportingComponent"]),
            ("source", &["source", "component"]),
            ("type", &["type"]),
        ],
        "ReplicationController" => &[("status.replicas", &["status", "replicas"])],
        "Job" => &[("status.successful", &["status", "succeeded"])],
        "CertificateSigningRequest" => &[("spec.signerName", &["spec", "signerName"])],
        "ResourceSlice" => &[
            ("spec.nodeName", &["spec", "nodeName"]),
            ("spec.driver", &["spec", "driver"]),
            ("spec.pool.name", &["spec", "pool", "name"]),
        ],
        _ => &[],
    }
}
