//! What a write added, changed and removed, field by field.
//!
//! Objects are seen as Go's structs marshal them: a struct that is no pointer
//! is there even when it is empty, a zero value with `omitempty` is not.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::fields::element::PathElement;
use crate::fields::set::Set;
use crate::fields::shape::{Handled, Items, ListShape, MapShape, Node, Schema};
use crate::fields::typed::TypeErrors;
use crate::schema::{Message, Shape, Type};
use crate::{Map, Value};

/// The paths that differ between two objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Only in the old object.
    pub removed: Set,
    /// In both, with different values.
    pub modified: Set,
    /// Only in the new object.
    pub added: Set,
}

impl Comparison {
    /// Without the paths of `excluded` and what is below them.
    pub(crate) fn without(self, excluded: Option<&Set>) -> Self {
        let Some(excluded) = excluded.filter(|set| !set.is_empty()) else { return self };
        Self {
            removed: self.removed.recursive_difference(excluded),
            modified: self.modified.recursive_difference(excluded),
            added: self.added.recursive_difference(excluded),
        }
    }
}

/// Compares two decoded objects of one type.
pub fn compare(schema: Schema<'_>, old: &Value, new: &Value) -> Result<Comparison, TypeErrors> {
    run(schema, old, new, matches!(schema, Schema::Message(_)))
}

/// Compares two trees in JSON form: nothing is there that is not written.
pub(crate) fn compare_trees(schema: Schema<'_>, old: &Value, new: &Value) -> Result<Comparison, TypeErrors> {
    run(schema, old, new, false)
}

fn run(schema: Schema<'_>, old: &Value, new: &Value, structs: bool) -> Result<Comparison, TypeErrors> {
    let mut walker = Walker { path: Vec::new(), comparison: Comparison::default(), structs };
    walker.compare(Node::root(schema), Some(old), Some(new))?;
    Ok(walker.comparison)
}

/// Whether two values are the same to structured merge: numbers by what they count.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        #[allow(clippy::cast_precision_loss, reason = "as structured-merge-diff compares them")]
        (Value::Int(whole), Value::Float(float)) | (Value::Float(float), Value::Int(whole)) => {
            *whole as f64 == *float
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((left_key, left), (right_key, right))| left_key == right_key && same(left, right))
        }
        _ => left == right,
    }
}

struct Walker {
    path: Vec<PathElement>,
    comparison: Comparison,
    /// Whether built-in parts are seen as Go's structs.
    structs: bool,
}

