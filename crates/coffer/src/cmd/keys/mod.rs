//! `coffer keys …`.

mod derive;
mod migrate;

use crate::cli::{Global, KeysSubcommand};
use crate::exit::{Exit, Failure};

/// Runs one of the commands about keys.
pub(crate) async fn run(global: &Global, command: &KeysSubcommand) -> Result<Exit, Failure> {
    match command {
        KeysSubcommand::Derive(flags) => derive::run(global, flags),
        KeysSubcommand::Migrate(flags) => migrate::run(global, flags).await,
    }
}
