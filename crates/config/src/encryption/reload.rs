//! When a file that changed takes the place of the configuration that is in use.
//!
//! The whole decision is the table of [`step`]. Who reads the file, asks plugins and swaps does what it
//! says; an old configuration is never given up before its successor has been found well.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};

use super::Reload;

/// How often the file is looked at when nobody says that it changed; upstream's period.
pub const POLL: Duration = Duration::from_secs(60);
/// How often a new configuration's plugins are asked until they are well.
pub const HEALTH_POLL: Duration = Duration::from_millis(100);
/// How long the plugins of a new configuration have at least until they are well.
pub const HEALTH_LIMIT: Duration = Duration::from_secs(10);
/// After the first failure; doubled after each further one, up to [`POLL`].
pub const FIRST_RETRY: Duration = Duration::from_millis(5);

/// What identifies the content of a file: `sha256:` and digits.
pub fn content_hash(bytes: &[u8]) -> String {
    let digits: String = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Where a look at the file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing is under way.
    Waiting,
    /// A new content is parsed and its transformers are built.
    Building,
    /// The new transformers are tried.
    Checking,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Building, Self::Checking];
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The file could not be read.
    Unread,
    /// The file holds what is in use.
    SameFile,
    /// The file holds something else.
    OtherFile,
    /// No transformers can be built from it.
    Refused,
    /// Its transformers have been built.
    Built,
    /// They were not well in time.
    Unwell,
    /// They are well.
    Well,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Unread, Self::SameFile, Self::OtherFile, Self::Refused, Self::Built, Self::Unwell, Self::Well];
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Parse the new content and build its transformers.
    Build,
    /// Try the new transformers.
    Check,
    /// Put the new transformers in the place of the old, which are closed after their grace.
    Swap,
    /// Close the new transformers at once: they were never used.
    Close,
    /// Count a reload that succeeded.
    CountSuccess,
    /// Count a reload that failed.
    CountFailure,
    /// Say that the file is not what is in use.
    Differs,
    /// The file is what is in use.
    Agrees,
}

/// The table: what follows from an event, and what is to be done, in order.
///
/// An event that cannot come in a phase changes nothing.
pub const fn step(mode: Reload, phase: Phase, event: Event) -> (Phase, &'static [Action]) {
    use Action::{Agrees, Build, Check, Close, CountFailure, CountSuccess, Differs, Swap};
    use Phase::{Building, Checking, Waiting};
    match (mode, phase, event) {
        (_, Waiting, Event::SameFile) => (Waiting, &[Agrees]),
        (Reload::Never, Waiting, Event::OtherFile | Event::Unread) => (Waiting, &[Differs]),
        (Reload::Automatic, Waiting, Event::OtherFile) => (Building, &[Build]),
        (Reload::Automatic, Waiting, Event::Unread) | (_, Building, Event::Refused) => {
            (Waiting, &[CountFailure, Differs])
        }
        (_, Building, Event::Built) => (Checking, &[Check]),
        (_, Checking, Event::Unwell) => (Waiting, &[Close, CountFailure, Differs]),
        (_, Checking, Event::Well) => (Waiting, &[Swap, CountSuccess, Agrees]),
        (_, phase, _) => (phase, &[]),
    }
}

/// When the file is looked at again, after so many failures one after the other.
pub fn next_look(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        None => POLL,
        // Upstream doubles up to 1,000 s, but polls every minute all the same.
        Some(doubled) => FIRST_RETRY.saturating_mul(1_u32.checked_shl(doubled).unwrap_or(u32::MAX)).min(POLL),
    }
}

