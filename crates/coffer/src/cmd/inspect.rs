//! `coffer inspect`: one stored value explained.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use coffer_keys::inspect::{Explained, Stored, explain, reveal};
use coffer_runtime::api::percent_encode;
use coffer_runtime::random::SystemRandom;
use coffer_store::kv::{Kv, RangeRequest};
use coffer_store::snapshot::Snapshot;
use coffer_types::SecretBytes;
use coffer_types::random::Random;

use super::stored::{self, Place};
use crate::cli::{Global, Inspect, Output};
use crate::client::Server;
use crate::control_plane::encryption;
use crate::control_plane::stored::INSPECT;
use crate::exit::{Exit, Failure};
use crate::print::{self, Paint, inspect};
use crate::{put, put_secret};

/// A value above etcd's own limit on requests is a mistake in the file's name.
const LARGEST_VALUE: u64 = 64 << 20;

/// Prints what is known of a value; 1 when the keys that are held do not open it.
pub(crate) async fn run(global: &Global, flags: &Inspect) -> Result<Exit, Failure> {
    let etcd_key = flags.key.clone().unwrap_or_default();
    let value = match &flags.file {
        Some(file) => from_file(file)?,
        None if etcd_key.is_empty() => {
            return Err(Failure::usage("no key is named")
                .next("name one: coffer inspect /registry/secrets/NAMESPACE/NAME --etcd-servers URL"));
        }
        None => match &flags.store.snapshot {
            Some(file) => from_snapshot(file, &etcd_key).await?,
            None => match stored::open(global, &flags.store).await? {
                Place::Store(kv) => from_store(&*kv, &etcd_key).await?,
                Place::Server(server) => {
                    let explained = from_server(&server, flags, &etcd_key).await?;
                    return show(global, &explained);
                }
            },
        },
    };
    let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
    let transformers = encryption::readers(flags.config.as_deref(), &random).await?;
    let prefix = &flags.store.etcd.etcd_prefix;
    let value = Stored { etcd_key: &etcd_key, value: &value, prefix, transformers: transformers.as_ref() };
    let (explained, plain) =
        explain(&value).map_err(|error| Failure::usage(format!("--etcd-prefix: {error}")))?;
    if flags.reveal && explained.readable() {
        let Some(plain) = plain else {
            return Err(Failure::usage("the value is encrypted, and no key is at hand")
                .next("name the EncryptionConfiguration with its keys: --config FILE"));
        };
        // What is no object is given as it is.
        put_secret(&reveal(&plain).unwrap_or(plain))?;
        return Ok(Exit::Done);
    }
    show(global, &explained)
}

fn show(global: &Global, explained: &Explained) -> Result<Exit, Failure> {
    let text = match global.output {
        Output::Table => inspect::render(explained, Paint::new(global.color)),
        Output::Json | Output::Yaml => print::document(explained, global.output)?,
        Output::Name => format!("{}\n", explained.etcd_key),
    };
    put(&text)?;
    Ok(if explained.readable() { Exit::Done } else { Exit::Problem })
}

fn from_file(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut value = Vec::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().take(LARGEST_VALUE).read_to_end(&mut value)
    } else {
        std::fs::File::open(file).and_then(|opened| opened.take(LARGEST_VALUE).read_to_end(&mut value))
    };
    read.map_err(|error| {
        Failure::unreachable(format!("cannot read {}: {error}", file.display()))
            .next("name a file with the raw value, or - for standard input")
    })?;
    Ok(value)
}

fn missing(etcd_key: &str) -> Failure {
    Failure::unreachable(format!("{etcd_key} is not in the store"))
        .next("list what is there with: coffer audit, or: etcdctl get --prefix --keys-only /registry/")
}

async fn from_store(kv: &dyn Kv, etcd_key: &str) -> Result<Vec<u8>, Failure> {
    let request = RangeRequest { start: Bytes::from(etcd_key.to_owned()), ..RangeRequest::default() };
    let found = kv.range(request).await;
    let found = found.map_err(|error| Failure::unreachable(format!("the store did not answer: {error}")))?;
    found.items.into_iter().next().map(|item| item.value.to_vec()).ok_or_else(|| missing(etcd_key))
}

async fn from_server(server: &Server, flags: &Inspect, etcd_key: &str) -> Result<Explained, Failure> {
    stored::refuse_keys(flags.config.as_deref())?;
    if flags.reveal {
        return Err(Failure::usage("a running server tells about values and shows none")
            .next("ask it for the object: kubectl get secret NAME -o yaml, or end the server first"));
    }
    let mut path = format!("{INSPECT}?key=");
    percent_encode(etcd_key, &mut path);
    let found: Option<Explained> = stored::ask(server, &path).await?;
    found.ok_or_else(|| missing(etcd_key))
}

async fn from_snapshot(file: &Path, etcd_key: &str) -> Result<Vec<u8>, Failure> {
    let (file, wanted) = (file.to_owned(), etcd_key.to_owned());
    let found = tokio::task::spawn_blocking(move || newest_in(&file, wanted.as_bytes())).await;
    found.map_err(|_| Failure::problem("reading stopped"))??.ok_or_else(|| missing(etcd_key))
}

/// The value of a key's newest record, unless that is its deletion. The whole file is read: its tree is in the
/// order of revisions, and nothing in it says at which ones a key was written.
fn newest_in(file: &Path, wanted: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    let named = |error: &dyn std::fmt::Display| stored::bad_snapshot(file, error);
    let opened = std::fs::File::open(file).map_err(|error| named(&error))?;
    let snapshot = Snapshot::open(opened).map_err(|error| named(&error))?;
    let mut newest: Option<((i64, i64), Option<SecretBytes>)> = None;
    let mut visit = |record: coffer_store::snapshot::Record<'_>| {
        let at = (record.revision, record.sub);
        if record.key == wanted && newest.as_ref().is_none_or(|(seen, _)| *seen < at) {
            newest = Some((at, (!record.deleted).then(|| SecretBytes::new(record.value.to_vec()))));
        }
    };
    snapshot.records(&mut visit, &mut |_| {}).map_err(|error| named(&error))?;
    Ok(newest.and_then(|(_, value)| value).map(|value| value.expose().to_vec()))
}
