//! The differential run: one set of requests to kube-apiserver and to Coffer, both on one etcd with one set of
//! certificates, and the answers compared in status, headers and bodies.
//!
//! The set is stated in [`themes`]. What differs on purpose is in [`known`], a row of COMPATIBILITY.md each; a
//! row whose answers no longer differ fails the test. Both transcripts are left below the target directory, in
//! `tmp/differential`.

mod answer;
mod known;
mod protobuf;
mod request;
mod themes;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver};
use futures::future::join_all;
use kube::Client;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use regex::Regex;
use serde_json::{Value, json};

use self::answer::{Clients, Masker, Raw, common, differing};
use self::known::{AT_MOST, KNOWN, Known};
use self::request::{Compared, Request, Theme};
use crate::quiet;

/// How many requests the set must hold.
const AT_LEAST: usize = 1500;

/// How long controllers may take to fill a namespace, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What differs in one run and not in the next is the luck of the clock: which writes share a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifteen_hundred_requests_get_the_answers_of_kube_apiserver() {
    let mut failures = failures_of_a_run().await;
    if !failures.is_empty() {
        let title = |failure: &String| failure.lines().next().unwrap_or_default().to_owned();
        let again: Vec<String> = failures_of_a_run().await.iter().map(title).collect();
        failures.retain(|failure| again.contains(&title(failure)));
    }
    assert!(failures.is_empty(), "\n{}\n{} differences", failures.join("\n"), failures.len());
}

/// Sends all requests to two new servers, and gives the differences that are not known.
async fn failures_of_a_run() -> Vec<String> {
    let (stock, coffer, etcd) = tokio::task::spawn_blocking(|| {
        let etcd = Etcd::start();
        let stock = KubeApiserver::start(&etcd, &ApiserverOptions::default());
        let options = ApiserverOptions { prefix: Some("/coffer"), ..ApiserverOptions::default() };
        let coffer = Coffer::apiserver(quiet, &etcd, stock.pki(), &options);
        (stock, coffer, etcd)
    })
    .await
    .expect("the servers");
    let theirs = clients(stock.kubeconfig()).await;
    let ours = clients(coffer.kubeconfig()).await;
    let themes = themes::all();
    let count: usize = themes.iter().map(|theme| theme.requests.len()).sum();
    assert!(count >= AT_LEAST, "only {count} requests");
    join_all(themes.iter().map(|theme| settle(&theirs, &ours, theme))).await;
    let both = async |theme: &Theme| tokio::join!(tell(&theirs, theme), tell(&ours, theme));
    // Nodes before the others, lest a controller of Coffer miss their heartbeats.
    let (early, late): (Vec<Theme>, Vec<Theme>) =
        themes.into_iter().partition(|theme| matches!(theme.name.as_str(), "nodes" | "subresources"));
    let mut answers = join_all(early.iter().map(&both)).await;
    answers.extend(join_all(late.iter().map(&both)).await);
    drop((coffer, stock, etcd));
    let mut report = Report::new();
    for (theme, (theirs, ours)) in early.iter().chain(&late).zip(answers) {
        for (request, (theirs, ours)) in theme.requests.iter().zip(theirs.into_iter().zip(ours)) {
            report.compare(&theme.name, request, theirs, ours);
        }
    }
    report.conclude()
}

