//! The kept corpus, in every test run: each input through its target, as it is and with bytes
//! changed, cut and repeated. What the fuzzer found once stays found.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use coffer_fuzz::{PLANTED, TARGETS, pump};

/// Repeated parts make inputs of this length here; `cargo xtask fuzz` tries longer ones.
const PUMPED: usize = 2048;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

fn inputs(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = folder(name);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("readable"))).collect()
}

#[test]
fn every_kept_input_is_taken() {
    // Frames of debug builds are several times as large as those of release builds.
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(take_every_input).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[allow(clippy::print_stdout, reason = "a panic says which input was last")]
fn take_every_input() {
    for target in TARGETS {
        let inputs = inputs(target.name);
        assert!(3 <= inputs.len(), "{}: a corpus of {} inputs", target.name, inputs.len());
        for (path, input) in inputs {
            println!("{}", path.display());
            (target.run)(&input);
            (target.run)(&[]);
            let places = (input.len() / 8).max(1);
            for place in (0..input.len()).step_by(places) {
                (target.run)(&input[..place]);
                let mut changed = input.clone();
                changed[place] ^= 1 << (place % 8);
                (target.run)(&changed);
            }
            if input.len() <= PUMPED {
                pump(&input, PUMPED, &mut |pumped| (target.run)(pumped));
            }
        }
    }
}

#[test]
fn every_corpus_has_a_target() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let folders = std::fs::read_dir(folder("")).expect("the corpus");
    let folders: BTreeSet<_> =
        folders.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    assert_eq!(folders, targets);
}

#[test]
fn the_planted_fault_is_where_it_is_said_to_be() {
    (PLANTED.run)(b"coffe");
    (PLANTED.run)(b"xcoffer");
    assert!(std::panic::catch_unwind(|| (PLANTED.run)(b"coffers")).is_err());
}
