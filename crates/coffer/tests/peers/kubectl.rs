//! kubectl's whole conversation with a server, word by word.
//!
//! A transcript is a file of commands and of what the stock kube-apiserver made kubectl answer, with
//! what differs from run to run masked. Both servers must reproduce it. With `COFFER_TRANSCRIPTS=write`
//! the files are written anew, always from the stock server. Where Coffer differs ([`DIFFERENCES`]), its
//! own answers are in a file of their own, written from Coffer, and must be the same too.
//!
//! The oldest kubectl that is meant to work types the same commands; both servers must make it answer the same,
//! with the same exceptions.
//!
//! `$ ` begins a command for `sh`, `> ` continues it, `## ` is a remark; `! ` is standard error and
//! `[exit N]` an exit code other than 0. Each transcript has a namespace of its own, named like the file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, Pki, program};

use crate::masks::Masks;
use crate::quiet;

/// How long one command may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kubectls that are meant to work, by their names among the peers.
const NEWEST: &str = "kubectl";
const OLDEST: &str = "kubectl-1.32";

/// First lines of commands whose answers differ, each with the reason.
const DIFFERENCES: &[(&str, &str)] = &[
    (r#"kubectl patch secret db -p '{"data":{"password":"not base64!"}}'"#, "never print secret bytes"),
    (
        r#"kubectl run sleeper --image=busybox --dry-run=server -o yaml --overrides='{"spec":{"automountServiceAccountToken":false}}'"#,
        "the ServiceAccount admission is on",
    ),
];

#[test]
fn kubectl_says_the_same_as_with_kube_apiserver() {
    let files = transcripts();
    let (from_stock, from_coffer) = both(&files, NEWEST);
    let mut differences = String::new();
    let mut own = String::new();
    for (index, file) in files.iter().enumerate() {
        if writes() {
            std::fs::write(file, &from_stock[index]).expect("written");
        }
        let expected = std::fs::read_to_string(file).expect("a transcript");
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        differences += &difference(&format!("{name}, kube-apiserver"), &expected, &from_stock[index], &[]);
        differences += &difference(&format!("{name}, coffer"), &expected, &from_coffer[index], DIFFERENCES);
        own += &own_answers(&name, &from_coffer[index]);
    }
    for (command, _) in DIFFERENCES {
        if !own.contains(&format!("$ {command}\n")) {
            differences += &format!("--- no transcript types: {command}\n\n");
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/differences/kubectl.txt");
    if writes() {
        std::fs::write(&file, &own).expect("written");
    }
    let expected = std::fs::read_to_string(&file).expect("Coffer's own answers");
    differences += &difference("what differs, coffer", &expected, &own, &[]);
    if differences.is_empty() {
        assert_eq!(own, expected);
    }
    assert!(differences.is_empty(), "\n{differences}");
}

#[test]
fn kubectl_1_32_says_the_same_as_with_kube_apiserver() {
    let version = Command::new(program(OLDEST)).args(["version", "--client"]).output().expect("kubectl runs");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(version.contains("Client Version: v1.32."), "{version}");
    let files = transcripts();
    let (from_stock, from_coffer) = both(&files, OLDEST);
    let mut differences = String::new();
    for (index, file) in files.iter().enumerate() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let [stock, coffer] = [&from_stock, &from_coffer].map(|texts| in_no_order(&texts[index]));
        differences += &difference(&name, &stock, &coffer, DIFFERENCES);
        let newest = std::fs::read_to_string(file).expect("a transcript");
        differences += &other_codes(&name, &newest, &from_stock[index]);
    }
    assert!(differences.is_empty(), "\n{differences}");
}

/// The lines of descriptions sorted: the oldest kubectl tells the keys of a Secret in any order.
fn in_no_order(text: &str) -> String {
    let parts = text.split("\n$ ").map(|part| {
        if part.strip_prefix("$ ").unwrap_or(part).starts_with("kubectl describe") {
            let (command, told) = part.split_once('\n').unwrap_or((part, ""));
            let mut lines: Vec<&str> = told.split('\n').collect();
            lines.sort_unstable();
            format!("{command}\n{}", lines.join("\n"))
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("\n$ ")
}

#[test]
fn descriptions_are_compared_in_no_order() {
    let told = |user, password| {
        format!("$ kubectl get a\nb\na\n\n$ kubectl describe x\n{user}\n{password}\n\n$ kubectl get c\n")
    };
    assert_eq!(in_no_order(&told("user", "password")), in_no_order(&told("password", "user")));
    assert_ne!(in_no_order(&told("user", "password")), in_no_order(&told("user", "pass")));
    assert!(in_no_order(&told("user", "password")).contains("\nb\na\n"));
}

/// The commands that the oldest kubectl ends with another exit code than the newest. What it refuses by itself would
/// prove nothing of a server.
fn other_codes(title: &str, newest: &str, oldest: &str) -> String {
    let mut text = String::new();
    for (newest, oldest) in newest.split("\n$ ").zip(oldest.split("\n$ ")) {
        let code = |part: &str| part.lines().find(|line| line.starts_with("[exit ")).map(str::to_owned);
        if code(newest) != code(oldest) {
            text += &format!("--- {title}, newest kubectl\n$ {newest}\n+++ oldest\n$ {oldest}\n\n");
        }
    }
    text
}

#[test]
fn another_exit_code_is_told() {
    let newest = "$ one\nfine\n\n$ two\n! no\n[exit 1]\n\n$ three\n";
    assert_eq!(other_codes("t", newest, newest), "");
    let told =
        other_codes("t", newest, "$ one\n! unknown\n[exit 1]\n\n$ two\n! never\n[exit 1]\n\n$ three\n");
    assert!(told.contains("! unknown") && !told.contains("! never"), "{told}");
}

/// What a kubectl says with the stock server, and what with Coffer.
fn both(files: &[PathBuf], kubectl: &str) -> (Vec<String>, Vec<String>) {
    let etcd = Etcd::start();
    let (stock, coffer) = std::thread::scope(|threads| {
        let stock = threads.spawn(|| KubeApiserver::start(&etcd, &ApiserverOptions::default()));
        let coffer = threads.spawn(|| Coffer::up(quiet, &[]));
        (stock.join().expect("kube-apiserver"), coffer.join().expect("coffer"))
    });
    std::thread::scope(|threads| {
        let stock = threads.spawn(|| play_all(files, stock.kubeconfig(), kubectl));
        let coffer = threads.spawn(|| play_all(files, coffer.kubeconfig(), kubectl));
        (stock.join().expect("played"), coffer.join().expect("played"))
    })
}

/// Whether what is expected is to be written anew.
fn writes() -> bool {
    std::env::var("COFFER_TRANSCRIPTS").is_ok_and(|value| value == "write")
}

/// What a server answered to the commands of [`DIFFERENCES`].
fn own_answers(name: &str, played: &str) -> String {
    let parts = played.split("\n$ ").map(str::trim_end);
    let listed = parts.filter(|part| {
        let command = part.lines().next().unwrap_or_default();
        DIFFERENCES.iter().any(|(named, _)| *named == command)
    });
    listed.map(|part| format!("## {name}\n$ {part}\n\n")).collect()
}

fn transcripts() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/transcripts");
    let entries = std::fs::read_dir(directory).expect("the transcripts");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "there are transcripts");
    files
}

fn play_all(files: &[PathBuf], kubeconfig: &Path, kubectl: &str) -> Vec<String> {
    let masks = masks();
    files.iter().map(|file| play(file, kubeconfig, kubectl, &masks)).collect()
}

/// Types the commands of one transcript and writes down what came.
fn play(file: &Path, kubeconfig: &Path, kubectl: &str, masks: &Masks) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let programs = directory.path().join(".programs");
    std::fs::create_dir(&programs).expect("a directory");
    std::os::unix::fs::symlink(program(kubectl), programs.join("kubectl")).expect("a link");
    let namespace = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    std::fs::copy(kubeconfig, directory.path().join("config")).expect("a kubeconfig");
    // A pair for `create secret tls`.
    let pki = Pki::create(&directory.path().join("pki"));
    for (made, wanted) in [("apiserver.crt", "tls.crt"), ("apiserver.key", "tls.key")] {
        std::fs::copy(pki.path(made), directory.path().join(wanted)).expect("a copy");
    }
    let shell = Shell { directory: directory.path() };
    let setup = format!(
        "kubectl config set-context --current --namespace={namespace} && kubectl create namespace {namespace}"
    );
    let (_, errors, code) = shell.run(&setup);
    assert_eq!(code, 0, "{errors}");

    let text = std::fs::read_to_string(file).expect("a transcript");
    let mut written = String::new();
    for step in steps(&text) {
        written += &step;
        written.push('\n');
        let Some(command) = step.strip_prefix("$ ") else { continue };
        let (output, errors, code) = shell.run(&command.replace("\n> ", "\n"));
        written += &ended(masks.apply(&output));
        for line in masks.apply(&errors).lines() {
            written += &format!("! {line}\n");
        }
        if code != 0 {
            written += &format!("[exit {code}]\n");
        }
        written.push('\n');
    }
    written.trim_end().to_owned() + "\n"
}

/// Remarks and commands of a transcript, without the answers.
fn steps(text: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let mut in_command = false;
    for line in text.lines() {
        if line.starts_with("$ ") || line.starts_with("## ") {
            in_command = line.starts_with("$ ");
            let blank = if in_command { "" } else { "\n" };
            steps.push(format!("{line}{blank}"));
        } else if in_command && line.starts_with("> ") {
            let last = steps.last_mut().expect("a command is continued");
            last.push('\n');
            last.push_str(line);
        } else {
            in_command = false;
        }
    }
    steps
}

/// `sh` in a directory of its own, with kubectl first on the path.
struct Shell<'a> {
    directory: &'a Path,
}

impl Shell<'_> {
    fn run(&self, command: &str) -> (String, String, i32) {
        let path = std::env::var("PATH").expect("PATH is set");
        let programs = self.directory.join(".programs");
        let file = |name: &str| self.directory.join(name);
        let create = |name: &str| std::fs::File::create(file(name)).expect("a file");
        // Files instead of pipes: a command that is left in the background does not hold the test up.
        let mut child = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.directory)
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("HOME", self.directory)
            .env("TMPDIR", self.directory)
            .env("KUBECONFIG", file("config"))
            .stdin(Stdio::null())
            .stdout(create(".stdout"))
            .stderr(create(".stderr"))
            .spawn()
            .expect("a shell");
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("the child can be asked") {
                break status;
            }
            if started.elapsed() > PATIENCE {
                child.kill().expect("the child can be ended");
                break child.wait().expect("the child has ended");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let read =
            |name: &str| String::from_utf8_lossy(&std::fs::read(file(name)).expect("a file")).into_owned();
        (read(".stdout"), read(".stderr"), status.code().unwrap_or(-1))
    }
}

