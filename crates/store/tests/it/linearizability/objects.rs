//! What API clients see: objects in a registry store and its watch cache, over an engine.
//!
//! A GET tells no revision of the store, so that it may have happened at any at which the object
//! was as it was told; a LIST tells one. Both must be as recent as whatever was acknowledged to
//! anyone before they were asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use coffer_sim::SeededRandom;
use coffer_sim::history::{Call, Outcome, Recorder, Request};
use coffer_store::kv::{Compare, Op, RangeRequest, Revision, SharedValue, Txn, prefix_end};
use coffer_store::registry::{Preconditions, ReadAt, Registry, Stored};
use coffer_types::meta::Meta;
use coffer_types::{Status, Value};

use super::{CLIENTS, seed, verify};
use crate::registry::world::{World, list, pod, with};

const NAMES: u64 = 4;
const NAMESPACE: &str = "ns";

struct Clients {
    world: Arc<World>,
    recorder: Recorder,
    stop: AtomicBool,
    calls: AtomicUsize,
}

/// Runs clients on `world` while `disturb` goes on, then checks what they were told.
pub(crate) async fn run<F: Future>(world: World, what: &str, disturb: impl FnOnce(Arc<AtomicUsize>) -> F) {
    let seed = seed();
    let world = Arc::new(world);
    let start = world.current().await;
    let counter = Arc::new(AtomicUsize::new(0));
    let clients = Arc::new(Clients {
        world: world.clone(),
        recorder: Recorder::default(),
        stop: AtomicBool::new(false),
        calls: AtomicUsize::new(0),
    });
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (clients, counter) = (clients.clone(), counter.clone());
            tokio::spawn(async move {
                let random = SeededRandom::new(seed * 100 + number as u64);
                while !clients.stop.load(Ordering::SeqCst) {
                    clients.one(number, &random).await;
                    counter.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    // What it gives must live while the last reads are made.
    let _server = disturb(counter).await;
    clients.stop.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.expect("the client");
    }
    let made = clients.calls.load(Ordering::SeqCst);
    while !clients.list(CLIENTS).await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let log = verify(what, seed, start, &clients.recorder.calls(), &[]);
    assert!(made / 10 < log.changes.len(), "too little happened: {}", log.changes.len());
}

fn key(name: &str) -> Bytes {
    Bytes::from(format!("/registry/pods/{NAMESPACE}/{name}"))
}

/// What tells one write from another: the label that every object has.
fn value(stored: &Stored) -> Bytes {
    let label = stored.attributes.labels.iter().find(|(key, _)| key == "app");
    Bytes::from(label.expect("every object is labelled").1.clone())
}

fn put(name: &str, label: &str, expected: Revision) -> Request {
    let value = SharedValue(Bytes::copy_from_slice(label.as_bytes()));
    Request::Txn(Txn {
        compare: vec![Compare::ModRevision(key(name), expected)],
        success: vec![Op::Put { key: key(name), value, lease: 0 }],
        failure: Vec::new(),
    })
}

impl Clients {
    fn note(&self, client: usize, invoked: u64, request: Request, outcome: Outcome) {
        let returned = self.recorder.now();
        self.recorder.note(Call { client, invoked, returned, request, outcome });
        self.calls.fetch_add(1, Ordering::SeqCst);
    }

    fn object(&self, name: &str, label: &str) -> Value {
        with(pod(NAMESPACE, name), &["metadata", "labels", "app"], label)
    }

    async fn one(&self, client: usize, random: &SeededRandom) {
        let name = format!("pod-{}", random.below(NAMES));
        let known = match random.below(8) {
            0 => self.create(client, &name).await,
            1 | 2 => self.update(client, &name).await,
            3 => self.delete(client, &name).await,
            4 => self.list(client).await,
            _ => self.get(client, &name).await,
        };
        // No storm of writes while the store is away: first it must answer.
        while !known && !self.stop.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
            if self.list(client).await {
                break;
            }
        }
    }

    async fn create(&self, client: usize, name: &str) -> bool {
        let invoked = self.recorder.now();
        let label = format!("v{invoked}");
        let object = self.object(name, &label);
        match self.world.store.create(NAMESPACE, name, &object, 0).await {
            Ok(stored) => {
                self.note(client, invoked, put(name, &label, 0), Outcome::Committed(stored.revision));
            }
            Err(error) if error.code == 409 => {
                self.note(client, invoked, Request::Peek(key(name)), Outcome::Exists(true));
            }
            Err(error) => return self.lost(client, invoked, put(name, &label, 0), &error),
        }
        true
    }

    async fn update(&self, client: usize, name: &str) -> bool {
        let invoked = self.recorder.now();
        let label = format!("v{invoked}");
        let object = self.object(name, &label);
        let mut seen = 0;
        let updated = self.world.update_with(&object, true, |current| {
            seen = current.revision;
            Ok(object.clone())
        });
        match updated.await {
            Ok(stored) => {
                self.note(client, invoked, put(name, &label, seen), Outcome::Committed(stored.revision));
                true
            }
            Err(error) => self.lost(client, invoked, put(name, &label, seen), &error),
        }
    }

    async fn delete(&self, client: usize, name: &str) -> bool {
        let invoked = self.recorder.now();
        let object = pod(NAMESPACE, name);
        let mut seen = 0;
        let deleted = self
            .world
            .delete_with(&object, &Preconditions::default(), |found| {
                seen = found.resource_version().parse().expect("a revision");
                Ok(())
            })
            .await;
        let request = Request::Txn(Txn {
            compare: vec![Compare::ModRevision(key(name), seen)],
            success: vec![Op::Delete { key: key(name) }],
            failure: Vec::new(),
        });
        match deleted {
            Ok(stored) => self.note(client, invoked, request, Outcome::Committed(stored.revision)),
            Err(error) if error.code == 404 => {
                self.note(client, invoked, Request::Peek(key(name)), Outcome::Exists(false));
            }
            Err(error) => return self.lost(client, invoked, request, &error),
        }
        true
    }

    fn lost(&self, client: usize, invoked: u64, request: Request, error: &Status) -> bool {
        assert!(500 <= error.code || error.code == 429, "{error}");
        self.note(client, invoked, request, Outcome::Unknown);
        false
    }

    async fn get(&self, client: usize, name: &str) -> bool {
        let invoked = self.recorder.now();
        let found = match self.world.get(&pod(NAMESPACE, name), ReadAt::Latest).await {
            Ok(stored) => Some((stored.revision, value(&stored))),
            Err(error) if error.code == 404 => None,
            Err(_) => return false,
        };
        self.note(client, invoked, Request::Peek(key(name)), Outcome::Peek(found));
        true
    }

    async fn list(&self, client: usize) -> bool {
        let invoked = self.recorder.now();
        let Ok(found) = self.world.store.list(list(NAMESPACE)).await else { return false };
        let items = found.items.iter().map(|stored| (key(&stored.name), stored.revision, value(stored)));
        let outcome = Outcome::Listed(found.revision, items.collect());
        let start = Bytes::from(format!("/registry/pods/{NAMESPACE}/"));
        let range = RangeRequest { end: prefix_end(&start), start, ..RangeRequest::default() };
        self.note(client, invoked, Request::Range(range), outcome);
        true
    }
}
