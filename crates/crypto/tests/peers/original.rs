//! An original, asked over a pipe in lines of JSON; see `peers/go/transform` and `peers/go/apply`.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// The program, running.
pub(crate) struct Original {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Original {
    /// Starts `$COFFER_PEERS/bin/NAME`. A peer that is missing is a failure, never a skip.
    pub(crate) fn start(name: &str) -> Self {
        let peers = std::env::var_os("COFFER_PEERS")
            .expect("COFFER_PEERS must name the folder that peers/install.py filled");
        let program = PathBuf::from(peers).join("bin").join(name);
        let mut process =
            Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap_or_else(
                |error| panic!("{}: {error}; run peers/install.py {name}", program.display()),
            );
        let requests = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("was piped"));
        Self { process, requests, answers }
    }

    /// One request, one answer.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        let requests = self.requests.as_mut().expect("open until the end");
        writeln!(requests, "{request}").and_then(|()| requests.flush()).expect("the peer reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the peer answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?} for {request}"))
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        // It ends when there is nothing more to read.
        self.requests = None;
        let ended = self.process.wait();
        if !std::thread::panicking() {
            assert!(ended.expect("was started").success(), "the peer failed");
        }
    }
}
