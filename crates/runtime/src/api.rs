//! Objects of the Kubernetes API by path, with errors that hold no body.
//!
//! A thin layer over [`kube::Client`]: `kube`'s own errors print what a decoder
//! stumbled over, which may be a Secret's value; the ones here never do.

use std::fmt;
use std::fmt::Write as _;

use http::{Method, Request};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// A namespace and a name; the namespace of a cluster-scoped object is "".
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace, or "".
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// From its two parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            formatter.write_str(&self.name)
        } else {
            write!(formatter, "{}/{}", self.namespace, self.name)
        }
    }
}

/// A resource of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resource {
    /// API group; "" is the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Plural name in paths.
    pub plural: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// A namespaced resource.
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self { group, version, plural, kind, namespaced: true }
    }

    /// A cluster-scoped resource.
    pub const fn cluster(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self { group, version, plural, kind, namespaced: false }
    }

    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        coffer_types::meta::api_version(self.group, self.version)
    }

    /// The path of an object, or of the collection when `name` is "".
    pub fn path(&self, namespace: &str, name: &str, subresource: &str) -> String {
        let mut path = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if self.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces/");
            percent_encode(namespace, &mut path);
        }
        path.push('/');
        path.push_str(self.plural);
        for part in [name, subresource] {
            if !part.is_empty() {
                path.push('/');
                percent_encode(part, &mut path);
            }
        }
        path
    }

    /// The same for the typed parts of `kube`.
    pub fn api_resource(&self) -> kube::core::ApiResource {
        kube::core::ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: self.api_version(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

/// Secrets.
pub const SECRETS: Resource = Resource::namespaced("", "v1", "secrets", "Secret");
/// ConfigMaps.
pub const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
/// ServiceAccounts.
pub const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "serviceaccounts", "ServiceAccount");
/// Namespaces.
pub const NAMESPACES: Resource = Resource::cluster("", "v1", "namespaces", "Namespace");
/// Core events.
pub const EVENTS: Resource = Resource::namespaced("", "v1", "events", "Event");
/// Leases.
pub const LEASES: Resource = Resource::namespaced("coordination.k8s.io", "v1", "leases", "Lease");

/// Which object a change may touch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Preconditions<'a> {
    /// Its UID, or "" for any.
    pub uid: &'a str,
    /// Its resourceVersion, or "" for any.
    pub resource_version: &'a str,
}

/// The API as a controller uses it.
#[derive(Clone)]
pub struct Api {
    client: kube::Client,
}

impl Api {
    /// Over `client`, which speaks HTTPS or calls a server in the same process.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// The client itself, for watches.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// One object; `None` when there is none.
    pub async fn get<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        key: &ObjectKey,
    ) -> Result<Option<T>, ApiError> {
        let path = resource.path(&key.namespace, &key.name, "");
        match self.send(Method::GET, path, "", Vec::new()).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object or a subresource (`subresource` of `name`, or "" and "").
    pub async fn create<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: &str,
        body: &impl Serialize,
        manager: &str,
    ) -> Result<T, ApiError> {
        let name = if subresource.is_empty() { "" } else { &key.name };
        let path = with_manager(resource.path(&key.namespace, name, subresource), manager);
        self.send(Method::POST, path, "application/json", encode(body)?).await
    }

    /// Replaces an object.
    pub async fn update<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        body: &impl Serialize,
        manager: &str,
    ) -> Result<T, ApiError> {
        let path = with_manager(resource.path(&key.namespace, &key.name, ""), manager);
        self.send(Method::PUT, path, "application/json", encode(body)?).await
    }

    /// Applies a JSON merge patch to an object or its subresource.
    pub async fn merge_patch<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: &str,
        body: &impl Serialize,
        manager: &str,
    ) -> Result<T, ApiError> {
        let path = with_manager(resource.path(&key.namespace, &key.name, subresource), manager);
        self.send(Method::PATCH, path, "application/merge-patch+json", encode(body)?).await
    }

    /// Deletes an object; whether there was one.
    pub async fn delete(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        preconditions: Preconditions<'_>,
    ) -> Result<bool, ApiError> {
        let mut body = serde_json::json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        for (field, value) in
            [("uid", preconditions.uid), ("resourceVersion", preconditions.resource_version)]
        {
            if !value.is_empty() {
                body["preconditions"][field] = value.into();
            }
        }
        let path = resource.path(&key.namespace, &key.name, "");
        match self.send::<IgnoredAny>(Method::DELETE, path, "application/json", encode(&body)?).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: String,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<T, ApiError> {
        let mut request = Request::builder().method(method).uri(path);
        if !content_type.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        let request =
            request.body(body).map_err(|_| ApiError::unreachable("the request could not be built"))?;
        self.client.request(request).await.map_err(ApiError::from)
    }
}

