//! `coffer watch` on a volume that flips as the kubelet and the node flip it.

use std::os::unix::fs::symlink;
use std::path::Path;

use coffer_sim::peers::{Process, until};
use rustix::process::Signal;

use super::fixture::coffer;

/// Makes `version` the one that is read.
fn flip(volume: &Path, version: &str, files: &[(&str, &str)]) {
    let directory = volume.join(version);
    std::fs::create_dir_all(&directory).expect("made");
    for (name, content) in files {
        std::fs::write(directory.join(name), content).expect("written");
    }
    symlink(version, volume.join("..data_tmp")).expect("linked");
    let old = std::fs::read_link(volume.join("..data")).ok();
    std::fs::rename(volume.join("..data_tmp"), volume.join("..data")).expect("flipped");
    for (name, _) in files {
        let _ = symlink(Path::new("..data").join(name), volume.join(name));
    }
    if let Some(old) = old {
        std::fs::remove_dir_all(volume.join(old)).expect("removed");
    }
}

fn watching(directory: &Path, name: &str, arguments: &[&str]) -> Process {
    let mut process = Process::start(name, coffer(directory).arg("watch").args(arguments), directory);
    let log = directory.join(format!("{name}.log"));
    process.wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("until Ctrl-C")));
    process
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Each change once, however often; what is read is new when the command runs; and a flip to the same content is
/// no change of a file.
#[test]
fn n17_a_command_runs_once_for_each_change_of_a_mounted_secret() {
    let directory = tempfile::tempdir().expect("a directory");
    let (at, volume) = (directory.path(), directory.path().join("v"));
    std::fs::create_dir(&volume).expect("made");
    flip(&volume, "..0", &[("password", "zero"), ("user", "me")]);
    let append = "cat v/password >> ran; echo >> ran";
    let mut file = watching(at, "file", &["v/password", "--", "sh", "-c", append]);
    let mut both = watching(at, "both", &["v/password", "v/user"]);
    let mut whole = watching(at, "whole", &["v", "--", "sh", "-c", "echo x >> whole.ran; exit 7"]);
    let printed = |process: &Process| process.log().lines().filter(|line| line.starts_with("v/")).count();

    let mut ran = Vec::new();
    for number in 1..=5 {
        let content = format!("password {number}");
        flip(&volume, &format!("..{number}"), &[("password", &content), ("user", "me")]);
        ran.push(content);
        until("the command", || (lines(&at.join("ran")) == ran).then_some(()));
        until("the line", || (printed(&both) == number).then_some(()));
        until("the command of the volume", || (lines(&at.join("whole.ran")).len() == number).then_some(()));
    }
    // Only the other file changes, and then nothing but the directory.
    flip(&volume, "..6", &[("password", "password 5"), ("user", "you")]);
    until("the line", || both.log().lines().any(|line| line == "v/user").then_some(()));
    flip(&volume, "..7", &[("password", "password 5"), ("user", "you")]);
    until("the command of the volume", || (lines(&at.join("whole.ran")).len() == 7).then_some(()));
    // It goes, and comes back as it was; then as another.
    std::fs::remove_file(volume.join("password")).expect("removed");
    symlink("..data/password", volume.join("password")).expect("linked");
    flip(&volume, "..8", &[("password", "last"), ("user", "you")]);
    ran.push("last".to_owned());
    until("the command", || (lines(&at.join("ran")) == ran).then_some(()));
    until("the line", || (printed(&both) == 7).then_some(()));
    until("the command of the volume", || (lines(&at.join("whole.ran")).len() == 8).then_some(()));

    for process in [&mut file, &mut both, &mut whole] {
        process.signal(Signal::TERM);
        assert_eq!(process.wait(), 0, "{}", process.log());
    }
    assert_eq!(lines(&at.join("ran")), ran);
    assert_eq!((printed(&both), lines(&at.join("whole.ran")).len()), (7, 8));
    let failed = "coffer: sh ended with exit status: 7";
    assert_eq!(whole.log().lines().filter(|line| *line == failed).count(), 8, "{}", whole.log());
    for process in [&file, &both, &whole] {
        assert!(!process.log().contains("password 1"), "a value is told: {}", process.log());
    }
}
