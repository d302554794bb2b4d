//! The checks that many kinds share.

use crate::names;
use crate::validation::field::{FieldError, FieldErrors, Path, Shown};
use crate::validation::meta::{FIELD_IMMUTABLE, invalid_each, label_selector};
use crate::{Map, Value};

pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// The items of a list.
pub(super) fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

pub(super) fn is_set(object: &Value, path: &[&str]) -> bool {
    object.at(path).is_some_and(|value| !value.is_null())
}

pub(super) fn number(object: &Value, path: &[&str]) -> Option<i64> {
    object.at(path).and_then(Value::as_i64)
}

/// A number that is set is not below zero.
pub(super) fn not_negative(object: &Value, path: &[&str], errors: &mut FieldErrors) {
    if let Some(number) = number(object, path).filter(|number| *number < 0) {
        errors.push(FieldError::invalid(&Path::of(path), number, NOT_NEGATIVE));
    }
}

/// A text is not empty.
pub(super) fn required(object: &Value, path: &[&str], errors: &mut FieldErrors) {
    if object.str_at(path).is_empty() {
        errors.push(FieldError::required(&Path::of(path), ""));
    }
}

/// A text that is set is one of those.
pub(super) fn one_of(object: &Value, path: &[&str], allowed: &[&str], errors: &mut FieldErrors) {
    if let Some(text) = object.at(path).and_then(Value::as_str)
        && !allowed.contains(&text)
    {
        errors.push(FieldError::not_supported(&Path::of(path), text, allowed));
    }
}

/// A field is what it was; the new value is shown.
pub(super) fn unchanged(new: &Value, old: &Value, path: &[&str], errors: &mut FieldErrors) {
    if !super::same(new.at(path), old.at(path)) {
        let shown = new.at(path).unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(&Path::of(path), shown, FIELD_IMMUTABLE));
    }
}

/// A field is what it was. Upstream shows `null` in its place, and so do we.
pub(super) fn unchanged_null(new: &Value, old: &Value, path: &[&str], errors: &mut FieldErrors) {
    if !super::same(new.at(path), old.at(path)) {
        errors.push(FieldError::invalid(&Path::of(path), &Value::Null, FIELD_IMMUTABLE));
    }
}

/// A field is what it was; its value may hold secrets and is not shown, where upstream shows it.
pub(super) fn unchanged_hidden(new: &Value, old: &Value, path: &[&str], errors: &mut FieldErrors) {
    if !super::same(new.at(path), old.at(path)) {
        errors.push(FieldError::invalid(&Path::of(path), Shown::omitted(), FIELD_IMMUTABLE));
    }
}

/// A name at `path` is a DNS subdomain.
pub(super) fn subdomain(object: &Value, path: &[&str], errors: &mut FieldErrors) {
    let name = object.str_at(path);
    errors.extend(invalid_each(names::dns_subdomain(name, false), &Path::of(path), name));
}

/// A template's labels must be those that the selector selects.
pub(super) fn selects_template(selector: &Value, labels: &Map) -> bool {
    let own = |key: &str| labels.get(key).and_then(Value::as_str);
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut equal = equal.map(|(key, value)| own(key) == value.as_str());
    let expressions = list(selector, &["matchExpressions"]).iter();
    let mut holds = expressions.map(|expression| {
        let label = own(expression.str_at(&["key"]));
        let listed = label.is_some_and(|label| {
            list(expression, &["values"]).iter().any(|value| value.as_str() == Some(label))
        });
        match expression.str_at(&["operator"]) {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            _ => false,
        }
    });
    equal.all(|holds| holds) && holds.all(|holds| holds)
}

/// A label selector in JSON as Go prints it.
pub(super) fn shown_selector(selector: &Value) -> Shown {
    let mut text = String::from("{");
    if let Some(labels) =
        selector.get("matchLabels").filter(|labels| labels.as_object().is_some_and(|one| !one.is_empty()))
    {
        text.push_str("\"matchLabels\":");
        text.push_str(&crate::validation::field::go_json(labels));
    }
    let expressions = list(selector, &["matchExpressions"]);
    if !expressions.is_empty() {
        if text.len() > 1 {
            text.push(',');
        }
        let items = expressions
            .iter()
            .filter_map(Value::as_object)
            .map(|one| crate::validation::field::go_struct_json(one, &["key", "operator", "values"]));
        text.push_str(&format!("\"matchExpressions\":[{}]", items.collect::<Vec<_>>().join(",")));
    }
    text.push('}');
    Shown::verbatim(text)
}

/// A label selector is well formed.
pub(super) fn selector(object: &Value, path: &[&str], errors: &mut FieldErrors) {
    if let Some(selector) = object.at(path).filter(|selector| !selector.is_null()) {
        errors.extend(label_selector(selector, &Path::of(path)));
    }
}
