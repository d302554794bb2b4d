//! Field cases, each by its id.

use serde_json::{Value, json};

use coffer_node::NodeError;
use coffer_node::report::{ConsumerKind, ConsumerState};
use coffer_node::volume::tmpfs::Place;

use crate::api::Fault;
use crate::world::World;

pub(crate) fn with_volume(secret: &str) -> Value {
    json!({
        "containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "volumes": [{"name": "v", "secret": {"secretName": secret, "defaultMode": 420}}],
    })
}

/// The state and version of a pod's only consumer.
fn only(world: &World, pod: &str) -> Option<(ConsumerState, String)> {
    let consumers = world.consumers(pod);
    assert!(consumers.len() < 2, "{consumers:?}");
    consumers.into_iter().next().map(|consumer| (consumer.state, consumer.resource_version))
}

fn version(world: &World, secret: &str) -> String {
    let secret = world.api.get("secrets", "ns", secret).expect("a Secret");
    secret["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}

/// No time passes: only the watch event moves the file. The delay is counted.
#[tokio::test]
async fn n1_a_change_reaches_the_file_by_its_event_and_the_delay_is_counted() {
    let world = World::new();
    world.secret("db", &[("password", "one")]);
    world.pod("web", with_volume("db"));
    let mut node = world.start();
    assert!(matches!(node.place().await, Place::Existing(_)));
    world.until("the file", || world.file("web", "v", "password").as_deref() == Some("one")).await;
    for value in ["two", "three"] {
        world.secret("db", &[("password", value)]);
        world.until("the new file", || world.file("web", "v", "password").as_deref() == Some(value)).await;
    }
    // The file is there a moment before it is counted.
    let counted = || world.metrics.render().contains("coffer_node_secret_propagation_seconds_count 3");
    world.until("three counted delays", counted).await;
    node.end().await;
}

/// A subPath mount of a key that is not there makes nothing in the volume; the key appears later as a file.
#[tokio::test]
async fn n3_a_sub_path_is_never_resolved_in_the_file_system() {
    let world = World::new();
    world.secret("db", &[("other", "x")]);
    let mount = |sub_path: &str| json!({"name": "v", "mountPath": "/f", "subPath": sub_path});
    let mut pod = with_volume("db");
    pod["containers"][0]["volumeMounts"] = json!([mount("password"), mount("../../../other")]);
    world.pod("web", pod);
    let node = world.start();
    world.until("the report", || world.consumers("web").len() == 2).await;
    let directory = world.pod_directory("web").join("volumes/kubernetes.io~secret/v");
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .expect("the volume")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with(".."))
        .collect();
    names.sort();
    assert_eq!(names, ["other"]);
    let told = |world: &World, sub_path: &str| {
        let consumers = world.consumers("web");
        let one = consumers.into_iter().find(|one| one.sub_path == sub_path).expect("told");
        assert_eq!((one.kind, one.path.as_str()), (ConsumerKind::SubPath, directory.to_str().expect("text")));
        (one.state, one.message)
    };
    for sub_path in ["password", "../../../other"] {
        let missing = format!("subPath {sub_path:?} is not in the volume");
        assert_eq!(told(&world, sub_path), (ConsumerState::Missing, missing));
    }
    // The warning: an event, and a count.
    let events = world.events();
    assert!(events.iter().any(|event| event.starts_with("SubPathNeverUpdates: ")), "{events:?}");
    let text = world.metrics.render();
    assert!(text.contains("coffer_node_pod_warnings_total{reason=\"SubPathNeverUpdates\"} 2"), "{text}");

    // What a process puts into the volume is neither followed nor changed.
    let outside = world.pod_directory("web").join("outside");
    std::fs::write(&outside, "mine").expect("written");
    std::os::unix::fs::symlink(&outside, directory.join("swapped")).expect("linked");
    world.secret("db", &[("other", "x"), ("password", "one"), ("swapped", "two")]);
    world.until("the key", || world.file("web", "v", "password").as_deref() == Some("one")).await;
    world.until("the report", || told(&world, "password").0 == ConsumerState::Current).await;
    assert!(std::fs::symlink_metadata(directory.join("password")).expect("there").is_symlink());
    assert_eq!(std::fs::read_to_string(&outside).expect("there"), "mine");
    node.end().await;
}

/// The race of CVE-2021-25741: the directory that a subPath names is swapped 100,000 times for a link to one
/// outside, while the Secret changes under a running node. The node tells of its own files only, and outside
/// nothing is made, changed or removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_a_sub_path_swapped_for_a_link_100_000_times_leads_to_nothing_outside() {
    const SWAPS: usize = 100_000;
    let world = World::new();
    world.secret("db", &[("password", "0")]);
    let mut pod = with_volume("db");
    pod["containers"][0]["volumeMounts"][0]["subPath"] = json!("sub/password");
    pod["volumes"][0]["secret"]["items"] = json!([{"key": "password", "path": "sub/password"}]);
    world.pod("web", pod);
    let outside = world.root().with_file_name("outside");
    std::fs::create_dir(&outside).expect("made");
    std::fs::write(outside.join("password"), "theirs").expect("written");
    let mut node = world.start();
    node.place().await;
    world.until("the file", || world.file("web", "v", "sub/password").as_deref() == Some("0")).await;
    let held = version(&world, "db");

    let volume = world.pod_directory("web").join("volumes/kubernetes.io~secret/v");
    let (entry, spare) = (volume.join("sub"), world.root().with_file_name("spare"));
    let swapped = tokio::task::spawn_blocking({
        let outside = outside.clone();
        move || {
            for swap in 0..SWAPS {
                let target = if swap % 2 == 0 { outside.as_path() } else { "..data/sub".as_ref() };
                std::os::unix::fs::symlink(target, &spare).expect("linked");
                std::fs::rename(&spare, &entry).expect("swapped");
            }
        }
    });
    let mut number = 0;
    while !swapped.is_finished() {
        number += 1;
        world.secret("db", &[("password", &number.to_string())]);
        world
            .until("the change is told", || only(&world, "web") == Some((ConsumerState::Stale, held.clone())))
            .await;
    }
    swapped.await.expect("no panic");
    assert!(1 < number, "the Secret changed in the race");
    let last = number.to_string();
    let newest = || std::fs::read_to_string(volume.join("..data/sub/password")).ok();
    world.until("the newest version", || newest().as_deref() == Some(&last)).await;
    let consumer = world.consumers("web").remove(0);
    assert_eq!((consumer.kind, consumer.sub_path.as_str()), (ConsumerKind::SubPath, "sub/password"));
    let names: Vec<_> =
        std::fs::read_dir(&outside).expect("there").map(|entry| entry.expect("there")).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(std::fs::read_to_string(outside.join("password")).expect("there"), "theirs");

    // The volume goes with its pod, and what its link leads to stays.
    std::os::unix::fs::symlink(&outside, volume.join("more")).expect("linked");
    world.api.delete_pod("ns", "web");
    world.until("the volume is gone", || !world.pod_directory("web").exists()).await;
    assert_eq!(std::fs::read_to_string(outside.join("password")).expect("there"), "theirs");
    node.end().await;
}

