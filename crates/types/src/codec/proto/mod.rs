//! Kubernetes' protobuf: messages by the tables, and the envelope around a top-level object.
//!
//! Encoding is byte-identical with Go's generated code: fields in ascending order of
//! their numbers, scalars that are no pointers always written, map entries sorted.
//! Unknown fields are skipped. Text that is no UTF-8 is replaced by U+FFFD.

mod decode;
mod encode;
mod envelope;

pub(super) use decode::{IntOrText, int_or_text, last_bytes, timestamp};
pub use decode::{decode, decode_enveloped, decode_metadata};
pub use encode::{encode, encode_enveloped};
pub use envelope::{Envelope, MAGIC, open, wrap};
pub(super) use envelope::{begin_sized, end_sized, raw};
