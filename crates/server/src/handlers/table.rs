//! `meta.k8s.io` Table: the rows that kubectl prints.

use coffer_store::registry::{Event, List, Stored};
use coffer_types::meta::Meta as _;
use coffer_types::time::Timestamp;
use coffer_types::{Status, Value};

use super::call::{Call, Output};
use crate::negotiate::{Media, MetaVersion};
use crate::query::Query;
use crate::resources::Resource;
use crate::wire;

/// What each row carries besides its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Include {
    /// Nothing.
    None,
    /// The metadata.
    #[default]
    Metadata,
    /// The object.
    Object,
}

impl Include {
    pub(super) fn parse(query: &Query) -> Result<Self, Status> {
        match query.text("includeObject") {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
                crate::quote(other)
            ))),
        }
    }
}

/// A table of one object.
pub(super) fn of_one(
    call: &Call,
    resource: &Resource,
    output: &Output,
    version: MetaVersion,
    include: Include,
    media: Media,
) -> Result<Vec<u8>, Status> {
    let object = match output {
        Output::Stored(stored) => resource.wire.read(stored)?,
        Output::Value(value) => value.clone(),
    };
    let meta = meta_of(object.resource_version());
    let rows = vec![row(resource, object, version, include, call.server.clock.now())];
    Ok(table(Some(columns(resource)), meta, rows, version, media))
}

/// A table of a page.
pub(super) fn of_list(
    call: &Call,
    resource: &Resource,
    page: &List,
    version: MetaVersion,
    include: Include,
    media: Media,
) -> Result<Vec<u8>, Status> {
    let now = call.server.clock.now();
    let mut rows = Vec::with_capacity(page.items.len());
    for stored in &page.items {
        rows.push(row(resource, resource.wire.read(stored)?, version, include, now));
    }
    let mut meta = meta_of(&page.revision.to_string());
    meta.set_str(&["continue"], &page.continue_token);
    if let Some(remaining) = page.remaining {
        meta.set(&["remainingItemCount"], remaining);
    }
    Ok(table(Some(columns(resource)), meta, rows, version, media))
}

/// A table of one event's object; only a watch's first carries the columns.
pub(super) fn of_event(
    resource: &Resource,
    stored: &Stored,
    version: MetaVersion,
    include: Include,
    media: Media,
    first: bool,
    now: Timestamp,
) -> Result<Vec<u8>, Status> {
    let object = resource.wire.read(stored)?;
    let meta = meta_of(object.resource_version());
    let rows = vec![row(resource, object, version, include, now)];
    Ok(table(first.then(|| columns(resource)), meta, rows, version, media))
}

/// The table of a bookmark: one row whose object has nothing but a version.
pub(super) fn bookmark(
    resource: &Resource,
    event: &Event,
    version: MetaVersion,
    media: Media,
    now: Timestamp,
) -> Result<Vec<u8>, Status> {
    let mut object = Value::object();
    object.set_type(version.api_version(), "PartialObjectMetadata");
    object.set(&["metadata", "resourceVersion"], event.revision.to_string());
    if event.initial_events_end {
        object.set(&["metadata", "annotations", "k8s.io/initial-events-end"], "true");
    }
    let mut row = Value::object();
    row.set(&["cells"], resource.printer.cells(&Value::object(), now));
    row.set(&["object"], object);
    Ok(table(None, meta_of(&event.revision.to_string()), vec![row], version, media))
}

fn meta_of(version: &str) -> Value {
    let mut meta = Value::object();
    meta.set_str(&["resourceVersion"], version);
    meta
}

fn table(
    columns: Option<Value>,
    meta: Value,
    rows: Vec<Value>,
    version: MetaVersion,
    media: Media,
) -> Vec<u8> {
    let mut table = Value::object();
    table.set_type(version.api_version(), "Table");
    table.set(&["metadata"], meta);
    table.set(&["columnDefinitions"], columns.unwrap_or_default());
    table.set(&["rows"], rows);
    wire::encode_meta("Table", version, &table, media)
}

fn columns(resource: &Resource) -> Value {
    resource.printer.columns()
}

fn row(resource: &Resource, object: Value, version: MetaVersion, include: Include, now: Timestamp) -> Value {
    let mut row = Value::object();
    row.set(&["cells"], resource.printer.cells(&object, now));
    match include {
        Include::None => {}
        Include::Metadata => row.set(&["object"], wire::partial_tree(&object, version)),
        Include::Object => row.set(&["object"], coffer_types::patch::to_json_form(&object)),
    }
    row
}
