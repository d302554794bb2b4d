//! What is counted about webhooks, under upstream's names.

use std::sync::Arc;
use std::time::Duration;

use coffer_runtime::metrics::{Family, Registry};

use super::conditions::Verdict;

/// Upstream's bounds.
const SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Upstream's bounds for conditions.
const CONDITION_SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
/// The labels of what is counted about conditions.
const CONDITION_LABELS: &[&str] = &["name", "kind", "type", "operation"];
/// The largest code that is told: a webhook may answer with any.
const MAX_CODE: u32 = 600;

/// The metrics of one phase.
pub(super) struct WebhookMetrics {
    durations: Arc<Family>,
    rejections: Arc<Family>,
    failed_open: Arc<Family>,
    requests: Arc<Family>,
    condition_errors: Arc<Family>,
    condition_exclusions: Arc<Family>,
    condition_durations: Arc<Family>,
}

/// Why a webhook stood in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// It said no.
    Denied,
    /// It could not be asked.
    Calling,
    /// A fault of the server's own.
    Internal,
}

impl Rejection {
    fn error_type(self) -> &'static str {
        match self {
            Self::Denied => "no_error",
            Self::Calling => "calling_webhook_error",
            Self::Internal => "apiserver_internal_error",
        }
    }
}

impl WebhookMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            durations: registry.histogram(
                "apiserver_admission_webhook_admission_duration_seconds",
                "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
                &["name", "type", "operation", "rejected"],
                SECONDS,
            ),
            rejections: registry.counter(
                "apiserver_admission_webhook_rejection_count",
                "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
                &["name", "type", "operation", "error_type", "rejection_code"],
            ),
            failed_open: registry.counter(
                "apiserver_admission_webhook_fail_open_count",
                "Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).",
                &["name", "type"],
            ),
            requests: registry.counter(
                "apiserver_admission_webhook_request_total",
                "Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
                &["name", "type", "operation", "code", "rejected"],
            ),
            condition_errors: registry.counter(
                "apiserver_admission_match_condition_evaluation_errors_total",
                "Admission match condition evaluation errors count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
                CONDITION_LABELS,
            ),
            condition_exclusions: registry.counter(
                "apiserver_admission_match_condition_exclusions_total",
                "Admission match condition evaluation exclusions count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
                CONDITION_LABELS,
            ),
            condition_durations: registry.histogram(
                "apiserver_admission_match_condition_evaluation_seconds",
                "Admission match condition evaluation time in seconds, identified by name and broken out for each kind containing matchConditions (webhook or policy), operation and type (validate or admit).",
                CONDITION_LABELS,
                CONDITION_SECONDS,
            ),
        }
    }

    /// Conditions were evaluated.
    pub(super) fn conditions(
        &self,
        [name, step, operation]: [&str; 3],
        verdict: &Verdict,
        elapsed: Duration,
    ) {
        let labels = [name, "webhook", step, operation];
        self.condition_durations.observe(&labels, elapsed.as_secs_f64());
        match verdict {
            Verdict::Asked => {}
            Verdict::Excluded => {
                // Upstream calls the phase otherwise here.
                let step = if step == "validating" { "validate" } else { step };
                self.condition_exclusions.increment(&[name, "webhook", step, operation]);
            }
            Verdict::Unknown(errors, _) => {
                (0..*errors).for_each(|_| self.condition_errors.increment(&labels));
            }
        }
    }

    pub(super) fn asked(
        &self,
        [name, step, operation]: [&str; 3],
        code: u32,
        rejected: bool,
        elapsed: Duration,
    ) {
        let rejected = if rejected { "true" } else { "false" };
        let code = code.min(MAX_CODE).to_string();
        self.requests.increment(&[name, step, operation, &code, rejected]);
        self.durations.observe(&[name, step, operation, rejected], elapsed.as_secs_f64());
    }

    pub(super) fn rejected(&self, [name, step, operation]: [&str; 3], why: Rejection, code: u32) {
        let code = code.min(MAX_CODE).to_string();
        self.rejections.increment(&[name, step, operation, why.error_type(), &code]);
    }

    pub(super) fn failed_open(&self, name: &str, step: &str) {
        self.failed_open.increment(&[name, step]);
    }
}
