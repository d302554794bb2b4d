//! Vault's HTTP API: headers, tokens, retries, errors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::SecretBytes;
use http::{HeaderValue, Request};
use parking_lot::Mutex as Lock;
use serde::Deserialize;
use serde_json::Value as Json;
use tokio::sync::Mutex;

use super::auth::{Auth, Plan};
use super::kv;
use crate::contract::{Context, ProviderError, Scope, SecretsClient, config, fetched_version};
use crate::https::{Answer, Https, HttpsError, Tls, credential, escape, with_json};

/// Vault's client library tries twice more, a second apart, when the store says nothing.
const DEFAULT_RETRIES: u32 = 2;
const DEFAULT_RETRY_WAIT: Duration = Duration::from_secs(1);
/// A token is renewed by a new login when so little of its life is left.
const TOKEN_RESERVE: Duration = Duration::from_secs(60);
/// A secret that is shorter is not searched for in error texts: it would match words.
const REDACT_FROM: usize = 4;

/// Everything that a connection is made from.
pub(crate) struct ApiConfig {
    pub(crate) provider: &'static str,
    pub(crate) server: String,
    pub(crate) namespace: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) read_your_writes: bool,
    pub(crate) forward_inconsistent: bool,
    pub(crate) authority: Option<Vec<u8>>,
    pub(crate) identity: Option<(Vec<u8>, SecretBytes)>,
    pub(crate) context: Context,
    pub(crate) auth: Auth,
    /// Whether there is any login; without one, requests carry no token.
    pub(crate) authenticated: bool,
    pub(crate) scope: Scope,
}

/// A token and how long it lives.
#[derive(Clone)]
pub(crate) struct Token {
    value: SecretBytes,
    /// Monotonic time after which it is not used any more.
    until: Option<Duration>,
    /// Whether it came from a login, and is given back at the end.
    leased: bool,
}

/// One server with one login.
pub(crate) struct Api {
    config: ApiConfig,
    https: Arc<Https>,
    base: String,
    token: Mutex<Option<Token>>,
    /// The last index that the server told, for reading one's own writes.
    index: Lock<Option<HeaderValue>>,
}

/// Which token a request carries, and in which namespace it is.
struct Identity<'a> {
    token: Option<&'a SecretBytes>,
    namespace: &'a str,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Errors {
    errors: Vec<String>,
}

#[derive(Deserialize)]
struct LoginAnswer {
    auth: LoginAuth,
}

#[derive(Deserialize)]
struct LoginAuth {
    client_token: String,
    #[serde(default)]
    lease_duration: u64,
}

impl Api {
    pub(crate) fn new(mut config_: ApiConfig) -> Result<Self, ProviderError> {
        let tls = Tls { authority: config_.authority.take(), identity: config_.identity.take() };
        let https =
            Https::new(tls, config_.context.clock.clone()).map_err(|error| config(error.to_string()))?;
        let base = config_.server.trim_end_matches('/').to_owned();
        if !base.starts_with("https://") && !base.starts_with("http://") {
            return Err(config(format!(
                "unsupported server address {base:?}: it must begin with https:// or http://"
            )));
        }
        Ok(Self {
            config: config_,
            https: Arc::new(https),
            base,
            token: Mutex::new(None),
            index: Lock::new(None),
        })
    }

    pub(crate) fn is_referent(&self) -> bool {
        self.config.auth.is_referent(&self.config.scope)
    }

    /// The token to use now; logs in when there is none that lives long enough.
    pub(crate) async fn token(&self) -> Result<Option<Token>, ProviderError> {
        if !self.config.authenticated {
            return Ok(None);
        }
        let mut held = self.token.lock().await;
        let now = self.config.context.clock.monotonic();
        if let Some(token) = &*held
            && token.until.is_none_or(|until| now < until)
        {
            return Ok(Some(token.clone()));
        }
        let token = match self.config.auth.plan(&self.config.scope, &self.config.context).await? {
            Plan::Static(value) => Token { value, until: None, leased: false },
            Plan::Login(login) => {
                let namespace = match self.config.auth.namespace.as_str() {
                    "" => &self.config.namespace,
                    other => other,
                };
                let body = Json::Object(login.body).to_string().into_bytes();
                let identity = Identity { token: None, namespace };
                let answer =
                    self.call("Login", login.method, &login.path, "", Some(&body), &identity).await?;
                let answer = ok(answer, &self.base, login.method, &login.path, &login.secrets)?;
                let answer: LoginAnswer = serde_json::from_slice(answer.body.expose())
                    .map_err(|_| ProviderError::Auth("the answer to the login holds no token".to_owned()))?;
                let life = Duration::from_secs(answer.auth.lease_duration);
                // Half of a life that is too short for the whole reserve.
                let used = life.saturating_sub(TOKEN_RESERVE.min(life / 2));
                let until = (!life.is_zero()).then(|| now.saturating_add(used));
                Token { value: SecretBytes::from(answer.auth.client_token), until, leased: true }
            }
        };
        *held = Some(token.clone());
        Ok(Some(token))
    }

