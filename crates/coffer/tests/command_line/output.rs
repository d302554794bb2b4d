//! Help, manual page, completion, and readers that go away.

use std::process::Stdio;

use coffer_sim::peers::{run, run_into};

use super::fixture::{Fixture, coffer};

#[test]
fn every_command_has_a_help() {
    let fixture = Fixture::new();
    let commands = [
        "",
        "demo",
        "up",
        "apiserver",
        "operator",
        "node",
        "trace",
        "keys",
        "keys derive",
        "kms-plugin",
        "config",
        "config check",
        "completion",
        "man",
    ];
    let mut texts = std::collections::HashSet::new();
    for command in commands {
        let shared = match command {
            "" | "trace" => "namespace kubeconfig context output color",
            "operator" => "namespace kubeconfig context",
            "node" => "kubeconfig context",
            "demo" => "color",
            "keys derive" => "output",
            _ => "",
        };
        for flag in ["--help", "-h"] {
            let words = command.split_whitespace();
            let ran = run(coffer(fixture.path()).args(words).arg(flag));
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{command} {flag}");
            assert!(ran.stdout.contains("Usage: coffer"), "{command} {flag}: {}", ran.stdout);
            for flag in ["namespace", "kubeconfig", "context", "output", "color"] {
                let shown = ran.stdout.contains(&format!("--{flag}"));
                assert_eq!(shown, shared.split(' ').any(|acts| acts == flag), "{command}: --{flag}");
            }
            let long = ran.stdout.lines().find(|line| {
                // The usage line is one line, so that it can be copied.
                line.chars().count() > 100 && !line.starts_with("Usage: ")
            });
            assert_eq!(long, None, "{command} {flag}");
            if flag == "-h" {
                assert!(texts.insert(ran.stdout), "{command}: another command's help");
            }
        }
    }
}

#[test]
fn without_a_command_the_help_is_shown() {
    let fixture = Fixture::new();
    let ran = run(&mut coffer(fixture.path()));
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("Start with: coffer demo"), "{}", ran.stderr);
}

#[test]
fn the_manual_page_and_the_completions_are_made() {
    let fixture = Fixture::new();
    let man = run(coffer(fixture.path()).arg("man"));
    assert_eq!((man.code, man.stderr.as_str()), (0, ""));
    assert!(man.stdout.contains(".TH coffer 1"), "{}", man.stdout);
    for (words, title, flag) in [
        ("demo", ".TH coffer-demo 1", "once"),
        ("trace", ".TH coffer-trace 1", "output"),
        ("config check", ".TH coffer-config-check 1", "help"),
    ] {
        let page = run(coffer(fixture.path()).arg("man").args(words.split(' ')));
        assert_eq!((page.code, page.stderr.as_str()), (0, ""), "{words}");
        let plain = page.stdout.replace('\\', "");
        assert!(plain.contains(title) && plain.contains(&format!("--{flag}")), "{words}: {plain}");
    }
    for (shell, sign) in
        [("bash", "complete -F _coffer"), ("zsh", "#compdef coffer"), ("fish", "complete -c coffer")]
    {
        let ran = run(coffer(fixture.path()).args(["completion", shell]));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{shell}");
        assert!(ran.stdout.contains(sign), "{shell}: {}", ran.stdout);
    }
}

/// `coffer man | head -1` says nothing of a broken pipe.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let fixture = Fixture::new();
    for arguments in [["completion", "bash"].as_slice(), &["man"], &["--help"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = coffer(fixture.path());
        let ran = run_into(command.args(arguments), Stdio::from(writer));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
    }
}
