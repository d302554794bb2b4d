//! Field management: who wrote which field.

use coffer_types::Value;
use coffer_types::fields::{Set, Write, update};
use coffer_types::time::{Timestamp, rfc3339};

use super::Wire;

/// Who writes, and what.
pub(crate) struct Writer<'a> {
    /// Name of the manager.
    pub(crate) manager: &'a str,
    /// Version of the object.
    pub(crate) api_version: &'a str,
    /// Subresource, or "".
    pub(crate) subresource: &'a str,
    /// Fields that this kind of write ignores.
    pub(crate) reset: &'static [&'static [&'static str]],
    /// When.
    pub(crate) now: Timestamp,
}

/// Records that the writer changed `object` from `old`.
pub(crate) fn record_update(wire: &Wire, old: Option<&Value>, object: &mut Value, writer: &Writer<'_>) {
    let nothing = Value::object();
    let time = rfc3339(writer.now);
    let reset = Set::of_fields(writer.reset);
    update(
        old.unwrap_or(&nothing),
        object,
        &Write {
            schema: wire.field_schema(),
            api_version: writer.api_version,
            subresource: writer.subresource,
            manager: writer.manager,
            time: &time,
            reset: &reset,
        },
    );
}
