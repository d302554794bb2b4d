//! Stored values into objects and back: decryption, attributes, and the wiping of plaintext.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use coffer_types::meta::Meta;
use coffer_types::{SecretBytes, Status, Value};

use super::error::{ReadError, Resource};
use super::sealing::{InUse, Sealing};
use super::{Findings, ObjectCodec, Stored};
use crate::key::{KeySpace, ObjectKey};
use crate::kv::{KeyValue, Revision, SharedValue};
use crate::statistics::Counts;

/// How the objects of one resource are named, encoded and encrypted.
pub(crate) struct Objects {
    pub(crate) resource: Resource,
    pub(crate) keys: KeySpace,
    /// What was asked of the resource, and done.
    pub(crate) counts: Counts,
    codec: Arc<dyn ObjectCodec>,
    sealing: Sealing,
}

/// A readable value.
pub(crate) struct Opened {
    pub(crate) stored: Arc<Stored>,
    /// Whether a write would encrypt it differently now.
    pub(crate) stale: bool,
}

/// A value that cannot be read (now; after a reload of keys it may be).
pub(crate) struct Unreadable {
    /// As it lies in the store: ciphertext, or bytes that are no object.
    pub(crate) kv: KeyValue,
    /// Where the key's part after the resource's root begins.
    tail: usize,
    pub(crate) error: ReadError,
}

impl Unreadable {
    /// `<namespace>/<name>` or `<name>`.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.kv.key[self.tail..]
    }

    /// The full key as text.
    pub(crate) fn key(&self) -> String {
        String::from_utf8_lossy(&self.kv.key).into_owned()
    }
}

impl Objects {
    pub(crate) fn new(
        resource: Resource,
        keys: KeySpace,
        codec: Arc<dyn ObjectCodec>,
        in_use: Arc<InUse>,
    ) -> Self {
        let sealing = Sealing::new(in_use, &resource.group, &resource.name);
        Self { resource, keys, counts: Counts::default(), codec, sealing }
    }

    /// Lets go of transformers that are in use no more.
    pub(crate) fn look_at_transformers(&self) {
        drop(self.sealing.now());
    }

    /// Decrypts a value and computes what selectors look at.
    pub(crate) fn open(&self, kv: &KeyValue) -> Result<Opened, ReadError> {
        let plain = self
            .sealing
            .now()
            .transformer
            .from_storage(&kv.value, &kv.key)
            .map_err(|error| ReadError::Transform(error.to_string()))?;
        let stale = plain.stale;
        let stored = self.stored(&kv.key, plain.bytes, kv.mod_revision)?;
        Ok(Opened { stored, stale })
    }

    /// As [`Objects::open`], keeping what could not be opened. Copies the key and the value in that
    /// case, because they may be slices of a whole page.
    pub(crate) fn open_or_keep(&self, kv: &KeyValue) -> Result<Arc<Stored>, Arc<Unreadable>> {
        self.open(kv).map(|opened| opened.stored).map_err(|error| {
            let mut kept = kv.clone();
            kept.key = Bytes::copy_from_slice(&kv.key);
            kept.value = Bytes::copy_from_slice(&kv.value);
            Arc::new(Unreadable { kv: kept, tail: self.keys.root().len().min(kv.key.len()), error })
        })
    }

    /// Plaintext that has just been written or read, as a shared object.
    pub(crate) fn stored(
        &self,
        key: &[u8],
        plain: SecretBytes,
        revision: Revision,
    ) -> Result<Arc<Stored>, ReadError> {
        let decode_error = |why: String| {
            self.counts.decode_errors.add(1);
            ReadError::Decode { revision, why }
        };
        let (namespace, name) = self
            .keys
            .split(key)
            .ok_or_else(|| decode_error("the key is not UTF-8 or not of this resource".to_owned()))?;
        let attributes = self.codec.attributes(plain.expose()).map_err(decode_error)?;
        Ok(Arc::new(Stored {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            revision,
            // Wiped when the last reader is gone.
            bytes: Bytes::from_owner(plain),
            attributes,
            findings: Findings::default(),
        }))
    }

    /// The object with its `resourceVersion`.
    pub(crate) fn decode(&self, stored: &Stored) -> Result<Value, ReadError> {
        let mut object = self.codec.decode(&stored.bytes).map_err(|why| {
            self.counts.decode_errors.add(1);
            ReadError::Decode { revision: stored.revision, why }
        })?;
        object.set_meta_str("resourceVersion", &stored.revision.to_string());
        Ok(object)
    }

    /// The plaintext to store: without `resourceVersion` and `selfLink`.
    pub(crate) fn encode(&self, mut object: Cow<'_, Value>) -> Result<SecretBytes, Status> {
        for field in ["resourceVersion", "selfLink"] {
            if object.at(&["metadata", field]).is_some() {
                object.to_mut().remove(&["metadata", field]);
            }
        }
        self.codec.encode(&object).map(SecretBytes::new).map_err(Status::plain)
    }

    /// What to write.
    pub(crate) fn seal(&self, key: &ObjectKey, plain: &SecretBytes) -> Result<SharedValue, Status> {
        let sealing = self.sealing.now();
        // Counted before: a nonce is used up even when the write is lost.
        if let Some(writes) = &sealing.writes {
            writes.count();
        }
        sealing
            .transformer
            .to_storage(plain.expose(), key.context())
            .map(|sealed| SharedValue(Bytes::from(sealed)))
            .map_err(Status::internal)
    }
}
