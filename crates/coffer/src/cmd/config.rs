//! `coffer config check FILE…`.

use std::path::Path;
use std::sync::Arc;

use coffer_config::encryption::{Reload, Transformers, parse};
use coffer_runtime::random::SystemRandom;
use coffer_types::SecretBytes;

use crate::cli::ConfigSubcommand;
use crate::exit::{Exit, Failure};
use crate::{put, say};

/// Checks each file and says what is wrong with it; 1 when one is, 3 when one cannot be read.
pub(crate) fn run(command: &ConfigSubcommand) -> Result<Exit, Failure> {
    let ConfigSubcommand::Check { files } = command;
    let mut exit = Exit::Done;
    for file in files {
        match check(file) {
            Ok(()) => put(&format!("{}: ok\n", file.display()))?,
            Err(failure) => {
                say(&format!("{}: {failure}", file.display()));
                if exit != Exit::Unreachable {
                    exit = failure.exit;
                }
            }
        }
    }
    Ok(exit)
}

fn check(file: &Path) -> Result<(), Failure> {
    let text = std::fs::read(file).map_err(|error| {
        Failure::unreachable(format!("cannot read it: {error}")).next("check the name and its permissions")
    })?;
    let (name, text) = (file.display().to_string(), SecretBytes::new(text));
    let config = parse(&name, text.expose(), Reload::Never).map_err(Failure::problem)?;
    // Some rules only show when the parts are put together.
    Transformers::build(&name, &config, Arc::new(SystemRandom::new())).map(drop).map_err(Failure::problem)
}
