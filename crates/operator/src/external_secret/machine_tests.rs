use super::*;

const NOW: i64 = 1_700_000_000;

fn snapshot(
    refresh: RefreshPolicy,
    interval: u64,
    synced: &'static str,
    refreshed: Option<i64>,
) -> Snapshot<'static> {
    Snapshot {
        refresh,
        interval: Duration::from_secs(interval),
        synced,
        current: "2-h",
        refresh_time: refreshed.map(|at| Timestamp::from_second(NOW + at).unwrap()),
        now: Timestamp::from_second(NOW).unwrap(),
    }
}

/// Upstream's tables of `shouldRefresh`, and when it wakes.
#[test]
fn when_a_refresh_is_due() {
    use RefreshPolicy::{CreatedOnce, OnChange, Periodic};
    let cases = [
        ("never synced", Periodic, 60, "", None, Some(Why::NeverSynced)),
        ("synced without a time", Periodic, 60, "2-h", None, Some(Why::NeverSynced)),
        ("changed", Periodic, 60, "1-h", Some(0), Some(Why::Changed)),
        ("not yet", Periodic, 60, "2-h", Some(-59), None),
        ("just full", Periodic, 60, "2-h", Some(-60), None),
        ("over", Periodic, 60, "2-h", Some(-61), Some(Why::Due)),
        ("in the future", Periodic, 60, "2-h", Some(5), Some(Why::Due)),
        ("interval 0", Periodic, 0, "2-h", Some(-9999), None),
        ("interval 0, changed (BUG-17 kept)", Periodic, 0, "1-h", Some(-9999), None),
        ("interval 0, never synced", Periodic, 0, "", None, Some(Why::NeverSynced)),
        ("once, never synced", CreatedOnce, 60, "", None, Some(Why::NeverSynced)),
        ("once, no time", CreatedOnce, 60, "2-h", None, Some(Why::NeverSynced)),
        ("once, changed", CreatedOnce, 60, "1-h", Some(-9999), None),
        ("once, old", CreatedOnce, 60, "2-h", Some(-9999), None),
        ("on change, never synced", OnChange, 60, "", None, Some(Why::NeverSynced)),
        ("on change, changed", OnChange, 60, "1-h", Some(0), Some(Why::Changed)),
        ("on change, old", OnChange, 60, "2-h", Some(-9999), None),
    ];
    for (name, policy, interval, synced, refreshed, expected) in cases {
        assert_eq!(observe(&snapshot(policy, interval, synced, refreshed)), expected, "{name}");
    }
}

#[test]
fn when_it_is_looked_at_again() {
    use RefreshPolicy::{CreatedOnce, OnChange, Periodic};
    let cases = [
        (Periodic, 60, Some(0), Some(60_001)),
        (Periodic, 60, Some(-59), Some(1_001)),
        (Periodic, 60, Some(-100), Some(1)),
        (Periodic, 60, Some(5), Some(60_001)),
        (Periodic, 60, None, Some(60_000)),
        (Periodic, 0, Some(0), None),
        (CreatedOnce, 60, Some(0), None),
        (OnChange, 60, Some(0), None),
    ];
    for (policy, interval, refreshed, expected) in cases {
        let look = next_look(&snapshot(policy, interval, "2-h", refreshed));
        assert_eq!(look, expected.map(Duration::from_millis), "{policy:?} {interval} {refreshed:?}");
    }
}

/// Whoever is woken at the time that `next_look` says finds the refresh due: one reconciliation an interval.
#[test]
fn o3_waking_at_the_interval_finds_it_due() {
    for elapsed in 0..60_000 {
        let mut snapshot = snapshot(RefreshPolicy::Periodic, 60, "2-h", None);
        let synced = snapshot.now;
        snapshot.refresh_time = Some(synced);
        snapshot.now = Timestamp::from_millisecond(synced.as_millisecond() + elapsed).unwrap();
        let wait = i64::try_from(next_look(&snapshot).unwrap().as_millis()).unwrap();
        snapshot.now = Timestamp::from_millisecond(snapshot.now.as_millisecond() + wait).unwrap();
        assert_eq!(observe(&snapshot), Some(Why::Due), "{elapsed}");
    }
}

