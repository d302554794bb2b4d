//! The promises of [`coffer_store::kv::Kv`] on the embedded engine, and what only that engine has.

pub(crate) mod helpers;
pub(crate) mod suite;

mod crash;
mod differences;
mod directory;
mod kill;

mod embedded {
    use std::sync::Arc;

    use coffer_sim::SimClock;
    use coffer_store::embedded::{Embedded, EmbeddedOptions};

    use super::helpers::Fixture;

    pub(super) async fn fixture() -> Fixture {
        let clock = SimClock::default();
        let options = EmbeddedOptions::new(Arc::new(clock.clone()));
        let kv = Embedded::in_memory(options).await.expect("opens");
        Fixture { kv: Box::new(kv), clock: Some(clock), _server: Box::new(()) }
    }

    super::suite::promises!(fixture);
}
