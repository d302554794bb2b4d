//! Whether a value is of its type, and the set of paths that it mentions.

use std::collections::BTreeSet;
use std::fmt;

use crate::fields::element::{PathElement, path_text};
use crate::fields::set::Set;
use crate::fields::shape::{Handled, Items, ListShape, MapShape, Node, ScalarType, Schema};
use crate::{Map, Value};

/// What is wrong with a value, path by path. No text holds a value of the object.
#[derive(Debug, Clone, PartialEq, Eq, Default, thiserror::Error)]
pub struct TypeErrors(Vec<(String, String)>);

impl TypeErrors {
    pub(crate) fn one(path: &[PathElement], text: impl Into<String>) -> Self {
        Self(vec![(path_text(path), text.into())])
    }

    fn push(&mut self, path: &[PathElement], text: impl Into<String>) {
        self.0.push((path_text(path), text.into()));
    }
}

/// One after the other, as upstream prints them.
impl fmt::Display for TypeErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write = |formatter: &mut fmt::Formatter<'_>, (path, text): &(String, String)| {
            if path.is_empty() { formatter.write_str(text) } else { write!(formatter, "{path}: {text}") }
        };
        if let [only] = self.0.as_slice() {
            return write(formatter, only);
        }
        formatter.write_str("errors:")?;
        for error in &self.0 {
            formatter.write_str("\n  ")?;
            write(formatter, error)?;
        }
        Ok(())
    }
}

/// Whether sets and keyed lists may hold an item twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// In what is stored: they may have come in before the list was keyed.
    Allowed,
    /// In what is applied.
    Refused,
}

/// Whether `object`, a tree in JSON form, is what the schema says.
pub fn validate(schema: Schema<'_>, object: &Value, duplicates: Duplicates) -> Result<(), TypeErrors> {
    let mut validator = Validator { duplicates, path: Vec::new(), errors: TypeErrors::default() };
    validator.validate(Node::root(schema), object);
    if validator.errors.0.is_empty() { Ok(()) } else { Err(validator.errors) }
}

struct Validator {
    duplicates: Duplicates,
    path: Vec<PathElement>,
    errors: TypeErrors,
}

impl Validator {
    fn validate(&mut self, node: Node<'_>, value: &Value) {
        match (node.atom().deduced(Some(value)).handled(), value) {
            (Handled::Scalar(_), Value::Null) => {}
            (Handled::Scalar(scalar), value) => self.scalar(scalar, value),
            (Handled::List(_) | Handled::Map(_), Value::Null) => {}
            (Handled::List(list), Value::Array(items)) => self.items(&list, items),
            (Handled::Map(map), Value::Object(members)) => self.members(&map, members),
            (Handled::List(_), other) => self.wrong("list", other),
            (Handled::Map(_), other) => self.wrong("map", other),
        }
    }

    fn wrong(&mut self, expected: &str, value: &Value) {
        self.errors.push(&self.path, format!("expected {expected}, got {}", go_type(value)));
    }

    fn scalar(&mut self, scalar: ScalarType, value: &Value) {
        let (expected, fits) = match scalar {
            ScalarType::Numeric => {
                ("numeric (int or float)", matches!(value, Value::Int(_) | Value::Float(_)))
            }
            ScalarType::String => ("string", matches!(value, Value::String(_) | Value::Bytes(_))),
            ScalarType::Boolean => ("boolean", matches!(value, Value::Bool(_))),
            ScalarType::Any => ("any scalar", !matches!(value, Value::Array(_) | Value::Object(_))),
        };
        if !fits {
            self.wrong(expected, value);
        }
    }

    fn items(&mut self, list: &ListShape<'_>, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = if matches!(list.items, Items::Atomic) {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match list.identity(item) {
                    Ok(element) => element,
                    Err(text) => {
                        // What has no identity has no path either.
                        self.errors.push(&self.path, format!("element {index}: {text}"));
                        return;
                    }
                }
            };
            if self.duplicates == Duplicates::Refused && !seen.insert(element.clone()) {
                self.errors.push(&self.path, format!("duplicate entries for key {element}"));
            }
            self.path.push(element);
            self.validate(list.item, item);
            self.path.pop();
        }
    }

    fn members(&mut self, map: &MapShape<'_>, members: &Map) {
        for (name, member) in members {
            self.path.push(PathElement::field(name));
            let known = map.field(name).or_else(|| map.element());
            match known {
                Some(node) => self.validate(node, member),
                None => self.errors.push(&self.path, "field not declared in schema"),
            }
            self.path.pop();
            if known.is_none() {
                return;
            }
        }
    }
}

/// Go's type of a decoded value: what the original prints instead of it is the value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "float64",
        Value::String(_) | Value::Bytes(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The paths that a valid object, a tree in JSON form, mentions.
pub(crate) fn mentioned(schema: Schema<'_>, object: &Value) -> Set {
    let mut collector = Collector { path: Vec::new(), set: Set::default() };
    collector.collect(Node::root(schema), object);
    collector.set
}

struct Collector {
    path: Vec<PathElement>,
    set: Set,
}

impl Collector {
    fn collect(&mut self, node: Node<'_>, value: &Value) {
        match (node.atom().deduced(Some(value)).handled(), value) {
            (Handled::Scalar(_), _) => self.set.insert(&self.path),
            (Handled::List(list), _) if matches!(list.items, Items::Atomic) => self.set.insert(&self.path),
            (Handled::List(list), Value::Array(items)) => self.items(&list, items),
            (Handled::Map(map), _) if map.atomic => self.set.insert(&self.path),
            (Handled::Map(map), Value::Object(members)) => {
                for (name, member) in members {
                    self.path.push(PathElement::field(name));
                    self.collect(map.member(name), member);
                    let nothing = match member {
                        Value::Null => true,
                        Value::Object(members) => members.is_empty(),
                        _ => false,
                    };
                    if nothing || map.field(name).is_none() {
                        self.set.insert(&self.path);
                    }
                    self.path.pop();
                }
            }
            (Handled::List(_) | Handled::Map(_), _) => {}
        }
    }

    fn items(&mut self, list: &ListShape<'_>, items: &[Value]) {
        let identified: Vec<_> =
            items.iter().filter_map(|item| Some((list.identity(item).ok()?, item))).collect();
        let (mut seen, mut doubled) = (BTreeSet::new(), BTreeSet::new());
        for (element, _) in &identified {
            if !seen.insert(element) {
                doubled.insert(element);
            }
        }
        let mut in_order: Vec<_> = identified.iter().collect();
        in_order.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (element, item) in in_order {
            self.path.push(element.clone());
            // What is there more than once has no fields of its own.
            if !doubled.contains(element) {
                self.collect(list.item, item);
            }
            self.set.insert(&self.path);
            self.path.pop();
        }
    }
}
