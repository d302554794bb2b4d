//! From a checked tree to a program: constants are folded, names become places.

use std::sync::Arc;

use super::evaluate::Evaluator;
use super::node::{Attribute, Base, Call, Fold, FoldKind, Key, MapEntry, Node, Qualifier, Set, StandardCost};
use super::{Budget, Slots};
use crate::cel::check::{Checked, Patterns, Reference};
use crate::cel::environment::Environment;
use crate::cel::error::Error;
use crate::cel::functions::Function;
use crate::cel::limits::{MEMORY, Memory};
use crate::cel::syntax::ast::{Comprehension, Expr, Kind, operators};
use crate::cel::value::{Entries, Map, Value};

pub(crate) struct Planned {
    pub(crate) root: Node,
    pub(crate) locals: usize,
}

pub(crate) fn plan(environment: &Environment, checked: &Checked) -> Result<Planned, Error> {
    let (patterns, memory) = (checked.patterns.clone(), Memory::new(MEMORY));
    let mut planner = Planner { environment, checked, patterns, memory, scopes: Vec::new(), locals: 0 };
    let root = planner.expr(&checked.root)?;
    Ok(Planned { root, locals: planner.locals })
}

struct Planner<'c> {
    environment: &'c Environment,
    checked: &'c Checked,
    /// Literal patterns, and what those that the checker has not seen may still take.
    patterns: Patterns,
    memory: Memory,
    /// The variables of open comprehensions and their places.
    scopes: Vec<(Arc<str>, usize)>,
    locals: usize,
}

