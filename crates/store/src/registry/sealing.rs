//! What encrypts the values of each resource, replaced for all of them at once.
//!
//! There is one pointer to the transformers in use. A resource looks at it each time that it reads or
//! writes, so that no two resources ever see two configurations: once one has used the new one, all do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use coffer_crypto::transformer::Transformer;

use crate::key_writes::{KeyWrites, Writes};

/// Which transformer encrypts a resource, by group and plural.
pub type Transformers = Box<dyn Fn(&str, &str) -> Arc<dyn Transformer> + Send + Sync>;

/// The transformers that are in use.
pub(crate) struct InUse {
    current: ArcSwap<Generation>,
    numbers: AtomicU64,
    key_writes: KeyWrites,
}

struct Generation {
    number: u64,
    transformers: Transformers,
}

impl InUse {
    pub(crate) fn new(transformers: Transformers) -> Arc<Self> {
        Arc::new(Self {
            current: ArcSwap::from_pointee(Generation { number: 0, transformers }),
            numbers: AtomicU64::new(1),
            key_writes: KeyWrites::default(),
        })
    }

    /// From here on every resource reads and writes with these.
    pub(crate) fn replace(&self, transformers: Transformers) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.current.store(Arc::new(Generation { number, transformers }));
    }

    /// How often each key has encrypted.
    pub(crate) fn key_writes(&self) -> &KeyWrites {
        &self.key_writes
    }

    fn resolve(&self, generation: &Generation, group: &str, resource: &str) -> Resolved {
        let transformer = (generation.transformers)(group, resource);
        let writes = self.key_writes.of(&transformer.writes_under());
        Resolved { generation: generation.number, transformer, writes }
    }
}

/// What encrypts the values of one resource.
pub(crate) struct Sealing {
    in_use: Arc<InUse>,
    group: String,
    resource: String,
    /// What was in use when it was last looked at.
    known: ArcSwap<Resolved>,
}

/// One transformer, and the count of its key.
pub(crate) struct Resolved {
    generation: u64,
    pub(crate) transformer: Arc<dyn Transformer>,
    pub(crate) writes: Option<Arc<Writes>>,
}

impl Sealing {
    pub(crate) fn new(in_use: Arc<InUse>, group: &str, resource: &str) -> Self {
        let known = in_use.resolve(&in_use.current.load(), group, resource);
        let (group, resource) = (group.to_owned(), resource.to_owned());
        Self { in_use, group, resource, known: ArcSwap::from_pointee(known) }
    }

    /// What is in use now.
    pub(crate) fn now(&self) -> Guard<Arc<Resolved>> {
        let current = self.in_use.current.load();
        let known = self.known.load();
        if known.generation == current.number {
            return known;
        }
        let fresh = Arc::new(self.in_use.resolve(&current, &self.group, &self.resource));
        // Another thread may put an older one over it; whoever looks next finds that out.
        self.known.store(Arc::clone(&fresh));
        Guard::from_inner(fresh)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::sync::atomic::AtomicBool;

    use coffer_crypto::transformer::{Plain, TransformError};
    use parking_lot::Mutex;

    use super::*;

    struct Named(&'static str);

    impl Transformer for Named {
        fn from_storage(&self, _: &[u8], _: &[u8]) -> Result<Plain, TransformError> {
            Err(TransformError(String::new()))
        }

        fn to_storage(&self, _: &[u8], _: &[u8]) -> Result<Vec<u8>, TransformError> {
            Err(TransformError(String::new()))
        }

        fn writes_under(&self) -> String {
            self.0.to_owned()
        }
    }

    fn named(name: &'static str) -> Transformers {
        Box::new(move |_, _| Arc::new(Named(name)))
    }

    /// What all resources write under at this moment.
    fn all(resources: &[Sealing]) -> Vec<String> {
        resources.iter().map(|one| one.now().transformer.writes_under()).collect()
    }

    fn resources(in_use: &Arc<InUse>) -> Vec<Sealing> {
        ["secrets", "configmaps", "pods"].map(|name| Sealing::new(in_use.clone(), "", name)).into()
    }

    /// While the new transformer of one resource is being looked up, no resource uses the old ones any
    /// more, whichever is asked first.
    #[test]
    fn no_resource_sees_the_old_transformers_once_one_has_seen_the_new() {
        let in_use = InUse::new(named("old"));
        let resources = Arc::new(resources(&in_use));
        assert_eq!(all(&resources), ["old"; 3]);
        let (inside, seen) = (AtomicBool::new(false), Arc::new(Mutex::new(Vec::new())));
        let (known, told): (Weak<Vec<Sealing>>, _) = (Arc::downgrade(&resources), seen.clone());
        in_use.replace(Box::new(move |_, _| {
            if let Some(known) = known.upgrade()
                && !inside.swap(true, Ordering::SeqCst)
            {
                told.lock().push(all(&known));
            }
            Arc::new(Named("new"))
        }));
        assert_eq!(all(&resources), ["new"; 3]);
        assert_eq!(*seen.lock(), [["new"; 3]]);
    }

    /// Threads that look at resources one after the other never see a step back.
    #[test]
    fn no_thread_sees_the_transformers_go_back() {
        const NAMES: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];
        let in_use = InUse::new(named(NAMES[0]));
        let resources = resources(&in_use);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = String::new();
                    while last != NAMES[7] {
                        for now in all(&resources) {
                            assert!(last <= now, "{now} after {last}");
                            last = now;
                        }
                    }
                });
            }
            for name in &NAMES[1..] {
                std::thread::yield_now();
                in_use.replace(named(name));
            }
        });
    }

    /// Keys that are replaced are kept by nobody once every resource has looked.
    #[test]
    fn replaced_transformers_are_dropped() {
        let old: Arc<dyn Transformer> = Arc::new(Named("old"));
        let (given, gone) = (old.clone(), Arc::downgrade(&old));
        let in_use = InUse::new(Box::new(move |_, _| given.clone()));
        let resources = resources(&in_use);
        drop(old);
        in_use.replace(named("new"));
        assert!(gone.upgrade().is_some());
        all(&resources);
        assert!(gone.upgrade().is_none());
    }
}
