//! The state machine of one watched Secret or ConfigMap, as a table.
//!
//! | references | event | then | actions |
//! |---|---|---|---|
//! | 0 | reference added | 1 | start the watch |
//! | n > 0 | reference added | n + 1 | – |
//! | 1 | reference dropped | gone | stop the watch, forget |
//! | n > 1 | reference dropped | n − 1 | – |
//! | 0 | reference dropped | gone | forget |
//! | n > 0 | observed, same as before | synced | – |
//! | n > 0 | observed, changed | synced | notify |
//! | n > 0 | observed, immutable | synced, frozen | stop the watch (and notify when changed) |
//! | 0 | observed | gone | forget |
//! | n > 0, synced, not frozen | differs | – | stop the watch, start the watch |
//! | n > 0, otherwise | differs | – | – |
//! | 0 | differs | gone | forget |
//!
//! A frozen one stays as it is until the last reference goes, as in the kubelet.

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl Kind {
    /// As the kubelet writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::ConfigMap => "configmap",
        }
    }

    /// As it stands in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
        }
    }
}

/// Kind, namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Kind.
    pub kind: Kind,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// A Secret.
    pub fn secret(namespace: &str, name: &str) -> Self {
        Self { kind: Kind::Secret, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// A ConfigMap.
    pub fn config_map(namespace: &str, name: &str) -> Self {
        Self { kind: Kind::ConfigMap, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// The state of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Object {
    /// How many pods refer to it.
    pub references: usize,
    /// Whether the server has answered once.
    pub synced: bool,
    /// Whether an immutable value was seen: the watch is over for good.
    pub frozen: bool,
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// One more pod refers to it.
    ReferenceAdded,
    /// One pod less refers to it.
    ReferenceDropped,
    /// The watch answered.
    Observed {
        /// Whether the object differs from the one before (or is gone, or new).
        changed: bool,
        /// Whether it says `immutable: true`.
        immutable: bool,
    },
    /// The server, asked, has another version than the watch told last: an event was lost, or is on its way.
    Differs,
}

/// What is to be done, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Start the watch.
    StartWatch,
    /// Stop the watch; the value is kept.
    StopWatch,
    /// Tell the pods that refer to it.
    Notify,
    /// Drop the value.
    Forget,
}

/// The table.
pub fn step(object: Object, event: Event) -> (Object, Vec<Action>) {
    match (object.references, event) {
        (0, Event::ReferenceAdded) => {
            (Object { references: 1, synced: false, frozen: false }, vec![Action::StartWatch])
        }
        (references, Event::ReferenceAdded) => (Object { references: references + 1, ..object }, vec![]),
        (0, Event::ReferenceDropped | Event::Observed { .. } | Event::Differs) => {
            (Object::default(), vec![Action::Forget])
        }
        (1, Event::ReferenceDropped) => (Object::default(), vec![Action::StopWatch, Action::Forget]),
        (references, Event::ReferenceDropped) => (Object { references: references - 1, ..object }, vec![]),
        (_, Event::Differs) if object.synced && !object.frozen => {
            (object, vec![Action::StopWatch, Action::StartWatch])
        }
        (_, Event::Differs) => (object, vec![]),
        (_, Event::Observed { changed, immutable }) => {
            let mut actions = Vec::new();
            if immutable && !object.frozen {
                actions.push(Action::StopWatch);
            }
            if changed {
                actions.push(Action::Notify);
            }
            (Object { synced: true, frozen: object.frozen || immutable, ..object }, actions)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const EVENTS: [Event; 7] = [
        Event::ReferenceAdded,
        Event::ReferenceDropped,
        Event::Observed { changed: false, immutable: false },
        Event::Observed { changed: true, immutable: false },
        Event::Observed { changed: false, immutable: true },
        Event::Observed { changed: true, immutable: true },
        Event::Differs,
    ];

    /// Every sequence of up to seven events: the watch runs exactly while someone refers to a
    /// Secret that is not frozen, and whoever refers to it is told of each change.
    #[test]
    fn every_sequence_keeps_the_promises() {
        let mut frontier = vec![(Object::default(), false, 0_usize)];
        let mut states = HashSet::new();
        for _ in 0..7 {
            let mut next = Vec::new();
            for (object, watching, references) in frontier {
                for event in EVENTS {
                    let (after, actions) = step(object, event);
                    let references = match event {
                        Event::ReferenceAdded => references + 1,
                        Event::ReferenceDropped => references.saturating_sub(1),
                        Event::Observed { .. } | Event::Differs => references,
                    };
                    let mut watching = watching;
                    for action in &actions {
                        match action {
                            Action::StartWatch => {
                                assert!(!watching, "two watches of one Secret");
                                watching = true;
                            }
                            Action::StopWatch => watching = false,
                            Action::Notify => assert!(references > 0, "nobody is there to be told"),
                            Action::Forget => assert_eq!(references, 0, "a value in use was dropped"),
                        }
                    }
                    assert_eq!(after.references, references);
                    assert_eq!(watching, references > 0 && !after.frozen, "{object:?} {event:?}");
                    if let Event::Observed { changed: true, .. } = event {
                        assert_eq!(actions.contains(&Action::Notify), references > 0);
                    }
                    if event == Event::Differs && references > 0 {
                        // Values are kept, and the first answer is still waited for by its own watch.
                        assert_eq!(after, object);
                        assert_eq!(actions.is_empty(), !object.synced || object.frozen, "{object:?}");
                    }
                    assert_eq!(actions.contains(&Action::Forget), references == 0, "{object:?} {event:?}");
                    states.insert(format!("{after:?}{watching}"));
                    next.push((after, watching, references));
                }
            }
            frontier = next;
            frontier
                .sort_by_key(|(object, watching, references)| format!("{object:?}{watching}{references}"));
            frontier.dedup();
        }
        assert!(states.len() > 10);
    }
}