/// The policy matrix: every combination has its step.
#[test]
fn what_is_done_with_what_was_fetched() {
    use CreationPolicy::{CreateOrMerge, Merge, None, Orphan, Owner};
    let write = |create, sweep| Step::Write { create, sweep };
    for creation in [Owner, Orphan, Merge, CreateOrMerge, None] {
        for exists in [false, true] {
            let with_keys = match creation {
                Owner => write(true, true),
                Orphan | CreateOrMerge => write(true, false),
                Merge if exists => write(false, false),
                Merge => Step::Leave(Ending::MergeTargetMissing),
                None => Step::Leave(Ending::Synced),
            };
            for deletion in [DeletionPolicy::Retain, DeletionPolicy::Delete, DeletionPolicy::Merge] {
                assert_eq!(
                    fetched(false, deletion, creation, exists),
                    with_keys,
                    "{creation:?} {deletion:?}"
                );
            }
            let retained = Step::Leave(Ending::Retained);
            assert_eq!(fetched(true, DeletionPolicy::Retain, creation, exists), retained);
            let deleted = if creation == Owner { Step::Delete } else { Step::Leave(Ending::DeletionRefused) };
            assert_eq!(fetched(true, DeletionPolicy::Delete, creation, exists), deleted);
            assert_eq!(fetched(true, DeletionPolicy::Merge, creation, exists), with_keys);
        }
    }
}

#[test]
fn endings_are_worded_as_upstream() {
    let cases = [
        (Ending::Synced, "True SecretSynced secret synced"),
        (Ending::Retained, "True SecretSynced secret retained due to DeletionPolicy=Retain"),
        (Ending::Deleted, "True SecretDeleted secret deleted due to DeletionPolicy=Delete"),
        (
            Ending::MergeTargetMissing,
            "True SecretMissing secret will not be created due to CreationPolicy=Merge",
        ),
        (Ending::DeletionRefused, "False SecretSyncedError could not delete secret"),
        (Ending::FetchFailed, "False SecretSyncedError could not get secret data from provider"),
        (Ending::OwnedByForeigner, "False SecretSyncedError failed to take ownership of target secret"),
        (Ending::OwnedByExternalSecret, "False SecretSyncedError target is owned by another ExternalSecret"),
        (Ending::Immutable, "False SecretSyncedError could not update secret, target is immutable"),
        (Ending::SweepFailed, "False SecretSyncedError could not delete orphaned secrets"),
        (Ending::WriteFailed, "False SecretSyncedError could not update secret"),
    ];
    for (ending, expected) in cases {
        let (status, reason, message) = conclude(ending).ready.unwrap();
        let status = if status { "True" } else { "False" };
        assert_eq!(format!("{status} {reason} {message}"), expected);
    }
    assert_eq!(conclude(Ending::Conflict).ready, None, "a conflict leaves no trace");
}

#[test]
fn versions_are_those_of_what_the_secret_holds() {
    let cases = [
        (Ending::Synced, true),
        (Ending::Deleted, true),
        (Ending::Retained, false),
        (Ending::MergeTargetMissing, false),
        (Ending::WriteFailed, false),
        (Ending::Conflict, false),
        (Ending::Immutable, false),
    ];
    for (ending, expected) in cases {
        assert_eq!(holds_what_was_read(ending), expected, "{ending:?}");
    }
}

/// O25: whatever failed is looked at again, so that it heals when the cause goes away.
#[test]
fn o25_no_failure_waits_for_an_edit() {
    let failures = [
        Ending::DeletionRefused,
        Ending::OwnedByForeigner,
        Ending::OwnedByExternalSecret,
        Ending::Immutable,
        Ending::Guarded,
        Ending::SpecRefused,
        Ending::TemplateRefused,
    ];
    for ending in failures {
        assert_eq!(conclude(ending).next, Next::AtIntervalAsFailed, "{ending:?}");
        assert!(!conclude(ending).refreshed, "{ending:?}");
    }
}