impl Planner<'_> {
    fn expr(&mut self, expr: &Expr) -> Result<Node, Error> {
        match &expr.kind {
            Kind::Unspecified => Err(Error::new("unsupported expression")),
            Kind::Literal(value) => Ok(Node::Constant(value.clone())),
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select { operand, field, test } => {
                let operand = self.expr(operand)?;
                let attribute = qualified(operand, Key::Constant(Value::string(field.clone())), false);
                Ok(if *test { Node::Has(attribute) } else { Node::Attribute(attribute) })
            }
            Kind::Call { function, target, arguments } => {
                self.call(expr, function, target.as_deref(), arguments)
            }
            Kind::List { elements, optional } => {
                let nodes =
                    elements.iter().map(|element| self.expr(element)).collect::<Result<Vec<_>, _>>()?;
                let constants: Option<Vec<Value<'static>>> = nodes.iter().map(constant).collect();
                match constants {
                    Some(constants) if optional.is_empty() => Ok(Node::Constant(Value::list(constants))),
                    _ => Ok(Node::List { elements: nodes, optional: optional.clone() }),
                }
            }
            Kind::Map(entries) => {
                let mut nodes = Vec::with_capacity(entries.len());
                let mut folded = Some(Entries::default());
                for entry in entries {
                    let (key, value) = (self.expr(&entry.key)?, self.expr(&entry.value)?);
                    match (&mut folded, constant(&key), constant(&value)) {
                        (Some(folded), Some(key), Some(value)) if !entry.optional => folded.set(key, value),
                        _ => folded = None,
                    }
                    nodes.push(MapEntry { key, value, optional: entry.optional });
                }
                Ok(match folded {
                    Some(folded) => Node::Constant(Value::Map(Map::new(folded))),
                    None => Node::Map(nodes),
                })
            }
            Kind::Struct { type_name, fields } => {
                let name: Arc<str> = type_name.strip_prefix('.').unwrap_or(type_name).into();
                if !self.environment.can_make(&name) {
                    return Err(Error::new(format!("unknown type: {name}")));
                }
                let fields = fields
                    .iter()
                    .map(|field| Ok((field.name.clone(), self.expr(&field.value)?, field.optional)))
                    .collect::<Result<Vec<_>, Error>>()?;
                Ok(Node::Object { type_name: name, fields })
            }
            Kind::Comprehension(inner) => self.comprehension(inner),
        }
    }

    fn ident(&mut self, expr: &Expr, name: &Arc<str>) -> Result<Node, Error> {
        let base = match self.checked.reference(expr.id) {
            Reference::Type(declared) => return Ok(Node::Constant(Value::Type(declared.clone()))),
            Reference::Variable(slot) => Base::Variable(*slot, name.clone()),
            _ => {
                let place = self.scopes.iter().rev().find(|(candidate, _)| candidate == name);
                let Some((_, place)) = place else {
                    return Err(Error::new(format!("no such attribute(s): {name}")));
                };
                Base::Local(*place)
            }
        };
        Ok(Node::Attribute(Attribute { base, qualifiers: Vec::new() }))
    }

    fn call(
        &mut self,
        expr: &Expr,
        function: &str,
        target: Option<&Expr>,
        arguments: &[Expr],
    ) -> Result<Node, Error> {
        let mut nodes = Vec::with_capacity(arguments.len() + 1);
        for argument in target.into_iter().chain(arguments) {
            nodes.push(self.expr(argument)?);
        }
        match (function, nodes.len()) {
            (operators::AND, 2) => return Ok(pair(nodes, Node::And)),
            (operators::OR, 2) => return Ok(pair(nodes, Node::Or)),
            (operators::EQUALS | operators::NOT_EQUALS, 2) => {
                let negated = function == operators::NOT_EQUALS;
                return Ok(pair(nodes, |left, right| Node::Equal { left, right, negated }));
            }
            (operators::CONDITIONAL, 3) => {
                let mut nodes = nodes.into_iter();
                if let (Some(condition), Some(yes), Some(no)) = (nodes.next(), nodes.next(), nodes.next()) {
                    let base = Base::Conditional(Box::new([condition, yes, no]));
                    return Ok(Node::Attribute(Attribute { base, qualifiers: Vec::new() }));
                }
                return Err(Error::no_such_overload());
            }
            (operators::INDEX | operators::OPTIONAL_INDEX | operators::OPTIONAL_SELECT, 2) => {
                return index(nodes, function != operators::INDEX);
            }
            (operators::NOT_STRICTLY_FALSE, 1) => {
                if let Some(node) = nodes.pop() {
                    return Ok(Node::NotStrictlyFalse(Box::new(node)));
                }
            }
            ("or", 2) if target.is_some() => {
                return Ok(pair(nodes, |left, right| Node::OptionalOr { left, right, unwrap: false }));
            }
            ("orValue", 2) if target.is_some() => {
                return Ok(pair(nodes, |left, right| Node::OptionalOr { left, right, unwrap: true }));
            }
            _ => {}
        }
        let Reference::Call(found, positions) = self.checked.reference(expr.id) else {
            return Err(Error::no_such_overload());
        };
        let overload = match positions.as_slice() {
            [one] => Some(usize::from(*one)),
            _ => None,
        };
        if function == operators::IN
            && overload.is_some_and(|position| found.overloads[position].id == "in_list")
        {
            nodes = match in_literal(nodes) {
                Ok(node) => return Ok(node),
                Err(nodes) => nodes,
            };
        }
        let conversion = matches!(
            function,
            "bool"
                | "bytes"
                | "double"
                | "duration"
                | "dyn"
                | "int"
                | "string"
                | "timestamp"
                | "type"
                | "uint"
        );
        let fold = conversion && matches!(nodes.as_slice(), [Node::Constant(_)]);
        let node = Node::Call(Box::new(self.plan_call(found, overload, nodes)?));
        if fold {
            let budget = Budget::default();
            let mut evaluator = Evaluator::new(&Slots(&[]), 0, Memory::new(budget.memory), budget);
            let value = evaluator.evaluate(&node)?;
            return Ok(match own(&value) {
                Some(value) => Node::Constant(value),
                None => node,
            });
        }
        Ok(node)
    }

    fn plan_call(
        &mut self,
        function: &Arc<Function>,
        overload: Option<usize>,
        arguments: Vec<Node>,
    ) -> Result<Call, Error> {
        let chosen = overload.map(|position| &function.overloads[position]);
        let parameter = match chosen {
            Some(chosen) => chosen.regex,
            None => function.overloads.iter().find_map(|overload| overload.regex),
        };
        let regex = match parameter.and_then(|parameter| arguments.get(parameter)) {
            Some(Node::Constant(Value::String(pattern))) => {
                let mut known = self.patterns.iter();
                Some(match known.find(|(known, _)| **known == **pattern) {
                    Some(known) => known.clone(),
                    None => {
                        let compiled: (Arc<str>, _) = ((&**pattern).into(), self.memory.compile(pattern)?);
                        self.patterns.push(compiled.clone());
                        compiled
                    }
                })
            }
            _ => None,
        };
        Ok(Call {
            function: function.clone(),
            overload,
            in_turn: 2 < arguments.len()
                || regex.is_some()
                || chosen.is_some_and(|chosen| chosen.id == "string_format"),
            arguments,
            overload_cost: chosen.and_then(|chosen| chosen.cost),
            named_cost: (self.environment.costs().cost)(&function.name),
            standard_cost: chosen.map_or(StandardCost::One, |chosen| standard_cost(&chosen.id)),
            regex,
        })
    }

    fn local(&mut self, name: &Arc<str>) -> usize {
        let place = self.scopes.len();
        self.scopes.push((name.clone(), place));
        self.locals = self.locals.max(self.scopes.len());
        place
    }

    fn comprehension(&mut self, inner: &Comprehension) -> Result<Node, Error> {
        let open = self.scopes.len();
        if crate::cel::check::is_bind(inner) {
            let value = self.expr(&inner.initial)?;
            let accumulator = self.local(&inner.accumulator);
            let result = self.expr(&inner.result)?;
            self.scopes.truncate(open);
            let range = Node::Constant(Value::list(Vec::new()));
            let kind = FoldKind::Bind { accumulator, value, result };
            return Ok(Node::Fold(Box::new(Fold { range, variable: 0, second: None, kind })));
        }
        let range = self.expr(&inner.range)?;
        let variable = self.local(&inner.variable);
        let second = inner.second.as_ref().map(|name| self.local(name));
        let kind = self.fold_kind(inner)?;
        self.scopes.truncate(open);
        Ok(Node::Fold(Box::new(Fold { range, variable, second, kind })))
    }

    /// What a macro's loop does; macros make no others.
    fn fold_kind(&mut self, inner: &Comprehension) -> Result<FoldKind, Error> {
        let unsupported = || Error::new("unsupported comprehension");
        let Kind::Call { function, arguments, .. } = &inner.step.kind else { return Err(unsupported()) };
        match (&**function, arguments.as_slice()) {
            (operators::AND, [_, predicate]) => Ok(FoldKind::All(self.expr(predicate)?)),
            (operators::OR, [_, predicate]) => Ok(FoldKind::Exists(self.expr(predicate)?)),
            (operators::CONDITIONAL, [predicate, _, _]) if matches!(inner.initial.kind, Kind::Literal(_)) => {
                Ok(FoldKind::ExistsOne(self.expr(predicate)?))
            }
            (operators::CONDITIONAL, [filter, step, _]) => {
                let filter = self.expr(filter)?;
                self.gather(Some(filter), step)
            }
            _ => self.gather(None, &inner.step),
        }
    }

    fn gather(&mut self, filter: Option<Node>, step: &Expr) -> Result<FoldKind, Error> {
        let Kind::Call { function, arguments, .. } = &step.kind else {
            return Err(Error::no_such_overload());
        };
        if **function == *operators::MAP_INSERT {
            let arguments = arguments
                .iter()
                .skip(1)
                .map(|argument| self.expr(argument))
                .collect::<Result<Vec<_>, _>>()?;
            return Ok(FoldKind::Insert { filter, arguments });
        }
        match arguments.as_slice() {
            [_, Expr { kind: Kind::List { elements, .. }, .. }] if elements.len() == 1 => {
                let element = self.expr(&elements[0])?;
                let constant = matches!(element, Node::Constant(_));
                Ok(FoldKind::Append { filter, element, constant })
            }
            _ => Err(Error::no_such_overload()),
        }
    }
}

