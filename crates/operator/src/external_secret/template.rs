//! An ExternalSecret's template: what may stand in it, and the part that needs no engine.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const BOOTSTRAP_TOKEN: &str = "bootstrap.kubernetes.io/token";
const NEEDS_ENGINE: &str = "templates are not supported yet";

/// The part of a template that needs no engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Template {
    pub(crate) secret_type: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
    /// Literal values: no `Debug` output may show them, and none is made of this type's text.
    pub(crate) data: BTreeMap<String, LiteralValue>,
    /// Whether fetched values stay beside `data`.
    pub(crate) merge: bool,
}

/// A literal of a template; users do write passwords there.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LiteralValue(pub(crate) String);

impl std::fmt::Debug for LiteralValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[REDACTED]")
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RawTemplate {
    #[serde(rename = "type")]
    pub(super) secret_type: String,
    pub(super) engine_version: String,
    pub(super) merge_policy: String,
    pub(super) metadata: RawTemplateMetadata,
    pub(super) data: BTreeMap<String, String>,
    pub(super) template_from: Vec<Json>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct RawTemplateMetadata {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) finalizers: Vec<String>,
}

/// Checks a template by upstream's rules and keeps the part that needs no engine.
pub(super) fn checked(raw: RawTemplate) -> Result<Template, String> {
    restrictions(&raw)?;
    if !matches!(raw.engine_version.as_str(), "" | "v2") {
        return Err(format!("unsupported template engine version: {}", raw.engine_version));
    }
    if !raw.template_from.is_empty() {
        return Err(format!("{NEEDS_ENGINE}: spec.target.template.templateFrom is set"));
    }
    let maps: [(&str, &BTreeMap<String, String>); 3] = [
        ("data", &raw.data),
        ("metadata.labels", &raw.metadata.labels),
        ("metadata.annotations", &raw.metadata.annotations),
    ];
    for (what, map) in maps {
        if let Some((key, _)) = map.iter().find(|(_, text)| text.contains("{{")) {
            return Err(format!("{NEEDS_ENGINE}: spec.target.template.{what}[{key}] holds an action"));
        }
    }
    Ok(Template {
        secret_type: raw.secret_type,
        labels: raw.metadata.labels,
        annotations: raw.metadata.annotations,
        finalizers: raw.metadata.finalizers,
        // A template without data is made of what was fetched.
        merge: raw.merge_policy == "Merge" || raw.data.is_empty(),
        data: raw.data.into_iter().map(|(key, text)| (key, LiteralValue(text))).collect(),
    })
}

/// Types that the control plane fills or trusts.
fn restrictions(raw: &RawTemplate) -> Result<(), String> {
    let mut errors = Vec::new();
    if raw.secret_type == SERVICE_ACCOUNT_TOKEN {
        if raw.metadata.annotations.contains_key(SERVICE_ACCOUNT_NAME) {
            errors.push(format!(
                "template.type={SERVICE_ACCOUNT_TOKEN:?} with annotation {SERVICE_ACCOUNT_NAME:?} is not allowed"
            ));
        }
        let target =
            |from: &serde_json::Value| from["target"].as_str().unwrap_or_default().to_ascii_lowercase();
        if raw.template_from.iter().any(|from| target(from) == "annotations") {
            errors.push(format!(
                "template.type={SERVICE_ACCOUNT_TOKEN:?} with templateFrom target=\"Annotations\" is not allowed"
            ));
        }
    }
    if raw.secret_type == BOOTSTRAP_TOKEN {
        errors.push(format!("template.type={BOOTSTRAP_TOKEN:?} is not allowed"));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value as Json, json};

    use super::*;

    #[test]
    fn s23_types_that_the_control_plane_trusts_are_refused() {
        let cases = [
            (
                json!({"type": SERVICE_ACCOUNT_TOKEN, "metadata": {"annotations": {SERVICE_ACCOUNT_NAME: "admin"}}}),
                "template.type=\"kubernetes.io/service-account-token\" with annotation \"kubernetes.io/service-account.name\" is not allowed",
            ),
            (
                json!({"type": SERVICE_ACCOUNT_TOKEN, "templateFrom": [{"target": "ANNOTATIONS", "literal": "x"}]}),
                "template.type=\"kubernetes.io/service-account-token\" with templateFrom target=\"Annotations\" is not allowed",
            ),
            (
                json!({"type": BOOTSTRAP_TOKEN}),
                "template.type=\"bootstrap.kubernetes.io/token\" is not allowed",
            ),
            (json!({"engineVersion": "v1"}), "unsupported template engine version: v1"),
            (
                json!({"templateFrom": [{"literal": "x"}]}),
                "templates are not supported yet: spec.target.template.templateFrom is set",
            ),
            (
                json!({"data": {"url": "https://{{ .user }}@host"}}),
                "templates are not supported yet: spec.target.template.data[url] holds an action",
            ),
            (
                json!({"metadata": {"labels": {"a": "{{ .b }}"}}}),
                "templates are not supported yet: spec.target.template.metadata.labels[a] holds an action",
            ),
        ];
        for (template, expected) in cases {
            assert_eq!(parse(&template).unwrap_err(), expected, "{template}");
        }
    }

    #[test]
    fn what_needs_no_engine_is_taken() {
        let cases = [
            (json!({"type": SERVICE_ACCOUNT_TOKEN}), true),
            (json!({"data": {"a": "plain"}}), false),
            (json!({"data": {"a": "plain"}, "mergePolicy": "Merge"}), true),
            (json!({"metadata": {"labels": {"a": "b"}}}), true),
        ];
        for (template, merge) in cases {
            assert_eq!(parse(&template).unwrap().merge, merge, "{template}");
        }
    }

    fn parse(object: &Json) -> Result<Template, String> {
        checked(RawTemplate::deserialize(object).unwrap())
    }
}
