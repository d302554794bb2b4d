//! The functions of CEL's libraries beside those of kube-apiserver's environment of 1.37.

use std::collections::BTreeSet;

use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::functions::{Library, Overload};
use coffer_lang::cel::libraries::{self, costs};
use coffer_lang::cel::program::Budget;
use coffer_lang::cel::types::Type;

/// Written by `peers/go/cel`.
const GOLDEN: &str = include_str!("../golden/cel/functions.txt");

/// As the golden file has them: name, overload, style, types.
fn declared(libraries: &[Library]) -> BTreeSet<String> {
    let functions = libraries.iter().flat_map(|library| &library.functions);
    functions
        .flat_map(|function| function.overloads.iter().map(|overload| line(&function.name, overload)))
        .collect()
}

fn line(name: &str, overload: &Overload) -> String {
    let style = if overload.member { "member" } else { "global" };
    let parameters: Vec<String> = overload.parameters.iter().map(shown).collect();
    format!("{name} {} {style} ({}) -> {}", overload.id, parameters.join(", "), shown(&overload.result))
}

/// As cel-go prints declared types, which is not how the checker prints them.
fn shown(declared: &Type) -> String {
    match declared {
        Type::Param(name) => format!("<{name}>"),
        Type::List(_) | Type::Map(_) | Type::Opaque(..) => {
            let parameters: Vec<String> = declared.parameters().into_iter().map(shown).collect();
            if parameters.is_empty() {
                declared.name().to_owned()
            } else {
                format!("{}({})", declared.name(), parameters.join(", "))
            }
        }
        _ => declared.name().to_owned(),
    }
}

fn golden(prefix: &str) -> BTreeSet<String> {
    GOLDEN.lines().filter_map(|line| line.strip_prefix(prefix)).map(str::to_owned).collect()
}

#[test]
fn every_function_of_a_library_is_upstreams() {
    let ours = declared(&libraries::kubernetes());
    let theirs = golden("function ");
    let unknown: Vec<_> = ours.difference(&theirs).collect();
    assert!(unknown.is_empty(), "not upstream's: {unknown:#?}");
    assert!(ours.len() > 100, "{} overloads", ours.len());
    assert_eq!(declared(&[libraries::mutation()]), golden("mutation has function "));
}

#[test]
fn every_library_is_there() {
    let mut ours: BTreeSet<_> = libraries::kubernetes().iter().map(|library| library.name).collect();
    // The selectors of authorizer checks are with the rest of that library; the others are no
    // additions to the language.
    ours.extend(["kubernetes.authzSelectors", "cel.lib.std", "cel.lib.optional"]);
    let theirs: BTreeSet<_> = GOLDEN.lines().filter_map(|line| line.strip_prefix("library ")).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn sorting_keeps_the_order_of_equal_keys() {
    let environment = Environment::new(libraries::kubernetes(), costs::KUBERNETES);
    let text = "lists.range(100).sortBy(x, x % 2) == \
                lists.range(100).filter(x, x % 2 == 0) + lists.range(100).filter(x, x % 2 == 1)";
    let program = environment.check(text).expect("types fit").program().expect("constants have values");
    let result = program.evaluate(&[], Budget::default()).result;
    assert_eq!(result.map(|value| value.in_messages()).as_deref(), Ok("true"));
}
