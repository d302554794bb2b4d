//! Leader election on a Lease, with client-go's rules.
//!
//! [`judge`] is the rule; [`Election::run`] performs it. A leader that cannot
//! renew within its deadline stops its work before anyone else may start.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::{Clock, Timestamp, rfc3339_micro};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::api::{Api, ApiError, LEASES, ObjectKey};

/// Names and times.
#[derive(Debug, Clone)]
pub struct ElectionConfig {
    /// The Lease.
    pub lease: ObjectKey,
    /// Who runs; different for every process.
    pub identity: String,
    /// How long others wait after they last saw a renewal.
    pub lease_duration: Duration,
    /// How long a leader tries to renew before it steps down.
    pub renew_deadline: Duration,
    /// The time between tries.
    pub retry_period: Duration,
}

impl ElectionConfig {
    /// How long one call may take: half of the deadline, as upstream's, so that there is time for another try.
    fn call_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// Whether the three times fit together; client-go's rules and texts.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), String> {
        if self.lease_duration <= self.renew_deadline {
            return Err("leaseDuration must be greater than renewDeadline".to_owned());
        }
        // So that the jitter of client-go's retries fits in.
        if self.renew_deadline <= self.retry_period.mul_f64(1.2) {
            return Err("renewDeadline must be greater than retryPeriod*JitterFactor".to_owned());
        }
        if self.lease_duration < Duration::from_secs(1) {
            return Err("leaseDuration must be greater than zero".to_owned());
        }
        if self.retry_period.is_zero() {
            return Err("retryPeriod must be greater than zero".to_owned());
        }
        Ok(())
    }
}

/// Upstream's defaults for the three times.
pub const DEFAULT_TIMES: (Duration, Duration, Duration) =
    (Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2));

/// How an election ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The process is to stop.
    Shutdown,
    /// Leadership was lost; the process should end or run again.
    Lost,
    /// The work came to its end by itself.
    Finished,
}

/// What was last seen of the Lease.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Seen {
    holder: String,
    renewed: String,
    transitions: i64,
    /// When this state was first seen, on our own clock: others' clocks are not trusted.
    at: Duration,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// There is no Lease.
    Create,
    /// It is ours.
    Renew,
    /// It is free, or its holder has been silent for too long.
    Take,
    /// Somebody else leads.
    Wait,
}

fn judge(seen: Option<&Seen>, me: &str, lease_duration: Duration, now: Duration) -> Verdict {
    match seen {
        None => Verdict::Create,
        Some(seen) if seen.holder == me => Verdict::Renew,
        Some(seen) if seen.holder.is_empty() || lease_duration <= now.saturating_sub(seen.at) => {
            Verdict::Take
        }
        Some(_) => Verdict::Wait,
    }
}

/// Takes part in an election.
pub struct Election {
    config: ElectionConfig,
    api: Api,
    clock: Arc<dyn Clock>,
    seen: Option<Seen>,
}

impl Election {
    /// A candidate.
    pub fn new(config: ElectionConfig, api: Api, clock: Arc<dyn Clock>) -> Self {
        Self { config, api, clock, seen: None }
    }

    /// Waits to become the leader, then runs `work` until it ends, leadership is lost, or `shutdown`.
    /// The token that `work` gets is cancelled in the last two cases, and it is waited for.
    pub async fn run<F, Fut>(mut self, shutdown: CancellationToken, work: F) -> Ended
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()>,
    {
        loop {
            let patience = self.config.call_timeout();
            let held = tokio::select! {
                () = shutdown.cancelled() => return Ended::Shutdown,
                held = self.attempt(patience) => held,
            };
            if held {
                break;
            }
            tokio::select! {
                () = shutdown.cancelled() => return Ended::Shutdown,
                () = self.clock.sleep(self.config.retry_period) => {}
            }
        }
        tracing::info!(lease = %self.config.lease, identity = self.config.identity, "leading");
        let stop = CancellationToken::new();
        let mut work = std::pin::pin!(work(stop.clone()));
        let mut renewed = self.clock.monotonic();
        let ended = loop {
            tokio::select! {
                () = &mut work => break Ended::Finished,
                () = shutdown.cancelled() => break Ended::Shutdown,
                () = self.clock.sleep(self.config.retry_period) => {}
            }
            let left =
                self.config.renew_deadline.saturating_sub(self.clock.monotonic().saturating_sub(renewed));
            let patience = left.min(self.config.call_timeout());
            // The work goes on while the Lease is renewed.
            let held = tokio::select! {
                () = &mut work => break Ended::Finished,
                held = self.attempt(patience) => held,
            };
            let now = self.clock.monotonic();
            if held {
                renewed = now;
            } else if self.config.renew_deadline <= now.saturating_sub(renewed) {
                tracing::error!(lease = %self.config.lease, "the lease could not be renewed: stepping down");
                break Ended::Lost;
            }
        };
        stop.cancel();
        if ended != Ended::Finished {
            work.await;
        }
        if ended != Ended::Lost {
            self.release().await;
        }
        ended
    }

    /// One try; whether the Lease is ours afterwards. A server that does not answer in time is asked again later.
    async fn attempt(&mut self, patience: Duration) -> bool {
        let clock = self.clock.clone();
        let result = tokio::select! {
            result = self.try_acquire() => result,
            () = clock.sleep(patience) => Err(ApiError::unreachable("no answer in time")),
        };
        match result {
            Ok(held) => held,
            Err(error) => {
                tracing::debug!(lease = %self.config.lease, code = error.code, "the lease could not be written");
                false
            }
        }
    }

