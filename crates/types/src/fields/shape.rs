//! What a schema says of a value, in the terms of structured merge: each place may hold a
//! scalar, a list or a map, and lists and maps are owned as a whole or by their parts.
//!
//! Nothing is copied out of a schema: a [`Node`] names a place in the tables of the built-in
//! kinds or in the OpenAPI schema of a custom resource, and is asked when a walk comes by.

use crate::Value;
use crate::fields::element::{PathElement, Scalar};
use crate::schema::{Field, ListType, Message, Shape, Type};

/// What is known of the type of an object.
#[derive(Debug, Clone, Copy)]
pub enum Schema<'a> {
    /// A built-in struct.
    Message(&'static Message),
    /// A whole custom resource by the schema of its version; its metadata is the built-in one.
    CustomResource(&'a Value),
    /// Nothing: objects are granular, lists are atomic.
    Untyped,
}

/// A place in a schema.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node<'a> {
    Scalar(ScalarType),
    Struct {
        message: &'static Message,
        atomic: bool,
    },
    Map {
        element: Type,
        atomic: bool,
    },
    List {
        element: Type,
        kind: ListType,
        keys: &'static [&'static str],
    },
    /// A part of a custom resource; `preserve` when something above keeps unknown fields.
    OpenApi {
        schema: &'a Value,
        preserve: bool,
    },
    CustomResource(&'a Value),
    /// An object of which nothing is known.
    Untyped,
    /// Whatever is there, objects by their parts.
    Deduced,
    /// Whatever is there, as a whole.
    Whole,
}

/// What a scalar may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarType {
    Numeric,
    String,
    Boolean,
    Any,
}

/// What may be in a place. The first that there is counts for a value that fits none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Atom<'a> {
    pub(crate) map: Option<MapShape<'a>>,
    pub(crate) scalar: Option<ScalarType>,
    pub(crate) list: Option<ListShape<'a>>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Handled<'a> {
    Map(MapShape<'a>),
    Scalar(ScalarType),
    List(ListShape<'a>),
}

/// A struct or a map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MapShape<'a> {
    node: Node<'a>,
    pub(crate) atomic: bool,
}

/// A list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListShape<'a> {
    pub(crate) item: Node<'a>,
    pub(crate) items: Items<'a>,
}

/// What tells the items of a list apart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Items<'a> {
    /// Nothing: the list is owned as a whole.
    Atomic,
    /// Their value.
    Set,
    /// The fields of these names.
    Keys(Keys<'a>),
}

/// Names of key fields.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keys<'a> {
    Table(&'static [&'static str]),
    OpenApi(&'a [Value]),
}

impl<'a> Node<'a> {
    pub(crate) fn root(schema: Schema<'a>) -> Self {
        match schema {
            Schema::Message(message) => Self::Struct { message, atomic: message.atomic },
            Schema::CustomResource(schema) => Self::CustomResource(schema),
            Schema::Untyped => Self::Untyped,
        }
    }

    pub(crate) fn atom(self) -> Atom<'a> {
        let map = |atomic| Some(MapShape { node: self, atomic });
        let none = Atom { map: None, scalar: None, list: None };
        match self {
            Self::Scalar(scalar) => Atom { scalar: Some(scalar), ..none },
            Self::Struct { atomic, .. } | Self::Map { atomic, .. } => Atom { map: map(atomic), ..none },
            Self::List { element, kind, keys } => {
                let items = match kind {
                    ListType::Atomic => Items::Atomic,
                    ListType::Set => Items::Set,
                    ListType::Map => Items::Keys(Keys::Table(keys)),
                };
                Atom { list: Some(ListShape { item: of_type(element), items }), ..none }
            }
            Self::OpenApi { schema, .. } => {
                let list = || Some(ListShape { item: self.open_api_item(), items: open_api_items(schema) });
                let atomic = schema.str_at(&["x-kubernetes-map-type"]) == "atomic";
                let scalar = |scalar| Atom { scalar: Some(scalar), ..none };
                match schema.str_at(&["type"]) {
                    "" => Atom { map: map(atomic), scalar: Some(ScalarType::Any), list: list() },
                    "object" => Atom { map: map(atomic), ..none },
                    "array" => Atom { list: list(), ..none },
                    "integer" | "number" => scalar(ScalarType::Numeric),
                    "boolean" => scalar(ScalarType::Boolean),
                    "string" if matches!(schema.str_at(&["format"]), "" | "byte") => {
                        scalar(ScalarType::String)
                    }
                    _ => scalar(ScalarType::Any),
                }
            }
            Self::CustomResource(schema) => {
                let atomic = schema.str_at(&["x-kubernetes-map-type"]) == "atomic";
                Atom { map: map(atomic), ..none }
            }
            Self::Untyped => Atom { map: map(false), ..none },
            Self::Deduced | Self::Whole => Atom {
                map: map(matches!(self, Self::Whole)),
                scalar: Some(ScalarType::Any),
                list: Some(ListShape { item: Self::Whole, items: Items::Atomic }),
            },
        }
    }

    /// Whether unknown fields are kept from here on down.
    fn preserves(self) -> bool {
        match self {
            Self::OpenApi { schema, preserve } => preserve || keeps_unknown(schema),
            Self::CustomResource(schema) => keeps_unknown(schema),
            _ => false,
        }
    }

    fn open_api_item(self) -> Self {
        match self {
            Self::OpenApi { schema, .. } => schema
                .get("items")
                .map_or(Self::Whole, |schema| Self::OpenApi { schema, preserve: self.preserves() }),
            _ => Self::Whole,
        }
    }
}

