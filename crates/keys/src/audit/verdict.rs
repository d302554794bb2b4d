//! One stored copy, judged.

use coffer_config::encryption::Transformers;
use coffer_crypto::{Provider, StoredUnder, describe};
use coffer_store::key::{KeyError, clean_prefix};
use coffer_store::stored_resource::{StoredResource, stored_resource};
use coffer_types::codec::identity::identity;

use crate::place::foreign;

/// What a plaintext object begins with: protobuf, JSON, CBOR.
const OBJECTS: [&[u8]; 3] = [b"k8s\0", b"{", b"\xd9\xd9\xf7"];

/// Resources whose plaintext is a finding when no configuration says what should be encrypted.
const SECRET_BY_NATURE: StoredResource<'static> = StoredResource { group: "", resource: "secrets" };

/// What is wrong with a stored copy, or that nothing is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// As a write would store it now; or nothing is known against it.
    Good,
    /// A key that is held opens it, but it is not the one that writes.
    OldKey,
    /// Not encrypted although it should be.
    Plaintext,
    /// No key of the configuration opens it; the reason is the transformer's.
    Undecryptable(String),
    /// It is no object.
    Undecodable,
    /// It is the object of another key: `<namespace>/<name>` of what it holds, behind its kind where only
    /// that is wrong.
    Misplaced(String),
}

/// A stored copy with what it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged<'k> {
    /// Its resource; `None` for a key of no object.
    pub(super) resource: Option<StoredResource<'k>>,
    /// `<namespace>/<name>`, or the whole key when it is no object's.
    pub(super) name: &'k str,
    /// Provider and key; `None` for a form that nobody knows.
    pub(super) under: Option<StoredUnder>,
}

/// Judges stored copies.
#[derive(Debug, Clone)]
pub struct Auditor {
    root: String,
    transformers: Option<Transformers>,
}

impl Auditor {
    /// With the transformers of a configuration every copy is opened; without, only what the
    /// copies say of themselves is known.
    ///
    /// # Errors
    /// When `etcd_prefix` cannot be one.
    pub fn new(etcd_prefix: &str, transformers: Option<Transformers>) -> Result<Self, KeyError> {
        Ok(Self { root: clean_prefix(etcd_prefix)?, transformers })
    }

    /// `/registry/`.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Whether copies are opened.
    pub(super) fn opens(&self) -> bool {
        self.transformers.is_some()
    }

    /// What is known of a copy without opening it.
    pub(super) fn describe<'k>(&self, key: &'k str, stored: &[u8]) -> Judged<'k> {
        let under = match &self.transformers {
            Some(transformers) => transformers.describe(stored),
            None => describe(stored, &[]),
        };
        match stored_resource(&self.root, key) {
            Some((resource, name)) => Judged { resource: Some(resource), name, under },
            None => Judged { resource: None, name: key, under },
        }
    }

    /// What is wrong with a copy.
    pub(super) fn judge(&self, judged: &Judged<'_>, key: &str, stored: &[u8]) -> Verdict {
        let Some(resource) = judged.resource else { return Verdict::Good };
        let plain = judged.under.as_ref().is_some_and(|under| under.provider == Provider::Identity);
        let Some(transformers) = &self.transformers else {
            return match plain {
                true if resource == SECRET_BY_NATURE => Verdict::Plaintext,
                true => place(key, resource, stored).unwrap_or(Verdict::Good),
                false => Verdict::Good,
            };
        };
        match transformers
            .transformer_for(resource.group, resource.resource)
            .from_storage(stored, key.as_bytes())
        {
            Err(error) => Verdict::Undecryptable(error.0),
            Ok(opened) => match place(key, resource, opened.bytes.expose()) {
                Some(wrong) => wrong,
                None if !opened.stale => Verdict::Good,
                None if plain => Verdict::Plaintext,
                None => Verdict::OldKey,
            },
        }
    }

    /// Whether `stored` would open under another key's name: its authentication then says where it
    /// was taken from.
    pub(super) fn opens_as(&self, resource: StoredResource<'_>, stored: &[u8], key: &[u8]) -> bool {
        self.transformers.as_ref().is_some_and(|transformers| {
            transformers.transformer_for(resource.group, resource.resource).from_storage(stored, key).is_ok()
        })
    }

    /// What of a key names the object; the whole key when it is no object's.
    pub(super) fn name_of<'k>(&self, key: &'k str) -> &'k str {
        stored_resource(&self.root, key).map_or(key, |(_, name)| name)
    }
}

/// What is wrong with a plaintext at this key, if anything: it is no object, or one of another key.
fn place(key: &str, resource: StoredResource<'_>, plain: &[u8]) -> Option<Verdict> {
    if !OBJECTS.iter().any(|start| plain.starts_with(start)) {
        return Some(Verdict::Undecodable);
    }
    foreign(key, Some(resource), &identity(plain).ok()?).map(Verdict::Misplaced)
}
