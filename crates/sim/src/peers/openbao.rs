//! OpenBao in development mode: an external store that speaks Vault's API.

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Answer, Process, free_port, program, request};

/// A running OpenBao with KV version 2 at `secret/`.
pub struct OpenBao {
    process: Process,
    _directory: TempDir,
    url: String,
}

impl OpenBao {
    /// The root token of the development server.
    pub const TOKEN: &'static str = "root";

    /// Starts one and waits until it is unsealed.
    ///
    /// # Panics
    /// When it is not installed or does not start.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let address = format!("127.0.0.1:{}", free_port());
        let url = format!("http://{address}");
        let mut command = Command::new(program("bao"));
        command
            // The development server writes its token to the home directory.
            .env("HOME", directory.path())
            .args(["server", "-dev"])
            .arg(format!("-dev-root-token-id={}", Self::TOKEN))
            .arg(format!("-dev-listen-address={address}"));
        let mut process = Process::start("openbao", &mut command, directory.path());
        process.wait_until(|| {
            request(&url, "GET", "/v1/sys/health", &[], "").is_some_and(|answer| answer.status == 200)
        });
        Self { process, _directory: directory, url }
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Kills it at once: nobody answers from then on.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// A new token with all rights, with the text that the caller wants.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn token(&self, id: &str) {
        let wanted = json!({"id": id, "policies": ["root"]});
        let answer = self.call("POST", "/v1/auth/token/create", &wanted);
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// Writes a new version of `secret/PATH`.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn write(&self, path: &str, data: Value) {
        let answer = self.call("POST", &format!("/v1/secret/data/{path}"), &json!({"data": data}));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// Calls its API with the root token.
    ///
    /// # Panics
    /// When nobody answers.
    pub fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("X-Vault-Token", Self::TOKEN), ("Content-Type", "application/json")];
        request(&self.url, method, path, &headers, &body.to_string()).expect("OpenBao answers")
    }
}
