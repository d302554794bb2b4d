//! How much one body may make us do.

/// Nesting of JSON and YAML. Upstream allows 10,000 levels of JSON on a growing
/// stack; no object comes near this one, and a thread's fixed stack bears it.
pub const MAX_DEPTH: usize = 512;

/// Nesting of protobuf messages; each may be two levels of JSON.
pub const MAX_MESSAGE_DEPTH: usize = 256;

/// Messages in one protobuf body. An empty message takes two bytes on the wire
/// and hundreds in memory, so bytes alone do not bound what is allocated.
pub const MAX_MESSAGES: usize = 500_000;

/// Unknown and duplicate fields reported for one body, as upstream.
pub const MAX_STRICT_ERRORS: usize = 100;

/// What the aliases of one YAML stream may stand for, and the anchors of one document hold: bytes
/// of text plus a fixed cost for each node. Nine levels of nine aliases stand for gigabytes.
pub const MAX_ALIAS_COST: usize = 16 << 20;
