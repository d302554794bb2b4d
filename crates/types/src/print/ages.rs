//! How long ago something was.

use super::human_duration;
use crate::Value;
use crate::time::Timestamp;

/// Time since creation; `<unknown>` for an object without that time.
pub fn age(object: &Value, now: Timestamp) -> String {
    since(object.str_at(&["metadata", "creationTimestamp"]), now)
}

/// Time since `time` (RFC 3339); `<unknown>` where there is none, `<invalid>` where it is no time.
pub fn event_time(time: &str, now: Timestamp) -> String {
    since(time, now)
}

pub(super) fn since(time: &str, now: Timestamp) -> String {
    match (time, time.parse::<Timestamp>()) {
        ("", _) => "<unknown>".to_owned(),
        // Whole seconds, toward zero, of the exact difference.
        (_, Ok(time)) => human_duration(now.duration_since(time).as_secs()),
        (_, Err(_)) => "<invalid>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_missing_or_ahead_has_no_age() {
        let now = "2023-11-14T22:13:20Z".parse().expect("a time");
        assert_eq!(event_time("", now), "<unknown>");
        assert_eq!(event_time("x", now), "<invalid>");
        assert_eq!(event_time("2023-11-14T22:13:21Z", now), "0s");
        assert_eq!(event_time("2023-11-14T22:13:25Z", now), "<invalid>");
    }
}
