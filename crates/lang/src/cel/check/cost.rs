//! What an evaluation may cost, told before it.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Checked, Reference};
use crate::cel::environment::Environment;
use crate::cel::estimate::{
    CallEstimate, CallSite, CostNode, LIST_CREATE, MAP_CREATE, REGEX_LENGTH, Range, STRING_TRAVERSAL,
    STRUCT_CREATE, SizeEstimator,
};
use crate::cel::functions::Overload;
use crate::cel::syntax::ast::{Comprehension, Expr, Id, Kind, operators};
use crate::cel::types::Type;
use crate::cel::value::Value;

/// The cost of evaluating `checked` once.
pub(crate) fn estimate(environment: &Environment, checked: &Checked, sizes: &dyn SizeEstimator) -> Range {
    let mut coster = Coster {
        environment,
        checked,
        sizes,
        paths: vec![None; checked.offsets.len()],
        computed: vec![None; checked.offsets.len()],
        entries: HashMap::new(),
        locals: Vec::new(),
    };
    coster.cost(&checked.root)
}

type Path = Arc<Vec<String>>;

/// The sizes of a container's keys and values.
#[derive(Clone, Copy)]
struct EntrySize {
    list: bool,
    key: Range,
    value: Range,
}

impl EntrySize {
    fn union(one: Option<EntrySize>, other: Option<EntrySize>) -> Option<EntrySize> {
        let (one, other) = (one?, other?);
        Some(EntrySize { list: one.list, key: one.key.union(other.key), value: one.value.union(other.value) })
    }
}

struct Local {
    name: Arc<str>,
    path: Option<Path>,
    size: Option<Range>,
    entries: Option<EntrySize>,
}

struct Coster<'c> {
    environment: &'c Environment,
    checked: &'c Checked,
    sizes: &'c dyn SizeEstimator,
    paths: Vec<Option<Path>>,
    computed: Vec<Option<Range>>,
    entries: HashMap<Id, EntrySize>,
    locals: Vec<Local>,
}

const ONE: Range = Range::fixed(1);
const ZERO: Range = Range::fixed(0);

