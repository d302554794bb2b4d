//! A directory with everything that a transcript may name, and the program to run in it.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use coffer_sim::peers::{Pki, Process, free_port};
use tempfile::TempDir;

/// No command of a transcript takes longer, on a busy machine either.
const LIMIT: Duration = Duration::from_secs(20);

/// What a command did.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The directory, a port that is in use, a port where nothing listens, and a data directory in use.
pub(crate) struct Fixture {
    /// Ends before its directory goes.
    holder: Option<Process>,
    directory: TempDir,
    listener: TcpListener,
    free: u16,
}

/// The program in `directory`, with nothing of the user's environment.
pub(crate) fn coffer(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coffer"));
    command
        .env_clear()
        .env("HOME", directory)
        .env("TMPDIR", directory)
        .env("COFFER_LOG", "off")
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = directory.path();
        drop(Pki::create(&at.join("pki")));
        let free = free_port();
        for (name, content) in [
            ("file", "text\n"),
            ("empty.token", "\n"),
            ("token", "root\n"),
            ("full/file", "text\n"),
            ("bad.kubeconfig", "{\n"),
            ("tokens.csv", "t,u\n"),
        ] {
            let path = at.join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, content).expect("written");
        }
        let good = std::fs::read_to_string(kubeconfig(at, free)).expect("written");
        std::fs::write(at.join("down.kubeconfig"), good).expect("written");
        Self { directory, listener, free, holder: None }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Starts a coffer on `held`.
    fn hold(&mut self) {
        if self.holder.is_some() {
            return;
        }
        let mut command = coffer(self.path());
        command.args(["up", "--data-dir", "held", "--listen", "127.0.0.1:0"]);
        let mut process = Process::start("holder", &mut command, self.path());
        process.wait_until(|| self.path().join("held/store").exists());
        let log = self.path().join("holder.log");
        process.wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("is up")));
        self.holder = Some(process);
    }

    /// Runs `line`, which starts with `coffer`. `GOOD` stands for every flag that `apiserver`
    /// needs, but those that the line names itself.
    pub(crate) fn run(&mut self, line: &str) -> Ran {
        if line.contains("held") {
            self.hold();
        }
        let mut arguments = Vec::new();
        for word in line.split(' ').skip(1) {
            match word {
                "GOOD" => arguments.extend(good_flags().filter(|flag| {
                    let name = flag.split('=').next().expect("a name");
                    let replaced = name == "--data-dir" && line.contains("--etcd-servers");
                    !(replaced || line.contains(name))
                })),
                "''" => arguments.push(String::new()),
                word => arguments.push(word.to_owned()),
            }
        }
        let taken = self.listener.local_addr().expect("bound").port().to_string();
        let arguments = arguments.iter().map(|word| {
            word.replace("DIR", &self.path().display().to_string())
                .replace("TAKEN", &taken)
                .replace("FREE", &self.free.to_string())
        });
        let ran = run(coffer(self.path()).args(arguments), line);
        let plain = |text: String| {
            let holder = self.holder.as_ref().map(|holder| format!("process {}", holder.id()));
            text.replace(&self.path().display().to_string(), "DIR")
                .replace(&format!(":{taken}"), ":TAKEN")
                .replace(&format!(":{}", self.free), ":FREE")
                .replace(&holder.unwrap_or_else(|| "process -".to_owned()), "process PID")
        };
        let plain = |text: String| {
            // What is chosen at random.
            let text = plain(text);
            let text =
                regex("coffer-demo-[0-9a-f]{16}").replace_all(&text, "coffer-demo-RANDOM").into_owned();
            regex("(API server  https://127.0.0.1):[0-9]+").replace_all(&text, "$1:PORT").into_owned()
        };
        Ran { code: ran.code, stdout: plain(ran.stdout), stderr: plain(ran.stderr) }
    }
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command, what: &str) -> Ran {
    let mut child = command.spawn().expect("coffer starts");
    let started = Instant::now();
    while child.try_wait().expect("the child can be asked").is_none() {
        if started.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("{what}: still runs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("it has ended");
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn regex(pattern: &str) -> regex::Regex {
    regex::Regex::new(pattern).expect("a pattern")
}

fn kubeconfig(at: &Path, port: u16) -> std::path::PathBuf {
    let pki = Pki::create(&at.join("other-pki"));
    pki.kubeconfig("admin", &format!("https://127.0.0.1:{port}"))
}

fn good_flags() -> impl Iterator<Item = String> {
    [
        "--data-dir=fresh",
        "--client-ca-file=pki/ca.crt",
        "--tls-cert-file=pki/apiserver.crt",
        "--tls-private-key-file=pki/apiserver.key",
        "--service-account-issuer=https://issuer",
        "--service-account-signing-key-file=pki/sa.key",
        "--service-account-key-file=pki/sa.pub",
        "--bind-address=127.0.0.1",
        "--secure-port=0",
    ]
    .into_iter()
    .map(str::to_owned)
}
