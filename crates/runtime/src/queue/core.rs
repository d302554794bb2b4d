//! Which key runs next: a pure state machine.
//!
//! A key is in at most one of three places: waiting for its time, ready in a
//! lane, or running. What is asked for while it runs is kept and done after.
//!
//! | asked | idle | scheduled | ready | running |
//! |---|---|---|---|---|
//! | `add` | ready | ready, schedule dropped | keeps its age, takes the higher urgency | runs again after |
//! | `add_after` | scheduled | the earlier time wins | stays ready | counts after it has ended, unless it is asked to run again |
//! | `take` | – | – | running | – |
//! | `done` | – | – | – | ready again, scheduled, or gone |

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

/// How soon a key should run. Higher is sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Its turn came round; nobody waits for it.
    Periodic,
    /// New or changed by somebody, who waits.
    Fresh,
    /// It is being deleted, and something else waits for it to be gone.
    Deletion,
}

/// Limits and times of a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueConfig {
    /// How many keys of one lane may run at once.
    pub per_lane: usize,
    /// How many keys may run at once in all lanes together, and how many deletions may twice. The first of each
    /// lane does not count, so that however many dead stores there are, another one still has its turn.
    pub total: usize,
    /// A periodic key that has waited so long counts as fresh, so that a stream of fresh ones cannot starve it.
    pub ageing: Duration,
    /// The first wait after a failure; each further one is twice as long.
    pub backoff_base: Duration,
    /// The longest wait after a failure.
    pub backoff_max: Duration,
    /// Retries a second that all keys share.
    pub retry_rate: f64,
    /// Retries that may come at once.
    pub retry_burst: f64,
}

impl Default for QueueConfig {
    /// Upstream's limiter: 1 s doubling to 7 minutes for one key, 10 a second with a burst of 100 for all.
    fn default() -> Self {
        Self {
            per_lane: 1,
            total: 64,
            ageing: Duration::from_secs(30),
            backoff_base: Duration::from_secs(1),
            backoff_max: Duration::from_secs(420),
            retry_rate: 10.0,
            retry_burst: 100.0,
        }
    }
}

/// What a queue hands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken<K> {
    /// The key to work on.
    pub key: K,
    /// Why it is worked on now.
    pub urgency: Urgency,
    /// How long it was ready.
    pub waited: Duration,
}

/// What shall happen with a key after it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing, and its failures are forgotten.
    Forget,
    /// Again after this time; its failures are forgotten.
    After(Duration),
    /// Again after its back-off.
    Retry,
}

/// The state. Every method takes the present monotonic time, which never goes back.
#[derive(Debug)]
pub struct Queue<K, L> {
    config: QueueConfig,
    entries: HashMap<K, Entry<L>>,
    lanes: HashMap<L, Lane<K>>,
    /// Ordered by time, then by when they were asked for.
    schedule: BTreeSet<(Duration, u64, K)>,
    running: usize,
    /// How many of those that run are deletions.
    deleting: usize,
    ready: usize,
    sequence: u64,
    bucket: Bucket,
}

#[derive(Debug)]
struct Entry<L> {
    lane: L,
    failures: u32,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Idle,
    Scheduled { at: Duration, sequence: u64 },
    Ready(Ticket),
    Running { lane_counted: bool, again: Option<Urgency>, later: Option<Duration> },
}

#[derive(Debug, Clone, Copy)]
struct Ticket {
    urgency: Urgency,
    since: Duration,
    sequence: u64,
}

/// A place in a line: since when, then in which order it was asked for.
type Line<K> = BTreeSet<(Duration, u64, K)>;

/// One line for each urgency, and how many keys run.
#[derive(Debug)]
struct Lane<K> {
    periodic: Line<K>,
    fresh: Line<K>,
    deletion: Line<K>,
    running: usize,
}

impl<K> Default for Lane<K> {
    fn default() -> Self {
        Self { periodic: Line::new(), fresh: Line::new(), deletion: Line::new(), running: 0 }
    }
}

impl<K: Ord> Lane<K> {
    fn line(&mut self, urgency: Urgency) -> &mut Line<K> {
        match urgency {
            Urgency::Periodic => &mut self.periodic,
            Urgency::Fresh => &mut self.fresh,
            Urgency::Deletion => &mut self.deletion,
        }
    }

    fn is_empty(&self) -> bool {
        self.running == 0 && self.periodic.is_empty() && self.fresh.is_empty() && self.deletion.is_empty()
    }
}