impl<'c> Coster<'c> {
    fn cost(&mut self, expr: &'c Expr) -> Range {
        match &expr.kind {
            Kind::Unspecified | Kind::Literal(_) => ZERO,
            Kind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => Some(Arc::new(vec![name.to_string()])),
                };
                self.paths[expr.id as usize] = path;
                ONE
            }
            Kind::Select { operand, test: true, .. } => self.cost(operand),
            Kind::Select { operand, field, .. } => {
                let sum = self.cost(operand);
                let own = match self.checked.type_of(operand) {
                    Type::Map(_) | Type::Object(_) | Type::Param(_) | Type::Variable(_) => ONE,
                    _ => ZERO,
                };
                self.paths[expr.id as usize] = Some(self.longer_path(operand, field));
                sum.plus(own)
            }
            Kind::Call { function, target, arguments } => {
                self.call(expr, function, target.as_deref(), arguments)
            }
            Kind::List { elements, .. } => {
                let mut sum = ZERO;
                let mut size = empty_union(elements.is_empty());
                for element in elements {
                    sum = sum.plus(self.cost(element));
                    size = size.union(self.size_or_unknown(element));
                }
                self.entries.insert(expr.id, EntrySize { list: true, key: ONE, value: size });
                sum.plus(Range::fixed(LIST_CREATE))
            }
            Kind::Map(entries) => {
                let mut sum = ZERO;
                let mut key = empty_union(entries.is_empty());
                let mut value = key;
                for entry in entries {
                    sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                self.entries.insert(expr.id, EntrySize { list: false, key, value });
                sum.plus(Range::fixed(MAP_CREATE))
            }
            Kind::Struct { fields, .. } => {
                let sum = fields.iter().fold(ZERO, |sum, field| sum.plus(self.cost(&field.value)));
                sum.plus(Range::fixed(STRUCT_CREATE))
            }
            Kind::Comprehension(inner) => self.comprehension(expr, inner),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| *local.name == *name)
    }

    fn path(&self, expr: &Expr) -> Option<Path> {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths[expr.id as usize].clone()
    }

    fn longer_path(&self, expr: &Expr, name: &str) -> Path {
        let mut path = self.path(expr).map(|path| (*path).clone()).unwrap_or_default();
        path.push(name.to_owned());
        Arc::new(path)
    }

    fn node(&mut self, expr: &'c Expr) -> CostNode<'c> {
        let path = self.path(expr).filter(|path| !path.first().is_some_and(|first| is_accumulator(first)));
        let literal = match &expr.kind {
            Kind::Literal(value) => Some(value),
            _ => None,
        };
        CostNode {
            path: path.map(|path| (*path).clone()),
            declared: self.checked.type_of(expr).clone(),
            computed_size: self.size(expr),
            literal,
        }
    }

    fn call(
        &mut self,
        expr: &'c Expr,
        function: &str,
        target: Option<&'c Expr>,
        arguments: &'c [Expr],
    ) -> Range {
        if function == "dyn" && arguments.len() == 1 {
            let cost = self.cost(&arguments[0]);
            self.copy_sizes(expr, &arguments[0]);
            return ONE.plus(cost);
        }
        let mut costs = Vec::with_capacity(arguments.len());
        let mut nodes = Vec::with_capacity(arguments.len());
        for argument in arguments {
            costs.push(self.cost(argument));
            nodes.push(self.node(argument));
        }
        let (overloads, optional_select): (Vec<&'c Overload>, bool) = match self.checked.reference(expr.id) {
            Reference::Call(found, positions) => (
                positions.iter().filter_map(|position| found.overloads.get(usize::from(*position))).collect(),
                false,
            ),
            Reference::OptionalSelect => (Vec::new(), true),
            _ => return ZERO,
        };
        if optional_select {
            // The overload of `a.?b` has no cost of its own kind.
            let sum = costs.iter().fold(ONE, |sum, cost| sum.plus(*cost));
            let size = self.size(expr);
            self.set_size(expr, size);
            return sum;
        }
        let mut sum = ZERO;
        let target_node = match target {
            Some(target) => {
                sum = sum.plus(self.cost(target));
                Some(self.node(target))
            }
            None => None,
        };
        let mut cost = Range::new(u64::MAX, 0);
        let mut size: Option<Range> = None;
        for overload in overloads {
            let own =
                self.overload(expr, function, overload, target_node.as_ref(), &nodes, arguments, &costs);
            cost = cost.union(own.cost);
            if let Some(own) = own.result_size {
                size = Some(size.map_or(own, |size| size.union(own)));
            }
            if matches!(&*overload.id, "index_list" | "index_map") && !arguments.is_empty() {
                let items = if overload.id == "index_list" { "@items" } else { "@values" };
                size = self.entry_size(&arguments[0]).map(|entries| entries.value);
                self.paths[expr.id as usize] = Some(self.longer_path(&arguments[0], items));
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        self.set_size(expr, size);
        sum.plus(cost)
    }

    #[expect(clippy::too_many_arguments, reason = "what one call is made of")]
    fn overload(
        &mut self,
        expr: &Expr,
        function: &str,
        overload: &Overload,
        target: Option<&CostNode<'c>>,
        nodes: &[CostNode<'c>],
        arguments: &[Expr],
        costs: &[Range],
    ) -> CallEstimate {
        let argument_cost = costs.iter().fold(ZERO, |sum, cost| sum.plus(*cost));
        let site = CallSite { overload: &overload.id, target, arguments: nodes, sizes: self.sizes };
        let own = overload
            .estimate
            .and_then(|estimate| estimate(&site))
            .or_else(|| (self.environment.costs().estimate)(function).and_then(|estimate| estimate(&site)));
        if let Some(own) = own {
            return CallEstimate { cost: own.cost.plus(argument_cost), result_size: own.result_size };
        }
        let known = |node: &CostNode<'_>| node.computed_size.unwrap_or(Range::UNKNOWN);
        let own = match (&*overload.id, target, nodes) {
            ("string_format" | "format", Some(target), _) => {
                CallEstimate::of(known(target).times_factor(STRING_TRAVERSAL))
            }
            ("string_to_bytes", _, [text]) => {
                let size = known(text);
                CallEstimate::sized(
                    size.times_factor(STRING_TRAVERSAL),
                    Range::new(size.min, size.max.wrapping_mul(4)),
                )
            }
            ("bytes_to_string", _, [bytes]) => {
                let size = known(bytes);
                CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), Range::new(size.min / 4, size.max))
            }
            ("strings_quote", _, [text]) => {
                let size = known(text);
                let quoted = Range::new(size.min.wrapping_add(2), size.max.wrapping_mul(2).wrapping_add(2));
                CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), quoted)
            }
            ("starts_with_string" | "ends_with_string", _, [part]) => {
                CallEstimate::of(known(part).times_factor(STRING_TRAVERSAL))
            }
            ("in_list", _, [_, list]) => CallEstimate::of(known(list).times_factor(1.0)),
            ("matches_string", Some(text), [pattern]) | ("matches", None, [text, pattern]) => {
                let text = known(text).plus(ONE).times_factor(STRING_TRAVERSAL);
                CallEstimate::of(text.times(known(pattern).times_factor(REGEX_LENGTH)))
            }
            ("contains_string", Some(text), [part]) => {
                let text = known(text).times_factor(STRING_TRAVERSAL);
                CallEstimate::of(text.times(known(part).times_factor(STRING_TRAVERSAL)))
            }
            ("logical_or" | "logical_and", _, [_, _]) => {
                let cost = Range::new(costs[0].min, costs[0].plus(costs[1]).max);
                return CallEstimate::of(cost);
            }
            ("conditional", _, [_, yes, no]) => {
                let size = known(yes).union(known(no));
                let entries =
                    EntrySize::union(self.entry_size(&arguments[1]), self.entry_size(&arguments[2]));
                self.set_entry_size(expr, entries);
                return CallEstimate::sized(costs[0].plus(costs[1].union(costs[2])), size);
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = known(left).plus(known(right));
                let entries =
                    EntrySize::union(self.entry_size(&arguments[0]), self.entry_size(&arguments[1]));
                self.set_entry_size(expr, entries);
                let cost = if overload.id == "add_list" { ONE } else { size.times_factor(STRING_TRAVERSAL) };
                CallEstimate::sized(cost, size)
            }
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [left, right],
            ) => {
                let most = known(left).max.min(known(right).max);
                CallEstimate::of(Range::new(u64::from(most > 0), most).times_factor(STRING_TRAVERSAL))
            }
            _ => CallEstimate::of(ONE),
        };
        CallEstimate { cost: own.cost.plus(argument_cost), result_size: own.result_size }
    }

    fn comprehension(&mut self, expr: &'c Expr, inner: &'c Comprehension) -> Range {
        let mut sum = self.cost(&inner.range).plus(self.cost(&inner.initial));
        let size = self.size(&inner.initial);
        let entries = self.entry_size(&inner.initial);
        let path = self.path(&inner.initial);
        self.locals.push(Local { name: inner.accumulator.clone(), path, size, entries });
        if is_bind(inner) {
            sum = sum.plus(self.cost(&inner.result));
            self.locals.pop();
            self.copy_sizes(expr, &inner.result);
            return sum;
        }
        let open = self.locals.len();
        let range = self.entry_size(&inner.range);
        let is_list = match range {
            Some(range) => range.list,
            None => matches!(self.checked.type_of(&inner.range), Type::List(_)),
        };
        let key = range.map(|range| range.key);
        let value = range.map(|range| range.value);
        let first = match (&inner.second, is_list) {
            (Some(_), true) => ("@indices", key),
            (None, true) => ("@items", value),
            (_, false) => ("@keys", key),
        };
        let path = Some(self.longer_path(&inner.range, first.0));
        self.locals.push(Local { name: inner.variable.clone(), path, size: first.1, entries: None });
        if let Some(second) = &inner.second {
            let path = Some(self.longer_path(&inner.range, if is_list { "@items" } else { "@values" }));
            self.locals.push(Local { name: second.clone(), path, size: value, entries: None });
        }
        let condition = self.cost(&inner.condition);
        let step = self.cost(&inner.step);
        self.locals.truncate(open);
        sum = sum.plus(self.cost(&inner.result));
        self.locals.pop();
        let count = self.size_or_unknown(&inner.range);
        sum = sum.plus(count.times(step.plus(condition)));
        match &inner.initial.kind {
            Kind::Literal(_) => {
                let size = self.size(&inner.initial);
                self.set_size(expr, size);
            }
            Kind::List { .. } | Kind::Map(_) => {
                self.set_size(expr, Some(count));
                let entries = self.entry_size(&inner.step);
                self.set_entry_size(expr, entries);
            }
            _ => {}
        }
        sum
    }

    fn set_size(&mut self, expr: &Expr, size: Option<Range>) {
        if size.is_some() {
            self.computed[expr.id as usize] = size;
        }
    }

    fn set_entry_size(&mut self, expr: &Expr, entries: Option<EntrySize>) {
        if let Some(entries) = entries {
            self.entries.insert(expr.id, entries);
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let size = self.size(from);
        self.set_size(to, size);
        let entries = self.entry_size(from);
        self.set_entry_size(to, entries);
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(size) = self.computed[expr.id as usize] {
            return Some(size);
        }
        let told = match &expr.kind {
            Kind::Literal(Value::String(text)) => Some(text.characters() as u64),
            Kind::Literal(Value::Bytes(bytes)) => Some(bytes.len() as u64),
            Kind::Literal(_) => Some(1),
            Kind::List { elements, .. } => Some(elements.len() as u64),
            Kind::Map(entries) => Some(entries.len() as u64),
            _ => None,
        };
        if let Some(told) = told {
            return Some(Range::fixed(told));
        }
        let path = self.path(expr);
        let declared = self.checked.type_of(expr);
        let none = Vec::new();
        if let Some(size) = self.sizes.size(path.as_deref().unwrap_or(&none), declared) {
            self.computed[expr.id as usize] = Some(size);
            return Some(size);
        }
        if is_scalar(declared) {
            return Some(ONE);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entries) = self.entries.get(&expr.id) {
            return Some(*entries);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }
}

fn empty_union(empty: bool) -> Range {
    Range::new(if empty { 0 } else { u64::MAX }, 0)
}

fn is_accumulator(name: &str) -> bool {
    name == operators::ACCUMULATOR || name == "__result__"
}

/// Whether the comprehension only binds its accumulator to a name.
pub(crate) fn is_bind(inner: &Comprehension) -> bool {
    matches!(&inner.range.kind, Kind::List { elements, .. } if elements.is_empty())
        && matches!(&inner.condition.kind, Kind::Literal(Value::Bool(false)))
        && *inner.accumulator != *"__result__"
}

fn is_scalar(declared: &Type) -> bool {
    match declared {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Wrapper(inner) => is_scalar(inner),
        Type::Opaque(..) => declared.optional_inner().is_some_and(is_scalar),
        _ => false,
    }
}
