//! Two operators, one Lease, and a Lease that cannot be renewed (O9).

use std::time::Duration;

use coffer_runtime::api::ObjectKey;
use coffer_runtime::lease::{ElectionConfig, Ended};
use coffer_types::time::Clock as _;
use http::Method;
use serde_json::json;

use crate::world::{ES, SECRETS, World, external_secret, seconds, shown};

fn election(identity: &str) -> Option<ElectionConfig> {
    Some(ElectionConfig {
        lease: ObjectKey::new("ns", "operator"),
        identity: identity.to_owned(),
        lease_duration: seconds(15),
        renew_deadline: seconds(10),
        retry_period: seconds(2),
    })
}

#[tokio::test]
async fn o9_a_leader_without_its_lease_steps_down_and_the_standby_takes_over_warm() {
    let world = World::new();
    world.store("s", json!({}));
    for index in 0..20 {
        world.remote.set(&format!("k{index}"), "1");
        world.api.put(
            ES,
            "ns",
            &format!("es-{index}"),
            external_secret("s", "5s", &[&format!("k=k{index}")]),
        );
    }
    let first = world.start("first", |config| config.leader_election = election("first")).await;
    // The standby looks between the leader's renewals.
    world.pass(seconds(1)).await;
    let second = world.start("second", |config| config.leader_election = election("second")).await;
    assert!(second.synced.is_cancelled(), "the standby's caches are filled");
    world.pass(seconds(30) + Duration::from_millis(500)).await;
    let seen = world.api.take();
    let wrote = |client: &str| seen.iter().filter(|seen| seen.client == client && seen.writes()).count();
    assert_eq!(wrote("second"), 0, "a standby writes nothing");
    assert!(0 < wrote("first"));
    assert_eq!(shown(world.secret("es-7")), "k=1");

    // The Lease is not answered for 12 s, while everything else is. It starts after the standby's look.
    let silent_since = world.clock.monotonic();
    world.api.silence("leases", true);
    for index in 0..20 {
        world.remote.set(&format!("k{index}"), "2");
    }
    world.pass(seconds(12)).await;
    assert!(first.ended(), "after the deadline of 10 s");
    world.api.silence("leases", false);
    world.pass(seconds(20)).await;
    let seen = world.api.take();
    let writes = |client: &'static str| {
        seen.iter().filter(move |seen| seen.client == client && seen.writes() && seen.place.0 != "leases")
    };
    let (last, next) =
        (writes("first").map(|seen| seen.at).max().unwrap(), writes("second").map(|seen| seen.at).min());
    let next = next.unwrap();
    assert!(last <= silent_since + seconds(12), "the leader stopped: {last:?}");
    assert!(last < next, "one after the other: {last:?}, {next:?}");
    // The lease's duration after the last renewal that it saw, and a retry period.
    assert!(next <= silent_since + seconds(15 + 2), "within the lease's duration: {next:?}");
    assert_eq!(first.end().await, Ended::Lost);

    // Each change was written once, by one of them.
    for index in 0..20 {
        let name = format!("es-{index}");
        assert_eq!(shown(world.secret(&name)), "k=2");
        let count = seen
            .iter()
            .filter(|seen| seen.place.0 == SECRETS && seen.place.2 == name && seen.method == Method::PUT);
        assert_eq!(count.count(), 1, "{name}");
    }
    // Warm: it lists nothing again.
    let listed = seen.iter().filter(|seen| seen.client == "second" && seen.query.contains("limit="));
    assert_eq!(listed.count(), 0);
    assert_eq!(second.end().await, Ended::Shutdown);
}

#[tokio::test]
async fn o9_a_leader_that_ends_hands_over_at_once() {
    let world = World::new();
    let first = world.start("first", |config| config.leader_election = election("first")).await;
    let second = world.start("second", |config| config.leader_election = election("second")).await;
    assert_eq!(first.end().await, Ended::Shutdown);
    let start = world.clock.monotonic();
    world.remote.set("k", "v");
    world.store("s", json!({}));
    world.api.put(ES, "ns", "es", external_secret("s", "1h", &["k=k"]));
    world.pass(seconds(2)).await;
    assert_eq!(shown(world.secret("es")), "k=v");
    assert_eq!(world.clock.monotonic() - start, seconds(2), "a retry period, not the lease's duration");
    second.end().await;
}