impl<K, L> Queue<K, L>
where
    K: Clone + Eq + Hash + Ord + Debug,
    L: Clone + Eq + Hash + Debug,
{
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        let bucket = Bucket { tokens: config.retry_burst, at: Duration::ZERO };
        Self {
            config,
            entries: HashMap::new(),
            lanes: HashMap::new(),
            schedule: BTreeSet::new(),
            running: 0,
            deleting: 0,
            ready: 0,
            sequence: 0,
            bucket,
        }
    }

    /// Asks for `key` to run as soon as its lane allows. The lane of a key that is ready or running stays.
    pub fn add(&mut self, key: K, lane: L, urgency: Urgency, now: Duration) {
        let sequence = self.tick();
        let entry = self.entry(&key, &lane);
        match entry.place {
            Place::Idle => entry.lane = lane,
            Place::Scheduled { at, sequence } => {
                entry.lane = lane;
                self.schedule.remove(&(at, sequence, key.clone()));
            }
            Place::Ready(ticket) if urgency <= ticket.urgency => return,
            Place::Ready(ticket) => {
                self.unready(&key, ticket);
                self.make_ready(key, Ticket { urgency, ..ticket });
                return;
            }
            Place::Running { ref mut again, .. } => {
                *again = Some(again.map_or(urgency, |before| before.max(urgency)));
                return;
            }
        }
        self.make_ready(key, Ticket { urgency, since: now, sequence });
    }

    /// Asks for `key` to run once `delay` has passed.
    pub fn add_after(&mut self, key: K, lane: L, delay: Duration, now: Duration) {
        let at = now.saturating_add(delay);
        let new = self.tick();
        let entry = self.entry(&key, &lane);
        match entry.place {
            Place::Idle => {
                entry.lane = lane;
                entry.place = Place::Scheduled { at, sequence: new };
                self.schedule.insert((at, new, key));
            }
            Place::Scheduled { at: before, sequence } if at < before => {
                entry.lane = lane;
                entry.place = Place::Scheduled { at, sequence: new };
                self.schedule.remove(&(before, sequence, key.clone()));
                self.schedule.insert((at, new, key));
            }
            Place::Scheduled { .. } | Place::Ready(_) => {}
            Place::Running { ref mut later, .. } => {
                *later = Some(later.map_or(at, |before| before.min(at)));
            }
        }
    }

    /// The next key that may run, if any. It runs until [`Queue::done`].
    pub fn take(&mut self, now: Duration) -> Option<Taken<K>> {
        self.wake(now);
        let key = self.best(now)?;
        let entry = self.entries.get_mut(&key)?;
        let Place::Ready(ticket) = entry.place else { return None };
        // A deletion takes no place in a lane: it waits for no store.
        let lane_counted = ticket.urgency < Urgency::Deletion;
        entry.place = Place::Running { lane_counted, again: None, later: None };
        let lane = entry.lane.clone();
        self.unready(&key, ticket);
        self.running += 1;
        if lane_counted {
            self.lanes.entry(lane).or_default().running += 1;
        } else {
            self.deleting += 1;
        }
        Some(Taken { key, urgency: ticket.urgency, waited: now.saturating_sub(ticket.since) })
    }

    /// Ends the run of `key`; returns how long a retry waits.
    pub fn done(&mut self, key: &K, next: Next, now: Duration) -> Option<Duration> {
        let entry = self.entries.get_mut(key)?;
        let Place::Running { lane_counted, again, later } = entry.place else { return None };
        entry.place = Place::Idle;
        let lane = entry.lane.clone();
        self.running -= 1;
        if !lane_counted {
            self.deleting -= 1;
        } else if let Some(state) = self.lanes.get_mut(&lane) {
            state.running -= 1;
        }
        self.drop_empty_lane(&lane);
        let wait = match next {
            Next::Forget => None,
            Next::After(delay) => Some(delay),
            Next::Retry => Some(self.backoff(key, now)),
        };
        if next != Next::Retry
            && let Some(entry) = self.entries.get_mut(key)
        {
            entry.failures = 0;
        }
        if let Some(urgency) = again {
            self.add(key.clone(), lane, urgency, now);
        } else {
            if let Some(delay) = wait {
                self.add_after(key.clone(), lane.clone(), delay, now);
            }
            if let Some(at) = later {
                self.add_after(key.clone(), lane, at.saturating_sub(now), now);
            }
        }
        if self
            .entries
            .get(key)
            .is_some_and(|entry| matches!(entry.place, Place::Idle) && entry.failures == 0)
        {
            self.entries.remove(key);
        }
        wait
    }

    /// Drops whatever is planned for `key`. A run goes on to its end.
    pub fn forget(&mut self, key: &K) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.failures = 0;
        match &mut entry.place {
            Place::Running { again, later, .. } => {
                (*again, *later) = (None, None);
                return;
            }
            Place::Idle => {}
            Place::Scheduled { at, sequence } => {
                let entry = (*at, *sequence, key.clone());
                self.schedule.remove(&entry);
            }
            Place::Ready(ticket) => {
                let ticket = *ticket;
                self.unready(key, ticket);
            }
        }
        self.entries.remove(key);
    }

    /// When [`Queue::take`] may next answer without another call, `None` for never.
    pub fn next_wake(&self) -> Option<Duration> {
        self.schedule.first().map(|(at, ..)| *at)
    }

    /// How many keys are ready.
    pub fn depth(&self) -> usize {
        self.ready
    }

    /// How many keys run.
    pub fn running(&self) -> usize {
        self.running
    }

    /// How many keys are known: scheduled, ready, running or backing off.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn wake(&mut self, now: Duration) {
        while let Some((at, ..)) = self.schedule.first()
            && *at <= now
            && let Some((at, _, key)) = self.schedule.pop_first()
        {
            let sequence = self.tick();
            self.make_ready(key, Ticket { urgency: Urgency::Periodic, since: at, sequence });
        }
    }

    /// The most urgent of the lanes' firsts; the oldest among equals. Linear in the lanes, of which there are
    /// as many as stores in use.
    fn best(&self, now: Duration) -> Option<K> {
        let firsts = self.lanes.values().filter_map(|lane| self.first_of(lane, now));
        firsts
            .min_by(|(left, left_place), (right, right_place)| {
                right
                    .cmp(left)
                    .then_with(|| (left_place.0, left_place.1).cmp(&(right_place.0, right_place.1)))
            })
            .map(|(_, (_, _, key))| key.clone())
    }

    fn first_of<'a>(&self, lane: &'a Lane<K>, now: Duration) -> Option<(Urgency, &'a (Duration, u64, K))> {
        // Deletions wait for no store, and still do not flood the API server.
        if let Some(first) = lane.deletion.first()
            && self.deleting < self.config.total.saturating_mul(2)
        {
            return Some((Urgency::Deletion, first));
        }
        let full = 0 < lane.running && self.config.total <= self.running - self.deleting;
        if full || self.config.per_lane <= lane.running {
            return None;
        }
        let aged =
            lane.periodic.first().filter(|(since, ..)| self.config.ageing <= now.saturating_sub(*since));
        match (lane.fresh.first(), aged) {
            (Some(fresh), Some(aged)) => Some((Urgency::Fresh, if aged.0 < fresh.0 { aged } else { fresh })),
            (Some(first), None) | (None, Some(first)) => Some((Urgency::Fresh, first)),
            (None, None) => lane.periodic.first().map(|first| (Urgency::Periodic, first)),
        }
    }

    fn backoff(&mut self, key: &K, now: Duration) -> Duration {
        let config = self.config;
        let failures = self.entries.get_mut(key).map_or(0, |entry| {
            let before = entry.failures;
            entry.failures = before.saturating_add(1);
            before
        });
        let own = backoff(config.backoff_base, config.backoff_max, failures);
        own.max(self.bucket.reserve(&config, now))
    }

    fn entry(&mut self, key: &K, lane: &L) -> &mut Entry<L> {
        self.entries.entry(key.clone()).or_insert_with(|| Entry {
            lane: lane.clone(),
            failures: 0,
            place: Place::Idle,
        })
    }

    fn make_ready(&mut self, key: K, ticket: Ticket) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        entry.place = Place::Ready(ticket);
        let lane = self.lanes.entry(entry.lane.clone()).or_default();
        if lane.line(ticket.urgency).insert((ticket.since, ticket.sequence, key)) {
            self.ready += 1;
        }
    }

    fn unready(&mut self, key: &K, ticket: Ticket) {
        let Some(entry) = self.entries.get(key) else { return };
        let name = entry.lane.clone();
        if let Some(lane) = self.lanes.get_mut(&name)
            && lane.line(ticket.urgency).remove(&(ticket.since, ticket.sequence, key.clone()))
        {
            self.ready -= 1;
        }
        self.drop_empty_lane(&name);
    }

    fn drop_empty_lane(&mut self, name: &L) {
        if self.lanes.get(name).is_some_and(Lane::is_empty) {
            self.lanes.remove(name);
        }
    }

    fn tick(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

/// The wait after `failures` earlier ones: `base`, twice as long each time, at most `max`.
pub fn backoff(base: Duration, max: Duration, failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    base.checked_mul(factor).unwrap_or(max).min(max)
}

/// A token bucket whose debt is paid by waiting.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl Bucket {
    fn reserve(&mut self, config: &QueueConfig, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = now;
        self.tokens = (self.tokens + passed * config.retry_rate).min(config.retry_burst) - 1.0;
        if 0.0 <= self.tokens || config.retry_rate <= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64((-self.tokens / config.retry_rate).min(config.backoff_max.as_secs_f64()))
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
