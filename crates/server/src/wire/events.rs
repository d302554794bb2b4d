//! `events.k8s.io/v1` Events are stored as core Events; the two differ in the names of fields.

use coffer_types::Value;
use coffer_types::meta::Meta as _;

/// Name in `events.k8s.io/v1`, name in the core group.
const RENAMED: &[(&str, &str)] = &[
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
];

/// The core Event of an `events.k8s.io/v1` Event.
pub(crate) fn to_core(mut event: Value) -> Value {
    rename(&mut event, |(new, core)| (new, core));
    event.set_type("v1", "Event");
    event
}

/// The `events.k8s.io/v1` Event of a core Event.
pub(crate) fn from_core(mut event: Value) -> Value {
    rename(&mut event, |(new, core)| (core, new));
    event.set_type("events.k8s.io/v1", "Event");
    event
}

fn rename(
    event: &mut Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    for pair in RENAMED {
        let (from, to) = direction(*pair);
        if let Some(value) = event.remove(&[from]) {
            event.set(&[to], value);
        }
    }
}

/// An Event of either group as the core group has it.
pub(crate) fn core_event(event: &Value) -> Value {
    if is_core(event) { event.clone() } else { to_core(event.clone()) }
}

/// Whether an Event came by the core group.
pub(crate) fn is_core(event: &Value) -> bool {
    event.api_version() == "v1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_convert_there_and_back() {
        let mut event = Value::from([("note", "n"), ("reportingController", "c"), ("reason", "r")]);
        event.set_type("events.k8s.io/v1", "Event");
        let core = to_core(event.clone());
        assert_eq!(core.str_at(&["message"]), "n");
        assert_eq!(core.str_at(&["reportingComponent"]), "c");
        assert_eq!(core.api_version(), "v1");
        assert_eq!(from_core(core), event);
    }
}
