//! One step of a transformation, which appends instead of allocating.

use std::sync::Arc;

use crate::{Failure, Plain, PrefixList, TransformError, Transformer};

/// A transformer that writes into the caller's buffer.
///
/// Layers nest (provider prefix, key prefix, cipher); the outermost one reserves
/// the buffer once for all of them, so that no stored value is ever copied or
/// grown on its way out.
pub trait Layer: Send + Sync + 'static {
    /// The plaintext of `stored`, the prefixes of outer layers already taken off.
    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure>;

    /// Exactly how many bytes [`Layer::seal_into`] appends for a plaintext of `plain` bytes.
    fn sealed_len(&self, plain: usize) -> usize;

    /// Appends what is to be stored to `out`. After an error, `out` may hold a part of it,
    /// but never plaintext that the result would not have held.
    fn seal_into(&self, plain: &[u8], context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure>;

    /// The list that this is, if it is one.
    fn list(&self) -> Option<&PrefixList> {
        None
    }

    /// What everything that [`Layer::seal_into`] appends begins with: provider and key, no secret.
    fn seals_under(&self) -> String {
        String::new()
    }
}

impl<L: Layer + ?Sized> Layer for Arc<L> {
    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure> {
        (**self).open(stored, context)
    }

    fn sealed_len(&self, plain: usize) -> usize {
        (**self).sealed_len(plain)
    }

    fn seal_into(&self, plain: &[u8], context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        (**self).seal_into(plain, context, out)
    }

    fn list(&self) -> Option<&PrefixList> {
        (**self).list()
    }

    fn seals_under(&self) -> String {
        (**self).seals_under()
    }
}

impl<L: Layer> Transformer for L {
    fn from_storage(&self, stored: &[u8], context: &[u8]) -> Result<Plain, TransformError> {
        Ok(self.open(stored, context)?)
    }

    fn to_storage(&self, plain: &[u8], context: &[u8]) -> Result<Vec<u8>, TransformError> {
        let mut out = Vec::with_capacity(self.sealed_len(plain.len()));
        self.seal_into(plain, context, &mut out)?;
        Ok(out)
    }

    fn writes_under(&self) -> String {
        self.seals_under()
    }
}
