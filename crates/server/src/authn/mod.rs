//! Authentication: who asks.
//!
//! The client certificate is looked at first, then the bearer token by each token
//! authenticator in turn. The first success wins and failures before it are forgotten;
//! without a success any failure is a 401, and a request without credentials is anonymous.

mod bootstrap_token;
mod cache;
mod token_file;
mod x509;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use coffer_types::Status;
use http::HeaderMap;

pub use self::bootstrap_token::BootstrapTokens;
pub use self::cache::TokenCache;
pub use self::token_file::TokenFile;
pub use self::x509::{CertificateError, X509};
use crate::authz::quote::aggregate;
use crate::ports::{Authenticated, AuthenticationSource, Authenticator, Credentials, UserInfo};

/// Who asks without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// Group of everyone with credentials.
pub const ALL_AUTHENTICATED: &str = "system:authenticated";
/// Group of everyone without.
pub const ALL_UNAUTHENTICATED: &str = "system:unauthenticated";
/// Group of every node.
pub const NODES_GROUP: &str = "system:nodes";
/// What the user name of a node begins with.
pub const NODE_PREFIX: &str = "system:node:";
/// Extra attribute that names the credential, never holds it.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS_GROUP: &str = "system:serviceaccounts";
const INVALID_TOKEN: &str = "invalid bearer token";
const SPACE_WARNING: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// The user name of a service account.
pub fn service_account_username(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Namespace and name of a service account's user name.
pub fn split_service_account_username(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The groups of every service account of a namespace, `system:authenticated` not included.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS_GROUP.to_owned(), format!("{SERVICE_ACCOUNTS_GROUP}:{namespace}")]
}

/// Whose a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUser {
    /// The user, `system:authenticated` not included.
    pub user: UserInfo,
    /// Which authenticator knows the token.
    pub source: AuthenticationSource,
    /// The audiences that token and request have in common.
    pub audiences: Vec<String>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Finds out whose a token is.
#[async_trait]
pub trait TokenAuthenticator: Send + Sync + 'static {
    /// `None`: not a token of this kind. An error says why a token of this kind is no good,
    /// and never holds the token. `audiences` is what the request asks for, by default the server's own.
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String>;
}

/// What a kind of token that knows no audience gives for `wanted`; `None` when the server is not wanted.
fn audiences_of_server(own: &[String], wanted: Option<&[String]>) -> Option<Vec<String>> {
    let Some(wanted) = wanted else { return Some(own.to_vec()) };
    let common: Vec<String> = own.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
    (!common.is_empty()).then_some(common)
}

/// Asks one authenticator after the other.
pub struct TokenUnion(pub Vec<Arc<dyn TokenAuthenticator>>);

#[async_trait]
impl TokenAuthenticator for TokenUnion {
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String> {
        let mut errors = Vec::new();
        for authenticator in &self.0 {
            match authenticator.authenticate(token, audiences).await {
                Ok(Some(user)) => return Ok(Some(user)),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(None) } else { Err(aggregate(&errors)) }
    }
}

/// How the server authenticates.
pub struct Authn {
    x509: Option<X509>,
    tokens: Arc<dyn TokenAuthenticator>,
    api_audiences: Vec<String>,
    anonymous: bool,
}

impl Authn {
    /// `x509` is the client CA, when there is one; `tokens` usually a [`TokenCache`] over a [`TokenUnion`].
    pub fn new(
        x509: Option<X509>,
        tokens: Arc<dyn TokenAuthenticator>,
        api_audiences: Vec<String>,
        anonymous: bool,
    ) -> Self {
        Self { x509, tokens, api_audiences, anonymous }
    }

    /// The audiences of this server.
    pub fn api_audiences(&self) -> &[String] {
        &self.api_audiences
    }

    /// Whose a token is, for TokenReview.
    ///
    /// # Errors
    /// Upstream's text of all that is wrong with it.
    pub async fn review(&self, token: &str, audiences: &[String]) -> Result<TokenUser, String> {
        let audiences = (!audiences.is_empty()).then_some(audiences);
        match self.tokens.authenticate(token, audiences).await {
            Ok(Some(mut found)) => {
                add_authenticated(&mut found.user);
                Ok(found)
            }
            Ok(None) => Err(INVALID_TOKEN.to_owned()),
            // Upstream asks an authenticator for its own loopback token first, and its refusal shows.
            Err(error) => Err(format!("[{INVALID_TOKEN}, {error}]")),
        }
    }

