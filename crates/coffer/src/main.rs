//! Carries a Kubernetes Secret through its whole life: the command line.

mod cli;
mod client;
mod cmd;
mod control_plane;
mod exit;
mod kms_plugin;
mod logging;
mod print;
mod signals;
mod trace;
mod vault;
mod watched_file;

use std::io::Write;
use std::process::ExitCode;

use exit::Failure;

/// Room of each thread's stack: rules in CEL may nest 250 deep, and each depth takes several calls.
const THREAD_STACK: usize = 16 * 1024 * 1024;

fn main() -> ExitCode {
    // clap ends the process itself: with 0 after --help, with 2 on wrong usage.
    let cli = cli::shared::parse();
    logging::start(cli.global.verbose);
    // The one provider of TLS and crypto in this process; a second call would only fail.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = match runtime.enable_all().thread_stack_size(THREAD_STACK).build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&Failure::problem(format!("cannot start: {error}"))),
    };
    match runtime.block_on(cmd::run(cli)) {
        Ok(exit) => exit.into(),
        Err(failure) => report(&failure),
    }
}

fn report(failure: &Failure) -> ExitCode {
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(std::io::stderr(), "coffer: {failure}");
    failure.exit.into()
}

/// Writes to standard output; a reader that has gone away is no failure.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    put_bytes(text.as_bytes())
}

/// Writes a secret to standard output, because the user asked for it.
pub(crate) fn put_secret(secret: &coffer_types::SecretBytes) -> Result<(), Failure> {
    put_bytes(secret.expose())
}

fn put_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
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
