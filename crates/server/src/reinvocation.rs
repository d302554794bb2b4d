//! Which mutating webhooks are asked twice about one write. Pure.
//!
//! When a webhook changes the object, the whole of mutating admission runs once more: built-in plugins
//! always, a webhook only where its policy is `IfNeeded` and the object changed after it was asked.

use std::collections::BTreeSet;

use coffer_types::Value;
use parking_lot::Mutex;

/// What is remembered of the first round for the second.
#[derive(Default)]
pub struct Reinvocation(Mutex<State>);

#[derive(Default)]
struct State {
    second: bool,
    wanted: bool,
    /// Webhooks that were asked since the last change, and want to see changes.
    asked: BTreeSet<String>,
    /// Webhooks that are asked again.
    again: BTreeSet<String>,
    /// The object as the webhooks left it, where that matters.
    left: Option<Value>,
}

impl Reinvocation {
    /// Whether there must be a second round.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.lock().wanted
    }

    /// The second round begins.
    pub(crate) fn begin_second(&self) {
        self.0.lock().second = true;
    }

    /// The webhooks are about to be asked: what the other plugins changed since counts as a change.
    pub(crate) fn begin(&self, object: Option<&Value>) {
        let mut state = self.0.lock();
        if state.second && !state.asked.is_empty() && state.left.as_ref() != object {
            state.all_again();
        }
    }

    /// Whether a webhook is asked in this round.
    pub(crate) fn asks(&self, webhook: &str) -> bool {
        let state = self.0.lock();
        !state.second || state.again.contains(webhook)
    }

    /// A webhook has answered.
    pub(crate) fn answered(&self, webhook: &str, if_needed: bool, changed: bool) {
        let mut state = self.0.lock();
        if changed {
            state.all_again();
            state.wanted = true;
        }
        if if_needed {
            state.asked.insert(webhook.to_owned());
        }
    }

    /// The webhooks have been asked.
    pub(crate) fn end(&self, object: Option<&Value>) {
        let mut state = self.0.lock();
        state.left = if state.second || state.asked.is_empty() { None } else { object.cloned() };
    }
}

impl State {
    fn all_again(&mut self) {
        let mut asked = std::mem::take(&mut self.asked);
        self.again.append(&mut asked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each round: webhooks as `name`, `name!` when it changes the object, with `?` when it wants to be
    /// asked again. Returns who is asked in the second round.
    fn second(first: &[&str], changed_between: bool) -> Option<Vec<String>> {
        let reinvocation = Reinvocation::default();
        let (before, after) = (Value::from("before"), Value::from("after"));
        reinvocation.begin(Some(&before));
        for webhook in first {
            let name = webhook.trim_end_matches(['!', '?']);
            assert!(reinvocation.asks(name));
            reinvocation.answered(name, webhook.contains('?'), webhook.contains('!'));
        }
        reinvocation.end(Some(&before));
        if !reinvocation.is_wanted() {
            return None;
        }
        reinvocation.begin_second();
        reinvocation.begin(Some(if changed_between { &after } else { &before }));
        let names = first.iter().map(|webhook| webhook.trim_end_matches(['!', '?']));
        Some(names.filter(|name| reinvocation.asks(name)).map(str::to_owned).collect())
    }

    /// Cases of upstream's reinvocation tests.
    #[test]
    fn a_webhook_is_asked_again_when_the_object_changed_after_it() {
        for (first, changed_between, expected) in [
            (&["a", "b"][..], false, None),
            (&["a?", "b?"], false, None),
            (&["a!", "b"], false, Some(vec![])),
            (&["a?", "b!"], false, Some(vec!["a"])),
            (&["a?", "b!?"], false, Some(vec!["a"])),
            (&["a!?", "b"], false, Some(vec![])),
            (&["a!?", "b"], true, Some(vec!["a"])),
            (&["a?", "b!", "c?"], false, Some(vec!["a"])),
            (&["a?", "b!", "c?"], true, Some(vec!["a", "c"])),
        ] {
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(second(first, changed_between), expected, "{first:?} {changed_between}");
        }
    }
}
