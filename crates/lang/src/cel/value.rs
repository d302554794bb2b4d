//! Values of expressions.
//!
//! A value borrows from what is evaluated (`'v`): the objects bound to
//! variables, seen through their schemas without conversion, and the program's
//! constants. Only what an expression makes is allocated.

use std::any::Any;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use coffer_types::{Map as Members, Value as Tree};

use super::declared::{DeclaredType, Scalar, Shape};
use super::error::Error;
use super::times::{self, Instant};
use super::types::Type;

pub use super::list::List;
pub use super::map::{Entries, Map};
pub use super::text::{Blob, Text};

/// A value.
#[derive(Clone)]
pub enum Value<'v> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A float.
    Double(f64),
    /// Text.
    String(Text<'v>),
    /// Binary data.
    Bytes(Blob<'v>),
    /// A point in time.
    Timestamp(Instant),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A list.
    List(List<'v>),
    /// A map.
    Map(Map<'v>),
    /// An object with declared fields.
    Object(Object<'v>),
    /// A type.
    Type(Type),
    /// An optional value.
    Optional(Option<Arc<Value<'v>>>),
    /// A value of a library.
    Opaque(Arc<dyn Opaque>),
}

/// An object with declared fields.
#[derive(Clone)]
pub enum Object<'v> {
    /// Part of an object that is evaluated, as its schema sees it.
    Tree {
        /// The members.
        members: &'v Members,
        /// The object's schema.
        schema: &'v DeclaredType,
    },
    /// Made by the expression.
    Made(Arc<MadeObject<'v>>),
}

/// An object that an expression makes.
#[derive(Clone)]
pub struct MadeObject<'v> {
    /// The name of its type.
    pub type_name: Arc<str>,
    /// The fields that were given, by name.
    pub fields: Vec<(Arc<str>, Value<'v>)>,
}

/// A value that only its library knows from inside.
pub trait Opaque: Any + Send + Sync {
    /// Its type.
    fn type_of(&self) -> Type;
    /// Whether `other` is the same.
    ///
    /// # Errors
    /// When it cannot be compared with `other`.
    fn equals(&self, other: &dyn Opaque) -> Result<bool, Error>;
    /// Itself, for [`Value::opaque`].
    fn as_any(&self) -> &dyn Any;
    /// Its size for costs, if it has one.
    fn size(&self) -> Option<u64> {
        None
    }
}

impl<'v> Value<'v> {
    /// Text made by the evaluation.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// Bytes made by the evaluation.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(Blob::Shared(bytes.into()))
    }

    /// A list made by the evaluation.
    pub fn list(items: Vec<Value<'v>>) -> Self {
        Self::List(List::new(items))
    }

    /// An optional value that is there.
    pub fn some(inner: Value<'v>) -> Self {
        Self::Optional(Some(Arc::new(inner)))
    }

    /// A library's value.
    pub fn opaque(value: impl Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// The library's value inside, if this is one of type `T`.
    pub fn downcast<T: Opaque>(&self) -> Option<&T> {
        match self {
            Self::Opaque(value) => value.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// The text, or the error of a function that was not made for this value.
    ///
    /// # Errors
    /// When this is no text.
    pub fn as_text(&self) -> Result<&Text<'v>, Error> {
        match self {
            Self::String(text) => Ok(text),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// The integer, or the error of a function that was not made for this value.
    ///
    /// # Errors
    /// When this is no integer.
    pub fn as_int(&self) -> Result<i64, Error> {
        match self {
            Self::Int(number) => Ok(*number),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// The list, or the error of a function that was not made for this value.
    ///
    /// # Errors
    /// When this is no list.
    pub fn as_list(&self) -> Result<&List<'v>, Error> {
        match self {
            Self::List(list) => Ok(list),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// What `tree` is under `schema`.
    ///
    /// # Errors
    /// When it does not fit, with upstream's text.
    pub fn view(tree: &'v Tree, schema: &'v DeclaredType) -> Result<Self, Error> {
        if tree.is_null() && !matches!(schema.shape, Shape::Dyn) {
            return if schema.nullable {
                Ok(Self::Null)
            } else {
                Err(Error::new("invalid data, got null for schema with nullable=false"))
            };
        }
        match (&schema.shape, tree) {
            (Shape::Dyn, _) => Ok(Self::plain(tree)),
            (Shape::Scalar(scalar), _) => view_scalar(tree, *scalar),
            (Shape::List { .. }, Tree::Array(items)) => Ok(Self::List(List::Tree { items, schema })),
            (Shape::List { .. }, _) => {
                Err(Error::new("invalid data, expected an array for the provided schema with type=array"))
            }
            (Shape::Map { .. }, Tree::Object(members)) => Ok(Self::Map(Map::Tree { members, schema })),
            (Shape::Object(_), Tree::Object(members)) => Ok(Self::Object(Object::Tree { members, schema })),
            (Shape::Map { .. } | Shape::Object(_), _) => {
                Err(Error::new("invalid data, expected a map for the provided schema with type=object"))
            }
        }
    }

    /// What `tree` is without a schema.
    pub fn plain(tree: &'v Tree) -> Self {
        let schema = DeclaredType::dyn_type();
        match tree {
            Tree::Null => Self::Null,
            Tree::Bool(flag) => Self::Bool(*flag),
            Tree::Int(number) => Self::Int(*number),
            Tree::Float(number) => Self::Double(*number),
            Tree::String(text) => Self::String(Text::Borrowed(text)),
            Tree::Bytes(bytes) => Self::Bytes(Blob::Borrowed(bytes.expose())),
            Tree::Array(items) => Self::List(List::Tree { items, schema }),
            Tree::Object(members) => Self::Map(Map::Tree { members, schema }),
        }
    }

    /// The type at run time, without parameters of lists and maps.
    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Object(object) => object.type_of(),
            Self::Type(_) => Type::Type(None),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Opaque(value) => value.type_of(),
        }
    }

    /// The size for costs: characters, bytes, elements or entries; 1 for everything else.
    pub fn cost_size(&self) -> u64 {
        match self {
            Self::String(text) => text.characters() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Object(object) => object.cost_size(),
            Self::Optional(Some(inner)) => inner.cost_size(),
            Self::Opaque(value) => value.size().unwrap_or(1),
            _ => 1,
        }
    }

    /// How two numbers of any types are ordered; none where one is no number or NaN.
    pub fn numeric_cmp(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(one), Value::Int(other)) => Some(one.cmp(other)),
            (Self::Uint(one), Value::Uint(other)) => Some(one.cmp(other)),
            (Self::Int(one), Value::Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
            (Self::Uint(one), Value::Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
            (Self::Double(one), Value::Double(other)) => one.partial_cmp(other),
            (Self::Double(one), Value::Int(other)) => double_cmp(*one, i128::from(*other), I64_END, -I64_END),
            (Self::Double(one), Value::Uint(other)) => double_cmp(*one, i128::from(*other), U64_END, 0.0),
            (Self::Int(_) | Self::Uint(_), Value::Double(_)) => {
                other.numeric_cmp(self).map(Ordering::reverse)
            }
            _ => None,
        }
    }

    /// Whether the values are equal; values of types that cannot be compared are not.
    ///
    /// # Errors
    /// When a part of an object does not fit its schema.
    pub fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        super::equality::equal(self, other)
    }

    /// How the values are ordered.
    ///
    /// # Errors
    /// When they cannot be, with upstream's text.
    pub fn compare(&self, other: &Value<'_>) -> Result<Ordering, Error> {
        super::equality::compare(self, other)
    }

    /// The value as Go's `%v` prints it in upstream's messages.
    pub fn in_messages(&self) -> String {
        super::equality::go_text(self)
    }
}

const I64_END: f64 = 9_223_372_036_854_775_808.0;
const U64_END: f64 = 18_446_744_073_709_551_616.0;

fn double_cmp(double: f64, whole: i128, end: f64, start: f64) -> Option<Ordering> {
    if double.is_nan() {
        None
    } else if double < start {
        Some(Ordering::Less)
    } else if double > end {
        // At the end itself upstream's conversion of the largest integer is equal.
        Some(Ordering::Greater)
    } else {
        // Upstream converts the integer to a float; both ways agree on equality of exact values.
        (double).partial_cmp(&(whole as f64))
    }
}

fn view_scalar(tree: &Tree, scalar: Scalar) -> Result<Value<'_>, Error> {
    match (scalar, tree) {
        (Scalar::Bool, Tree::Bool(flag)) => Ok(Value::Bool(*flag)),
        (Scalar::Bool, _) => Err(unexpected("bool", tree)),
        (Scalar::Int | Scalar::IntOrString, Tree::Int(number)) => Ok(Value::Int(*number)),
        (Scalar::Int, _) => Err(unexpected("int", tree)),
        (Scalar::IntOrString, Tree::String(text)) => Ok(Value::String(Text::Borrowed(text))),
        (Scalar::IntOrString, _) => {
            Err(Error::new("invalid data, expected XIntOrString value to be either a string or integer"))
        }
        (Scalar::Double, Tree::Int(number)) => Ok(Value::Double(*number as f64)),
        (Scalar::Double, Tree::Float(number)) => Ok(Value::Double(*number)),
        (Scalar::Double, _) => Err(unexpected("float", tree)),
        (Scalar::Bytes, Tree::Bytes(bytes)) => Ok(Value::Bytes(Blob::Borrowed(bytes.expose()))),
        (_, Tree::String(text)) => view_text(text, scalar),
        (_, _) => Err(unexpected("string", tree)),
    }
}

fn view_text(text: &str, scalar: Scalar) -> Result<Value<'_>, Error> {
    match scalar {
        Scalar::Duration => times::parse_schema_duration(text).map(Value::Duration).ok_or_else(|| {
            Error::new(format!("Invalid duration {text}: unable to parse {text} as duration"))
        }),
        Scalar::Date => times::parse_date(text).map(Value::Timestamp).ok_or_else(|| {
            Error::new(format!("Invalid date formatted string {text}: {}", times::go_error(text, false)))
        }),
        Scalar::DateTime => times::parse_schema_date_time(text).map(Value::Timestamp).ok_or_else(|| {
            Error::new(format!("Invalid date-time formatted string {text}: {}", times::go_error(text, true)))
        }),
        Scalar::Bytes => super::base64::decode(text)
            .map(Value::bytes)
            .ok_or_else(|| Error::new(format!("Invalid byte formatted string {text}"))),
        _ => Ok(Value::String(Text::Borrowed(text))),
    }
}

fn unexpected(expected: &str, tree: &Tree) -> Error {
    let got = match tree {
        Tree::Null => "<nil>",
        Tree::Bool(_) => "bool",
        Tree::Int(_) => "int64",
        Tree::Float(_) => "float64",
        Tree::String(_) => "string",
        Tree::Bytes(_) => "[]uint8",
        Tree::Array(_) => "[]interface {}",
        Tree::Object(_) => "map[string]interface {}",
    };
    Error::new(format!("invalid data, expected {expected}, got {got}"))
}

impl<'v> Object<'v> {
    /// The value of the field `name`, if it is there.
    ///
    /// # Errors
    /// When it does not fit its schema.
    pub fn field(&self, name: &str) -> Result<Option<Value<'v>>, Error> {
        match self {
            Self::Tree { members, schema } => {
                let Some(field) = schema.field(name) else { return Ok(None) };
                match members.get(&*field.property) {
                    // A field that is null is as good as absent.
                    None | Some(Tree::Null) => Ok(None),
                    Some(tree) => Value::view(tree, &field.declared).map(Some),
                }
            }
            Self::Made(made) => {
                Ok(made.fields.iter().find(|(field, _)| **field == *name).map(|(_, value)| value.clone()))
            }
        }
    }

    /// The names of the fields that are there.
    pub fn names(&self) -> Vec<Arc<str>> {
        match self {
            Self::Tree { members, schema } => members
                .keys()
                .filter_map(|property| match &schema.shape {
                    Shape::Object(fields) => fields.by_property(property).map(|field| field.name.clone()),
                    _ => None,
                })
                .collect(),
            Self::Made(made) => made.fields.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Whether the field `name` is there.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::Tree { members, schema } => {
                let tree = schema.field(name).and_then(|field| members.get(&*field.property));
                tree.is_some_and(|tree| !tree.is_null())
            }
            Self::Made(made) => made.fields.iter().any(|(field, _)| **field == *name),
        }
    }

    /// Its type.
    pub fn type_of(&self) -> Type {
        match self {
            // As upstream: objects of a schema are maps at run time.
            Self::Tree { .. } => Type::map(Type::Dyn, Type::Dyn),
            Self::Made(made) => Type::Object(made.type_name.clone()),
        }
    }

    fn cost_size(&self) -> u64 {
        match self {
            Self::Tree { members, .. } => members.len() as u64,
            Self::Made(_) => 1,
        }
    }
}

/// The kind only: any value may be secret.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.type_of().name())
    }
}
