//! From a message to a [`Value`].

use super::envelope::{MAGIC, open, wrong_wire_type};
use crate::codec::limits::{MAX_MESSAGE_DEPTH, MAX_MESSAGES};
use crate::codec::wire::{Entry, Payload, Reader, WireType, varint};
use crate::codec::{DecodeError, json, quantity, text, times, zero};
use crate::meta::{self, Meta, split_api_version};
use crate::schema::{self, Field, Kind, Message, Shape, Type, Union};
use crate::{Map, SecretBytes, Value};

/// Decodes a message (without an envelope) into the normal form; `apiVersion` and `kind` are not set.
pub fn decode(message: &'static Message, bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut decoder = Decoder { messages: 0 };
    let mut members = Map::new();
    decoder.message(message, bytes, &mut members, 0)?;
    zero::fill(message, &mut members);
    Ok(Value::Object(members))
}

/// Decodes an enveloped object of a built-in kind; `apiVersion` and `kind` are set.
/// `expected` is used where the envelope names no kind or no version.
pub fn decode_enveloped(data: &[u8], expected: Option<&'static Kind>) -> Result<Value, DecodeError> {
    let mut envelope = open(data)?;
    if let Some(expected) = expected {
        if envelope.kind.is_empty() {
            expected.kind.clone_into(&mut envelope.kind);
        }
        if envelope.api_version.is_empty() {
            envelope.api_version = expected.api_version();
        }
    }
    let shown =
        || format!("runtime.TypeMeta{{APIVersion:{:?}, Kind:{:?}}}", envelope.api_version, envelope.kind);
    if envelope.kind.is_empty() {
        return Err(DecodeError::new(format!("Object 'Kind' is missing in '{}'", shown())));
    }
    if envelope.api_version.is_empty() {
        return Err(DecodeError::new(format!("Object 'apiVersion' is missing in '{}'", shown())));
    }
    let (group, version) = split_api_version(&envelope.api_version);
    let kind = schema::lookup(group, version, &envelope.kind).ok_or_else(|| {
        DecodeError::new(format!(
            "no kind {:?} is registered for version {:?}",
            envelope.kind,
            meta::api_version(group, version)
        ))
    })?;
    let mut object = decode(kind.message, envelope.raw)?;
    object.set_type(&envelope.api_version, &envelope.kind);
    Ok(object)
}

/// Decodes of an enveloped object of a built-in kind nothing but its type and its metadata, and of that
/// all but `managedFields`: they take longer than all the rest.
pub fn decode_metadata(data: &[u8], kind: &'static Kind) -> Result<Value, DecodeError> {
    let raw = open(data)?.raw;
    let mut object = Value::object();
    object.set_type(&kind.api_version(), kind.kind);
    let field = kind.message.field("metadata");
    let Some((number, Shape::One(Type::Message(object_meta)))) =
        field.map(|field| (field.number, field.shape))
    else {
        return Ok(object);
    };
    let managed = object_meta.field("managedFields").map_or(0, |field| field.number);
    let mut kept = Vec::new();
    let mut reader = Reader::new(raw, kind.message.name);
    while let Some(entry) = reader.next()? {
        if entry.number == number {
            let metadata =
                entry.bytes().ok_or_else(|| wrong_wire_type(entry.wire_type.number(), "metadata"))?;
            keep_others(object_meta, managed, metadata, &mut kept)?;
        }
    }
    let metadata = decode(object_meta, &kept)?;
    object.set(&["metadata"], metadata);
    Ok(object)
}

/// Appends a message without the fields of one number.
fn keep_others(
    message: &'static Message,
    number: u32,
    bytes: &[u8],
    kept: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(bytes, message.name);
    loop {
        let start = bytes.len() - reader.remaining();
        let Some(entry) = reader.next()? else { return Ok(()) };
        if entry.number != number {
            kept.extend_from_slice(&bytes[start..bytes.len() - reader.remaining()]);
        }
    }
}

struct Decoder {
    messages: usize,
}