/// Makes the namespace of a theme, and puts there what upstream's controllers would: none of them runs.
async fn settle(theirs: &Clients, ours: &Clients, theme: &Theme) {
    let namespace = json!({ "metadata": { "name": theme.namespace } });
    for clients in [theirs, ours] {
        let made = ask(clients, "POST", "/api/v1/namespaces", Some(&namespace)).await;
        assert_eq!(made.0, 201, "{}: {}", theme.namespace, made.1);
    }
    for (plural, name) in [("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")] {
        let collection = format!("/api/v1/namespaces/{}/{plural}", theme.namespace);
        let started = Instant::now();
        let mut object = loop {
            let (code, object) = ask(ours, "GET", &format!("{collection}/{name}"), None).await;
            if code == 200 {
                break object;
            }
            assert!(started.elapsed() < PATIENCE, "waited too long for {collection}/{name}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let manager = object.pointer("/metadata/managedFields/0/manager").and_then(Value::as_str);
        let manager = manager.unwrap_or("nobody").to_owned();
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"] {
            object["metadata"].as_object_mut().expect("an object").remove(field);
        }
        let path = format!("{collection}?fieldManager={manager}");
        let made = ask(theirs, "POST", &path, Some(&object)).await;
        assert_eq!(made.0, 201, "{path}: {}", made.1);
    }
}

async fn ask(clients: &Clients, method: &'static str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let request = Request { method, ..Request::default() };
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let headers = [("content-type", request::JSON.to_owned())];
    let raw = clients.send(&request, path, body, &headers).await.expect("an answer");
    (raw.code, serde_json::from_slice(&raw.body).unwrap_or_default())
}

/// Sends a theme's requests in order and gives the masked answers.
async fn tell(clients: &Clients, theme: &Theme) -> Vec<Result<Value, String>> {
    let mut masker = Masker::new(theme.steady);
    let mut kept = HashMap::new();
    let mut answers = Vec::new();
    let mut rest = theme.requests.as_slice();
    while let Some(request) = rest.first() {
        let lasting = rest.iter().take_while(|request| request.lasts()).count();
        let (together, more) = rest.split_at(lasting.max(1));
        let raws = join_all(together.iter().map(|request| send(clients, request, &kept))).await;
        for raw in raws {
            answers.push(raw.map(|raw| {
                let masked = masker.masked(&raw);
                if let Some(name) = request.keep {
                    kept.insert(name, raw);
                }
                masked
            }));
        }
        rest = more;
    }
    answers
}

async fn send(
    clients: &Clients,
    request: &Request,
    kept: &HashMap<&'static str, Raw>,
) -> Result<Raw, String> {
    let path = filled(&request.path, kept)?;
    let mut headers = Vec::new();
    for (name, value) in &request.headers {
        headers.push((*name, filled(value, kept)?));
    }
    let body = match std::str::from_utf8(&request.body) {
        Ok(text) => filled(text, kept)?.into_bytes(),
        Err(_) => request.body.clone(),
    };
    let started = Instant::now();
    loop {
        let raw = match clients.send(request, &path, body.clone(), &headers).await {
            // The connection was closed, for being idle or after a body that nobody read.
            Err(_) if request.method == "GET" => clients.send(request, &path, body.clone(), &headers).await?,
            other => other?,
        };
        let Some((pointer, expected)) = request.until else { return Ok(raw) };
        let found: Value = serde_json::from_slice(&raw.body).unwrap_or_default();
        if found.pointer(pointer).and_then(Value::as_str) == Some(expected) {
            return Ok(raw);
        }
        if started.elapsed() > PATIENCE {
            return Err(format!("{pointer} is not {expected} in time"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The text with what earlier answers told in place of what refers to it.
fn filled(text: &str, kept: &HashMap<&'static str, Raw>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<<") {
        let (reference, after) = after.split_once(">>").ok_or("a reference without an end")?;
        filled += before;
        let split = reference.find(['/', '@']).ok_or_else(|| format!("{reference} names nothing"))?;
        let raw = kept.get(&reference[..split]).ok_or_else(|| format!("{reference} was not kept"))?;
        filled += &match reference[split..].strip_prefix('@') {
            Some(header) => raw.header(header),
            None => {
                let body: Value = serde_json::from_slice(&raw.body).unwrap_or_default();
                let value = body.pointer(&reference[split..]);
                let value = value.ok_or_else(|| format!("{reference} is not in the answer"))?;
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            }
        };
        rest = after;
    }
    Ok(filled + rest)
}

/// A known difference, ready to be looked for.
struct Matcher([Regex; 4]);

impl Matcher {
    fn new(known: &Known) -> Self {
        let patterns = [known.requests, known.fields, known.theirs, known.ours];
        Self(patterns.map(|pattern| Regex::new(&format!("^(?s:{pattern})$")).expect("a pattern")))
    }

    /// Whether a field of an answer differs as it is known to.
    fn explains(&self, title: &str, field: &str, theirs: &Value, ours: &Value) -> bool {
        let text = |answer: &Value| match answer.pointer(field) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let texts = [title.to_owned(), field.to_owned(), text(theirs), text(ours)];
        self.0.iter().zip(&texts).all(|(pattern, text)| pattern.is_match(text))
    }
}

/// What was found so far.
struct Report {
    titles: HashMap<String, usize>,
    transcripts: [String; 2],
    known: Vec<Matcher>,
    /// How often each known difference was met.
    met: Vec<usize>,
    failures: Vec<String>,
}

impl Report {
    fn new() -> Self {
        Self {
            titles: HashMap::new(),
            transcripts: Default::default(),
            known: KNOWN.iter().map(Matcher::new).collect(),
            met: vec![0; KNOWN.len()],
            failures: Vec::new(),
        }
    }

    fn compare(
        &mut self,
        theme: &str,
        request: &Request,
        theirs: Result<Value, String>,
        ours: Result<Value, String>,
    ) {
        let mut title = request.title(theme);
        let times = self.titles.entry(title.clone()).or_default();
        *times += 1;
        if *times > 1 {
            title += &format!(" (time {times})");
        }
        let (mut theirs, mut ours) = match (theirs, ours) {
            (Ok(theirs), Ok(ours)) => (theirs, ours),
            (theirs, ours) => {
                let error =
                    |answer: Result<Value, String>| answer.err().unwrap_or_else(|| "answered".to_owned());
                self.failures.push(format!("{title}\n    is no test: {} | {}", error(theirs), error(ours)));
                return;
            }
        };
        match request.compared {
            Compared::Whole => {}
            Compared::Common => common(&mut theirs, &ours),
            Compared::Head => {
                [&mut theirs, &mut ours].into_iter().for_each(|answer| answer["body"] = Value::Null)
            }
        }
        for (transcript, answer) in self.transcripts.iter_mut().zip([&theirs, &ours]) {
            writeln!(transcript, "{title}\n    {answer}").expect("written");
        }
        let mut fields = differing(&theirs, &ours);
        for (known, met) in self.known.iter().zip(&mut self.met) {
            let before = fields.len();
            fields.retain(|field| !known.explains(&title, field, &theirs, &ours));
            *met += before - fields.len();
        }
        if !fields.is_empty() {
            self.failures.push(format!("{title}\n{}", shown(request, &fields, &theirs, &ours)));
        }
    }

    /// Leaves the transcripts and gives the differences that are not known.
    fn conclude(mut self) -> Vec<String> {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential");
        std::fs::create_dir_all(&directory).expect("a directory");
        for (name, transcript) in ["kube-apiserver.txt", "coffer.txt"].iter().zip(&self.transcripts) {
            std::fs::write(directory.join(name), transcript).expect("written");
        }
        for (known, met) in KNOWN.iter().zip(&self.met) {
            if *met == 0 {
                self.failures.push(format!("{}\n    no longer differs", known.row));
            }
        }
        let rows =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../COMPATIBILITY.md"));
        let rows = rows.expect("COMPATIBILITY.md");
        for known in KNOWN.iter().filter(|known| !rows.contains(&format!("| {} |", known.row))) {
            self.failures.push(format!("{}\n    is no row of COMPATIBILITY.md", known.row));
        }
        assert!(KNOWN.len() <= AT_MOST, "{} known differences", KNOWN.len());
        self.failures
    }
}

/// The fields that differ, and their values where those cannot be of a Secret.
fn shown(request: &Request, fields: &[String], theirs: &Value, ours: &Value) -> String {
    let secret = request.path.contains("secret");
    let lines = fields.iter().map(|field| {
        if secret && field.starts_with("/body") {
            return format!("    {field}");
        }
        let short = |answer: &Value| -> String {
            let text = answer.pointer(field).map_or("nothing".to_owned(), Value::to_string);
            text.chars().take(1500).collect()
        };
        format!(
            "    {field}\n        kube-apiserver {}\n        coffer         {}",
            short(theirs),
            short(ours)
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Clients of one server that try each request once.
async fn clients(kubeconfig: &Path) -> Clients {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a configuration");
    // The first answer counts.
    config.default_retry = false;
    let mut nobody = config.clone();
    nobody.auth_info = AuthInfo::default();
    let client = |config| Client::try_from(config).expect("a client");
    Clients { admin: client(config), nobody: client(nobody) }
}
