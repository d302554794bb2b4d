//! `coffer keys migrate`.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use coffer_keys::migrate::{Client, NoSuchResource, Options, Progress, Stopped, run as migrate};
use coffer_runtime::clock::SystemClock;

use crate::cli::{Global, Migrate, Output};
use crate::exit::{Exit, Failure};
use crate::print::progress::Progress as Bar;
use crate::print::{self, columns};
use crate::signals::Signals;
use crate::{client, put};

/// Rewrites, and prints what became of it; 1 when an object could not be rewritten.
pub(super) async fn run(global: &Global, flags: &Migrate) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let server = client::connect(global).await?;
    let objects =
        Client::new(server.client.clone(), &flags.resources).await.map_err(|error| match &error {
            NoSuchResource::Unknown(_) => Failure::usage(&error).next(
                "name resources as: secrets configmaps deployments.apps; kubectl api-resources lists them",
            ),
            NoSuchResource::Discovery(_) => Failure::unreachable(format!("{}: {error}", server.url))
                .next("name a server that runs with --kubeconfig and --context"),
        })?;
    let mut progress = match &flags.checkpoint {
        Some(file) => resumed(file, &server.url, flags)?,
        None => Progress::new(&server.url, &flags.resources, flags.dry_run),
    };
    let options = Options { rate: flags.rate, clock: Arc::new(SystemClock::new()) };
    let mut bar = Bar::items("rewriting");
    let mut keep = |progress: &Progress| {
        bar.show(progress.done(), progress.done() + progress.remaining());
        flags.checkpoint.as_deref().map_or(Ok(()), |file| save(file, progress))
    };
    let ended = tokio::select! {
        ended = migrate(&objects, &mut progress, &options, &mut keep) => Some(ended),
        () = signals.asked_to_end() => None,
    };
    drop(bar);
    put(&shown(&progress, global)?)?;
    match ended {
        None => Err(Failure::problem("stopped before the end").next(go_on(flags))),
        Some(Err(error @ Stopped::List { .. })) => Err(Failure::unreachable(error).next(go_on(flags))),
        Some(Err(error)) => Err(Failure::problem(error).next(go_on(flags))),
        Some(Ok(())) => {
            if let Some(file) = flags.checkpoint.as_deref() {
                remove(file)?;
            }
            Ok(if progress.failed() == 0 { Exit::Done } else { Exit::Problem })
        }
    }
}

fn go_on(flags: &Migrate) -> String {
    match &flags.checkpoint {
        Some(_) => "type the same again to go on from there".to_owned(),
        None => "type the same again; what is rewritten already costs one request each. With --checkpoint \
                 FILE it goes on where it stopped"
            .to_owned(),
    }
}

/// What an earlier run left, or a new beginning.
fn resumed(file: &Path, server: &str, flags: &Migrate) -> Result<Progress, Failure> {
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Progress::new(server, &flags.resources, flags.dry_run));
        }
        Err(error) => {
            return Err(Failure::unreachable(format!("cannot read {}: {error}", file.display()))
                .next("name a file that this user may read and write with --checkpoint"));
        }
    };
    let other = |what: &str| {
        Failure::usage(format!("{} {what}", file.display()))
            .next("name another file with --checkpoint, or remove this one to begin anew")
    };
    let progress: Progress = serde_json::from_slice(&text).map_err(|_| other("is no checkpoint"))?;
    match progress.belongs_to(server, &flags.resources, flags.dry_run) {
        true => Ok(progress),
        false => Err(other("is the checkpoint of another run: other resources, or another server")),
    }
}

/// Written beside its place and renamed: a crash leaves the old one or the new one.
fn save(file: &Path, progress: &Progress) -> io::Result<()> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut temporary = file.as_os_str().to_owned();
    temporary.push(".new");
    let mut new = std::fs::File::create(&temporary)?;
    new.write_all(&serde_json::to_vec_pretty(progress)?)?;
    new.sync_all()?;
    std::fs::rename(&temporary, file)?;
    std::fs::File::open(directory)?.sync_all()
}

fn remove(file: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::problem(format!("done, but cannot remove {}: {error}", file.display())))
        }
        _ => Ok(()),
    }
}

fn shown(progress: &Progress, global: &Global) -> Result<String, Failure> {
    match global.output {
        Output::Table => Ok(table(progress)),
        Output::Json | Output::Yaml => print::document(progress, global.output),
        Output::Name => Ok(progress
            .resources
            .iter()
            .flat_map(|of| of.failed.iter().map(move |failed| format!("{}/{}\n", of.resource, failed.name)))
            .collect()),
    }
}

fn table(progress: &Progress) -> String {
    let head = ["RESOURCE", "DONE", "REWRITTEN", "GONE", "FAILED", "STATE"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut failures = Vec::new();
    for of in &progress.resources {
        let state = match (of.finished, progress.dry_run) {
            (true, true) => "nothing was written",
            (true, false) => "finished",
            (false, _) => "not finished",
        };
        let counts = [of.done, of.rewritten, of.gone, of.failed.len() as u64].map(|count| count.to_string());
        rows.push([vec![of.resource.clone()], counts.to_vec(), vec![state.to_owned()]].concat());
        failures.extend(
            of.failed
                .iter()
                .map(|failed| vec![format!("{}/{}", of.resource, failed.name), failed.reason.clone()]),
        );
    }
    let mut text = columns(&rows, "");
    if !failures.is_empty() {
        text.push_str("\nNot rewritten\n");
        text.push_str(&columns(&failures, "  "));
    }
    text
}