impl Decoder {
    /// Merges a message into `members`, as Go does when one comes in parts.
    fn message(
        &mut self,
        message: &'static Message,
        bytes: &[u8],
        members: &mut Map,
        depth: usize,
    ) -> Result<(), DecodeError> {
        self.messages += 1;
        if depth > MAX_MESSAGE_DEPTH || self.messages > MAX_MESSAGES {
            return Err(DecodeError::new("proto: message is nested too deeply or has too many parts"));
        }
        let mut reader = Reader::new(bytes, message.name);
        while let Some(entry) = reader.next()? {
            let Some(index) = message.numbered(entry.number) else { continue };
            let field = &message.fields[index];
            if let Some(inlined) = field.inlined() {
                self.message(inlined, expect_bytes(&entry, field)?, members, depth + 1)?;
                continue;
            }
            match field.shape {
                Shape::One(kind) => {
                    let known = members.remove(field.json);
                    let value = self.one(kind, &entry, field, known, depth)?;
                    if !zero::leaves_out(field, &value) {
                        members.insert(field.json.to_owned(), value);
                    }
                }
                Shape::List(kind) => {
                    let items =
                        members.entry(field.json.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(items) = items {
                        self.item(kind, &entry, field, items, depth)?;
                    }
                }
                Shape::Map(kind) => {
                    let (key, value) = self.map_entry(kind, expect_bytes(&entry, field)?, field, depth)?;
                    members.entry(field.json.to_owned()).or_insert_with(Value::object);
                    if let Some(Value::Object(entries)) = members.get_mut(field.json) {
                        entries.insert(key, value);
                    }
                }
            }
        }
        Ok(())
    }

    fn item(
        &mut self,
        kind: Type,
        entry: &Entry<'_>,
        field: &Field,
        items: &mut Vec<Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        if let (Type::Int32 | Type::Int64, Payload::Bytes(mut packed)) = (kind, entry.payload) {
            while !packed.is_empty() {
                items.push(int(kind, varint(&mut packed)?));
            }
            return Ok(());
        }
        items.push(self.one(kind, entry, field, None, depth)?);
        Ok(())
    }

    fn one(
        &mut self,
        kind: Type,
        entry: &Entry<'_>,
        field: &Field,
        known: Option<Value>,
        depth: usize,
    ) -> Result<Value, DecodeError> {
        match (kind, entry.payload, entry.wire_type) {
            (Type::Int32 | Type::Int64, Payload::Number(number), WireType::Varint) => Ok(int(kind, number)),
            (Type::Bool, Payload::Number(number), WireType::Varint) => Ok(Value::Bool(number != 0)),
            (Type::Double, Payload::Number(bits), WireType::Fixed64) => {
                Ok(Value::Float(f64::from_bits(bits)))
            }
            (Type::Int32 | Type::Int64 | Type::Bool | Type::Double, ..) | (_, Payload::Number(_), _) => {
                Err(wrong_wire_type(entry.wire_type.number(), field.json))
            }
            (_, Payload::Bytes(bytes), _) => self.delimited(kind, bytes, known, depth),
        }
    }

    fn delimited(
        &mut self,
        kind: Type,
        bytes: &[u8],
        known: Option<Value>,
        depth: usize,
    ) -> Result<Value, DecodeError> {
        Ok(match kind {
            Type::String => Value::String(text::lossy(bytes)),
            Type::Bytes => Value::Bytes(SecretBytes::new(bytes.to_vec())),
            Type::Time => time(bytes, false)?,
            Type::MicroTime => time(bytes, true)?,
            Type::IntOrString => int_or_string(bytes)?,
            Type::Quantity => quantity(bytes)?,
            Type::FieldsV1 | Type::RawJson => match last_bytes(bytes, "JSON")? {
                None => Value::Null,
                Some(raw) => json::decode_untyped(raw)?.object,
            },
            Type::RawExtension => raw_extension(bytes)?,
            Type::StringList => string_list(bytes)?,
            Type::Message(message) => {
                let mut members = match known {
                    Some(Value::Object(members)) => members,
                    _ => Map::new(),
                };
                self.message(message, bytes, &mut members, depth + 1)?;
                zero::fill(message, &mut members);
                Value::Object(members)
            }
            Type::Either(union, message) => self.either(union, message, bytes, depth)?,
            Type::Int32 | Type::Int64 | Type::Bool | Type::Double | Type::Any => Value::Null,
        })
    }

    fn either(
        &mut self,
        union: Union,
        message: &'static Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, DecodeError> {
        let (mut schema, mut allows, mut list) = (None, false, Vec::new());
        let schema_number = if union == Union::Bool { 2 } else { 1 };
        let mut reader = Reader::new(bytes, "JSONSchemaProps");
        while let Some(entry) = reader.next()? {
            match (union, entry.payload) {
                (_, Payload::Bytes(bytes)) if entry.number == schema_number => {
                    schema = Some(self.delimited(Type::Message(message), bytes, schema, depth + 1)?);
                }
                (Union::Bool, Payload::Number(number)) if entry.number == 1 => allows = number != 0,
                (Union::List, Payload::Bytes(bytes)) if entry.number == 2 => {
                    list.push(self.delimited(Type::Message(message), bytes, None, depth + 1)?);
                }
                (Union::Strings, Payload::Bytes(bytes)) if entry.number == 2 => {
                    list.push(Value::String(text::lossy(bytes)));
                }
                _ => {}
            }
        }
        Ok(match (union, schema) {
            (Union::List | Union::Strings, _) if !list.is_empty() => Value::Array(list),
            (_, Some(schema)) => schema,
            (Union::Bool, None) => Value::Bool(allows),
            (Union::List | Union::Strings, None) => Value::Null,
        })
    }

    fn map_entry(
        &mut self,
        kind: Type,
        bytes: &[u8],
        field: &Field,
        depth: usize,
    ) -> Result<(String, Value), DecodeError> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader::new(bytes, "MapEntry");
        while let Some(entry) = reader.next()? {
            match entry.number {
                1 => key = text::lossy(expect_bytes(&entry, field)?),
                2 => value = Some(self.one(kind, &entry, field, None, depth)?),
                _ => {}
            }
        }
        // Go reads an absent value of a map to bytes or lists as an empty one, not as nil.
        let absent = || match kind {
            Type::Bytes => SecretBytes::default().into(),
            Type::StringList => Value::Array(Vec::new()),
            kind => zero::of_type(kind),
        };
        Ok((key, value.unwrap_or_else(absent)))
    }
}

