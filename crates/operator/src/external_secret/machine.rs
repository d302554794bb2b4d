//! What an ExternalSecret does next: the whole decision, pure, in three tables.
//!
//! [`observe`] looks at the object and its Secret before anything is asked from
//! outside; [`fetched`] decides from what the store gave; [`conclude`] says how
//! each way ends. The controller performs what they answer and decides nothing.

use std::time::Duration;

use coffer_types::time::Timestamp;

use super::spec::{CreationPolicy, DeletionPolicy, RefreshPolicy};

/// Reasons of the Ready condition.
pub(crate) const SYNCED: &str = "SecretSynced";
pub(crate) const SYNC_ERROR: &str = "SecretSyncedError";
pub(crate) const DELETED: &str = "SecretDeleted";
pub(crate) const MISSING: &str = "SecretMissing";

/// Everything that [`observe`] looks at.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot<'a> {
    pub(crate) refresh: RefreshPolicy,
    /// Zero for never.
    pub(crate) interval: Duration,
    pub(crate) synced: &'a str,
    pub(crate) current: &'a str,
    pub(crate) refresh_time: Option<Timestamp>,
    pub(crate) now: Timestamp,
}

/// Why a refresh is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It has never succeeded.
    NeverSynced,
    /// Somebody changed the ExternalSecret.
    Changed,
    /// The interval is over.
    Due,
    /// The Secret is not what was written.
    Drifted,
}

/// Whether the store is asked, from the ExternalSecret alone; `None` when only drift could be a reason.
///
/// | policy | refreshed when |
/// |---|---|
/// | CreatedOnce | never synced |
/// | OnChange | never synced, or changed since |
/// | Periodic, interval 0 | never synced |
/// | Periodic | never synced, changed since, synced in the future, or the interval is over |
pub(crate) fn observe(snapshot: &Snapshot<'_>) -> Option<Why> {
    let never = snapshot.synced.is_empty();
    let changed = snapshot.synced != snapshot.current;
    match snapshot.refresh {
        RefreshPolicy::CreatedOnce if never || snapshot.refresh_time.is_none() => Some(Why::NeverSynced),
        RefreshPolicy::CreatedOnce => None,
        RefreshPolicy::OnChange if never || snapshot.refresh_time.is_none() => Some(Why::NeverSynced),
        RefreshPolicy::OnChange if changed => Some(Why::Changed),
        RefreshPolicy::OnChange => None,
        RefreshPolicy::Periodic if never => Some(Why::NeverSynced),
        RefreshPolicy::Periodic if snapshot.interval.is_zero() => None,
        RefreshPolicy::Periodic if changed => Some(Why::Changed),
        RefreshPolicy::Periodic => match snapshot.refresh_time {
            None => Some(Why::NeverSynced),
            Some(time) => match elapsed(time, snapshot.now) {
                None => Some(Why::Due),
                Some(elapsed) if snapshot.interval < elapsed => Some(Why::Due),
                Some(_) => None,
            },
        },
    }
}

/// When to look again at an ExternalSecret that is in order; `None` for only when asked.
///
/// CreatedOnce and OnChange do not wake by themselves: nothing could be due (upstream wakes them for ever).
pub(crate) fn next_look(snapshot: &Snapshot<'_>) -> Option<Duration> {
    if snapshot.refresh != RefreshPolicy::Periodic || snapshot.interval.is_zero() {
        return None;
    }
    let Some(time) = snapshot.refresh_time else { return Some(snapshot.interval) };
    // A tick more, since the interval must be over and not just full.
    let elapsed = elapsed(time, snapshot.now).unwrap_or_default();
    Some(snapshot.interval.saturating_sub(elapsed) + TICK)
}

const TICK: Duration = Duration::from_millis(1);

/// `None` when `time` is in the future.
fn elapsed(time: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(now.duration_since(time)).ok()
}

/// What is done with what the store gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The Secret is left alone.
    Leave(Ending),
    /// The Secret is deleted, if there is one.
    Delete,
    /// The Secret is written.
    Write {
        /// It may be made.
        create: bool,
        /// Other Secrets of this ExternalSecret are deleted.
        sweep: bool,
    },
}

/// | keys | deletion policy | creation policy | Secret | step |
/// |---|---|---|---|---|
/// | none | Retain | any | any | left alone, `retained` |
/// | none | Delete | Owner | any | deleted |
/// | none | Delete | other | any | left alone, `cannot delete` |
/// | any | | None | any | left alone, `synced` |
/// | any | | Merge | missing | left alone, `missing` |
/// | any | | Merge | there | updated |
/// | any | | Orphan, CreateOrMerge | any | made or updated |
/// | any | | Owner | any | made or updated, other Secrets of it deleted |
pub(crate) fn fetched(empty: bool, deletion: DeletionPolicy, creation: CreationPolicy, exists: bool) -> Step {
    match (empty, deletion, creation) {
        (true, DeletionPolicy::Retain, _) => Step::Leave(Ending::Retained),
        (true, DeletionPolicy::Delete, CreationPolicy::Owner) => Step::Delete,
        (true, DeletionPolicy::Delete, _) => Step::Leave(Ending::DeletionRefused),
        (_, _, CreationPolicy::None) => Step::Leave(Ending::Synced),
        (_, _, CreationPolicy::Merge) if !exists => Step::Leave(Ending::MergeTargetMissing),
        (_, _, CreationPolicy::Merge) => Step::Write { create: false, sweep: false },
        (_, _, CreationPolicy::Orphan | CreationPolicy::CreateOrMerge) => {
            Step::Write { create: true, sweep: false }
        }
        (_, _, CreationPolicy::Owner) => Step::Write { create: true, sweep: true },
    }
}

