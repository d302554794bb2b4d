//! Watch frames: a line of JSON, or a length and a protobuf WatchEvent.

use bytes::Bytes;
use coffer_types::codec::transcode;
use coffer_types::meta::Meta as _;
use coffer_types::{Status, Value, schema};

use super::{Wire, encode_as};
use crate::negotiate::Media;

/// What marks the bookmark after the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One event with its encoded object.
pub(crate) fn event_frame(media: Media, event_type: &str, object: &[u8]) -> Bytes {
    match media {
        // A watch is never negotiated to YAML.
        Media::Json | Media::Yaml => {
            let mut frame = Vec::with_capacity(object.len() + 40);
            transcode::watch_json(event_type, object.strip_suffix(b"\n").unwrap_or(object), &mut frame);
            frame.into()
        }
        Media::Protobuf => {
            let mut frame = Vec::with_capacity(object.len() + 40);
            transcode::watch_protobuf(event_type, object, &mut frame);
            frame.into()
        }
    }
}

/// The object of a bookmark: nothing but its kind and a version.
pub(crate) fn bookmark(
    api_version: &str,
    kind: &str,
    revision: i64,
    initial_events_end: bool,
    wire: Option<&Wire>,
    media: Media,
) -> Result<Vec<u8>, Status> {
    let mut object = Value::object();
    object.set_type(api_version, kind);
    object.set(&["metadata", "resourceVersion"], revision.to_string());
    if initial_events_end {
        object.set(&["metadata", "annotations", INITIAL_EVENTS_END], "true");
    }
    let tables = match wire {
        Some(Wire::BuiltIn(built_in)) => Some(built_in.kind),
        _ if kind == "PartialObjectMetadata" => schema::lookup("meta.k8s.io", "v1", kind),
        _ => None,
    };
    if let Some(tables) = tables {
        coffer_types::codec::normalize(tables.message, object.object_at_mut(&[]));
    }
    Ok(encode_as(tables, api_version, &object, media))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_delimited_as_upstream() {
        assert_eq!(&event_frame(Media::Json, "ADDED", b"{}\n")[..], b"{\"type\":\"ADDED\",\"object\":{}}\n");
        let frame = event_frame(Media::Protobuf, "ADDED", b"k8s\0x");
        assert_eq!(&frame[..], b"\0\0\0\x10\x0a\x05ADDED\x12\x07\x0a\x05k8s\0x");
        let long = event_frame(Media::Protobuf, "ADDED", &[0; 300]);
        assert_eq!(&long[4..], [&b"\x0a\x05ADDED\x12\xaf\x02\x0a\xac\x02"[..], &[0; 300]].concat());
    }
}
