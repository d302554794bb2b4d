//! Connections that have not finished their TLS handshake.
//!
//! A silent client costs a socket for as long as its handshake may take. There is room for a fixed
//! number of them, and when it is used up the oldest makes place for the newest: whoever wants to be
//! served shakes hands within milliseconds, and never waits behind those who do not.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Room for a fixed number of connections.
#[derive(Clone)]
pub(super) struct HalfOpen(Arc<Mutex<Table>>);

struct Table {
    room: usize,
    next: u64,
    /// By age. Cancelling the token cuts the connection off.
    waiting: BTreeMap<u64, CancellationToken>,
}

/// A place in the table; leaves it when dropped.
pub(super) struct Place {
    table: HalfOpen,
    number: u64,
    /// Cancelled when the place is needed for a newer connection.
    pub(super) taken_back: CancellationToken,
}

impl HalfOpen {
    pub(super) fn with_room(room: usize) -> Self {
        Self(Arc::new(Mutex::new(Table { room, next: 0, waiting: BTreeMap::new() })))
    }

    /// A place for a new connection, that of the oldest one if there is no other.
    pub(super) fn enter(&self) -> Place {
        let mut table = self.0.lock();
        while table.room <= table.waiting.len() {
            match table.waiting.pop_first() {
                Some((_, oldest)) => oldest.cancel(),
                None => break,
            }
        }
        let number = table.next;
        table.next += 1;
        let taken_back = CancellationToken::new();
        table.waiting.insert(number, taken_back.clone());
        Place { table: self.clone(), number, taken_back }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.0.lock().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_place_for_the_newest() {
        let table = HalfOpen::with_room(2);
        let (first, second) = (table.enter(), table.enter());
        assert!(!first.taken_back.is_cancelled());
        let third = table.enter();
        assert!(first.taken_back.is_cancelled());
        assert!(!second.taken_back.is_cancelled() && !third.taken_back.is_cancelled());
        // One that is done leaves its place to the next.
        drop(second);
        let fourth = table.enter();
        assert!(!third.taken_back.is_cancelled() && !fourth.taken_back.is_cancelled());
        assert_eq!(table.0.lock().waiting.len(), 2);
    }
}
