//! Child processes: one that ends with the test, and one that is run to its end.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a peer may take until it is ready, on a busy machine.
const READY: Duration = Duration::from_secs(120);
/// How long a peer may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// How long anything else may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a program printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code; -1 after a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs a command to its end.
///
/// # Panics
/// When it cannot be started or does not end.
pub fn run(command: &mut Command) -> Output {
    let mut file = tempfile::tempfile().expect("a file");
    let output = run_into(command, file.try_clone().expect("a second handle"));
    Output { stdout: content(&mut file), ..output }
}

/// Runs a command to its end with its standard output going elsewhere.
///
/// # Panics
/// When it cannot be started or does not end.
pub fn run_into(command: &mut Command, stdout: impl Into<Stdio>) -> Output {
    // Files instead of pipes: much output does not hold the program up.
    let mut errors = tempfile::tempfile().expect("a file");
    let handle = errors.try_clone().expect("a second handle");
    let mut child =
        command.stdin(Stdio::null()).stdout(stdout).stderr(handle).spawn().expect("the program starts");
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be asked") {
            break status;
        }
        if started.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("{command:?} still runs:\n{}", content(&mut errors));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Output { code: status.code().unwrap_or(-1), stdout: String::new(), stderr: content(&mut errors) }
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("the file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Asks again until there is an answer.
///
/// # Panics
/// When there is none in time.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

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

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(id, signal);
    }

    /// Waits for its end and gives its exit code, -1 after a signal.
    ///
    /// # Panics
    /// When it does not end.
    pub fn wait(&mut self) -> i32 {
        let (child, name) = (&mut self.child, &self.name);
        let status = until(&format!("{name} to end"), || child.try_wait().expect("the child can be asked"));
        status.code().unwrap_or(-1)
    }

    /// Its exit code, once it has ended.
    ///
    /// # Panics
    /// When it cannot be asked.
    pub fn ended(&mut self) -> Option<i32> {
        let status = self.child.try_wait().expect("the child can be asked")?;
        Some(status.code().unwrap_or(-1))
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
        self.signal(rustix::process::Signal::TERM);
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
