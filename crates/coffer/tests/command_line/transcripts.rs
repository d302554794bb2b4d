//! Runs every command of `transcripts/` again and compares exit code and each line.
//!
//! A file holds `$ COMMAND`, then `[exit N]`, then lines of standard output after `> ` and of
//! standard error after `! `. With `COFFER_WRITE_TRANSCRIPTS=1` the files are written instead.

use std::path::PathBuf;

use coffer_sim::peers::Output;

use super::fixture::Fixture;

fn transcript(line: &str, ran: &Output) -> String {
    let mut text = format!("$ {line}\n[exit {}]\n", ran.code);
    for (mark, stream) in [('>', &ran.stdout), ('!', &ran.stderr)] {
        for line in stream.lines() {
            text.push_str(format!("{mark} {line}").trim_end());
            text.push('\n');
        }
    }
    text
}

fn check(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/transcripts").join(name);
    let expected = std::fs::read_to_string(&path).expect("a transcript");
    let mut fixture = Fixture::new();
    let mut actual = String::new();
    let mut commands = 0;
    for line in expected.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let ran = fixture.run(command);
            actual.push_str(&transcript(command, &ran));
            commands += 1;
        } else if line.is_empty() || line.starts_with('#') {
            actual.push_str(line);
            actual.push('\n');
        }
    }
    assert!(commands > 0, "{name} holds no command");
    if std::env::var_os("COFFER_WRITE_TRANSCRIPTS").is_some() {
        std::fs::write(&path, actual).expect("written");
        return;
    }
    let wrong = expected.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
    assert!(expected == actual, "{name}: expected, then actual: {wrong:?}\n\n{actual}");
}

#[test]
fn wrong_usage() {
    check("usage.txt");
}

#[test]
fn files_that_flags_name() {
    check("files.txt");
}

#[test]
fn places_that_are_taken() {
    check("places.txt");
}

#[test]
fn servers_that_are_not_there() {
    check("servers.txt");
}
