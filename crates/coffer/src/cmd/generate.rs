//! `coffer completion` and `coffer man`.

use crate::cli::shared;
use crate::exit::{Exit, Failure};
use crate::put;

/// A completion script.
pub(crate) fn completion(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shared::shown(), "coffer", &mut script);
    put(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// The manual page of a command, which is named by its words.
pub(crate) fn man(words: &[String]) -> Result<Exit, Failure> {
    let mut root = shared::shown();
    // Gives each command its whole name.
    root.build();
    let mut command = root;
    for word in words {
        let names: Vec<String> = command.get_subcommands().map(|found| found.get_name().to_owned()).collect();
        let found = command.find_subcommand(word).cloned();
        command = found.ok_or_else(|| {
            let failure = Failure::usage(format!("there is no command {:?}", words.join(" ")));
            match names.as_slice() {
                [] => failure.next(format!("{} has no commands below it", command.get_name())),
                names => failure.next(format!("there are: {}", names.join(", "))),
            }
        })?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::problem(format!("cannot make the manual page: {error}")))?;
    put(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Done)
}