impl Walker {
    fn compare(
        &mut self,
        node: Node<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), TypeErrors> {
        if old.is_none() && new.is_none() {
            return Ok(());
        }
        let atom = node.atom();
        let (left, right) = (atom.deduced(old), atom.deduced(new));
        let is_leaf = if new.is_none() {
            self.walk(left.handled(), old, new)?
        } else if old.is_none() || left.is_like(&right) {
            self.walk(right.handled(), old, new)?
        } else {
            // Values of two kinds are walked as both, as upstream does.
            self.walk(left.handled(), old, new)?;
            self.walk(right.handled(), old, new)?
        };
        if !is_leaf {
            match (old, new) {
                (None, _) => self.comparison.added.insert(&self.path),
                (_, None) => self.comparison.removed.insert(&self.path),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the value is a leaf.
    fn walk(
        &mut self,
        handled: Handled<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<bool, TypeErrors> {
        match handled {
            Handled::Scalar(_) => {}
            Handled::Map(map) => {
                let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                let is_empty = |side: Option<&Map>| side.is_none_or(Map::is_empty);
                let always_there = self.structs && map.message().is_some_and(shows);
                if !map.atomic
                    && (!is_empty(old) || !is_empty(new) || (always_there && (old.or(new)).is_some()))
                {
                    self.members(&map, old, new)?;
                    return Ok(false);
                }
            }
            Handled::List(list) => {
                let (old, new) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
                let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
                let is_leaf = matches!(list.items, Items::Atomic) || (old.is_empty() && new.is_empty());
                if !is_leaf {
                    self.items(&list, old, new)?;
                    return Ok(false);
                }
            }
        }
        match (old, new) {
            (None, _) => self.comparison.added.insert(&self.path),
            (_, None) => self.comparison.removed.insert(&self.path),
            (Some(old), Some(new)) if !same(old, new) => self.comparison.modified.insert(&self.path),
            _ => {}
        }
        Ok(true)
    }

    fn members(
        &mut self,
        map: &MapShape<'_>,
        old: Option<&Map>,
        new: Option<&Map>,
    ) -> Result<(), TypeErrors> {
        let mut names: BTreeSet<&str> =
            [old, new].into_iter().flatten().flat_map(|members| members.keys().map(String::as_str)).collect();
        let message = map.message().filter(|_| self.structs);
        if let Some(message) = message {
            always_shown(message, &mut names);
        }
        for name in names {
            let (old, new) = (view(message, old, name), view(message, new, name));
            self.path.push(PathElement::field(name));
            self.compare(map.member(name), old.as_deref(), new.as_deref())?;
            self.path.pop();
        }
        Ok(())
    }

    fn items(&mut self, list: &ListShape<'_>, old: &[Value], new: &[Value]) -> Result<(), TypeErrors> {
        let (old, new) = (self.elements(list, old)?, self.elements(list, new)?);
        let all: BTreeSet<&PathElement> = old.keys().chain(new.keys()).collect();
        let none: &[&Value] = &[];
        for element in all {
            let old = old.get(element).map_or(none, Vec::as_slice);
            let new = new.get(element).map_or(none, Vec::as_slice);
            self.path.push(element.clone());
            match (old, new) {
                ([] | [_], [] | [_]) => {
                    self.compare(list.item, old.first().copied(), new.first().copied())?
                }
                ([_, _, ..], [_, _, ..]) => {
                    let unchanged =
                        old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new));
                    if !unchanged {
                        self.comparison.modified.insert(&self.path);
                    }
                }
                // What was there more than once had no fields of its own.
                ([_, _, ..], _) => {
                    self.compare(list.item, None, new.first().copied())?;
                    self.comparison.removed.insert(&self.path);
                }
                (_, _) => {
                    self.compare(list.item, old.first().copied(), None)?;
                    self.comparison.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
        Ok(())
    }

    /// The items by what tells them apart.
    fn elements<'v>(
        &self,
        list: &ListShape<'_>,
        items: &'v [Value],
    ) -> Result<BTreeMap<PathElement, Vec<&'v Value>>, TypeErrors> {
        let mut found: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            let element = list
                .identity(item)
                .map_err(|text| TypeErrors::one(&self.path, format!("element {index}: {text}")))?;
            found.entry(element).or_default().push(item);
        }
        Ok(found)
    }
}

/// Whether even an empty struct marshals to something.
fn shows(message: &'static Message) -> bool {
    let mut names = BTreeSet::new();
    always_shown(message, &mut names);
    !names.is_empty()
}

/// The fields that are always there.
fn always_shown(message: &'static Message, names: &mut BTreeSet<&str>) {
    for field in message.fields {
        match field.inlined() {
            Some(inlined) => always_shown(inlined, names),
            None if !field.optional && !field.omit_empty => {
                names.insert(field.json);
            }
            None => {}
        }
    }
}

/// A member, of a struct as Go marshals it.
fn view<'a>(
    message: Option<&'static Message>,
    parent: Option<&'a Map>,
    name: &str,
) -> Option<Cow<'a, Value>> {
    let parent = parent?;
    let value = parent.get(name);
    let Some(field) = message.and_then(|message| message.field(name)) else {
        return value.map(Cow::Borrowed);
    };
    match value {
        Some(value) if field.optional || !field.omit_empty || !is_zero(value) => Some(Cow::Borrowed(value)),
        None if !field.optional && !field.omit_empty => Some(Cow::Owned(zero(field.shape))),
        _ => None,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Int(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

fn zero(shape: Shape) -> Value {
    match shape {
        Shape::One(Type::Message(_)) => Value::Object(Map::new()),
        Shape::One(Type::String | Type::Quantity) => Value::String(String::new()),
        Shape::One(Type::Int32 | Type::Int64 | Type::IntOrString) => Value::Int(0),
        Shape::One(Type::Double) => Value::Float(0.0),
        Shape::One(Type::Bool) => Value::Bool(false),
        _ => Value::Null,
    }
}
