//! One stored value explained: how it is laid out, under which key, and what it holds.

mod layout;

use std::borrow::Cow;

use coffer_config::encryption::Transformers;
use coffer_crypto::{Provider, describe};
use coffer_store::key::{KeyError, clean_prefix};
use coffer_store::stored_resource::{StoredResource, stored_resource};
use coffer_types::codec::identity::identity;
use coffer_types::codec::{json, proto, yaml};
use coffer_types::{SecretBytes, Value};
use serde::{Deserialize, Serialize};

use crate::place::foreign;

/// What is known of one stored value. Nothing of its content is in it, only names and lengths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Its key in etcd; "" when it is not known.
    pub etcd_key: String,
    /// `secrets` or `deployments.apps`; "" when it is not known.
    pub resource: String,
    /// As in an EncryptionConfiguration; KMS with its version; `unknown` for a form that nobody knows.
    pub provider: String,
    /// Name of the key or plugin; "" for identity.
    pub key: String,
    /// Length of the stored value.
    pub bytes: usize,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// What the envelope of a KMS plugin says of its key.
    #[serde(default)]
    pub envelope: Option<Envelope>,
    /// What became of opening it; `None` when no configuration was given and it is encrypted.
    pub opened: Option<Opened>,
}

impl Explained {
    /// Whether nothing keeps it from being read, as far as that was tried.
    pub fn readable(&self) -> bool {
        !matches!(self.opened, Some(Opened::Undecryptable { .. }))
    }
}

/// A run of bytes of a stored value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Such as `prefix`, `nonce`, `ciphertext`, `tag`.
    pub name: Cow<'static, str>,
    /// Bytes.
    pub length: usize,
}

/// How a KMS plugin holds the data key of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// Name of the plugin's key; "" in version 1, which does not say it.
    pub key_id: String,
    /// What the plugin has encrypted: `seed` of the data key, or `data key`.
    pub source: Cow<'static, str>,
    /// Bytes of that ciphertext.
    pub source_length: usize,
    /// Names of the plugin's annotations, with the lengths of their values.
    pub annotations: Vec<(String, usize)>,
}

/// What became of opening a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum Opened {
    /// A key opens it, or it is plaintext.
    #[serde(rename_all = "camelCase")]
    Readable {
        /// Whether a write would store it in another form now.
        stale: bool,
        /// What it holds.
        object: Option<Object>,
    },
    /// No key opens it.
    Undecryptable {
        /// The transformer's.
        reason: String,
    },
}

/// The object in a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// `protobuf` or `JSON`.
    pub encoding: Cow<'static, str>,
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// Whether the key in etcd is that of another object.
    pub misplaced: bool,
    /// The names in `data`, with the lengths of their values.
    pub data: Vec<(String, usize)>,
}

/// A value with what opens it.
pub struct Stored<'a> {
    /// Its key in etcd, which authenticated providers bind it to; "" when it is not known.
    pub etcd_key: &'a str,
    /// The value.
    pub value: &'a [u8],
    /// `--etcd-prefix`.
    pub prefix: &'a str,
    /// The keys that are held.
    pub transformers: Option<&'a Transformers>,
}

/// Explains a value. With it comes its plaintext, when that could be had.
///
/// # Errors
/// When the prefix cannot be one.
pub fn explain(stored: &Stored<'_>) -> Result<(Explained, Option<SecretBytes>), KeyError> {
    let root = clean_prefix(stored.prefix)?;
    let resource = stored_resource(&root, stored.etcd_key).map(|(resource, _)| resource);
    let under = match stored.transformers {
        Some(transformers) => transformers.describe(stored.value),
        None => describe(stored.value, &[]),
    };
    let (group, plural) = resource.map_or(("", "secrets"), |resource| (resource.group, resource.resource));
    let plain = match (stored.transformers, &under) {
        (Some(transformers), _) => Some(
            transformers
                .transformer_for(group, plural)
                .from_storage(stored.value, stored.etcd_key.as_bytes())
                .map(|plain| (plain.bytes, plain.stale))
                .map_err(|error| error.0),
        ),
        (None, Some(under)) if under.provider == Provider::Identity => {
            Some(Ok((SecretBytes::new(stored.value.to_vec()), false)))
        }
        (None, _) => None,
    };
    let opened = plain.as_ref().map(|plain| match plain {
        Ok((bytes, stale)) => {
            Opened::Readable { stale: *stale, object: object(bytes.expose(), stored.etcd_key, resource) }
        }
        Err(reason) => Opened::Undecryptable { reason: reason.clone() },
    });
    let explained = Explained {
        etcd_key: stored.etcd_key.to_owned(),
        resource: resource.map(|resource| resource.to_string()).unwrap_or_default(),
        provider: under.as_ref().map_or_else(|| "unknown".to_owned(), |under| under.provider.to_string()),
        key: under.as_ref().map(|under| under.key_name.clone()).unwrap_or_default(),
        bytes: stored.value.len(),
        parts: layout::parts(stored.value, under.as_ref()),
        envelope: layout::envelope(stored.value, under.as_ref()),
        opened,
    };
    Ok((explained, plain.and_then(Result::ok).map(|(bytes, _)| bytes)))
}

/// A plaintext as a document that a person can read: YAML of the object, with `data` decoded by
/// nobody. `None` when it is no object that is known.
pub fn reveal(plain: &SecretBytes) -> Option<SecretBytes> {
    let object = whole(plain.expose())?;
    let mut text = Vec::new();
    yaml::encode_untyped(&object, &mut text);
    Some(SecretBytes::new(text))
}

fn whole(plain: &[u8]) -> Option<Value> {
    if plain.starts_with(proto::MAGIC) {
        return proto::decode_enveloped(plain, None).ok();
    }
    Some(json::decode_untyped(plain).ok()?.object)
}

fn object(plain: &[u8], etcd_key: &str, resource: Option<StoredResource<'_>>) -> Option<Object> {
    let found = identity(plain).ok()?;
    let data = whole(plain).map(|object| lengths(&object)).unwrap_or_default();
    let misplaced = !etcd_key.is_empty() && foreign(etcd_key, resource, &found).is_some();
    Some(Object {
        encoding: if plain.starts_with(proto::MAGIC) { "protobuf" } else { "JSON" }.into(),
        api_version: found.api_version,
        kind: found.kind,
        namespace: found.namespace,
        misplaced,
        name: found.name,
        data,
    })
}

/// The names in `data` with the lengths of their values.
fn lengths(object: &Value) -> Vec<(String, usize)> {
    let data = object.get("data").and_then(Value::as_object).into_iter().flatten();
    data.map(|(name, value)| {
        let length = match value {
            Value::Bytes(bytes) => bytes.expose().len(),
            Value::String(text) => text.len(),
            _ => 0,
        };
        (name.clone(), length)
    })
    .collect()
}
