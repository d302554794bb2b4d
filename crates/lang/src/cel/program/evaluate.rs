//! The evaluation of a program.

use std::sync::Arc;

use regex::Regex;

use super::node::{Call, MapEntry, Node, Set, StandardCost};
use super::{Budget, Variables};
use crate::cel::error::Error;
use crate::cel::estimate::{
    LIST_CREATE, MAP_CREATE, REGEX_LENGTH, STRING_TRAVERSAL, STRUCT_CREATE, multiply_by,
};
use crate::cel::functions::{Context, NamedCost, Overload};
use crate::cel::limits::{INTERRUPT_EVERY, Memory};
use crate::cel::types::Type;
use crate::cel::value::{Entries, MadeObject, Map, Object, Value};

/// A variable of a comprehension.
pub(crate) enum Slot<'v> {
    /// Nothing yet.
    Empty,
    Value(Value<'v>),
    Error(Error),
    /// The value of a node that was not evaluated yet.
    Lazy(&'v Node),
}

pub(crate) struct Evaluator<'v, 'a, 'b> {
    pub(crate) variables: &'a dyn Variables<'v>,
    pub(crate) locals: Vec<Slot<'v>>,
    pub(crate) memory: Memory,
    budget: Budget<'b>,
    cost: u64,
    iterations: u64,
    regexes: Vec<(Arc<str>, Arc<Regex>)>,
}

/// The size of a value in a list or a map, for the memory limit.
pub(crate) const VALUE_SIZE: usize = size_of::<Value<'static>>();

impl<'v, 'a, 'b> Evaluator<'v, 'a, 'b> {
    pub(crate) fn new(
        variables: &'a dyn Variables<'v>,
        locals: usize,
        memory: Memory,
        budget: Budget<'b>,
    ) -> Self {
        let locals = std::iter::repeat_with(|| Slot::Empty).take(locals).collect();
        Self { variables, locals, memory, budget, cost: 0, iterations: 0, regexes: Vec::new() }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Takes `cost`.
    pub(crate) fn spend(&mut self, cost: u64) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.budget.cost { Err(Error::cost_limit()) } else { Ok(()) }
    }

    /// Takes `steps` times 1, and no more than the first that is too much.
    pub(crate) fn spend_steps(&mut self, steps: u64) -> Result<(), Error> {
        let room = self.budget.cost.saturating_sub(self.cost);
        self.spend(steps.min(room.saturating_add(1)))
    }

    /// Counts an iteration; now and then looks whether to stop.
    pub(crate) fn iteration(&mut self) -> Result<(), Error> {
        self.iterations += 1;
        if self.iterations.is_multiple_of(INTERRUPT_EVERY)
            && self.budget.interrupted.is_some_and(|interrupted| interrupted())
        {
            return Err(Error::interrupted());
        }
        Ok(())
    }

