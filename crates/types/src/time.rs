//! Time as a port: the machine's clock in production, a settable one in tests.
//!
//! No component sleeps or reads a clock except through [`Clock`].

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub use jiff::{SignedDuration, Timestamp};

/// A future that a clock hands out.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wall time, monotonic time, and waiting.
pub trait Clock: Send + Sync {
    /// The wall time, for what is written into objects.
    fn now(&self) -> Timestamp;

    /// Time since an arbitrary start that never goes back, for measuring.
    fn monotonic(&self) -> Duration;

    /// Completes once `duration` of monotonic time has passed.
    fn sleep(&self, duration: Duration) -> Sleep;
}

/// `metav1.Time` in JSON: RFC 3339 in UTC with whole seconds.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `metav1.MicroTime` in JSON: RFC 3339 in UTC with six digits of fraction.
pub fn rfc3339_micro(time: Timestamp) -> String {
    format!("{}.{:06}Z", time.strftime("%Y-%m-%dT%H:%M:%S"), time.subsec_microsecond_total())
}

trait SubsecMicros {
    fn subsec_microsecond_total(&self) -> u32;
}

impl SubsecMicros for Timestamp {
    fn subsec_microsecond_total(&self) -> u32 {
        // Before 1970 the fraction of a timestamp is negative.
        u32::try_from(self.as_microsecond().rem_euclid(1_000_000)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_upstream() {
        let time = Timestamp::from_microsecond(1_700_000_000_123_456).expect("in range");
        assert_eq!(rfc3339(time), "2023-11-14T22:13:20Z");
        assert_eq!(rfc3339_micro(time), "2023-11-14T22:13:20.123456Z");
    }
}
