//! From a protobuf message to JSON text, field by field.

use crate::codec::limits::MAX_MESSAGE_DEPTH;
use crate::codec::proto::{self, IntOrText, MAGIC};
use crate::codec::times;
use crate::codec::wire::{Payload, Reader, varint};
use crate::codec::{DecodeError, json, text};
use crate::schema::{Field, Message, Shape, Type, Union};

type Result<T> = std::result::Result<T, DecodeError>;

/// One field on the wire and the field of the tables that it belongs to.
#[derive(Clone, Copy)]
struct Slot<'a> {
    field: usize,
    payload: Payload<'a>,
}

#[derive(Clone, Copy)]
struct Scope<'a> {
    depth: usize,
    /// Set at the root and in its metadata.
    revision: Option<i64>,
    only: Option<&'a str>,
}

impl Scope<'_> {
    fn inner(self) -> Scope<'static> {
        Scope { depth: self.depth + 1, revision: None, only: None }
    }
}

/// Wire order is by field number and JSON order is Go's, so the fields of a message
/// are collected first. All messages, and all objects of a list, share one stack of slots.
#[derive(Default)]
pub(super) struct Writer<'a> {
    slots: Vec<Slot<'a>>,
}

impl<'a> Writer<'a> {
    /// Appends the JSON of an object.
    ///
    /// `type_meta` is `apiVersion` and `kind`; `revision` becomes `metadata.resourceVersion`;
    /// with `only`, no field but that one is written.
    pub(super) fn object(
        &mut self,
        message: &'static Message,
        bytes: &'a [u8],
        type_meta: Option<(&str, &str)>,
        revision: i64,
        only: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        // An object before this one may have ended in an error.
        self.slots.clear();
        out.push(b'{');
        let mut first = true;
        if let Some((api_version, kind)) = type_meta {
            out.extend_from_slice(b"\"kind\":");
            text::quote(out, kind.as_bytes());
            out.extend_from_slice(b",\"apiVersion\":");
            text::quote(out, api_version.as_bytes());
            first = false;
        }
        let scope = Scope { depth: 0, revision: Some(revision), only };
        self.fields(message, bytes, &mut first, scope, out)?;
        out.push(b'}');
        Ok(())
    }

    fn message(
        &mut self,
        message: &'static Message,
        bytes: &'a [u8],
        scope: Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out.push(b'{');
        let mut first = true;
        self.fields(message, bytes, &mut first, scope, out)?;
        out.push(b'}');
        Ok(())
    }

    fn fields(
        &mut self,
        message: &'static Message,
        bytes: &'a [u8],
        first: &mut bool,
        scope: Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if scope.depth > MAX_MESSAGE_DEPTH {
            return Err(DecodeError::new("proto: message is nested too deeply or has too many parts"));
        }
        let base = self.collect(message, bytes)?;
        let mut start = base;
        for (index, field) in message.fields.iter().enumerate() {
            let mut end = start;
            while self.slots.get(end).is_some_and(|slot| slot.field == index) {
                end += 1;
            }
            if field.number > 0 && scope.only.is_none_or(|only| only == field.json) {
                self.field(field, start..end, first, scope, out)?;
            }
            start = end;
        }
        self.slots.truncate(base);
        Ok(())
    }

    /// Pushes the fields of a message in the order of the tables and gives where they begin.
    fn collect(&mut self, message: &'static Message, bytes: &'a [u8]) -> Result<usize> {
        let base = self.slots.len();
        let mut reader = Reader::new(bytes, message.name);
        let mut sorted = true;
        // Encoders write fields by their numbers, so the next one is looked for from the last one on.
        let (mut at, mut before) = (0, 0);
        while let Some(entry) = reader.next()? {
            if entry.number < before {
                at = 0;
            }
            before = entry.number;
            let number =
                |at: usize| message.wire.get(at).map(|&field| message.fields[usize::from(field)].number);
            while number(at).is_some_and(|number| number < entry.number) {
                at += 1;
            }
            if number(at) != Some(entry.number) {
                continue;
            }
            let field = usize::from(message.wire[at]);
            check(&message.fields[field], entry.payload)?;
            sorted &= self.slots[base..].last().is_none_or(|last| last.field <= field);
            self.slots.push(Slot { field, payload: entry.payload });
        }
        if !sorted {
            self.slots[base..].sort_by_key(|slot| slot.field);
        }
        Ok(base)
    }

