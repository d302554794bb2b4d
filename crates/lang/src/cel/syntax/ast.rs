//! The tree of an expression.

use std::sync::Arc;

use crate::cel::value::Value;

/// Names what the checker found out about an expression, and where it stands.
pub type Id = u32;

/// An expression.
#[derive(Clone)]
pub struct Expr {
    /// Its id.
    pub id: Id,
    /// What it is.
    pub kind: Kind,
}

/// What an expression is.
#[derive(Clone)]
pub enum Kind {
    /// Wrong syntax, already reported.
    Unspecified,
    /// A literal.
    Literal(Value<'static>),
    /// A variable or the first part of a qualified name.
    Ident(Arc<str>),
    /// `operand.field`, or the test of it by `has()`.
    Select {
        /// What has the field.
        operand: Box<Expr>,
        /// The field's name.
        field: Arc<str>,
        /// Whether this only tests.
        test: bool,
    },
    /// A call of a function or an operator.
    Call {
        /// The function's name.
        function: Arc<str>,
        /// What stands before the dot.
        target: Option<Box<Expr>>,
        /// The arguments.
        arguments: Vec<Expr>,
    },
    /// A list.
    List {
        /// The elements.
        elements: Vec<Expr>,
        /// Which of them are left out when they are none.
        optional: Vec<usize>,
    },
    /// A map.
    Map(Vec<Entry>),
    /// An object.
    Struct {
        /// The name of its type.
        type_name: Arc<str>,
        /// The fields that are set.
        fields: Vec<FieldSetting>,
    },
    /// A loop that a macro made.
    Comprehension(Box<Comprehension>),
}

/// An entry of a map.
#[derive(Clone)]
pub struct Entry {
    /// The entry's id.
    pub id: Id,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
    /// Whether it is left out when the value is none.
    pub optional: bool,
}

/// A field that is set.
#[derive(Clone)]
pub struct FieldSetting {
    /// The setting's id.
    pub id: Id,
    /// The field's name.
    pub name: Arc<str>,
    /// The value.
    pub value: Expr,
    /// Whether it is left out when the value is none.
    pub optional: bool,
}

/// A loop.
#[derive(Clone)]
pub struct Comprehension {
    /// What is looped over.
    pub range: Expr,
    /// The variable of an element, or of an index or key where there are two.
    pub variable: Arc<str>,
    /// The variable of an element or value, where there are two.
    pub second: Option<Arc<str>>,
    /// The variable of what is gathered.
    pub accumulator: Arc<str>,
    /// What it is at first.
    pub initial: Expr,
    /// Whether to go on.
    pub condition: Expr,
    /// What it is after each step.
    pub step: Expr,
    /// The value of the whole.
    pub result: Expr,
}

/// Names of operators, as functions.
pub mod operators {
    /// `a ? b : c`.
    pub const CONDITIONAL: &str = "_?_:_";
    /// `a && b`.
    pub const AND: &str = "_&&_";
    /// `a || b`.
    pub const OR: &str = "_||_";
    /// `!a`.
    pub const NOT: &str = "!_";
    /// `-a`.
    pub const NEGATE: &str = "-_";
    /// `a == b`.
    pub const EQUALS: &str = "_==_";
    /// `a != b`.
    pub const NOT_EQUALS: &str = "_!=_";
    /// `a < b`.
    pub const LESS: &str = "_<_";
    /// `a <= b`.
    pub const LESS_EQUALS: &str = "_<=_";
    /// `a > b`.
    pub const GREATER: &str = "_>_";
    /// `a >= b`.
    pub const GREATER_EQUALS: &str = "_>=_";
    /// `a + b`.
    pub const ADD: &str = "_+_";
    /// `a - b`.
    pub const SUBTRACT: &str = "_-_";
    /// `a * b`.
    pub const MULTIPLY: &str = "_*_";
    /// `a / b`.
    pub const DIVIDE: &str = "_/_";
    /// `a % b`.
    pub const MODULO: &str = "_%_";
    /// `a in b`.
    pub const IN: &str = "@in";
    /// `a[b]`.
    pub const INDEX: &str = "_[_]";
    /// `a[?b]`.
    pub const OPTIONAL_INDEX: &str = "_[?_]";
    /// `a.?b`.
    pub const OPTIONAL_SELECT: &str = "_?._";
    /// Whether a quantifier is still open.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    /// Puts an entry into the map that a macro gathers.
    pub const MAP_INSERT: &str = "cel.@mapInsert";
    /// The variable in which macros gather.
    pub const ACCUMULATOR: &str = "@result";
}
