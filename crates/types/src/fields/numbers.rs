//! Numbers as upstream's field management reads them: every one as floating point.

use crate::Value;

/// Makes the numbers of an applied configuration those that upstream reads: floating point ones, which
/// are whole again where they can be.
pub fn read_numbers(value: &mut Value) {
    // Up to here, floating point numbers tell all whole ones apart.
    const EXACT: u64 = 1 << 53;
    match value {
        Value::Int(number) if number.unsigned_abs() > EXACT => {
            #[allow(clippy::cast_precision_loss, reason = "that is what upstream reads")]
            let float = *number as f64;
            *value = number_of(float);
        }
        Value::Float(number) => *value = number_of(*number),
        Value::Array(items) => items.iter_mut().for_each(read_numbers),
        Value::Object(members) => members.values_mut().for_each(read_numbers),
        _ => {}
    }
}

/// A floating point number, whole when it is whole.
fn number_of(number: f64) -> Value {
    // 2^63: the first that is no i64.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-BEYOND..BEYOND).contains(&number) {
        #[allow(clippy::cast_possible_truncation, reason = "whole, and in the range of an i64")]
        let whole = number as i64;
        return Value::Int(whole);
    }
    Value::Float(number)
}