    fn field(
        &mut self,
        field: &'static Field,
        range: std::ops::Range<usize>,
        first: &mut bool,
        scope: Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let last = self.slots[range.clone()].last().map(|slot| slot.payload);
        if let Some(inlined) = field.inlined() {
            // A message in several parts is rare enough to be refused here; the decoder merges it.
            return self.fields(inlined, single(&self.slots[range])?, first, scope.inner(), out);
        }
        if let (Some(revision), "resourceVersion", 1..) = (scope.revision, field.json, scope.depth) {
            key(field, first, out);
            out.push(b'"');
            text::int(out, revision);
            out.push(b'"');
            return Ok(());
        }
        match field.shape {
            Shape::One(kind @ (Type::Time | Type::MicroTime)) if last.is_some() => {
                let Some(Payload::Bytes(bytes)) = last else { return Err(mistyped()) };
                let micros = matches!(kind, Type::MicroTime);
                let time = stored_time(bytes, micros)?;
                if time.is_some() || !field.omit_empty || field.optional {
                    key(field, first, out);
                    put_time(time, micros, out);
                }
                Ok(())
            }
            Shape::One(kind) => {
                let leave_out = match last {
                    None => field.omit_empty,
                    Some(payload) => field.omit_empty && !field.optional && is_zero(kind, payload)?,
                };
                if leave_out {
                    return Ok(());
                }
                key(field, first, out);
                match (kind, last) {
                    (Type::Message(message), last) if last.is_some() || !field.optional => {
                        let mut inner = scope.inner();
                        if scope.depth == 0 && field.json == "metadata" {
                            inner.revision = scope.revision;
                        }
                        self.message(message, single(&self.slots[range])?, inner, out)
                    }
                    (_, Some(payload)) => self.one(kind, payload, scope, out),
                    (_, None) => {
                        zero(kind, field.optional, out);
                        Ok(())
                    }
                }
            }
            _ if last.is_none() && field.omit_empty => Ok(()),
            _ if last.is_none() => {
                key(field, first, out);
                out.extend_from_slice(b"null");
                Ok(())
            }
            Shape::List(kind) => {
                key(field, first, out);
                self.list(kind, range, scope, out)
            }
            Shape::Map(kind) => {
                key(field, first, out);
                self.map(kind, range, scope, out)
            }
        }
    }

    fn list(
        &mut self,
        kind: Type,
        range: std::ops::Range<usize>,
        scope: Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out.push(b'[');
        let mut first = true;
        for index in range {
            let payload = self.slots[index].payload;
            if let (Type::Int32 | Type::Int64, Payload::Bytes(mut packed)) = (kind, payload) {
                while !packed.is_empty() {
                    comma(&mut first, out);
                    let number = varint(&mut packed)?;
                    self.one(kind, Payload::Number(number), scope, out)?;
                }
                continue;
            }
            comma(&mut first, out);
            self.one(kind, payload, scope, out)?;
        }
        out.push(b']');
        Ok(())
    }

