//! What the Secret becomes: pure, from what is there and what was fetched.

use std::collections::{BTreeMap, BTreeSet};

use coffer_providers::contract::SecretMap;
use coffer_types::SecretBytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::spec::{CreationPolicy, ExternalSecret, Spec};
use crate::hash;
use crate::secret::Secret;

pub(crate) const MANAGED_LABEL: &str = "reconcile.external-secrets.io/managed";
pub(crate) const OWNER_LABEL: &str = "reconcile.external-secrets.io/created-by";
pub(crate) const HASH_ANNOTATION: &str = "reconcile.external-secrets.io/data-hash";
pub(crate) const API_VERSION: &str = "external-secrets.io/v1";
pub(crate) const GROUP: &str = "external-secrets.io";

/// Why the Secret cannot become what is wanted; the text is upstream's event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    OwnedByForeigner(String),
    OwnedByExternalSecret(String),
    Immutable(String),
}

/// What an ExternalSecret wrote into a Secret that others may write too (O23).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Own {
    /// The data-hash annotation: that of all data at that time.
    annotation: String,
    keys: BTreeSet<String>,
    /// Of the own keys alone.
    hash: String,
}

impl Own {
    fn of(secret: &Secret, keys: BTreeSet<String>) -> Self {
        let annotation = secret.annotation(HASH_ANNOTATION).unwrap_or_default().to_owned();
        let hash = Self::hash(secret, &keys);
        Self { annotation, keys, hash }
    }

