//! Checks of literals after the types fit: durations, timestamps, regular
//! expressions, lists and maps of one type, and what libraries check.

use super::{Checked, Patterns};
use crate::cel::environment::Environment;
use crate::cel::functions::Literal;
use crate::cel::limits::{MEMORY, Memory};
use crate::cel::syntax::ast::{Expr, Id, Kind};
use crate::cel::times;
use crate::cel::types::Type;
use crate::cel::value::Value;

/// What is wrong, and the literal patterns that are right.
pub(crate) fn validate(environment: &Environment, checked: &Checked) -> (Vec<(Id, String)>, Patterns) {
    let mut validator = Validator {
        environment,
        checked,
        reports: Vec::new(),
        patterns: Patterns::new(),
        memory: Memory::new(MEMORY),
        mixed: false,
    };
    validator.expr(&checked.root);
    (validator.reports, validator.patterns)
}

struct Validator<'c> {
    environment: &'c Environment,
    checked: &'c Checked,
    reports: Vec<(Id, String)>,
    patterns: Patterns,
    /// What their compiled forms may still take.
    memory: Memory,
    /// Whether literals of mixed types are allowed here.
    mixed: bool,
}

impl Validator<'_> {
    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            Kind::Unspecified | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => self.expr(operand),
            Kind::Call { function, target, arguments } => {
                if let Some(target) = target {
                    let mixed = self.mixed;
                    self.mixed |= **function == *"format";
                    self.expr(target);
                    self.mixed = mixed;
                }
                let mixed = self.mixed;
                self.mixed |= **function == *"format";
                arguments.iter().for_each(|argument| self.expr(argument));
                self.mixed = mixed;
                self.call(expr.id, function, target.as_deref(), arguments);
            }
            Kind::List { elements, optional } => {
                elements.iter().for_each(|element| self.expr(element));
                let elements = elements
                    .iter()
                    .enumerate()
                    .map(|(position, element)| (element, optional.contains(&position)))
                    .collect::<Vec<_>>();
                self.same_types(&elements, true);
            }
            Kind::Map(entries) => {
                let mut keys = Vec::new();
                let mut values = Vec::new();
                for entry in entries {
                    self.expr(&entry.key);
                    self.expr(&entry.value);
                    keys.push((&entry.key, false));
                    values.push((&entry.value, entry.optional));
                }
                self.same_types(&keys, false);
                self.same_types(&values, false);
            }
            Kind::Struct { fields, .. } => fields.iter().for_each(|field| self.expr(&field.value)),
            Kind::Comprehension(inner) => {
                for part in [&inner.range, &inner.initial, &inner.condition, &inner.step, &inner.result] {
                    self.expr(part);
                }
            }
        }
    }

    /// Reports elements of another type than the first: the first of them, or all.
    fn same_types(&mut self, elements: &[(&Expr, bool)], only_first: bool) {
        let type_of = |element: &Expr, optional: bool| {
            let declared = self.checked.type_of(element);
            if optional { declared.optional_inner().unwrap_or(declared) } else { declared }
        };
        if self.mixed {
            return;
        }
        let Some(((first, first_optional), others)) = elements.split_first() else { return };
        let expected = type_of(first, *first_optional);
        for (element, optional) in others {
            let found = type_of(element, *optional);
            if !equivalent(expected, found) {
                self.reports.push((element.id, format!("expected type '{expected}' but found '{found}'")));
                if only_first {
                    return;
                }
            }
        }
    }

    /// Whether `text` is a pattern, which is compiled once only.
    fn pattern(&mut self, text: &str) -> bool {
        if self.patterns.iter().any(|(known, _)| **known == *text) {
            return true;
        }
        self.memory.compile(text).is_ok_and(|compiled| {
            self.patterns.push((text.into(), compiled));
            true
        })
    }

    fn call(&mut self, call: Id, function: &str, target: Option<&Expr>, arguments: &[Expr]) {
        if let Some(Expr { id, kind: Kind::Literal(literal) }) = arguments.first() {
            let valid = match (function, literal) {
                ("duration", Value::String(text)) => times::parse_duration(text).is_some(),
                ("timestamp", Value::String(text)) => times::parse_rfc3339(text).is_some_and(|instant| {
                    (times::FIRST_SECOND..=times::LAST_SECOND).contains(&instant.seconds)
                }),
                ("timestamp", Value::Int(seconds)) => {
                    (times::FIRST_SECOND..=times::LAST_SECOND).contains(seconds)
                }
                ("matches", Value::String(pattern)) => self.pattern(pattern),
                _ => true,
            };
            if !valid {
                self.reports.push((*id, format!("invalid {function} argument")));
            }
        }
        let validators = self.environment.validators().iter();
        for validator in validators.filter(|validator| validator.function == function) {
            let parts: Vec<&Expr> = target.into_iter().chain(arguments).collect();
            let literals: Vec<Literal<'_>> = parts.iter().map(|part| literal(self.checked, part)).collect();
            if let Some((way, message)) = (validator.check)(&literals) {
                let id = match way.split_first() {
                    Some((first, way)) => parts.get(*first).map_or(call, |part| part_at(part, way)),
                    None => call,
                };
                self.reports.push((id, message));
            }
        }
    }
}

fn literal<'c>(checked: &'c Checked, expr: &'c Expr) -> Literal<'c> {
    match &expr.kind {
        Kind::Literal(value) => Literal::Value(value),
        Kind::List { elements, .. } => {
            Literal::List(elements.iter().map(|element| literal(checked, element)).collect())
        }
        Kind::Map(entries) => Literal::Map(
            entries
                .iter()
                .map(|entry| (literal(checked, &entry.key), literal(checked, &entry.value)))
                .collect(),
        ),
        _ => Literal::Other(checked.type_of(expr)),
    }
}

/// The id of the part of a literal that `way` leads to.
fn part_at(expr: &Expr, way: &[usize]) -> Id {
    let Some((first, way)) = way.split_first() else { return expr.id };
    let part = match &expr.kind {
        Kind::List { elements, .. } => elements.get(*first),
        Kind::Map(entries) => {
            entries.get(first / 2).map(|entry| if first % 2 == 0 { &entry.key } else { &entry.value })
        }
        _ => None,
    };
    part.map_or(expr.id, |part| part_at(part, way))
}

/// Whether two types are the same, parameters of their own aside.
fn equivalent(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::List(one), Type::List(other)) => equivalent(one, other),
        (Type::Map(one), Type::Map(other)) => equivalent(&one.0, &other.0) && equivalent(&one.1, &other.1),
        (Type::Wrapper(one), other) | (other, Type::Wrapper(one)) => **one == *other,
        _ => one == other,
    }
}
