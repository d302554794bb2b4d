//! Several writers of one Secret (O23).

use std::time::Duration;

use serde_json::json;

use crate::world::{ES, SECRETS, World, encode, external_secret, seconds, shown};

/// Writes of Secrets and ExternalSecrets, without the events.
fn writes(world: &World) -> Vec<String> {
    let seen = world.api.take().into_iter().filter(|seen| seen.writes());
    seen.map(|seen| format!("{} {} {}", seen.method, seen.place.0, seen.place.2)).collect()
}

#[tokio::test]
async fn o23_keys_of_others_cause_no_fetch_and_no_write() {
    for policy in ["Merge", "Owner", "CreateOrMerge", "Orphan"] {
        let world = World::new();
        world.remote.set("k", "v");
        world.store("s", json!({}));
        if policy == "Merge" {
            world.api.put(SECRETS, "ns", "es", json!({"type": "Opaque", "data": {"theirs": encode("0")}}));
        }
        let mut object = external_secret("s", "1h", &["k=k"]);
        object["spec"]["target"] = json!({"creationPolicy": policy});
        world.api.put(ES, "ns", "es", object);
        let operator = world.start("operator", |_| {}).await;
        let first = if policy == "Merge" { "k=v theirs=0" } else { "k=v" };
        assert_eq!(shown(world.secret("es")), first, "{policy}");
        world.remote.take();
        world.api.take();
        for round in 1..=50 {
            world.api.edit(SECRETS, "ns", "es", |secret| {
                secret["data"]["theirs"] = encode(&round.to_string()).into();
                secret["data"][format!("more-{}", round % 3)] = encode("x").into();
            });
            world.pass(Duration::from_millis(100)).await;
        }
        assert_eq!(world.remote.take(), [], "{policy}");
        assert_eq!(writes(&world), Vec::<String>::new(), "{policy}");
        assert_eq!(shown(world.secret("es")), "k=v more-0=x more-1=x more-2=x theirs=50", "{policy}");

        if policy == "Orphan" {
            // As upstream: it is not watched, and follows at the interval.
            operator.end().await;
            continue;
        }

        // An own key is repaired once, with one read at the most.
        world.api.edit(SECRETS, "ns", "es", |secret| secret["data"]["k"] = encode("stolen").into());
        world.pass(seconds(5)).await;
        let repaired = if policy == "Owner" { "k=v" } else { "k=v more-0=x more-1=x more-2=x theirs=50" };
        assert_eq!(shown(world.secret("es")), repaired, "{policy}");
        assert!(world.remote.take().len() <= 1, "{policy}");
        let secrets = writes(&world).into_iter().filter(|write| write == "PUT secrets es").count();
        assert_eq!(secrets, 1, "{policy}: repaired once");

        // An own key that is missing too.
        world.api.edit(SECRETS, "ns", "es", |secret| {
            secret["data"].as_object_mut().unwrap().remove("k");
        });
        world.pass(seconds(5)).await;
        assert_eq!(shown(world.secret("es")), repaired, "{policy}");
        operator.end().await;
    }
}

#[tokio::test]
async fn o23_a_refresh_leaves_what_differs_for_others_only() {
    let world = World::new();
    world.remote.set("k", "v");
    world.store("s", json!({}));
    world.api.put(SECRETS, "ns", "es", json!({"type": "Opaque", "data": {"theirs": encode("0")}}));
    let mut object = external_secret("s", "10s", &["k=k"]);
    object["spec"]["target"] = json!({"creationPolicy": "Merge"});
    world.api.put(ES, "ns", "es", object);
    let operator = world.start("operator", |_| {}).await;
    world.api.take();
    for round in 0..40 {
        world
            .api
            .edit(SECRETS, "ns", "es", |secret| secret["data"]["theirs"] = encode(&round.to_string()).into());
        world.pass(seconds(1)).await;
    }
    assert!(
        writes(&world).iter().all(|write| write == "PATCH externalsecrets es"),
        "the status of each refresh"
    );
    world.remote.set("k", "new");
    world.pass(seconds(11)).await;
    assert_eq!(shown(world.secret("es")), "k=new theirs=39");
    operator.end().await;
}

#[tokio::test]
async fn o23_two_that_merge_into_one_secret_come_to_rest() {
    let world = World::new();
    world.store("s", json!({}));
    world.api.put(SECRETS, "ns", "shared", json!({"type": "Opaque", "data": {"theirs": encode("0")}}));
    for name in ["a", "b"] {
        world.remote.set(name, &format!("value of {name}"));
        let mut object = external_secret("s", "1h", &[&format!("{name}={name}")]);
        object["spec"]["target"] = json!({"creationPolicy": "Merge", "name": "shared"});
        world.api.put(ES, "ns", name, object);
    }
    let operator = world.start("operator", |_| {}).await;
    assert_eq!(shown(world.secret("shared")), "a=value of a b=value of b theirs=0");
    world.api.take();
    world.pass(seconds(600)).await;
    assert_eq!(writes(&world), Vec::<String>::new());
    operator.end().await;
}

#[tokio::test]
async fn o23_the_mark_of_an_own_write_is_restored() {
    let world = World::new();
    world.remote.set("k", "v");
    world.store("s", json!({}));
    world.api.put(ES, "ns", "es", external_secret("s", "1h", &["k=k"]));
    let operator = world.start("operator", |_| {}).await;
    let hash = |world: &World| {
        let secret = world.api.get(SECRETS, "ns", "es").unwrap();
        secret["metadata"]["annotations"]["reconcile.external-secrets.io/data-hash"].clone()
    };
    let before = hash(&world);
    world.api.edit(SECRETS, "ns", "es", |secret| {
        secret["data"]["new"] = encode("value").into();
        secret["metadata"]["annotations"]["reconcile.external-secrets.io/data-hash"] =
            "thisiswronghash".into();
    });
    world.pass(seconds(5)).await;
    assert_eq!((hash(&world), shown(world.secret("es")).as_str()), (before, "k=v"));
    operator.end().await;
}