    async fn try_acquire(&mut self) -> Result<bool, ApiError> {
        let lease: Option<Json> = self.api.get(&LEASES, &self.config.lease).await?;
        self.look(lease.as_ref());
        let now = self.clock.now();
        let config = &self.config;
        let verdict =
            judge(self.seen.as_ref(), &config.identity, config.lease_duration, self.clock.monotonic());
        let written: Json = match (verdict, lease) {
            (Verdict::Wait, _) => return Ok(false),
            (Verdict::Create, _) | (_, None) => {
                let body = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": config.lease.name, "namespace": config.lease.namespace},
                    "spec": self.spec(now, Some(now), 0),
                });
                self.api.create(&LEASES, &config.lease, "", &body, "").await?
            }
            (Verdict::Renew | Verdict::Take, Some(mut lease)) => {
                let before = self.seen.as_ref().map_or(0, |seen| seen.transitions);
                let (acquired, transitions) = match verdict {
                    Verdict::Take => (Some(now), before + 1),
                    _ => (None, before),
                };
                let spec = self.spec(now, acquired, transitions);
                if let (Some(target), Some(new)) = (lease["spec"].as_object_mut(), spec.as_object()) {
                    target.extend(new.clone());
                } else {
                    lease["spec"] = spec;
                }
                self.api.update(&LEASES, &config.lease, &lease, "").await?
            }
        };
        self.look(Some(&written));
        Ok(true)
    }

    fn look(&mut self, lease: Option<&Json>) {
        let Some(lease) = lease else {
            self.seen = None;
            return;
        };
        let text = |field: &str| lease["spec"][field].as_str().unwrap_or_default().to_owned();
        let new = Seen {
            holder: text("holderIdentity"),
            renewed: text("renewTime"),
            transitions: lease["spec"]["leaseTransitions"].as_i64().unwrap_or_default(),
            at: self.clock.monotonic(),
        };
        let same =
            self.seen.as_ref().is_some_and(|seen| seen.holder == new.holder && seen.renewed == new.renewed);
        if !same {
            self.seen = Some(new);
        }
    }

    fn spec(&self, now: Timestamp, acquired: Option<Timestamp>, transitions: i64) -> Json {
        let mut spec = json!({
            "holderIdentity": self.config.identity,
            "leaseDurationSeconds": self.config.lease_duration.as_secs(),
            "renewTime": rfc3339_micro(now),
            "leaseTransitions": transitions,
        });
        if let Some(acquired) = acquired {
            spec["acquireTime"] = rfc3339_micro(acquired).into();
        }
        spec
    }

    /// Gives the Lease up, so that the next leader need not wait.
    async fn release(&mut self) {
        let now = rfc3339_micro(self.clock.now());
        let body = json!({"spec": {
            "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now,
        }});
        let write = async {
            // Only if it is still ours.
            let lease: Option<Json> = self.api.get(&LEASES, &self.config.lease).await?;
            let Some(lease) = lease else { return Ok(()) };
            if lease["spec"]["holderIdentity"] != self.config.identity.as_str() {
                return Ok(());
            }
            let mut body = body;
            body["metadata"]["resourceVersion"] = lease["metadata"]["resourceVersion"].clone();
            self.api.merge_patch::<Json>(&LEASES, &self.config.lease, "", &body, "").await.map(|_| ())
        };
        tokio::select! {
            result = write => if let Err(error) = result {
                tracing::debug!(code = error.code, "the lease could not be released");
            },
            () = self.clock.sleep(self.config.retry_period) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o9_times_must_fit_together() {
        let config = |lease, renew, retry| ElectionConfig {
            lease: ObjectKey::new("ns", "l"),
            identity: "me".to_owned(),
            lease_duration: Duration::from_secs(lease),
            renew_deadline: Duration::from_secs(renew),
            retry_period: Duration::from_secs(retry),
        };
        let cases = [
            ((15, 10, 2), Ok(())),
            ((10, 10, 2), Err("leaseDuration must be greater than renewDeadline")),
            ((15, 10, 9), Err("renewDeadline must be greater than retryPeriod*JitterFactor")),
            ((15, 10, 8), Ok(())),
            ((15, 10, 0), Err("retryPeriod must be greater than zero")),
            ((1, 0, 0), Err("renewDeadline must be greater than retryPeriod*JitterFactor")),
        ];
        for ((lease, renew, retry), expected) in cases {
            let found = config(lease, renew, retry).check();
            assert_eq!(found.as_ref().copied().map_err(String::as_str), expected, "{lease} {renew} {retry}");
        }
    }

    #[test]
    fn who_may_lead() {
        let seen = |holder: &str, at| Some(Seen { holder: holder.to_owned(), at, ..Seen::default() });
        let seconds = Duration::from_secs;
        let cases = [
            ("no lease", None, 0, Verdict::Create),
            ("ours", seen("me", seconds(0)), 5, Verdict::Renew),
            ("ours, even when it is old", seen("me", seconds(0)), 500, Verdict::Renew),
            ("given up", seen("", seconds(0)), 1, Verdict::Take),
            ("another's", seen("other", seconds(0)), 14, Verdict::Wait),
            ("another's, silent (O9)", seen("other", seconds(0)), 15, Verdict::Take),
        ];
        for (name, seen, now, expected) in cases {
            assert_eq!(judge(seen.as_ref(), "me", seconds(15), seconds(now)), expected, "{name}");
        }
    }
}
