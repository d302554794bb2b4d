//! One file for each command.

mod apiserver;
mod config;
mod demo;
mod generate;
mod node;
mod operator;
mod trace;
mod up;

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Failure};

/// Runs the command that the user named.
pub(crate) async fn run(cli: Cli) -> Result<Exit, Failure> {
    match cli.command {
        Command::Demo(flags) => demo::run(&cli.global, &flags).await,
        Command::Up(flags) => up::run(&flags).await,
        Command::Apiserver(flags) => apiserver::run(&flags).await,
        Command::Operator(flags) => operator::run(&cli.global, &flags).await,
        Command::Node(flags) => node::run(&cli.global, &flags).await,
        Command::Trace(flags) => trace::run(&cli.global, &flags).await,
        Command::Config(command) => config::run(&command.command),
        Command::Completion { shell } => generate::completion(shell),
        Command::Man => generate::man(),
    }
}
