//! Expressions beside kube-apiserver's answers: type, static and actual cost, result and errors.
//! `peers/go/cel` has the cases and wrote the answers.

use coffer_lang::cel::libraries::{self, costs};

use crate::cel::{Case, Failures, Given, answer};
use crate::cel_rules::rule;

/// Where we answer otherwise; `COMPATIBILITY.md` says why. Each expression has a part of upstream's answer.
const DIFFERENT: [(&str, &str); 2] = [
    ("google.protobuf.Duration{}", "duration(0ns)"),
    ("google.protobuf.Int32Value{value: 1}", "wrapper(int)"),
];

#[test]
fn core() {
    check(include_str!("../golden/cel/core.jsonl"), 350);
}

#[test]
fn errors() {
    check(include_str!("../golden/cel/errors.jsonl"), 220);
}

#[test]
fn variables() {
    check(include_str!("../golden/cel/variables.jsonl"), 230);
}

#[test]
fn strings() {
    check(include_str!("../golden/cel/strings.jsonl"), 170);
}

#[test]
fn lists() {
    check(include_str!("../golden/cel/lists.jsonl"), 130);
}

#[test]
fn collections() {
    check(include_str!("../golden/cel/collections.jsonl"), 60);
}

#[test]
fn network() {
    check(include_str!("../golden/cel/network.jsonl"), 210);
}

#[test]
fn numbers() {
    check(include_str!("../golden/cel/numbers.jsonl"), 140);
}

#[test]
fn formats() {
    check(include_str!("../golden/cel/formats.jsonl"), 50);
}

#[test]
fn authorizer() {
    check(include_str!("../golden/cel/authorizer.jsonl"), 40);
}

#[test]
fn rules() {
    let mut failures = Failures::default();
    let cases = Case::read(include_str!("../golden/cel/rules.jsonl"));
    assert!(140 <= cases.len(), "{} cases", cases.len());
    for case in &cases {
        let (given, message) = rule(case, libraries::kubernetes(), costs::KUBERNETES);
        hold(&mut failures, case, &given);
        if let Some(wanted) = case.request["answer"].get("message") {
            failures.compare_with(case, wanted, &message.expect("the case has a message"));
        }
    }
    failures.report();
}

/// The cases of cel-spec, as Kubernetes' environment answers them: where that differs from the
/// specification, the case says so, and the names that cannot be asked stand with their reasons in
/// `conformance-skipped.txt`.
#[test]
fn conformance() {
    check(include_str!("../golden/cel/conformance.jsonl"), 1_400);
}

fn check(golden: &str, least: usize) {
    let mut failures = Failures::default();
    let cases = Case::read(golden);
    assert!(least <= cases.len(), "{} cases", cases.len());
    for case in cases.iter().filter(|case| case.environment().is_none()) {
        let mut libraries = libraries::kubernetes();
        if case.version() == Some("1.36") {
            for library in &mut libraries {
                library.functions.retain(|function| function.name != "includes");
            }
        }
        let given = answer(case, libraries, costs::KUBERNETES);
        hold(&mut failures, case, &given);
    }
    failures.report();
}

fn hold(failures: &mut Failures, case: &Case, given: &Given) {
    let wanted = case.request["answer"].to_string();
    let listed =
        |(expression, part): &(&str, &str)| *expression == case.expression() && wanted.contains(part);
    if DIFFERENT.iter().any(listed) {
        failures.differs(case, given);
    } else {
        failures.compare(case, given);
    }
}
