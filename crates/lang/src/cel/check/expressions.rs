//! The type of each kind of expression.

use std::sync::Arc;

use super::Reference;
use super::unify::{Mapping, instantiate, most_general, parameters};
use crate::cel::environment::Environment;
use crate::cel::functions::{Function, Overload};
use crate::cel::patches::patch_field;
use crate::cel::syntax::ast::{Comprehension, Entry, Expr, FieldSetting, Id, Kind, operators};
use crate::cel::types::Type;
use crate::cel::value::Value;

/// What a checker found.
pub(crate) struct Found {
    pub(crate) types: Vec<Option<Type>>,
    pub(crate) references: Vec<Reference>,
    pub(crate) reports: Vec<(Id, String)>,
}

pub(crate) struct Checker<'e> {
    environment: &'e Environment,
    types: Vec<Option<Type>>,
    references: Vec<Reference>,
    reports: Vec<(Id, String)>,
    mapping: Mapping,
    /// The variables of open comprehensions, the innermost last.
    scopes: Vec<(Arc<str>, Type)>,
}

impl<'e> Checker<'e> {
    pub(crate) fn new(environment: &'e Environment, ids: usize) -> Self {
        Self {
            environment,
            types: vec![None; ids],
            references: vec![Reference::None; ids],
            reports: Vec::new(),
            mapping: Mapping::default(),
            scopes: Vec::new(),
        }
    }

    /// What was found, with `dyn` for what no use decides.
    pub(crate) fn finish(mut self) -> Found {
        for found in self.types.iter_mut().flatten() {
            *found = self.mapping.substitute(found, true);
        }
        Found { types: self.types, references: self.references, reports: self.reports }
    }

    fn report(&mut self, id: Id, message: String) {
        self.reports.push((id, message));
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
    }

    fn set(&mut self, id: Id, declared: Type) -> Type {
        self.types[id as usize] = Some(declared.clone());
        declared
    }

    /// The type of `expr`, which is noted; names in it are resolved.
    pub(crate) fn check(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let declared = match &mut expr.kind {
            Kind::Unspecified => Type::Error,
            Kind::Literal(value) => value.type_of(),
            Kind::Ident(name) => {
                let name = name.clone();
                self.ident(id, &name)
            }
            Kind::Select { .. } => self.select(expr),
            Kind::Call { .. } => self.call(expr),
            Kind::List { elements, optional } => {
                let optional = optional.clone();
                self.list(elements, &optional)
            }
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { type_name, fields } => {
                let name = type_name.clone();
                self.object(id, &name, fields)
            }
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
        };
        self.set(id, declared)
    }

    fn local(&self, name: &str) -> Option<&Type> {
        self.scopes.iter().rev().find(|(candidate, _)| **candidate == *name).map(|(_, declared)| declared)
    }

    fn ident(&mut self, id: Id, name: &str) -> Type {
        if let Some(declared) = self.local(name) {
            let declared = declared.clone();
            self.references[id as usize] = Reference::Local;
            return declared;
        }
        match self.global(name.strip_prefix('.').unwrap_or(name)) {
            Some((reference, declared)) => {
                self.references[id as usize] = reference;
                declared
            }
            None => {
                self.undeclared(id, name);
                Type::Error
            }
        }
    }

    /// A variable or a type of the environment.
    fn global(&self, name: &str) -> Option<(Reference, Type)> {
        if let Some(variable) = self.environment.variables.get(name) {
            return Some((Reference::Variable(variable.slot), variable.declared.cel.clone()));
        }
        let declared = self.environment.type_named(name)?;
        Some((Reference::Type(declared.clone()), Type::type_of(declared)))
    }

    fn select(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        if let Some(name) = qualified(expr) {
            let first = name.split('.').find(|part| !part.is_empty()).unwrap_or_default();
            let shadowed = !name.starts_with('.') && self.local(first).is_some();
            let found = if shadowed { None } else { self.global(name.strip_prefix('.').unwrap_or(&name)) };
            if let Some((reference, declared)) = found {
                expr.kind = Kind::Ident(name.into());
                self.references[id as usize] = reference;
                return declared;
            }
        }
        let Kind::Select { operand, field, test } = &mut expr.kind else { return Type::Error };
        let field = field.clone();
        let declared = self.field_of(id, operand, &field, false);
        if *test { Type::Bool } else { self.mapping.substitute(&declared, false) }
    }

