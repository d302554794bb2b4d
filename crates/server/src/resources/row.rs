//! One row of the tables of built-in resources.

use super::info::{ALL_VERBS, Behaviour, ResourceInfo, SubresourceInfo};
use crate::negotiate::Offers;

/// One row.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) categories: &'static [&'static str],
    pub(crate) namespaced: bool,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) subresources: &'static [Sub],
    /// Group, version and kind in the store; `None` when nothing is stored.
    pub(crate) stored: Option<(&'static str, &'static str, &'static str)>,
    pub(crate) behaviour: Behaviour,
}

/// One subresource of a row.
#[derive(Debug)]
pub(crate) struct Sub {
    pub(crate) name: &'static str,
    /// Group and version of the body, when they are not the resource's.
    pub(crate) body: Option<(&'static str, &'static str)>,
    pub(crate) kind: &'static str,
    pub(crate) verbs: &'static [&'static str],
}

pub(super) const STATUS_VERBS: &[&str] = &["get", "patch", "update"];

pub(super) const PLAIN: Behaviour = Behaviour {
    create_on_update: false,
    unconditional_update: true,
    returns_deleted: false,
    go_type: "",
    offers: Offers::BuiltIn,
    ttl_seconds: 0,
};

pub(super) const fn status(kind: &'static str) -> Sub {
    Sub { name: "status", body: None, kind, verbs: STATUS_VERBS }
}

pub(super) const fn core(
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short_names: &'static [&'static str],
    go_type: &'static str,
) -> Built {
    Built {
        group: "",
        version: "v1",
        kind,
        plural,
        singular,
        short_names,
        categories: &[],
        namespaced: true,
        verbs: ALL_VERBS,
        subresources: &[],
        stored: Some(("", "v1", kind)),
        behaviour: Behaviour { go_type, ..PLAIN },
    }
}

impl Built {
    /// The row as discovery and the handlers use it.
    pub(crate) fn info(&self) -> ResourceInfo {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ResourceInfo {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            singular: self.singular.to_owned(),
            short_names: owned(self.short_names),
            categories: owned(self.categories),
            namespaced: self.namespaced,
            verbs: self.verbs.to_vec(),
            subresources: self
                .subresources
                .iter()
                .map(|sub| {
                    let (group, version) = sub.body.unwrap_or_default();
                    SubresourceInfo {
                        name: sub.name.to_owned(),
                        group: group.to_owned(),
                        version: version.to_owned(),
                        kind: sub.kind.to_owned(),
                        verbs: sub.verbs.to_vec(),
                    }
                })
                .collect(),
            storage_version: self
                .stored
                .map(|(group, version, kind)| format!("{group}/{version}/{kind}"))
                .unwrap_or_default(),
            behaviour: self.behaviour,
        }
    }
}
