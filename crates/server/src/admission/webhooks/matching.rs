//! Which webhooks are asked about a request: what they match, and their conditions.

use coffer_types::{Status, Value};

use super::Webhooks;
use super::conditions::Verdict;
use super::hook::Hook;
use super::review::told;
use crate::admission::matching::Matcher;
use crate::admission::rule::Invocation;
use crate::ports::Admission;

/// A request that webhooks are chosen for.
pub(super) struct Chooser<'a> {
    webhooks: &'a Webhooks,
    request: &'a Admission<'a>,
    matcher: Matcher<'a>,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(webhooks: &'a Webhooks, request: &'a Admission<'a>) -> Self {
        Self { webhooks, request, matcher: Matcher::new(&webhooks.objects, request) }
    }

    /// How the webhook is asked about the object as it is now, if it is.
    pub(super) async fn choose(
        &self,
        hook: &Hook,
        object: Option<&Value>,
    ) -> Result<Option<Invocation>, Status> {
        let Some(invocation) = self.matcher.matches(&hook.constraints, object).await? else {
            return Ok(None);
        };
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
}
