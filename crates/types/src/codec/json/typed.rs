//! From parsed JSON to an object of a built-in kind.
//!
//! As Go does: the first value of a wrong type is remembered and the rest is still
//! read; what a type's own decoder refuses (times, quantities) ends it at once.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::{Decoded, Node, Strict};
use crate::codec::DecodeError;
use crate::codec::quantity;
use crate::codec::times;
use crate::codec::zero;
use crate::schema::{Field, Message, Shape, Type, Union};
use crate::{Map, SecretBytes, Value};

pub(super) fn decode(message: &'static Message, node: Node<'_>) -> Result<Decoded> {
    let mut decoder = Decoder { strict: Strict::default(), saved: None, owner: "", stack: Vec::new() };
    let mut members = Map::new();
    match node {
        Node::Object(object) => decoder.message(message, object, &mut members)?,
        Node::Null => {}
        other => decoder.mismatch(other.kind(), &go_type(message)),
    }
    if let Some(error) = decoder.saved {
        return Err(DecodeError(error));
    }
    zero::fill(message, &mut members);
    Ok(Decoded { object: Value::Object(members), strict_errors: decoder.strict.errors })
}

struct Decoder {
    strict: Strict,
    /// The first value of a wrong type.
    saved: Option<String>,
    /// Go's name of the struct that the decoder is in.
    owner: &'static str,
    /// Names of the fields from the root to the decoder.
    stack: Vec<&'static str>,
}

type Result<T> = std::result::Result<T, DecodeError>;

impl Decoder {
    fn message(
        &mut self,
        message: &'static Message,
        object: Vec<(Cow<'_, str>, Node<'_>)>,
        members: &mut Map,
    ) -> Result<()> {
        let mut seen: Vec<&'static str> = Vec::with_capacity(object.len());
        for (key, node) in object {
            let depth = self.stack.len();
            let Some(field) = self.find(message, &key) else {
                self.strict.unknown(&key);
                continue;
            };
            if seen.contains(&field.json) {
                self.strict.duplicate(field.json);
            }
            seen.push(field.json);
            let owner = std::mem::replace(&mut self.owner, message.go_name());
            self.stack.push(field.json);
            let mark = self.strict.enter_key(field.json);
            self.field(field, node, members)?;
            self.strict.leave(mark);
            self.stack.truncate(depth);
            self.owner = owner;
        }
        Ok(())
    }

    /// Finds a field, and puts the structs that it is inlined from on the stack.
    fn find(&mut self, message: &'static Message, key: &str) -> Option<&'static Field> {
        for field in message.fields {
            let Some(inlined) = field.inlined() else {
                if field.json == key {
                    if field.number == 0 && matches!(key, "kind" | "apiVersion") {
                        self.stack.push("TypeMeta");
                    }
                    return Some(field);
                }
                continue;
            };
            self.stack.push(inlined.go_name());
            if let Some(found) = self.find(inlined, key) {
                return Some(found);
            }
            self.stack.pop();
        }
        None
    }

    fn field(&mut self, field: &'static Field, node: Node<'_>, members: &mut Map) -> Result<()> {
        let known = members.remove(field.json);
        let value = match field.shape {
            Shape::One(kind) => self.one(kind, field.go, node, known)?,
            Shape::List(kind) => self.list(kind, field.go, node, known)?,
            Shape::Map(kind) => self.map(kind, field.go, node, known)?,
        };
        if let Some(value) = value
            && (!zero::leaves_out(field, &value) || is_reset(field, &value))
        {
            members.insert(field.json.to_owned(), value);
        }
        Ok(())
    }

    fn list(&mut self, kind: Type, go: &str, node: Node<'_>, known: Option<Value>) -> Result<Option<Value>> {
        let items = match node {
            Node::Null => return Ok(None),
            Node::Array(items) => items,
            other => {
                self.mismatch(other.kind(), go);
                return Ok(known);
            }
        };
        let element = element(go, "[]", kind);
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let mark = self.strict.enter_index(index);
            let value = self.one(kind, &element, item, None)?;
            values.push(value.unwrap_or_else(|| zero::of_type(kind)));
            self.strict.leave(mark);
        }
        Ok(Some(Value::Array(values)))
    }

