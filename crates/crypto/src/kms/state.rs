//! What an answer of a plugin of version 2 does to the key that writes.
//!
//! | plugin | names a key that | key that writes | then |
//! |---|---|---|---|
//! | well | can be | is of that key | it may write for another three minutes |
//! | well | can be | is of another, or there is none | a seed is made under it |
//! | unwell | can be | there is none | a seed is made under it, so that reads work |
//! | unwell | can be | there is one | it stays, and ends at its time |
//! | any | cannot be | any | it stays, and ends at its time |
//!
//! The fourth row is not upstream's, which goes on extending the key of a plugin that says
//! of itself that it is unwell, until servers cannot read each other's values any more
//! (kubernetes/kubernetes#138950).

use std::time::Duration;

/// How long a key may write after the plugin was last well under it.
pub const WRITE_WINDOW: Duration = Duration::from_secs(3 * 60);

/// Whether the plugin says that it is well, in a version that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Health {
    /// It is.
    Well,
    /// It is not, or it speaks another version than before.
    Unwell,
}

/// Whether the key that the plugin names can be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Named {
    /// It can.
    Usable,
    /// It is empty or too long.
    Unusable,
}

/// The key that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Held {
    /// There is none yet.
    Nothing,
    /// It is under the key that the plugin names.
    Same,
    /// It is under another key.
    Other,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing: the key that writes stays, until its time.
    Keep,
    /// Let it write for another [`WRITE_WINDOW`], even when its time has passed.
    Extend,
    /// Make a new seed, and have it encrypted.
    Generate,
}

/// Every case, once.
pub const TABLE: [(Health, Named, Held, Action); 12] = [
    (Health::Well, Named::Usable, Held::Nothing, Action::Generate),
    (Health::Well, Named::Usable, Held::Same, Action::Extend),
    (Health::Well, Named::Usable, Held::Other, Action::Generate),
    (Health::Well, Named::Unusable, Held::Nothing, Action::Keep),
    (Health::Well, Named::Unusable, Held::Same, Action::Keep),
    (Health::Well, Named::Unusable, Held::Other, Action::Keep),
    (Health::Unwell, Named::Usable, Held::Nothing, Action::Generate),
    (Health::Unwell, Named::Usable, Held::Same, Action::Keep),
    (Health::Unwell, Named::Usable, Held::Other, Action::Keep),
    (Health::Unwell, Named::Unusable, Held::Nothing, Action::Keep),
    (Health::Unwell, Named::Unusable, Held::Same, Action::Keep),
    (Health::Unwell, Named::Unusable, Held::Other, Action::Keep),
];

/// What an answer does.
pub fn action(health: Health, named: Named, held: Held) -> Action {
    let row = TABLE.iter().find(|row| (row.0, row.1, row.2) == (health, named, held));
    row.map_or(Action::Keep, |row| row.3)
}

/// Whether a new seed comes to write: only when the plugin encrypted it under the key that it
/// named. In the middle of a rotation it may not; the next answer then tries again.
pub fn installs(named_in_status: &str, encrypted_under: &str) -> bool {
    named_in_status == encrypted_under
}

/// Whether a key whose time is `expires` may write.
pub fn may_write(now: Duration, expires: Duration) -> bool {
    now <= expires
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_in_the_table_once() {
        for health in [Health::Well, Health::Unwell] {
            for named in [Named::Usable, Named::Unusable] {
                for held in [Held::Nothing, Held::Same, Held::Other] {
                    let rows = TABLE.iter().filter(|row| (row.0, row.1, row.2) == (health, named, held));
                    assert_eq!(rows.count(), 1, "{health:?} {named:?} {held:?}");
                }
            }
        }
    }

    /// No answer of a plugin that is unwell lets a key that there is write longer.
    #[test]
    fn field_case_k25_only_a_plugin_that_is_well_lets_a_key_write_longer() {
        for (health, named, held, action) in TABLE {
            if health == Health::Unwell && held != Held::Nothing {
                assert_eq!(action, Action::Keep, "{named:?} {held:?}");
            }
            if named == Named::Unusable {
                assert_eq!(action, Action::Keep, "{health:?} {held:?}");
            }
            if action == Action::Extend {
                assert_eq!((health, held), (Health::Well, Held::Same));
            }
        }
    }

    #[test]
    fn a_key_writes_up_to_its_time() {
        let second = Duration::from_secs(1);
        assert!(may_write(second, second));
        assert!(!may_write(second + Duration::from_nanos(1), second));
    }
}