    pub(crate) fn evaluate(&mut self, node: &'v Node) -> Result<Value<'v>, Error> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Attribute(attribute) => {
                let result = self.attribute(attribute);
                if !attribute.is_conditional() {
                    self.spend(1)?;
                }
                result
            }
            Node::Has(attribute) => self.has(attribute).map(Value::Bool),
            Node::And(left, right) => self.logic(left, right, false),
            Node::Or(left, right) => self.logic(left, right, true),
            Node::Equal { left, right, negated } => self.equal(left, right, *negated),
            Node::NotStrictlyFalse(operand) => {
                let result = absorb(self.evaluate(operand))?;
                self.spend(1)?;
                Ok(Value::Bool(!matches!(result, Ok(Value::Bool(false)))))
            }
            Node::Call(call) => self.call(call),
            Node::InSet(operand, set) => {
                let value = self.evaluate(operand)?;
                Ok(Value::Bool(in_set(&value, set)))
            }
            Node::List { elements, optional } => {
                let result = self.list(elements, optional);
                let result = absorb(result)?;
                self.spend(LIST_CREATE)?;
                result
            }
            Node::Map(entries) => {
                let result = absorb(self.map(entries))?;
                self.spend(MAP_CREATE)?;
                result
            }
            Node::Object { type_name, fields } => {
                let result = absorb(self.object(type_name, fields))?;
                self.spend(STRUCT_CREATE)?;
                result
            }
            Node::Fold(fold) => self.fold(fold),
            Node::OptionalOr { left, right, unwrap } => match self.evaluate(left)? {
                Value::Optional(Some(inner)) if *unwrap => Ok((*inner).clone()),
                value @ Value::Optional(Some(_)) => Ok(value),
                Value::Optional(None) => self.evaluate(right),
                _ => Err(Error::no_such_overload()),
            },
        }
    }

    /// `&&` and `||`: the side that decides absorbs the other one's error.
    fn logic(&mut self, left: &'v Node, right: &'v Node, decisive: bool) -> Result<Value<'v>, Error> {
        let mut error = None;
        for side in [left, right] {
            match self.evaluate(side) {
                Ok(Value::Bool(flag)) if flag == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => error = error.or_else(|| Some(Error::no_such_overload())),
                Err(found) if found.ends_evaluation() => return Err(found),
                Err(found) => error = error.or(Some(found)),
            }
        }
        match error {
            Some(error) => Err(error),
            None => Ok(Value::Bool(!decisive)),
        }
    }

    fn equal(&mut self, left: &'v Node, right: &'v Node, negated: bool) -> Result<Value<'v>, Error> {
        let left = absorb(self.evaluate(left))?;
        let right = absorb(self.evaluate(right))?;
        let size = |side: &Result<Value<'v>, Error>| side.as_ref().map_or(1, Value::cost_size);
        let own = match &left {
            Ok(Value::Opaque(_)) if !negated => 1,
            _ => multiply_by(size(&left).min(size(&right)), STRING_TRAVERSAL),
        };
        self.spend(own)?;
        let equal = left?.equals(&right?);
        if negated {
            // As upstream: what cannot be compared is not equal.
            return Ok(Value::Bool(!equal.unwrap_or(false)));
        }
        equal.map(Value::Bool)
    }

    fn list(&mut self, elements: &'v [Node], optional: &[usize]) -> Result<Value<'v>, Error> {
        self.memory.charge(elements.len() * VALUE_SIZE)?;
        let mut items = Vec::with_capacity(elements.len());
        for (position, element) in elements.iter().enumerate() {
            let value = self.evaluate(element)?;
            if !optional.contains(&position) {
                items.push(value);
                continue;
            }
            match value {
                Value::Optional(Some(inner)) => items.push((*inner).clone()),
                Value::Optional(None) => {}
                other => {
                    return Err(Error::new(format!(
                        "cannot initialize optional list element from non-optional value {}",
                        other.in_messages()
                    )));
                }
            }
        }
        Ok(Value::list(items))
    }

    fn map(&mut self, nodes: &'v [MapEntry]) -> Result<Value<'v>, Error> {
        self.memory.charge(nodes.len() * 2 * VALUE_SIZE)?;
        let mut entries = Entries::default();
        for entry in nodes {
            let key = self.evaluate(&entry.key)?;
            let value = self.evaluate(&entry.value)?;
            let value = if entry.optional {
                match value {
                    Value::Optional(Some(inner)) => (*inner).clone(),
                    Value::Optional(None) => {
                        entries.remove(&key);
                        continue;
                    }
                    other => {
                        return Err(Error::new(format!(
                            "cannot initialize optional entry '{}' from non-optional value {}",
                            key.in_messages(),
                            other.in_messages()
                        )));
                    }
                }
            } else {
                value
            };
            entries.set(key, value);
        }
        Ok(Value::Map(Map::new(entries)))
    }

    fn object(
        &mut self,
        type_name: &Arc<str>,
        nodes: &'v [(Arc<str>, Node, bool)],
    ) -> Result<Value<'v>, Error> {
        let mut fields = Vec::with_capacity(nodes.len());
        for (name, node, optional) in nodes {
            let value = self.evaluate(node)?;
            match value {
                Value::Optional(Some(inner)) if *optional => fields.push((name.clone(), (*inner).clone())),
                Value::Optional(None) if *optional => {}
                other if *optional => {
                    return Err(Error::new(format!(
                        "cannot initialize optional entry '{name}' from non-optional value {}",
                        other.in_messages()
                    )));
                }
                other => fields.push((name.clone(), other)),
            }
        }
        let made = MadeObject { type_name: type_name.clone(), fields };
        Ok(Value::Object(Object::Made(Arc::new(made))))
    }

    fn call(&mut self, call: &'v Call) -> Result<Value<'v>, Error> {
        match call.arguments.as_slice() {
            [] => self.finish(call, &[]),
            [one] => {
                let value = absorb(self.evaluate(one))?;
                match value {
                    Ok(value) => self.finish(call, &[value]),
                    Err(error) => self.failed(call, &[Value::Null], error),
                }
            }
            [left, right] if !call.in_turn => {
                let left = absorb(self.evaluate(left))?;
                let right = absorb(self.evaluate(right))?;
                match (left, right) {
                    (Ok(left), Ok(right)) => self.finish(call, &[left, right]),
                    (Err(error), right) => {
                        self.failed(call, &[Value::Null, right.unwrap_or(Value::Null)], error)
                    }
                    (Ok(left), Err(error)) => self.failed(call, &[left, Value::Null], error),
                }
            }
            many => {
                let mut values = Vec::with_capacity(many.len());
                for (index, argument) in many.iter().enumerate() {
                    match absorb(self.evaluate(argument))? {
                        Ok(value) => values.push(value),
                        Err(error) if index + 1 == many.len() => {
                            values.push(Value::Null);
                            return self.failed(call, &values, error);
                        }
                        // An argument without a value ends the call before it costs anything, except the last.
                        Err(error) => return Err(error),
                    }
                }
                self.finish(call, &values)
            }
        }
    }

    /// A call that an argument's error ends costs what it would have: where there is no value, null
    /// stands, which is as large as an error.
    fn failed(&mut self, call: &'v Call, values: &[Value<'v>], error: Error) -> Result<Value<'v>, Error> {
        let cost = told_cost(call, values, &Value::Null);
        self.spend(cost)?;
        Err(error)
    }

    fn finish(&mut self, call: &'v Call, values: &[Value<'v>]) -> Result<Value<'v>, Error> {
        let mut context =
            Context { memory: &mut self.memory, prepared: call.regex.as_ref(), regexes: &mut self.regexes };
        let result = absorb(invoke(call, &mut context, values))?;
        let placeholder = Value::Null;
        let told = result.as_ref().unwrap_or(&placeholder);
        let cost = told_cost(call, values, told);
        self.spend(cost)?;
        result
    }
}

