//! Parts of timestamps and durations.

use crate::cel::error::Error;
use crate::cel::functions::{Context, Evaluate, Function, Overload};
use crate::cel::times::{Civil, Instant, zone_offset};
use crate::cel::types::Type;
use crate::cel::value::Value;

pub(crate) fn functions() -> Vec<Function> {
    let getter = |name: &'static str, id: &'static str, zoned: &'static str, evaluate: Evaluate| {
        Function::new(
            name,
            vec![
                Overload::member(id, [Type::Timestamp], Type::Int, evaluate),
                Overload::member(zoned, [Type::Timestamp, Type::String], Type::Int, evaluate),
            ],
        )
    };
    let mut functions = vec![
        getter("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", year),
        getter("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", month),
        getter("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", day_of_year),
        getter(
            "getDayOfMonth",
            "timestamp_to_day_of_month",
            "timestamp_to_day_of_month_with_tz",
            day_of_month,
        ),
        getter(
            "getDate",
            "timestamp_to_day_of_month_1_based",
            "timestamp_to_day_of_month_1_based_with_tz",
            date,
        ),
        getter("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", day_of_week),
        getter("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", hours),
        getter("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", minutes),
        getter("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", seconds),
        getter(
            "getMilliseconds",
            "timestamp_to_milliseconds",
            "timestamp_to_milliseconds_with_tz",
            milliseconds,
        ),
    ];
    let durations: [(&str, &'static str, Evaluate); 4] = [
        ("getHours", "duration_to_hours", hours),
        ("getMinutes", "duration_to_minutes", minutes),
        ("getSeconds", "duration_to_seconds", seconds),
        ("getMilliseconds", "duration_to_milliseconds", milliseconds),
    ];
    for (name, id, evaluate) in durations {
        if let Some(function) = functions.iter_mut().find(|function| function.name == name) {
            function.overloads.push(Overload::member(id, [Type::Duration], Type::Int, evaluate));
        }
    }
    functions
}

fn part<'v>(
    arguments: &[Value<'v>],
    of_timestamp: impl FnOnce(&Civil, &Instant) -> i64,
    nanoseconds: Option<i64>,
) -> Result<Value<'v>, Error> {
    match (&arguments[0], arguments.get(1), nanoseconds) {
        (Value::Timestamp(instant), zone, _) => {
            let offset = match zone {
                // Without a zone, the one that the timestamp was written with.
                None => i64::from(instant.offset),
                Some(zone) => zone_offset(zone.as_text()?, instant)?,
            };
            Ok(Value::Int(of_timestamp(&instant.civil(offset), instant)))
        }
        (Value::Duration(total), None, Some(nanoseconds)) => Ok(Value::Int(total / nanoseconds)),
        _ => Err(Error::no_such_overload()),
    }
}

fn year<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |civil, _| civil.year, None)
}

fn month<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |civil, _| civil.month - 1, None)
}

fn day_of_year<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |civil, _| civil.day_of_year, None)
}

fn day_of_month<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |civil, _| civil.day - 1, None)
}

fn date<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |civil, _| civil.day, None)
}

fn day_of_week<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |civil, _| civil.weekday, None)
}

fn hours<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |civil, _| civil.hour, Some(3_600_000_000_000))
}

fn minutes<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |civil, _| civil.minute, Some(60_000_000_000))
}

fn seconds<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |civil, _| civil.second, Some(1_000_000_000))
}

fn milliseconds<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    part(arguments, |_, instant| i64::from(instant.nanoseconds / 1_000_000), Some(1_000_000))
}
