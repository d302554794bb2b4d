//! Counts what the quotas of a namespace are about, and writes it into their status.
//!
//! | Event | Actions |
//! |---|---|
//! | a quota is new, or its `spec.hard` is not its `status.hard` | read what it is about |
//! | the first quota of all | watch what can be counted |
//! | something that can be counted is gone from a namespace with quotas | read in a moment |
//! | the same is there or has changed | read in a second: admission has charged it already |
//! | the objects were read, and more is used than a quota says | write its status |
//! | the same, and less is used | read once more in a moment; the second time write its status |
//! | now and then | read for all quotas |
//!
//! The sums are those of upstream's quota controller: what is used, of what is limited. Reading twice is ours:
//! admission charges an object before it is stored, and what was read in between must not take the charge back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coffer_types::Value;
use coffer_types::codec::quantity::Fixed as Quantity;
use coffer_types::meta::Meta as _;
use coffer_types::time::Timestamp;

use super::{Action, Controller, Edit, Event, Mirror, Target, core};
use crate::ports::{Change, GroupResource, Interest, ServedResource};
use crate::quota::amounts::{Amounts, add, amounts};
use crate::quota::usage::Counted;

/// How long deletions are gathered.
const SOON: Duration = Duration::from_millis(250);
/// How long other changes are gathered.
const LATER: Duration = Duration::from_secs(1);

/// What was read, by resource.
type Objects = [(GroupResource, Vec<Value>)];

/// Counts for quotas.
#[derive(Default)]
pub(super) struct ResourceQuotas {
    quotas: Mirror,
    /// What can be counted.
    counted: Vec<GroupResource>,
    /// Namespaces that will be looked at, and whether soon.
    pending: BTreeMap<String, bool>,
    /// The status that was written last, by namespace and name: what comes back otherwise is looked at again.
    written: BTreeMap<(String, String), Value>,
    /// What was read of quotas that say more, by namespace and name.
    lower: BTreeMap<(String, String), Value>,
}

fn quotas() -> GroupResource {
    core("resourcequotas")
}

impl ResourceQuotas {
    fn of(&self, namespace: &str) -> impl Iterator<Item = &Value> {
        self.quotas.iter().filter(move |quota| quota.namespace() == namespace)
    }

    fn read(&self, namespace: &str) -> Option<Action> {
        let limited: Vec<Amounts> = self.of(namespace).map(hard).collect();
        let is_limited = |resource: &&GroupResource| {
            let counted = Counted::of(&resource.group, &resource.resource);
            limited.iter().any(|hard| !counted.matching(hard.keys()).is_empty())
        };
        let resources = self.counted.iter().filter(is_limited).cloned().collect();
        (!limited.is_empty()).then(|| Action::Read { namespace: namespace.to_owned(), resources })
    }

    fn read_all(&self) -> Vec<Action> {
        let namespaces: BTreeSet<&str> = self.quotas.iter().map(|quota| quota.namespace()).collect();
        namespaces.into_iter().filter_map(|namespace| self.read(namespace)).collect()
    }

    /// Looks at a namespace after a while, if it has quotas and will not be looked at before.
    fn put_off(&mut self, namespace: &str, soon: bool) -> Option<Action> {
        self.of(namespace).next()?;
        let known = self.pending.get(namespace);
        if known.is_some_and(|planned| *planned || !soon) {
            return None;
        }
        self.pending.insert(namespace.to_owned(), soon);
        let recount = Event::Recount { namespace: namespace.to_owned() };
        Some(Action::Later(if soon { SOON } else { LATER }, Box::new(recount)))
    }

