//! A webhook of these tests' own: HTTP/1.1 over TLS, one thread for each connection. It can be told to
//! lie, to hang, to flood and to send its caller elsewhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use coffer_sim::peers::Pki;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What converts objects.
type Convert = fn(&str, Vec<Value>) -> Result<Vec<Value>, String>;

/// What answers a call of a path.
type Answer = dyn Fn(&str, Value) -> Reply + Send + Sync;

/// What is answered.
pub(crate) enum Reply {
    /// 200 with JSON.
    Json(Value),
    /// Anything: code and reason, more headers, and a body.
    Raw(&'static str, &'static str, Vec<u8>),
    /// Nothing, for longer than anybody waits.
    Hang,
    /// The beginning of an answer, and nothing more.
    HangInside,
    /// The connection is closed.
    Close,
    /// An answer without an end.
    Flood,
}

/// A webhook; it serves as long as the process lives.
pub(crate) struct Webhook {
    pki: Pki,
    _directory: TempDir,
    port: u16,
}

impl Webhook {
    /// One that converts.
    pub(crate) fn converting(convert: Convert) -> Self {
        Self::start(move |_, review| Reply::Json(conversion(&review, convert)))
    }

    /// One that answers in any way.
    pub(crate) fn start(answer: impl Fn(&str, Value) -> Reply + Send + Sync + 'static) -> Self {
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
        let answer: Arc<Answer> = Arc::new(answer);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, answer) = (Arc::clone(&config), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, config, &*answer));
            }
        });
        Self { pki, _directory: directory, port }
    }

    /// Where a path is.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// `caBundle`.
    pub(crate) fn bundle(&self) -> String {
        let pem = std::fs::read(self.pki.path("ca.crt")).expect("a certificate");
        base64::engine::general_purpose::STANDARD.encode(pem)
    }
}

type Stream = rustls::StreamOwned<rustls::ServerConnection, TcpStream>;

/// Answers requests until the connection ends.
fn serve(stream: TcpStream, config: Arc<rustls::ServerConfig>, answer: &Answer) {
    let connection = rustls::ServerConnection::new(config).expect("a connection");
    let mut reader = BufReader::new(rustls::StreamOwned::new(connection, stream));
    loop {
        let mut length = 0;
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = line.trim_end().to_owned();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line.is_empty() && !head.is_empty() {
                break;
            }
            head.push(line);
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let path = head[0].split_ascii_whitespace().nth(1).unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        // A redirect is followed without the body.
        let body = serde_json::from_slice(&body).unwrap_or_default();
        if send(reader.get_mut(), answer(path, body)).is_none() {
            return;
        }
    }
}

/// `None` when the connection is not used any more.
fn send(stream: &mut Stream, reply: Reply) -> Option<()> {
    let (code, headers, body) = match reply {
        Reply::Json(body) => ("200 OK", "content-type: application/json\r\n", body.to_string().into_bytes()),
        Reply::Raw(code, headers, body) => (code, headers, body),
        Reply::Hang => {
            std::thread::sleep(PATIENCE);
            return None;
        }
        Reply::HangInside => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{").ok()?;
            stream.flush().ok()?;
            std::thread::sleep(PATIENCE);
            return None;
        }
        Reply::Close => return None,
        Reply::Flood => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").ok()?;
            let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
            loop {
                stream.write_all(chunk.as_bytes()).and_then(|()| stream.flush()).ok()?;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    };
    let head = format!("HTTP/1.1 {code}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).ok()?;
    stream.flush().ok()
}

/// Longer than any webhook may take.
const PATIENCE: Duration = Duration::from_secs(35);

fn conversion(review: &Value, convert: Convert) -> Value {
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
