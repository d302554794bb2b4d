//! Which of the flags that several commands share act on which command. Where one does not act it is
//! not shown, and giving it is wrong usage: nothing that a user typed is silently ignored.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

use super::Cli;

/// Commands and the flags of [`super::Global`] that act on them. A command without a row has none.
const ACTING: &[(&[&str], &[&str])] = &[
    (&["demo"], &["color", "verbose"]),
    (&["up"], &["verbose"]),
    (&["apiserver"], &["verbose"]),
    (&["operator"], &["namespace", "kubeconfig", "context", "verbose"]),
    (&["node"], &["kubeconfig", "context", "verbose"]),
    (&["keys", "derive"], &["output"]),
    (&["keys", "migrate"], &["kubeconfig", "context", "output", "color", "verbose"]),
    (&["audit"], &["kubeconfig", "context", "output", "color", "verbose"]),
    (&["inspect"], &["kubeconfig", "context", "output", "color", "verbose"]),
    (&["trace"], &["namespace", "kubeconfig", "context", "output", "color", "verbose"]),
];

/// What a flag means to one command, where that is something else than elsewhere.
const MEANINGS: &[(&[&str], &str, &str)] =
    &[(&["operator"], "namespace", "Only what is in this namespace; all namespaces unless given")];

/// The command line of this process. Ends the process after `--help` and on wrong usage.
pub(crate) fn parse() -> Cli {
    let mut command = parser();
    let matches = command.get_matches_mut();
    refuse_idle(&command, &matches)
        .and_then(|()| Cli::from_arg_matches(&matches))
        .unwrap_or_else(|error| error.exit())
}

/// Every command with exactly the flags that act on it: for manual pages and completions.
pub(crate) fn shown() -> Command {
    with_shared(false)
}

/// As [`shown`], but it also takes the flags that do not act, so that they can be refused with a reason.
fn parser() -> Command {
    with_shared(true)
}

fn with_shared(idle_too: bool) -> Command {
    let root = Cli::command();
    let shared: Vec<Arg> =
        root.get_arguments().filter(|argument| argument.is_global_set()).cloned().collect();
    let root = if idle_too { root } else { root.mut_args(|argument| argument.global(false)) };
    add(root, &[], &shared, idle_too)
}

fn add(command: Command, path: &[&str], shared: &[Arg], idle_too: bool) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| {
        let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
        command.mut_subcommand(name, |mut subcommand| {
            for argument in shared {
                let id = argument.get_id().as_str();
                let argument = argument.clone().global(false);
                if acts(&path, id) {
                    let meaning = MEANINGS.iter().find(|(on, flag, _)| *on == path && *flag == id);
                    let argument = argument.help_heading(None::<&str>);
                    subcommand = subcommand.arg(match meaning {
                        Some((_, _, text)) => argument.help(*text),
                        None => argument,
                    });
                } else if idle_too {
                    subcommand = subcommand.arg(argument.hide(true));
                }
            }
            add(subcommand, &path, shared, idle_too)
        })
    })
}

fn acts(path: &[&str], id: &str) -> bool {
    ACTING.iter().any(|(command, flags)| *command == path && flags.contains(&id))
}

fn refuse_idle(command: &Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let mut path = Vec::new();
    let mut deepest = matches;
    while let Some((name, below)) = deepest.subcommand() {
        path.push(name);
        deepest = below;
    }
    let idle = command.get_arguments().filter(|argument| argument.is_global_set()).find(|argument| {
        let id = argument.get_id().as_str();
        matches.value_source(id) == Some(ValueSource::CommandLine) && !acts(&path, id)
    });
    let Some(idle) = idle.map(ToString::to_string) else { return Ok(()) };
    let text = format!("the argument '{idle}' has no effect on 'coffer {}'", path.join(" "));
    let named = path.iter().try_fold(command, |command, name| command.find_subcommand(name));
    let mut named = named.cloned().unwrap_or_else(|| command.clone());
    Err(named.error(ErrorKind::ArgumentConflict, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_lines_are_sound() {
        parser().debug_assert();
        shown().debug_assert();
    }

    /// `expected` is the flag that is refused, or "".
    fn check(line: &str, expected: &str) {
        let mut command = parser();
        let matches = command.try_get_matches_from_mut(line.split(' ')).expect(line);
        let text = refuse_idle(&command, &matches).err().map(|error| error.to_string());
        match (text, expected) {
            (None, "") => {}
            (Some(text), flag) if !flag.is_empty() => {
                assert!(text.contains(&format!("'{flag}' has no effect on 'coffer")), "{line}: {text}");
            }
            (text, _) => panic!("{line}: {text:?}"),
        }
    }

    #[test]
    fn a_flag_that_would_do_nothing_is_refused_wherever_it_stands() {
        for (line, expected) in [
            ("coffer trace secret/db -n ns -o json --color never -v --kubeconfig f --context c", ""),
            ("coffer -n ns -o json --color never -v --kubeconfig f --context c trace secret/db", ""),
            ("coffer operator -n ns --kubeconfig f --context c -vv", ""),
            ("coffer keys derive --root-file f --seed s --group g --dimension d --revision 1 -o json", ""),
            ("coffer node --kubeconfig f --context c -vv", ""),
            ("coffer demo --color always -v", ""),
            ("coffer demo -o json", "--output <FORMAT>"),
            ("coffer -o json demo", "--output <FORMAT>"),
            ("coffer up -n ns", "--namespace <NAMESPACE>"),
            ("coffer up --kubeconfig f", "--kubeconfig <FILE>"),
            ("coffer node -n ns", "--namespace <NAMESPACE>"),
            ("coffer operator -o json", "--output <FORMAT>"),
            ("coffer config check f -o json", "--output <FORMAT>"),
            ("coffer config --context c check f", "--context <NAME>"),
            ("coffer --context c config check f", "--context <NAME>"),
            ("coffer completion bash -v", "-v..."),
            ("coffer man --color never", "--color <WHEN>"),
        ] {
            check(line, expected);
        }
    }

    /// Upstream's is 1, for all stores together.
    #[test]
    fn the_operator_works_on_16_of_each_store() {
        let operator = shown().find_subcommand("operator").expect("there").clone();
        let flag =
            operator.get_arguments().find(|argument| argument.get_id() == "concurrent").expect("there");
        assert_eq!(flag.get_default_values(), ["16"]);
    }

    #[test]
    fn every_row_names_a_command_and_its_flags() {
        for (path, flags) in ACTING {
            let mut command = &shown();
            for name in *path {
                command = command.find_subcommand(name).expect(name);
            }
            for flag in *flags {
                let shown = command.get_arguments().any(|argument| argument.get_id() == flag);
                assert!(shown, "{path:?} {flag}");
            }
        }
    }
}
