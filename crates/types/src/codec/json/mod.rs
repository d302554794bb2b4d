//! JSON as Kubernetes reads and writes it: Go's syntax errors and type errors, case-sensitive
//! names, whole numbers kept apart from others, tolerant base64, fields in Go's order.

mod encode;
mod node;
mod parse;
mod typed;

pub use encode::{encode, encode_fields, encode_line, encode_pretty, encode_untyped};
pub(crate) use node::{Node, Strict};
pub(crate) use parse::parse;

use super::DecodeError;
use crate::schema::Message;
use crate::{Value, meta};

/// A decoded object and what strict decoding finds wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The object, in the normal form if it is of a built-in kind.
    pub object: Value,
    /// `unknown field "spec.x"` and `duplicate field "data.a"`, in order of appearance.
    pub strict_errors: Vec<String>,
}

/// Decodes an object of a built-in kind.
pub fn decode(message: &'static Message, bytes: &[u8]) -> Result<Decoded, DecodeError> {
    typed::decode(message, parse(bytes)?)
}

/// Makes an object of a built-in kind of parsed JSON or YAML.
pub(crate) fn decode_node(message: &'static Message, node: Node<'_>) -> Result<Decoded, DecodeError> {
    typed::decode(message, node)
}

/// Decodes any JSON; finds duplicate fields only.
pub fn decode_untyped(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    parse(bytes)?.into_untyped()
}

/// Makes an object of a built-in kind of untyped JSON: a patched object, a YAML document.
pub fn retype(message: &'static Message, object: &Value) -> Result<Decoded, DecodeError> {
    typed::decode(message, Node::from_value(object))
}

/// `apiVersion` and `kind` of an object; absent ones are "".
pub fn peek_type(bytes: &[u8]) -> Result<(String, String), DecodeError> {
    let failed =
        |why: String| DecodeError::new(format!("couldn't get version/kind; json parse error: {why}"));
    let node = parse(bytes).map_err(|error| failed(error.0))?;
    let members = match &node {
        Node::Null => return Ok(Default::default()),
        Node::Object(members) => members,
        other => {
            return Err(failed(format!(
                "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                other.kind()
            )));
        }
    };
    let (mut api_version, mut kind) = (String::new(), String::new());
    for (key, value) in members {
        let target = match &**key {
            "apiVersion" => &mut api_version,
            "kind" => &mut kind,
            _ => continue,
        };
        match value {
            Node::Null => {}
            Node::String(text) => *target = text.clone().into_owned(),
            other => {
                let what = other.kind();
                return Err(failed(format!(
                    "json: cannot unmarshal {what} into Go struct field .{key} of type string"
                )));
            }
        }
    }
    let slashes = api_version.matches('/').count();
    if slashes > 1 {
        return Err(DecodeError::new(format!("unexpected GroupVersion string: {api_version}")));
    }
    // "group/" alone has no version; Go reads it as it is.
    let (group, version) = meta::split_api_version(&api_version);
    Ok((meta::api_version(group, version), kind))
}
