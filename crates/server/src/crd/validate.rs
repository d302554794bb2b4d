//! Holds a value against a schema, in upstream's words.
//!
//! Texts name types and limits. Values are shown where upstream shows them, which is
//! never for a wrong type.

use coffer_types::Value;
use coffer_types::validation::field::{FieldError, FieldErrors, Path, Shown, go_quote};

use super::formats;
use super::schema::{Additional, Rules, Schema};

/// Every way in which `object` breaks `schema`, but for parts that were the same in `old`: what was
/// stored before a rule came does not stand in the way of other changes.
pub fn validate(object: &Value, old: Option<&Value>, schema: &Schema) -> FieldErrors {
    let mut errors = FieldErrors::new();
    check(object, old, schema, "", true, &mut errors);
    errors
}

/// Every way in which the `status` of an object breaks the schema of its status, as an
/// update of the status alone words it.
pub fn validate_status(status: &Value, old: Option<&Value>, schema: &Schema) -> FieldErrors {
    let mut errors = FieldErrors::new();
    check(status, old, schema, "", false, &mut errors);
    for error in &mut errors {
        error.field = match error.field.as_str() {
            NO_FIELD => "status".to_owned(),
            field => format!("status.{field}"),
        };
    }
    errors
}

/// How upstream prints the path of nothing.
const NO_FIELD: &str = "<nil>";

/// What a value below `path` is called in texts.
fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn field(path: &str) -> Path {
    Path::new(if path.is_empty() { NO_FIELD } else { path })
}

fn invalid(path: &str, shown: impl Into<Shown>, rule: &str) -> FieldError {
    FieldError::invalid(&field(path), shown, format!("{path} in body {rule}"))
}

/// Checks a value, and forgives it when it is what it was.
fn check(
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    path: &str,
    is_root: bool,
    errors: &mut FieldErrors,
) {
    let before = errors.len();
    check_here(value, old, schema, path, is_root, errors);
    if before < errors.len() && old == Some(value) {
        errors.truncate(before);
    }
}

fn check_here(
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    path: &str,
    is_root: bool,
    errors: &mut FieldErrors,
) {
    let types: &[&str] = match (schema.int_or_string, schema.kind.as_str()) {
        (true, _) => &["integer", "string"],
        (false, "") => &[],
        (false, kind) => &[kind],
    };
    check_type(value, types, schema.nullable, path, errors);
    if value.is_null() {
        return;
    }
    if let Some(rules) = &schema.rules {
        check_composed(value, old, rules, path, errors);
        check_scalar(value, rules, path, errors);
    }
    match value {
        Value::Array(items) => check_list(items, old, schema, path, errors),
        Value::Object(_) => check_object(value, old, schema, path, is_root, errors),
        _ => {}
    }
    if let Some(values) = schema.rules.as_ref().and_then(|rules| rules.values.as_ref()) {
        check_enum(value, values, path, errors);
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int(_) => "integer",
        Value::Float(_) => "number",
        Value::String(_) | Value::Bytes(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(value: &Value, types: &[&str], nullable: bool, path: &str, errors: &mut FieldErrors) {
    let found = type_of(value);
    let whole = matches!(value, Value::Float(number) if number.fract() == 0.0 && number.is_finite());
    let fits = types.is_empty()
        || types.contains(&found)
        || (found == "integer" && types.contains(&"number"))
        || (whole && types.contains(&"integer"))
        || (found == "null" && nullable);
    if !fits {
        let detail = format!("{path} in body must be of type {}: {}", types.join(","), go_quote(found));
        errors.push(FieldError::type_invalid(&field(path), found, detail));
    }
}

fn check_enum(value: &Value, values: &[Value], path: &str, errors: &mut FieldErrors) {
    if values.iter().any(|allowed| same(allowed, value)) {
        return;
    }
    let values: Vec<_> = values
        .iter()
        .map(|allowed| match allowed {
            Value::String(text) => text.clone(),
            other => coffer_types::validation::field::go_json(other),
        })
        .collect();
    errors.push(FieldError::not_supported(&field(path), value, &values));
}

/// Equal as JSON: `1` and `1.0` are.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Int(whole), Value::Float(number)) | (Value::Float(number), Value::Int(whole)) => {
            *whole as f64 == *number
        }
        _ => one == other,
    }
}

