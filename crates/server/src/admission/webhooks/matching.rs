//! Who is asked about a request: rules, equivalent resources, and the labels of namespace and object.

use std::sync::OnceLock;

use coffer_types::Value;
use coffer_types::meta::{GroupVersionKind, Meta as _};
use coffer_types::{Map, Status};
use tokio::sync::OnceCell;

use super::Webhooks;
use super::conditions::Verdict;
use super::hook::Hook;
use super::review::told;
use crate::ports::{Admission, Equivalent, GroupResource, Operation};

/// One rule of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    operations: Vec<String>,
    scope: String,
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
}

/// As what a webhook is asked about a request.
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

/// A request that webhooks are chosen for.
pub(super) struct Chooser<'a> {
    webhooks: &'a Webhooks,
    request: &'a Admission<'a>,
    equivalents: OnceLock<Vec<Equivalent>>,
    /// Looked for once for all webhooks.
    namespace_labels: OnceCell<Result<Map, Status>>,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(webhooks: &'a Webhooks, request: &'a Admission<'a>) -> Self {
        Self { webhooks, request, equivalents: OnceLock::new(), namespace_labels: OnceCell::new() }
    }

    /// How the webhook is asked about the object as it is now, if it is.
    pub(super) async fn choose(
        &self,
        hook: &Hook,
        object: Option<&Value>,
    ) -> Result<Option<Invocation>, Status> {
        let Some(invocation) = self.by_rules(hook) else { return Ok(None) };
        let by_namespace = self.by_namespace(hook, object).await;
        if matches!(by_namespace, Ok(false)) {
            return Ok(None);
        }
        let by_labels = self.by_labels(hook, object);
        if matches!(by_labels, Ok(false)) {
            return Ok(None);
        }
        by_namespace?;
        by_labels?;
        if hook.conditions.is_empty() || self.by_conditions(hook, &invocation, object).await? {
            return Ok(Some(invocation));
        }
        Ok(None)
    }

    /// Conditions see the object in the version of the webhook.
    async fn by_conditions(
        &self,
        hook: &Hook,
        invocation: &Invocation,
        object: Option<&Value>,
    ) -> Result<bool, Status> {
        let request = self.request;
        let forms = request.context.forms;
        let mut seen = [None, None];
        for (seen, object) in seen.iter_mut().zip([object, request.old]) {
            if let Some(object) = object {
                *seen = Some(forms.convert(object, &invocation.kind).await.map_err(Status::internal)?);
            }
        }
        let told = told(invocation, request);
        let started = self.webhooks.clock.monotonic();
        let objects = seen.each_ref().map(Option::as_ref);
        let verdict = hook.conditions.verdict(request, &told, objects, &self.webhooks.authorizer);
        let elapsed = self.webhooks.clock.monotonic().saturating_sub(started);
        self.webhooks.note(hook, request.operation, &verdict, elapsed);
        match verdict {
            Verdict::Asked => Ok(true),
            Verdict::Excluded => Ok(false),
            Verdict::Unknown(..) if hook.fails_open => Ok(false),
            Verdict::Unknown(_, why) => {
                let attributes = request.attributes;
                Err(Status::forbidden(&attributes.group, &attributes.resource, request.context.name, why))
            }
        }
    }

    fn by_rules(&self, hook: &Hook) -> Option<Invocation> {
        let attributes = self.request.attributes;
        let asked = Asked {
            operation: name_of(self.request.operation),
            group: &attributes.group,
            version: &attributes.version,
            resource: &attributes.resource,
            subresource: &attributes.subresource,
            namespace: &attributes.namespace,
        };
        if hook.rules.iter().any(|rule| rule.matches(&asked)) {
            let resource = [&attributes.group, &attributes.version, &attributes.resource].map(Clone::clone);
            return Some(Invocation { resource, kind: self.request.context.forms.kind().clone() });
        }
        if !hook.equivalent {
            return None;
        }
        let equivalents = self.equivalents.get_or_init(|| self.request.context.forms.equivalents());
        let matching = hook.rules.iter().find_map(|rule| {
            equivalents.iter().find(|other| {
                rule.matches(&Asked {
                    group: &other.group,
                    version: &other.version,
                    resource: &other.resource,
                    ..asked
                })
            })
        });
        matching.map(|other| Invocation {
            resource: [&other.group, &other.version, &other.resource].map(Clone::clone),
            kind: other.kind.clone(),
        })
    }

    fn by_labels(&self, hook: &Hook, object: Option<&Value>) -> Result<bool, Status> {
        let selector = hook.selected.as_ref().map_err(Status::internal)?;
        let matches = |object: Option<&Value>| object.is_some_and(|object| selector.matches(object.labels()));
        Ok(selector.is_everything() || matches(object) || matches(self.request.old))
    }

    async fn by_namespace(&self, hook: &Hook, object: Option<&Value>) -> Result<bool, Status> {
        let attributes = self.request.attributes;
        let is_namespaces = attributes.resource == "namespaces";
        if attributes.namespace.is_empty() && !is_namespaces {
            return Ok(true);
        }
        let selector = hook.namespaces.as_ref().map_err(Status::internal)?;
        if selector.is_everything() {
            return Ok(true);
        }
        // A namespace that is being written is selected by what it will be.
        let own = is_namespaces
            && attributes.subresource.is_empty()
            && matches!(self.request.operation, Operation::Create | Operation::Update);
        if let Some(object) = object.filter(|_| own) {
            return Ok(selector.matches(object.labels()));
        }
        let labels = self.namespace_labels.get_or_init(|| self.find_labels(&attributes.namespace)).await;
        labels.as_ref().map(|labels| selector.matches(labels)).map_err(Clone::clone)
    }

    async fn find_labels(&self, namespace: &str) -> Result<Map, Status> {
        let resource = GroupResource::new("", "namespaces");
        for live in [false, true] {
            let found = self.webhooks.objects.get(&resource, "", namespace, live).await;
            if let Some(found) = found.map_err(|status| Status::internal(status.message))? {
                return Ok(found.labels().clone());
            }
        }
        Err(Status::not_found("", "namespaces", namespace))
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
