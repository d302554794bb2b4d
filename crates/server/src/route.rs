//! What a request is about, read from its method and URL only.
//!
//! Nothing is looked up here: whether the resource exists is the router's question.

use http::Method;

use crate::query::{self, Query};

/// Verbs that stand in the path, right behind the version.
const PATH_VERBS: [&str; 2] = ["proxy", "watch"];

/// Third path parts under a namespace that belong to the namespace itself.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

/// A classified request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    /// Whether this is about a resource; otherwise only `path` and `verb` count.
    pub(crate) resource_request: bool,
    /// Decoded path.
    pub(crate) path: String,
    /// `get`, `list`, `watch`, `create`, … or the method in lower case.
    pub(crate) verb: String,
    /// `api` or `apis`.
    pub(crate) prefix: String,
    /// API group.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// Namespace, or "". For a namespace itself its own name.
    pub(crate) namespace: String,
    /// Resource (plural).
    pub(crate) resource: String,
    /// Subresource, or "".
    pub(crate) subresource: String,
    /// Name, or "". A `metadata.name` field selector counts as one.
    pub(crate) name: String,
    /// The node that a `spec.nodeName` field selector pins, or "".
    pub(crate) selected_node: String,
    /// Path parts from the resource on.
    pub(crate) parts: Vec<String>,
}

impl RequestInfo {
    /// Classifies. `None` when the path holds a malformed escape or a verb without a resource.
    pub(crate) fn new(method: &Method, raw_path: &str, query: &Query) -> Option<Self> {
        let path = query::unescape(raw_path, false)?;
        let mut info =
            Self { verb: method.as_str().to_ascii_lowercase(), path: path.clone(), ..Self::default() };
        let trimmed = path.trim_matches('/');
        let mut parts: Vec<&str> = if trimmed.is_empty() { Vec::new() } else { trimmed.split('/').collect() };
        if parts.len() < 3 || !matches!(parts[0], "api" | "apis") {
            return Some(info);
        }
        info.prefix = parts.remove(0).to_owned();
        if info.prefix == "apis" {
            if parts.len() < 3 {
                return Some(info);
            }
            info.group = parts.remove(0).to_owned();
        }
        info.resource_request = true;
        info.version = parts.remove(0).to_owned();
        let verb_in_path = PATH_VERBS.contains(&parts[0]);
        if verb_in_path {
            if parts.len() < 2 {
                return None;
            }
            info.verb = parts.remove(0).to_owned();
        } else {
            info.verb = verb_of(method).to_owned();
        }
        if parts[0] == "namespaces" && parts.len() > 1 {
            info.namespace = parts[1].to_owned();
            if parts.len() > 2 && !NAMESPACE_SUBRESOURCES.contains(&parts[2]) {
                parts.drain(..2);
            }
        }
        if parts.len() >= 3 && info.verb != "proxy" {
            info.subresource = parts[2].to_owned();
        }
        if let Some(name) = parts.get(1) {
            info.name = (*name).to_owned();
        }
        info.resource = parts[0].to_owned();
        info.parts = parts.into_iter().map(str::to_owned).collect();
        info.name_the_collection_verb(query);
        Some(info)
    }

    /// A read or deletion without a name is about the collection.
    fn name_the_collection_verb(&mut self, query: &Query) {
        if self.name.is_empty() {
            match self.verb.as_str() {
                "get" if query.flag("watch") == Some(true) => self.verb = "watch".to_owned(),
                "get" => self.verb = "list".to_owned(),
                "delete" => self.verb = "deletecollection".to_owned(),
                _ => {}
            }
            if matches!(self.verb.as_str(), "list" | "watch" | "deletecollection") {
                self.name = selected_name(query).unwrap_or_default();
                self.selected_node = selected(query, "spec.nodeName").unwrap_or_default();
            }
        }
    }
}

fn verb_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// The name that a field selector pins, when it is a possible name.
///
/// A selector that does not parse pins nothing: the list itself will refuse it.
fn selected_name(query: &Query) -> Option<String> {
    if ["limit", "timeoutSeconds"]
        .iter()
        .any(|key| query.first(key).is_some_and(|value| !value.is_empty() && value.parse::<i64>().is_err()))
    {
        return None;
    }
    selected(query, "metadata.name").filter(|name| path_segment_error(name).is_none())
}

/// The value that a field selector pins a field to.
fn selected(query: &Query, field: &str) -> Option<String> {
    let selector = coffer_lang::field_selector::FieldSelector::parse(query.first("fieldSelector")?).ok()?;
    selector.exact(field).map(str::to_owned)
}

