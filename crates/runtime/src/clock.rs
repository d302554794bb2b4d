//! The machine's clock.

use std::time::Duration;

use coffer_types::time::{Clock, Sleep, Timestamp};
use tokio::time::Instant;

/// The wall clock and the timers of the async runtime. Waiting needs a running tokio runtime.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleeping_takes_the_time_that_was_asked_for() {
        let clock = SystemClock::new();
        let (wall, monotonic) = (clock.now(), clock.monotonic());
        clock.sleep(Duration::from_millis(20)).await;
        assert!(monotonic + Duration::from_millis(20) <= clock.monotonic());
        // The wall clock may be set back by an administrator, but not by years within a test.
        assert!(wall.as_second() - 1 <= clock.now().as_second());
    }
}
