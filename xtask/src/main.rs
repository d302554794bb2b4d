//! The project's own tasks: `cargo xtask TASK`.

mod arrows;
mod bench;
mod generate;
mod peers;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask TASK

  test [--quick]         every check and every test; installs and starts the peers they need
                         --quick: what needs no peer
  check-arrows           holds the crates' dependencies and habits against ARCHITECTURE.md
  generate [--check]     makes the generated files anew, or fails when one is stale
  peers [NAME ...]       installs peers (all when none is named)
  bench trip             create, get, list, watch and memory beside kube-apiserver on the same etcd
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test::all(),
        ["test", "--quick"] => test::quick(),
        ["check-arrows"] => arrows::check(),
        ["generate"] => generate::write(),
        ["generate", "--check"] => generate::check(),
        ["peers", names @ ..] => peers::install(names),
        ["bench", "trip"] => bench::trip(),
        ["--help" | "-h" | "help"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
