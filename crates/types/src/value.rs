//! The tree in which an object is decoded, changed and validated.

use std::collections::BTreeMap;
use std::fmt;

use crate::SecretBytes;

/// The members of an object, ordered by key bytes as Go orders a map.
pub type Map = BTreeMap<String, Value>;

/// A decoded object or a part of one.
///
/// Integers and floats stay apart, as in Kubernetes' unstructured objects:
/// a number without `.` or exponent that fits an `i64` is an [`Value::Int`].
/// A field that the tables call `bytes` is a [`Value::Bytes`] (base64 in JSON).
/// `Debug` prints the shape, never a scalar's content, because any string of a
/// Secret or of a last-applied annotation may be secret.
#[derive(Clone, PartialEq, Default)]
pub enum Value {
    /// JSON `null`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    String(String),
    /// Binary data; base64 (standard alphabet, padded) in JSON.
    Bytes(SecretBytes),
    /// A list.
    Array(Vec<Value>),
    /// An object.
    Object(Map),
}

impl Value {
    /// An empty object.
    pub fn object() -> Self {
        Self::Object(Map::new())
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, if this is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The bytes, if this is binary data.
    pub fn as_bytes(&self) -> Option<&SecretBytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The members, if this is an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The member named `key`, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// The member named `key`, if this is an object that has it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.as_object_mut()?.get_mut(key)
    }

    /// Follows `path` through objects.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The text at `path`, or "" where there is none, as Go reads an absent string.
    pub fn str_at(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The object at `path`, made (over anything that is not an object) where it is absent.
    pub fn object_at_mut(&mut self, path: &[&str]) -> &mut Map {
        let mut value = self;
        for key in path {
            value = value.members_mut().entry((*key).to_owned()).or_insert_with(Value::object);
        }
        value.members_mut()
    }

    /// Sets `path` to `new`, making objects on the way.
    ///
    /// # Panics
    /// When `path` is empty.
    pub fn set(&mut self, path: &[&str], new: impl Into<Value>) {
        let (last, parents) = path.split_last().expect("a path has at least one element");
        self.object_at_mut(parents).insert((*last).to_owned(), new.into());
    }

    /// Removes and returns what is at `path`.
    pub fn remove(&mut self, path: &[&str]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        let mut value = self;
        for key in parents {
            value = value.get_mut(key)?;
        }
        value.as_object_mut()?.remove(*last)
    }

    /// Sets `path` to `text`, or removes it when `text` is empty: Go's `omitempty`.
    pub fn set_str(&mut self, path: &[&str], text: &str) {
        if text.is_empty() {
            self.remove(path);
        } else {
            self.set(path, text);
        }
    }

    /// JSON's name of the kind of value, as Go's decoder prints it.
    pub fn json_kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Float(_) => "number",
            Self::String(_) | Self::Bytes(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    fn members_mut(&mut self) -> &mut Map {
        if !matches!(self, Self::Object(_)) {
            *self = Self::object();
        }
        match self {
            Self::Object(members) => members,
            _ => unreachable!("made an object above"),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(items) => formatter.debug_list().entries(items).finish(),
            Self::Object(members) => formatter.debug_map().entries(members).finish(),
            scalar => formatter.write_str(scalar.json_kind()),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<SecretBytes> for Value {
    fn from(bytes: SecretBytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(items)
    }
}

impl From<Map> for Value {
    fn from(members: Map) -> Self {
        Self::Object(members)
    }
}

impl<K: Into<String>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Value {
    fn from(members: [(K, V); N]) -> Self {
        Self::Object(members.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_no_scalar() {
        let value = Value::from([("a", Value::from("hunter2")), ("b", Value::from(7))]);
        assert_eq!(format!("{value:?}"), r#"{"a": string, "b": number}"#);
    }

    #[test]
    fn set_makes_the_objects_on_the_way() {
        let mut value = Value::Null;
        value.set(&["metadata", "name"], "s1");
        assert_eq!(value.str_at(&["metadata", "name"]), "s1");
        value.set_str(&["metadata", "name"], "");
        assert_eq!(value.at(&["metadata", "name"]), None);
    }
}
