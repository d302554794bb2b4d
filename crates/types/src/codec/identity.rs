//! Who a stored object says that it is, for kinds with and without a table.

use super::json::{Node, parse};
use super::proto::{self, MAGIC};
use super::wire::Reader;
use super::{DecodeError, text};

/// `apiVersion`, `kind` and the two names; "" where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

/// Reads the identity of an object as it is stored: an envelope of protobuf, or JSON.
///
/// In every kind's message the metadata is field 1, and in it the name is field 1 and the
/// namespace field 3, so the kind itself need not be known.
pub fn identity(stored: &[u8]) -> Result<Identity, DecodeError> {
    if stored.starts_with(MAGIC) {
        let envelope = proto::open(stored)?;
        let mut found =
            Identity { api_version: envelope.api_version, kind: envelope.kind, ..Identity::default() };
        let mut object = Reader::new(envelope.raw, "Unknown");
        while let Some(entry) = object.next()? {
            if let (1, Some(metadata)) = (entry.number, entry.bytes()) {
                read_metadata(metadata, &mut found)?;
            }
        }
        return Ok(found);
    }
    let node = parse(stored)?;
    let words = |path: &[&str]| match node.at(path) {
        Some(Node::String(text)) => text.clone().into_owned(),
        _ => String::new(),
    };
    Ok(Identity {
        api_version: words(&["apiVersion"]),
        kind: words(&["kind"]),
        namespace: words(&["metadata", "namespace"]),
        name: words(&["metadata", "name"]),
    })
}

fn read_metadata(metadata: &[u8], found: &mut Identity) -> Result<(), DecodeError> {
    let mut metadata = Reader::new(metadata, "ObjectMeta");
    while let Some(entry) = metadata.next()? {
        match (entry.number, entry.bytes()) {
            (1, Some(name)) => found.name = text::lossy(name),
            (3, Some(namespace)) => found.namespace = text::lossy(namespace),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stored: &[u8], expected: [&str; 4]) {
        let found = identity(stored).expect("an object");
        assert_eq!([&*found.api_version, &*found.kind, &*found.namespace, &*found.name], expected);
    }

    #[test]
    fn a_stored_object_says_who_it_is() {
        // k8s\0, then apiVersion and kind, then metadata with name, generateName and namespace.
        check(
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x0e\x0a\x0c\x0a\x02s1\x12\0\x1a\x02ns\x3a\0\x1a\0\x22\0",
            ["v1", "Secret", "ns", "s1"],
        );
        let json = br#"{"apiVersion":"a/v1","kind":"W","metadata":{"name":"w","namespace":"n"},"data":{}}"#;
        check(json, ["a/v1", "W", "n", "w"]);
        check(b"{}", ["", "", "", ""]);
        check(br#"{"metadata":{"name":7}}"#, ["", "", "", ""]);
    }

    #[test]
    fn other_bytes_are_an_error() {
        for stored in [&b""[..], b"k8s\0", b"\xd9\xd9\xf7", b"k8s\0\x12\x7f", b"{"] {
            assert!(identity(stored).is_err(), "{}", stored.escape_ascii());
        }
    }
}
