//! What rules, equivalent resources, and the labels of namespace and object say of a request.

use std::sync::{Arc, OnceLock};

use coffer_lang::label_selector::LabelSelector;
use coffer_types::meta::Meta as _;
use coffer_types::{Map, Status, Value};
use tokio::sync::OnceCell;

use super::rule::{Asked, Invocation, Rule, name_of};
use crate::ports::{Admission, Equivalent, GroupResource, Objects, Operation};

/// Kinds that no webhook is asked about, lest a cluster lock itself out.
const CONFIGURATIONS: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Resources that store nothing and ask who somebody is or what they may.
const VIRTUAL: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Whether neither webhooks nor policies look at a request.
pub(super) fn is_exempt(request: &Admission<'_>) -> bool {
    let attributes = request.attributes;
    let resource = (attributes.group.as_str(), attributes.resource.as_str());
    let kind = request.context.forms.kind();
    let is_configuration =
        kind.group == "admissionregistration.k8s.io" && CONFIGURATIONS.contains(&kind.kind.as_str());
    VIRTUAL.contains(&resource) || is_configuration
}

/// Which requests a webhook, a policy or a binding is about.
pub(super) struct Constraints {
    /// Without any, every resource is meant.
    rules: Option<Vec<Rule>>,
    excluded: Vec<Rule>,
    /// Whether rules are held against equivalent resources too.
    equivalent: bool,
    namespaces: Result<LabelSelector, String>,
    selected: Result<LabelSelector, String>,
}

impl Constraints {
    /// Those of a webhook, which is asked about nothing when it has no rules.
    pub(super) fn of_webhook(hook: &Value) -> Self {
        Self { rules: Some(rules(hook, "rules")), ..Self::of_policy(hook) }
    }

    /// Those of a policy's `matchConstraints` or a binding's `matchResources`.
    pub(super) fn of_policy(match_resources: &Value) -> Self {
        let selector = |field: &str| {
            LabelSelector::from_object(match_resources.get(field)).map_err(|error| error.to_string())
        };
        Self {
            rules: Some(rules(match_resources, "resourceRules")).filter(|rules| !rules.is_empty()),
            excluded: rules(match_resources, "excludeResourceRules"),
            equivalent: match_resources.str_at(&["matchPolicy"]) == "Equivalent",
            namespaces: selector("namespaceSelector"),
            selected: selector("objectSelector"),
        }
    }
}

fn rules(of: &Value, field: &str) -> Vec<Rule> {
    of.get(field).and_then(Value::as_array).unwrap_or_default().iter().map(Rule::of).collect()
}

/// A request that webhooks and policies are held against.
pub(super) struct Matcher<'a> {
    objects: &'a Arc<dyn Objects>,
    request: &'a Admission<'a>,
    equivalents: OnceLock<Vec<Equivalent>>,
    /// Looked for once.
    namespace_labels: OnceCell<Result<Map, Status>>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(objects: &'a Arc<dyn Objects>, request: &'a Admission<'a>) -> Self {
        Self { objects, request, equivalents: OnceLock::new(), namespace_labels: OnceCell::new() }
    }

    /// As what the request matches with the object as it is now, if it does.
    pub(super) async fn matches(
        &self,
        constraints: &Constraints,
        object: Option<&Value>,
    ) -> Result<Option<Invocation>, Status> {
        if self.by_rules(&constraints.excluded, constraints.equivalent).is_some() {
            return Ok(None);
        }
        let invocation = match &constraints.rules {
            Some(rules) => self.by_rules(rules, constraints.equivalent),
            None => Some(self.itself()),
        };
        let Some(invocation) = invocation else { return Ok(None) };
        let by_namespace = self.by_namespace(constraints, object).await;
        if matches!(by_namespace, Ok(false)) {
            return Ok(None);
        }
        let by_labels = self.by_labels(constraints, object);
        if matches!(by_labels, Ok(false)) {
            return Ok(None);
        }
        by_namespace?;
        by_labels?;
        Ok(Some(invocation))
    }

    fn itself(&self) -> Invocation {
        let attributes = self.request.attributes;
        let resource = [&attributes.group, &attributes.version, &attributes.resource].map(Clone::clone);
        Invocation { resource, kind: self.request.context.forms.kind().clone() }
    }

    fn by_rules(&self, rules: &[Rule], equivalent: bool) -> Option<Invocation> {
        if rules.is_empty() {
            return None;
        }
        let attributes = self.request.attributes;
        let asked = Asked {
            operation: name_of(self.request.operation),
            group: &attributes.group,
            version: &attributes.version,
            resource: &attributes.resource,
            subresource: &attributes.subresource,
            namespace: &attributes.namespace,
            name: self.request.context.name,
        };
        if rules.iter().any(|rule| rule.matches(&asked)) {
            return Some(self.itself());
        }
        if !equivalent {
            return None;
        }
        let equivalents = self.equivalents.get_or_init(|| self.request.context.forms.equivalents());
        let matching = rules.iter().find_map(|rule| {
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

    fn by_labels(&self, constraints: &Constraints, object: Option<&Value>) -> Result<bool, Status> {
        let selector = constraints.selected.as_ref().map_err(Status::internal)?;
        let matches = |object: Option<&Value>| object.is_some_and(|object| selector.matches(object.labels()));
        Ok(selector.is_everything() || matches(object) || matches(self.request.old))
    }

    async fn by_namespace(&self, constraints: &Constraints, object: Option<&Value>) -> Result<bool, Status> {
        let attributes = self.request.attributes;
        let is_namespaces = attributes.resource == "namespaces";
        if attributes.namespace.is_empty() && !is_namespaces {
            return Ok(true);
        }
        let selector = constraints.namespaces.as_ref().map_err(Status::internal)?;
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
            let found = self.objects.get(&resource, "", namespace, live).await;
            if let Some(found) = found.map_err(|status| Status::internal(status.message))? {
                return Ok(found.labels().clone());
            }
        }
        Err(Status::not_found("", "namespaces", namespace))
    }
}
