//! Types of expressions and of values, with the names that messages print.

use std::fmt;
use std::sync::Arc;

/// The type of an expression.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// Not known until run time; every type fits.
    Dyn,
    /// The type of what is wrong; silences errors that would follow from it.
    Error,
    /// The type of `null`.
    Null,
    /// `bool`.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// An unsigned 64-bit integer.
    Uint,
    /// A 64-bit float.
    Double,
    /// Text.
    String,
    /// Binary data.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A length of time.
    Duration,
    /// A primitive type that may also be null.
    Wrapper(Arc<Type>),
    /// A list of elements of one type.
    List(Arc<Type>),
    /// A map of keys of one type to values of another.
    Map(Arc<(Type, Type)>),
    /// An object with declared fields, or a value of a library that upstream declares so.
    Object(Arc<str>),
    /// A type of which only the name and the parameters are known.
    Opaque(Arc<str>, Arc<[Type]>),
    /// The type of a type.
    Type(Option<Arc<Type>>),
    /// A parameter of an overload.
    Param(Arc<str>),
    /// A type that the checker still has to find.
    Variable(u32),
}

/// The name of the type of optional values.
pub const OPTIONAL: &str = "optional_type";

impl Type {
    /// A list of `element`.
    pub fn list(element: Type) -> Self {
        Self::List(Arc::new(element))
    }

    /// A map of `key` to `value`.
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    /// The object type called `name`.
    pub fn object(name: &str) -> Self {
        Self::Object(name.into())
    }

    /// The opaque type called `name`, without parameters.
    pub fn opaque(name: &str) -> Self {
        Self::Opaque(name.into(), Arc::new([]))
    }

    /// An optional value of type `inner`.
    pub fn optional(inner: Type) -> Self {
        Self::Opaque(OPTIONAL.into(), Arc::new([inner]))
    }

    /// The type parameter called `name`.
    pub fn param(name: &str) -> Self {
        Self::Param(name.into())
    }

    /// The type of the type `inner`.
    pub fn type_of(inner: Type) -> Self {
        Self::Type(Some(Arc::new(inner)))
    }

    /// `inner`, or null.
    pub fn wrapper(inner: Type) -> Self {
        Self::Wrapper(Arc::new(inner))
    }

    /// What an optional type holds, if this is one.
    pub fn optional_inner(&self) -> Option<&Type> {
        match self {
            Self::Opaque(name, parameters) if **name == *OPTIONAL => parameters.first(),
            _ => None,
        }
    }

    /// The type's name at run time: what `type(x)` prints.
    pub fn name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Error => "error",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::Wrapper(inner) => inner.name(),
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Object(name) | Self::Opaque(name, _) | Self::Param(name) => name,
            Self::Type(_) => "type",
            Self::Variable(_) => "_var",
        }
    }

    /// As messages print what an expression evaluates to: by the names of run time.
    pub fn evaluated(&self) -> String {
        let parameters: Vec<String> = self.parameters().into_iter().map(Self::evaluated).collect();
        match (self, parameters.is_empty()) {
            (Self::Wrapper(inner), _) => format!("wrapper({})", inner.evaluated()),
            (_, true) => self.name().to_owned(),
            (_, false) => format!("{}({})", self.name(), parameters.join(", ")),
        }
    }

    /// The parameters that stand in parentheses behind the name.
    pub fn parameters(&self) -> Vec<&Type> {
        match self {
            Self::List(element) => vec![element],
            Self::Map(entry) => vec![&entry.0, &entry.1],
            Self::Opaque(_, parameters) => parameters.iter().collect(),
            Self::Type(Some(inner)) => vec![inner],
            _ => Vec::new(),
        }
    }

    /// Whether any type fits here.
    pub fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    /// Whether every type fits, or an error was already reported.
    pub fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }
}

/// As the checker's messages print a type.
impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => formatter.write_str("!error!"),
            Self::Null => formatter.write_str("null"),
            Self::Timestamp => formatter.write_str("timestamp"),
            Self::Duration => formatter.write_str("duration"),
            Self::Wrapper(inner) => write!(formatter, "wrapper({inner})"),
            Self::Type(None) => formatter.write_str("type"),
            Self::Variable(number) => write!(formatter, "_var{number}"),
            _ => {
                formatter.write_str(self.name())?;
                let parameters = self.parameters();
                if parameters.is_empty() {
                    return Ok(());
                }
                formatter.write_str("(")?;
                for (index, parameter) in parameters.iter().enumerate() {
                    if index > 0 {
                        formatter.write_str(", ")?;
                    }
                    fmt::Display::fmt(parameter, formatter)?;
                }
                formatter.write_str(")")
            }
        }
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_as_upstream() {
        let cases = [
            (Type::Dyn, "dyn"),
            (Type::Null, "null"),
            (Type::list(Type::Int), "list(int)"),
            (Type::map(Type::String, Type::list(Type::Dyn)), "map(string, list(dyn))"),
            (Type::optional(Type::Int), "optional_type(int)"),
            (Type::type_of(Type::Int), "type(int)"),
            (Type::Type(None), "type"),
            (Type::Timestamp, "timestamp"),
            (Type::wrapper(Type::Bool), "wrapper(bool)"),
            (Type::opaque("net.IP"), "net.IP"),
        ];
        for (given, expected) in cases {
            assert_eq!(given.to_string(), expected);
        }
        let nested = Type::map(Type::String, Type::list(Type::optional(Type::Timestamp)));
        let expected = "map(string, list(optional_type(google.protobuf.Timestamp)))";
        assert_eq!(nested.evaluated(), expected);
        assert_eq!(Type::Null.evaluated(), "null_type");
    }
}
