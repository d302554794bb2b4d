//! Sets: lists of which only the different elements count.

use crate::cel::error::Error;
use crate::cel::estimate::{CallEstimate, CallSite, Range};
use crate::cel::functions::{Context, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::{List, Value};

pub(super) fn library() -> Library {
    let pair = || [Type::list(Type::param("T")), Type::list(Type::param("T"))];
    Library {
        name: "cel.lib.ext.sets",
        functions: vec![
            Function::new(
                "sets.contains",
                vec![
                    Overload::global("list_sets_contains_list", pair(), Type::Bool, contains)
                        .estimate(|site| estimate(site, 1.0))
                        .cost(|arguments, _| Some(cost(arguments, 1))),
                ],
            ),
            Function::new(
                "sets.equivalent",
                vec![
                    Overload::global("list_sets_equivalent_list", pair(), Type::Bool, equivalent)
                        .estimate(|site| estimate(site, 2.0))
                        .cost(|arguments, _| Some(cost(arguments, 2))),
                ],
            ),
            Function::new(
                "sets.intersects",
                vec![
                    Overload::global("list_sets_intersects_list", pair(), Type::Bool, intersects)
                        .estimate(|site| estimate(site, 1.0))
                        .cost(|arguments, _| Some(cost(arguments, 1))),
                ],
            ),
        ],
        ..Library::default()
    }
}

fn estimate(site: &CallSite<'_>, factor: f64) -> Option<CallEstimate> {
    let [first, second] = site.arguments else { return None };
    let pairs = site.size(first).times(site.size(second));
    Some(CallEstimate::of(pairs.times_factor(factor).plus(Range::fixed(1))))
}

fn cost(arguments: &[Value<'_>], factor: u64) -> u64 {
    let pairs = arguments[0].cost_size().saturating_mul(arguments[1].cost_size());
    pairs.saturating_mul(factor).saturating_add(1)
}

fn contains<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    has_all(arguments[0].as_list()?, arguments[1].as_list()?).map(Value::Bool)
}

fn equivalent<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (one, other) = (arguments[0].as_list()?, arguments[1].as_list()?);
    Ok(Value::Bool(has_all(one, other)? && has_all(other, one)?))
}

fn intersects<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (one, other) = (arguments[0].as_list()?, arguments[1].as_list()?);
    for item in one.iter() {
        if has(other, &item?)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn has_all(list: &List<'_>, wanted: &List<'_>) -> Result<bool, Error> {
    for item in wanted.iter() {
        if !has(list, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has(list: &List<'_>, wanted: &Value<'_>) -> Result<bool, Error> {
    for item in list.iter() {
        // What cannot be compared is not the same.
        if item?.equals(wanted).unwrap_or(false) {
            return Ok(true);
        }
    }
    Ok(false)
}