fn check_scalar(value: &Value, rules: &Rules, path: &str, errors: &mut FieldErrors) {
    match value {
        Value::String(text) => check_text(value, text, rules, path, errors),
        Value::Int(number) => check_number(value, *number as f64, rules, path, errors),
        Value::Float(number) => check_number(value, *number, rules, path, errors),
        _ => {}
    }
}

fn check_text(value: &Value, text: &str, rules: &Rules, path: &str, errors: &mut FieldErrors) {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    // Of length and pattern the first that does not hold is told.
    if let Some(limit) = rules.max_length.filter(|limit| *limit < length) {
        errors.push(FieldError::too_long(&field(path), usize::try_from(limit).unwrap_or(0)));
    } else if let Some(limit) = rules.min_length.filter(|limit| length < *limit) {
        errors.push(invalid(path, value, &format!("should be at least {limit} chars long")));
    } else if let Some(pattern) = &rules.pattern {
        match pattern.regex() {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => errors.push(invalid(path, value, &format!("should match '{}'", pattern.text()))),
            Err(error) => {
                let rule = format!("should match '{}', but pattern is invalid: '{error}'", pattern.text());
                errors.push(invalid(path, value, &rule));
            }
        }
    }
    if !formats::holds(&rules.format, text) {
        let detail = format!("{path} in body must be of type {}: {}", rules.format, go_quote(text));
        errors.push(FieldError::type_invalid(&field(path), value, detail));
    }
}

fn check_number(value: &Value, number: f64, rules: &Rules, path: &str, errors: &mut FieldErrors) {
    if let Some(factor) = rules.multiple_of.filter(|factor| 0.0 < *factor && (number / factor).fract() != 0.0)
    {
        errors.push(invalid(path, value, &format!("should be a multiple of {factor}")));
    }
    if let Some(limit) = rules.maximum {
        match rules.exclusive_maximum {
            false if limit < number => {
                errors.push(invalid(path, value, &format!("should be less than or equal to {limit}")));
            }
            true if limit <= number => {
                errors.push(invalid(path, value, &format!("should be less than {limit}")))
            }
            _ => {}
        }
    }
    if let Some(limit) = rules.minimum {
        match rules.exclusive_minimum {
            false if number < limit => {
                errors.push(invalid(path, value, &format!("should be greater than or equal to {limit}")));
            }
            true if number <= limit => {
                errors.push(invalid(path, value, &format!("should be greater than {limit}")))
            }
            _ => {}
        }
    }
}

/// The old item that an item of a list stands for: only the items of a map are known again.
fn old_item<'v>(item: &Value, old: Option<&'v Value>, schema: &Schema) -> Option<&'v Value> {
    if schema.list_type.as_deref() != Some("map") {
        return None;
    }
    let same = |one: &&Value| schema.list_map_keys.iter().all(|key| one.get(key) == item.get(key));
    old.and_then(Value::as_array)?.iter().find(same)
}

fn check_list(items: &[Value], old: Option<&Value>, schema: &Schema, path: &str, errors: &mut FieldErrors) {
    if let Some(item_schema) = schema.items.as_deref() {
        for (index, item) in items.iter().enumerate() {
            let old = old_item(item, old, schema);
            check(item, old, item_schema, &format!("{path}[{index}]"), false, errors);
        }
    }
    let Some(rules) = &schema.rules else { return };
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(limit) = rules.max_items.filter(|limit| *limit < count) {
        errors.push(FieldError::too_many(&field(path), items.len(), usize::try_from(limit).unwrap_or(0)));
    }
    if let Some(limit) = rules.min_items.filter(|limit| count < *limit) {
        errors.push(invalid(path, count, &format!("should have at least {limit} items")));
    }
}