    /// GET `path`; `None` when there is nothing.
    pub(crate) async fn read(
        &self,
        call: &'static str,
        path: &str,
        query: &str,
    ) -> Result<Option<SecretBytes>, ProviderError> {
        let answer = self.authorized(call, "GET", path, query).await?;
        if answer.status == 404 {
            // A deleted version of KV v2 answers 404 with data; nothing at all answers with an empty list.
            let body: Json = serde_json::from_slice(answer.body.expose()).unwrap_or_default();
            return Ok(body.get("data").is_some().then_some(answer.body));
        }
        let secrets = self.token.lock().await.iter().map(|token| token.value.clone()).collect::<Vec<_>>();
        ok(answer, &self.base, "GET", path, &secrets).map(|answer| Some(answer.body))
    }

    /// The version of `key` that the metadata at `path` tells. A policy often allows the values alone: then the
    /// version is read with the value.
    pub(crate) async fn current_version<C: SecretsClient>(
        &self,
        client: &C,
        key: &str,
        path: Option<String>,
    ) -> Result<Option<String>, ProviderError> {
        let Some(path) = path else { return fetched_version(client, key).await };
        match self.read("ReadSecretData", &path, "").await {
            Ok(Some(answer)) => kv::current_version(&answer, self.config.context.clock.now()),
            Ok(None) => Err(ProviderError::NotFound),
            Err(ProviderError::Auth(_)) => fetched_version(client, key).await,
            Err(error) => Err(error),
        }
    }

    /// Asks the server about the token.
    pub(crate) async fn check_token(&self) -> Result<(), ProviderError> {
        let Some(token) = self.token().await? else { return Ok(()) };
        if token.until.is_some() {
            return Ok(());
        }
        let path = "auth/token/lookup-self";
        let answer = self.authorized("LookupSelf", "GET", path, "").await?;
        ok(answer, &self.base, "GET", path, &[token.value]).map(|_| ())
    }

    /// Gives a leased token back.
    pub(crate) async fn close(&self) {
        let Some(token) = self.token.lock().await.take().filter(|token| token.leased) else { return };
        let identity = Identity { token: Some(&token.value), namespace: &self.config.namespace };
        let result = self.call("RevokeSelf", "POST", "auth/token/revoke-self", "", None, &identity).await;
        if result.is_err() {
            tracing::debug!("a token could not be revoked; it ends by itself");
        }
    }

    /// With the token; a leased one that is refused is replaced once.
    async fn authorized(
        &self,
        call: &'static str,
        method: &'static str,
        path: &str,
        query: &str,
    ) -> Result<Answer, ProviderError> {
        let token = self.token().await?;
        let identity =
            Identity { token: token.as_ref().map(|token| &token.value), namespace: &self.config.namespace };
        let answer = self.call(call, method, path, query, None, &identity).await?;
        let Some(token) = token.filter(|token| token.leased && answer.status == 403) else {
            return Ok(answer);
        };
        {
            let mut held = self.token.lock().await;
            // Unless another task was faster.
            if held.as_ref().is_some_and(|held| held.value == token.value) {
                *held = None;
            }
        }
        let token = self.token().await?;
        let identity =
            Identity { token: token.as_ref().map(|token| &token.value), namespace: &self.config.namespace };
        self.call(call, method, path, query, None, &identity).await
    }

    async fn call(
        &self,
        call: &'static str,
        method: &'static str,
        path: &str,
        query: &str,
        body: Option<&[u8]>,
        identity: &Identity<'_>,
    ) -> Result<Answer, ProviderError> {
        let retry = self.config.context.retry;
        let retries = retry.map_or(DEFAULT_RETRIES, |retry| retry.max_retries.unwrap_or(0));
        let wait = retry.and_then(|retry| retry.interval).unwrap_or(DEFAULT_RETRY_WAIT);
        let mut tries = 0;
        loop {
            let request = self.request(method, path, query, body, identity)?;
            let result = self.https.send(request).await;
            let success = result.as_ref().is_ok_and(|answer| answer.status < 400);
            self.config.context.calls.observe(self.config.provider, call, success);
            let again = match &result {
                Ok(answer) => matches!(answer.status, 412 | 429 | 500 | 502..=599),
                Err(HttpsError::Unreachable(_)) => true,
                Err(_) => false,
            };
            if !again || retries <= tries {
                let answer = result.map_err(|error| match error {
                    HttpsError::Invalid(text) => config(text),
                    other => ProviderError::Retryable(format!("{method} {}/v1/{path}: {other}", self.base)),
                })?;
                if let Some(index) = answer.headers.get("x-vault-index") {
                    *self.index.lock() = Some(index.clone());
                }
                return Ok(answer);
            }
            tries += 1;
            self.config.context.clock.sleep(wait).await;
        }
    }

