//! A store as it is read from the API: parsed once, valid after.

use std::collections::BTreeMap;
use std::time::Duration;

use coffer_providers::contract::RetrySettings;
use coffer_providers::duration;
use regex::Regex;
use serde_json::Value as Json;

use super::StoreKey;
use crate::external_secret::spec::{Condition, texts};

/// One store. No `Debug` of the provider's part: the fake's holds values.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) key: StoreKey,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: i64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) deleting: bool,
    pub(crate) class: String,
    /// The provider's key and its specification, or why there is not exactly one.
    pub(crate) provider: Result<(String, Json), String>,
    pub(crate) retry: Option<RetrySettings>,
    pub(crate) refresh_interval: Result<Option<Duration>, String>,
    pub(crate) admits: Vec<Admission>,
    pub(crate) capabilities: String,
    pub(crate) conditions: Vec<Condition>,
}

/// One entry of `spec.conditions`: which namespaces may use a cluster store.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Admission {
    selector: Option<Selector>,
    namespaces: Vec<String>,
    regexes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Selector {
    labels: BTreeMap<String, String>,
    expressions: Vec<(String, String, Vec<String>)>,
}

impl Store {
    /// From the API's JSON; `None` when it has no name.
    pub(crate) fn parse(object: &Json, cluster: bool) -> Option<Self> {
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        if text("name").is_empty() {
            return None;
        }
        let namespace = if cluster { String::new() } else { text("namespace") };
        let key = StoreKey { cluster, namespace, name: text("name") };
        let conditions = status["conditions"].as_array().into_iter().flatten();
        Some(Self {
            provider: provider(&key.name, &spec["provider"]),
            key,
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            labels: texts(&metadata["labels"]),
            annotations: texts(&metadata["annotations"]),
            deleting: metadata["deletionTimestamp"].is_string(),
            class: spec["controller"].as_str().unwrap_or_default().to_owned(),
            retry: retry(&spec["retrySettings"]),
            refresh_interval: refresh_interval(&spec["refreshInterval"]),
            admits: spec["conditions"].as_array().into_iter().flatten().map(admission).collect(),
            capabilities: status["capabilities"].as_str().unwrap_or_default().to_owned(),
            conditions: conditions
                .filter_map(|condition| serde::Deserialize::deserialize(condition).ok())
                .collect(),
        })
    }

    /// Whether its Ready condition is True.
    pub(crate) fn is_ready(&self) -> bool {
        self.conditions.iter().any(|condition| condition.kind == "Ready" && condition.status == "True")
    }

