//! The status that is written: pure.

use coffer_types::time::{Timestamp, rfc3339};
use serde_json::{Value as Json, json};

use super::spec::{Condition, Status};

/// The conditions with `kind` replaced; unchanged when all of it is the same. The time of the last transition
/// stays while the status does.
pub(crate) fn set_condition(
    conditions: &[Condition],
    kind: &str,
    ready: (bool, &str, &str),
    now: Timestamp,
) -> Vec<Condition> {
    let status = if ready.0 { "True" } else { "False" };
    let old = conditions.iter().find(|condition| condition.kind == kind);
    if let Some(old) = old
        && old.status == status
        && old.reason == ready.1
        && old.message == ready.2
    {
        return conditions.to_vec();
    }
    let time = match old {
        Some(old) if old.status == status && !old.last_transition_time.is_empty() => {
            old.last_transition_time.clone()
        }
        _ => rfc3339(now),
    };
    let mut out: Vec<Condition> =
        conditions.iter().filter(|condition| condition.kind != kind).cloned().collect();
    out.push(Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: ready.1.to_owned(),
        message: ready.2.to_owned(),
        last_transition_time: time,
    });
    out
}

/// Conditions as the API has them.
pub(crate) fn conditions_json(conditions: &[Condition]) -> Json {
    let all = conditions.iter().map(|condition| {
        let mut object = json!({"type": condition.kind, "status": condition.status});
        for (field, text) in [
            ("reason", &condition.reason),
            ("message", &condition.message),
            ("lastTransitionTime", &condition.last_transition_time),
        ] {
            if !text.is_empty() {
                object[field] = text.as_str().into();
            }
        }
        object
    });
    all.collect()
}

/// The merge patch from `old` to `new`, or `None` when they are the same.
pub(crate) fn patch(uid: &str, old: &Status, new: &Status) -> Option<Json> {
    if old == new {
        return None;
    }
    let mut status = json!({});
    if old.refresh_time != new.refresh_time
        && let Some(time) = new.refresh_time
    {
        status["refreshTime"] = rfc3339(time).into();
    }
    if old.synced != new.synced {
        status["syncedResourceVersion"] = new.synced.as_str().into();
    }
    if old.binding != new.binding {
        status["binding"] = json!({"name": new.binding});
    }
    if old.conditions != new.conditions {
        status["conditions"] = conditions_json(&new.conditions);
    }
    // The UID makes sure that an object of the same name that was made since is not touched.
    Some(json!({"metadata": {"uid": uid}, "status": status}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn conditions_are_set_as_upstream_does() {
        let first = set_condition(&[], "Ready", (true, "A", "a"), at(0));
        assert_eq!(first[0].last_transition_time, "1970-01-01T00:00:00Z");
        let same = set_condition(&first, "Ready", (true, "A", "a"), at(9));
        assert_eq!(same, first, "identical: untouched");
        let other_text = set_condition(&first, "Ready", (true, "A", "b"), at(9));
        assert_eq!(
            other_text[0].last_transition_time, first[0].last_transition_time,
            "same status: time stays"
        );
        let flipped = set_condition(&first, "Ready", (false, "B", "b"), at(9));
        assert_eq!((flipped.len(), flipped[0].last_transition_time.as_str()), (1, "1970-01-01T00:00:09Z"));
    }

    #[test]
    fn a_patch_holds_what_changed() {
        let old = Status::default();
        assert_eq!(patch("u", &old, &old), None);
        let new = Status { synced: "1-h".to_owned(), refresh_time: Some(at(0)), ..Status::default() };
        assert_eq!(
            patch("u", &old, &new),
            Some(json!({"metadata": {"uid": "u"}, "status": {
                "refreshTime": "1970-01-01T00:00:00Z", "syncedResourceVersion": "1-h",
            }}))
        );
    }
}