    fn map(&mut self, kind: Type, go: &str, node: Node<'_>, known: Option<Value>) -> Result<Option<Value>> {
        let object = match node {
            Node::Null => return Ok(None),
            Node::Object(object) => object,
            other => {
                self.mismatch(other.kind(), go);
                return Ok(known);
            }
        };
        let element = element(go, "map[string]", kind);
        let mut seen = Map::new();
        let mut entries = match known {
            Some(Value::Object(entries)) => entries,
            _ => Map::new(),
        };
        for (key, node) in object {
            if seen.insert(key.clone().into_owned(), Value::Null).is_some() {
                self.strict.duplicate(&key);
            }
            let mark = self.strict.enter_key(&key);
            let value = self.one(kind, &element, node, None)?;
            self.strict.leave(mark);
            entries.insert(key.into_owned(), value.unwrap_or_else(|| zero::of_type(kind)));
        }
        Ok(Some(Value::Object(entries)))
    }

    /// `None` is Go's nil or untouched zero value.
    fn one(&mut self, kind: Type, go: &str, node: Node<'_>, known: Option<Value>) -> Result<Option<Value>> {
        if matches!(node, Node::Null) {
            // Go leaves scalars as they are.
            let keeps = matches!(kind, Type::String | Type::Int32 | Type::Int64 | Type::Bool | Type::Double);
            return Ok(known.filter(|_| keeps));
        }
        Ok(match (kind, node) {
            (Type::String, Node::String(text)) => Some(Value::String(text.into_owned())),
            (Type::Bool, Node::Bool(flag)) => Some(Value::Bool(flag)),
            (Type::Int32 | Type::Int64, Node::Number(text)) => self.int(kind, go, &text),
            (Type::Double, Node::Number(text)) => self.float(go, &text),
            (Type::Bytes, Node::String(text)) => self.bytes(text),
            (Type::Bytes, Node::Array(items)) => Some(self.byte_list(items)),
            (Type::Time, node) => self.time(node, false)?,
            (Type::MicroTime, node) => self.time(node, true)?,
            (Type::IntOrString, Node::String(text)) => Some(Value::String(text.into_owned())),
            (Type::IntOrString, Node::Number(text)) => {
                let int: Option<i32> = text.parse().ok();
                let int = int.ok_or_else(|| self.type_error(&format!("number {text}"), "int32"))?;
                Some(Value::Int(i64::from(int)))
            }
            (Type::IntOrString, other) => return Err(self.type_error(other.kind(), "int32")),
            (Type::Quantity, node) => Some(quantity(&node)?),
            (Type::StringList, node) => self.list(Type::String, go, node, known)?,
            (Type::FieldsV1 | Type::RawJson, node) => Some(self.quietly(node)?),
            (Type::RawExtension, node) => Some(self.quietly(node)?),
            (Type::Any, node) => Some(node.untyped(&mut self.strict)?),
            (Type::Message(message), Node::Object(object)) => {
                let mut members = match known {
                    Some(Value::Object(members)) => members,
                    _ => Map::new(),
                };
                self.message(message, object, &mut members)?;
                zero::fill(message, &mut members);
                Some(Value::Object(members))
            }
            (Type::Either(union, message), node) => self.either(union, message, node)?,
            (_, other) => {
                self.mismatch(other.kind(), go);
                known
            }
        })
    }

    fn int(&mut self, kind: Type, go: &str, text: &str) -> Option<Value> {
        let int = text.parse::<i64>().ok();
        let fits = |int: &i64| matches!(kind, Type::Int64) || i32::try_from(*int).is_ok();
        let int = int.filter(fits);
        if int.is_none() {
            self.mismatch(&format!("number {text}"), go);
        }
        int.map(Value::Int)
    }

    fn float(&mut self, go: &str, text: &str) -> Option<Value> {
        let float = text.parse::<f64>().ok().filter(|float| float.is_finite());
        if float.is_none() {
            self.mismatch(&format!("number {text}"), go);
        }
        float.map(Value::Float)
    }

    fn bytes(&mut self, text: Cow<'_, str>) -> Option<Value> {
        match decode_base64(&text) {
            Ok(bytes) => Some(Value::Bytes(bytes)),
            Err(at) => {
                self.save(format!("illegal base64 data at input byte {at}"));
                None
            }
        }
    }

