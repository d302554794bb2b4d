//! One webhook is asked about one object.

use std::time::Duration;

use coffer_types::{Status, Value, random};

use super::Webhooks;
use super::conditions::Verdict;
use super::hook::{Hook, SideEffects};
use super::metrics::Rejection;
use super::review::{self, Answer, Encoded, Unusable};
use crate::admission::rule::{Invocation, name_of};
use crate::ports::{Admission, Operation};
use crate::quote;

/// What metrics say of an answer that allows.
const ALLOWED: u32 = 200;
/// What they say of a webhook that could not be reached.
const UNAVAILABLE: u32 = 503;

/// Why a webhook did not allow.
#[derive(Debug)]
pub(super) enum Failure {
    /// It could not be asked; the policy decides. The text, and the code for metrics.
    Calling(String, u32),
    /// It said no.
    Denied(Status),
    /// The request is refused, whatever the policy.
    Refused(Status),
}

impl Failure {
    /// A call that went wrong after it was answered, or could not be made.
    pub(super) fn calling(why: String, code: u32) -> Self {
        Self::Calling(why, code)
    }

    /// 500, whatever the policy.
    pub(super) fn internal(why: impl std::fmt::Display) -> Self {
        Self::Refused(Status::internal(why))
    }
}

impl Webhooks {
    /// Asks; warnings count whatever the answer is.
    pub(super) async fn call(
        &self,
        hook: &Hook,
        invocation: &Invocation,
        request: &Admission<'_>,
        objects: [Encoded; 2],
        warnings: &mut Vec<String>,
    ) -> Result<Answer, Failure> {
        if request.dry_run {
            match hook.side_effects {
                SideEffects::None => {}
                SideEffects::Unsaid => {
                    return Err(Failure::calling("Webhook SideEffects is nil".to_owned(), 400));
                }
                SideEffects::Some => {
                    let why = format!("admission webhook {} does not support dry run", quote(&hook.name));
                    return Err(Failure::Refused(Status::bad_request(why)));
                }
            }
        }
        let Some(version) = hook.review else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(Failure::calling(why.to_owned(), 400));
        };
        let uid = random::uuid(&*self.random).map_err(Failure::internal)?;
        let client = (*hook.client).as_ref();
        let client =
            client.map_err(|why| Failure::calling(format!("could not get REST client: {why}"), 500))?;
        let body = review::request(version, &uid, invocation, request, objects);
        let unanswered =
            |why: &str, code: u32| Failure::calling(format!("failed to call webhook: {why}"), code);
        let bytes = client
            .post(body, self.limit(hook, request))
            .await
            .map_err(|error| unanswered(&error.text, error.code.map_or(UNAVAILABLE, u32::from)))?;
        let answer =
            review::answer(version, self.phase, &uid, &bytes).map_err(|unusable| match unusable {
                Unusable::Undecodable(why) => unanswered(&why, UNAVAILABLE),
                Unusable::Invalid(why) => {
                    Failure::calling(format!("received invalid webhook response: {why}"), UNAVAILABLE)
                }
            })?;
        warnings.extend(answer.warnings.iter().cloned());
        if answer.allowed {
            return Ok(answer);
        }
        Err(Failure::Denied(review::refusal(&hook.name, answer.result.as_ref())))
    }

    /// The webhook's own time, or what is left of the request's.
    fn limit(&self, hook: &Hook, request: &Admission<'_>) -> Duration {
        let left = request.context.deadline.map(|deadline| deadline.saturating_sub(self.clock.monotonic()));
        left.map_or(hook.timeout, |left| left.min(hook.timeout))
    }

    /// Counts what conditions said.
    pub(super) fn note(&self, hook: &Hook, operation: Operation, verdict: &Verdict, elapsed: Duration) {
        if let Some(metrics) = self.metrics.get() {
            metrics.conditions([&hook.name, self.phase.step(), name_of(operation)], verdict, elapsed);
        }
    }

    /// The status to answer with, when an outcome stands in the way. It is counted, too.
    pub(super) fn judge(
        &self,
        hook: &Hook,
        request: &Admission<'_>,
        outcome: Result<(), Failure>,
        elapsed: Duration,
    ) -> Result<(), Status> {
        let step = self.phase.step();
        let labels = [hook.name.as_str(), step, name_of(request.operation)];
        let (code, why, result) = match outcome {
            Ok(()) => (ALLOWED, None, Ok(())),
            Err(Failure::Calling(text, code)) if hook.fails_open => {
                tracing::warn!(webhook = hook.name, why = text, "failed calling webhook, failing open");
                if let Some(metrics) = self.metrics.get() {
                    metrics.failed_open(&hook.name, step);
                }
                (code, None, Ok(()))
            }
            Err(Failure::Calling(text, code)) => {
                tracing::warn!(webhook = hook.name, why = text, "failed calling webhook, failing closed");
                let why = format!("failed calling webhook {}: {text}", quote(&hook.name));
                (code, Some((Rejection::Calling, code)), Err(Status::internal(why)))
            }
            Err(Failure::Denied(status)) => {
                let code = u32::from(status.code);
                (code, Some((Rejection::Denied, code)), Err(status))
            }
            Err(Failure::Refused(status)) => (0, Some((Rejection::Internal, 0)), Err(status)),
        };
        if let Some(metrics) = self.metrics.get() {
            metrics.asked(labels, code, why.is_some(), elapsed);
            if let Some((why, code)) = why {
                metrics.rejected(labels, why, code);
            }
        }
        result
    }
}

/// An object as a webhook sees it.
pub(super) fn encode(
    request: &Admission<'_>,
    object: Option<&Value>,
    invocation: &Invocation,
) -> Result<Encoded, Status> {
    let Some(object) = object else { return Ok(Encoded::absent()) };
    let bytes = request.context.forms.encode(object, &invocation.kind).map_err(Status::internal)?;
    Ok(Encoded::new(bytes))
}