fn pair(nodes: Vec<Node>, make: impl FnOnce(Box<Node>, Box<Node>) -> Node) -> Node {
    let mut nodes = nodes.into_iter();
    match (nodes.next(), nodes.next()) {
        (Some(left), Some(right)) => make(Box::new(left), Box::new(right)),
        _ => Node::Constant(Value::Null),
    }
}

/// `operand` with a field or an element behind it.
fn qualified(operand: Node, key: Key, optional: bool) -> Attribute {
    let mut attribute = match operand {
        Node::Attribute(attribute) => attribute,
        other => Attribute { base: Base::Operand(Box::new(other)), qualifiers: Vec::new() },
    };
    attribute.qualifiers.push(Qualifier { key, optional });
    attribute
}

fn index(nodes: Vec<Node>, optional: bool) -> Result<Node, Error> {
    let mut nodes = nodes.into_iter();
    let (Some(operand), Some(index)) = (nodes.next(), nodes.next()) else {
        return Err(Error::no_such_overload());
    };
    let key = match index {
        Node::Constant(value) => {
            let invalid = match &value {
                Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => None,
                Value::Null => Some("types.Null"),
                Value::Bytes(_) => Some("types.Bytes"),
                Value::Timestamp(_) => Some("types.Timestamp"),
                Value::Duration(_) => Some("types.Duration"),
                Value::List(_) => Some("*types.baseList"),
                Value::Map(_) => Some("*types.baseMap"),
                Value::Type(_) => Some("*types.Type"),
                _ => Some("ref.Val"),
            };
            if let Some(name) = invalid {
                return Err(Error::new(format!("invalid qualifier type: {name}")));
            }
            Key::Constant(value)
        }
        other => Key::Dynamic(other),
    };
    Ok(Node::Attribute(qualified(operand, key, optional)))
}

