//! A clock that stands still until it is told otherwise.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use coffer_types::time::{Clock, Sleep, Timestamp};
use parking_lot::Mutex;

/// A clock that tests set. Clones show the same time.
#[derive(Clone, Default)]
pub struct SimClock(Arc<Mutex<Time>>);

#[derive(Default)]
struct Time {
    monotonic: Duration,
    /// The wall time when monotonic time was zero.
    wall_start: Timestamp,
    next: u64,
    /// Who waits: by the time that it waits for, then in order of beginning.
    sleepers: BTreeMap<(Duration, u64), Waker>,
}

impl SimClock {
    /// A clock whose wall time is `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(Time { wall_start: now, ..Time::default() })))
    }

    /// Lets time pass and wakes those whose time has come.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut time = self.0.lock();
            time.monotonic = time.monotonic.saturating_add(by);
            let after = (time.monotonic.saturating_add(Duration::from_nanos(1)), 0);
            let later = time.sleepers.split_off(&after);
            std::mem::replace(&mut time.sleepers, later)
        };
        for waker in due.into_values() {
            waker.wake();
        }
    }

    /// Sets the wall time, as an administrator might, without any time passing.
    pub fn set_wall(&self, now: Timestamp) {
        let mut time = self.0.lock();
        time.wall_start = now.checked_sub(signed(time.monotonic)).unwrap_or(Timestamp::MIN);
    }

    /// How many wait.
    pub fn sleepers(&self) -> usize {
        self.0.lock().sleepers.len()
    }

    /// When the next sleeper will be woken, in monotonic time.
    pub fn next_wake(&self) -> Option<Duration> {
        self.0.lock().sleepers.keys().next().map(|(due, _)| *due)
    }
}

fn signed(duration: Duration) -> coffer_types::time::SignedDuration {
    coffer_types::time::SignedDuration::try_from(duration).unwrap_or(coffer_types::time::SignedDuration::MAX)
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let time = self.0.lock();
        time.wall_start.checked_add(signed(time.monotonic)).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().monotonic
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let due = self.0.lock().monotonic.saturating_add(duration);
        Box::pin(SimSleep { clock: self.clone(), due, place: None })
    }
}

struct SimSleep {
    clock: SimClock,
    due: Duration,
    /// Its place among the sleepers, once it waits.
    place: Option<u64>,
}

impl Future for SimSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut time = clock.0.lock();
        if self.due <= time.monotonic {
            return Poll::Ready(());
        }
        let place = match self.place {
            Some(place) => place,
            None => {
                time.next += 1;
                time.next
            }
        };
        self.place = Some(place);
        time.sleepers.insert((self.due, place), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for SimSleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.clock.0.lock().sleepers.remove(&(self.due, place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleepers_wake_in_time_and_not_before() {
        let clock = SimClock::new(Timestamp::from_second(1_700_000_000).expect("in range"));
        let sleeper = tokio::spawn(clock.sleep(Duration::from_secs(10)));
        tokio::task::yield_now().await;
        assert_eq!((clock.sleepers(), clock.next_wake()), (1, Some(Duration::from_secs(10))));
        clock.advance(Duration::from_millis(9_999));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_millis(1));
        sleeper.await.expect("no panic");
        assert_eq!(clock.sleepers(), 0);
        assert_eq!((clock.now().as_second(), clock.monotonic()), (1_700_000_010, Duration::from_secs(10)));
    }

    #[tokio::test]
    async fn setting_the_wall_moves_no_sleeper() {
        let clock = SimClock::default();
        clock.advance(Duration::from_secs(5));
        let forgotten = clock.sleep(Duration::from_secs(1));
        clock.set_wall(Timestamp::from_second(77).expect("in range"));
        assert_eq!((clock.now().as_second(), clock.monotonic()), (77, Duration::from_secs(5)));
        drop(forgotten);
        assert_eq!(clock.sleepers(), 0);
    }
}
