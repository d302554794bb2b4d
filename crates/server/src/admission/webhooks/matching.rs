//! Who is asked about a request: rules, equivalent resources, and the labels of namespace and object.

use std::sync::OnceLock;

use coffer_types::Value;
use coffer_types::meta::Meta as _;
use coffer_types::{Map, Status};
use tokio::sync::OnceCell;

use super::Webhooks;
use super::conditions::Verdict;
use super::hook::Hook;
use super::review::told;
use super::rule::{Asked, Invocation, name_of};
use crate::ports::{Admission, Equivalent, GroupResource, Operation};

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