/// The first answer is waited for without a word, then the pod says which request is slow, and only at the
/// mount's own deadline it counts as failed. The answer moves the pod by itself.
#[tokio::test]
async fn n7_a_slow_first_answer_is_waited_for_quietly_and_named() {
    let world = World::new();
    world.secret("db", &[("password", "one")]);
    world.pod("web", with_volume("db"));
    world.pod("other", json!({"containers": [{"name": "c"}]}));
    world.api.fail("/namespaces/ns/secrets", Fault::Hang);
    let node = world.start();
    world.until("another pod is served", || !world.message("other").is_empty()).await;
    world.until("the request", || !world.api.requests("GET /api/v1/namespaces/ns/secrets").is_empty()).await;
    world.pass(8).await;
    assert_eq!((world.message("web").as_str(), world.events().as_slice()), ("", &[][..]));

    world.pass(4).await;
    let slow = "failed to sync secret cache: timed out waiting for the condition: GET /api/v1/namespaces/ns/secrets?fieldSelector=metadata.name=db has had no good answer since 2026-01-02T03:04:05Z";
    world.until("the slow request is named", || world.message("web").contains(slow)).await;
    let writes = world.api.requests("PATCH /api/v1/namespaces/ns/pods/web/status").len();
    world.pass(100).await;
    assert_eq!(world.events(), Vec::<String>::new());
    // The text stays the same: it is not written over and over.
    assert_eq!(world.api.requests("PATCH /api/v1/namespaces/ns/pods/web/status").len(), writes);

    world.pass(20).await;
    let failed = format!("FailedMount: MountVolume.SetUp failed for volume \"v\" : {slow}");
    world.until("the event", || world.events() == [failed.clone()]).await;
    assert_eq!(world.file("web", "v", "password"), None);
    node.kill().await;

    // The server answers again: no time has to pass.
    world.api.heal();
    let node = world.start();
    world.until("the file", || world.file("web", "v", "password").as_deref() == Some("one")).await;
    world.until("the condition", || !world.message("web").contains("has had no good answer")).await;
    node.end().await;
}

