//! The registry store on the embedded engine.

use std::sync::Arc;

use coffer_sim::SimClock;
use coffer_store::embedded::{Embedded, EmbeddedOptions};

use crate::registry::world::Engine;

async fn engine() -> Engine {
    let clock = SimClock::default();
    let options = EmbeddedOptions::new(Arc::new(clock.clone()));
    let kv = Embedded::in_memory(options).await.expect("opens");
    Engine { kv: Arc::new(kv), clock: Some(clock), server: Box::new(()) }
}

crate::registry::suite!(crate::registry_embedded::engine);