/// What the API server answered, or why it did not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code; 0 when there was no answer.
    pub code: u16,
    /// The server's reason, or "".
    pub reason: String,
    /// The server's message, or what went wrong on the way. Never a body.
    pub message: String,
}

impl ApiError {
    /// No (usable) answer.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self { code: 0, reason: String::new(), message: message.into() }
    }

    /// The object is not there.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Somebody else changed the object, or it is another one of the same name.
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }

    /// An object of this name is there already.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                Self { code: status.code, reason: status.reason, message: status.message }
            }
            kube::Error::HyperError(error) => Self::unreachable(chain(&error)),
            kube::Error::Service(error) => Self::unreachable(chain(error.as_ref())),
            kube::Error::HttpError(error) => Self::unreachable(error.to_string()),
            kube::Error::ReadEvents(error) => Self::unreachable(chain(&error)),
            kube::Error::Auth(_) => Self::unreachable("the API server's credentials could not be read"),
            // The other variants print what they could not decode.
            _ => Self::unreachable("the API server's answer could not be decoded"),
        }
    }
}

/// An error with its causes: hosts, addresses and TLS alerts, never content.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn encode(body: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(body).map_err(|_| ApiError::unreachable("the request's body could not be encoded"))
}

fn with_manager(mut path: String, manager: &str) -> String {
    if !manager.is_empty() {
        path.push_str("?fieldManager=");
        percent_encode(manager, &mut path);
    }
    path
}

/// Appends `text` with everything but RFC 3986's unreserved characters escaped.
pub fn percent_encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let cases = [
            (SECRETS.path("ns", "db", ""), "/api/v1/namespaces/ns/secrets/db"),
            (SECRETS.path("", "", ""), "/api/v1/secrets"),
            (NAMESPACES.path("ignored", "ns", ""), "/api/v1/namespaces/ns"),
            (SERVICE_ACCOUNTS.path("ns", "a", "token"), "/api/v1/namespaces/ns/serviceaccounts/a/token"),
            (LEASES.path("ns", "a", ""), "/apis/coordination.k8s.io/v1/namespaces/ns/leases/a"),
            (SECRETS.path("../x", "a/b?c", ""), "/api/v1/namespaces/..%2Fx/secrets/a%2Fb%3Fc"),
        ];
        for (path, expected) in cases {
            assert_eq!(path, expected);
        }
    }

    #[test]
    fn a_decoding_error_shows_nothing_of_the_body() {
        let error = serde_json::from_str::<u8>("\"hunter2\"").unwrap_err();
        assert!(error.to_string().contains("hunter2"), "the premise of this test");
        assert!(!ApiError::from(kube::Error::SerdeError(error)).to_string().contains("hunter2"));
    }

    #[test]
    fn managers_are_escaped() {
        assert_eq!(with_manager("/p".to_owned(), "a.io/b"), "/p?fieldManager=a.io%2Fb");
        assert_eq!(with_manager("/p".to_owned(), ""), "/p");
    }
}
