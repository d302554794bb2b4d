//! Which names a definition gets, and when it is served.
//!
//! | names | Established before | NamesAccepted | Established after |
//! |---|---|---|---|
//! | some taken | not true | False, `<Which>Conflict` | False, `NotAccepted` |
//! | all free or its own | not true | True, `NoConflicts` | False, `Installing`; then True, `InitialNamesAccepted` |
//! | some taken | True | False, `<Which>Conflict` | True, as before |
//! | all free or its own | True | True, `NoConflicts` | True, as before |

use std::collections::BTreeSet;

use coffer_types::Value;
use coffer_types::validation::field::go_quote;

const NAMES_ACCEPTED: &str = "NamesAccepted";
const ESTABLISHED: &str = "Established";

/// The names that the other definitions of a group have been given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    /// Those of `definitions`, which must be of the same group and without the one in question.
    pub fn by<'a>(definitions: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut taken = Self::default();
        for definition in definitions {
            let Some(names) = definition.at(&["status", "acceptedNames"]) else { continue };
            let texts = |name| names.str_at(&[name]).to_owned();
            taken.resources.extend([texts("plural"), texts("singular")]);
            taken.resources.extend(short_names(names).map(str::to_owned));
            taken.kinds.extend([texts("kind"), texts("listKind")]);
        }
        taken.resources.remove("");
        taken.kinds.remove("");
        taken
    }
}

/// Whether the condition `kind` of a definition is true.
pub fn is_true(definition: &Value, kind: &str) -> bool {
    condition(definition, kind).is_some_and(|condition| condition.str_at(&["status"]) == "True")
}

/// Whether the definition's resources are served: its names are, or once were, accepted.
pub fn is_served(definition: &Value) -> bool {
    is_true(definition, NAMES_ACCEPTED) || is_established(definition)
}

/// Whether the definition's resources are in discovery.
pub fn is_established(definition: &Value) -> bool {
    is_true(definition, ESTABLISHED)
}

/// Gives the definition what it asks for as far as it is free, and says so in its status.
/// Returns whether anything changed; `now` is an RFC 3339 time.
pub fn accept_names(definition: &mut Value, taken: &Taken, now: &str) -> bool {
    let before = definition.get("status").cloned();
    let requested = definition.at(&["spec", "names"]).cloned().unwrap_or_else(Value::object);
    let mut accepted = definition.at(&["status", "acceptedNames"]).cloned().unwrap_or_else(Value::object);
    let mut conflict = None;
    for (name, reason, used) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let conflicts = match name {
            "shortNames" => {
                let own: Vec<_> = short_names(&accepted).collect();
                short_names(&requested).filter(|name| !own.contains(name) && used.contains(*name)).collect()
            }
            name => {
                let wanted = requested.str_at(&[name]);
                let is_taken = wanted != accepted.str_at(&[name]) && used.contains(wanted);
                if is_taken { vec![wanted] } else { Vec::new() }
            }
        };
        if conflicts.is_empty() {
            take(&mut accepted, &requested, name);
        } else {
            // The last conflict is the one that is told.
            conflict = Some((reason, in_use(&conflicts)));
        }
    }
    take(&mut accepted, &requested, "categories");
    definition.set(&["status", "acceptedNames"], accepted);
    let names = match &conflict {
        None => Condition::new(NAMES_ACCEPTED, true, "NoConflicts", "no conflicts found"),
        Some((reason, message)) => Condition::new(NAMES_ACCEPTED, false, reason, message),
    };
    set_condition(definition, &names, now);
    if !is_established(definition) {
        let established = match conflict {
            None => Condition::new(ESTABLISHED, false, "Installing", ACCEPTED),
            Some(_) => Condition::new(ESTABLISHED, false, "NotAccepted", "not all names are accepted"),
        };
        set_condition(definition, &established, now);
    }
    definition.get("status").cloned() != before
}

const ACCEPTED: &str = "the initial names have been accepted";

/// Establishes a definition whose names are accepted; its resources must be served by then.
/// Returns whether anything changed.
pub fn establish(definition: &mut Value, now: &str) -> bool {
    if !is_true(definition, NAMES_ACCEPTED) || is_established(definition) {
        return false;
    }
    set_condition(definition, &Condition::new(ESTABLISHED, true, "InitialNamesAccepted", ACCEPTED), now);
    true
}

fn short_names(names: &Value) -> impl Iterator<Item = &str> {
    names.get("shortNames").and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str)
}

fn take(accepted: &mut Value, requested: &Value, name: &str) {
    match requested.get(name) {
        Some(value) => accepted.set(&[name], value.clone()),
        None => drop(accepted.remove(&[name])),
    }
}

fn in_use(names: &[&str]) -> String {
    let mut texts: Vec<_> =
        names.iter().map(|name| format!("{} is already in use", go_quote(name))).collect();
    texts.dedup();
    if let [single] = texts.as_slice() { single.clone() } else { format!("[{}]", texts.join(", ")) }
}

struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl<'a> Condition<'a> {
    fn new(kind: &'a str, holds: bool, reason: &'a str, message: &'a str) -> Self {
        Self { kind, status: if holds { "True" } else { "False" }, reason, message }
    }
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = definition.at(&["status", "conditions"])?.as_array()?;
    conditions.iter().find(|condition| condition.str_at(&["type"]) == kind)
}

/// Adds or changes a condition; the time changes with the status only.
fn set_condition(definition: &mut Value, new: &Condition<'_>, now: &str) {
    let status = definition.object_at_mut(&["status"]);
    let conditions = status.entry("conditions".to_owned()).or_default();
    if conditions.as_array().is_none() {
        *conditions = Value::Array(Vec::new());
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let index = conditions.iter().position(|condition| condition.str_at(&["type"]) == new.kind);
    let index = index.unwrap_or_else(|| {
        conditions.push(Value::from([("type", new.kind)]));
        conditions.len() - 1
    });
    let condition = &mut conditions[index];
    if condition.str_at(&["status"]) != new.status {
        condition.set(&["lastTransitionTime"], now);
    }
    condition.set(&["status"], new.status);
    condition.set(&["reason"], new.reason);
    condition.set(&["message"], new.message);
}