/// Why a text cannot stand as one part of a path.
pub(crate) fn path_segment_error(name: &str) -> Option<String> {
    if matches!(name, "." | "..") {
        return Some(format!("may not be '{name}'"));
    }
    let bad: Vec<_> = ["/", "%"]
        .iter()
        .filter(|mark| name.contains(**mark))
        .map(|mark| format!("may not contain '{mark}'"))
        .collect();
    (!bad.is_empty()).then(|| bad.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Method, URL, and `verb prefix group version namespace resource subresource name` with `-` for "".
    const CASES: &[(&str, &str, &str)] = &[
        ("GET", "/api/v1/namespaces", "list api - v1 - namespaces - -"),
        ("GET", "/api/v1/namespaces/other", "get api - v1 other namespaces - other"),
        ("GET", "/api/v1/namespaces/other/pods", "list api - v1 other pods - -"),
        ("GET", "/api/v1/namespaces/other/pods/foo", "get api - v1 other pods - foo"),
        ("HEAD", "/api/v1/namespaces/other/pods/foo", "get api - v1 other pods - foo"),
        ("GET", "/api/v1/pods", "list api - v1 - pods - -"),
        ("HEAD", "/api/v1/pods", "list api - v1 - pods - -"),
        ("GET", "/api/v1/namespaces/other/pods/foo/log", "get api - v1 other pods log foo"),
        ("GET", "/api/v1/proxy/namespaces/other/pods/foo", "proxy api - v1 other pods - foo"),
        ("GET", "/api/v1/proxy/namespaces/other/pods/foo/a/b", "proxy api - v1 other pods - foo"),
        ("GET", "/api/v1/watch/pods", "watch api - v1 - pods - -"),
        ("GET", "/api/v1/pods?watch=true", "watch api - v1 - pods - -"),
        ("GET", "/api/v1/pods?watch=false", "list api - v1 - pods - -"),
        ("GET", "/api/v1/pods?watch=0", "list api - v1 - pods - -"),
        ("GET", "/api/v1/pods?watch=abc", "watch api - v1 - pods - -"),
        ("GET", "/api/v1/watch/namespaces/other/pods", "watch api - v1 other pods - -"),
        ("GET", "/api/v1/namespaces/other/pods?watch=1", "watch api - v1 other pods - -"),
        (
            "GET",
            "/api/v1/namespaces/other/pods?fieldSelector=metadata.name%3Dfoo",
            "list api - v1 other pods - foo",
        ),
        (
            "GET",
            "/api/v1/namespaces/other/pods?fieldSelector=metadata.name!%3Dfoo",
            "list api - v1 other pods - -",
        ),
        (
            "GET",
            "/api/v1/namespaces/other/pods?fieldSelector=metadata.name%3Da/b",
            "list api - v1 other pods - -",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/other/pods?fieldSelector=metadata.name%3Dfoo",
            "deletecollection api - v1 other pods - foo",
        ),
        ("DELETE", "/api/v1/namespaces/other/pods/foo", "delete api - v1 other pods - foo"),
        ("DELETE", "/api/v1/namespaces/other/pods", "deletecollection api - v1 other pods - -"),
        ("PUT", "/api/v1/namespaces/other/finalize", "update api - v1 other namespaces finalize other"),
        ("PATCH", "/api/v1/namespaces/other/pods/foo", "patch api - v1 other pods - foo"),
        ("POST", "/api/v1/namespaces/other/pods", "create api - v1 other pods - -"),
        ("GET", "/apis/extensions/v1/namespaces/other/things", "list apis extensions v1 other things - -"),
        ("POST", "/apis/batch/v1/namespaces/other/jobs", "create apis batch v1 other jobs - -"),
        ("GET", "/api/v1/namespaces//secrets", "list api - v1 - secrets - -"),
        ("GET", "/api/v1/namespaces/t2%2Fsecrets", "list api - v1 t2 secrets - -"),
        ("GET", "/api/v1/namespaces/other/status", "get api - v1 other namespaces status other"),
        ("OPTIONS", "/api/v1/pods", "- api - v1 - pods - -"),
    ];

    fn parse(method: &str, url: &str) -> Option<RequestInfo> {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        RequestInfo::new(&method.parse().expect("method"), path, &Query::parse(query))
    }

    #[test]
    fn requests_are_classified_as_upstream() {
        for (method, url, expected) in CASES {
            let info = parse(method, url).expect("classified");
            assert!(info.resource_request, "{method} {url}");
            let got = [
                &info.verb,
                &info.prefix,
                &info.group,
                &info.version,
                &info.namespace,
                &info.resource,
                &info.subresource,
                &info.name,
            ]
            .map(|part| if part.is_empty() { "-" } else { part.as_str() })
            .join(" ");
            assert_eq!(&got, expected, "{method} {url}");
        }
    }

    #[test]
    fn other_paths_are_not_about_a_resource() {
        for url in [
            "/",
            "",
            "/api",
            "/apis",
            "/api/v1",
            "/apis/batch",
            "/apis/batch/v1",
            "/version",
            "/foo/bar/baz/qux",
        ] {
            let info = parse("GET", url).expect("classified");
            assert!(!info.resource_request, "{url}");
            assert_eq!(info.verb, "get", "{url}");
        }
    }

    #[test]
    fn what_cannot_be_classified_is_refused() {
        assert_eq!(parse("GET", "/api/v1/watch"), None);
        assert_eq!(parse("GET", "/api/v1/%zz"), None);
    }
}
