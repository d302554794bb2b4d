//! `coffer completion` and `coffer man`.

use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use crate::put;

/// A completion script.
pub(crate) fn completion(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "coffer", &mut script);
    put(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// The manual page.
pub(crate) fn man() -> Result<Exit, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(|error| Failure::problem(format!("cannot make the manual page: {error}")))?;
    put(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Done)
}