    fn hash(secret: &Secret, keys: &BTreeSet<String>) -> String {
        let own = secret.data.iter().filter(|(key, _)| keys.contains(*key));
        hash::data_hash(&own.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    /// Whether `secret` still holds it, whatever became of the keys of others.
    pub(crate) fn is_in(&self, secret: &Secret) -> bool {
        secret.annotation(HASH_ANNOTATION) == Some(&self.annotation)
            && Self::hash(secret, &self.keys) == self.hash
    }
}

/// The Secret as it shall be.
pub(crate) struct Wanted {
    pub(crate) secret: Secret,
    /// What of it is ours.
    pub(crate) own: Own,
    /// Keys of others that are dropped, for the event (O21).
    pub(crate) dropped: Vec<String>,
}

/// Makes `existing` (or nothing) into what `owner` wants.
pub(crate) fn build(
    owner: &ExternalSecret,
    spec: &Spec,
    fetched: &SecretMap,
    existing: Option<&Secret>,
) -> Result<Wanted, Refusal> {
    let key = owner.target();
    let mut secret = existing.cloned().unwrap_or_else(|| Secret::new(&key.namespace, &key.name));
    let was_managed = secret.label(MANAGED_LABEL) == Some("true");
    let manager = hash::field_manager(&owner.key.name);
    let owned = Owned::of(&secret, &manager);
    let creation = spec.target.creation;
    if spec.target.immutable {
        secret.immutable = Some(true);
    }
    let mut dropped = Vec::new();
    if existing.is_none() || !spec.target.immutable {
        secret.data.retain(|key, _| !owned.data.contains(key));
        apply_metadata(&mut secret, owner, spec, &owned);
        if !creation.keeps_foreign_keys() {
            dropped = secret.data.keys().cloned().collect();
            secret.data.clear();
        }
        apply_data(&mut secret, spec, fetched);
        dropped.retain(|key| !was_managed && !secret.data.contains_key(key));
    }
    take_ownership(&mut secret, owner, creation)?;
    let hash = hash::data_hash(&secret.data);
    let labels = secret.metadata.labels.get_or_insert_default();
    labels.insert(MANAGED_LABEL.to_owned(), "true".to_owned());
    if creation == CreationPolicy::Owner {
        labels.insert(OWNER_LABEL.to_owned(), hash::owner_label(&owner.key.namespace, &owner.key.name));
    } else {
        labels.remove(OWNER_LABEL);
    }
    secret.metadata.annotations.get_or_insert_default().insert(HASH_ANNOTATION.to_owned(), hash);
    if let Some(existing) = existing
        && existing.immutable == Some(true)
        && (existing.data != secret.data
            || existing.secret_type != secret.secret_type
            || secret.immutable != Some(true))
    {
        let name = &key.name;
        return Err(Refusal::Immutable(format!("unable to update secret {name}: secret is immutable")));
    }
    let own = Own::of(&secret, own_keys(spec, fetched));
    Ok(Wanted { secret, own, dropped })
}

/// The keys that [`apply_data`] writes.
fn own_keys(spec: &Spec, fetched: &SecretMap) -> BTreeSet<String> {
    let template = spec.target.template.as_ref();
    let copied = template.is_none_or(|template| template.merge).then(|| fetched.keys().cloned());
    let made = template.map(|template| template.data.keys().cloned());
    copied.into_iter().flatten().chain(made.into_iter().flatten()).collect()
}

/// Whether `existing` differs from `wanted` in keys of others only, which `policy` keeps: then the hash that was
/// written with `own` may stand as it is.
pub(crate) fn differs_for_others_only(
    existing: &Secret,
    wanted: &Wanted,
    policy: CreationPolicy,
    own: Option<&Own>,
) -> bool {
    if !policy.keeps_foreign_keys() || !own.is_some_and(|own| own.is_in(existing)) {
        return false;
    }
    let mut wanted = wanted.secret.clone();
    if let Some(hash) = existing.annotation(HASH_ANNOTATION) {
        let annotations = wanted.metadata.annotations.get_or_insert_default();
        annotations.insert(HASH_ANNOTATION.to_owned(), hash.to_owned());
    }
    same(existing, &wanted)
}

/// What an earlier write of the same manager put into the Secret, by managedFields.
#[derive(Default)]
struct Owned {
    data: BTreeSet<String>,
    labels: BTreeSet<String>,
    annotations: BTreeSet<String>,
}

impl Owned {
    fn of(secret: &Secret, manager: &str) -> Self {
        let mut owned = Self::default();
        let entries = secret.metadata.managed_fields.iter().flatten();
        for entry in entries.filter(|entry| entry.manager.as_deref() == Some(manager)) {
            let Some(fields) = &entry.fields_v1 else { continue };
            let keys = |path: &[&str]| {
                let at = path.iter().try_fold(&fields.0, |value, key| value.get(*key));
                let members = at.and_then(serde_json::Value::as_object).into_iter().flatten();
                members.filter_map(|(key, _)| key.strip_prefix("f:").map(str::to_owned)).collect::<Vec<_>>()
            };
            owned.data.extend(keys(&["f:data"]));
            owned.labels.extend(keys(&["f:metadata", "f:labels"]));
            owned.annotations.extend(keys(&["f:metadata", "f:annotations"]));
        }
        owned
    }
}

fn apply_metadata(secret: &mut Secret, owner: &ExternalSecret, spec: &Spec, owned: &Owned) {
    let (labels, annotations) = match &spec.target.template {
        Some(template) => (&template.labels, &template.annotations),
        None => (&owner.labels, &owner.annotations),
    };
    merge(secret.metadata.labels.get_or_insert_default(), &owned.labels, labels);
    merge(secret.metadata.annotations.get_or_insert_default(), &owned.annotations, annotations);
    if let Some(template) = &spec.target.template
        && secret.metadata.deletion_timestamp.is_none()
    {
        let finalizers = secret.metadata.finalizers.get_or_insert_default();
        for finalizer in &template.finalizers {
            if !finalizers.contains(finalizer) {
                finalizers.push(finalizer.clone());
            }
        }
        if finalizers.is_empty() {
            secret.metadata.finalizers = None;
        }
    }
}

fn merge(map: &mut BTreeMap<String, String>, owned: &BTreeSet<String>, wanted: &BTreeMap<String, String>) {
    map.retain(|key, _| !owned.contains(key));
    map.extend(wanted.iter().map(|(key, value)| (key.clone(), value.clone())));
}

fn apply_data(secret: &mut Secret, spec: &Spec, fetched: &SecretMap) {
    let copy = |secret: &mut Secret| {
        secret.data.extend(fetched.iter().map(|(key, value)| (key.clone(), value.clone())));
    };
    let Some(template) = &spec.target.template else { return copy(secret) };
    if !template.secret_type.is_empty() {
        secret.secret_type = Some(template.secret_type.clone());
    }
    if template.merge {
        copy(secret);
    }
    secret
        .data
        .extend(template.data.iter().map(|(key, value)| (key.clone(), SecretBytes::from(value.0.clone()))));
}

fn take_ownership(
    secret: &mut Secret,
    owner: &ExternalSecret,
    creation: CreationPolicy,
) -> Result<(), Refusal> {
    let references = secret.metadata.owner_references.get_or_insert_default();
    let controller = references.iter().position(|reference| reference.controller == Some(true));
    let is_ours = |reference: &OwnerReference| {
        group(reference) == GROUP && reference.kind == "ExternalSecret" && reference.name == owner.key.name
    };
    if let Some(current) = controller.map(|index| &references[index])
        && group(current) == GROUP
        && current.kind == "ExternalSecret"
        && current.name != owner.key.name
    {
        return Err(Refusal::OwnedByExternalSecret(format!(
            "secret is owned by another ExternalSecret: {}",
            current.name
        )));
    }
    if creation == CreationPolicy::Owner {
        if let Some(current) = controller.map(|index| &references[index])
            && !is_ours(current)
        {
            let (namespace, name) = (&owner.key.namespace, &owner.target().name);
            return Err(Refusal::OwnedByForeigner(format!(
                "could not set controller reference on secret: Object {namespace}/{name} is already owned by another {} controller {}",
                current.kind, current.name
            )));
        }
        let wanted = OwnerReference {
            api_version: API_VERSION.to_owned(),
            kind: "ExternalSecret".to_owned(),
            name: owner.key.name.clone(),
            uid: owner.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        match references.iter().position(is_ours) {
            Some(index) => references[index] = wanted,
            None => references.push(wanted),
        }
    } else if let Some(index) = controller
        && is_ours(&references[index])
    {
        references.remove(index);
    }
    if references.is_empty() {
        secret.metadata.owner_references = None;
    }
    Ok(())
}

fn group(reference: &OwnerReference) -> &str {
    reference.api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether nothing would change: what the API server adds by itself does not count.
pub(crate) fn same(existing: &Secret, wanted: &Secret) -> bool {
    let metadata = |secret: &Secret| {
        let metadata = &secret.metadata;
        (
            metadata.labels.clone().unwrap_or_default(),
            metadata.annotations.clone().unwrap_or_default(),
            metadata.owner_references.clone().unwrap_or_default(),
            metadata.finalizers.clone().unwrap_or_default(),
        )
    };
    existing.data == wanted.data
        && existing.secret_type == wanted.secret_type
        && existing.immutable.unwrap_or_default() == wanted.immutable.unwrap_or_default()
        && metadata(existing) == metadata(wanted)
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
