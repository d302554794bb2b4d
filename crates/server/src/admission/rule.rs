//! Rules of webhooks and policies, and as what one is asked.

use coffer_types::Value;
use coffer_types::meta::GroupVersionKind;

use crate::ports::Operation;

/// One rule of a webhook or a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    operations: Vec<String>,
    scope: String,
    /// Any name, if there are none.
    names: Vec<String>,
}

/// What a rule is held against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) operation: &'a str,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) resource: &'a str,
    pub(super) subresource: &'a str,
    /// That of the object; a namespace is in itself.
    pub(super) namespace: &'a str,
    /// As the request has it.
    pub(super) name: &'a str,
}

/// As what a webhook or a policy is asked about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Invocation {
    /// Group, version and plural.
    pub(super) resource: [String; 3],
    /// The kind that it sees.
    pub(super) kind: GroupVersionKind,
}

impl Rule {
    /// Reads a rule.
    pub(super) fn of(rule: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            let items = rule.get(field).and_then(Value::as_array).unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let split = |resource: String| match resource.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (resource, String::new()),
        };
        Self {
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(split).collect(),
            operations: texts("operations"),
            scope: rule.str_at(&["scope"]).to_owned(),
            names: texts("resourceNames"),
        }
    }

    pub(super) fn matches(&self, asked: &Asked<'_>) -> bool {
        let is_namespace = (asked.group, asked.version, asked.resource) == ("", "v1", "namespaces");
        let in_scope = match self.scope.as_str() {
            "" | "*" => true,
            "Namespaced" => !is_namespace && !asked.namespace.is_empty(),
            "Cluster" => is_namespace || asked.namespace.is_empty(),
            _ => false,
        };
        let has = |items: &[String], wanted: &str| items.iter().any(|item| item == "*" || item == wanted);
        let is = |item: &str, wanted: &str| item == "*" || item == wanted;
        in_scope
            && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
            && has(&self.operations, asked.operation)
            && has(&self.groups, asked.group)
            && has(&self.versions, asked.version)
            && self.resources.iter().any(|(resource, subresource)| {
                is(resource, asked.resource) && is(subresource, asked.subresource)
            })
    }
}

/// The operation as rules, reviews and metrics name it.
pub(super) fn name_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        Rule::of(&coffer_types::codec::yaml::decode_untyped(text.as_bytes()).expect("YAML").object)
    }

    /// Cases of upstream's TestGroup, TestVersion, TestOperation, TestResource and TestScope.
    #[test]
    fn rules_match_as_upstream() {
        let all = Asked {
            operation: "CREATE",
            group: "g",
            version: "v",
            resource: "r",
            subresource: "",
            namespace: "ns",
            name: "b",
        };
        let sub = Asked { subresource: "exec", ..all };
        let wild = |resources: &str| {
            rule(&format!(
                "{{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: {resources}}}"
            ))
        };
        for (rule, asked, expected) in [
            (rule("{apiGroups: ['*'], apiVersions: [v], operations: [CREATE], resources: [r]}"), all, true),
            (rule("{apiGroups: [g1, g], apiVersions: [v], operations: [CREATE], resources: [r]}"), all, true),
            (rule("{apiGroups: [g1], apiVersions: [v], operations: [CREATE], resources: [r]}"), all, false),
            (
                rule("{apiGroups: [g], apiVersions: [v1, v2], operations: [CREATE], resources: [r]}"),
                all,
                false,
            ),
            (rule("{apiGroups: [g], apiVersions: [v], operations: [UPDATE], resources: [r]}"), all, false),
            (
                rule("{apiGroups: [g], apiVersions: [v], operations: [UPDATE, '*'], resources: [r]}"),
                all,
                true,
            ),
            (wild("['*']"), all, true),
            (wild("['*']"), sub, false),
            (wild("['*/*']"), all, true),
            (wild("['*/*']"), sub, true),
            (wild("['r/*']"), sub, true),
            (wild("['r/*']"), all, true),
            (wild("['r']"), sub, false),
            (wild("['*/exec']"), sub, true),
            (wild("['*/exec']"), all, false),
            (wild("['x/exec', 'r/exec']"), sub, true),
            (wild("[]"), all, false),
            (wild("[r], resourceNames: [a, b]"), all, true),
            (wild("[r], resourceNames: [a]"), all, false),
        ] {
            assert_eq!(rule.matches(&asked), expected, "{rule:?} {asked:?}");
        }
    }

    #[test]
    fn a_namespace_is_of_the_cluster() {
        let scoped = |scope: &str| {
            rule(&format!(
                "{{apiGroups: [''], apiVersions: ['*'], operations: ['*'], resources: ['*'], scope: '{scope}'}}"
            ))
        };
        let asked = |resource: &'static str, namespace: &'static str| Asked {
            operation: "CREATE",
            group: "",
            version: "v1",
            resource,
            subresource: "",
            namespace,
            name: "b",
        };
        for (scope, resource, namespace, expected) in [
            ("*", "secrets", "ns", true),
            ("*", "nodes", "", true),
            ("Namespaced", "secrets", "ns", true),
            ("Namespaced", "nodes", "", false),
            ("Namespaced", "namespaces", "ns", false),
            ("Cluster", "secrets", "ns", false),
            ("Cluster", "nodes", "", true),
            ("Cluster", "namespaces", "ns", true),
            ("Other", "nodes", "", false),
        ] {
            let found = scoped(scope).matches(&asked(resource, namespace));
            assert_eq!(found, expected, "{scope} {resource} {namespace}");
        }
    }
}