fn check_object(
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    path: &str,
    is_root: bool,
    errors: &mut FieldErrors,
) {
    let Some(members) = value.as_object() else { return };
    // The type of the object itself is the request's, whatever it was.
    let old = |name: &str| {
        old.filter(|_| !(path.is_empty() && matches!(name, "kind" | "apiVersion")))
            .and_then(|old| old.get(name))
    };
    if let Some(rules) = &schema.rules {
        let count = i64::try_from(members.len()).unwrap_or(i64::MAX);
        if let Some(limit) = rules.min_properties.filter(|limit| count < *limit) {
            errors.push(invalid(path, count, &format!("should have at least {limit} properties")));
        }
        if let Some(limit) = rules.max_properties.filter(|limit| *limit < count) {
            errors.push(FieldError::too_many(
                &field(path),
                members.len(),
                usize::try_from(limit).unwrap_or(0),
            ));
        }
    }
    for name in schema.required.iter().filter(|name| !members.contains_key(*name)) {
        errors.push(FieldError::required(&field(&below(path, name)), ""));
    }
    for (name, member) in members {
        let here = below(path, name);
        match (schema.property(name), &schema.additional) {
            (Some(_), _) if is_root && name == "metadata" => {
                // The metadata of the object itself is checked by the rules of all objects; the
                // schema may only narrow its name.
                check_names(member, old(name), schema, &here, errors);
            }
            (Some(property), _) => check(member, old(name), property, &here, false, errors),
            (None, Additional::Schema(additional)) => {
                check(member, old(name), additional, &here, false, errors);
            }
            (None, Additional::Flag(false)) => {
                let shown = if path.is_empty() { "." } else { path };
                let detail = format!("{shown}.{name} in body is a forbidden property");
                errors.push(FieldError::invalid(&field(path), "", detail));
            }
            (None, Additional::Flag(true) | Additional::Absent) => {}
        }
    }
}

fn check_names(metadata: &Value, old: Option<&Value>, schema: &Schema, path: &str, errors: &mut FieldErrors) {
    let Some(schema) = schema.property("metadata") else { return };
    for name in ["name", "generateName"] {
        if let (Some(value), Some(schema)) = (metadata.get(name), schema.property(name)) {
            let old = old.and_then(|old| old.get(name));
            check(value, old, schema, &below(path, name), false, errors);
        }
    }
}

fn check_composed(value: &Value, old: Option<&Value>, rules: &Rules, path: &str, errors: &mut FieldErrors) {
    // The parts may be forgiven; the whole is not, within an alternative.
    let attempt = |schema: &Schema| {
        let mut errors = FieldErrors::new();
        check_here(value, old, schema, path, false, &mut errors);
        errors
    };
    // Upstream loses the field of these, and says `<nil>` instead.
    let composed = |rule: String| FieldError::invalid(&Path::new(NO_FIELD), "", format!("\"{path}\" {rule}"));
    if !rules.any_of.is_empty() {
        let attempts: Vec<_> = rules.any_of.iter().map(attempt).collect();
        if attempts.iter().all(|errors| !errors.is_empty()) {
            errors.push(composed("must validate at least one schema (anyOf)".to_owned()));
            errors.extend(closest(attempts));
        }
    }
    if !rules.one_of.is_empty() {
        let attempts: Vec<_> = rules.one_of.iter().map(attempt).collect();
        match attempts.iter().filter(|errors| errors.is_empty()).count() {
            1 => {}
            0 => {
                errors.push(composed(
                    "must validate one and only one schema (oneOf). Found none valid".to_owned(),
                ));
                errors.extend(closest(attempts));
            }
            several => errors.push(composed(format!(
                "must validate one and only one schema (oneOf). Found {several} valid alternatives"
            ))),
        }
    }
    if !rules.all_of.is_empty() {
        let attempts: Vec<_> = rules.all_of.iter().map(attempt).collect();
        let failed = attempts.iter().filter(|errors| !errors.is_empty()).count();
        let none = failed == attempts.len();
        errors.extend(attempts.into_iter().flatten());
        if failed > 0 {
            let more = if none { ". None validated" } else { "" };
            errors.push(composed(format!("must validate all the schemas (allOf){more}")));
        }
    }
    if rules.not.as_deref().is_some_and(|not| attempt(not).is_empty()) {
        errors.push(composed("must not validate the schema (not)".to_owned()));
    }
}

/// The errors of the alternative that came nearest.
fn closest(attempts: Vec<FieldErrors>) -> FieldErrors {
    attempts.into_iter().min_by_key(Vec::len).unwrap_or_default()
}
