//! Sets of field paths and their `FieldsV1` form.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::validation::field::go_json;
use crate::{Map, Value};

/// One step of a field path. The order is that in which Go prints them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of an object: `f:name`.
    Field(String),
    /// An item of a list that is keyed: `k:{"uid":"…"}`, ordered by name.
    Key(Vec<(String, Scalar)>),
    /// An item of a set: `v:"x"`.
    Value(Scalar),
    /// An item by its position: `i:0`.
    Index(i64),
}

/// A value inside a path element, compared as structured-merge-diff compares values.
#[derive(Debug, Clone)]
pub struct Scalar(pub Value);

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        // Whole and other numbers compare with each other, and stand before text, booleans and the rest.
        let rank = |value: &Value| match value {
            Value::Int(_) | Value::Float(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Bytes(_) => 5,
            Value::Null => 6,
        };
        match (&self.0, &other.0) {
            (Value::Int(left), Value::Int(right)) => left.cmp(right),
            (left @ (Value::Int(_) | Value::Float(_)), right @ (Value::Int(_) | Value::Float(_))) => {
                as_float(left).total_cmp(&as_float(right))
            }
            (Value::String(left), Value::String(right)) => left.cmp(right),
            (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
            (left, right) if rank(left) == rank(right) => go_json(left).cmp(&go_json(right)),
            (left, right) => rank(left).cmp(&rank(right)),
        }
    }
}

fn as_float(value: &Value) -> f64 {
    match value {
        #[allow(clippy::cast_precision_loss, reason = "as structured-merge-diff compares them")]
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => 0.0,
    }
}

/// A set of paths: which elements are in it here, and what is in it below.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set {
    members: BTreeSet<PathElement>,
    children: BTreeMap<PathElement, Set>,
}

/// A `FieldsV1` that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetError(String);

impl SetError {
    /// A managed-fields entry that is not of a known form.
    pub(crate) fn entry() -> Self {
        Self("the managed fields entry cannot be read".to_owned())
    }
}