fn expect_bytes<'a>(entry: &Entry<'a>, field: &Field) -> Result<&'a [u8], DecodeError> {
    entry.bytes().ok_or_else(|| {
        let name = field.inlined().map_or(field.json, Message::go_name);
        wrong_wire_type(entry.wire_type.number(), name)
    })
}

fn int(kind: Type, number: u64) -> Value {
    // Both are sign-extended on the wire.
    Value::Int(if matches!(kind, Type::Int32) { i64::from(number as i32) } else { number as i64 })
}

/// The last field 1 of a message that has only that one.
pub(in crate::codec) fn last_bytes<'a>(
    bytes: &'a [u8],
    message: &'static str,
) -> Result<Option<&'a [u8]>, DecodeError> {
    let mut last = None;
    let mut reader = Reader::new(bytes, message);
    while let Some(entry) = reader.next()? {
        if entry.number == 1 {
            last = Some(entry.bytes().ok_or_else(|| wrong_wire_type(entry.wire_type.number(), "Raw"))?);
        }
    }
    Ok(last)
}

/// Seconds and nanos of a `Timestamp` message; `None` is Go's zero time.
pub(in crate::codec) fn timestamp(bytes: &[u8]) -> Result<Option<times::Instant>, DecodeError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes, "Timestamp");
    while let Some(entry) = reader.next()? {
        match (entry.number, entry.payload) {
            (1, Payload::Number(number)) => seconds = number as i64,
            (2, Payload::Number(number)) => nanos = number as i32,
            (1 | 2, Payload::Bytes(_)) => return Err(wrong_wire_type(2, "Seconds")),
            _ => {}
        }
    }
    let total = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let seconds = i64::try_from(total.div_euclid(1_000_000_000)).unwrap_or(seconds);
    let nanos = u32::try_from(total.rem_euclid(1_000_000_000)).unwrap_or(0);
    Ok(Some(times::Instant { seconds, nanos }))
}

fn time(bytes: &[u8], micros: bool) -> Result<Value, DecodeError> {
    let Some(mut time) = timestamp(bytes)? else { return Ok(Value::Null) };
    time.nanos = if micros { time.nanos / 1_000 * 1_000 } else { 0 };
    if time.is_zero() {
        return Ok(Value::Null);
    }
    Ok(Value::String(times::format(time, micros)))
}

/// A number or text, as `intstr.IntOrString` holds it.
pub(in crate::codec) enum IntOrText<'a> {
    Int(i32),
    Text(&'a [u8]),
}

pub(in crate::codec) fn int_or_text(bytes: &[u8]) -> Result<IntOrText<'_>, DecodeError> {
    let (mut kind, mut int, mut text) = (0, 0, &b""[..]);
    let mut reader = Reader::new(bytes, "IntOrString");
    while let Some(entry) = reader.next()? {
        match (entry.number, entry.payload) {
            (1, Payload::Number(number)) => kind = number,
            (2, Payload::Number(number)) => int = number as i32,
            (3, Payload::Bytes(bytes)) => text = bytes,
            _ => {}
        }
    }
    Ok(if kind == 0 { IntOrText::Int(int) } else { IntOrText::Text(text) })
}

fn int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    Ok(match int_or_text(bytes)? {
        IntOrText::Int(int) => Value::Int(i64::from(int)),
        IntOrText::Text(bytes) => Value::String(text::lossy(bytes)),
    })
}

fn quantity(bytes: &[u8]) -> Result<Value, DecodeError> {
    let text = text::lossy(last_bytes(bytes, "Quantity")?.unwrap_or(b"0"));
    let canonical = quantity::canonical(&text).map_err(|error| DecodeError::new(error.text()))?;
    Ok(Value::String(canonical))
}

fn string_list(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut items = Vec::new();
    let mut reader = Reader::new(bytes, "items");
    while let Some(entry) = reader.next()? {
        if entry.number == 1 {
            let bytes = entry.bytes().ok_or_else(|| wrong_wire_type(entry.wire_type.number(), "Items"))?;
            items.push(Value::String(text::lossy(bytes)));
        }
    }
    Ok(Value::Array(items))
}

fn raw_extension(bytes: &[u8]) -> Result<Value, DecodeError> {
    match last_bytes(bytes, "RawExtension")? {
        None => Ok(Value::Null),
        Some(raw) if raw.starts_with(MAGIC) => decode_enveloped(raw, None),
        Some(raw) => Ok(json::decode_untyped(raw)?.object),
    }
}
