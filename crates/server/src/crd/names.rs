//! Which names a definition gets, and when it is served.
//!
//! | names | Established before | NamesAccepted | Established after |
//! |---|---|---|---|
//! | some taken | not true | False, `<Which>Conflict` | False, `NotAccepted` |
//! | all free or its own | not true | True, `NoConflicts` | True, `InitialNamesAccepted` |
//! | the same, and the authorities of its webhook cannot be read | not true | True, `NoConflicts` | False, `InvalidCABundle` |
//! | some taken | True | False, `<Which>Conflict` | True, as before |
//! | all free or its own | True | True, `NoConflicts` | True, as before |

use std::collections::BTreeSet;

use coffer_types::Value;
use coffer_types::validation::field::Path;

use crate::authz::quote::{aggregate, quote};
use crate::webhook;

/// The condition that says whether all names are a definition's own.
pub(crate) const ACCEPTED: &str = "NamesAccepted";

/// The condition that says whether a definition's resources are served. Once true, it stays.
pub(crate) const ESTABLISHED: &str = "Established";

/// What a condition is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) holds: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Whether the definition's resources are served.
pub(crate) fn is_established(definition: &Value) -> bool {
    let conditions = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let established = conditions.iter().find(|condition| condition.str_at(&["type"]) == ESTABLISHED);
    established.is_some_and(|condition| condition.str_at(&["status"]) == "True")
}

/// What [`ESTABLISHED`] is to say; `None` when nothing changes it any more.
pub(crate) fn establish(definition: &Value, accepted: bool) -> Option<Verdict> {
    let bundle = definition.at(&["spec", "conversion", "webhook", "clientConfig", "caBundle"]);
    let readable = || bundle.is_none_or(|bundle| webhook::check_bundle(&Path::new(""), bundle).is_empty());
    let (holds, reason, message) = if !accepted {
        (false, "NotAccepted", "not all names are accepted")
    } else if readable() {
        (true, "InitialNamesAccepted", "the initial names have been accepted")
    } else {
        (false, "InvalidCABundle", "The conversion webhook CABundle is invalid")
    };
    (!is_established(definition)).then(|| Verdict { holds, reason, message: message.to_owned() })
}

/// The names that a definition has now, given all definitions, and whether all that it asks for are
/// among them.
pub(crate) fn accept<'a>(definition: &Value, all: impl Iterator<Item = &'a Value>) -> (Value, Verdict) {
    let mut resources: BTreeSet<&str> = BTreeSet::new();
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    for other in all.filter(|other| other.str_at(&["spec", "group"]) == definition.str_at(&["spec", "group"]))
    {
        let names = |field: &str| other.str_at(&["status", "acceptedNames", field]);
        resources.extend([names("plural"), names("singular")]);
        resources.extend(texts(other, "status", "shortNames"));
        kinds.extend([names("kind"), names("listKind")]);
    }
    let asked = |field: &str| definition.str_at(&["spec", "names", field]);
    let held = |field: &str| definition.str_at(&["status", "acceptedNames", field]);
    let check = |asked: &str, held: &str, used: &BTreeSet<&str>| {
        if asked == held || !used.contains(asked) {
            Ok(())
        } else {
            Err(format!("{} is already in use", quote(asked)))
        }
    };
    let mut names = definition.at(&["status", "acceptedNames"]).cloned().unwrap_or_else(Value::object);
    let mut problem: Option<(&'static str, String)> = None;
    for (field, used, reason) in
        [("plural", &resources, "PluralConflict"), ("singular", &resources, "SingularConflict")]
    {
        match check(asked(field), held(field), used) {
            Ok(()) => names.set_str(&[field], asked(field)),
            Err(message) => problem = Some((reason, message)),
        }
    }
    let short = texts(definition, "spec", "shortNames");
    let own = texts(definition, "status", "shortNames");
    if short != own {
        let fresh = short.iter().filter(|name| !own.contains(name));
        let errors: Vec<String> = fresh.filter_map(|name| check(name, "", &resources).err()).collect();
        if errors.is_empty() {
            set_list(&mut names, "shortNames", &short);
        } else {
            problem = Some(("ShortNamesConflict", aggregate(&errors)));
        }
    }
    for (field, used, reason) in [("kind", &kinds, "KindConflict"), ("listKind", &kinds, "ListKindConflict")]
    {
        match check(asked(field), held(field), used) {
            Ok(()) => names.set_str(&[field], asked(field)),
            Err(message) => problem = Some((reason, message)),
        }
    }
    set_list(&mut names, "categories", &texts(definition, "spec", "categories"));
    let verdict = match problem {
        Some((reason, message)) => Verdict { holds: false, reason, message },
        None => Verdict { holds: true, reason: "NoConflicts", message: "no conflicts found".to_owned() },
    };
    (names, verdict)
}

/// A list of names of the spec, or of the accepted ones.
fn texts<'a>(definition: &'a Value, part: &str, field: &str) -> Vec<&'a str> {
    let names = if part == "spec" { "names" } else { "acceptedNames" };
    let items = definition.at(&[part, names, field]).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).collect()
}

fn set_list(names: &mut Value, field: &str, items: &[&str]) {
    if items.is_empty() {
        names.remove(&[field]);
    } else {
        names.set(&[field], items.iter().map(|item| Value::from(*item)).collect::<Vec<_>>());
    }
}