/// How long new transformers have until they must be well; `close_grace` is that of their plugins.
pub fn health_limit(close_grace: Duration) -> Duration {
    close_grace.max(HEALTH_LIMIT)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Upstream's TestComputeEncryptionConfigHash.
    #[test]
    fn test_compute_encryption_config_hash() {
        for (bytes, hash) in [
            (&b""[..], "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (b"abc", "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ] {
            assert_eq!(content_hash(bytes), hash);
        }
    }

    /// What the phases and actions of one look are, for the events that come in it.
    fn look(mode: Reload, events: &[Event]) -> Vec<Action> {
        let mut phase = Phase::Waiting;
        let mut done = Vec::new();
        for event in events {
            let (next, actions) = step(mode, phase, *event);
            assert!(!actions.is_empty(), "{event:?} cannot come while {phase:?}");
            phase = next;
            done.extend_from_slice(actions);
        }
        assert_eq!(phase, Phase::Waiting, "{events:?}");
        done
    }

    /// The cases of upstream's TestController. A configuration whose checks cannot be asked does not exist
    /// here: it has exactly one.
    #[test]
    fn test_controller() {
        use Action::{Agrees, Build, Check, Close, CountFailure, CountSuccess, Differs, Swap};
        use Event::{Built, OtherFile, Refused, SameFile, Unread, Unwell, Well};
        let cases: [(&str, &[Event], &[Action]); 5] = [
            (
                "when invalid config is provided previous config shouldn't be changed",
                &[OtherFile, Refused],
                &[Build, CountFailure, Differs],
            ),
            (
                "when new valid config is provided it should be updated",
                &[OtherFile, Built, Well],
                &[Build, Check, Swap, CountSuccess, Agrees],
            ),
            (
                "when same valid config is provided previous config shouldn't be changed",
                &[SameFile],
                &[Agrees],
            ),
            (
                "when transformer's health check fails previous config shouldn't be changed",
                &[OtherFile, Built, Unwell],
                &[Build, Check, Close, CountFailure, Differs],
            ),
            (
                "when config hash is errored transformers are closed correctly",
                &[Unread],
                &[CountFailure, Differs],
            ),
        ];
        for (name, events, expected) in cases {
            assert_eq!(look(Reload::Automatic, events), expected, "{name}");
        }
    }

    #[test]
    fn without_reloading_a_changed_file_is_only_told() {
        for event in [Event::OtherFile, Event::Unread] {
            assert_eq!(look(Reload::Never, &[event]), [Action::Differs]);
        }
        assert_eq!(look(Reload::Never, &[Event::SameFile]), [Action::Agrees]);
    }

    /// Everything that can be reached, from every phase with every event, keeps the promises.
    #[test]
    fn no_way_leads_to_a_swap_but_through_a_build_and_a_check() {
        for mode in [Reload::Never, Reload::Automatic] {
            // A phase, and whether what it has at hand was built and was checked.
            let mut seen = HashSet::new();
            let mut open = vec![(Phase::Waiting, false, false)];
            while let Some(state) = open.pop() {
                if !seen.insert(state) {
                    continue;
                }
                let (phase, built, _) = state;
                for event in Event::ALL {
                    let (next, actions) = step(mode, phase, event);
                    let has = |action| actions.contains(&action);
                    if has(Action::Swap) {
                        assert!(built && event == Event::Well && mode == Reload::Automatic);
                    }
                    // What was built is used or closed, and never both.
                    if phase == Phase::Checking && next == Phase::Waiting {
                        assert!(has(Action::Swap) != has(Action::Close), "{event:?}");
                    }
                    assert!(!has(Action::Close) || phase == Phase::Checking);
                    // Each end of a look says how the file and what is in use stand to each other.
                    assert_eq!(
                        next == Phase::Waiting && !actions.is_empty(),
                        has(Action::Differs) || has(Action::Agrees),
                        "{phase:?} {event:?}"
                    );
                    assert!(!(has(Action::CountSuccess) && has(Action::CountFailure)));
                    let built = event == Event::Built && phase == Phase::Building;
                    open.push((next, built || (state.1 && next == phase), has(Action::Check)));
                }
            }
            let phases: HashSet<Phase> = seen.iter().map(|(phase, ..)| *phase).collect();
            let reached = if mode == Reload::Never { 1 } else { Phase::ALL.len() };
            assert_eq!(phases.len(), reached, "{mode:?}");
        }
    }

    #[test]
    fn failures_are_tried_again_ever_more_slowly_but_never_more_slowly_than_the_poll() {
        let waits: Vec<u128> = (0..=4).map(|failures| next_look(failures).as_millis()).collect();
        assert_eq!(waits, [60_000, 5, 10, 20, 40]);
        for failures in [15, 16, 40, u32::MAX] {
            assert_eq!(next_look(failures), POLL, "{failures}");
        }
        assert_eq!(health_limit(Duration::from_secs(6)), Duration::from_secs(10));
        assert_eq!(health_limit(Duration::from_secs(26)), Duration::from_secs(26));
    }
}