/// A refusal is named in the server's words; the wait goes on, and the first good answer ends it.
#[tokio::test]
async fn n7_a_refused_first_request_is_told_in_the_servers_words() {
    let world = World::new();
    world.secret("db", &[("password", "one")]);
    world.pod("web", with_volume("db"));
    world.api.fail("/namespaces/ns/secrets", Fault::Refuse(403));
    let node = world.start();
    world.until("the request", || !world.api.requests("GET /api/v1/namespaces/ns/secrets").is_empty()).await;
    world.settle().await;
    world.pass(11).await;
    world
        .until("the refusal is told", || {
            world
                .message("web")
                .contains("has had no good answer since 2026-01-02T03:04:05Z: refused by the test")
        })
        .await;
    world.api.heal();
    world.until("the file", || world.file("web", "v", "password").as_deref() == Some("one")).await;
    node.end().await;
}

/// The Secret is deleted while the node is down; the pod ends all the same, and its volume goes.
#[tokio::test]
async fn n13_a_pod_ends_though_its_secret_went_while_the_node_was_down() {
    for (how, deleted_while_down) in [("killed", true), ("killed", false), ("stopped", true)] {
        let world = World::new();
        world.secret("db", &[("password", "one")]);
        world.pod("web", with_volume("db"));
        let node = world.start();
        world.until("the file", || world.file("web", "v", "password").is_some()).await;
        world.until("the report", || !world.consumers("web").is_empty()).await;
        let held = version(&world, "db");
        if how == "killed" {
            node.kill().await
        } else {
            node.end().await
        }
        world.api.remove("secrets", "ns", "db");
        if deleted_while_down {
            world.api.delete_pod("ns", "web");
        }
        let node = world.start();
        if !deleted_while_down {
            // The files stay, and what they hold is known although the Secret is gone.
            world
                .until("the report", || only(&world, "web") == Some((ConsumerState::Stale, held.clone())))
                .await;
            assert_eq!(world.file("web", "v", "password").as_deref(), Some("one"));
            world.api.delete_pod("ns", "web");
        }
        world.until("the pod is gone", || world.api.get("pods", "ns", "web").is_none()).await;
        world.until("the volume is gone", || !world.pod_directory("web").exists()).await;
        node.end().await;
    }
}

