//! The registry store on the embedded engine.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coffer_sim::SimClock;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::registry::Registry as _;

use crate::registry::world::{Engine, QUIET, World, list};

async fn engine() -> Engine {
    let clock = SimClock::default();
    let options = EmbeddedOptions::new(Arc::new(clock.clone()));
    let kv = Embedded::in_memory(options).await.expect("opens");
    Engine { kv: Arc::new(kv), clock: Some(clock), server: Box::new(()) }
}

crate::registry::suite!(crate::registry_embedded::engine);

/// Upstream refuses at once; here a request waits for three seconds, so that the first one after a definition is
/// answered.
#[tokio::test]
async fn a_request_waits_three_seconds_for_a_cache_that_is_not_filled() {
    let world = World::unready(engine().await, 0);
    world.probe.unavailable.store(true, Ordering::SeqCst);
    world.storage.close("", "pods");
    let config = crate::registry::world::config("", "pods", coffer_store::key::Origin::BuiltIn, true);
    let store = world.storage.open(config).expect("a store");
    let world = world.with_store(store);
    let mut waiting = pin!(world.store.list(list("")));
    assert!(tokio::time::timeout(QUIET, &mut waiting).await.is_err(), "not at once");
    world.clock.advance(Duration::from_millis(2999));
    assert!(tokio::time::timeout(QUIET, &mut waiting).await.is_err(), "not before three seconds");
    world.clock.advance(Duration::from_millis(1));
    let error =
        tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("then").expect_err("refused");
    assert_eq!((error.code, &*error.reason), (429, "TooManyRequests"));

    // The next one is there when the engine comes back, and has its answer.
    let mut waiting = pin!(world.store.list(list("")));
    assert!(tokio::time::timeout(QUIET, &mut waiting).await.is_err(), "not at once");
    world.probe.unavailable.store(false, Ordering::SeqCst);
    let found = world.in_time(waiting).await.expect("answered");
    assert!(found.items.is_empty());
}
