//! A directory with everything that a transcript may name, and the program to run in it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use coffer_sim::peers::{Output, Pki, Process, free_port, run};
use tempfile::TempDir;

/// The directory, a port that is in use, a port where nothing listens, and a data directory in use.
pub(crate) struct Fixture {
    /// Ends before its directory goes.
    holder: Option<Process>,
    directory: TempDir,
    pki: Pki,
    listener: TcpListener,
    free: u16,
}

/// The program in `directory`, with nothing of the user's environment.
pub(crate) fn coffer(directory: &Path) -> Command {
    coffer_at(Path::new(env!("CARGO_BIN_EXE_coffer")), directory)
}

fn coffer_at(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", directory)
        .env("TMPDIR", directory)
        .env("COFFER_LOG", "off")
        .current_dir(directory);
    command
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = directory.path();
        let pki = Pki::create(&at.join("pki"));
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
        let down = pki.kubeconfig("admin", &format!("https://127.0.0.1:{free}"));
        std::fs::copy(down, at.join("down.kubeconfig")).expect("copied");
        Self { directory, pki, listener, free, holder: None }
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

    /// The program as a user who may not write to `unwritable`. Root may write everywhere, so there the
    /// program runs as somebody else, from a place where that user may read it.
    fn powerless(&self) -> Command {
        let unwritable = self.path().join("unwritable");
        if !unwritable.exists() {
            std::fs::create_dir(&unwritable).expect("made");
            let mode = |path: &Path, mode| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
            };
            std::fs::copy(env!("CARGO_BIN_EXE_coffer"), self.path().join("coffer")).expect("copied");
            mode(self.path(), 0o755);
            mode(&unwritable, 0o555);
            // Reading what the flags of `apiserver` name is not what is forbidden.
            for entry in std::fs::read_dir(self.path().join("pki")).expect("a directory") {
                mode(&entry.expect("an entry").path(), 0o644);
            }
        }
        let mut command = coffer_at(&self.path().join("coffer"), self.path());
        if rustix::process::geteuid().is_root() {
            const NOBODY: u32 = 65_534;
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Runs `line`, which starts with `coffer`. `GOOD` stands for every flag that `apiserver`
    /// needs, but those that the line names itself.
    pub(crate) fn run(&mut self, line: &str) -> Output {
        if line.contains("held") {
            self.hold();
        }
        let mut arguments = Vec::new();
        for word in line.split(' ').skip(1) {
            match word {
                "GOOD" => arguments.extend(good_flags(&self.pki).into_iter().filter(|flag| {
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
        let mut program = if line.contains("unwritable") { self.powerless() } else { coffer(self.path()) };
        let ran = run(program.args(arguments));
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
        Output { code: ran.code, stdout: plain(ran.stdout), stderr: plain(ran.stderr) }
    }
}

fn regex(pattern: &str) -> regex::Regex {
    regex::Regex::new(pattern).expect("a pattern")
}

/// Flags with which `apiserver` starts.
fn good_flags(pki: &Pki) -> Vec<String> {
    let mut flags = pki.server_flags();
    flags.extend(["--data-dir=fresh", "--bind-address=127.0.0.1", "--secure-port=0"].map(str::to_owned));
    flags
}