/// Not even an answer about Secrets is needed: their API is down altogether.
#[tokio::test]
async fn n13_a_pod_ends_while_secrets_cannot_be_read() {
    let world = World::new();
    world.secret("db", &[("password", "one")]);
    world.pod("web", with_volume("db"));
    let node = world.start();
    world.until("the file", || world.file("web", "v", "password").is_some()).await;
    node.kill().await;
    world.api.fail("/secrets", Fault::Hang);
    let node = world.start();
    world.until("the pod is known", || !world.api.requests("/namespaces/ns/secrets?").is_empty()).await;
    world.api.delete_pod("ns", "web");
    world.until("the pod is gone", || world.api.get("pods", "ns", "web").is_none()).await;
    world.until("the volume is gone", || !world.pod_directory("web").exists()).await;
    node.end().await;
}

/// Whatever of the desired state is missing after a restart, volumes stay until all of it is known.
#[tokio::test]
async fn n25_nothing_is_unmounted_on_an_incomplete_desired_state() {
    let pods = "GET /api/v1/pods";
    let faults: [&[(&str, Fault)]; 6] = [
        &[("", Fault::Break)],
        &[("/api/v1/nodes", Fault::Break)],
        &[("/api/v1/nodes", Fault::Refuse(500))],
        &[(pods, Fault::Refuse(500))],
        &[(pods, Fault::Hang)],
        // The first page comes, the second does not.
        &[("continue=1", Fault::Refuse(500))],
    ];
    for faults in faults {
        let world = World::new();
        world.secret("db", &[("password", "one")]);
        for pod in ["a", "b", "gone"] {
            world.pod(pod, with_volume("db"));
        }
        let node = world.start();
        for pod in ["a", "b", "gone"] {
            world.until("the file", || world.file(pod, "v", "password").is_some()).await;
            world.until("the checkpoint", || world.pod_directory(pod).join("secrets.json").exists()).await;
        }
        node.kill().await;
        // It went for good while the node was down.
        world.api.remove("pods", "ns", "gone");
        world.api.page(1);
        for (text, fault) in faults {
            world.api.fail(text, *fault);
        }
        let before = world.api.requests("").len();
        let node = world.start();
        world.until("the node asks", || world.api.requests("").len() > before).await;
        world.settle().await;
        world.pass(30).await;
        for pod in ["a", "b", "gone"] {
            assert_eq!(world.file(pod, "v", "password").as_deref(), Some("one"), "{faults:?}: {pod}");
        }
        world.api.heal();
        world.pass(10).await;
        if faults[0].1 == Fault::Hang {
            // A request without an answer is given up by the connection, which this server has none of.
            node.kill().await;
            continue;
        }
        world.until("what is gone for sure is removed", || !world.pod_directory("gone").exists()).await;
        for pod in ["a", "b"] {
            assert_eq!(world.file(pod, "v", "password").as_deref(), Some("one"), "{faults:?}: {pod}");
        }
        node.end().await;
    }
}

/// What the volumes hold is known again after a restart, before any Secret is.
#[tokio::test]
async fn n25_the_checkpoint_tells_what_is_held() {
    let world = World::new();
    world.secret("db", &[("password", "one")]);
    world.pod("web", with_volume("db"));
    let node = world.start();
    world
        .until("the report", || only(&world, "web").is_some_and(|(state, _)| state == ConsumerState::Current))
        .await;
    let held = version(&world, "db");
    node.kill().await;
    let checkpoint = std::fs::read_to_string(world.pod_directory("web").join("secrets.json")).expect("there");
    let expected = json!({"namespace": "ns", "pod": "web", "volumes": {"v": {"db": held}}});
    assert_eq!(serde_json::from_str::<Value>(&checkpoint).expect("JSON"), expected);

    world.secret("db", &[("password", "two")]);
    world.api.fail("/namespaces/ns/secrets", Fault::Hang);
    let node = world.start();
    world.until("the request", || world.api.requests("/namespaces/ns/secrets?").len() > 1).await;
    world.settle().await;
    world.pass(12).await;
    world.until("the report", || only(&world, "web") == Some((ConsumerState::Stale, held.clone()))).await;
    assert_eq!(world.file("web", "v", "password").as_deref(), Some("one"));
    node.kill().await;
}