impl<'a> Atom<'a> {
    /// Only what `value` is, if it may be that.
    pub(crate) fn deduced(self, value: Option<&Value>) -> Self {
        let none = Self { map: None, scalar: None, list: None };
        match value {
            Some(Value::Object(_)) if self.map.is_some() => Self { map: self.map, ..none },
            Some(Value::Array(_)) if self.list.is_some() => Self { list: self.list, ..none },
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Bytes(_))
                if self.scalar.is_some() =>
            {
                Self { scalar: self.scalar, ..none }
            }
            _ => self,
        }
    }

    /// Whether both allow the same, given that both come from one atom.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let kinds = |atom: &Self| (atom.map.is_some(), atom.scalar.is_some(), atom.list.is_some());
        kinds(self) == kinds(other)
    }

    /// The one that counts.
    pub(crate) fn handled(self) -> Handled<'a> {
        match (self.map, self.scalar, self.list) {
            (Some(map), _, _) => Handled::Map(map),
            (None, _, Some(list)) if self.scalar.is_none() => Handled::List(list),
            (None, scalar, _) => Handled::Scalar(scalar.unwrap_or(ScalarType::Any)),
        }
    }
}

impl<'a> MapShape<'a> {
    /// The type of a declared field.
    pub(crate) fn field(&self, name: &str) -> Option<Node<'a>> {
        match self.node {
            Node::Struct { message, .. } => message.field(name).map(of_field),
            Node::OpenApi { schema, .. } => {
                if schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true)
                    && let Some(node) = of_every_object(name)
                {
                    return Some(node);
                }
                self.property(schema, name)
            }
            Node::CustomResource(schema) => of_every_object(name).or_else(|| self.property(schema, name)),
            _ => None,
        }
    }

    fn property(&self, schema: &'a Value, name: &str) -> Option<Node<'a>> {
        let schema = schema.at(&["properties", name])?;
        Some(Node::OpenApi { schema, preserve: self.node.preserves() })
    }

    /// The type of what is not declared, where that is allowed.
    pub(crate) fn element(&self) -> Option<Node<'a>> {
        match self.node {
            Node::Map { element, .. } => Some(of_type(element)),
            Node::OpenApi { schema, .. } | Node::CustomResource(schema) => {
                match schema.get("additionalProperties") {
                    Some(Value::Bool(true)) => Some(Node::Deduced),
                    Some(inner @ Value::Object(_)) => {
                        Some(Node::OpenApi { schema: inner, preserve: self.node.preserves() })
                    }
                    None | Some(Value::Null) if self.node.preserves() || !self.has_fields() => {
                        Some(Node::Deduced)
                    }
                    _ => None,
                }
            }
            Node::Untyped | Node::Deduced => Some(Node::Deduced),
            Node::Whole => Some(Node::Whole),
            _ => None,
        }
    }

    /// The type of a member, declared or not.
    pub(crate) fn member(&self, name: &str) -> Node<'a> {
        self.field(name).or_else(|| self.element()).unwrap_or(Node::Deduced)
    }

    fn has_fields(&self) -> bool {
        match self.node {
            Node::Struct { .. } | Node::CustomResource(_) => true,
            Node::OpenApi { schema, .. } => {
                schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true)
                    || schema
                        .get("properties")
                        .and_then(Value::as_object)
                        .is_some_and(|properties| !properties.is_empty())
            }
            _ => false,
        }
    }

    /// Whether this is a map of whatever: a change between atomic and granular cannot be told there.
    pub(crate) fn is_untyped(&self) -> bool {
        let element = match self.element() {
            Some(Node::Deduced) => true,
            // A named type, upstream.
            Some(Node::Scalar(_) | Node::Whole | Node::Struct { .. }) | None => false,
            Some(element) => matches!(element.atom().scalar, Some(ScalarType::Any)),
        };
        element && !self.has_fields()
    }

    /// The struct behind it, if it is a built-in one.
    pub(crate) fn message(&self) -> Option<&'static Message> {
        match self.node {
            Node::Struct { message, .. } => Some(message),
            _ => None,
        }
    }

    /// What a declared field is when it is absent.
    fn default_of(&self, name: &str) -> Option<Value> {
        match self.node {
            Node::Struct { message, .. } => table_default(message.field(name)?),
            Node::OpenApi { schema, .. } | Node::CustomResource(schema) => {
                schema.at(&["properties", name, "default"]).filter(|default| !default.is_null()).cloned()
            }
            _ => None,
        }
    }
}

