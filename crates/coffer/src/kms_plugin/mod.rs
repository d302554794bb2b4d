//! Backends of `coffer kms-plugin` that need more than files.

#[cfg(feature = "pkcs11")]
pub(crate) mod pkcs11;
pub(crate) mod transit;
