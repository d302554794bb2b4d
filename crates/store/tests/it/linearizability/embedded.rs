//! Objects over the embedded engine, with no faults but many clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use coffer_sim::SimClock;
use coffer_store::embedded::{Embedded, EmbeddedOptions};

use super::{Length, objects};
use crate::registry::world::{Engine, World};

/// Calls of one step; a long run has many.
const STEP: usize = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_over_the_embedded_engine() {
    let clock = SimClock::default();
    let options = EmbeddedOptions::new(Arc::new(clock.clone()));
    let kv = Embedded::in_memory(options).await.expect("opens");
    let engine = Engine { kv: Arc::new(kv), clock: Some(clock.clone()), server: Box::new(()) };
    let world = World::new(engine).await;
    let length = Length::new(4);
    objects::run(world, "objects over the embedded engine", |calls: Arc<AtomicUsize>| async move {
        let mut steps = 0;
        while length.goes_on(steps) {
            let wanted = calls.load(Ordering::SeqCst) + STEP;
            while calls.load(Ordering::SeqCst) < wanted {
                tokio::time::sleep(Duration::from_millis(1)).await;
                // Waiting reads ask for progress by the clock.
                clock.advance(Duration::from_millis(10));
            }
            steps += 1;
        }
    })
    .await;
}
