//! The seams inside the server: who asks, may they, and may the object pass.
//!
//! The HTTP layer calls these traits; authentication, authorization and
//! admission implement them; neither side knows the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coffer_runtime::metrics::Registry;
use coffer_types::meta::GroupVersionKind;
use coffer_types::{Status, Value};
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

pub use crate::reinvocation::Reinvocation;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserInfo {
    /// User name.
    pub name: String,
    /// UID, or "".
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Extra attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What authentication looks at.
pub struct Credentials<'a> {
    /// Headers of the request.
    pub headers: &'a http::HeaderMap,
    /// The client's certificate chain in DER, leaf first; unverified.
    pub certificates: &'a [Vec<u8>],
}

/// Which authenticator vouched for a user, for the records of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthenticationSource {
    /// None: the request had no credentials.
    #[default]
    Anonymous,
    /// A client certificate.
    ClientCertificate,
    /// The token file.
    TokenFile,
    /// A token from TokenRequest.
    ServiceAccountToken,
    /// A token that lies in a Secret.
    LegacyServiceAccountToken,
    /// A bootstrap token.
    BootstrapToken,
    /// A part of this process.
    InProcess,
}

impl AuthenticationSource {
    /// As it stands in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::ClientCertificate => "client-certificate",
            Self::TokenFile => "token-file",
            Self::ServiceAccountToken => "service-account-token",
            Self::LegacyServiceAccountToken => "legacy-service-account-token",
            Self::BootstrapToken => "bootstrap-token",
            Self::InProcess => "in-process",
        }
    }
}

/// Who the user is, and what else the answer must carry.
#[derive(Debug, Clone, Default)]
pub struct Authenticated {
    /// The user, `system:authenticated` or `system:unauthenticated` included.
    pub user: UserInfo,
    /// Who vouched for the user.
    pub source: AuthenticationSource,
    /// Warning headers.
    pub warnings: Vec<String>,
}

/// Finds out who asks. An error is a 401; no credentials at all is the anonymous user.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// Authenticates one request, impersonation not included.
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Authenticated, Status>;
}

/// What authorization looks at.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    /// Who.
    pub user: UserInfo,
    /// `get`, `list`, `create`, …
    pub verb: String,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Resource (plural).
    pub resource: String,
    /// Subresource, or "".
    pub subresource: String,
    /// Namespace, or "".
    pub namespace: String,
    /// Name, or "".
    pub name: String,
    /// The node that a `spec.nodeName` field selector pins, or "".
    pub selected_node: String,
    /// Whether this is about a resource at all.
    pub resource_request: bool,
    /// Path, for requests that are not about a resource.
    pub path: String,
}

/// Whether they may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Yes, and why.
    Allow(String),
    /// No, and no other authorizer may say yes.
    Deny(String),
    /// This authorizer does not know; in the end that is a no.
    NoOpinion(String),
}

/// Decides whether a user may do something.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// Decides. An error is reported with the refusal (`evaluationError`).
    async fn authorize(&self, attributes: &Attributes) -> (Decision, Option<String>);
}

/// `CREATE`, `UPDATE` or `DELETE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// A deletion.
    Delete,
}

/// What admission looks at.
pub struct Admission<'a> {
    /// Who, what and where.
    pub attributes: &'a Attributes,
    /// What is done.
    pub operation: Operation,
    /// Kind of the object.
    pub kind: &'a str,
    /// The object as it is stored now; `None` on create.
    pub old: Option<&'a Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// What webhooks and policies look at beside that.
    pub context: &'a Context<'a>,
}

/// What of a request only webhooks and policies look at.
pub struct Context<'a> {
    /// The object in other forms.
    pub forms: &'a dyn Forms,
    /// Name of the object as the request has it: "" where the server makes one, and for collections.
    pub name: &'a str,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
    pub options: &'a Value,
    /// When the request must have been answered, on the monotonic clock.
    pub deadline: Option<Duration>,
    /// What is remembered between the rounds of mutating.
    pub reinvocation: &'a Reinvocation,
}

/// A resource that shows the same objects in another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Equivalent {
    /// Group of the resource.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its plural.
    pub resource: String,
    /// Kind of the object there.
    pub kind: GroupVersionKind,
}

/// The object of a request in its versions, and how it is read and written. No error holds a value.
#[async_trait]
pub trait Forms: Send + Sync {
    /// The kind that the request is about: a subresource's own.
    fn kind(&self) -> &GroupVersionKind;

    /// Other resources with the same objects.
    fn equivalents(&self) -> Vec<Equivalent>;

    /// The object as another kind.
    async fn convert(&self, object: &Value, to: &GroupVersionKind) -> Result<Value, String>;

    /// The object as JSON.
    fn encode(&self, object: &Value, kind: &GroupVersionKind) -> Result<Vec<u8>, String>;

    /// The object that a patch has made of one of `kind`, without defaults.
    fn decode(&self, patched: &Value, kind: &GroupVersionKind) -> Result<Value, String>;

    /// Fills in the defaults of `kind`.
    fn default(&self, object: &mut Value, kind: &GroupVersionKind);
}

/// What a plugin gets when the server is put together.
pub struct Startup {
    /// Metrics of the process.
    pub metrics: Arc<Registry>,
    /// Ends what the plugin runs.
    pub stop: CancellationToken,
}