    async fn token(&self, token: &str) -> Result<TokenUser, String> {
        let audiences = (!self.api_audiences.is_empty()).then_some(self.api_audiences.as_slice());
        match self.tokens.authenticate(token, audiences).await {
            Ok(found) => found.ok_or_else(|| INVALID_TOKEN.to_owned()),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl Authenticator for Authn {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Authenticated, Status> {
        let mut errors = Vec::new();
        let mut warnings = Vec::new();
        if let Some(x509) = self.x509.as_ref().filter(|_| !credentials.certificates.is_empty()) {
            match x509.authenticate(credentials.certificates) {
                Ok(Some(user)) => {
                    return Ok(authenticated(user, AuthenticationSource::ClientCertificate, warnings));
                }
                Ok(None) => {}
                Err(error) => errors.push(error.to_string()),
            }
        }
        let mut tokens = Vec::new();
        match bearer(credentials.headers) {
            Bearer::Token(token) => tokens.push(token.to_owned()),
            Bearer::ExtraSpace => warnings.push(SPACE_WARNING.to_owned()),
            Bearer::None => {}
        }
        match websocket_token(credentials.headers) {
            Ok(token) => tokens.extend(token),
            Err(error) => errors.push(error.to_owned()),
        }
        for token in tokens {
            match self.token(&token).await {
                Ok(found) => {
                    warnings.extend(found.warnings);
                    return Ok(authenticated(found.user, found.source, warnings));
                }
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(Status::unauthorized().with_internal(aggregate(&errors)));
        }
        if !self.anonymous {
            return Err(Status::unauthorized());
        }
        let user = UserInfo {
            name: ANONYMOUS.to_owned(),
            groups: vec![ALL_UNAUTHENTICATED.to_owned()],
            ..UserInfo::default()
        };
        Ok(Authenticated { user, source: AuthenticationSource::Anonymous, warnings })
    }
}

fn authenticated(mut user: UserInfo, source: AuthenticationSource, warnings: Vec<String>) -> Authenticated {
    add_authenticated(&mut user);
    Authenticated { user, source, warnings }
}

/// Adds `system:authenticated` unless the user is already in one of the two groups.
fn add_authenticated(user: &mut UserInfo) {
    let known = |group: &String| group == ALL_AUTHENTICATED || group == ALL_UNAUTHENTICATED;
    if !user.groups.iter().any(known) {
        user.groups.push(ALL_AUTHENTICATED.to_owned());
    }
}

enum Bearer<'a> {
    Token(&'a str),
    ExtraSpace,
    None,
}

fn bearer(headers: &HeaderMap) -> Bearer<'_> {
    let value = headers.get(http::header::AUTHORIZATION).map(http::HeaderValue::as_bytes).unwrap_or_default();
    // A token that is not text is no token of any kind.
    let Ok(text) = std::str::from_utf8(value) else { return Bearer::None };
    let mut parts = text.trim().splitn(3, ' ');
    let scheme = parts.next().unwrap_or_default();
    match (scheme.eq_ignore_ascii_case("bearer"), parts.next(), parts.next()) {
        (true, Some(""), Some(_)) => Bearer::ExtraSpace,
        (true, Some(token), _) if !token.is_empty() => Bearer::Token(token),
        _ => Bearer::None,
    }
}

/// The token that a browser sends as a WebSocket subprotocol.
fn websocket_token(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";
    let has = |name: http::header::HeaderName, word: &str| {
        headers.get_all(name).iter().any(|value| {
            value
                .to_str()
                .is_ok_and(|text| text.split(',').any(|item| item.trim().eq_ignore_ascii_case(word)))
        })
    };
    if !has(http::header::CONNECTION, "upgrade") || !has(http::header::UPGRADE, "websocket") {
        return Ok(None);
    }
    let mut token = None;
    let mut others = false;
    for value in headers.get_all(http::header::SEC_WEBSOCKET_PROTOCOL) {
        for protocol in value.to_str().unwrap_or_default().split(',').map(str::trim) {
            let Some(encoded) = protocol.strip_prefix(PREFIX) else {
                others = true;
                continue;
            };
            if token.is_some() {
                return Err("multiple base64.bearer.authorization tokens specified");
            }
            if encoded.is_empty() {
                return Err("missing base64.bearer.authorization token");
            }
            let decoded = URL_SAFE_NO_PAD.decode(encoded).ok();
            let decoded = decoded.ok_or("invalid base64.bearer.authorization token encoding")?;
            let text = String::from_utf8(decoded).map_err(|_| "invalid base64.bearer.authorization token")?;
            token = Some(text);
        }
    }
    if token.is_some() && !others {
        return Err("missing additional subprotocol");
    }
    Ok(token)
}