    fn map(
        &mut self,
        kind: Type,
        range: std::ops::Range<usize>,
        scope: Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        out.push(b'{');
        let mut previous: Option<&[u8]> = None;
        for index in range.clone() {
            let (name, value) = map_entry(self.slots[index].payload)?;
            if previous.is_some_and(|previous| name <= previous) {
                // Not from an encoder that sorts.
                out.truncate(start);
                return self.unsorted_map(kind, range, scope, out);
            }
            if previous.is_some() {
                out.push(b',');
            }
            previous = Some(name);
            self.map_value(kind, name, value, scope, out)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn unsorted_map(
        &mut self,
        kind: Type,
        range: std::ops::Range<usize>,
        scope: Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut entries = std::collections::BTreeMap::new();
        for index in range {
            let (name, value) = map_entry(self.slots[index].payload)?;
            entries.insert(name, value);
        }
        out.push(b'{');
        let mut first = true;
        for (name, value) in entries {
            comma(&mut first, out);
            self.map_value(kind, name, value, scope, out)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn map_value(
        &mut self,
        kind: Type,
        name: &[u8],
        value: Option<Payload<'a>>,
        scope: Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        text::quote(out, name);
        out.push(b':');
        match (kind, value) {
            (_, Some(value)) => self.one(kind, value, scope, out),
            // Go reads an absent value of a map to bytes or lists as an empty one, not as nil.
            (Type::Bytes, None) => {
                out.extend_from_slice(b"\"\"");
                Ok(())
            }
            (Type::StringList, None) => {
                out.extend_from_slice(b"[]");
                Ok(())
            }
            (Type::Message(message), None) => self.message(message, b"", scope.inner(), out),
            (_, None) => {
                zero(kind, false, out);
                Ok(())
            }
        }
    }

    fn one(&mut self, kind: Type, payload: Payload<'a>, scope: Scope<'_>, out: &mut Vec<u8>) -> Result<()> {
        match (kind, payload) {
            (Type::Int32, Payload::Number(number)) => text::int(out, i64::from(number as i32)),
            (Type::Int64, Payload::Number(number)) => text::int(out, number as i64),
            (Type::Bool, Payload::Number(number)) => {
                out.extend_from_slice(if number == 0 { b"false" } else { b"true" });
            }
            (Type::Double, Payload::Number(bits)) => text::float(out, f64::from_bits(bits)),
            (_, Payload::Number(_)) => return Err(mistyped()),
            (kind, Payload::Bytes(bytes)) => return self.delimited(kind, bytes, scope, out),
        }
        Ok(())
    }

    fn delimited(&mut self, kind: Type, bytes: &'a [u8], scope: Scope<'_>, out: &mut Vec<u8>) -> Result<()> {
        match kind {
            Type::String => text::quote(out, bytes),
            Type::Bytes => text::base64(out, bytes),
            Type::Time | Type::MicroTime => {
                let micros = matches!(kind, Type::MicroTime);
                put_time(stored_time(bytes, micros)?, micros, out);
            }
            Type::IntOrString => match proto::int_or_text(bytes)? {
                IntOrText::Int(int) => text::int(out, i64::from(int)),
                IntOrText::Text(bytes) => text::quote(out, bytes),
            },
            Type::Quantity => text::quote(out, proto::last_bytes(bytes, "Quantity")?.unwrap_or(b"0")),
            Type::FieldsV1 | Type::RawJson => match proto::last_bytes(bytes, "JSON")? {
                Some(raw) if !raw.is_empty() => text::compact(out, raw),
                _ => out.extend_from_slice(b"null"),
            },
            Type::RawExtension => raw_extension(bytes, out)?,
            Type::StringList => {
                let mut reader = Reader::new(bytes, "items");
                out.push(b'[');
                let mut first = true;
                while let Some(entry) = reader.next()? {
                    if entry.number == 1 {
                        comma(&mut first, out);
                        text::quote(out, entry.bytes().ok_or_else(mistyped)?);
                    }
                }
                out.push(b']');
            }
            Type::Message(message) => self.message(message, bytes, scope.inner(), out)?,
            Type::Either(union, message) => self.either(union, message, bytes, scope, out)?,
            Type::Int32 | Type::Int64 | Type::Bool | Type::Double | Type::Any => return Err(mistyped()),
        }
        Ok(())
    }

    fn either(
        &mut self,
        union: Union,
        message: &'static Message,
        bytes: &'a [u8],
        scope: Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let schema_number = if union == Union::Bool { 2 } else { 1 };
        let (mut schema, mut allows) = (None, false);
        let base = self.slots.len();
        let mut reader = Reader::new(bytes, "JSONSchemaProps");
        while let Some(entry) = reader.next()? {
            match entry.payload {
                Payload::Bytes(bytes) if entry.number == schema_number => schema = Some(bytes),
                Payload::Number(number) if union == Union::Bool && entry.number == 1 => allows = number != 0,
                payload if union != Union::Bool && entry.number == 2 => {
                    self.slots.push(Slot { field: 0, payload })
                }
                _ => {}
            }
        }
        let end = self.slots.len();
        match (union, schema) {
            (Union::List, _) if end > base => {
                self.list(Type::Message(message), base..end, scope.inner(), out)?
            }
            (Union::Strings, _) if end > base => self.list(Type::String, base..end, scope.inner(), out)?,
            (_, Some(schema)) => self.message(message, schema, scope.inner(), out)?,
            (Union::Bool, None) => out.extend_from_slice(if allows { b"true" } else { b"false" }),
            (Union::List | Union::Strings, None) => out.extend_from_slice(b"null"),
        }
        self.slots.truncate(base);
        Ok(())
    }
}

fn comma(first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

/// Names in the tables need no escapes.
fn key(field: &Field, first: &mut bool, out: &mut Vec<u8>) {
    comma(first, out);
    out.push(b'"');
    out.extend_from_slice(field.json.as_bytes());
    out.extend_from_slice(b"\":");
}

/// The bytes of a message that came in one part, or none.
fn single<'a>(slots: &[Slot<'a>]) -> Result<&'a [u8]> {
    match slots {
        [] => Ok(b""),
        [Slot { payload: Payload::Bytes(bytes), .. }] => Ok(bytes),
        _ => Err(DecodeError::new("stored message comes in several parts")),
    }
}

/// Whether the payload fits the field; numbers stand alone or packed.
fn check(field: &Field, payload: Payload<'_>) -> Result<()> {
    let number = match field.shape {
        Shape::One(kind) | Shape::List(kind) => {
            matches!(kind, Type::Int32 | Type::Int64 | Type::Bool | Type::Double)
        }
        Shape::Map(_) => false,
    };
    match (number, payload) {
        (true, Payload::Number(_)) | (false, Payload::Bytes(_)) => Ok(()),
        (true, Payload::Bytes(_)) if matches!(field.shape, Shape::List(_)) => Ok(()),
        _ => Err(mistyped()),
    }
}

fn mistyped() -> DecodeError {
    DecodeError::new("proto: wrong wireType in a stored object")
}

fn map_entry(payload: Payload<'_>) -> Result<(&[u8], Option<Payload<'_>>)> {
    let Payload::Bytes(bytes) = payload else { return Err(mistyped()) };
    let (mut name, mut value) = (&b""[..], None);
    let mut reader = Reader::new(bytes, "MapEntry");
    while let Some(entry) = reader.next()? {
        match entry.number {
            1 => name = entry.bytes().ok_or_else(mistyped)?,
            2 => value = Some(entry.payload),
            _ => {}
        }
    }
    Ok((name, value))
}

/// Whether Go's `omitempty` leaves the value out; times are looked at where they are written.
fn is_zero(kind: Type, payload: Payload<'_>) -> Result<bool> {
    Ok(match (kind, payload) {
        (Type::Double, Payload::Number(bits)) => f64::from_bits(bits) == 0.0,
        (_, Payload::Number(number)) => number == 0,
        (Type::String | Type::Bytes | Type::StringList, Payload::Bytes(bytes)) => bytes.is_empty(),
        _ => false,
    })
}

/// What JSON shows for a value that is not there.
fn zero(kind: Type, optional: bool, out: &mut Vec<u8>) {
    let text: &[u8] = match kind {
        _ if optional => b"null",
        Type::String => b"\"\"",
        Type::Int32 | Type::Int64 | Type::IntOrString | Type::Double => b"0",
        Type::Bool => b"false",
        Type::Quantity => b"\"0\"",
        _ => b"null",
    };
    out.extend_from_slice(text);
}

fn stored_time(bytes: &[u8], micros: bool) -> Result<Option<times::Instant>> {
    let time = proto::timestamp(bytes)?.map(|mut time| {
        time.nanos = if micros { time.nanos / 1_000 * 1_000 } else { 0 };
        time
    });
    Ok(time.filter(|time| !time.is_zero()))
}

fn put_time(time: Option<times::Instant>, micros: bool, out: &mut Vec<u8>) {
    match time {
        None => out.extend_from_slice(b"null"),
        Some(time) => {
            out.push(b'"');
            if micros {
                times::put_micros(out, time);
            } else {
                times::put_seconds(out, time.seconds);
            }
            out.push(b'"');
        }
    }
}

fn raw_extension(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match proto::last_bytes(bytes, "RawExtension")? {
        None => out.extend_from_slice(b"null"),
        // An object inside an object in protobuf is too rare for a path of its own.
        Some(raw) if raw.starts_with(MAGIC) => {
            json::encode_untyped(&proto::decode_enveloped(raw, None)?, out)
        }
        Some(raw) => text::compact(out, raw),
    }
    Ok(())
}
