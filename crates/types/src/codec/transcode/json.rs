//! Custom resources: stored JSON, whose keys are sorted, with a `resourceVersion` put in.

use super::METADATA_KIND;
use crate::codec::{DecodeError, json, proto, text};
use crate::schema::{self, Message};
use crate::{Map, Value};

const RESOURCE_VERSION: &[u8] = b"resourceVersion";

/// The whole object.
pub(super) fn whole(stored: &[u8], revision: i64, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let stored = stored.trim_ascii_end();
    let metadata = find_metadata(stored)?;
    out.extend_from_slice(&stored[..metadata.start]);
    put_metadata(&stored[metadata.clone()], revision, out)?;
    out.extend_from_slice(&stored[metadata.end..]);
    Ok(())
}

/// `PartialObjectMetadata`: the fields in the order of the tables.
pub(super) fn metadata(
    stored: &[u8],
    revision: i64,
    api_version: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let (message, metadata) = typed_metadata(stored, revision)?;
    let mut object = Map::new();
    if let Some(api_version) = api_version {
        object.insert("kind".to_owned(), METADATA_KIND.into());
        object.insert("apiVersion".to_owned(), api_version.into());
    }
    object.insert("metadata".to_owned(), metadata);
    json::encode(message, &Value::Object(object), out);
    Ok(())
}

/// The same as a protobuf message.
pub(super) fn metadata_message(stored: &[u8], revision: i64, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let (message, metadata) = typed_metadata(stored, revision)?;
    let object = Value::Object(Map::from([("metadata".to_owned(), metadata)]));
    proto::encode(message, &object, out);
    Ok(())
}

fn typed_metadata(stored: &[u8], revision: i64) -> Result<(&'static Message, Value), DecodeError> {
    let stored = stored.trim_ascii_end();
    let range = find_metadata(stored)?;
    let mut object = Vec::with_capacity(range.len() + 64);
    object.extend_from_slice(b"{\"metadata\":");
    put_metadata(&stored[range], revision, &mut object)?;
    object.push(b'}');
    let kind = schema::lookup("meta.k8s.io", "v1", METADATA_KIND).ok_or_else(|| broken("no tables"))?;
    let mut decoded = json::decode(kind.message, &object)?.object;
    let metadata = decoded.remove(&["metadata"]).unwrap_or_default();
    Ok((kind.message, metadata))
}

/// Appends the metadata object with the revision at its place among the sorted keys.
fn put_metadata(metadata: &[u8], revision: i64, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let mut members = Members::new(metadata)?;
    let mut before = 1;
    let (mut after, mut any_before) = (1, false);
    while let Some(member) = members.next()? {
        if member.name < RESOURCE_VERSION {
            before = member.end;
            any_before = true;
            after = member.end;
            continue;
        }
        if member.name == RESOURCE_VERSION {
            // Never stored, but another writer may have left one.
            after = member.end;
        }
        break;
    }
    out.extend_from_slice(&metadata[..before]);
    if any_before {
        out.push(b',');
    }
    out.extend_from_slice(b"\"resourceVersion\":\"");
    text::int(out, revision);
    out.push(b'"');
    let rest = metadata[after..].trim_ascii_start();
    let rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
    if rest != b"}" {
        out.push(b',');
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Where the value of the top-level member `metadata` stands.
fn find_metadata(stored: &[u8]) -> Result<std::ops::Range<usize>, DecodeError> {
    let mut members = Members::new(stored)?;
    while let Some(member) = members.next()? {
        if member.name == b"metadata" && stored.get(member.value_start) == Some(&b'{') {
            return Ok(member.value_start..member.end);
        }
    }
    Err(broken("no metadata"))
}

fn broken(what: &str) -> DecodeError {
    DecodeError::new(format!("stored JSON is broken: {what}"))
}

struct Member<'a> {
    /// As written, escapes and all: the names looked for have none.
    name: &'a [u8],
    value_start: usize,
    end: usize,
}

/// The members of one object, found by their brackets and quotes.
struct Members<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    fn new(json: &'a [u8]) -> Result<Self, DecodeError> {
        if json.first() == Some(&b'{') && json.last() == Some(&b'}') && json.len() > 1 {
            Ok(Self { json, at: 1 })
        } else {
            Err(broken("no object"))
        }
    }

    fn next(&mut self) -> Result<Option<Member<'a>>, DecodeError> {
        self.skip(b" \t\r\n,");
        if self.json.get(self.at) != Some(&b'"') {
            return Ok(None);
        }
        let name_end = text::string_end(self.json, self.at);
        let name = self.json.get(self.at + 1..name_end - 1).ok_or_else(|| broken("no name"))?;
        self.at = name_end;
        self.skip(b" \t\r\n:");
        let value_start = self.at;
        self.skip_value()?;
        Ok(Some(Member { name, value_start, end: self.at }))
    }

    fn skip(&mut self, any_of: &[u8]) {
        while self.json.get(self.at).is_some_and(|byte| any_of.contains(byte)) {
            self.at += 1;
        }
    }

    fn skip_value(&mut self) -> Result<(), DecodeError> {
        let mut depth = 0_usize;
        loop {
            match self.json.get(self.at) {
                None => return Err(broken("no end")),
                Some(b'"') => {
                    self.at = text::string_end(self.json, self.at);
                    if depth == 0 {
                        return Ok(());
                    }
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') if depth == 0 => return Ok(()),
                Some(b'}' | b']') if depth == 1 => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'}' | b']') => depth -= 1,
                Some(b',') if depth == 0 => return Ok(()),
                Some(_) => {}
            }
            self.at += 1;
        }
    }
}
