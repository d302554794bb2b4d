//! Programs that are built on client-go and controller-runtime (`peers/go/clients`), over connections that are cut
//! all the time. They compare what they were told with what a connection that holds tells.
//!
//! `cargo xtask conformance clients` runs the same with `COFFER_CLIENT_CHANGES=20000`.

mod cutter;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, program};
use cutter::Cutter;
use serde_json::Value;

use crate::quiet;

/// How long a program may take, whatever it is asked for.
const PATIENCE: Duration = Duration::from_secs(900);

/// How many changes are made, unless the environment names another number.
fn changes(usual: u32) -> u32 {
    let named = std::env::var("COFFER_CLIENT_CHANGES").ok();
    named.map_or(usual, |named| named.parse().expect("COFFER_CLIENT_CHANGES is a number"))
}

/// One task of the program.
#[derive(Default)]
struct Task {
    name: &'static str,
    changes: u32,
    /// How long there is peace between two cuts; none are made when it is zero.
    peace: Duration,
    environment: &'static [(&'static str, &'static str)],
}

/// Runs one task against coffer, and gives its report.
fn run(task: &Task) -> Value {
    let coffer = Coffer::up(quiet, &[]);
    run_against(task, coffer.kubeconfig(), coffer.directory())
}

/// Runs one task against the server of a kubeconfig.
#[expect(clippy::print_stderr, reason = "a long run tells what it did")]
fn run_against(task: &Task, reference: &Path, directory: &Path) -> Value {
    let kubeconfig = std::fs::read_to_string(reference).expect("a kubeconfig");
    let server = kubeconfig.split("https://127.0.0.1:").nth(1).expect("a server");
    let port: String = server.chars().take_while(char::is_ascii_digit).collect();
    let cutter = Cutter::start(port.parse().expect("a port"), task.peace);
    let cut = directory.join("cut");
    let changed = kubeconfig.replace(&format!("127.0.0.1:{port}"), &cutter.address().to_string());
    std::fs::write(&cut, changed).expect("written");

    // Files instead of pipes: much output does not hold the program up.
    let file = |name: &str| std::fs::File::create(directory.join(name)).expect("a file");
    let mut child = Command::new(program("clients"))
        .arg(task.name)
        .arg("--kubeconfig")
        .arg(&cut)
        .arg("--reference")
        .arg(reference)
        .arg(format!("--changes={}", task.changes))
        .envs(task.environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(file("report"))
        .stderr(file("errors"))
        .spawn()
        .expect("the program starts");
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be asked") {
            break status;
        }
        if PATIENCE < started.elapsed() {
            child.kill().expect("the child can be ended");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).expect("a file");
    let (report, errors) = (read("report"), read("errors"));
    let told =
        format!("{}, {} changes, {} cuts, {:?}", task.name, task.changes, cutter.cuts(), started.elapsed());
    assert!(status.success(), "{told}: {errors}");
    eprintln!("{told}: {report}");
    assert!(task.peace.is_zero() || 0 < cutter.cuts(), "{told}: no connection was cut");
    serde_json::from_str(&report).unwrap_or_else(|error| panic!("{told}: {error}: {report}{errors}"))
}

/// Two dozen connections: each is cut every few seconds.
const INFORMERS: Task =
    Task { name: "informers", changes: 0, peace: Duration::from_millis(250), environment: &[] };

#[test]
fn informers_that_begin_with_a_streamed_list_miss_nothing() {
    run(&Task { changes: changes(1000), ..INFORMERS });
}

#[test]
fn informers_that_list_and_watch_miss_nothing() {
    let environment = &[("KUBE_FEATURE_WatchListClient", "false")];
    run(&Task { changes: changes(1000), environment, ..INFORMERS });
}

#[test]
fn one_candidate_leads_at_a_time() {
    let report = run(&Task { name: "leaders", peace: Duration::from_millis(200), ..Task::default() });
    assert_eq!(report["leaders"].as_array().and_then(|leaders| leaders.last()), Some(&"third".into()));
}

#[test]
fn what_many_write_into_one_object_is_all_there() {
    let changes = changes(200).min(1000);
    run(&Task { name: "conflicts", changes, peace: Duration::from_millis(250), ..Task::default() });
}

#[test]
fn every_client_of_client_go_gets_along() {
    let task = Task { name: "calls", ..Task::default() };
    run(&task);
    // What is expected is what the original does.
    let etcd = Etcd::start();
    let stock = KubeApiserver::start(&etcd, &ApiserverOptions::default());
    run_against(&task, stock.kubeconfig(), tempfile::tempdir().expect("a directory").path());
}

#[test]
fn a_controller_runtime_manager_leaves_nothing_undone() {
    let changes = changes(1000);
    // One connection for all watches: each cut breaks every one of them.
    run(&Task { name: "manager", changes, peace: Duration::from_secs(2), ..Task::default() });
}
