//! A map with a bound that forgets what was put in, or used, longest ago.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A hash of what is looked up.
pub(super) type Key = [u8; 32];

/// At most so many entries; the oldest goes first.
#[derive(Debug)]
pub(super) struct Bounded<V> {
    entries: HashMap<Key, Entry<V>>,
    /// From the oldest to the newest. The numbers only count.
    order: BTreeMap<u64, Key>,
    next: u64,
    bound: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    place: u64,
    since: Duration,
}

impl<V: Clone> Bounded<V> {
    pub(super) fn new(bound: usize) -> Self {
        Self { entries: HashMap::new(), order: BTreeMap::new(), next: 0, bound }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Looks up without making it newer.
    pub(super) fn get(&self, key: &Key) -> Option<V> {
        self.entries.get(key).map(|entry| entry.value.clone())
    }

    /// When it was put in or made newer last.
    pub(super) fn since(&self, key: &Key) -> Option<Duration> {
        self.entries.get(key).map(|entry| entry.since)
    }

    /// Looks up and makes it the newest.
    pub(super) fn get_and_renew(&mut self, key: &Key) -> Option<V> {
        let entry = self.entries.get_mut(key)?;
        self.order.remove(&entry.place);
        entry.place = self.next;
        self.order.insert(self.next, *key);
        self.next += 1;
        Some(entry.value.clone())
    }

    /// Puts in as the newest; what is over the bound goes.
    pub(super) fn set(&mut self, key: Key, value: V, now: Duration) {
        let entry = Entry { value, place: self.next, since: now };
        if let Some(replaced) = self.entries.insert(key, entry) {
            self.order.remove(&replaced.place);
        }
        self.order.insert(self.next, key);
        self.next += 1;
        while self.bound < self.entries.len() && self.drop_oldest(|_| true) {}
    }

    /// Drops what was put in `limit` ago or earlier. For maps whose entries are never renewed.
    pub(super) fn drop_older_than(&mut self, limit: Duration, now: Duration) {
        while self.drop_oldest(|since| since + limit <= now) {}
    }

    fn drop_oldest(&mut self, condition: impl Fn(Duration) -> bool) -> bool {
        let Some((place, key)) = self.order.first_key_value().map(|(place, key)| (*place, *key)) else {
            return false;
        };
        if !self.entries.get(&key).is_some_and(|entry| condition(entry.since)) {
            return false;
        }
        self.order.remove(&place);
        self.entries.remove(&key);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn key(number: u8) -> Key {
        [number; 32]
    }

    fn held(cache: &Bounded<u8>) -> Vec<u8> {
        (0..=9).filter(|number| cache.get(&key(*number)).is_some()).collect()
    }

    #[test]
    fn the_bound_holds_and_the_oldest_goes() {
        let mut cache = Bounded::new(3);
        for number in 0..5 {
            cache.set(key(number), number, SECOND);
        }
        assert_eq!(held(&cache), [2, 3, 4]);
        assert_eq!(cache.get_and_renew(&key(2)), Some(2));
        cache.set(key(5), 5, SECOND);
        assert_eq!(held(&cache), [2, 4, 5]);
        cache.set(key(4), 4, SECOND);
        cache.set(key(6), 6, SECOND);
        assert_eq!((held(&cache), cache.len(), cache.order.len()), (vec![4, 5, 6], 3, 3));
    }

    #[test]
    fn old_entries_go_at_their_time() {
        let mut cache = Bounded::new(10);
        for number in 0..5_u8 {
            cache.set(key(number), number, SECOND * u32::from(number));
        }
        cache.set(key(0), 0, SECOND * 4);
        cache.drop_older_than(SECOND * 3, SECOND * 5);
        assert_eq!(held(&cache), [0, 3, 4]);
        assert_eq!(cache.since(&key(0)), Some(SECOND * 4));
    }
}
