//! The seams inside the server: who asks, may they, and may the object pass.
//!
//! The HTTP layer calls these traits; authentication, authorization and
//! admission implement them; neither side knows the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::{Status, Value};

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

/// Who the user is, and what else the answer must carry.
#[derive(Debug, Clone, Default)]
pub struct Authenticated {
    /// The user, `system:authenticated` or `system:unauthenticated` included.
    pub user: UserInfo,
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
}

/// Changes or refuses objects before they are stored.
#[async_trait]
pub trait Admit: Send + Sync + 'static {
    /// May change `object` (`None` on delete). Warnings go to the client.
    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status>;

    /// May only refuse.
    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status>;
}

/// A resource or subresource that stores nothing: TokenReview, SubjectAccessReview, `serviceaccounts/token`.
#[async_trait]
pub trait CreateOnly: Send + Sync + 'static {
    /// Answers a POST; `object` has been decoded by the tables. Answered with 201.
    async fn create(&self, attributes: &Attributes, object: Value, dry_run: bool) -> Result<Value, Status>;
}

/// Every admission plugin, in upstream's order.
pub type AdmissionChain = Vec<Arc<dyn Admit>>;
