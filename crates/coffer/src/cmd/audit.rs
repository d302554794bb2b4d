//! `coffer audit`: what is stored, under which provider and key.

use std::fs::File;
use std::sync::Arc;

use coffer_keys::audit::snapshot::{self, HashCheck};
use coffer_keys::audit::{Auditor, Report, live};
use coffer_runtime::random::SystemRandom;
use coffer_store::kv::Kv;
use coffer_store::snapshot::Snapshot;
use coffer_types::random::Random;

use super::stored::{self, Place};
use crate::cli::{Audit, Global, Output};
use crate::control_plane::encryption;
use crate::control_plane::stored::AUDIT;
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
                stored::ask(&server, AUDIT).await?
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
