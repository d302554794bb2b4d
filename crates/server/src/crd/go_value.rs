//! Values and types as Go's `%v` and `%T` print those of decoded JSON.

use coffer_types::Value;

/// The type that Go decodes a value into.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) | Value::Bytes(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as `%v` prints it.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => float(*number),
        Value::String(text) => text.clone(),
        Value::Bytes(_) => "REDACTED".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" "))
        }
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name}:{}", printed(value))).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

/// The shortest text that reads as the number; with an exponent below 1e-4 and from 1e21 on.
fn float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_in_go() {
        let mut object = Value::from([("b", Value::from(vec![Value::Int(1), Value::Null]))]);
        object.set(&["a"], Value::Float(1.5));
        for (value, kind, text) in [
            (Value::Null, "<nil>", "<nil>"),
            (Value::Bool(true), "bool", "true"),
            (Value::Int(-3), "int64", "-3"),
            (Value::Float(1.0), "float64", "1"),
            (Value::Float(1e21), "float64", "1e+21"),
            (Value::Float(0.000_012_5), "float64", "1.25e-05"),
            (Value::from("x y"), "string", "x y"),
            (object, "map[string]interface {}", "map[a:1.5 b:[1 <nil>]]"),
        ] {
            assert_eq!((go_type(&value), printed(&value).as_str()), (kind, text));
        }
    }
}