/// A node that has nothing to keep says at once why it cannot start; one that has does so only when the
/// server has understood and refuses.
#[tokio::test]
async fn n25_a_refused_node_leaves_volumes_as_they_are() {
    let world = World::new();
    world.api.fail("/nodes", Fault::Break);
    assert!(matches!(world.start().ended().await, Err(NodeError::Register { .. })));
    world.api.heal();

    world.secret("db", &[("password", "one")]);
    world.pod("web", with_volume("db"));
    let node = world.start();
    world.until("the file", || world.file("web", "v", "password").is_some()).await;
    node.kill().await;
    world.api.fail("/nodes", Fault::Refuse(403));
    assert!(matches!(world.start().ended().await, Err(NodeError::Register { .. })));
    assert_eq!(world.file("web", "v", "password").as_deref(), Some("one"));
}

/// The projected volume that admission gives every pod, with the modes of the kubelet's table; the token is
/// replaced in time.
#[tokio::test]
async fn n19_a_projected_token_has_the_tables_mode_and_is_replaced_in_time() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let world = World::new();
    let map = json!({"metadata": {"namespace": "ns", "name": "kube-root-ca.crt", "uid": "u"}, "data": {"ca.crt": "PEM"}});
    world.api.put("configmaps", map);
    let spec = |context: Value| {
        json!({
            "securityContext": context,
            "containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                {"configMap": {"name": "kube-root-ca.crt"}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
            ]}}],
        })
    };
    // Who runs the tests may give files only to itself and its group, unless it is root.
    let probe = tempfile::tempdir().expect("a directory");
    let me = std::fs::metadata(probe.path()).expect("there");
    let (user, group) = if me.uid() == 0 { (1000, 2000) } else { (me.uid(), me.gid()) };
    let rows = [
        ("nothing", json!({}), 0o644, me.uid(), me.gid()),
        ("user", json!({"runAsUser": user}), 0o600, user, me.gid()),
        ("group", json!({"fsGroup": group}), 0o640, me.uid(), group),
        ("both", json!({"runAsUser": user, "fsGroup": group}), 0o640, user, group),
    ];
    for (pod, context, ..) in &rows {
        world.pod(pod, spec(context.clone()));
    }
    let node = world.start();
    for (pod, _, mode, owner, group) in &rows {
        let file = world.pod_directory(pod).join("volumes/kubernetes.io~projected/v/token");
        world.until("the token", || file.exists()).await;
        let metadata = std::fs::metadata(&file).expect("there");
        let found = (metadata.permissions().mode() & 0o7777, metadata.uid(), metadata.gid());
        assert_eq!(found, (*mode, *owner, *group), "{pod}");
        assert!(std::fs::read_to_string(&file).expect("text").ends_with("-of-default"));
        let read = |name: &str| std::fs::read_to_string(file.with_file_name(name)).expect("text");
        assert_eq!((read("ca.crt"), read("namespace")), ("PEM".to_owned(), "ns".to_owned()));
    }
    let asked =
        |world: &World| world.api.requests("POST /api/v1/namespaces/ns/serviceaccounts/default/token").len();
    assert_eq!(asked(&world), rows.len());
    // Four fifths of an hour: not before.
    world.clock.advance(std::time::Duration::from_secs(2800));
    world.settle().await;
    assert_eq!(asked(&world), rows.len());
    world.clock.advance(std::time::Duration::from_secs(90));
    world.until("new tokens", || asked(&world) == 2 * rows.len()).await;
    node.end().await;
}

