//! Which finalizers a deletion adds or removes. Pure.

use super::options::DeleteOptions;

/// Dependents stay behind.
pub(super) const ORPHAN: &str = "orphan";

/// Dependents go first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// The finalizers after the options have been heard, or `None` when nothing changes.
pub(super) fn wanted(existing: &[&str], options: &DeleteOptions) -> Option<Vec<String>> {
    let has = |name: &str| existing.contains(&name);
    let policy = options.propagation_policy.as_deref();
    let orphan = match (options.orphan_dependents, policy) {
        (Some(orphan), _) => orphan,
        (None, Some("Orphan")) => true,
        (None, Some(_)) => false,
        (None, None) => has(ORPHAN),
    };
    let foreground = match (options.orphan_dependents, policy) {
        (Some(_), _) => false,
        (None, Some("Foreground")) => true,
        (None, Some(_)) => false,
        (None, None) => has(FOREGROUND) && !orphan,
    };
    let mut wanted: Vec<String> = existing
        .iter()
        .filter(|name| !matches!(**name, ORPHAN | FOREGROUND))
        .map(|name| (*name).to_owned())
        .collect();
    if orphan {
        wanted.push(ORPHAN.to_owned());
    }
    if foreground {
        wanted.push(FOREGROUND.to_owned());
    }
    (wanted != existing).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_decide_over_the_collectors_finalizers() {
        for (existing, policy, orphan, expected) in [
            (&[][..], None, None, None),
            (&["a/b"], None, None, None),
            (&[], Some("Orphan"), None, Some(vec!["orphan"])),
            (&[], Some("Foreground"), None, Some(vec!["foregroundDeletion"])),
            (&["orphan", "a/b"], Some("Background"), None, Some(vec!["a/b"])),
            (&["foregroundDeletion"], Some("Orphan"), None, Some(vec!["orphan"])),
            (&["orphan"], None, None, None),
            (&["foregroundDeletion"], None, None, None),
            (&[], None, Some(true), Some(vec!["orphan"])),
            (&["orphan"], None, Some(false), Some(vec![])),
        ] {
            let options = DeleteOptions {
                propagation_policy: policy.map(str::to_owned),
                orphan_dependents: orphan,
                ..DeleteOptions::default()
            };
            let expected =
                expected.map(|names: Vec<&str>| names.iter().map(|name| (*name).to_owned()).collect());
            assert_eq!(wanted(existing, &options), expected, "{existing:?} {policy:?} {orphan:?}");
        }
    }
}
