//! `coffer audit`: what is stored, under which provider and key.

use std::fs::File;
use std::sync::Arc;

use coffer_keys::audit::snapshot::{self, HashCheck};
use coffer_keys::audit::{Auditor, Report, live};
use coffer_runtime::random::SystemRandom;
use coffer_store::kv::Kv;
use coffer_store::snapshot::Snapshot;
use coffer_types::random::Random;
use futures::{AsyncBufReadExt as _, StreamExt as _};

use super::stored::{self, Place};
use crate::cli::{Audit, Global, Output};
use crate::client::{self, Server};
use crate::control_plane::audit::{Line, PATH};
use crate::control_plane::encryption;
use crate::exit::{Exit, Failure};
use crate::print::progress::Progress;
use crate::print::{self, Paint, audit};
use crate::put;

/// Prints the report; 1 when something is not as it should be.
pub(crate) async fn run(global: &Global, flags: &Audit) -> Result<Exit, Failure> {
    let report = match &flags.store.snapshot {
        Some(file) => of_snapshot(file.clone(), auditor(flags).await?, flags.skip_hash_check).await?,
        None => match stored::open(global, &flags.store).await? {
            Place::Store(kv) => of_store(&*kv, &auditor(flags).await?).await?,
            Place::Server(server) => {
                stored::refuse_keys(flags.config.as_deref())?;
                of_server(&server).await?
            }
        },
    };
    let text = match global.output {
        Output::Table => audit::render(&report, Paint::new(global.color)),
        Output::Json | Output::Yaml => print::document(&report, global.output)?,
        Output::Name => {
            report.findings.iter().map(|found| format!("{}\n", found.etcd_key)).collect::<String>()
        }
    };
    put(&text)?;
    Ok(if report.clean { Exit::Done } else { Exit::Problem })
}

async fn auditor(flags: &Audit) -> Result<Auditor, Failure> {
    let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
    let transformers = encryption::readers(flags.config.as_deref(), &random).await?;
    Auditor::new(&flags.store.etcd.etcd_prefix, transformers)
        .map_err(|error| Failure::usage(format!("--etcd-prefix: {error}")))
}

/// Reading a large file takes seconds, so it has a thread of its own.
async fn of_snapshot(
    file: std::path::PathBuf,
    auditor: Auditor,
    skip_hash_check: bool,
) -> Result<Report, Failure> {
    let hash = if skip_hash_check { HashCheck::Skip } else { HashCheck::Check };
    let read = move || {
        let named = |error: &dyn std::fmt::Display| stored::bad_snapshot(&file, error);
        let opened = File::open(&file).map_err(|error| named(&error))?;
        let snapshot = Snapshot::open(opened).map_err(|error| named(&error))?;
        let mut progress = Progress::bytes("reading");
        snapshot::audit(&snapshot, &auditor, hash, &mut |done, total| progress.show(done, total))
            .map_err(|error| named(&error))
    };
    tokio::task::spawn_blocking(read).await.map_err(|_| Failure::problem("the audit stopped"))?
}

async fn of_store(kv: &dyn Kv, auditor: &Auditor) -> Result<Report, Failure> {
    let mut progress = Progress::items("reading");
    live::audit(kv, auditor, &mut |done, total| progress.show(done, total))
        .await
        .map_err(|error| Failure::unreachable(format!("the store did not answer: {error}")))
}

/// A running server audits its own store, and tells how far it is.
async fn of_server(server: &Server) -> Result<Report, Failure> {
    let Server { client, url } = server;
    let mut progress = Progress::items("reading");
    let request = http::Request::get(PATH).body(Vec::new()).map_err(Failure::usage)?;
    let answer = client.request_stream(request).await.map_err(|error| stored::not_told(server, &error))?;
    let mut lines = answer.lines();
    while let Some(line) = lines.next().await {
        let line = line.map_err(|error| client::unreachable(url, &kube::Error::ReadEvents(error)))?;
        match serde_json::from_str(&line).map_err(|_| stored::other_version(server))? {
            Line::Progress { done, total } => progress.show(done, total),
            Line::Report(report) => return Ok(report),
            Line::Failed(why) => return Err(Failure::unreachable(format!("{url}: {why}"))),
        }
    }
    Err(Failure::unreachable(format!("{url} ended before its audit did")).next("run it again"))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// What is made of the answer of a server.
    async fn told(head: &str, body: &str) -> Result<Report, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let answer = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}");
        let answering = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut request = [0; 4096];
            let read = stream.read(&mut request).await.expect("a request");
            assert!(request[..read].starts_with(b"GET /coffer/v1/audit HTTP/1.1\r\n"));
            stream.write_all(answer.as_bytes()).await.expect("sent");
        });
        let mut config = kube::Config::new(url.parse().expect("a URL"));
        config.default_retry = false;
        let server = Server::of(config).unwrap_or_else(|failure| panic!("{failure}"));
        let told = of_server(&server).await;
        answering.await.expect("no panic");
        told.map_err(|failure| {
            assert_eq!(failure.exit, Exit::Unreachable);
            failure.to_string().replace(&url, "URL")
        })
    }

    #[tokio::test]
    async fn a_servers_audit_is_followed_to_its_end() {
        const LINES: &str = "200 OK\r\ncontent-type: application/x-ndjson";
        let report =
            Report { revision: 7, opened: true, clean: true, copies: Vec::new(), findings: Vec::new() };
        let line = |line: &Line| serde_json::to_string(line).expect("JSON") + "\n";
        let progress = line(&Line::Progress { done: 1, total: 2 });
        let whole = format!("{progress}{progress}{}", line(&Line::Report(report.clone())));
        assert_eq!(told(LINES, &whole).await, Ok(report));
        let failed = line(&Line::Failed("the store has not answered for 60 s".to_owned()));
        for (head, body, expected) in [
            (LINES, format!("{progress}{failed}"), "URL: the store has not answered for 60 s"),
            (LINES, progress, "URL ended before its audit did\n  run it again"),
            (LINES, "{\"revision\":7}\n".to_owned(), "URL answers as another version of coffer does"),
            (
                "429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 5",
                serde_json::json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "an audit is running already", "reason": "TooManyRequests",
                    "details": {"retryAfterSeconds": 5}, "code": 429,
                })
                .to_string(),
                "URL refused: an audit is running already\n  run it again in 5 s",
            ),
        ] {
            assert_eq!(told(head, &body).await, Err(expected.to_owned()));
        }
    }
}
