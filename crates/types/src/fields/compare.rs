//! What a write added, changed and removed, field by field.
//!
//! Objects are seen as Go's structs marshal them: a struct that is no pointer
//! is there even when it is empty, a zero value with `omitempty` is not.

use std::collections::BTreeSet;

use crate::fields::set::{PathElement, Scalar, Set};
use crate::schema::{ListType, Message, Shape, Type};
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

/// What is known of the type of a value.
#[derive(Debug, Clone, Copy)]
pub enum Schema<'a> {
    /// A built-in struct.
    Message(&'static Message),
    /// A part of a custom resource, by its OpenAPI schema; the whole has built-in metadata.
    OpenApi(&'a Value),
    /// A whole custom resource by the schema of its version.
    CustomResource(&'a Value),
    /// Nothing: objects are granular, lists are atomic.
    Untyped,
}

/// Compares two objects of one type.
pub fn compare(schema: Schema<'_>, old: &Value, new: &Value) -> Comparison {
    let mut walker = Walker { path: Vec::new(), comparison: Comparison::default() };
    walker.compare(root(schema), Some(old), Some(new));
    walker.comparison
}

/// A schema in the form that the walk needs.
#[derive(Clone, Copy)]
enum Node<'a> {
    Scalar,
    Struct { message: &'static Message, atomic: bool },
    Map { element: Type, atomic: bool },
    List { element: Type, kind: ListType, keys: &'static [&'static str] },
    OpenApi(&'a Value),
    CustomResource(&'a Value),
    Untyped,
}

fn root(schema: Schema<'_>) -> Node<'_> {
    match schema {
        Schema::Message(message) => Node::Struct { message, atomic: message.atomic },
        Schema::OpenApi(schema) => Node::OpenApi(schema),
        Schema::CustomResource(schema) => Node::CustomResource(schema),
        Schema::Untyped => Node::Untyped,
    }
}

fn of_type(element: Type) -> Node<'static> {
    match element {
        Type::Message(message) => Node::Struct { message, atomic: message.atomic },
        Type::RawExtension | Type::RawJson | Type::Any | Type::FieldsV1 | Type::Either(..) => Node::Untyped,
        Type::StringList => Node::List { element: Type::String, kind: ListType::Atomic, keys: &[] },
        _ => Node::Scalar,
    }
}

/// How a value of one kind (object, list, scalar) is walked.
enum Walk {
    Leaf,
    Members,
    Items(Vec<String>),
}

struct Walker {
    path: Vec<PathElement>,
    comparison: Comparison,
}

impl Walker {
    fn compare(&mut self, node: Node<'_>, old: Option<&Value>, new: Option<&Value>) {
        let mut leaf = false;
        let mut kinds: BTreeSet<u8> = [old, new].into_iter().flatten().map(kind_of).collect();
        if kinds.is_empty() {
            return;
        }
        // Null takes whatever form the other has.
        if kinds.len() > 1 && [old, new].into_iter().flatten().any(Value::is_null) {
            kinds.remove(&SCALAR);
        }
        // Values of two kinds are walked as both, as upstream does.
        for kind in kinds {
            leaf |= self.walk(node, kind, old, new);
        }
        if !leaf {
            match (old, new) {
                (None, _) => self.comparison.added.insert(&self.path),
                (_, None) => self.comparison.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Whether the value is a leaf.
    fn walk(&mut self, node: Node<'_>, kind: u8, old: Option<&Value>, new: Option<&Value>) -> bool {
        let walk = match kind {
            OBJECT if is_empty(old) && is_empty(new) && !has_struct_members(node) => Walk::Leaf,
            OBJECT if is_atomic_object(node) => Walk::Leaf,
            OBJECT => Walk::Members,
            LIST if is_empty(old) && is_empty(new) => Walk::Leaf,
            LIST => match list_keys(node) {
                Some(keys) => Walk::Items(keys),
                None => Walk::Leaf,
            },
            _ => Walk::Leaf,
        };
        match walk {
            Walk::Leaf => {
                match (old, new) {
                    (None, _) => self.comparison.added.insert(&self.path),
                    (_, None) => self.comparison.removed.insert(&self.path),
                    (Some(old), Some(new)) if old != new => self.comparison.modified.insert(&self.path),
                    _ => {}
                }
                true
            }
            Walk::Members => {
                self.members(node, old, new);
                false
            }
            Walk::Items(keys) => {
                self.items(node, &keys, old, new);
                false
            }
        }
    }

    fn members(&mut self, node: Node<'_>, old: Option<&Value>, new: Option<&Value>) {
        let mut names: BTreeSet<&str> = [old, new]
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .flat_map(|members| members.keys().map(String::as_str))
            .collect();
        if let Node::Struct { message, .. } = node {
            names_of(message, &mut names);
        }
        for name in names {
            let child = member(node, name);
            let old = old.and_then(|parent| view(node, parent, name));
            let new = new.and_then(|parent| view(node, parent, name));
            self.path.push(PathElement::Field(name.to_owned()));
            self.compare(child, old.as_deref(), new.as_deref());
            self.path.pop();
        }
    }

    fn items(&mut self, node: Node<'_>, keys: &[String], old: Option<&Value>, new: Option<&Value>) {
        let child = item(node);
        let (old, new) = (elements(old, keys), elements(new, keys));
        let all: BTreeSet<&PathElement> = old.iter().chain(&new).map(|(element, _)| element).collect();
        let of = |items: &[(PathElement, &'_ Value)], element: &PathElement| -> Vec<Value> {
            items.iter().filter(|(known, _)| known == element).map(|(_, value)| (*value).clone()).collect()
        };
        for element in all {
            let (old, new) = (of(&old, element), of(&new, element));
            self.path.push(element.clone());
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => self.compare(child, old.first(), new.first()),
                ([_, _, ..], [_, _, ..]) if old != new => self.comparison.modified.insert(&self.path),
                ([_, _, ..], [_, _, ..]) => {}
                // What was there more than once had no fields of its own.
                ([_, _, ..], _) => {
                    self.compare(child, None, new.first());
                    self.comparison.removed.insert(&self.path);
                }
                (_, _) => {
                    self.compare(child, old.first(), None);
                    self.comparison.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
    }
}

const SCALAR: u8 = 0;
const LIST: u8 = 1;
const OBJECT: u8 = 2;

fn kind_of(value: &Value) -> u8 {
    match value {
        Value::Object(_) => OBJECT,
        Value::Array(_) => LIST,
        _ => SCALAR,
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => true,
    }
}

/// Whether even an empty struct marshals to something.
fn has_struct_members(node: Node<'_>) -> bool {
    let Node::Struct { message, .. } = node else { return false };
    let mut names = BTreeSet::new();
    names_of(message, &mut names);
    !names.is_empty()
}

/// The fields that are always there.
fn names_of(message: &'static Message, names: &mut BTreeSet<&str>) {
    for field in message.fields {
        match field.inlined() {
            Some(inlined) => names_of(inlined, names),
            None if !field.optional && !field.omit_empty => {
                names.insert(field.json);
            }
            None => {}
        }
    }
}

fn is_atomic_object(node: Node<'_>) -> bool {
    match node {
        Node::Struct { atomic, .. } | Node::Map { atomic, .. } => atomic,
        Node::OpenApi(schema) => schema.str_at(&["x-kubernetes-map-type"]) == "atomic",
        Node::CustomResource(_) | Node::Untyped => false,
        Node::Scalar | Node::List { .. } => true,
    }
}

/// The keys of a list that is not atomic; none for a set.
fn list_keys(node: Node<'_>) -> Option<Vec<String>> {
    match node {
        Node::List { kind: ListType::Set, .. } => Some(Vec::new()),
        Node::List { kind: ListType::Map, keys, .. } => {
            Some(keys.iter().map(|key| (*key).to_owned()).collect())
        }
        Node::OpenApi(schema) => match schema.str_at(&["x-kubernetes-list-type"]) {
            "set" => Some(Vec::new()),
            "map" => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                Some(keys.unwrap_or_default().iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            _ => None,
        },
        _ => None,
    }
}

fn member<'a>(node: Node<'a>, name: &str) -> Node<'a> {
    match node {
        Node::Struct { message, .. } => message.field(name).map_or(Node::Untyped, |field| {
            let patch = &field.patch;
            match field.shape {
                Shape::One(Type::Message(inner)) => {
                    Node::Struct { message: inner, atomic: patch.atomic || inner.atomic }
                }
                Shape::One(one) => of_type(one),
                Shape::Map(element) => Node::Map { element, atomic: patch.atomic },
                Shape::List(element) => Node::List { element, kind: patch.list, keys: patch.list_keys },
            }
        }),
        Node::Map { element, .. } => of_type(element),
        Node::OpenApi(schema) => open_api_member(schema, name),
        Node::CustomResource(schema) => match name {
            "apiVersion" | "kind" => Node::Scalar,
            "metadata" => metadata().map_or(Node::Untyped, |message| Node::Struct { message, atomic: false }),
            _ => open_api_member(schema, name),
        },
        _ => Node::Untyped,
    }
}

fn metadata() -> Option<&'static Message> {
    let kind = crate::schema::lookup("", "v1", "Secret")?;
    match kind.message.field("metadata")?.shape {
        Shape::One(Type::Message(message)) => Some(message),
        _ => None,
    }
}

fn open_api_member<'a>(schema: &'a Value, name: &str) -> Node<'a> {
    let property = schema.at(&["properties", name]);
    match property.or_else(|| schema.get("additionalProperties").filter(|one| one.as_object().is_some())) {
        Some(schema) => Node::OpenApi(schema),
        None => Node::Untyped,
    }
}

fn item(node: Node<'_>) -> Node<'_> {
    match node {
        Node::List { element, .. } => of_type(element),
        Node::OpenApi(schema) => schema.get("items").map_or(Node::Untyped, Node::OpenApi),
        _ => Node::Untyped,
    }
}

/// Each item that has an identity, by it.
fn elements<'a>(list: Option<&'a Value>, keys: &[String]) -> Vec<(PathElement, &'a Value)> {
    let items = list.and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(|item| Some((identity(item, keys)?, item))).collect()
}

fn identity(item: &Value, keys: &[String]) -> Option<PathElement> {
    if keys.is_empty() {
        return (kind_of(item) == SCALAR && !item.is_null())
            .then(|| PathElement::Value(Scalar(item.clone())));
    }
    let members = item.as_object()?;
    let mut fields: Vec<_> = keys
        .iter()
        .filter_map(|key| {
            // The one default of a key among the built-in kinds.
            let default = (key == "protocol").then(|| Value::from("TCP"));
            Some((key.clone(), Scalar(members.get(key).cloned().or(default)?)))
        })
        .collect();
    fields.sort();
    (!fields.is_empty()).then_some(PathElement::Key(fields))
}

/// A member as Go marshals it.
fn view<'a>(node: Node<'_>, parent: &'a Value, name: &str) -> Option<std::borrow::Cow<'a, Value>> {
    use std::borrow::Cow;
    let value = parent.get(name);
    let Node::Struct { message, .. } = node else { return value.map(Cow::Borrowed) };
    let Some(field) = message.field(name) else { return value.map(Cow::Borrowed) };
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
