//! cel-go's functions of lists, version 3. `sortBy` is a macro over `@sortByAssociatedKeys`.

use std::cmp::Ordering;

use super::{COMPARABLE, is_comparable, made_list};
use crate::cel::equality::compare;
use crate::cel::error::Error;
use crate::cel::estimate::{CallEstimate, CallSite, CostNode, LIST_CREATE, Range, STRING_TRAVERSAL};
use crate::cel::functions::{Context, Function, Library, Overload};
use crate::cel::syntax::ast::{Expr, Kind};
use crate::cel::syntax::macros::{Macro, MacroContext, MacroError, map};
use crate::cel::types::Type;
use crate::cel::value::{List, Value};

/// Longest list that `lists.range` makes.
const MAXIMUM_RANGE: i64 = 1_000_000;

pub(super) fn library() -> Library {
    let list = || Type::list(Type::param("T"));
    Library {
        name: "cel.lib.ext.lists",
        macros: vec![Macro { name: "sortBy", receiver: true, arguments: 2, expand: sort_by }],
        functions: vec![
            Function::new(
                "slice",
                vec![
                    Overload::member("list_slice", [list(), Type::Int, Type::Int], list(), slice)
                        .estimate(estimate_slice)
                        .cost(output_cost),
                ],
            ),
            Function::new(
                "flatten",
                vec![
                    Overload::member("list_flatten", [Type::list(list())], list(), flatten)
                        .estimate(estimate_flatten)
                        .cost(flatten_cost)
                        .unguarded(),
                    Overload::member(
                        "list_flatten_int",
                        [Type::list(Type::Dyn), Type::Int],
                        Type::list(Type::Dyn),
                        flatten_to,
                    )
                    .estimate(estimate_flatten)
                    .cost(flatten_cost)
                    .unguarded(),
                ],
            ),
            Function::new("sort", COMPARABLE.into_iter().map(|(_, element)| sorting(element)).collect()),
            Function::new(
                "@sortByAssociatedKeys",
                COMPARABLE.into_iter().map(|(_, key)| sorting_by_keys(key)).collect(),
            ),
            Function::new(
                "lists.range",
                vec![
                    Overload::global("lists_range", [Type::Int], Type::list(Type::Int), range)
                        .estimate(estimate_range)
                        .cost(output_cost),
                ],
            ),
            Function::new(
                "reverse",
                vec![
                    Overload::member("list_reverse", [list()], list(), reverse)
                        .estimate(|site| Some(allocating(site.size(site.target?), 1.0)))
                        .cost(output_cost),
                ],
            ),
            Function::new(
                "distinct",
                vec![
                    Overload::member("list_distinct", [list()], list(), distinct)
                        .estimate(|site| Some(allocating(square(site.size(site.target?)), 2.0)))
                        .cost(|arguments, _| self_compare_cost(&arguments[0])),
                ],
            ),
        ],
        ..Library::default()
    }
}

/// Binds the list to a name, and sorts it by what the second argument makes of its elements.
fn sort_by(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let target = target.unwrap_or_else(|| context.list(Vec::new()));
    if !matches!(
        target.kind,
        Kind::List { .. } | Kind::Select { .. } | Kind::Ident(_) | Kind::Comprehension(_) | Kind::Call { .. }
    ) {
        let rule =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return Err(MacroError::new(&target, rule));
    }
    let input = context.ident(SORTED);
    let keys = map(context, Some(input), arguments)?;
    let input = context.ident(SORTED);
    let sorted = context.member_call("@sortByAssociatedKeys", input, vec![keys]);
    Ok(context.bind(SORTED.into(), target, sorted))
}

/// What [`sort_by`] calls the list.
const SORTED: &str = "@__sortBy_input__";

fn sorting(element: Type) -> Overload {
    let id = format!("list_{}_sort", element.name());
    let texts = matches!(element, Type::String | Type::Bytes);
    let overload = Overload::member(id, [Type::list(element.clone())], Type::list(element), sort)
        .cost(|arguments, _| self_compare_cost(&arguments[0]));
    if texts {
        overload.estimate(|site| Some(sort_estimate(site, site.target?, true)))
    } else {
        overload.estimate(|site| Some(sort_estimate(site, site.target?, false)))
    }
}

fn sorting_by_keys(key: Type) -> Overload {
    let id = format!("list_{}_sortByAssociatedKeys", key.name());
    let texts = matches!(key, Type::String | Type::Bytes);
    let list = Type::list(Type::param("T"));
    let overload = Overload::member(id, [list.clone(), Type::list(key)], list, sort_by_keys)
        .cost(|arguments, _| self_compare_cost(&arguments[1]));
    if texts {
        overload.estimate(|site| Some(sort_estimate(site, site.arguments.first()?, true)))
    } else {
        overload.estimate(|site| Some(sort_estimate(site, site.arguments.first()?, false)))
    }
}

fn slice<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (list, start, end) = (arguments[0].as_list()?, arguments[1].as_int()?, arguments[2].as_int()?);
    let refused = |why: String| Err(Error::new(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return refused("negative indexes not supported".to_owned());
    };
    if from > to {
        return refused("start index must be less than or equal to end index".to_owned());
    }
    if list.len() < to {
        return refused(format!("list is length {}", list.len()));
    }
    let items = (from..to).map(|index| list.get(index)).collect::<Result<Vec<_>, _>>()?;
    made_list(context, items)
}

fn flatten<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    flat(context, &arguments[0], 1)
}