/// What a call did cost.
fn told_cost<'v>(call: &Call, values: &[Value<'v>], told: &Value<'v>) -> u64 {
    call.overload_cost
        .and_then(|cost| cost(values, told))
        .or_else(|| call.named_cost.and_then(|cost: NamedCost| cost(overload_id(call), values, told)))
        .unwrap_or_else(|| {
            standard_cost(call.standard_cost, |position| values.get(position).map_or(1, Value::cost_size))
        })
}

fn overload_id(call: &Call) -> Option<&str> {
    call.overload.map(|position| &*call.function.overloads[position].id)
}

fn invoke<'v>(call: &Call, context: &mut Context<'_>, values: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let overloads = &call.function.overloads;
    if let Some(position) = call.overload {
        let overload = &overloads[position];
        if overload.guarded && !fits(overload, values) {
            return Err(no_such_overload(call, values));
        }
        return (overload.evaluate)(context, values);
    }
    let found = overloads.iter().find(|overload| {
        overload.parameters.len() == values.len() && (!overload.guarded || fits(overload, values))
    });
    match found {
        Some(overload) => (overload.evaluate)(context, values),
        None => Err(no_such_overload(call, values)),
    }
}

fn no_such_overload(call: &Call, values: &[Value<'_>]) -> Error {
    let types: Vec<String> = values.iter().map(|value| value.type_of().name().to_owned()).collect();
    Error::new(format!("no such overload: {}({})", call.function.name, types.join(", ")))
}

fn fits(overload: &Overload, values: &[Value<'_>]) -> bool {
    overload.parameters.iter().zip(values).all(|(parameter, value)| fits_type(parameter, value))
}

/// Whether `value` can be used as a `parameter`; of lists and maps, the first element tells.
pub(crate) fn fits_type(parameter: &Type, value: &Value<'_>) -> bool {
    match (parameter, value) {
        (Type::Dyn | Type::Param(_) | Type::Variable(_) | Type::Error, _) => true,
        (Type::Wrapper(inner), _) => matches!(value, Value::Null) || fits_type(inner, value),
        (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Type(_), Value::Type(_))
        | (Type::Map(_), Value::Object(Object::Tree { .. })) => true,
        (Type::List(element), Value::List(list)) => {
            **element == Type::Dyn
                || list.is_empty()
                || list.get(0).is_ok_and(|first| fits_type(element, &first))
        }
        (Type::Map(entry), Value::Map(map)) => {
            let any = |declared: &Type| matches!(declared, Type::Dyn | Type::Param(_));
            if (any(&entry.0) && any(&entry.1)) || map.is_empty() {
                return true;
            }
            map.entries()
                .ok()
                .and_then(|entries| entries.into_iter().next())
                .is_some_and(|(key, value)| fits_type(&entry.0, &key) && fits_type(&entry.1, &value))
        }
        (Type::Opaque(..), Value::Optional(_)) => parameter.optional_inner().is_some(),
        (Type::Opaque(name, _) | Type::Object(name), Value::Opaque(inner)) => {
            inner.type_of().name() == &**name
        }
        (Type::Object(name), Value::Object(object)) => object.type_of().name() == &**name,
        _ => false,
    }
}

fn standard_cost(kind: StandardCost, size: impl Fn(usize) -> u64) -> u64 {
    match kind {
        StandardCost::One => 1,
        StandardCost::First => multiply_by(size(0), STRING_TRAVERSAL),
        StandardCost::Second => multiply_by(size(1), STRING_TRAVERSAL),
        StandardCost::Elements => size(1),
        StandardCost::Shorter => multiply_by(size(0).min(size(1)), STRING_TRAVERSAL),
        StandardCost::Both => multiply_by(size(0).saturating_add(size(1)), STRING_TRAVERSAL),
        StandardCost::Pattern => {
            let text = multiply_by(size(0).saturating_add(1), STRING_TRAVERSAL);
            text.saturating_mul(multiply_by(size(1), REGEX_LENGTH))
        }
        StandardCost::Search => {
            multiply_by(size(0), STRING_TRAVERSAL).saturating_mul(multiply_by(size(1), STRING_TRAVERSAL))
        }
    }
}

fn in_set(value: &Value<'_>, set: &Set) -> bool {
    match value {
        Value::String(text) => set.strings.contains(&**text),
        other => set.others.iter().any(|candidate| candidate.equals(other).unwrap_or(false)),
    }
}

/// An error that ends the evaluation outside, any other inside.
pub(crate) fn absorb<T>(result: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match result {
        Err(error) if error.ends_evaluation() => Err(error),
        other => Ok(other),
    }
}
