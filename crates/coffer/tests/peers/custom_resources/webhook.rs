//! A conversion webhook of this test's own: HTTP/1.1 over TLS, one thread for each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use base64::Engine as _;
use coffer_sim::peers::Pki;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tempfile::TempDir;

type Convert = fn(&str, Vec<Value>) -> Result<Vec<Value>, String>;

/// A webhook; it serves as long as the process lives.
pub(super) struct Webhook {
    pki: Pki,
    _directory: TempDir,
    port: u16,
}

impl Webhook {
    pub(super) fn start(convert: Convert) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let pki = Pki::create(directory.path());
        let chain = CertificateDer::from_pem_file(pki.path("apiserver.crt")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(pki.path("apiserver.key")).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .expect("a configuration");
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                std::thread::spawn(move || serve(stream, config, convert));
            }
        });
        Self { pki, _directory: directory, port }
    }

    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/convert", self.port)
    }

    /// `caBundle`.
    pub(super) fn bundle(&self) -> String {
        let pem = std::fs::read(self.pki.path("ca.crt")).expect("a certificate");
        base64::engine::general_purpose::STANDARD.encode(pem)
    }
}

/// Answers requests until the connection ends.
fn serve(stream: TcpStream, config: Arc<rustls::ServerConfig>, convert: Convert) {
    let connection = rustls::ServerConnection::new(config).expect("a connection");
    let mut reader = BufReader::new(rustls::StreamOwned::new(connection, stream));
    loop {
        let mut length = 0;
        let mut lines = 0;
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            lines += 1;
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line.is_empty() && lines > 1 {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let answer = answer(&serde_json::from_slice(&body).expect("a review"), convert).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let stream = reader.get_mut();
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes())).is_err() {
            return;
        }
        if stream.flush().is_err() {
            return;
        }
    }
}

fn answer(review: &Value, convert: Convert) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().expect("a version");
    let objects = request["objects"].as_array().expect("objects").clone();
    let uid = &request["uid"];
    let response = match convert(desired, objects) {
        Ok(objects) => json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}),
        Err(message) => json!({"uid": uid, "result": {"status": "Failure", "message": message}}),
    };
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}
