//! `coffer config check` says what kube-apiserver says.

use coffer_sim::encryption_configs as cases;
use coffer_sim::peers::run;

use super::fixture::{Fixture, coffer};

/// Every case of the loader, through the program; each text is kube-apiserver's.
#[test]
fn config_check_says_what_the_original_says() {
    let fixture = Fixture::new();
    let mut wrong = Vec::new();
    let mut refused = 0;
    for case in cases::all() {
        std::fs::write(fixture.path().join("encryption.yaml"), &case.config).expect("written");
        let ran = run(coffer(fixture.path()).args(["config", "check", "encryption.yaml"]));
        let expected = match case.expected.as_str() {
            "" => (0, "encryption.yaml: ok\n".to_owned(), String::new()),
            text => (1, String::new(), format!("encryption.yaml: {text}\n")),
        };
        refused += usize::from(expected.0 == 1);
        let actual = (ran.code, ran.stdout, ran.stderr);
        if actual != expected {
            wrong.push(format!("{}\n  expected {expected:?}\n  actual   {actual:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused >= 15, "only {refused} cases are refused");
}

/// One bad file does not hide the others, and the exit code is that of the worst.
#[test]
fn every_file_is_checked() {
    let fixture = Fixture::new();
    let good = cases::all().into_iter().find(|case| case.expected.is_empty()).expect("a good case");
    std::fs::write(fixture.path().join("good.yaml"), good.config).expect("written");
    let check = |files: &[&str]| run(coffer(fixture.path()).args(["config", "check"]).args(files));
    let ran = check(&["file", "good.yaml", "missing"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "good.yaml: ok\n"));
    assert_eq!(ran.stderr.lines().filter(|line| !line.starts_with(' ')).count(), 2, "{}", ran.stderr);
    assert_eq!(check(&["good.yaml", "file"]).code, 1);
    assert_eq!(check(&["good.yaml", "good.yaml"]).code, 0);
}
