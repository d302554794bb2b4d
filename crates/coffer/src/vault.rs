//! The demo's writer: one version of one secret into an OpenBao or Vault.

use std::sync::Arc;

use coffer_providers::https::{Https, Tls};
use coffer_runtime::clock::SystemClock;
use coffer_types::SecretBytes;
use http::Request;
use serde_json::{Value, json};

use crate::exit::Failure;

/// A server and a token for it.
pub(crate) struct Vault {
    address: String,
    token: SecretBytes,
    https: Https,
}

impl Vault {
    /// For `address`, an `http` or `https` URL.
    pub(crate) fn new(address: &str, token: SecretBytes) -> Result<Self, Failure> {
        if !address.starts_with("http://") && !address.starts_with("https://") {
            return Err(Failure::usage(format!("--vault-addr {address:?} is not a URL"))
                .next("write it as http://HOST:PORT or https://HOST:PORT"));
        }
        let https = Https::new(Tls::default(), Arc::new(SystemClock::new())).map_err(Failure::problem)?;
        Ok(Self { address: address.trim_end_matches('/').to_owned(), token, https })
    }

    /// The address.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The token, for the Secret that the operator reads it from.
    pub(crate) fn token(&self) -> &SecretBytes {
        &self.token
    }

    /// Writes a new version of `secret/PATH` (KV version 2).
    pub(crate) async fn write(&self, path: &str, data: &Value) -> Result<(), Failure> {
        let request = Request::post(format!("{}/v1/secret/data/{path}", self.address))
            .header("X-Vault-Token", self.token.expose())
            .header("Content-Type", "application/json")
            .body(json!({"data": data}).to_string().into_bytes())
            .map_err(|_| {
                Failure::usage("the token or --vault-addr holds characters that a request cannot carry")
            })?;
        let answer = self.https.send(request).await.map_err(|error| {
            Failure::unreachable(format!("cannot write to {}: {error}", self.address))
                .next("start OpenBao or Vault there, or run the demo without --vault-addr")
        })?;
        match answer.status {
            200 | 204 => Ok(()),
            403 => Err(Failure::problem(format!("{} refused the token", self.address))
                .next("the token must be allowed to write secret/coffer-demo/*")),
            404 => Err(Failure::problem(format!("{} has no KV version 2 engine at secret/", self.address))
                .next("enable it with: bao secrets enable -path=secret -version=2 kv")),
            status => Err(Failure::problem(format!("{} answered {status}", self.address))),
        }
    }
}
