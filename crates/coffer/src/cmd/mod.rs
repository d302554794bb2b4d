//! One file for each command.

mod apiserver;
mod audit;
mod config;
mod demo;
mod generate;
mod inspect;
mod keys;
mod kms_plugin;
mod node;
mod operator;
mod stored;
mod trace;
mod up;
mod watch;

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
        Command::Keys(command) => keys::run(&cli.global, &command.command).await,
        Command::Audit(flags) => audit::run(&cli.global, &flags).await,
        Command::Inspect(flags) => inspect::run(&cli.global, &flags).await,
        Command::KmsPlugin(flags) => kms_plugin::run(&flags).await,
        Command::Watch(flags) => watch::run(&flags).await,
        Command::Config(command) => config::run(&command.command),
        Command::Completion { shell } => generate::completion(shell),
        Command::Man { command } => generate::man(&command),
    }
}
