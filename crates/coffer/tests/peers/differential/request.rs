//! What is asked: requests as data, grouped in themes.
//!
//! A theme is a story of its own in a namespace of its own. A request may use what an earlier answer of its
//! theme told, written `<<NAME/json/pointer>>` or `<<NAME@header>>`.

use serde_json::Value;

pub(super) const JSON: &str = "application/json";
pub(super) const YAML: &str = "application/yaml";
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(super) const CBOR: &str = "application/cbor";
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const PATCH: &str = "application/json-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

pub(super) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
pub(super) const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
pub(super) const PARTIALS: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Who {
    /// A member of system:masters, by certificate.
    #[default]
    Admin,
    /// Nobody, unless a header says otherwise.
    Nobody,
}

/// How much of an answer must be equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Compared {
    /// All of it.
    #[default]
    Whole,
    /// Of a list with named entries those that Coffer gives: it serves fewer kinds.
    Common,
    /// Status and headers: the body is compared by a test of its own.
    Head,
}

/// One request.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) who: Who,
    pub(super) compared: Compared,
    /// The name under which its answer can be referred to.
    pub(super) keep: Option<&'static str>,
    /// It is asked again until this part of the answer is this text.
    pub(super) until: Option<(&'static str, &'static str)>,
}

impl Request {
    pub(super) fn header(&mut self, name: &'static str, value: impl Into<String>) -> &mut Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn accept(&mut self, value: &str) -> &mut Self {
        self.header("accept", value)
    }

    /// The media type of the body, in place of the usual one.
    pub(super) fn sent_as(&mut self, value: &str) -> &mut Self {
        self.headers.retain(|(name, _)| *name != "content-type");
        if value.is_empty() { self } else { self.header("content-type", value) }
    }

    pub(super) fn keep(&mut self, name: &'static str) -> &mut Self {
        self.keep = Some(name);
        self
    }

    /// Asks again until a controller has written this.
    pub(super) fn until(&mut self, pointer: &'static str, text: &'static str) -> &mut Self {
        self.until = Some((pointer, text));
        self
    }

    pub(super) fn by_nobody(&mut self) -> &mut Self {
        self.who = Who::Nobody;
        self
    }

    pub(super) fn common(&mut self) -> &mut Self {
        self.compared = Compared::Common;
        self
    }

    pub(super) fn head_only(&mut self) -> &mut Self {
        self.compared = Compared::Head;
        self
    }

    /// Whether it reads for a while and changes nothing: such requests, one after the other, are sent together.
    pub(super) fn lasts(&self) -> bool {
        self.method == "GET" && self.path.contains("timeoutSeconds=") && self.keep.is_none()
    }

    /// The request in one line.
    pub(super) fn title(&self, theme: &str) -> String {
        let mut title = format!("{theme}: {} {}", self.method, self.path);
        if self.who == Who::Nobody {
            title += " (nobody)";
        }
        for (name, value) in &self.headers {
            let short: String = value.chars().take(120).collect();
            title += &format!(" [{name}: {short}]");
        }
        let body = String::from_utf8_lossy(&self.body);
        let printable = body.chars().map(|c| if c.is_control() || c == '\u{fffd}' { '·' } else { c });
        let body: String = printable.take(200).collect();
        if body.is_empty() { title } else { format!("{title} {body}") }
    }
}

/// What can stand as a body.
pub(super) trait IntoBody {
    fn into_body(self) -> Vec<u8>;
}

impl IntoBody for &str {
    fn into_body(self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl IntoBody for String {
    fn into_body(self) -> Vec<u8> {
        self.into_bytes()
    }
}

impl IntoBody for Value {
    fn into_body(self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl IntoBody for &Value {
    fn into_body(self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl IntoBody for Vec<u8> {
    fn into_body(self) -> Vec<u8> {
        self
    }
}

/// Requests that share a namespace and what earlier answers told, in order.
pub(super) struct Theme {
    pub(super) name: String,
    /// Its namespace.
    pub(super) namespace: String,
    pub(super) requests: Vec<Request>,
    /// Whether nothing but these requests changes its objects.
    pub(super) steady: bool,
}

impl Theme {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            namespace: format!("differ-{name}"),
            requests: Vec::new(),
            steady: true,
        }
    }

    fn push(&mut self, method: &'static str, path: &str, kind: &str, body: impl IntoBody) -> &mut Request {
        let path = path.replace("$NS", &self.namespace);
        let mut request = Request { method, path, body: body.into_body(), ..Request::default() };
        request.sent_as(kind);
        self.requests.push(request);
        self.requests.last_mut().expect("the one just pushed")
    }

    pub(super) fn get(&mut self, path: &str) -> &mut Request {
        self.push("GET", path, "", "")
    }

    pub(super) fn post(&mut self, path: &str, body: impl IntoBody) -> &mut Request {
        self.push("POST", path, JSON, body)
    }

    pub(super) fn put(&mut self, path: &str, body: impl IntoBody) -> &mut Request {
        self.push("PUT", path, JSON, body)
    }

    pub(super) fn patch(&mut self, path: &str, kind: &str, body: impl IntoBody) -> &mut Request {
        self.push("PATCH", path, kind, body)
    }

    pub(super) fn delete(&mut self, path: &str) -> &mut Request {
        self.push("DELETE", path, "", "")
    }

    pub(super) fn delete_with(&mut self, path: &str, body: impl IntoBody) -> &mut Request {
        self.push("DELETE", path, JSON, body)
    }

    /// Any other method, without a body.
    pub(super) fn other(&mut self, method: &'static str, path: &str) -> &mut Request {
        self.push(method, path, "", "")
    }
}