impl ListShape<'_> {
    /// What tells `item` from the others. Only of lists that are not atomic.
    pub(crate) fn identity(&self, item: &Value) -> Result<PathElement, String> {
        match self.items {
            Items::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Items::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                scalar => Ok(PathElement::Value(Scalar(scalar.clone()))),
            },
            Items::Keys(keys) => self.key_of(keys, item),
        }
    }

    fn key_of(&self, keys: Keys<'_>, item: &Value) -> Result<PathElement, String> {
        let members = match item {
            Value::Object(members) => members,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let mut fields = Vec::with_capacity(keys.len());
        for index in 0..keys.len() {
            let key = keys.name(index);
            if let Some(value) = members.get(key) {
                fields.push((key.to_owned(), Scalar(value.clone())));
                continue;
            }
            let Some(shape) = self.item.atom().map else {
                return Err(format!(
                    "couldn't find default value for {key}: associative list may not have non-map types"
                ));
            };
            if let Some(default) = shape.default_of(key) {
                fields.push((key.to_owned(), Scalar(default)));
            }
        }
        if fields.is_empty() && keys.len() > 0 {
            let names: Vec<String> = (0..keys.len()).map(|index| format!("{:?}", keys.name(index))).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(PathElement::Key(fields))
    }
}

impl Keys<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Table(keys) => keys.len(),
            Self::OpenApi(keys) => keys.len(),
        }
    }

    fn name(&self, index: usize) -> &str {
        match self {
            Self::Table(keys) => keys[index],
            Self::OpenApi(keys) => keys[index].as_str().unwrap_or_default(),
        }
    }
}

fn keeps_unknown(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool) == Some(true)
}

fn open_api_items(schema: &Value) -> Items<'_> {
    match schema.str_at(&["x-kubernetes-list-type"]) {
        "set" => Items::Set,
        "map" => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            Items::Keys(Keys::OpenApi(keys.unwrap_or_default()))
        }
        _ => Items::Atomic,
    }
}

/// The fields that every whole object has.
fn of_every_object(name: &str) -> Option<Node<'static>> {
    match name {
        "apiVersion" | "kind" => Some(Node::Scalar(ScalarType::String)),
        "metadata" => metadata().map(|message| Node::Struct { message, atomic: false }),
        _ => None,
    }
}

fn metadata() -> Option<&'static Message> {
    let kind = crate::schema::lookup("", "v1", "Secret")?;
    match kind.message.field("metadata")?.shape {
        Shape::One(Type::Message(message)) => Some(message),
        _ => None,
    }
}

fn of_field(field: &'static Field) -> Node<'static> {
    let patch = &field.patch;
    match field.shape {
        Shape::One(Type::Message(message)) => {
            Node::Struct { message, atomic: patch.atomic || message.atomic }
        }
        Shape::One(one) => of_type(one),
        Shape::Map(element) => Node::Map { element, atomic: patch.atomic },
        Shape::List(element) => Node::List { element, kind: patch.list, keys: patch.list_keys },
    }
}

fn of_type(element: Type) -> Node<'static> {
    match element {
        Type::Message(message) => Node::Struct { message, atomic: message.atomic },
        Type::RawExtension => Node::Whole,
        Type::RawJson | Type::Any | Type::FieldsV1 | Type::Either(..) => Node::Deduced,
        Type::StringList => Node::List { element: Type::String, kind: ListType::Atomic, keys: &[] },
        Type::String | Type::Bytes => Node::Scalar(ScalarType::String),
        Type::Int32 | Type::Int64 | Type::Double => Node::Scalar(ScalarType::Numeric),
        Type::Bool => Node::Scalar(ScalarType::Boolean),
        Type::Time | Type::MicroTime | Type::IntOrString | Type::Quantity => Node::Scalar(ScalarType::Any),
    }
}

/// The default that the published schema gives a field: its marker's, or the zero value of one that is always there.
fn table_default(field: &Field) -> Option<Value> {
    if !field.patch.default.is_empty() {
        let parsed = crate::codec::json::decode_untyped(field.patch.default.as_bytes());
        return parsed.ok().map(|decoded| decoded.object);
    }
    if field.optional || field.omit_empty {
        return None;
    }
    match field.shape {
        Shape::One(Type::String) => Some(Value::from("")),
        Shape::One(Type::Int32 | Type::Int64) => Some(Value::Int(0)),
        Shape::One(Type::Double) => Some(Value::Float(0.0)),
        Shape::One(Type::Bool) => Some(Value::Bool(false)),
        _ => None,
    }
}