/// Readers that were on their way to the old version have two seconds, and it does not stay for longer.
#[tokio::test]
async fn n17_an_old_version_of_a_volume_stays_for_two_seconds() {
    let world = World::new();
    world.secret("db", &[("password", "one")]);
    world.pod("web", with_volume("db"));
    let node = world.start();
    world.until("the file", || world.file("web", "v", "password").as_deref() == Some("one")).await;
    let volume = world.pod_directory("web").join("volumes/kubernetes.io~secret/v");
    let versions = || {
        let names = std::fs::read_dir(&volume).expect("there").map(|entry| entry.expect("there").file_name());
        names.filter(|name| name.to_string_lossy().starts_with("..") && name != "..data").count()
    };
    let old = volume.join(std::fs::read_link(volume.join("..data")).expect("there"));
    world.secret("db", &[("password", "two")]);
    world.until("the new file", || world.file("web", "v", "password").as_deref() == Some("two")).await;
    world.settle().await;
    world.clock.advance(std::time::Duration::from_millis(1999));
    world.settle().await;
    assert_eq!((versions(), std::fs::read_to_string(old.join("password")).ok().as_deref()), (2, Some("one")));
    world.clock.advance(std::time::Duration::from_millis(1));
    world.until("the old version goes", || versions() == 1 && !old.exists()).await;
    node.end().await;
}

/// The volumes of one pod that want a token for the same audience and time have the same one.
#[tokio::test]
async fn n19_volumes_of_a_pod_share_the_token_of_an_audience_and_lifetime() {
    let world = World::new();
    let volume = |name: &str, token: Value| json!({"name": name, "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": token}]}});
    let spec = || {
        let names = ["a", "same", "audience", "lifetime"];
        let mounts = names.map(|name| json!({"name": name, "mountPath": format!("/{name}")}));
        json!({
            "containers": [{"name": "c", "volumeMounts": mounts}],
            "volumes": [
                volume("a", json!({"path": "token", "expirationSeconds": 3600})),
                volume("same", json!({"path": "token"})),
                volume("audience", json!({"path": "token", "audience": "vault"})),
                volume("lifetime", json!({"path": "token", "expirationSeconds": 7200})),
            ],
        })
    };
    for pod in ["web", "other"] {
        world.pod(pod, spec());
    }
    let node = world.start();
    let token = |pod: &str, volume: &str| {
        let volumes = world.pod_directory(pod).join("volumes/kubernetes.io~projected");
        std::fs::read_to_string(volumes.join(volume).join("token")).ok()
    };
    let mut all = std::collections::BTreeSet::new();
    for pod in ["web", "other"] {
        for volume in ["a", "same", "audience", "lifetime"] {
            world.until("the token", || token(pod, volume).is_some()).await;
            all.insert(token(pod, volume).expect("there"));
        }
        assert_eq!(token(pod, "a"), token(pod, "same"), "{pod}");
    }
    assert_eq!(all.len(), 6, "three for each of the two pods: {all:?}");
    assert_eq!(world.api.requests("POST /api/v1/namespaces/ns/serviceaccounts/default/token").len(), 6);
    node.end().await;
}

/// A node that was lost sight of says again that it is ready, and what its pods hold.
#[tokio::test]
async fn a_node_that_is_heard_again_takes_back_what_the_server_said() {
    let world = World::new();
    world.secret("db", &[("password", "one")]);
    world.pod("web", with_volume("db"));
    let node = world.start();
    world.until("the report", || !world.message("web").is_empty()).await;
    let said = world.message("web");
    let ready = |world: &World| {
        let node = world.api.get("nodes", "", crate::world::NODE).unwrap_or_default();
        node["status"]["conditions"][0]["status"] == "True"
    };
    assert!(ready(&world));
    let mut lost = world.api.get("nodes", "", crate::world::NODE).expect("a node");
    lost["status"]["conditions"][0]["status"] = json!("Unknown");
    world.api.put("nodes", lost);
    let mut pod = world.api.get("pods", "ns", "web").expect("a pod");
    let unknown =
        json!([{"type": coffer_node::report::CONDITION, "status": "Unknown", "message": "stopped"}]);
    pod["status"]["conditions"] = unknown;
    world.api.put("pods", pod);
    world.until("the pod is told anew", || world.message("web") == said).await;
    world.pass(11).await;
    world.until("the node is ready", || ready(&world)).await;
    // Somebody removed it.
    world.api.remove("nodes", "", crate::world::NODE);
    world.pass(11).await;
    world.until("the node is registered", || ready(&world)).await;
    node.end().await;
}
