//! `dataFrom[].rewrite`: pure.

use coffer_providers::contract::SecretMap;
use coffer_types::SecretBytes;
use regex::Regex;
use serde_json::Value as Json;

use super::spec::{MergeRewrite, Rewrite};

/// Applies all operations in order.
pub(crate) fn apply(rewrites: &[Rewrite], mut map: SecretMap) -> Result<SecretMap, String> {
    for (index, rewrite) in rewrites.iter().enumerate() {
        let result = match rewrite {
            Rewrite::Regexp { source, target } => {
                regexp(source, target, map).map_err(|why| format!("regexp failed with {why}"))
            }
            Rewrite::Merge(merge) => {
                merge_values(merge, map).map_err(|why| format!("merge failed with {why}"))
            }
            // Refused when the specification was parsed.
            Rewrite::Transform { .. } => Err("transform is not supported".to_owned()),
        };
        map = result.map_err(|why| format!("failed rewrite operation[{index}]: {why}"))?;
    }
    Ok(map)
}

fn regexp(source: &str, target: &str, map: SecretMap) -> Result<SecretMap, String> {
    let pattern = Regex::new(source).map_err(|error| format!("failed to compile: {error}"))?;
    // Of keys that become one the last in order wins; upstream's order is random.
    Ok(map.into_iter().map(|(key, value)| (pattern.replace_all(&key, target).into_owned(), value)).collect())
}

fn merge_values(merge: &MergeRewrite, map: SecretMap) -> Result<SecretMap, String> {
    let strict = merge.priority_policy != "IgnoreNotFound";
    let mut order: Vec<&String> = map.keys().filter(|key| !merge.priority.contains(key)).collect();
    for key in &merge.priority {
        match map.get_key_value(key) {
            Some((key, _)) => order.push(key),
            None if strict => return Err(format!("key {key:?} not found in input map")),
            None => {}
        }
    }
    let mut merged = serde_json::Map::new();
    let mut conflicts = Vec::new();
    for key in order {
        let Some(value) = map.get(key) else { continue };
        // The decoder's error may quote the value.
        let object: Json = serde_json::from_slice(value.expose())
            .map_err(|_| format!("failed to unmarshal JSON: the value of {key:?} is not a JSON object"))?;
        let Json::Object(object) = object else {
            return Err(format!("failed to unmarshal JSON: the value of {key:?} is not a JSON object"));
        };
        for (inner, value) in object {
            if merged.contains_key(&inner) {
                conflicts.push(inner.clone());
            }
            merged.insert(inner, value);
        }
    }
    if merge.conflict_policy != "Ignore" && !conflicts.is_empty() {
        conflicts.sort();
        conflicts.dedup();
        return Err(format!("conflicts: {}", conflicts.join(", ")));
    }
    if merge.strategy == "JSON" {
        if merge.into.is_empty() {
            return Err("missing 'into' field".to_owned());
        }
        let mut map = map;
        let text = Json::Object(floats(merged)).to_string();
        map.insert(merge.into.clone(), SecretBytes::from(text));
        return Ok(map);
    }
    Ok(merged.into_iter().map(|(key, value)| (key, bytes(value))).collect())
}

/// Numbers as Go's floats print in JSON: whole ones without a fraction.
fn floats(map: serde_json::Map<String, Json>) -> serde_json::Map<String, Json> {
    map.into_iter().map(|(key, value)| (key, float(value))).collect()
}

fn float(value: Json) -> Json {
    match value {
        Json::Number(number) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
            #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
            whole.map_or(Json::Number(number), |float| Json::from(float as i64))
        }
        Json::Array(items) => Json::Array(items.into_iter().map(float).collect()),
        Json::Object(map) => Json::Object(floats(map)),
        other => other,
    }
}

fn bytes(value: Json) -> SecretBytes {
    SecretBytes::from(match value {
        Json::String(text) => text,
        Json::Null => String::new(),
        Json::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |float| float.to_string()),
        other => float(other).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn check(rewrites: Json, map: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let rewrites = Vec::<Rewrite>::deserialize(rewrites).unwrap();
        let map = map.iter().map(|(key, value)| ((*key).to_owned(), SecretBytes::from((*value).to_owned())));
        let map = apply(&rewrites, map.collect())?;
        Ok(map
            .iter()
            .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(value.expose())))
            .collect())
    }

    #[test]
    fn vectors_of_upstream() {
        const A: &str = r#"{"host":"dba","pass":"yola","port":123}"#;
        const B: &str = r#"{"host":"dbb","pass":"yolb"}"#;
        type Case = (Json, Vec<(&'static str, &'static str)>, Result<Vec<&'static str>, &'static str>);
        let cases: Vec<Case> = vec![
            (
                json!([{"regexp": {"source": "f(.*)o", "target": "a_new_path_$1"}}]),
                vec![("foo", "1"), ("foodaloo", "2")],
                Ok(vec!["a_new_path_o=1", "a_new_path_oodalo=2"]),
            ),
            (
                json!([
                    {"regexp": {"source": "my/(.*?)/bar/(.*)", "target": "$1-$2"}},
                    {"regexp": {"source": "-", "target": "_"}},
                    {"regexp": {"source": "ass", "target": "***"}},
                ]),
                vec![("my/app/bar/password", "1")],
                Ok(vec!["app_p***word=1"]),
            ),
            (
                json!([
                    {"merge": {"into": "merged", "priority": ["a"], "strategy": "JSON", "conflictPolicy": "Ignore"}},
                    {"merge": {"priority": ["b"], "strategy": "Extract", "conflictPolicy": "Ignore"}},
                ]),
                vec![("a", A), ("b", B)],
                Ok(vec!["host=dbb", "pass=yolb", "port=123"]),
            ),
            (
                json!([{"merge": {"priority": ["c"]}}]),
                vec![("a", A)],
                Err("failed rewrite operation[0]: merge failed with key \"c\" not found in input map"),
            ),
            (
                json!([{"merge": {"priority": ["c"], "priorityPolicy": "IgnoreNotFound"}}]),
                vec![("b", B)],
                Ok(vec!["host=dbb", "pass=yolb"]),
            ),
            (
                json!([{"merge": {}}]),
                vec![("a", A), ("b", B)],
                Err("failed rewrite operation[0]: merge failed with conflicts: host, pass"),
            ),
            (
                json!([{"merge": {"strategy": "JSON"}}]),
                vec![("a", A)],
                Err("failed rewrite operation[0]: merge failed with missing 'into' field"),
            ),
            (
                json!([{"merge": {}}]),
                vec![("z", "hunter2")],
                Err(
                    "failed rewrite operation[0]: merge failed with failed to unmarshal JSON: the value of \"z\" is not a JSON object",
                ),
            ),
        ];
        for (rewrites, map, expected) in cases {
            let result = check(rewrites.clone(), &map);
            let expected =
                expected.map(|keys| keys.into_iter().map(str::to_owned).collect()).map_err(str::to_owned);
            assert_eq!(result, expected, "{rewrites}");
        }
    }

    #[test]
    fn a_bad_expression_is_an_error() {
        let error = check(json!([{"regexp": {"source": "(", "target": ""}}]), &[]).unwrap_err();
        assert!(
            error.starts_with("failed rewrite operation[0]: regexp failed with failed to compile: "),
            "{error}"
        );
    }
}