    /// Go takes a list of small numbers for bytes too.
    fn byte_list(&mut self, items: Vec<Node<'_>>) -> Value {
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            let what = match item {
                Node::Null => {
                    bytes.push(0);
                    continue;
                }
                Node::Number(text) => match text.parse() {
                    Ok(byte) => {
                        bytes.push(byte);
                        continue;
                    }
                    Err(_) => "number".to_owned(),
                },
                other => other.kind().to_owned(),
            };
            self.mismatch(&what, "uint8");
        }
        Value::Bytes(SecretBytes::new(bytes))
    }

    fn time(&mut self, node: Node<'_>, micros: bool) -> Result<Option<Value>> {
        let Node::String(text) = node else { return Err(self.type_error(node.kind(), "string")) };
        let parse = if micros { times::parse_micros } else { times::parse_seconds };
        let time = parse(&text).map_err(DecodeError)?;
        if time.is_zero() {
            return Ok(None);
        }
        Ok(Some(Value::String(times::format(time, micros))))
    }

    fn quietly(&mut self, node: Node<'_>) -> Result<Value> {
        self.strict.quiet += 1;
        let value = node.untyped(&mut self.strict);
        self.strict.quiet -= 1;
        value
    }

    fn either(&mut self, union: Union, message: &'static Message, node: Node<'_>) -> Result<Option<Value>> {
        // Upstream decodes what is inside on its own.
        self.strict.quiet += 1;
        let value = match (union, node) {
            (_, node @ Node::Object(_)) => self.one(Type::Message(message), &go_type(message), node, None)?,
            (Union::Bool, Node::Bool(flag)) => Some(Value::Bool(flag)),
            (Union::Bool, _) => return Err(DecodeError::new("boolean or JSON schema expected")),
            (Union::List, node @ Node::Array(_)) => {
                let go = format!("[]{}", go_type(message));
                self.list(Type::Message(message), &go, node, None)?
            }
            (Union::Strings, node @ Node::Array(_)) => self.list(Type::String, "[]string", node, None)?,
            (Union::List | Union::Strings, _) => None,
        };
        self.strict.quiet -= 1;
        Ok(value)
    }

    fn mismatch(&mut self, what: &str, go: &str) {
        if self.saved.is_none() {
            self.saved = Some(self.type_error(what, go).0);
        }
    }

    fn save(&mut self, error: String) {
        self.saved.get_or_insert(error);
    }

    fn type_error(&self, what: &str, go: &str) -> DecodeError {
        let place = if self.stack.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}.{}", self.owner, self.stack.join("."))
        };
        DecodeError::new(format!("json: cannot unmarshal {what} into Go {place} of type {go}"))
    }
}

fn quantity(node: &Node<'_>) -> Result<Value> {
    let text = match node {
        Node::String(text) => text.trim(),
        Node::Number(text) => text,
        // Upstream reads the JSON itself as a quantity.
        Node::Bool(true) => "true",
        Node::Bool(false) => "false",
        _ => "{",
    };
    let canonical = quantity::canonical(text).map_err(|error| DecodeError::new(error.text()))?;
    Ok(Value::String(canonical))
}

/// Go's type of the elements of a list or map.
fn element(go: &str, prefix: &str, kind: Type) -> String {
    go.strip_prefix(prefix).map_or_else(
        || match kind {
            Type::Message(message) => go_type(message),
            _ => "string".to_owned(),
        },
        str::to_owned,
    )
}

/// `v1.Secret`.
fn go_type(message: &Message) -> String {
    message.name.rsplit('/').next().unwrap_or(message.name).to_owned()
}

/// Go's decoder: line breaks are skipped, stray bits at the end are ignored, padding is needed.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The bytes, or the position of the first bad byte in Go's counting.
fn decode_base64(text: &str) -> std::result::Result<SecretBytes, usize> {
    let bytes = text.as_bytes();
    let joined: Cow<'_, [u8]> = if bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        bytes.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect()
    } else {
        bytes.into()
    };
    BASE64.decode(&*joined).map(SecretBytes::new).map_err(|_| corrupt_position(bytes))
}

/// Follows Go's decoder to the byte that it names.
fn corrupt_position(text: &[u8]) -> usize {
    let skip = |mut at: usize| {
        while matches!(text.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        at
    };
    let mut at = 0;
    loop {
        let mut filled = 0;
        while filled < 4 {
            at = skip(at);
            let Some(&byte) = text.get(at) else {
                // The input ends inside a quantum.
                return at - filled.min(at);
            };
            let position = at;
            at += 1;
            if byte == b'=' {
                if filled < 2 {
                    return position;
                }
                at = skip(at);
                if filled == 2 {
                    match text.get(at) {
                        None => return text.len(),
                        Some(b'=') => at = skip(at + 1),
                        Some(_) => return at - 1,
                    }
                }
                return at;
            }
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')) {
                return position;
            }
            filled += 1;
        }
        if skip(at) >= text.len() {
            return at;
        }
    }
}

/// An empty list of managed fields asks to forget them: the one list that means something when it is empty.
/// It is not written.
fn is_reset(field: &Field, value: &Value) -> bool {
    field.json == "managedFields" && value.as_array().is_some_and(<[Value]>::is_empty)
}
