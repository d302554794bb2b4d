//! The claims of service account tokens: made, read and checked.

use coffer_types::time::Timestamp;
use serde_json::{Map, Value as Json, json};

/// Lifetime that a pod's projected token asks for; it is extended when it is exactly this.
pub const WARN_ONLY_SECONDS: i64 = 60 * 60 + 7;
/// Lifetime of an extended token: a year.
pub const EXTENDED_SECONDS: i64 = 24 * 365 * 60 * 60;
/// How far clocks may differ.
pub const LEEWAY_SECONDS: i64 = 60;

/// Name and UID of an object that a token is bound to. `uid` is "" when unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bound {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

/// What a token says about its service account and what it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Private {
    /// Namespace of everything below but the node.
    pub namespace: String,
    /// The service account.
    pub service_account: Bound,
    /// The pod it was made for.
    pub pod: Option<Bound>,
    /// The Secret it lives as long as.
    pub secret: Option<Bound>,
    /// The node of the pod, or the node it lives as long as.
    pub node: Option<Bound>,
    /// When an extended token should have been replaced, in seconds since 1970.
    pub warn_after: Option<i64>,
}

/// The registered claims that are looked at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Public {
    /// `iss`.
    pub issuer: String,
    /// `sub`.
    pub subject: String,
    /// `aud`.
    pub audiences: Vec<String>,
    /// `jti`.
    pub id: String,
    /// `exp`, seconds since 1970.
    pub expires: Option<i64>,
    /// `nbf`.
    pub not_before: Option<i64>,
    /// `iat`.
    pub issued_at: Option<i64>,
}

/// The claims of a new token.
pub fn encode(public: &Public, private: &Private) -> Map<String, Json> {
    let bound = |bound: &Bound| {
        let mut members = Map::new();
        for (field, text) in [("name", &bound.name), ("uid", &bound.uid)] {
            if !text.is_empty() {
                members.insert(field.to_owned(), json!(text));
            }
        }
        Json::Object(members)
    };
    let mut kubernetes = Map::new();
    kubernetes.insert("namespace".to_owned(), json!(private.namespace));
    kubernetes.insert("serviceaccount".to_owned(), bound(&private.service_account));
    for (field, object) in [("pod", &private.pod), ("secret", &private.secret), ("node", &private.node)] {
        if let Some(object) = object {
            kubernetes.insert(field.to_owned(), bound(object));
        }
    }
    if let Some(seconds) = private.warn_after {
        kubernetes.insert("warnafter".to_owned(), json!(seconds));
    }
    let mut claims = Map::new();
    claims.insert("aud".to_owned(), json!(public.audiences));
    for (name, seconds) in [("exp", public.expires), ("iat", public.issued_at), ("nbf", public.not_before)] {
        if let Some(seconds) = seconds {
            claims.insert(name.to_owned(), json!(seconds));
        }
    }
    for (name, text) in [("iss", &public.issuer), ("jti", &public.id), ("sub", &public.subject)] {
        if !text.is_empty() {
            claims.insert(name.to_owned(), json!(text));
        }
    }
    claims.insert("kubernetes.io".to_owned(), Json::Object(kubernetes));
    claims
}

/// Reads the registered claims; `None` when one has a type that it must not have.
pub fn public(claims: &Map<String, Json>) -> Option<Public> {
    Some(Public {
        issuer: text(claims, "iss")?,
        subject: text(claims, "sub")?,
        audiences: match claims.get("aud") {
            None | Some(Json::Null) => Vec::new(),
            Some(Json::String(one)) => vec![one.clone()],
            Some(Json::Array(items)) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>()?
            }
            Some(_) => return None,
        },
        id: text(claims, "jti")?,
        expires: seconds(claims, "exp")?,
        not_before: seconds(claims, "nbf")?,
        issued_at: seconds(claims, "iat")?,
    })
}

/// Reads `kubernetes.io`; `None` when something in it has a type that it must not have.
pub fn private(claims: &Map<String, Json>) -> Option<Private> {
    let empty = Map::new();
    let kubernetes = match claims.get("kubernetes.io") {
        None | Some(Json::Null) => &empty,
        Some(Json::Object(members)) => members,
        Some(_) => return None,
    };
    let bound = |name: &str| -> Option<Option<Bound>> {
        match kubernetes.get(name) {
            None | Some(Json::Null) => Some(None),
            Some(Json::Object(members)) => {
                Some(Some(Bound { name: text(members, "name")?, uid: text(members, "uid")? }))
            }
            Some(_) => None,
        }
    };
    Some(Private {
        namespace: text(kubernetes, "namespace")?,
        service_account: bound("serviceaccount")?.unwrap_or_default(),
        pod: bound("pod")?,
        secret: bound("secret")?,
        node: bound("node")?,
        warn_after: seconds(kubernetes, "warnafter")?,
    })
}

/// Whether the token may be used now; the error is upstream's text.
///
/// # Errors
/// When it is too early or too late.
pub fn check_time(public: &Public, now: Timestamp) -> Result<(), &'static str> {
    let now = now.as_second();
    if public.not_before.is_some_and(|not_before| now.saturating_add(LEEWAY_SECONDS) < not_before) {
        return Err("service account token is not valid yet");
    }
    if public.expires.is_some_and(|expires| expires < now.saturating_sub(LEEWAY_SECONDS)) {
        return Err("service account token has expired");
    }
    if public.issued_at.is_some_and(|issued| now.saturating_add(LEEWAY_SECONDS) < issued) {
        return Err("service account token is issued in the future");
    }
    Ok(())
}

fn text(members: &Map<String, Json>, name: &str) -> Option<String> {
    match members.get(name) {
        None | Some(Json::Null) => Some(String::new()),
        Some(Json::String(text)) => Some(text.clone()),
        Some(_) => None,
    }
}

/// A JSON number, fractions cut off, as the Go library reads a NumericDate.
fn seconds(members: &Map<String, Json>, name: &str) -> Option<Option<i64>> {
    match members.get(name) {
        None | Some(Json::Null) => Some(None),
        Some(Json::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Some(Some(whole)),
            // `as` saturates, which is what a date beyond all dates should do.
            (None, Some(fraction)) if fraction.is_finite() => Some(Some(fraction as i64)),
            _ => None,
        },
        Some(_) => None,
    }
}