fn flatten_to<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let depth = arguments[1].as_int()?;
    if depth < 0 {
        return Err(Error::new("level must be non-negative"));
    }
    flat(context, &arguments[0], depth)
}

fn flat<'v>(context: &mut Context<'_>, list: &Value<'v>, depth: i64) -> Result<Value<'v>, Error> {
    let Value::List(list) = list else {
        return Err(Error::new(format!("no such overload: {}.flatten()", list.type_of().name())));
    };
    let mut items = Vec::new();
    // Lists that are being flattened, each with how far it is.
    let mut open: Vec<(List<'v>, usize)> = vec![(list.clone(), 0)];
    while let Some((list, next)) = open.last_mut() {
        if *next == list.len() {
            open.pop();
            continue;
        }
        let item = list.get(*next)?;
        *next += 1;
        match item {
            Value::List(inner) if (open.len() as i64) <= depth => open.push((inner, 0)),
            item => items.push(item),
        }
    }
    made_list(context, items)
}

fn sort<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let list = arguments[0].as_list()?;
    sorted(context, list, list)
}

fn sort_by_keys<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    sorted(context, arguments[0].as_list()?, arguments[1].as_list()?)
}

fn sorted<'v>(context: &mut Context<'_>, list: &List<'v>, keys: &List<'v>) -> Result<Value<'v>, Error> {
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    if list.is_empty() {
        return Ok(Value::List(list.clone()));
    }
    let keys = keys.iter().collect::<Result<Vec<_>, _>>()?;
    if !is_comparable(&keys[0]) {
        return Err(Error::new("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_of() != keys[0].type_of()) {
        return Err(Error::new("list elements must have the same type"));
    }
    context.charge(list.len().saturating_mul(size_of::<usize>()))?;
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|one, other| compare(&keys[*one], &keys[*other]).unwrap_or(Ordering::Equal));
    let items = order.into_iter().map(|index| list.get(index)).collect::<Result<Vec<_>, _>>()?;
    made_list(context, items)
}

fn range<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let end = arguments[0].as_int()?;
    if end < 0 {
        return Err(Error::new(format!("lists.range: size must be non-negative, got {end}")));
    }
    if MAXIMUM_RANGE < end {
        return Err(Error::new(format!("lists.range: size {end} exceeds maximum allowed ({MAXIMUM_RANGE})")));
    }
    context.charge(end as usize * size_of::<Value<'_>>())?;
    Ok(Value::List((0..end).map(Value::Int).collect()))
}

fn reverse<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let mut items = arguments[0].as_list()?.iter().collect::<Result<Vec<_>, _>>()?;
    items.reverse();
    made_list(context, items)
}

fn distinct<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let mut items: Vec<Value<'v>> = Vec::new();
    for item in arguments[0].as_list()?.iter() {
        let item = item?;
        if !items.iter().any(|known| item.equals(known).unwrap_or(false)) {
            items.push(item);
        }
    }
    made_list(context, items)
}

fn estimate_slice(site: &CallSite<'_>) -> Option<CallEstimate> {
    let size = site.size(site.target?);
    let [start, end] = site.arguments else { return None };
    // Upstream's difference wraps.
    let length = literal(end, size.max).wrapping_sub(literal(start, 0));
    Some(allocating(Range::fixed(length), 1.0))
}

fn estimate_flatten(site: &CallSite<'_>) -> Option<CallEstimate> {
    let depth = site.arguments.first().map_or(1, |depth| literal(depth, u64::MAX));
    Some(allocating(site.size(site.target?), depth as f64))
}

fn estimate_range(site: &CallSite<'_>) -> Option<CallEstimate> {
    let [end] = site.arguments else { return None };
    Some(allocating(Range::fixed(literal(end, u64::MAX)), 1.0))
}

/// The integer that stands there, if one does.
fn literal(node: &CostNode<'_>, otherwise: u64) -> u64 {
    match node.literal {
        Some(Value::Int(number)) => u64::try_from(*number).unwrap_or(0),
        _ => otherwise,
    }
}

fn sort_estimate(site: &CallSite<'_>, keys: &CostNode<'_>, texts: bool) -> CallEstimate {
    allocating(square(site.size(keys)), if texts { 2.0 + STRING_TRAVERSAL } else { 2.0 })
}

fn square(size: Range) -> Range {
    size.times(size)
}

/// A call that makes a list of `size`.
fn allocating(size: Range, factor: f64) -> CallEstimate {
    CallEstimate::sized(size.times_factor(factor).plus(Range::fixed(1 + LIST_CREATE)), size)
}

fn allocating_cost(size: u64, factor: f64) -> u64 {
    ((size as f64 * factor) as u64).saturating_add(1 + LIST_CREATE)
}

fn output_cost(_: &[Value<'_>], result: &Value<'_>) -> Option<u64> {
    Some(allocating_cost(result.cost_size(), 1.0))
}

fn flatten_cost(arguments: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    let depth = match arguments.get(1) {
        Some(Value::Int(depth)) if *depth < 0 => 1.0,
        Some(Value::Int(depth)) => *depth as f64,
        _ => 1.0,
    };
    Some(allocating_cost(arguments[0].cost_size(), depth))
}

fn self_compare_cost(list: &Value<'_>) -> Option<u64> {
    let Value::List(items) = list else { return None };
    let size = items.len() as u64;
    let texts = matches!(items.get(0), Ok(Value::String(_) | Value::Bytes(_)));
    let factor = if texts { 2.0 + STRING_TRAVERSAL } else { 2.0 };
    Some(allocating_cost(size.saturating_mul(size), factor))
}