    fn quota_changed(&mut self, change: Change) -> Vec<Action> {
        let first = self.quotas.iter().next().is_none();
        let mut actions = Vec::new();
        let changed = match &change {
            Change::Reset(_) => None,
            Change::Applied(quota) => Some((**quota).clone()),
            Change::Deleted(quota) => {
                self.written.remove(&key(quota));
                self.quotas.apply(change);
                return Vec::new();
            }
        };
        self.quotas.apply(change);
        // What came to be served while there were no quotas is not watched yet.
        if first && self.quotas.iter().next().is_some() {
            actions.push(Action::Rewatch);
        }
        // Nothing but quotas is watched: what must be read is said by `Watching`.
        if self.counted.len() <= 1 {
            return actions;
        }
        match changed {
            None => actions.extend(self.read_all()),
            Some(quota) => {
                let disputed = self
                    .written
                    .remove(&key(&quota))
                    .is_some_and(|written| Some(&written) != quota.get("status"));
                let stale = quota.at(&["spec", "hard"]) != quota.at(&["status", "hard"])
                    || quota.at(&["status", "used"]).is_none();
                if stale || disputed {
                    actions.extend(self.read(quota.namespace()));
                }
            }
        }
        actions
    }

    fn was_read(&mut self, namespace: &str, objects: &Objects, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut written = Vec::new();
        let lower_before = std::mem::take(&mut self.lower);
        let mut lower: BTreeMap<_, _> = lower_before
            .iter()
            .filter(|((of, _), _)| of != namespace)
            .map(|(key, one)| (key.clone(), one.clone()))
            .collect();
        for quota in self.of(namespace).filter(|quota| quota.deletion_timestamp().is_none()) {
            let Some(counted) = count(quota, objects, now) else { continue };
            let status = counted.get("status").cloned().unwrap_or_default();
            if says_more(quota, &counted) && lower_before.get(&key(quota)) != Some(&status) {
                lower.insert(key(quota), status);
                continue;
            }
            written.push((key(quota), status));
            actions.push(Action::Edit(Target::of(&quotas(), quota), Edit::ReplaceStatus(counted)));
        }
        self.written.extend(written);
        let unsure = lower.keys().any(|(of, _)| of == namespace);
        self.lower = lower;
        if unsure {
            actions.extend(self.put_off(namespace, true));
        }
        actions
    }
}

fn key(quota: &Value) -> (String, String) {
    (quota.namespace().to_owned(), quota.name().to_owned())
}

fn hard(quota: &Value) -> Amounts {
    amounts(quota, &["spec", "hard"])
}

/// Whether a quota says that more of something is used than was counted.
fn says_more(quota: &Value, counted: &Value) -> bool {
    let counted = amounts(counted, &["status", "used"]);
    let said = amounts(quota, &["status", "used"]);
    said.iter().any(|(name, said)| counted.get(name).is_some_and(|counted| counted < said))
}

/// The quota with the status that it must have, unless it has it.
fn count(quota: &Value, objects: &Objects, now: Timestamp) -> Option<Value> {
    let hard = hard(quota);
    let before = quota.at(&["status", "used"]).map(|_| amounts(quota, &["status", "used"]));
    let mut used = before.clone().unwrap_or_default();
    let mut sums = Amounts::new();
    for (resource, all) in objects {
        let counted = Counted::of(&resource.group, &resource.resource);
        for name in counted.matching(hard.keys()) {
            sums.entry(name).or_insert(Quantity::of(0));
        }
        for object in all.iter().filter(|object| counted.is_in_scopes(quota, object)) {
            add(&mut sums, &counted.usage(object, now));
        }
    }
    used.extend(sums);
    used.retain(|name, _| hard.contains_key(name));
    let same_hard = quota.at(&["spec", "hard"]) == quota.at(&["status", "hard"]);
    if same_hard && before.as_ref() == Some(&used) {
        return None;
    }
    let mut counted = quota.clone();
    let limits = quota.at(&["spec", "hard"]).cloned().unwrap_or_else(Value::object);
    counted.set(&["status", "hard"], limits);
    let used = used.into_iter().map(|(name, quantity)| (name, quantity.to_string().into()));
    counted.set(&["status", "used"], Value::Object(used.collect()));
    Some(counted)
}

