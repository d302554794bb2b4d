//! OpenBao's or Vault's transit engine: keys that never leave it.
//!
//! The name of a key that stored values carry holds its version and when that was made, so
//! that `bao write -f transit/keys/KEY/rotate` is a rotation, and a key that was deleted and
//! made anew is another key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_keys::kms_plugin::{Backend, BackendError};
use coffer_providers::https::{Answer, Https, Tls};
use coffer_types::SecretBytes;
use coffer_types::time::Clock;
use http::{Method, Request};
use parking_lot::RwLock;
use serde_json::{Value, json};

use coffer_crypto::kms::{Annotations, KmsEncrypted};

use crate::exit::Failure;

/// What leads to a key.
pub(crate) struct TransitConfig {
    pub(crate) address: String,
    pub(crate) mount: String,
    pub(crate) key: String,
    pub(crate) namespace: Option<String>,
    pub(crate) token_file: PathBuf,
    /// PEM of the CA; the system's unless given.
    pub(crate) authority: Option<Vec<u8>>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The backend.
pub(crate) struct Transit {
    config: TransitConfig,
    https: Https,
    credential: RwLock<Credential>,
}

#[derive(Clone)]
struct Credential {
    token: SecretBytes,
    /// Whose the token is, as the server calls it; for errors.
    identity: String,
}

impl Transit {
    /// Reads the token; asks nobody yet.
    pub(crate) fn new(mut config: TransitConfig) -> Result<Self, Failure> {
        if !config.address.starts_with("http://") && !config.address.starts_with("https://") {
            return Err(Failure::usage(format!("--transit-address {:?} is not a URL", config.address))
                .next("write it as http://HOST:PORT or https://HOST:PORT"));
        }
        for (flag, name) in [("--transit-mount", &config.mount), ("--transit-key", &config.key)] {
            let usable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
            if name.is_empty() || !name.bytes().all(usable) || name.contains("..") {
                return Err(Failure::usage(format!("{flag} {name:?} is no name"))
                    .next("names are made of letters, digits, '-', '_', '.' and '/'"));
            }
        }
        config.address = config.address.trim_end_matches('/').to_owned();
        config.mount = config.mount.trim_matches('/').to_owned();
        let token = token(&config.token_file).map_err(|error| {
            Failure::unreachable(error)
                .next("name a file that is there and that this user may read with --transit-token-file")
        })?;
        let tls = Tls { authority: config.authority.take(), identity: None };
        let https = Https::new(tls, config.clock.clone()).map_err(Failure::problem)?;
        let identity = "unknown identity".to_owned();
        Ok(Self { config, https, credential: RwLock::new(Credential { token, identity }) })
    }