/// How a reconciliation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Written, or already as wanted.
    Synced,
    /// Nothing came and the Secret stays.
    Retained,
    /// The Secret is gone, as asked.
    Deleted,
    /// It should go, and is not ours.
    DeletionRefused,
    /// There is nothing to merge into.
    MergeTargetMissing,
    /// The store gave an error.
    FetchFailed,
    /// Another controller owns the Secret.
    OwnedByForeigner,
    /// Another ExternalSecret owns the Secret.
    OwnedByExternalSecret,
    /// The Secret cannot be changed.
    Immutable,
    /// Old Secrets could not be deleted.
    SweepFailed,
    /// The API server refused the write.
    WriteFailed,
    /// The Secret to delete could not be deleted.
    DeleteFailed,
    /// The guard against taking over found keys of others.
    Guarded,
    /// The specification is wrong or asks for what is not there; the message names the field.
    SpecRefused,
    /// The template breaks a rule or needs the engine.
    TemplateRefused,
    /// Somebody else wrote at the same time.
    Conflict,
}

/// What then happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conclusion {
    /// Status, reason and message of Ready; `None` leaves it as it is.
    pub(crate) ready: Option<(bool, &'static str, &'static str)>,
    /// Whether this counts as a refresh.
    pub(crate) refreshed: bool,
    /// When it is looked at again.
    pub(crate) next: Next,
}

/// When an ExternalSecret is looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// When the interval is over.
    AtInterval,
    /// After the back-off.
    BackOff,
    /// Only when somebody changes something; still at the interval, so that a cause that goes away is noticed.
    AtIntervalAsFailed,
}

/// One row for each ending.
pub(crate) fn conclude(ending: Ending) -> Conclusion {
    let row = |status, reason, message, refreshed, next| Conclusion {
        ready: Some((status, reason, message)),
        refreshed,
        next,
    };
    match ending {
        Ending::Synced => row(true, SYNCED, "secret synced", true, Next::AtInterval),
        Ending::Retained => {
            row(true, SYNCED, "secret retained due to DeletionPolicy=Retain", true, Next::AtInterval)
        }
        Ending::Deleted => {
            row(true, DELETED, "secret deleted due to DeletionPolicy=Delete", true, Next::AtInterval)
        }
        Ending::MergeTargetMissing => row(
            true,
            MISSING,
            "secret will not be created due to CreationPolicy=Merge",
            true,
            Next::AtInterval,
        ),
        Ending::DeletionRefused => {
            row(false, SYNC_ERROR, "could not delete secret", false, Next::AtIntervalAsFailed)
        }
        Ending::DeleteFailed => row(false, SYNC_ERROR, "could not delete secret", false, Next::BackOff),
        Ending::FetchFailed => {
            row(false, SYNC_ERROR, "could not get secret data from provider", false, Next::BackOff)
        }
        Ending::OwnedByForeigner => row(
            false,
            SYNC_ERROR,
            "failed to take ownership of target secret",
            false,
            Next::AtIntervalAsFailed,
        ),
        Ending::OwnedByExternalSecret => row(
            false,
            SYNC_ERROR,
            "target is owned by another ExternalSecret",
            false,
            Next::AtIntervalAsFailed,
        ),
        Ending::Immutable => row(
            false,
            SYNC_ERROR,
            "could not update secret, target is immutable",
            false,
            Next::AtIntervalAsFailed,
        ),
        Ending::Guarded => {
            row(false, SYNC_ERROR, "target secret has keys of others", false, Next::AtIntervalAsFailed)
        }
        // The reason is the whole message.
        Ending::SpecRefused => row(false, SYNC_ERROR, "", false, Next::AtIntervalAsFailed),
        Ending::TemplateRefused => {
            row(false, SYNC_ERROR, "could not apply template", false, Next::AtIntervalAsFailed)
        }
        Ending::SweepFailed => {
            row(false, SYNC_ERROR, "could not delete orphaned secrets", false, Next::BackOff)
        }
        Ending::WriteFailed => row(false, SYNC_ERROR, "could not update secret", false, Next::BackOff),
        Ending::Conflict => Conclusion { ready: None, refreshed: false, next: Next::BackOff },
    }
}

/// Whether the Secret now holds what was read, so that its versions are those of the Secret.
pub(crate) fn holds_what_was_read(ending: Ending) -> bool {
    matches!(ending, Ending::Synced | Ending::Deleted)
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
