//! From a tree to a typed one: what every name means and every call may be.

mod cost;
mod expressions;
mod literals;
mod unify;

use std::sync::Arc;

use regex::Regex;

use crate::cel::environment::Environment;
use crate::cel::functions::Function;
use crate::cel::syntax::ast::{Expr, Id};
use crate::cel::syntax::{Issues, Source};
use crate::cel::types::Type;

pub(crate) use cost::{estimate, is_bind};

/// A tree with what the checker found.
pub(crate) struct Checked {
    pub(crate) root: Expr,
    /// The type of each expression, by id.
    pub(crate) types: Vec<Option<Type>>,
    /// What each name or call means, by id.
    pub(crate) references: Vec<Reference>,
    pub(crate) offsets: Vec<u32>,
    /// Literal patterns, compiled.
    pub(crate) patterns: Patterns,
}

/// Patterns with their texts.
pub(crate) type Patterns = Vec<(Arc<str>, Arc<Regex>)>;

/// What a name or a call means.
#[derive(Clone, Default)]
pub(crate) enum Reference {
    /// Nothing yet, or no name.
    #[default]
    None,
    /// A variable of the environment.
    Variable(usize),
    /// A variable of a comprehension.
    Local,
    /// A type.
    Type(Type),
    /// A call of one of these overloads.
    Call(Arc<Function>, Vec<u16>),
    /// `a.?b`.
    OptionalSelect,
}

impl Checked {
    pub(crate) fn type_of(&self, expr: &Expr) -> &Type {
        const NONE: &Type = &Type::Dyn;
        self.types.get(expr.id as usize).and_then(Option::as_ref).unwrap_or(NONE)
    }

    pub(crate) fn reference(&self, id: Id) -> &Reference {
        const NONE: &Reference = &Reference::None;
        self.references.get(id as usize).unwrap_or(NONE)
    }
}

/// Finds the type of every expression in `root`.
pub(crate) fn check(
    environment: &Environment,
    source: &Source<'_>,
    root: Expr,
    offsets: Vec<u32>,
) -> Result<Checked, Issues> {
    let mut checker = expressions::Checker::new(environment, offsets.len());
    let mut root = root;
    checker.check(&mut root);
    let expressions::Found { types, references, reports } = checker.finish();
    let mut checked = Checked { root, types, references, offsets, patterns: Patterns::new() };
    let to_issues = |checked: &Checked, reports: Vec<(Id, String)>| -> Issues {
        let place = |id: Id| checked.offsets.get(id as usize).copied();
        source.issues(reports.into_iter().map(|(id, message)| source.issue(place(id), message)).collect())
    };
    if !reports.is_empty() {
        return Err(to_issues(&checked, reports));
    }
    let (reports, patterns) = literals::validate(environment, &checked);
    if !reports.is_empty() {
        return Err(to_issues(&checked, reports));
    }
    checked.patterns = patterns;
    Ok(checked)
}
