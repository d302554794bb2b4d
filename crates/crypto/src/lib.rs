//! Bytes to bytes: identity, aescbc, aesgcm, secretbox, KMS envelopes, key derivation and key check values.
//!
//! The stored forms are those of Kubernetes, byte for byte; see [`Provider`] for
//! their prefixes. A provider is a [`Layer`]; a list of layers behind prefixes
//! ([`PrefixList`]) is a layer again, so that "provider, then key" is a list in a
//! list. Every layer is a [`Transformer`], which is what a store asks for.
//!
//! Absent on purpose: async, clocks, files, network, logging, and any source of
//! randomness but the injected one.

mod aescbc;
mod aesgcm;
mod batch;
pub mod check_value;
mod context;
pub mod derive;
mod failure;
mod identity;
pub mod kms;
mod layer;
mod named_key;
mod observe;
mod prefix;
mod provider;
mod secretbox;
pub mod transformer;

pub use aescbc::AesCbc;
pub use aesgcm::AesGcm;
pub use batch::BatchedRandom;
pub use context::LengthOrder;
pub use failure::Failure;
pub use identity::Identity;
pub use layer::Layer;
pub use named_key::{BuildError, NamedKey, keyed};
pub use observe::{Successes, TransformObserver, Watched, WatchedList};
pub use prefix::{Entry, PrefixList};
pub use provider::{ENCRYPTED_PREFIX, Provider, StoredUnder, describe};
pub use secretbox::Secretbox;
pub use transformer::{Plain, TransformError, Transformer};
