//! `coffer watch PATH… [-- COMMAND…]`: word of every change of a mounted Secret.
//!
//! A volume is flipped by a link beside its files, so that a watch of a file hears once that it went and then
//! nothing (field case N17). Here the links on the way are watched, and what counts is what is read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use coffer_runtime::clock::SystemClock;
use coffer_server::encryption::ConfigFile as _;
use coffer_types::SecretBytes;
use coffer_types::time::Clock as _;
use futures::future::select_all;

use crate::cli::Watch;
use crate::exit::{Exit, Failure};
use crate::signals::{self, Signals};
use crate::watched_file::WatchedFile;
use crate::{put, say};

/// The link that a volume is flipped by.
const DATA: &str = "..data";
/// How long a change may stay unseen that the system does not tell of.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Ends when it is asked to; 3 when a path is not there at the start or the command cannot be run.
pub(crate) async fn run(flags: &Watch) -> Result<Exit, Failure> {
    if let Some(program) = flags.command.first() {
        find(program)?;
    }
    let mut signals = Signals::listen()?;
    let clock = SystemClock::new();
    let mut watched = Vec::new();
    for path in &flags.paths {
        watched.push(Watched::new(path).await?);
    }
    say(&format!("coffer: watching {} until Ctrl-C", list(&flags.paths)));
    loop {
        let changed = select_all(watched.iter().map(|one| Box::pin(one.file.changed())));
        tokio::select! {
            () = signals.asked_to_end() => break,
            _ = changed => {}
            () = clock.sleep(LOOK_AGAIN) => {}
        }
        let mut changed = Vec::new();
        for one in &mut watched {
            if one.has_changed().await {
                changed.push(one.path.clone());
            }
        }
        match (changed.as_slice(), flags.command.as_slice()) {
            ([], _) => {}
            (changed, []) => {
                for path in changed {
                    put(&format!("{}\n", path.display()))?;
                }
            }
            // Several paths of one volume change together: that is one reason to run it.
            (_, [program, arguments @ ..]) => {
                if !execute(program, arguments, &mut signals).await? {
                    break;
                }
            }
        }
    }
    signals::ended();
    Ok(Exit::Done)
}

struct Watched {
    /// As it was named.
    path: PathBuf,
    file: WatchedFile,
    /// What was there when it was there last.
    seen: Seen,
}

/// What can change of a path.
#[derive(PartialEq, Eq)]
enum Seen {
    /// Where the link of a volume leads: to another directory with every change.
    Volume(PathBuf),
    /// What is in a file.
    File(Content),
}

/// Compared only.
struct Content(SecretBytes);

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose() == other.0.expose()
    }
}

impl Eq for Content {}

impl Watched {
    async fn new(path: &Path) -> Result<Self, Failure> {
        let cannot_read = |error: &str| {
            Failure::unreachable(format!("cannot read {}: {error}", path.display()))
                .next("name the directory of a mounted volume, or a file in one")
        };
        let is_directory = std::fs::metadata(path).map_err(|error| cannot_read(&error.to_string()))?.is_dir();
        let link = path.join(DATA);
        if is_directory && std::fs::read_link(&link).is_err() {
            return Err(Failure::usage(format!("{} is a directory and no mounted volume", path.display()))
                .next("name a volume, which has a link ..data, or a file"));
        }
        let file = WatchedFile::new(if is_directory { &link } else { path });
        let seen = look(&file, is_directory.then_some(link.as_path())).await;
        let seen = seen.map_err(|error| cannot_read(&error))?;
        Ok(Self { path: path.to_owned(), file, seen })
    }

    /// Whether something else is there than before. What is missing for a moment has not changed.
    async fn has_changed(&mut self) -> bool {
        let link = matches!(self.seen, Seen::Volume(_)).then(|| self.path.join(DATA));
        match look(&self.file, link.as_deref()).await {
            Ok(seen) if seen != self.seen => {
                self.seen = seen;
                true
            }
            Ok(_) | Err(_) => false,
        }
    }
}

/// What is there now; from here on what the path now leads through is watched.
async fn look(file: &WatchedFile, link: Option<&Path>) -> Result<Seen, String> {
    match link {
        None => file.read().await.map(|bytes| Seen::File(Content(bytes))),
        Some(link) => {
            file.watch();
            std::fs::read_link(link).map(Seen::Volume).map_err(|error| error.to_string())
        }
    }
}

/// A program that is not there is told at once, and not after the first change.
fn find(program: &OsString) -> Result<(), Failure> {
    let path = Path::new(program);
    // Without it, the system looks there.
    let places = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let found = match path.components().count() {
        1 => std::env::split_paths(&places).any(|place| place.join(path).is_file()),
        _ => path.is_file(),
    };
    if found {
        return Ok(());
    }
    let name = program.to_string_lossy();
    Err(Failure::unreachable(format!("cannot run {name}: there is no such program"))
        .next("name one after --, by its path or as it is found in $PATH"))
}

/// Runs the command to its end; that it fails is told and changes nothing. Whether to go on.
async fn execute(program: &OsString, arguments: &[OsString], signals: &mut Signals) -> Result<bool, Failure> {
    let name = program.to_string_lossy();
    let cannot_run = |error: std::io::Error| {
        Failure::unreachable(format!("cannot run {name}: {error}")).next("name a program after --")
    };
    let mut command = tokio::process::Command::new(program);
    let mut child = command.args(arguments).stdin(Stdio::null()).spawn().map_err(cannot_run)?;
    let mut goes_on = true;
    let status = tokio::select! {
        status = child.wait() => status,
        () = signals.asked_to_end() => {
            goes_on = false;
            child.wait().await
        }
    };
    let status = status.map_err(cannot_run)?;
    if !status.success() {
        say(&format!("coffer: {name} ended with {status}"));
    }
    Ok(goes_on)
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    shown.join(", ")
}
