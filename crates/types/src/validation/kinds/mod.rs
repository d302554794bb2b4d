//! The kinds that are stored for others: what a write sets, keeps and refuses.
//!
//! Each kind is a row: its scope and names, which parts a client may not choose, what
//! counts a generation, and the checks that protect what is stored. Thin where no part
//! of coffer acts on a field; `COMPATIBILITY.md` says what is checked. All rows are held
//! to upstream's strategies by `tests/golden/kinds`.

mod admission;
mod api_service;
mod check;
mod cluster;
mod flow;
mod network;
mod selector;
mod service;
mod storage;
mod workloads;

pub use self::cluster::system_priority_classes;
pub(crate) use self::selector::selector_text;

use crate::names::{self, NameRule};
use crate::schema;
use crate::validation::field::FieldErrors;
use crate::validation::meta::{self, MetaRules};
use crate::{Value, defaults};

/// What a write of one kind passes.
pub struct KindRules {
    /// API group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    namespaced: bool,
    name: NameRule,
    status: Status,
    generation: Generation,
    prepare_create: fn(&mut Value),
    prepare_update: fn(&mut Value, &Value),
    validate: fn(&Value, &mut FieldErrors),
    validate_update: fn(&Value, &Value, &mut FieldErrors),
    validate_status: fn(&Value, &Value, &mut FieldErrors),
}

/// Who may write the status.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    /// There is none, or anybody may.
    Open,
    /// Its subresource alone, which keeps the spec.
    Own,
    /// Its subresource alone, which keeps all metadata, too.
    Apart,
}

/// What counts as a new generation.
#[derive(Clone, Copy)]
enum Generation {
    /// Nothing.
    Never,
    /// A change of one of these fields; the first is 1.
    Of(&'static [&'static [&'static str]]),
    /// As before, and the first is none.
    Later(&'static [&'static [&'static str]]),
}

const SIGNING_REQUEST: &str = "CertificateSigningRequest";
const SPEC: Generation = Generation::Of(&[&["spec"]]);

const PLAIN: KindRules = KindRules {
    group: "",
    version: "v1",
    kind: "",
    namespaced: true,
    name: names::dns_subdomain,
    status: Status::Open,
    generation: Generation::Never,
    prepare_create: |_| (),
    prepare_update: |_, _| (),
    validate: |_, _| (),
    validate_update: |_, _, _| (),
    validate_status: |_, _, _| (),
};

const CLUSTER: KindRules = KindRules { namespaced: false, ..PLAIN };

/// The rules of a kind, if it is one of these.
pub fn of(group: &str, kind: &str) -> Option<&'static KindRules> {
    [
        workloads::KINDS,
        storage::KINDS,
        network::KINDS,
        cluster::KINDS,
        flow::KINDS,
        admission::KINDS,
        api_service::KINDS,
    ]
    .into_iter()
    .flatten()
    .find(|rules| rules.group == group && rules.kind == kind)
}

impl KindRules {
    /// Sets what is left out.
    pub fn default(&self, object: &mut Value) {
        if let Some(kind) = schema::lookup(self.group, self.version, self.kind) {
            defaults::apply(kind.message, object);
        }
    }

    /// Sets what a client may not choose in a new object.
    pub fn prepare_create(&self, object: &mut Value) {
        if self.status != Status::Open {
            object.remove(&["status"]);
        }
        if let Generation::Of(_) = self.generation {
            object.set(&["metadata", "generation"], 1);
        }
        (self.prepare_create)(object);
    }

    /// Restores what an update may not change.
    pub fn prepare_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        if self.kind == SIGNING_REQUEST {
            return cluster::prepare_signing_request(subresource, new, old);
        }
        if subresource == "status" && self.status != Status::Open {
            return self.prepare_status(new, old);
        }
        if self.status != Status::Open {
            keep(new, old, &["status"]);
        }
        (self.prepare_update)(new, old);
        if let Generation::Of(fields) | Generation::Later(fields) = self.generation
            && fields.iter().any(|field| !same(new.at(field), old.at(field)))
        {
            let before = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
            new.set(&["metadata", "generation"], before + 1);
        }
    }

    fn prepare_status(&self, new: &mut Value, old: &Value) {
        if self.status == Status::Own {
            let fields = old.as_object().into_iter().chain(new.as_object()).flat_map(crate::Map::keys);
            let others: Vec<String> = fields
                .filter(|field| !matches!(field.as_str(), "metadata" | "status" | "kind" | "apiVersion"))
                .cloned()
                .collect();
            for field in others {
                keep(new, old, &[&field]);
            }
            match self.kind {
                "Deployment" => keep(new, old, &["metadata", "labels"]),
                "DaemonSet" => keep(new, old, &workloads::TEMPLATE_GENERATION),
                _ => {}
            }
            return;
        }
        let status = new.remove(&["status"]);
        let managed = new.remove(&["metadata", "managedFields"]);
        *new = old.clone();
        for (path, value) in [(&["status"][..], status), (&["metadata", "managedFields"], managed)] {
            match value {
                Some(value) => new.set(path, value),
                None => drop(new.remove(path)),
            }
        }
    }

    /// What is wrong with a new object.
    pub fn validate(&self, object: &Value) -> FieldErrors {
        let mut errors = meta::validate(object, self.meta());
        (self.validate)(object, &mut errors);
        errors
    }

    /// What is wrong with an object that replaces `old`.
    pub fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> FieldErrors {
        let mut errors = meta::validate_update(new, old, self.meta());
        if self.kind == SIGNING_REQUEST {
            cluster::signing_request_update(subresource, new, old, &mut errors);
            return errors;
        }
        if subresource == "status" && self.status != Status::Open {
            (self.validate_status)(new, old, &mut errors);
        } else {
            (self.validate_update)(new, old, &mut errors);
        }
        errors
    }

    /// Fields that this kind of write ignores.
    pub fn reset_fields(&self, subresource: &str) -> &'static [&'static [&'static str]] {
        match (self.status, subresource, self.kind) {
            (_, "", SIGNING_REQUEST) => &[&["spec"], &["status"]],
            (_, "status", SIGNING_REQUEST) => &[&["spec"], &["status", "conditions"]],
            (_, _, SIGNING_REQUEST) => &[&["spec"], &["status", "certificate"]],
            (Status::Open, ..) => &[],
            (_, "", _) => &[&["status"]],
            (_, "status", "Deployment") => &[&["spec"], &["metadata", "labels"]],
            (Status::Apart, "status", _) => &[&["metadata"], &["spec"]],
            (_, "status", _) => &[&["spec"]],
            _ => &[],
        }
    }

    fn meta(&self) -> MetaRules {
        MetaRules {
            namespaced: self.namespaced,
            name: self.name,
            qualified_finalizers: self.group != "admissionregistration.k8s.io",
        }
    }
}

/// `new[path]` becomes what it was.
fn keep(new: &mut Value, old: &Value, path: &[&str]) {
    match old.at(path) {
        Some(value) => new.set(path, value.clone()),
        None => drop(new.remove(path)),
    }
}

/// Whether two values are one and the same to Go: nothing is as good as empty.
fn same(new: Option<&Value>, old: Option<&Value>) -> bool {
    let some = |value: Option<&Value>| match value {
        None | Some(Value::Null) => None,
        Some(Value::Object(members)) if members.is_empty() => None,
        Some(Value::Array(items)) if items.is_empty() => None,
        Some(Value::String(text)) if text.is_empty() => None,
        Some(value) => Some(value.clone()),
    };
    some(new) == some(old)
}
