//! Carries a Kubernetes Secret through its whole life: the command line.

mod cli;
mod client;
mod cmd;
mod control_plane;
mod exit;
mod print;
mod signals;
mod trace;
mod vault;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use cli::Cli;
use exit::Failure;

fn main() -> ExitCode {
    // clap ends the process itself: with 0 after --help, with 2 on wrong usage.
    let cli = Cli::parse();
    start_logging(cli.global.verbose);
    // The one provider of TLS and crypto in this process; a second call would only fail.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&Failure::problem(format!("cannot start: {error}"))),
    };
    match runtime.block_on(cmd::run(cli)) {
        Ok(exit) => exit.into(),
        Err(failure) => report(&failure),
    }
}

/// Log lines go to standard error; `COFFER_LOG` overrides the level, module by module.
fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("COFFER_LOG").unwrap_or_else(|_| {
        // Libraries below log request paths and the like: only when asked for module by module.
        tracing_subscriber::EnvFilter::new(format!("warn,{}", own_crates(level)))
    });
    let bodies = tracing_subscriber::filter::filter_fn(|metadata| !prints_bodies(metadata.target()));
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(std::io::stderr)
        .with_target(false);
    tracing_subscriber::registry().with(lines.with_filter(filter).with_filter(bodies)).init();
}

/// Whether a library's module is known to print what it sends or receives. Such a module is
/// silent at every level, whatever `COFFER_LOG` says: a body may be a Secret.
fn prints_bodies(target: &str) -> bool {
    // The HTTP client of Kubernetes prints a whole answer that it cannot decode as a warning.
    target.starts_with("kube_client")
}

fn own_crates(level: &str) -> String {
    ["", "_server", "_store", "_operator", "_providers", "_node", "_runtime", "_config"]
        .map(|name| format!("coffer{name}={level}"))
        .join(",")
}

fn report(failure: &Failure) -> ExitCode {
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(std::io::stderr(), "coffer: {failure}");
    failure.exit.into()
}

/// Writes to standard output; a reader that has gone away is no failure.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::problem(format!("cannot write the output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Tells the user something that is not the command's output.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
