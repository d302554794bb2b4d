//! What `bench trip`, `bench store` and `bench clients` share: kube-apiserver and coffer, one after the other on the same
//! etcd, with the same client (client-go), TLS, RBAC and aesgcm on both, and a list of rows.
//!
//! Figures are per CPU second of the server's process, so that a busy machine changes them little.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, Pki, program};
use serde_json::Value;

/// Objects that lists hold.
pub(crate) const OBJECTS: &str = "10000";

/// How long a server is left alone before its memory is read.
const QUIET: Duration = Duration::from_secs(3);
/// How long the prober has to be up before a server starts.
const PROBER: Duration = Duration::from_millis(500);

const ENCRYPTION: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aesgcm: {keys: [{name: key1, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}
  - identity: {}
";

/// One line of the table.
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) figure: Figure,
    pub(crate) target: Option<Target>,
}

/// What is measured.
pub(crate) enum Figure {
    /// Operations per CPU second, under a load with these arguments.
    Rate(&'static [&'static str]),
    /// CPU milliseconds of one operation, under a load with these arguments.
    Cost(&'static [&'static str]),
    /// Resident memory in MiB, after a while without load.
    Resident,
    /// Resident memory in MiB while idle watches are open, under a load with these arguments.
    Holding(&'static [&'static str]),
    /// By what factor resident memory grows, at its highest, when all watches of such a load are closed at once.
    Closing(&'static [&'static str]),
    /// Seconds from the start of the process, on what the store holds by now, until it says that it is ready.
    Ready,
}

/// What issue and design ask for.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// Coffer's figure divided by the peer's.
    RatioAtLeast(f64),
    /// The same, where less is better.
    RatioAtMost(f64),
    /// Coffer's figure by itself.
    AtMost(f64),
}

impl Target {
    fn holds(self, theirs: f64, ours: f64) -> bool {
        match self {
            Self::RatioAtLeast(least) => least <= ours / theirs,
            Self::RatioAtMost(most) => ours / theirs <= most,
            Self::AtMost(most) => ours <= most,
        }
    }

    fn text(self) -> String {
        match self {
            Self::RatioAtLeast(least) => format!(">= {least}x"),
            Self::RatioAtMost(most) => format!("<= {most}x"),
            Self::AtMost(most) => format!("<= {most}"),
        }
    }
}

/// A server that is measured.
trait Server {
    fn kubeconfig(&self) -> &Path;
    fn id(&self) -> u32;
    fn end(&mut self);
    fn restart(&mut self);
}

impl Server for KubeApiserver {
    fn kubeconfig(&self) -> &Path {
        self.kubeconfig()
    }

    fn id(&self) -> u32 {
        self.id()
    }

    fn end(&mut self) {
        self.end();
    }

    fn restart(&mut self) {
        self.restart();
    }
}

impl Server for Coffer {
    fn kubeconfig(&self) -> &Path {
        self.kubeconfig()
    }

    fn id(&self) -> u32 {
        self.id()
    }

    fn end(&mut self) {
        self.end();
    }

    fn restart(&mut self) {
        self.restart();
    }
}

/// Measures every row on both servers, and prints the table.
pub(crate) fn compare(rows: &[Row]) {
    let directory = tempfile::tempdir().expect("a directory");
    let encryption = directory.path().join("encryption.yaml");
    std::fs::write(&encryption, ENCRYPTION).expect("written");
    let options = |prefix| ApiserverOptions {
        encryption: Some(&encryption),
        prefix: Some(prefix),
        ..Default::default()
    };
    print_machine();
    let etcd = Etcd::start();
    let theirs = measure("kube-apiserver", &mut KubeApiserver::start(&etcd, &options("/peer")), rows);
    let pki = Pki::create(&directory.path().join("pki"));
    let ours = measure("coffer", &mut Coffer::apiserver(coffer, &etcd, &pki, &options("/ours")), rows);
    print_machine();
    println!(
        "{:<48}{:>16}{:>12}{:>8}  {:<9}",
        "per CPU second, CPU ms, MiB or s", "kube-apiserver", "coffer", "ratio", "target"
    );
    let mut missed = 0;
    for (row, (theirs, ours)) in rows.iter().zip(theirs.into_iter().zip(ours)) {
        let (target, verdict) = match row.target {
            None => (String::new(), ""),
            Some(target) if target.holds(theirs, ours) => (target.text(), "holds"),
            Some(target) => {
                missed += 1;
                (target.text(), "MISSING")
            }
        };
        let line = format!(
            "{:<48}{theirs:>16.2}{ours:>12.2}{:>8.2}  {target:<9} {verdict}",
            row.what,
            ours / theirs
        );
        println!("{}", line.trim_end());
    }
    if 0 < missed {
        println!("{missed} targets are missed");
    }
}

fn coffer() -> Command {
    Command::new(env!("CARGO_BIN_EXE_coffer"))
}

/// The versions, and how busy the machine is.
fn print_machine() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split_whitespace().take(3).collect();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cpus} CPUs, load average {}", load.join(" "));
}

/// Every figure of one server, in the order of the rows.
fn measure(name: &str, server: &mut dyn Server, rows: &[Row]) -> Vec<f64> {
    eprintln!("measuring {name}");
    rows.iter()
        .map(|row| {
            let figure = match &row.figure {
                Figure::Rate(arguments) => rate(&load(server, arguments)),
                Figure::Cost(arguments) => 1000.0 / rate(&load(server, arguments)),
                Figure::Resident => resident(server.id()),
                Figure::Holding(arguments) => number(&load(server, arguments), "rss_open_server"),
                Figure::Closing(arguments) => {
                    let answer = load(server, arguments);
                    number(&answer, "rss_highest_server") / number(&answer, "rss_open_server")
                }
                Figure::Ready => ready(server),
            };
            eprintln!("  {}: {figure:.2}", row.what);
            figure
        })
        .collect()
}

fn rate(answer: &Value) -> f64 {
    number(answer, "ops_per_cpu_s_server")
}

fn number(answer: &Value, name: &str) -> f64 {
    answer[name].as_f64().unwrap_or(f64::NAN)
}

fn load(server: &dyn Server, arguments: &[&str]) -> Value {
    let output = generator(server)
        .args(["-pids", &format!("server={}", server.id())])
        .args(arguments)
        .output()
        .expect("the load generator runs");
    let answer = answer_of(&output);
    let failed = answer["errors"].as_i64().unwrap_or(0) + answer["fail"].as_i64().unwrap_or(0);
    assert_eq!(failed, 0, "load {arguments:?}: {answer} {}", String::from_utf8_lossy(&output.stderr));
    eprintln!("  {answer}");
    answer
}

fn generator(server: &dyn Server) -> Command {
    let mut command = Command::new(program("load"));
    command.arg("-kubeconfig").arg(server.kubeconfig());
    command
}

fn answer_of(output: &std::process::Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the load generator failed: {errors}");
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}

/// Ends the server, starts it again and asks it every few milliseconds.
fn ready(server: &mut dyn Server) -> f64 {
    server.end();
    let prober = generator(server)
        .args(["-op", "ready"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the load generator runs");
    std::thread::sleep(PROBER);
    let started = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    server.restart();
    let answer = answer_of(&prober.wait_with_output().expect("the load generator runs"));
    number(&answer, "ready_at") - started
}

/// MiB.
fn resident(id: u32) -> f64 {
    std::thread::sleep(QUIET);
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kilobytes: f64 =
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(f64::NAN);
    kilobytes / 1024.0
}