    /// Sends a request. When the token is refused its file is read again, and the request is sent
    /// once more: a token that was renewed outside needs no restart.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, BackendError> {
        let mut answer = self.send(method.clone(), path, body).await?;
        if answer.status == 403 {
            self.refresh().await?;
            answer = self.send(method, path, body).await?;
        }
        let place = format!("{}/v1/{path}", self.config.address);
        match answer.status {
            200 => serde_json::from_slice(answer.body.expose()).map_err(|_| {
                BackendError::Unavailable(format!("{place} answered with something else than JSON"))
            }),
            403 => Err(BackendError::Denied(format!(
                "{place} refused the token of {} ({})",
                self.credential.read().identity,
                self.config.token_file.display()
            ))),
            404 => Err(BackendError::NoSuchKey(format!("{place} does not exist"))),
            400 => Err(BackendError::Invalid(format!("{place} refused the request (400)"))),
            status => Err(BackendError::Unavailable(format!("{place} answered {status}"))),
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, BackendError> {
        let token = self.credential.read().token.clone();
        let place = format!("{}/v1/{path}", self.config.address);
        let mut request = Request::builder()
            .method(method)
            .uri(&place)
            .header("X-Vault-Token", token.expose())
            .header("X-Vault-Request", "true");
        if let Some(namespace) = &self.config.namespace {
            request = request.header("X-Vault-Namespace", namespace);
        }
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.header("Content-Type", "application/json").body(body).map_err(|_| {
            BackendError::Denied(
                "the token, the address or the namespace holds characters that no request can".to_owned(),
            )
        })?;
        let answered = self.https.send(request).await;
        answered.map_err(|error| BackendError::Unavailable(format!("{place} cannot be reached: {error}")))
    }

    /// Reads the token again, and finds out whose it is.
    async fn refresh(&self) -> Result<(), BackendError> {
        let token = token(&self.config.token_file).map_err(BackendError::Denied)?;
        self.credential.write().token = token;
        let looked_up = self.send(Method::GET, "auth/token/lookup-self", None).await?;
        let looked_up: Value = serde_json::from_slice(looked_up.body.expose()).unwrap_or_default();
        let data = &looked_up["data"];
        let identity = match (data["display_name"].as_str(), data["accessor"].as_str()) {
            (Some(name), Some(accessor)) => format!("{name:?}, accessor {accessor}"),
            _ => "nobody that the server knows".to_owned(),
        };
        self.credential.write().identity = identity;
        Ok(())
    }

    /// The newest version of the key, and the name of any version.
    async fn versions(&self) -> Result<(u64, Value), BackendError> {
        let path = format!("{}/keys/{}", self.config.mount, self.config.key);
        let found = self.ask(Method::GET, &path, None).await?;
        let newest = found["data"]["latest_version"].as_u64();
        let newest =
            newest.ok_or_else(|| BackendError::Unavailable(format!("{path} names no version of the key")))?;
        Ok((newest, found["data"]["keys"].clone()))
    }

    fn key_id(&self, version: u64, versions: &Value) -> String {
        // Seconds for symmetric keys, a description for others.
        let made = match &versions[version.to_string()] {
            Value::Number(seconds) => seconds.to_string(),
            described => described["creation_time"].as_str().unwrap_or("unknown").to_owned(),
        };
        format!("{}/{}/v{version}/{made}", self.config.mount, self.config.key)
    }

    fn text<'a>(&self, answer: &'a Value, field: &str) -> Result<&'a str, BackendError> {
        let text = answer["data"][field].as_str();
        text.ok_or_else(|| {
            BackendError::Unavailable(format!("{} answered without {field}", self.config.address))
        })
    }
}

/// The token in a file, without the white space around it.
fn token(file: &Path) -> Result<SecretBytes, String> {
    let shown = file.display();
    let bytes =
        std::fs::read(file).map(SecretBytes::new).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let token = bytes.expose().trim_ascii();
    if token.is_empty() {
        Err(format!("{shown} holds no token"))
    } else {
        Ok(SecretBytes::new(token.to_vec()))
    }
}

#[async_trait]
impl Backend for Transit {
    async fn current_key_id(&self) -> Result<String, BackendError> {
        let (newest, versions) = self.versions().await?;
        Ok(self.key_id(newest, &versions))
    }

    async fn encrypt(&self, plaintext: &SecretBytes) -> Result<KmsEncrypted, BackendError> {
        let path = format!("{}/encrypt/{}", self.config.mount, self.config.key);
        let body = json!({"plaintext": STANDARD.encode(plaintext.expose())});
        let answer = self.ask(Method::POST, &path, Some(&body)).await?;
        let ciphertext = self.text(&answer, "ciphertext")?;
        // `vault:v3:…`: the version that encrypted, whatever is the newest by now.
        let version =
            ciphertext.split(':').nth(1).and_then(|version| version.strip_prefix('v')?.parse().ok());
        let version =
            version.ok_or_else(|| BackendError::Unavailable(format!("{path} answered with no version")))?;
        let (_, versions) = self.versions().await?;
        Ok(KmsEncrypted {
            ciphertext: ciphertext.as_bytes().to_vec(),
            key_id: self.key_id(version, &versions),
            annotations: Annotations::new(),
        })
    }

    async fn decrypt(&self, encrypted: &KmsEncrypted) -> Result<SecretBytes, BackendError> {
        let ciphertext = std::str::from_utf8(&encrypted.ciphertext)
            .map_err(|_| BackendError::Invalid("the ciphertext is none of this backend".to_owned()))?;
        let path = format!("{}/decrypt/{}", self.config.mount, self.config.key);
        let answer = self.ask(Method::POST, &path, Some(&json!({"ciphertext": ciphertext}))).await?;
        let plaintext = STANDARD.decode(self.text(&answer, "plaintext")?).map(SecretBytes::new);
        plaintext.map_err(|_| BackendError::Unavailable(format!("{path} answered without base64")))
    }
}
