//! What the node tells about a pod: its status, events, and log lines, word by word.

use std::sync::{Arc, Mutex};

use coffer_node::volume::tmpfs::Place;
use serde_json::{Value, json};

use crate::rows::with_volume;
use crate::world::World;

/// The status differs in the place of the volumes only.
#[tokio::test]
async fn the_status_says_where_the_volumes_are_and_that_nothing_runs() {
    for mount_point in [true, false] {
        let mut world = World::new();
        world.mount_point = mount_point;
        let root = world.root();
        let place = if mount_point {
            format!("on a tmpfs mounted at {}", root.display())
        } else {
            format!(
                "in {}, a directory of an existing tmpfs, because this process may not mount one",
                root.display()
            )
        };
        world.secret("db", &[("password", "one")]);
        let mut pod = with_volume("db");
        pod["volumes"].as_array_mut().expect("volumes").push(json!({"name": "scratch", "emptyDir": {}}));
        pod["containers"][0]["image"] = json!("registry.example/app");
        world.pod("web", pod);
        let variable = json!({"name": "P", "valueFrom": {"secretKeyRef": {"name": "none", "key": "k"}}});
        world.pod(
            "waits",
            json!({"containers": [{"name": "a", "image": "i"}, {"name": "b", "env": [variable]}]}),
        );
        let mut node = world.start();
        let chosen = if mount_point { Place::Mounted(root) } else { Place::Existing(root) };
        assert_eq!(node.place().await, chosen);
        for pod in ["web", "waits"] {
            world.until("the report", || !world.message(pod).is_empty()).await;
        }
        let nothing_runs = json!({"waiting": {
            "reason": "NoContainerRuntime",
            "message": "this node materialises Secrets and runs no containers",
        }});
        let container = |name: &str, image: &str, state: &Value| json!({"name": name, "image": image, "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let condition = |status: &str, reason: &str, message: String| {
            json!({"type": coffer_node::report::CONDITION, "status": status, "reason": reason,
                "message": message, "lastTransitionTime": "2026-01-02T03:04:05Z"})
        };
        let status = |pod: &str| world.api.get("pods", "ns", pod).expect("a pod")["status"].clone();
        let says = format!("this node runs no containers; secret volumes are {place}");
        let expected = condition("True", "NoContainerRuntime", format!("{says}; not materialised: scratch"));
        assert_eq!(
            status("web"),
            json!({"phase": "Pending", "conditions": [expected],
                "containerStatuses": [container("c", "registry.example/app", &nothing_runs)]})
        );
        let missing = "secret \"none\" not found";
        let expected = condition("False", "SecretsMissing", format!("{missing}; {says}"));
        let waits = json!({"waiting": {"reason": "CreateContainerConfigError", "message": missing}});
        assert_eq!(
            status("waits"),
            json!({"phase": "Pending", "conditions": [expected],
                "containerStatuses": [container("a", "i", &nothing_runs), container("b", "", &waits)]})
        );
        node.end().await;
    }
}

/// Told once, as events of the pod, also when the pod changes later; and the file is as it was asked for.
#[tokio::test]
async fn n5_n21_surprising_modes_and_writable_mounts_are_told_as_events() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.secret("db", &[("password", "one")]);
    let mut pod = with_volume("db");
    pod["volumes"][0]["secret"]["defaultMode"] = json!(440);
    pod["containers"][0]["volumeMounts"][0]["readOnly"] = json!(false);
    world.pod("web", pod);
    world.pod("plain", with_volume("db"));
    let node = world.start();
    for pod in ["web", "plain"] {
        world.until("the report", || !world.consumers(pod).is_empty()).await;
    }
    let mut changed = world.api.get("pods", "ns", "web").expect("a pod");
    changed["metadata"]["labels"] = json!({"a": "b"});
    changed["spec"]["containers"][0]["image"] = json!("another");
    world.api.put("pods", changed);
    world.settle().await;
    let mut told = world.events();
    told.sort();
    assert_eq!(
        told,
        [
            "SecretVolumeIsReadOnly: container \"c\" asks for a writable volume \"v\": Secret volumes are read-only",
            "SuspiciousFileMode: volume \"v\": mode 440 is decimal and means octal 670; write 0440 in YAML or 288 in JSON if octal 440 is meant",
        ]
    );
    for event in world.api.all("events") {
        let about = &event["regarding"];
        assert_eq!(
            (&event["type"], &event["reportingController"], &about["kind"], &about["name"], &about["uid"]),
            (&json!("Warning"), &json!("coffer-node"), &json!("Pod"), &json!("web"), &json!("web-uid")),
            "{event}"
        );
    }
    let text = world.metrics.render();
    for reason in ["SuspiciousFileMode", "SecretVolumeIsReadOnly"] {
        assert!(text.contains(&format!("coffer_node_pod_warnings_total{{reason=\"{reason}\"}} 1")), "{text}");
    }
    let file = world.pod_directory("web").join("volumes/kubernetes.io~secret/v/password");
    assert_eq!(std::fs::metadata(file).expect("there").permissions().mode() & 0o7777, 0o670);
    node.end().await;
}

struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Variables that no shell can use are in one line of the log, by their names; their values are nowhere.
#[tokio::test]
async fn n23_odd_names_of_variables_are_in_a_debug_line_without_values() {
    let log: Arc<Mutex<Vec<u8>>> = Arc::default();
    let own = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || Lines(own.clone()))
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    // Another test may have been the first to pass the line, with nobody listening.
    tracing::callsite::rebuild_interest_cache();
    let world = World::new();
    world.secret("db", &[("my-key", "m4rked-one"), ("my.key", "m4rked-two"), ("plain_KEY1", "m4rked-three")]);
    world.pod("web", json!({"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "db"}}]}]}));
    world.secret("fine", &[("plain", "m4rked-four")]);
    world
        .pod("fine", json!({"containers": [{"name": "fine", "envFrom": [{"secretRef": {"name": "fine"}}]}]}));
    let node = world.start();
    for pod in ["web", "fine"] {
        world.until("the report", || !world.consumers(pod).is_empty()).await;
    }
    // Another change of the Secret is no other start of the container.
    world.secret("db", &[("my-key", "m4rked-five")]);
    world
        .until("the change", || world.consumers("web")[0].state == coffer_node::report::ConsumerState::Stale)
        .await;
    node.end().await;
    let text = String::from_utf8(log.lock().expect("no panic").clone()).expect("text");
    let lines: Vec<&str> =
        text.lines().filter(|line| line.contains("variables that no shell can use")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(lines[0].contains("DEBUG coffer_node"), "{}", lines[0]);
    assert!(lines[0].contains("container=\"app\" names=[\"my-key\", \"my.key\"]"), "{}", lines[0]);
    assert!(!text.contains("m4rked"), "{text}");
}