    fn field_of(&mut self, id: Id, operand: &mut Expr, field: &str, optional: bool) -> Type {
        let operand = self.check(operand);
        let operand = self.mapping.substitute(&operand, false);
        let (target, is_optional) = match operand.optional_inner() {
            Some(inner) => (inner.clone(), true),
            None => (operand, false),
        };
        let result = match &target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(name) => self.field_type(id, name, field).unwrap_or(Type::Error),
            Type::Variable(_) => {
                self.mapping.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            _ => {
                if !target.is_dyn_or_error() {
                    self.report(id, format!("type '{target}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(result) } else { result }
    }

    fn field_type(&mut self, id: Id, type_name: &str, field: &str) -> Option<Type> {
        if self.environment.is_patch_type(type_name) {
            return Some(patch_field(type_name, field).unwrap_or(Type::Error));
        }
        let Some(object) = self.environment.objects.get(type_name) else {
            if self.environment.type_named(type_name).is_some() {
                self.report(id, format!("undefined field '{field}'"));
            } else {
                self.report(id, format!("unexpected failed resolution of '{type_name}'"));
            }
            return None;
        };
        let found = self.environment.field(&object.declared, field).map(|field| field.declared.cel.clone());
        if found.is_none() {
            self.report(id, format!("undefined field '{field}'"));
        }
        found
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let Kind::Call { function, target, arguments } = &mut expr.kind else { return Type::Error };
        if **function == *operators::OPTIONAL_SELECT {
            return self.optional_select(id, arguments);
        }
        for argument in arguments.iter_mut() {
            self.check(argument);
        }
        let Some(before) = target else {
            let name = function.strip_prefix('.').unwrap_or(function);
            let Some(found) = self.environment.function(name).cloned() else {
                let name = function.clone();
                self.undeclared(id, &name);
                return Type::Error;
            };
            let arguments: Vec<Id> = arguments.iter().map(|argument| argument.id).collect();
            return self.resolve(id, &found, None, &arguments);
        };
        if let Some(prefix) = qualified(before) {
            let full = format!("{prefix}.{function}");
            if let Some(found) = self.environment.function(full.strip_prefix('.').unwrap_or(&full)).cloned() {
                let ids: Vec<Id> = arguments.iter().map(|argument| argument.id).collect();
                *function = full.into();
                *target = None;
                return self.resolve(id, &found, None, &ids);
            }
        }
        self.check(before);
        let before = before.id;
        match self.environment.function(function).cloned() {
            Some(found) => {
                let ids: Vec<Id> = arguments.iter().map(|argument| argument.id).collect();
                self.resolve(id, &found, Some(before), &ids)
            }
            None => {
                let name = function.clone();
                self.undeclared(id, &name);
                Type::Error
            }
        }
    }

    fn optional_select(&mut self, id: Id, arguments: &mut [Expr]) -> Type {
        let [operand, field] = arguments else {
            self.report(
                id,
                format!(
                    "unsupported optional field selection: incorrect signature. argument count: {}",
                    arguments.len()
                ),
            );
            return Type::Error;
        };
        let Kind::Literal(Value::String(name)) = &field.kind else { return Type::Error };
        let name = name.to_string();
        let declared = self.field_of(id, operand, &name, true);
        self.set(field.id, Type::String);
        self.references[id as usize] = Reference::OptionalSelect;
        self.mapping.substitute(&declared, false)
    }

    fn resolve(&mut self, id: Id, function: &Arc<Function>, target: Option<Id>, arguments: &[Id]) -> Type {
        let types: Vec<Type> = target
            .iter()
            .chain(arguments)
            .map(|id| self.types[*id as usize].clone().unwrap_or(Type::Dyn))
            .collect();
        if matches!(&*function.name, operators::AND | operators::OR) && target.is_none() {
            let mut wrong = false;
            for (argument, declared) in arguments.iter().zip(&types) {
                if !self.mapping.assignable(declared, &Type::Bool) {
                    self.mismatch(*argument, &Type::Bool, declared);
                    wrong = true;
                }
            }
            if wrong {
                return Type::Error;
            }
            self.references[id as usize] = Reference::Call(function.clone(), vec![0]);
            return Type::Bool;
        }
        let mut found = Vec::new();
        let mut result: Option<Type> = None;
        for (position, overload) in function.overloads.iter().enumerate() {
            if overload.member != target.is_some() || overload.parameters.len() != types.len() {
                continue;
            }
            let Some(declared) = self.try_overload(overload, &types) else { continue };
            found.push(position as u16);
            result = Some(match result {
                None => declared,
                Some(result) if result.is_dyn() || result == declared => result,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(result) => {
                self.references[id as usize] = Reference::Call(function.clone(), found);
                result
            }
            None => {
                let types: Vec<String> = types
                    .iter()
                    .map(|declared| self.mapping.substitute(declared, true).to_string())
                    .collect();
                let signature = match target {
                    Some(_) => format!("{}.({})", types[0], types[1..].join(", ")),
                    None => format!("({})", types.join(", ")),
                };
                let name = &function.name;
                self.report(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
                Type::Error
            }
        }
    }

    /// The result's type, if the arguments' types fit.
    fn try_overload(&mut self, overload: &Overload, types: &[Type]) -> Option<Type> {
        let mut names = Vec::new();
        overload.parameters.iter().for_each(|parameter| parameters(parameter, &mut names));
        parameters(&overload.result, &mut names);
        if names.is_empty() {
            let fits = self.mapping.all_assignable(types, &overload.parameters);
            return fits.then(|| overload.result.clone());
        }
        let fresh: Vec<Type> = names.iter().map(|_| self.mapping.fresh()).collect();
        let wanted: Vec<Type> =
            overload.parameters.iter().map(|parameter| instantiate(parameter, &names, &fresh)).collect();
        let fits = self.mapping.all_assignable(types, &wanted);
        fits.then(|| self.mapping.substitute(&instantiate(&overload.result, &names, &fresh), false))
    }

    fn list(&mut self, elements: &mut [Expr], optional: &[usize]) -> Type {
        let mut joined = None;
        for (position, element) in elements.iter_mut().enumerate() {
            let declared = self.check(element);
            let declared = if optional.contains(&position) {
                self.unwrap_optional(element.id, declared)
            } else {
                declared
            };
            joined = Some(self.join(joined, declared));
        }
        Type::list(joined.unwrap_or_else(|| self.mapping.fresh()))
    }

    fn unwrap_optional(&mut self, id: Id, declared: Type) -> Type {
        if let Some(inner) = declared.optional_inner() {
            return inner.clone();
        }
        if !declared.is_dyn() {
            self.mismatch(id, &Type::optional(declared.clone()), &declared);
        }
        declared
    }

    fn map(&mut self, entries: &mut [Entry]) -> Type {
        let mut keys = None;
        let mut values = None;
        for entry in entries {
            let key = self.check(&mut entry.key);
            keys = Some(self.join(keys, key));
            let value = self.check(&mut entry.value);
            let value = if entry.optional { self.unwrap_optional(entry.value.id, value) } else { value };
            values = Some(self.join(values, value));
        }
        match (keys, values) {
            (Some(keys), Some(values)) => Type::map(keys, values),
            _ => {
                let key = self.mapping.fresh();
                Type::map(key, self.mapping.fresh())
            }
        }
    }

    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.mapping.assignable(&previous, &current) {
            return most_general(&previous, &current);
        }
        // Mixed literals are refused later, outside of functions that take them.
        Type::Dyn
    }

    fn object(&mut self, id: Id, name: &str, fields: &mut [FieldSetting]) -> Type {
        let name = name.strip_prefix('.').unwrap_or(name);
        let declared = match self.environment.objects.get(name) {
            Some(object) => object.declared.cel.clone(),
            None if self.environment.is_patch_type(name) => Type::object(name),
            None => match self.environment.type_named(name) {
                Some(other) => {
                    self.report(id, format!("'{}' is not a message type", other.name()));
                    Type::Error
                }
                None => {
                    self.undeclared(id, name);
                    return Type::Error;
                }
            },
        };
        for field in fields {
            let value = self.check(&mut field.value);
            let wanted = if declared == Type::Error {
                self.report(field.id, format!("undefined field '{}'", field.name));
                Type::Error
            } else if self.environment.is_patch_type(name) && patch_field(name, &field.name).is_none() {
                // Upstream prints the type that there is not.
                self.report(
                    field.id,
                    format!("expected type of field '{}' is '' but provided type is '{value}'", field.name),
                );
                continue;
            } else {
                self.field_type(field.id, name, &field.name).unwrap_or(Type::Error)
            };
            let value = if field.optional { self.unwrap_optional(field.value.id, value) } else { value };
            if !self.mapping.assignable(&wanted, &value) {
                self.report(
                    field.id,
                    format!(
                        "expected type of field '{}' is '{wanted}' but provided type is '{value}'",
                        field.name
                    ),
                );
            }
        }
        declared
    }

    fn comprehension(&mut self, inner: &mut Comprehension) -> Type {
        let range = self.check(&mut inner.range);
        let accumulator = self.check(&mut inner.initial);
        let range = self.mapping.substitute(&range, false);
        let open = self.scopes.len();
        self.scopes.push((inner.accumulator.clone(), accumulator.clone()));
        let two = inner.second.is_some();
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Error | Type::Variable(_) => {
                self.mapping.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                self.report(
                    inner.range.id,
                    format!(
                        "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                    ),
                );
                (Type::Error, Type::Error)
            }
        };
        self.scopes.push((inner.variable.clone(), first));
        if let Some(name) = &inner.second {
            self.scopes.push((name.clone(), second));
        }
        let condition = self.check(&mut inner.condition);
        self.assert_type(inner.condition.id, &Type::Bool, &condition);
        let step = self.check(&mut inner.step);
        self.assert_type(inner.step.id, &accumulator, &step);
        self.scopes.truncate(open + 1);
        let result = self.check(&mut inner.result);
        self.scopes.truncate(open);
        self.mapping.substitute(&result, false)
    }

    fn assert_type(&mut self, id: Id, wanted: &Type, found: &Type) {
        if !self.mapping.assignable(wanted, found) {
            self.mismatch(id, wanted, found);
        }
    }
}

/// The dotted name that `expr` is, if it is one.
fn qualified(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Ident(name) => Some(name.to_string()),
        Kind::Select { operand, field, test: false } => {
            let mut name = qualified(operand)?;
            name.push('.');
            name.push_str(field);
            Some(name)
        }
        _ => None,
    }
}
