//! Merge patch (RFC 7396), with the original library's treatment of nulls inside lists.

use crate::Value;

/// `document` with `patch` merged into it: null removes, objects merge, anything else replaces.
pub fn apply(document: Value, patch: Value) -> Value {
    match (document, patch) {
        (Value::Object(mut members), Value::Object(changes)) => {
            for (key, change) in changes {
                if change.is_null() {
                    members.remove(&key);
                    continue;
                }
                let merged = match members.remove(&key) {
                    Some(current) if !current.is_null() => apply(current, change),
                    _ => without_nulls(change),
                };
                members.insert(key, merged);
            }
            Value::Object(members)
        }
        (_, patch) => without_nulls(patch),
    }
}

/// Null members go, in objects inside lists too; null items stay.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, member)| !member.is_null())
                .map(|(key, member)| (key, without_nulls(member)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::testing::object;

    #[test]
    fn the_cases_of_the_rfc_hold() {
        for (document, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
            // Beyond the RFC: as the original library prunes.
            ("{}", r#"{"a":[{"b":null,"c":1},null]}"#, r#"{"a":[{"c":1},null]}"#),
            (r#"{"a":null}"#, r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
        ] {
            assert!(apply(object(document), object(patch)) == object(expected), "{document} + {patch}");
        }
    }
}
