//! The machine's clock, and any clock as the timer of HTTP connections.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use coffer_types::time::{Clock, Sleep, Timestamp};
use parking_lot::Mutex;
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

/// A [`Clock`] for the deadlines that hyper keeps itself.
#[derive(Clone)]
pub struct HttpTimer {
    clock: Arc<dyn Clock>,
    /// An instant and the clock's time at it: hyper counts in instants.
    start: std::time::Instant,
    started: Duration,
}

impl HttpTimer {
    /// Over `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let started = clock.monotonic();
        Self { clock, start: std::time::Instant::now(), started }
    }
}

impl hyper::rt::Timer for HttpTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HttpSleep(Mutex::new(self.clock.sleep(duration))))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep(deadline.saturating_duration_since(self.now()))
    }

    fn now(&self) -> std::time::Instant {
        self.start + self.clock.monotonic().saturating_sub(self.started)
    }
}

/// Behind a lock only because hyper wants to share it; it is polled through `&mut`.
struct HttpSleep(Mutex<Sleep>);

impl Future for HttpSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.get_mut().as_mut().poll(context)
    }
}

impl hyper::rt::Sleep for HttpSleep {}

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