/// Changes or refuses objects before they are stored. A plugin has one of the two steps, or both.
#[async_trait]
pub trait Admit: Send + Sync + 'static {
    /// May change `object` (`None` on delete). Warnings go to the client.
    async fn mutate(
        &self,
        _request: &Admission<'_>,
        _object: Option<&mut Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        Ok(())
    }

    /// Whether the plugin stands in upstream's storage: it sees what all others have made of the object.
    fn is_last(&self) -> bool {
        false
    }

    /// Called once, when the server is put together; inside of a tokio runtime.
    fn start(self: Arc<Self>, _startup: &Startup) {}

    /// Returns once the plugin knows of all that has been written to a resource by now.
    async fn caught_up(&self, _resource: &GroupResource) {}

    /// May only refuse.
    async fn validate(
        &self,
        _request: &Admission<'_>,
        _object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        Ok(())
    }
}

/// A resource or subresource that stores nothing: TokenReview, SubjectAccessReview, `serviceaccounts/token`.
#[async_trait]
pub trait CreateOnly: Send + Sync + 'static {
    /// Answers a POST; `object` has been decoded by the tables. Answered with 201.
    async fn create(&self, attributes: &Attributes, object: Value, dry_run: bool) -> Result<Value, Status>;
}

/// Every admission plugin, in upstream's order.
pub type AdmissionChain = Vec<Arc<dyn Admit>>;

/// Names a resource: group ("" is core) and plural.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// API group.
    pub group: String,
    /// Plural.
    pub resource: String,
}

impl GroupResource {
    /// From its two parts.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.to_owned(), resource: resource.to_owned() }
    }
}

/// A served resource as garbage collection and namespace deletion need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedResource {
    /// Group and plural.
    pub name: GroupResource,
    /// Version that [`Objects`] answers in.
    pub version: String,
    /// Kind of one object.
    pub kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// How dependents fare when an object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    /// The object goes first.
    #[default]
    Background,
    /// The object goes last.
    Foreground,
    /// Dependents stay.
    Orphan,
}

/// How to delete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deletion {
    /// Only the object with this UID.
    pub uid: Option<String>,
    /// Only the object in this state.
    pub resource_version: Option<String>,
    /// `None` keeps the finalizers that the object has, else the kind's default.
    pub propagation: Option<Propagation>,
}

/// What happened to the objects of one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The whole state: first of all, and again whenever the watch had to start over.
    Reset(Vec<Value>),
    /// An object came into being or changed.
    Applied(Box<Value>),
    /// An object is gone; its last state.
    Deleted(Box<Value>),
}

/// What of the objects of a resource a follower looks at. Nothing else is decoded for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Whole objects, all of them.
    Whole,
    /// The metadata of all objects, and of that all but who owns which field.
    Metadata,
    /// Whole objects, of those whose field (by which the kind can be selected) has this text.
    Field(&'static str, &'static str),
}

/// Stored objects as the server's own parts reach them: authenticators, admission, controllers.
///
/// Writes go through the resource's strategy (defaulting, validation, finalizers) and are
/// always allowed. Every object carries `apiVersion`, `kind` and `resourceVersion`.
#[async_trait]
pub trait Objects: Send + Sync + 'static {
    /// One object, or `None` where there is none. `live` reads what is stored now, else a cache may answer.
    async fn get(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        live: bool,
    ) -> Result<Option<Value>, Status>;

    /// The text of a field by which the kind can be selected, such as `status.phase`, of one object: without
    /// decoding it where that can be had. `None` where there is no such object.
    async fn field(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        field: &'static str,
        live: bool,
    ) -> Result<Option<String>, Status> {
        let path: Vec<&str> = field.split('.').collect();
        let found = self.get(resource, namespace, name, live).await?;
        Ok(found.map(|object| object.str_at(&path).to_owned()))
    }

    /// Every object of one namespace, or of all for "".
    async fn list(&self, resource: &GroupResource, namespace: &str) -> Result<Vec<Value>, Status>;

    /// The same, as a cache has them: what was written just now may be missing.
    async fn cached(&self, resource: &GroupResource, namespace: &str) -> Result<Vec<Value>, Status> {
        self.list(resource, namespace).await
    }

    /// Creates; the namespace is the object's.
    async fn create(&self, resource: &GroupResource, object: Value) -> Result<Value, Status>;

    /// Replaces, as PUT does: a `resourceVersion` that is not the stored one is a 409.
    /// `subresource` is "", `status`, `finalize` or `binding`.
    async fn update(
        &self,
        resource: &GroupResource,
        subresource: &str,
        object: Value,
    ) -> Result<Value, Status>;

    /// Deletes; a missing object is a 404.
    async fn delete(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        deletion: &Deletion,
    ) -> Result<(), Status>;

    /// Every change from the present state on, of what `interest` says. Never ends: once the server has
    /// stopped, nothing more comes.
    fn watch(&self, resource: &GroupResource, interest: Interest) -> BoxStream<'static, Change>;

    /// Every resource that can be listed and deleted; the same allocation as long as it is the same.
    fn served(&self) -> Arc<[ServedResource]>;
}
