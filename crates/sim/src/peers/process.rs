//! A child process that ends with the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a peer may take until it is ready, on a busy machine.
const READY: Duration = Duration::from_secs(120);
/// How long a peer may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// A running peer. Dropping it ends it.
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with its output in `directory/NAME.log`.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(name: &str, command: &mut Command, directory: &Path) -> Self {
        let log = directory.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log).expect("a log file");
        let errors = output.try_clone().expect("a second handle");
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        Self { child, name: name.to_owned(), log }
    }

    /// Waits until `ready` says so.
    ///
    /// # Panics
    /// With the end of the log, when the process ends first or the time is over.
    pub fn wait_until(&mut self, mut ready: impl FnMut() -> bool) {
        let started = Instant::now();
        while !ready() {
            let ended = self.child.try_wait().expect("the child can be asked");
            if ended.is_some() || started.elapsed() > READY {
                panic!("{} is not ready ({ended:?}):\n{}", self.name, self.log_end());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything that it printed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills it at once, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end and waits; kills it when it does not.
    pub fn terminate(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let id = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let started = Instant::now();
        while started.elapsed() < GRACE {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.kill();
    }

    fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.terminate();
    }
}
