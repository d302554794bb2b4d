//! Types that a schema declares, as the checker and the evaluator see them.

use std::collections::HashMap;
use std::sync::Arc;

use super::types::Type;

/// No maximum is declared.
pub const NO_MAXIMUM: u64 = i64::MAX as u64;

/// A type that a schema declares: what its values are called in expressions,
/// how a JSON value is seen, and how large it can be.
#[derive(Debug, Clone)]
pub struct DeclaredType {
    /// The type of expressions.
    pub cel: Type,
    /// What it is made of.
    pub shape: Shape,
    /// Whether JSON's null is a value of it.
    pub nullable: bool,
    /// Most characters, elements or entries; [`NO_MAXIMUM`] where none is declared.
    pub maximum: u64,
    /// The length of its shortest form in JSON.
    pub minimum_serialized: u64,
}

/// What a declared type is made of.
#[derive(Debug, Clone)]
pub enum Shape {
    /// Any JSON value, seen without a schema.
    Dyn,
    /// One of JSON's scalars.
    Scalar(Scalar),
    /// A list.
    List {
        /// Its elements.
        element: Arc<DeclaredType>,
        /// How two lists are compared and joined.
        identity: ListIdentity,
    },
    /// A map from strings.
    Map {
        /// Its values.
        element: Arc<DeclaredType>,
    },
    /// An object.
    Object(Fields),
}

/// How a JSON scalar is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`: base64 in JSON.
    Bytes,
    /// `timestamp`: a date.
    Date,
    /// `timestamp`: RFC 3339.
    DateTime,
    /// `duration`.
    Duration,
    /// An integer or a string.
    IntOrString,
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListIdentity {
    /// Order counts.
    Atomic,
    /// Elements are unique; order does not count.
    Set,
    /// Elements are objects with unique values of these members; order does not count.
    Map(Vec<String>),
}

/// The fields of an object.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    fields: Vec<Field>,
    by_name: HashMap<Arc<str>, u32>,
}

/// A field of an object.
#[derive(Debug, Clone)]
pub struct Field {
    /// What expressions call it: the property's name, escaped.
    pub name: Arc<str>,
    /// What JSON calls it.
    pub property: Arc<str>,
    /// Its type.
    pub declared: Arc<DeclaredType>,
}

impl Fields {
    /// Adds a field; a later one of the same name replaces it.
    pub fn insert(&mut self, field: Field) {
        match self.by_name.get(&field.name) {
            Some(position) => self.fields[*position as usize] = field,
            None => {
                self.by_name.insert(field.name.clone(), self.fields.len() as u32);
                self.fields.push(field);
            }
        }
    }

    /// The field that expressions call `name`.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.by_name.get(name).map(|position| &self.fields[*position as usize])
    }

    /// The field that JSON calls `property`.
    pub fn by_property(&self, property: &str) -> Option<&Field> {
        // Only an escaped name differs from its property's.
        self.get(property)
            .filter(|field| *field.property == *property)
            .or_else(|| self.fields.iter().find(|field| *field.property == *property))
    }

    /// All fields.
    pub fn iter(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter()
    }
}

impl DeclaredType {
    /// What is seen without a schema.
    pub const DYN: DeclaredType = DeclaredType {
        cel: Type::Dyn,
        shape: Shape::Dyn,
        nullable: true,
        maximum: NO_MAXIMUM,
        minimum_serialized: 1,
    };

    /// [`DeclaredType::DYN`] for views.
    pub fn dyn_type() -> &'static DeclaredType {
        static DYN: DeclaredType = DeclaredType::DYN;
        &DYN
    }

    /// The type of a list's elements or of a map's values.
    pub fn element(&self) -> &DeclaredType {
        match &self.shape {
            Shape::List { element, .. } | Shape::Map { element } => element,
            _ => Self::dyn_type(),
        }
    }

    /// The field that expressions call `name`; a word of the language need not be escaped.
    pub fn field(&self, name: &str) -> Option<&Field> {
        match &self.shape {
            Shape::Object(fields) => fields
                .get(name)
                .or_else(|| RESERVED.contains(&name).then(|| fields.get(&format!("__{name}__"))).flatten()),
            _ => None,
        }
    }
}

/// Words that no identifier can be.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether it is a word that no identifier can be.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// What expressions call the property `name`; none where they cannot.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let (text, length) = match first {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            '_' => ("_", 1),
            other if other.is_ascii_alphanumeric() => (&rest[..1], 1),
            _ => return None,
        };
        escaped.push_str(text);
        rest = &rest[length..];
    }
    Some(escaped)
}
