//! The project's own tasks: `cargo xtask TASK`.

mod arrows;
mod bench;
mod conformance;
mod control_plane;
mod deny;
mod fuzz;
mod generate;
mod kubernetes;
mod node;
mod peers;
mod pki;
mod test;

use std::process::ExitCode;

use anyhow::Context as _;

const USAGE: &str = "\
cargo xtask TASK

  test [--quick]         every check and every test; installs and starts the peers they need
                         --quick: what needs no peer
  check-arrows           holds the crates' dependencies and habits against ARCHITECTURE.md
  deny                   holds licences, versions and sources of dependencies against deny.toml
  generate [--check]     makes the generated files anew, or fails when one is stale
  peers [NAME ...]       installs peers (all when none is named)
  fuzz [TARGET ...] [--seconds N]
                         fuzzes the named decoders, or all, for N seconds each (20)
  fuzz TARGET --input FILE
                         runs one input again
  conformance linearizability [--minutes N]
                         concurrent clients on each engine under faults, for N minutes each (5)
  conformance etcd       the store's suites on etcd 3.4, 3.5, 3.6 and 3.7
  conformance kubernetes [--alone] [--json] [--focus EXPRESSION]
                         Kubernetes' own conformance tests that need an API server only, in protobuf or JSON,
                         beside kube-controller-manager; --alone: those that need none of its controllers
  conformance node [--focus EXPRESSION]
                         the stock kubelet and kube-scheduler, and the conformance tests of Secrets, projected
                         volumes and service accounts on their node; needs root
  conformance clients [--changes N]
                         programs built on client-go and controller-runtime, through N changes each (20000)
  conformance operator   the External Secrets Operator, unmodified: its controller's suite, and its binary beside
                         kube-apiserver
  conformance cel [--seconds N]
                         generated CEL expressions beside kube-apiserver's environment for N seconds (60), others
                         each time
  conformance fuzz [--minutes N]
                         fuzzes every decoder for N minutes each (60)
  bench trip             create, get, list, watch and memory beside kube-apiserver on the same etcd
  bench store            create, update, get, list, memory and readiness beside kube-apiserver, with targets
  bench clients          1,000 watchers, server-side apply, and the memory of many watches, with targets
  bench transform        encryption and decryption beside the code of kube-apiserver, with targets
  bench cel              rules compiled and evaluated beside the environment of kube-apiserver, with targets;
                         time and memory of hostile ones, with limits
  bench audit            the audit of a snapshot of 1 GiB beside etcdutl
  bench demo             the time until the demo's first file, and its memory, against their limits
  bench build            a release build into an empty directory, against its limit
";

fn number(text: &str) -> anyhow::Result<u32> {
    text.parse().map_err(|_| anyhow::anyhow!("{text:?} is no number"))
}

fn kubernetes_run(options: &[&str]) -> anyhow::Result<()> {
    let (mut group, mut content_type, mut focus) = (kubernetes::Group::Api, kubernetes::PROTOBUF, None);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--alone" => group = kubernetes::Group::Alone,
            "--json" => content_type = kubernetes::JSON,
            "--focus" => focus = Some(*options.next().context("--focus needs an expression")?),
            other => anyhow::bail!("unknown option {other}"),
        }
    }
    kubernetes::conformance(group, content_type, focus)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test::all(),
        ["test", "--quick"] => test::quick(),
        ["check-arrows"] => arrows::check(),
        ["deny"] => deny::check(),
        ["generate"] => generate::write(),
        ["generate", "--check"] => generate::check(),
        ["peers", names @ ..] => peers::install(names),
        ["fuzz", target, "--input", input] => fuzz::again(target, input),
        ["fuzz", names @ .., "--seconds", seconds] => {
            number(seconds).and_then(|seconds| fuzz::run(names, seconds))
        }
        ["fuzz", names @ ..] => fuzz::run(names, fuzz::SECONDS),
        ["conformance", "linearizability"] => conformance::linearizability(5),
        ["conformance", "linearizability", "--minutes", minutes] => {
            number(minutes).and_then(conformance::linearizability)
        }
        ["conformance", "etcd"] => conformance::etcd(),
        ["conformance", "clients"] => conformance::clients(20_000),
        ["conformance", "clients", "--changes", changes] => number(changes).and_then(conformance::clients),
        ["conformance", "kubernetes", options @ ..] => kubernetes_run(options),
        ["conformance", "node"] => node::conformance(None),
        ["conformance", "node", "--focus", focus] => node::conformance(Some(focus)),
        ["conformance", "operator"] => conformance::operator(),
        ["conformance", "cel"] => conformance::cel(60),
        ["conformance", "cel", "--seconds", seconds] => number(seconds).and_then(conformance::cel),
        ["conformance", "fuzz"] => conformance::fuzz(60),
        ["conformance", "fuzz", "--minutes", minutes] => number(minutes).and_then(conformance::fuzz),
        ["bench", "trip"] => bench::trip(),
        ["bench", "store"] => bench::store(),
        ["bench", "clients"] => bench::clients(),
        ["bench", "transform"] => bench::transform(),
        ["bench", "cel"] => bench::cel(),
        ["bench", "audit"] => bench::audit(),
        ["bench", "demo"] => bench::demo(),
        ["bench", "build"] => bench::build(),
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