/// `x in [literals]` as a look into a set, or the arguments as they were.
fn in_literal(mut nodes: Vec<Node>) -> Result<Node, Vec<Node>> {
    let list = match nodes.get(1) {
        Some(Node::Constant(Value::List(list))) => list.clone(),
        _ => return Err(nodes),
    };
    let mut set = Set::default();
    for item in list.iter().flatten() {
        match item {
            Value::String(text) => {
                set.strings.insert((*text).into());
            }
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Null => {
                set.others.push(item);
            }
            _ => return Err(nodes),
        }
    }
    if list.is_empty() {
        return Ok(Node::Constant(Value::Bool(false)));
    }
    Ok(Node::InSet(Box::new(nodes.swap_remove(0)), set))
}

fn constant(node: &Node) -> Option<Value<'static>> {
    match node {
        Node::Constant(value) => Some(value.clone()),
        _ => None,
    }
}

/// `value` without what it borrows.
fn own(value: &Value<'_>) -> Option<Value<'static>> {
    Some(match value {
        Value::Null => Value::Null,
        Value::Bool(flag) => Value::Bool(*flag),
        Value::Int(number) => Value::Int(*number),
        Value::Uint(number) => Value::Uint(*number),
        Value::Double(number) => Value::Double(*number),
        Value::String(text) => Value::string(&**text),
        Value::Bytes(bytes) => Value::bytes(&**bytes),
        Value::Timestamp(instant) => Value::Timestamp(*instant),
        Value::Duration(nanoseconds) => Value::Duration(*nanoseconds),
        Value::Type(inner) => Value::Type(inner.clone()),
        Value::List(list) => {
            Value::list(list.iter().map(|item| own(&item.ok()?)).collect::<Option<Vec<_>>>()?)
        }
        Value::Map(map) => {
            let mut entries = Entries::default();
            for (key, value) in map.entries().ok()? {
                entries.set(own(&key)?, own(&value)?);
            }
            Value::Map(Map::new(entries))
        }
        Value::Opaque(inner) => Value::Opaque(inner.clone()),
        Value::Optional(None) => Value::Optional(None),
        Value::Optional(Some(inner)) => Value::some(own(inner)?),
        Value::Object(_) => return None,
    })
}

fn standard_cost(overload: &str) -> StandardCost {
    match overload {
        "starts_with_string" | "ends_with_string" => StandardCost::Second,
        "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format" | "format" => {
            StandardCost::First
        }
        "in_list" => StandardCost::Elements,
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes" => StandardCost::Shorter,
        "add_string" | "add_bytes" => StandardCost::Both,
        "matches" | "matches_string" => StandardCost::Pattern,
        "contains_string" => StandardCost::Search,
        _ => StandardCost::One,
    }
}