/// What differs from run to run, and what is written in its place.
fn masks() -> Masks {
    Masks::new(&[
        (r#"((resourceVersion|Resource Version)"?: +"?)\d+"#, "${1}VERSION"),
        (r"(Creation Timestamp: +)\S+", "${1}TIME"),
        (r"(?m)(^| )\d+m?s( |$)", "${1}AGE${2}"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        (r"X509SHA256=[0-9a-f]+", "X509SHA256=HASH"),
        // Names that the server or kubectl makes up.
        (r"(-edit-|gen-)[a-z0-9]+", "${1}RANDOM"),
    ])
}

/// The text with an end of line, when there is text.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The commands whose answers are not the expected ones, with both; and those of `known` that are.
fn difference(title: &str, expected: &str, found: &str, known: &[(&str, &str)]) -> String {
    let answers =
        |text: &str| -> Vec<String> { text.split("\n$ ").map(|part| part.trim_end().to_owned()).collect() };
    let (expected, found) = (answers(expected), answers(found));
    let mut text = String::new();
    for (index, found) in found.iter().enumerate() {
        let expected = expected.get(index).map_or("", String::as_str);
        let command = found.lines().next().unwrap_or_default();
        let reason = known.iter().find(|(named, _)| *named == command).map(|(_, reason)| reason);
        if let (true, Some(reason)) = (expected == found, reason) {
            text += &format!("--- {title}: no longer differs ({reason})\n$ {found}\n\n");
        } else if expected != found && reason.is_none() {
            text += &format!("--- {title}: expected\n$ {expected}\n+++ found\n$ {found}\n\n");
        }
    }
    text
}

/// Not in a transcript: beside the stock server runs no controller that would empty the namespace.
#[test]
fn a_deleted_namespace_takes_its_content_along() {
    let coffer = Coffer::up(quiet, &[]);
    let kubectl = coffer.kubectl();
    kubectl.ok(&["create", "namespace", "gone"]);
    kubectl.ok(&["create", "secret", "generic", "db", "-n", "gone", "--from-literal=a=b"]);
    kubectl.ok(&["create", "configmap", "settings", "-n", "gone", "--from-literal=a=b"]);
    // kubectl waits until it is away.
    let deleted = kubectl.ok(&["delete", "namespace", "gone", "--timeout=60s"]);
    assert_eq!(deleted, "namespace \"gone\" deleted\n");
    let missing = kubectl.run(&["get", "namespace", "gone"]);
    assert_eq!(missing.stderr, "Error from server (NotFound): namespaces \"gone\" not found\n");
    kubectl.ok(&["create", "namespace", "gone"]);
    let left = kubectl.ok(&["get", "secrets", "-n", "gone", "-o", "name"]);
    assert_eq!(left, "", "nothing of the old namespace is in the new one");
}