impl Controller for ResourceQuotas {
    fn name(&self) -> &'static str {
        "resourcequota"
    }

    /// Nothing but quotas as long as there is none.
    fn watches(&self, served: &[ServedResource]) -> Vec<GroupResource> {
        if self.quotas.iter().next().is_none() {
            return vec![quotas()];
        }
        let counted = served.iter().filter(|one| one.namespaced && one.name.resource != "events");
        counted.map(|one| one.name.clone()).collect()
    }

    fn interest(&self, resource: &GroupResource) -> Interest {
        if *resource == quotas() { Interest::Whole } else { Interest::Metadata }
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Changed(resource, change) => {
                let touched = match &change {
                    Change::Reset(_) => None,
                    Change::Applied(object) => Some((object.namespace().to_owned(), false)),
                    Change::Deleted(object) => Some((object.namespace().to_owned(), true)),
                };
                let mut actions = if resource == quotas() { self.quota_changed(change) } else { Vec::new() };
                if let Some((namespace, soon)) = touched
                    && self.counted.contains(&resource)
                    && (resource != quotas() || soon)
                {
                    actions.extend(self.put_off(&namespace, soon));
                }
                actions
            }
            Event::Watching(watched) => {
                self.counted = watched;
                self.read_all()
            }
            Event::Recount { namespace } => {
                let planned = self.pending.remove(&namespace).is_some();
                if planned { self.read(&namespace).into_iter().collect() } else { Vec::new() }
            }
            Event::Read { namespace, objects, now } => self.was_read(&namespace, &objects, now),
            Event::Resync => self.read_all(),
            Event::Emptied { .. } | Event::OwnersChecked { .. } | Event::Silent { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use coffer_types::codec::json;

    use super::super::tests::{applied, check, deleted, object, reset};
    use super::*;

    fn quota(text: &str) -> Value {
        json::decode_untyped(text.as_bytes()).expect("JSON").object
    }

    fn named(status: &str) -> Value {
        quota(&format!(
            r#"{{"metadata":{{"namespace":"a","name":"q"}},"spec":{{"hard":{{"secrets":"5","pods":"2","cpu":"1"}}}},"status":{status}}}"#
        ))
    }

    fn read(objects: &[(&str, Vec<Value>)]) -> Event {
        Event::Read {
            namespace: "a".to_owned(),
            objects: objects.iter().map(|(name, all)| (core(name), all.clone())).collect(),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    fn watching() -> Event {
        Event::Watching(["configmaps", "pods", "resourcequotas", "secrets"].map(core).to_vec())
    }

    #[test]
    fn what_is_used_is_counted_and_counted_again() {
        let secret = object("a/s", &[]);
        let busy = quota(
            r#"{"metadata":{"namespace":"a","name":"p"},"spec":{"containers":[{"resources":{"requests":{"cpu":"300m"}}}]}}"#,
        );
        let mut done = busy.clone();
        done.set(&["status", "phase"], "Succeeded");
        let first =
            r#"{"hard":{"cpu":"1","pods":"2","secrets":"5"},"used":{"cpu":"300m","pods":"1","secrets":"2"}}"#;
        let charged =
            r#"{"hard":{"cpu":"1","pods":"2","secrets":"5"},"used":{"cpu":"600m","pods":"2","secrets":"2"}}"#;
        let two = vec![secret.clone(), object("a/t", &[])];
        check(
            &mut ResourceQuotas::default(),
            vec![
                (Event::Watching(vec![quotas()]), vec![]),
                (reset("resourcequotas", &[]), vec![]),
                (Event::Resync, vec![]),
                (applied("resourcequotas", &named("{}")), vec!["rewatch"]),
                (watching(), vec!["read a: pods,secrets"]),
                (
                    read(&[("pods", vec![busy.clone(), done]), ("secrets", two.clone())]),
                    vec![
                        "resourcequotas a/q: status hard:cpu=1,pods=2,secrets=5 used:cpu=300m,pods=1,secrets=2",
                    ],
                ),
                (applied("resourcequotas", &named(first)), vec![]),
                (read(&[("pods", vec![busy.clone()]), ("secrets", two.clone())]), vec![]),
                // Admission has charged a pod: that is not disputed.
                (applied("resourcequotas", &named(charged)), vec![]),
                (applied("pods", &busy), vec!["later 1"]),
                (applied("pods", &busy), vec![]),
                (deleted("secrets", &secret), vec!["later 0"]),
                (deleted("secrets", &secret), vec![]),
                // Nobody limits these, and nothing is limited there.
                (deleted("secrets", &object("b/s", &[])), vec![]),
                (Event::Recount { namespace: "a".to_owned() }, vec!["read a: pods,secrets"]),
                (Event::Recount { namespace: "a".to_owned() }, vec![]),
                // Less than before: one more look.
                (read(&[("pods", vec![]), ("secrets", vec![secret.clone()])]), vec!["later 0"]),
                (Event::Recount { namespace: "a".to_owned() }, vec!["read a: pods,secrets"]),
                (read(&[("pods", vec![]), ("secrets", two.clone())]), vec!["later 0"]),
                (Event::Recount { namespace: "a".to_owned() }, vec!["read a: pods,secrets"]),
                (read(&[("pods", vec![]), ("secrets", vec![secret.clone()])]), vec!["later 0"]),
                (Event::Recount { namespace: "a".to_owned() }, vec!["read a: pods,secrets"]),
                (
                    read(&[("pods", vec![]), ("secrets", vec![secret.clone()])]),
                    vec![
                        "resourcequotas a/q: status hard:cpu=1,pods=2,secrets=5 used:cpu=0,pods=0,secrets=1",
                    ],
                ),
                // Somebody was faster: what was written is not what is there.
                (applied("resourcequotas", &named(charged)), vec!["read a: pods,secrets"]),
                (Event::Resync, vec!["read a: pods,secrets"]),
                (deleted("resourcequotas", &named(charged)), vec![]),
                (Event::Resync, vec![]),
                // The watches of what was served before are there already.
                (applied("resourcequotas", &named("{}")), vec!["rewatch", "read a: pods,secrets"]),
            ],
        );
    }

    /// As upstream's controller: what nobody can count stays as it was said, what is not limited is not told.
    #[test]
    fn what_nobody_counts_stays() {
        let quota = quota(
            r#"{"metadata":{"namespace":"a","name":"q"},"spec":{"hard":{"count/x.y":"5","pods":"2"}},
               "status":{"hard":{"count/x.y":"5","pods":"2"},"used":{"count/x.y":"3","secrets":"7"}}}"#,
        );
        let counted = count(&quota, &[(core("pods"), vec![])], Timestamp::UNIX_EPOCH).expect("a change");
        let used = amounts(&counted, &["status", "used"]);
        let shown: Vec<String> = used.iter().map(|(name, one)| format!("{name}={one}")).collect();
        assert_eq!(shown, ["count/x.y=3", "pods=0"]);
        assert_eq!(count(&counted, &[(core("pods"), vec![])], Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn only_what_is_in_all_scopes_counts() {
        let quota = quota(
            r#"{"metadata":{"namespace":"a","name":"q"},"spec":{"hard":{"pods":"2","secrets":"1"},"scopes":["Terminating"]}}"#,
        );
        let plain = object("a/p", &[]);
        let mut short = plain.clone();
        short.set(&["spec", "activeDeadlineSeconds"], 5_i64);
        let objects = [(core("pods"), vec![plain.clone(), short]), (core("secrets"), vec![plain])];
        let counted = count(&quota, &objects, Timestamp::UNIX_EPOCH).expect("a change");
        let used = amounts(&counted, &["status", "used"]);
        let shown: Vec<String> = used.iter().map(|(name, one)| format!("{name}={one}")).collect();
        assert_eq!(shown, ["pods=1", "secrets=0"]);
    }
}
