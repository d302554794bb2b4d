//! The periodic pass over every pod: what it makes up for, when, and what it leaves alone.

use coffer_node::report::ConsumerState;
use serde_json::json;

use crate::rows::with_volume;
use crate::world::World;

/// The earliest and the latest end of a period, in seconds.
const EARLIEST: u64 = 60;
const LATEST: u64 = 90;

const QUESTION: &str = "GET /api/v1/namespaces/ns/secrets/db";

/// Every kind of event that can be lost: a change, the end, and the first appearance.
#[tokio::test]
async fn n1_a_lost_event_is_made_up_for_within_one_period() {
    let world = World::new();
    world.secret("db", &[("password", "one")]);
    world.pod("web", with_volume("db"));
    let node = world.start();
    let holds = |value: &str| world.file("web", "v", "password").as_deref() == Some(value);
    let state = || world.consumers("web").first().map(|consumer| consumer.state);
    world.until("the file", || holds("one") && state() == Some(ConsumerState::Current)).await;

    world.secret_unheard("db", &[("password", "two")]);
    world.settle().await;
    world.pass(EARLIEST - 1).await;
    assert!(holds("one"), "the event was heard: this is no test of the pass");
    assert_eq!(world.api.requests(QUESTION), Vec::<String>::new());
    world.pass(LATEST - EARLIEST + 1).await;
    world.until("the new file", || holds("two")).await;
    // Only the version was asked for: the value came by a list of the watch.
    assert_eq!(world.api.requests(QUESTION).len(), 1);

    // The new watch is heard.
    world.secret("db", &[("password", "three")]);
    world.until("the next file", || holds("three")).await;

    world.api.unheard(|api| api.remove("secrets", "ns", "db"));
    world.settle().await;
    assert_eq!(state(), Some(ConsumerState::Current));
    world.pass(LATEST).await;
    world.until("the end is told", || state() == Some(ConsumerState::Stale)).await;
    assert!(holds("three"), "files of a Secret that is gone stay");
    world.secret_unheard("db", &[("password", "four")]);
    world.pass(LATEST).await;
    world.until("the file of the new one", || holds("four")).await;
    node.end().await;
}

/// A ConfigMap is treated alike.
#[tokio::test]
async fn n1_a_lost_event_of_a_config_map_is_made_up_for() {
    let world = World::new();
    let map =
        |value: &str| json!({"metadata": {"namespace": "ns", "name": "m", "uid": "u"}, "data": {"k": value}});
    world.api.put("configmaps", map("one"));
    let sources = json!([{"configMap": {"name": "m"}}]);
    world.pod(
        "web",
        json!({
            "containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", "projected": {"defaultMode": 420, "sources": sources}}],
        }),
    );
    let node = world.start();
    let file = world.pod_directory("web").join("volumes/kubernetes.io~projected/v/k");
    let holds = |value: &str| std::fs::read_to_string(&file).is_ok_and(|text| text == value);
    world.until("the file", || holds("one")).await;
    world.api.unheard(|api| api.put("configmaps", map("two")));
    world.pass(LATEST).await;
    world.until("the new file", || holds("two")).await;
    node.end().await;
}

/// Files that somebody changed or took away come back, that is no news of the Secret, and a pass that finds
/// nothing writes nothing.
#[tokio::test]
async fn n1_a_pass_mends_files_and_is_silent_when_nothing_is_wrong() {
    let world = World::new();
    world.secret("db", &[("password", "one"), ("user", "me")]);
    world.pod("web", with_volume("db"));
    let node = world.start();
    world.until("the file", || world.file("web", "v", "password").is_some()).await;
    world.until("the report", || !world.consumers("web").is_empty()).await;
    let count = "coffer_node_secret_propagation_seconds_count 1";
    assert!(world.metrics.render().contains(count));
    let writes = || world.api.requests("PATCH /api/v1/namespaces/ns/pods/web/status").len();
    let before = writes();

    world.pass(2 * LATEST).await;
    world.until("two passes", || world.api.requests(QUESTION).len() >= 2).await;
    assert_eq!((writes(), world.events()), (before, Vec::<String>::new()));
    // The watch was right: it was not started again.
    let lists = world.api.requests("GET /api/v1/namespaces/ns/secrets?");
    assert_eq!(lists.len(), 2, "{lists:?}");

    let volume = world.pod_directory("web").join("volumes/kubernetes.io~secret/v");
    std::fs::remove_file(volume.join("..data/password")).expect("removed");
    std::fs::write(volume.join("..data/user"), "you").expect("changed");
    world.pass(LATEST).await;
    let mended = || {
        let file = |name: &str| world.file("web", "v", name).unwrap_or_default();
        (file("password"), file("user")) == ("one".to_owned(), "me".to_owned())
    };
    world.until("the files are mended", mended).await;
    assert!(world.metrics.render().contains(count), "{}", world.metrics.render());
    node.end().await;
}

/// What cannot change is not asked for, and an answer that never comes holds nothing up.
#[tokio::test]
async fn n1_a_pass_asks_for_nothing_immutable_and_waits_for_nobody() {
    let world = World::new();
    let metadata = json!({"namespace": "ns", "name": "db", "uid": "u"});
    world.api.put("secrets", json!({"metadata": metadata, "immutable": true, "data": {"password": "eA=="}}));
    world.secret("slow", &[("password", "one")]);
    world.pod("fixed", with_volume("db"));
    world.pod("web", with_volume("slow"));
    let node = world.start();
    for pod in ["fixed", "web"] {
        world.until("the file", || world.file(pod, "v", "password").is_some()).await;
    }
    let question = "GET /api/v1/namespaces/ns/secrets/slow";
    world.api.fail(question, crate::api::Fault::Hang);
    world.pass(LATEST).await;
    world.until("the question", || world.api.requests(question).len() == 1).await;
    world.secret("slow", &[("password", "two")]);
    world.until("the file", || world.file("web", "v", "password").as_deref() == Some("two")).await;
    // It is given up, and asked again by a later pass.
    world.pass(2 * LATEST).await;
    world.until("the next question", || world.api.requests(question).len() >= 2).await;
    assert_eq!(world.api.requests(QUESTION), Vec::<String>::new());
    node.end().await;
}