    /// Whether an ExternalSecret of a namespace with these labels may use it.
    pub(crate) fn admits(&self, labels: &BTreeMap<String, String>, namespace: &str) -> Result<bool, String> {
        if !self.key.cluster || self.admits.is_empty() {
            return Ok(true);
        }
        for admission in &self.admits {
            if admission.matches(labels, namespace)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn provider(name: &str, union: &Json) -> Result<(String, Json), String> {
    let members = union.as_object().map(|members| members.iter().collect::<Vec<_>>()).unwrap_or_default();
    match members.as_slice() {
        [(key, spec)] => Ok(((*key).clone(), (*spec).clone())),
        more => Err(format!(
            "store error for {name}: secret stores must only have exactly one backend specified, found {}",
            more.len()
        )),
    }
}

fn retry(settings: &Json) -> Option<RetrySettings> {
    settings.as_object()?;
    Some(RetrySettings {
        max_retries: settings["maxRetries"].as_u64().and_then(|count| u32::try_from(count).ok()),
        interval: settings["retryInterval"].as_str().and_then(|text| duration::parse(text).ok()),
    })
}

fn refresh_interval(value: &Json) -> Result<Option<Duration>, String> {
    let interval = match value {
        Json::Null => return Ok(None),
        Json::String(text) => match duration::parse_signed(text) {
            Err(why) => return Err(format!("invalid refreshInterval {text:?}: {why}")),
            Ok((true, _)) => return Err(format!("invalid refreshInterval {text:?}: must not be negative")),
            Ok((false, interval)) => interval,
        },
        number => match number.as_i64() {
            Some(seconds) => Duration::from_secs(
                u64::try_from(seconds)
                    .map_err(|_| format!("invalid refreshInterval {seconds}: must not be negative"))?,
            ),
            None => return Err("invalid refreshInterval: neither a number nor a text".to_owned()),
        },
    };
    Ok((!interval.is_zero()).then_some(interval))
}

fn admission(condition: &Json) -> Admission {
    let list = |value: &Json| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let selector = &condition["namespaceSelector"];
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    Admission {
        selector: selector.is_object().then(|| Selector {
            labels: texts(&selector["matchLabels"]),
            expressions: expressions
                .map(|expression| {
                    let text = |field: &str| expression[field].as_str().unwrap_or_default().to_owned();
                    (text("key"), text("operator"), list(&expression["values"]))
                })
                .collect(),
        }),
        namespaces: list(&condition["namespaces"]),
        regexes: list(&condition["namespaceRegexes"]),
    }
}

impl Admission {
    fn matches(&self, labels: &BTreeMap<String, String>, namespace: &str) -> Result<bool, String> {
        if let Some(selector) = &self.selector
            && selector.matches(labels)?
        {
            return Ok(true);
        }
        if self.namespaces.iter().any(|name| labels.get("kubernetes.io/metadata.name") == Some(name)) {
            return Ok(true);
        }
        for pattern in &self.regexes {
            let regex =
                Regex::new(pattern).map_err(|error| format!("failed to compile regex {pattern}: {error}"))?;
            if regex.is_match(namespace) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Selector {
    fn matches(&self, labels: &BTreeMap<String, String>) -> Result<bool, String> {
        if self.labels.iter().any(|(key, value)| labels.get(key) != Some(value)) {
            return Ok(false);
        }
        for (key, operator, values) in &self.expressions {
            let value = labels.get(key);
            let holds = match operator.as_str() {
                "In" => value.is_some_and(|value| values.contains(value)),
                "NotIn" => value.is_none_or(|value| !values.contains(value)),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                other => return Err(format!("{other:?} is not a valid label selector operator")),
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn store(spec: Json) -> Store {
        Store::parse(&json!({"metadata": {"name": "s"}, "spec": spec}), true).unwrap()
    }

    #[test]
    fn a_store_has_one_provider() {
        let cases = [(json!({}), 0), (json!({"vault": {}, "fake": {}}), 2)];
        for (union, found) in cases {
            assert_eq!(
                store(json!({"provider": union})).provider.unwrap_err(),
                format!(
                    "store error for s: secret stores must only have exactly one backend specified, found {found}"
                )
            );
        }
        assert_eq!(store(json!({"provider": {"fake": {"data": []}}})).provider.unwrap().0, "fake");
    }

    #[test]
    fn intervals() {
        let cases = [
            (Json::Null, Ok(None)),
            (json!(0), Ok(None)),
            (json!(30), Ok(Some(Duration::from_secs(30)))),
            (json!("1m"), Ok(Some(Duration::from_secs(60)))),
            (json!(-1), Err("invalid refreshInterval -1: must not be negative")),
            (json!("-1s"), Err("invalid refreshInterval \"-1s\": must not be negative")),
            (json!("x"), Err("invalid refreshInterval \"x\": time: invalid duration \"x\"")),
        ];
        for (interval, expected) in cases {
            let found = store(json!({"refreshInterval": interval})).refresh_interval;
            assert_eq!(found, expected.map_err(str::to_owned), "{interval}");
        }
    }

    #[test]
    fn namespaces_that_may_use_a_cluster_store() {
        let cases = [
            (json!([]), true),
            (json!([{}]), false),
            (json!([{"namespaceSelector": {}}]), true),
            (json!([{"namespaceSelector": {"matchLabels": {"team": "a"}}}]), true),
            (json!([{"namespaceSelector": {"matchLabels": {"team": "b"}}}]), false),
            (json!([{"namespaceSelector": {"matchLabels": {"team": "b"}}}, {"namespaces": ["prod"]}]), true),
            (json!([{"namespaces": ["other"]}]), false),
            (json!([{"namespaceRegexes": ["^pr"]}]), true),
            (json!([{"namespaceRegexes": ["ro"]}]), true),
            (json!([{"namespaceRegexes": ["x"]}]), false),
            (
                json!([{"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}}]),
                true,
            ),
            (
                json!([{"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}]),
                false,
            ),
        ];
        let labels: BTreeMap<String, String> = [("team", "a"), ("kubernetes.io/metadata.name", "prod")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        for (conditions, expected) in cases {
            assert_eq!(
                store(json!({"conditions": conditions})).admits(&labels, "prod"),
                Ok(expected),
                "{conditions}"
            );
        }
        assert!(store(json!({"conditions": [{"namespaceRegexes": ["("]}]})).admits(&labels, "prod").is_err());
    }
}
