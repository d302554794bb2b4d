//! A start without the definitions (O35).

use serde_json::json;

use crate::world::{CLUSTER_STORES, ES, STORES, World, external_secret, seconds, shown};

#[tokio::test]
async fn o35_definitions_that_are_absent_at_start_are_waited_for() {
    let world = World::new();
    for plural in [ES, STORES, CLUSTER_STORES] {
        world.api.install(plural, false);
    }
    let operator = world.start("operator", |_| {}).await;
    world.pass(seconds(300)).await;
    assert!(!operator.ended() && !operator.synced.is_cancelled(), "it waits");
    let tries = world.api.take().iter().filter(|seen| seen.place.0 == ES).count();
    assert!((5..=20).contains(&tries), "{tries} tries in five minutes");

    for plural in [ES, STORES, CLUSTER_STORES] {
        world.api.install(plural, true);
    }
    world.remote.set("k", "v");
    world.store("s", json!({}));
    world.api.put(ES, "ns", "es", external_secret("s", "1h", &["k=k"]));
    world.pass(seconds(31)).await;
    assert!(operator.synced.is_cancelled(), "healthy after they were applied");
    assert_eq!(shown(world.secret("es")), "k=v");
    operator.end().await;
}
