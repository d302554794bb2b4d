//! What is answered, and what is left of it once all that differs from run to run is masked.
//!
//! Of a UID it stays whether the theme has seen it before, and of an object's resource version whether it is a
//! new one, the last one or an older one: a write that should have been none, or an object made anew, still shows.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::Client;
use kube::client::Body;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::protobuf;
use super::request::{Request, Who};

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Headers whose values are compared.
const COMPARED: [&str; 11] = [
    "allow",
    "cache-control",
    "content-encoding",
    "content-type",
    "location",
    "retry-after",
    "vary",
    "warning",
    "www-authenticate",
    "x-content-type-options",
    "access-control-allow-origin",
];

/// Headers that must be there or not.
const PRESENT: [&str; 3] = ["audit-id", "etag", "last-modified"];

/// As it came.
pub(super) struct Raw {
    pub(super) code: u16,
    pub(super) headers: http::HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The two clients of one server.
#[derive(Clone)]
pub(super) struct Clients {
    pub(super) admin: Client,
    pub(super) nobody: Client,
}

impl Clients {
    /// Sends one request; `filled` puts earlier answers into a text.
    pub(super) async fn send(
        &self,
        request: &Request,
        path: &str,
        body: Vec<u8>,
        headers: &[(&str, String)],
    ) -> Result<Raw, String> {
        let mut built = http::Request::builder().method(request.method).uri(path);
        for (name, value) in headers {
            built = built.header(*name, value.as_str());
        }
        let built = built.body(Body::from(body)).map_err(|error| error.to_string())?;
        let client = if request.who == Who::Admin { &self.admin } else { &self.nobody };
        let answer = tokio::time::timeout(PATIENCE, async {
            let (head, body) = client.send(built).await.map_err(|error| error.to_string())?.into_parts();
            let body = body.collect_bytes().await.map_err(|error| error.to_string())?;
            Ok::<_, String>(Raw { code: head.status.as_u16(), headers: head.headers, body: body.to_vec() })
        });
        answer.await.map_err(|_| "no answer in time".to_owned())?
    }
}

impl Raw {
    pub(super) fn header(&self, name: &str) -> String {
        let value =
            self.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        value.unwrap_or_default()
    }
}

/// Masks the answers of one theme.
pub(super) struct Masker {
    uids: HashSet<String>,
    /// Of each object its versions.
    versions: HashMap<String, Vec<String>>,
    patterns: Vec<(Regex, &'static str)>,
    uid: Regex,
    token: Regex,
    /// The words that explain a column, in YAML.
    column: Regex,
    /// Whether versions count: what controllers rewrite has any number of them.
    steady: bool,
}

impl Masker {
    pub(super) fn new(steady: bool) -> Self {
        let patterns = [
            // Times of today; those of the requests are older.
            (r"20(2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})Z", "MICROTIME"),
            (r"20(2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
            (r"127\.0\.0\.1:\d+", "SERVER"),
            (r"(current: |too old resource version: |in record \()\d+( \(\d+\))?", "${1}VERSION"),
            (r#"((?:resourceVersion|continue)\\?": ?\\?")[^"\\]+"#, "${1}VERSION"),
            (r"((?:resourceVersion|continue): )\S+", "${1}VERSION"),
            (
                r#"(^|[\s"])((?:differ-)?gen-a?-?|-|A|a\.|Bad_|B_)[bcdfghjklmnpqrstvwxz2456789]{5}\b"#,
                "${1}${2}RANDOM",
            ),
            (r"Key: /(registry|coffer)/", "Key: /PREFIX/"),
            (r"(ResourceVersion in object meta: )\d+", "${1}VERSION"),
            // A resource version in protobuf.
            (r#"^(\s*[26]: )"\d{1,10}"$"#, "${1}VERSION"),
            (r#"^([\s\-]*"?)\d+(m\d+)?s("?)$"#, "${1}AGE${3}"),
            (r"hash=[0-9A-F]{128}", "hash=HASH"),
        ];
        let regex = |pattern: &str| Regex::new(pattern).expect("a pattern");
        Self {
            uids: HashSet::new(),
            versions: HashMap::new(),
            patterns: patterns.map(|(pattern, instead)| (regex(pattern), instead)).to_vec(),
            uid: regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
            steady,
            column: regex(r"(?s)- description: .*?\n  format:"),
            token: regex(r"^ey[\w-]+\.ey[\w-]+\.[\w-]+$"),
        }
    }

    /// What is compared of an answer.
    pub(super) fn masked(&mut self, raw: &Raw) -> Value {
        let mut headers = Map::new();
        for name in COMPARED {
            let values = raw.headers.get_all(name).iter();
            let values: Vec<Value> =
                values.map(|value| self.text(&String::from_utf8_lossy(value.as_bytes())).into()).collect();
            if !values.is_empty() {
                headers.insert(name.to_owned(), values.into());
            }
        }
        for name in PRESENT {
            if raw.headers.contains_key(name) {
                headers.insert(name.to_owned(), "present".into());
            }
        }
        let (form, body) = self.body(raw);
        json!({ "code": raw.code, "headers": headers, "form": form, "body": body })
    }

    /// How the body is written, and its content.
    fn body(&mut self, raw: &Raw) -> (&'static str, Value) {
        let kind = raw.header("content-type");
        if kind.starts_with("application/vnd.kubernetes.protobuf") {
            let frames = if kind.contains("stream=watch") {
                protobuf::dump_frames(&raw.body)
            } else {
                protobuf::dump(&raw.body).map(|text| vec![text])
            };
            let mut frames = frames;
            if let Some(frames) = &mut frames {
                frames.retain(|text| !text.starts_with("1: \"BOOKMARK\"") || is_end(text));
            }
            let texts = frames.map(|frames| frames.iter().map(|text| self.lines(text)).collect());
            return ("protobuf", texts.unwrap_or_else(|| "no protobuf".into()));
        }
        let text = String::from_utf8_lossy(&raw.body);
        // A watch answers with one document a line.
        let documents: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        if let Ok(mut documents) = documents
            && documents.iter().all(|document| document["type"].is_string() && document["object"].is_object())
        {
            documents.retain(|document| document["type"] != "BOOKMARK" || is_end(&document.to_string()));
            documents.iter_mut().for_each(|document| self.value(document));
            return ("events", documents.into());
        }
        if let Ok(mut value) = serde_json::from_str::<Value>(&text) {
            self.value(&mut value);
            let form = match (text.contains("\n  \""), text.ends_with('\n')) {
                (false, false) => "compact",
                (false, true) => "line",
                (true, false) => "indented",
                (true, true) => "indented line",
            };
            return (form, value);
        }
        ("text", self.lines(&self.column.replace_all(&text, "- description: TEXT\n  format:")))
    }

    /// A text line by line.
    fn lines(&mut self, text: &str) -> Value {
        let lines = text.split('\n').map(|line| Value::from(self.text(line)));
        lines.collect::<Vec<_>>().into()
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if self.token.is_match(text) {
                    let token = text.clone();
                    *value = self.claims(&token);
                } else {
                    *text = self.text(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => self.object(fields),
            _ => {}
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>) {
        if let Some(version) =
            fields.get("resourceVersion").and_then(Value::as_str).filter(|text| !text.is_empty())
        {
            let age = match fields.get("uid").and_then(Value::as_str) {
                Some(uid) if self.steady => self.version(uid, version),
                _ => "VERSION",
            };
            fields.insert("resourceVersion".to_owned(), age.into());
        }
        if fields.get("continue").and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
            fields.insert("continue".to_owned(), "TOKEN".into());
        }
        if let Some(Value::Array(causes)) = fields.get_mut("causes")
            && causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict")
        {
            // Upstream walks a map to find who stands in the way.
            causes.sort_by_key(|cause| cause["field"].to_string());
        }
        if let Some(Value::Array(entries)) = fields.get_mut("managedFields") {
            // In order of time; which writes share a second is luck.
            entries.sort_by_key(|entry| {
                ["manager", "operation", "apiVersion", "subresource"].map(|key| entry[key].to_string())
            });
        }
        for rules in ["resourceRules", "nonResourceRules"] {
            if let Some(Value::Array(rules)) = fields.get_mut(rules) {
                // In the order of bindings, which upstream keeps in a map.
                rules.sort_by_key(Value::to_string);
            }
        }
        if let Some(Value::Array(columns)) = fields.get_mut("columnDefinitions") {
            // The words that explain a column are each server's own.
            columns.iter_mut().for_each(|column| column["description"] = "TEXT".into());
        }
        let mut keys: Vec<String> = fields.keys().cloned().collect();
        keys.sort();
        for key in keys {
            if let Some(value) = fields.get_mut(&key) {
                self.value(value);
            }
        }
    }

    /// How this one of an object's versions relates to those seen so far.
    fn version(&mut self, uid: &str, version: &str) -> &'static str {
        let versions = self.versions.entry(uid.to_owned()).or_default();
        let found = versions.iter().rposition(|other| other == version);
        match found {
            None => {
                versions.push(version.to_owned());
                "NEW VERSION"
            }
            Some(last) if last + 1 == versions.len() => "LAST VERSION",
            Some(_) => "OLDER VERSION",
        }
    }

    fn text(&mut self, text: &str) -> String {
        let uids = &mut self.uids;
        let text = self.uid.replace_all(text, |found: &Captures<'_>| {
            if uids.insert(found[0].to_owned()) { "NEW UID" } else { "KNOWN UID" }
        });
        self.patterns.iter().fold(text.into_owned(), |text, (pattern, instead)| {
            pattern.replace_all(&text, *instead).into_owned()
        })
    }

    /// A token's header and claims without its times and signature.
    fn claims(&mut self, token: &str) -> Value {
        let parts = token.split('.').take(2).map(|part| {
            let bytes = URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
            serde_json::from_slice(&bytes).unwrap_or(Value::Null)
        });
        let mut parts: Vec<Value> = parts.collect();
        for claim in ["/exp", "/iat", "/nbf", "/kubernetes.io/warnafter"] {
            let claim = parts[1].pointer_mut(claim).filter(|claim| claim.is_number());
            claim.into_iter().for_each(|claim| *claim = "SECONDS".into());
        }
        parts.iter_mut().for_each(|part| self.value(part));
        parts.into()
    }
}

/// Whether a bookmark ends the initial events; the others come when they come.
fn is_end(text: &str) -> bool {
    text.contains("k8s.io/initial-events-end")
}

/// Leaves of the entries of named lists those that `ours` has too.
pub(super) fn common(theirs: &mut Value, ours: &Value) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, value) in theirs {
                if let Some(ours) = ours.get(key) {
                    common(value, ours);
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            let Some(key) = ["resource", "subresource", "version", "name"]
                .into_iter()
                .find(|key| ours.first().is_some_and(|first| first.get(key).is_some_and(Value::is_string)))
            else {
                // Groups are named within their metadata.
                let name = |entry: &Value| entry.pointer("/metadata/name").cloned();
                if ours.iter().any(|entry| name(entry).is_some()) {
                    theirs.retain(|entry| ours.iter().any(|other| name(other) == name(entry)));
                    theirs.iter_mut().zip(ours).for_each(|(theirs, ours)| common(theirs, ours));
                }
                return;
            };
            theirs.retain(|entry| ours.iter().any(|other| other[key] == entry[key]));
            theirs.iter_mut().zip(ours).for_each(|(theirs, ours)| common(theirs, ours));
        }
        _ => {}
    }
}

/// JSON pointers of what is not equal.
pub(super) fn differing(theirs: &Value, ours: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(theirs, ours, String::new(), &mut found);
    found
}

fn walk(theirs: &Value, ours: &Value, pointer: String, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                let pointer = format!("{pointer}/{escaped}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => walk(a, b, pointer, found),
                    _ => found.push(pointer),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                walk(a, b, format!("{pointer}/{index}"), found);
            }
        }
        _ if theirs == ours => {}
        _ => found.push(pointer),
    }
}
