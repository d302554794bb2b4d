//! How long the first answer about an object is waited for, and what is said meanwhile (field case N7).
//!
//! | waited | said | looked at again |
//! |---|---|---|
//! | less than 10 s | nothing: many pods start together, and an answer moves them by itself | at 10 s |
//! | less than the mount's deadline | the pod's condition names the request that is slow | after as long again, at the deadline at the latest |
//! | longer | an event `FailedMount` as well | after as long again, 5 min at most |

use std::time::Duration;

/// How long nothing is said.
const QUIET: Duration = Duration::from_secs(10);
/// How long the kubelet waits for a pod's volumes.
const MOUNT_DEADLINE: Duration = Duration::from_secs(123);
/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What to do about a pod whose objects have no first answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Wait without a word.
    Quiet,
    /// Say which request is slow.
    Slow,
    /// Say that the mount failed.
    Overdue,
}

/// The stage after `waited`, and how long until the next look.
pub(super) fn stage(waited: Duration) -> (Stage, Duration) {
    if waited < QUIET {
        (Stage::Quiet, QUIET - waited)
    } else if waited < MOUNT_DEADLINE {
        (Stage::Slow, waited.min(MOUNT_DEADLINE - waited))
    } else {
        (Stage::Overdue, waited.min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n7_the_wait_is_quiet_then_tells_and_backs_off_to_the_mounts_deadline() {
        let mut at = Duration::ZERO;
        let mut looks = Vec::new();
        for _ in 0..9 {
            let (stage, pause) = stage(at);
            looks.push((at.as_secs(), stage));
            assert!(pause > Duration::ZERO);
            at += pause;
        }
        use Stage::{Overdue, Quiet, Slow};
        let expected = [
            (0, Quiet),
            (10, Slow),
            (20, Slow),
            (40, Slow),
            (80, Slow),
            (123, Overdue),
            (246, Overdue),
            (492, Overdue),
            (792, Overdue),
        ];
        assert_eq!(looks, expected);
    }
}