    fn request(
        &self,
        method: &'static str,
        path: &str,
        query: &str,
        body: Option<&[u8]>,
        identity: &Identity<'_>,
    ) -> Result<Request<Vec<u8>>, ProviderError> {
        let mut uri = format!("{}/v1/{}", self.base, escape_path(path));
        if !query.is_empty() {
            uri.push('?');
            uri.push_str(query);
        }
        let config_ = &self.config;
        let mut request = Request::builder().method(method).uri(uri).header("X-Vault-Request", "true");
        for (name, value) in &config_.headers {
            request = request.header(name, value);
        }
        if !identity.namespace.is_empty() {
            request = request.header("X-Vault-Namespace", identity.namespace);
        }
        if config_.read_your_writes || config_.forward_inconsistent {
            if let Some(index) = &*self.index.lock() {
                request = request.header("X-Vault-Index", index);
            }
            if config_.read_your_writes && config_.forward_inconsistent {
                request = request.header("X-Vault-Inconsistent", "forward-active-node");
            }
        }
        if let Some(token) = identity.token {
            request = request.header("X-Vault-Token", credential(&[token.expose()])?);
        }
        let wrong = "the server's address, a header or the key is not valid";
        with_json(request, body.map(<[u8]>::to_vec), wrong)
    }
}

/// The answer if it is a good one, else an error with the server's words.
fn ok(
    answer: Answer,
    base: &str,
    method: &str,
    path: &str,
    secrets: &[SecretBytes],
) -> Result<Answer, ProviderError> {
    let status = answer.status;
    if status < 400 {
        return Ok(answer);
    }
    let errors: Errors = serde_json::from_slice(answer.body.expose()).unwrap_or_default();
    let mut text =
        format!("Error making API request.\n\nURL: {method} {base}/v1/{path}\nCode: {status}. Errors:\n\n");
    for error in errors.errors {
        text.push_str("* ");
        text.push_str(&redact(error, secrets));
        text.push('\n');
    }
    let text = text.trim_end().to_owned();
    Err(match status {
        401 | 403 => ProviderError::Auth(text),
        // A refused login is answered with 400.
        400 if path.starts_with("auth/") => ProviderError::Auth(text),
        400 | 405 => config(text),
        _ => ProviderError::Retryable(text),
    })
}

/// A server may repeat what it was sent.
fn redact(mut text: String, secrets: &[SecretBytes]) -> String {
    for secret in secrets {
        if let Ok(secret) = std::str::from_utf8(secret.expose())
            && REDACT_FROM <= secret.len()
        {
            text = text.replace(secret, "[REDACTED]");
        }
    }
    text
}

/// Escapes each segment; `.` and `..` would name another path, so their dots are escaped too.
fn escape_path(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        // Already escaped by the caller (a user's name).
        other if other.contains('%') => other.to_owned(),
        other => escape(other),
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, headers: http::HeaderMap::new(), body: SecretBytes::from(body.to_owned()) }
    }

    #[test]
    fn errors_repeat_the_servers_words_but_no_credential() {
        let secrets = [SecretBytes::from("hunter2".to_owned())];
        let refused = answer(400, r#"{"errors":["invalid secret id hunter2"]}"#);
        let error = ok(refused, "http://v", "POST", "auth/approle/login", &secrets).err().unwrap();
        assert_eq!(
            error,
            ProviderError::Auth(
                "Error making API request.\n\nURL: POST http://v/v1/auth/approle/login\nCode: 400. Errors:\n\n* invalid secret id [REDACTED]"
                    .to_owned()
            )
        );
    }

    #[test]
    fn errors_have_a_kind() {
        let kind = |status, path: &str| ok(answer(status, "{}"), "http://v", "GET", path, &[]).err();
        assert!(matches!(kind(403, "kv/data/a"), Some(ProviderError::Auth(_))));
        assert!(matches!(kind(400, "kv/data/a"), Some(ProviderError::Config(_))));
        assert!(matches!(kind(503, "kv/data/a"), Some(ProviderError::Retryable(_))));
        assert!(kind(200, "kv/data/a").is_none());
    }

    #[test]
    fn a_key_cannot_leave_its_path() {
        let cases = [
            ("kv/data/a b", "kv/data/a%20b"),
            ("kv/data/../../sys/seal", "kv/data/%2E%2E/%2E%2E/sys/seal"),
            ("kv/data/a?x=1#y", "kv/data/a%3Fx%3D1%23y"),
            ("kv/metadata/", "kv/metadata/"),
        ];
        for (path, expected) in cases {
            assert_eq!(escape_path(path), expected);
        }
    }
}
