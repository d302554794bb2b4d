//! When a plugin is asked how it is, and how long an answer counts.

use std::time::Duration;

/// Between two questions to a plugin that is well.
pub const HEALTHY_INTERVAL: Duration = Duration::from_secs(60);
/// Between two questions to a plugin that is not.
pub const UNHEALTHY_INTERVAL: Duration = Duration::from_secs(10);
/// How long a good answer also answers health checks.
pub const HEALTHY_ANSWER: Duration = Duration::from_secs(20);
/// How long a bad one does.
pub const UNHEALTHY_ANSWER: Duration = Duration::from_secs(3);

/// How long to wait until the plugin is asked again.
pub const fn next(well: bool) -> Duration {
    if well { HEALTHY_INTERVAL } else { UNHEALTHY_INTERVAL }
}

/// The last answer, which health checks and polling share.
#[derive(Debug, Default)]
pub struct LastAnswer(Option<(Duration, Result<(), String>)>);

impl LastAnswer {
    /// The answer, while it is fresh.
    pub fn fresh(&self, now: Duration) -> Option<Result<(), String>> {
        let (since, answer) = self.0.as_ref()?;
        let counts = if answer.is_ok() { HEALTHY_ANSWER } else { UNHEALTHY_ANSWER };
        (now < *since + counts).then(|| answer.clone())
    }

    /// Keeps an answer that came now.
    pub fn keep(&mut self, answer: Result<(), String>, now: Duration) {
        self.0 = Some((now, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    /// Upstream's TestKMSPluginHealthzTTL and TestKMSv2PluginHealthzTTL.
    #[test]
    fn test_kms_plugin_healthz_ttl() {
        let mut last = LastAnswer::default();
        assert_eq!(last.fresh(seconds(0)), None);
        last.keep(Ok(()), seconds(100));
        assert_eq!(last.fresh(seconds(119)), Some(Ok(())));
        assert_eq!(last.fresh(seconds(120)), None);
        last.keep(Err("down".to_owned()), seconds(200));
        assert_eq!(last.fresh(seconds(202)), Some(Err("down".to_owned())));
        assert_eq!(last.fresh(seconds(203)), None);
        assert_eq!((next(true), next(false)), (seconds(60), seconds(10)));
    }
}
