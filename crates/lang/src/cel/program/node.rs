//! What programs are made of.

use std::collections::HashSet;
use std::sync::Arc;

use regex::Regex;

use crate::cel::functions::{ActualCost, Function, NamedCost};
use crate::cel::value::Value;

/// A step of a program.
pub(crate) enum Node {
    /// A value that costs nothing.
    Constant(Value<'static>),
    /// A variable or another value, and fields or elements of it.
    Attribute(Attribute),
    /// Whether the last field of the attribute is there.
    Has(Attribute),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Equal {
        left: Box<Node>,
        right: Box<Node>,
        negated: bool,
    },
    NotStrictlyFalse(Box<Node>),
    Call(Box<Call>),
    /// Whether the value is one of a literal list.
    InSet(Box<Node>, Set),
    List {
        elements: Vec<Node>,
        optional: Vec<usize>,
    },
    Map(Vec<MapEntry>),
    Object {
        type_name: Arc<str>,
        fields: Vec<(Arc<str>, Node, bool)>,
    },
    Fold(Box<Fold>),
    /// `a.or(b)` and `a.orValue(b)`.
    OptionalOr {
        left: Box<Node>,
        right: Box<Node>,
        unwrap: bool,
    },
}

pub(crate) struct MapEntry {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

pub(crate) struct Attribute {
    pub(crate) base: Base,
    pub(crate) qualifiers: Vec<Qualifier>,
}

/// What an attribute begins with.
pub(crate) enum Base {
    /// A variable of the environment.
    Variable(usize, Arc<str>),
    /// A variable of a comprehension.
    Local(usize),
    /// Another value.
    Operand(Box<Node>),
    /// One of two values.
    Conditional(Box<[Node; 3]>),
}

/// A field or an element.
pub(crate) struct Qualifier {
    pub(crate) key: Key,
    pub(crate) optional: bool,
}

pub(crate) enum Key {
    Constant(Value<'static>),
    Dynamic(Node),
}

pub(crate) struct Call {
    pub(crate) function: Arc<Function>,
    /// The overload, where the checker left one.
    pub(crate) overload: Option<usize>,
    pub(crate) arguments: Vec<Node>,
    /// Whether an argument without a value keeps the ones behind it from being evaluated.
    pub(crate) in_turn: bool,
    pub(crate) overload_cost: Option<ActualCost>,
    pub(crate) named_cost: Option<NamedCost>,
    pub(crate) standard_cost: StandardCost,
    /// The compiled form of an argument that is a literal pattern.
    pub(crate) regex: Option<(Arc<str>, Arc<Regex>)>,
}

/// What calls of the standard library cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StandardCost {
    One,
    /// The first argument is looked through.
    First,
    /// The second argument is looked through.
    Second,
    /// The second argument's elements.
    Elements,
    /// The shorter argument is looked through.
    Shorter,
    /// Both arguments are copied.
    Both,
    Pattern,
    Search,
}

/// Values of a literal list.
#[derive(Default)]
pub(crate) struct Set {
    pub(crate) strings: HashSet<Arc<str>>,
    pub(crate) others: Vec<Value<'static>>,
}

pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) variable: usize,
    pub(crate) second: Option<usize>,
    pub(crate) kind: FoldKind,
}

pub(crate) enum FoldKind {
    /// `all`: the predicate.
    All(Node),
    /// `exists`: the predicate.
    Exists(Node),
    /// `exists_one`: the predicate.
    ExistsOne(Node),
    /// `map` and `filter`: the predicate and the element.
    Append {
        filter: Option<Node>,
        element: Node,
        /// Whether the element is a constant, of which a list costs nothing.
        constant: bool,
    },
    /// `transformMap` and `transformMapEntry`: the predicate and the key and value, or the map.
    Insert { filter: Option<Node>, arguments: Vec<Node> },
    /// A name for a value, evaluated when it is first used.
    Bind { accumulator: usize, value: Node, result: Node },
}