impl Set {
    /// Of paths of plain fields.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<_> = path.iter().map(|name| PathElement::Field((*name).to_owned())).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds one path. The empty path (the whole object) is never a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut set = self;
        for parent in parents {
            set = set.children.entry(parent.clone()).or_default();
        }
        set.members.insert(last.clone());
    }

    /// Whether there is no path in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Whether the path is in it.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|child| child.contains(rest)),
        }
    }

    /// The paths in either.
    pub fn union(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.members.extend(other.members.iter().cloned());
        for (element, child) in &other.children {
            let merged = match both.children.get(element) {
                Some(known) => known.union(child),
                None => child.clone(),
            };
            both.children.insert(element.clone(), merged);
        }
        both
    }

    /// The paths in both.
    pub fn intersection(&self, other: &Self) -> Self {
        let members = self.members.intersection(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter_map(|(element, child)| {
                let both = child.intersection(other.children.get(element)?);
                (!both.is_empty()).then(|| (element.clone(), both))
            })
            .collect();
        Self { members, children }
    }

    /// The paths in this one only. What lies below a path of the other stays.
    pub fn difference(&self, other: &Self) -> Self {
        self.without(other, false)
    }

    /// The paths in this one only, and nothing that lies below a path of the other.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.without(other, true)
    }

    fn without(&self, other: &Self, recursive: bool) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter_map(|(element, child)| {
                if recursive && other.members.contains(element) {
                    return None;
                }
                let rest = match other.children.get(element) {
                    Some(other) => child.without(other, recursive),
                    None => child.clone(),
                };
                (!rest.is_empty()).then(|| (element.clone(), rest))
            })
            .collect();
        Self { members, children }
    }

    /// Everything below the path of plain fields `path`, and whether each is a member: the keys of a map, say.
    pub fn fields_below(&self, path: &[&str]) -> Vec<&str> {
        let mut set = self;
        for name in path {
            match set.children.get(&PathElement::Field((*name).to_owned())) {
                Some(child) => set = child,
                None => return Vec::new(),
            }
        }
        set.members
            .iter()
            .chain(set.children.keys())
            .filter_map(|element| match element {
                PathElement::Field(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    /// As the tree of a `fieldsV1`; the codec prints it in Go's order.
    pub fn to_value(&self) -> Value {
        Value::Object(self.contents(false))
    }

    fn contents(&self, include_self: bool) -> Map {
        let mut contents = Map::new();
        if include_self && !(self.members.is_empty() && self.children.is_empty()) {
            contents.insert(".".to_owned(), Value::object());
        }
        for member in &self.members {
            contents.insert(member.serialize(), Value::object());
        }
        for (element, child) in &self.children {
            let is_member = self.members.contains(element);
            contents.insert(element.serialize(), Value::Object(child.contents(is_member)));
        }
        contents
    }

    /// From the tree of a `fieldsV1`. Elements of unknown kinds are left out, as upstream does.
    pub fn from_value(value: &Value) -> Result<Self, SetError> {
        let members = value.as_object().ok_or_else(|| SetError("fieldsV1 must be an object".to_owned()))?;
        Ok(Self::read(members)?.0)
    }

    /// The set, and whether the element above is itself a member.
    fn read(contents: &Map) -> Result<(Self, bool), SetError> {
        let mut set = Self::default();
        let mut is_member = false;
        for (key, below) in contents {
            if key == "." {
                is_member = true;
                continue;
            }
            let Some(element) = PathElement::deserialize(key)? else { continue };
            let empty = Map::new();
            let (child, child_is_member) = Self::read(below.as_object().unwrap_or(&empty))?;
            let has_children = !(child.members.is_empty() && child.children.is_empty());
            if has_children {
                set.children.insert(element.clone(), child);
            }
            if child_is_member || !has_children {
                set.members.insert(element);
            }
        }
        Ok((set, is_member))
    }
}

impl PathElement {
    /// As a key of a `fieldsV1`.
    pub fn serialize(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{}", go_json(&name.as_str().into()), go_json(&value.0)))
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(value) => format!("v:{}", go_json(&value.0)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// From a key of a `fieldsV1`; `None` for a kind of element that is not known.
    pub fn deserialize(key: &str) -> Result<Option<Self>, SetError> {
        let (kind, rest) = key.split_once(':').ok_or_else(|| SetError(format!("missing colon: {key}")))?;
        let json = || {
            let parsed: serde_json::Value =
                serde_json::from_str(rest).map_err(|error| SetError(error.to_string()))?;
            Ok(from_json(&parsed))
        };
        Ok(Some(match kind {
            "f" => Self::Field(rest.to_owned()),
            "v" => Self::Value(Scalar(json()?)),
            "i" => Self::Index(rest.parse().map_err(|_| SetError(format!("invalid index: {rest}")))?),
            "k" => match json()? {
                Value::Object(fields) => {
                    Self::Key(fields.into_iter().map(|(name, value)| (name, Scalar(value))).collect())
                }
                _ => return Err(SetError("a key must be an object".to_owned())),
            },
            _ => return Ok(None),
        }))
    }
}

fn from_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        serde_json::Value::String(text) => Value::String(text.clone()),
        serde_json::Value::Array(items) => Value::Array(items.iter().map(from_json).collect()),
        serde_json::Value::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), from_json(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::testing::object;

    fn set(json: &str) -> Set {
        Set::from_value(&object(json)).expect("well-formed")
    }

    #[test]
    fn fields_v1_round_trips() {
        for json in [
            "{}",
            r#"{"f:a":{}}"#,
            r#"{"f:a":{".":{},"f:b":{}}}"#,
            r#"{"f:a":{"f:b":{}}}"#,
            r#"{"f:l":{"k:{\"uid\":\"x\"}":{".":{},"f:n":{}},"v:\"s\"":{},"i:3":{}}}"#,
        ] {
            assert!(set(json).to_value() == object(json), "{json}");
        }
        assert!(set(r#"{"f:a":{".":{}}}"#).to_value() == object(r#"{"f:a":{}}"#));
        assert!(set(r#"{"x:a":{},"f:b":{}}"#).to_value() == object(r#"{"f:b":{}}"#));
        for bad in ["[]", r#"{"a":{}}"#, r#"{"v:{":{}}"#, r#"{"k:1":{}}"#, r#"{"i:x":{}}"#] {
            assert!(Set::from_value(&object(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn elements_have_go_s_order_and_form() {
        let port = |number: i64| {
            PathElement::Key(vec![
                ("containerPort".to_owned(), Scalar(Value::Int(number))),
                ("protocol".to_owned(), Scalar("TCP".into())),
            ])
        };
        let value = |value: Value| PathElement::Value(Scalar(value));
        let ordered = [
            PathElement::Field("a".to_owned()),
            PathElement::Field("b".to_owned()),
            port(80),
            port(443),
            value(2.into()),
            value(10.into()),
            value("10".into()),
            value(false.into()),
            PathElement::Index(0),
        ];
        assert!(ordered.is_sorted());
        assert_eq!(port(80).serialize(), r#"k:{"containerPort":80,"protocol":"TCP"}"#);
        assert_eq!(value("a<b".into()).serialize(), r#"v:"a\u003cb""#);
        assert_eq!(Scalar(Value::Float(80.0)), Scalar(Value::Int(80)));
    }

    #[test]
    fn set_algebra() {
        let left = set(r#"{"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{}}"#);
        let right = set(r#"{"f:a":{"f:x":{}},"f:b":{},"f:c":{}}"#);
        let check = |actual: Set, expected: &str| assert!(actual == set(expected), "{actual:?}");
        check(left.union(&right), r#"{"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{},"f:c":{}}"#);
        check(left.intersection(&right), r#"{"f:a":{"f:x":{}},"f:b":{}}"#);
        check(left.difference(&right), r#"{"f:a":{".":{},"f:y":{}}}"#);
        check(left.difference(&set(r#"{"f:a":{}}"#)), r#"{"f:a":{"f:x":{},"f:y":{}},"f:b":{}}"#);
        check(left.recursive_difference(&set(r#"{"f:a":{}}"#)), r#"{"f:b":{}}"#);
        assert!(left.difference(&left).is_empty());
        assert!(Set::default().is_empty());
        assert_eq!(left.fields_below(&["a"]), ["x", "y"]);
    }
}
