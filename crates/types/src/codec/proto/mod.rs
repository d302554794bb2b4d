//! Kubernetes' protobuf: messages by the tables, and the envelope around a top-level object.
//!
//! Encoding is byte-identical with Go's generated code: fields in ascending order of
//! their numbers, scalars that are no pointers always written, map entries sorted.
//! Unknown fields are skipped. Text that is no UTF-8 is replaced by U+FFFD.

mod decode;
mod encode;
mod envelope;

pub use decode::decode;
pub(super) use decode::{IntOrText, int_or_text, last_bytes, timestamp};
pub use encode::encode;
pub use envelope::{Envelope, MAGIC, decode_enveloped, encode_enveloped, open, wrap};
