//! Generated expressions, compiled and evaluated by both.
//!
//! Type, static and actual cost, result and errors must be the same. The fixed seed runs every time;
//! `COFFER_SEED` names another, `COFFER_EXPRESSIONS` how many expressions, `COFFER_SECONDS` for how long
//! instead.

use std::time::{Duration, Instant};

use coffer_lang::cel::libraries::{self, costs};
use serde_json::{Value as Json, json};

use crate::cel::{Case, Failures, answer};
use crate::generate::{Generator, Tree};
use crate::original::Original;

/// How the oracle tells that upstream panicked where nothing catches it: maps with keys of bytes do that.
const UNCAUGHT: &str = "panic: runtime error: hash of unhashable type types.Bytes";
/// How upstream tells that the evaluation panicked.
const PANIC: &str = "internal error: interface conversion: ";
/// How many expressions every run compares.
const EXPRESSIONS: u64 = 300;

#[test]
#[allow(clippy::print_stdout, reason = "a long run tells what it compared")]
fn generated_expressions_have_the_answers_of_kube_apiserver() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, seconds) = (number("COFFER_SEED").unwrap_or(1), number("COFFER_SECONDS"));
    let (started, wanted) = (Instant::now(), number("COFFER_EXPRESSIONS").unwrap_or(EXPRESSIONS));
    let mut original = Original::start("cel");
    let mut generator = Generator::new(seed);
    let mut counts = Counts::default();
    while match seconds {
        Some(seconds) => started.elapsed() < Duration::from_secs(seconds),
        None => counts.all < wanted,
    } {
        let tree = generator.expression();
        if let Some(found) = difference(&mut original, &tree, &mut counts) {
            let (tree, smallest) = minimized(&mut original, tree, found);
            panic!("expression {} of seed {seed}: {tree} differs\n{smallest}", counts.all);
        }
    }
    println!("seed {seed}: {counts:?}");
    // Expressions that all fail, or never do, would show little.
    assert!(counts.results * 3 > counts.all && counts.errors * 30 > counts.all, "{counts:?}");
    assert!(counts.refused * 30 > counts.all, "{counts:?}");
}

/// What became of the expressions, as upstream says.
#[derive(Default, Debug)]
struct Counts {
    all: u64,
    results: u64,
    errors: u64,
    refused: u64,
}

/// How our answer differs from upstream's.
fn difference(original: &mut Original, tree: &Tree, counts: &mut Counts) -> Option<String> {
    let case = Case { request: request(&tree.to_string()) };
    let wanted = original.ask(&case.request);
    let has = |name: &str| u64::from(wanted.get(name).is_some());
    counts.all += 1;
    counts.results += has("result");
    counts.errors += has("error");
    counts.refused += has("refused");
    let given = answer(&case, libraries::kubernetes(), costs::KUBERNETES);
    let error = wanted["error"].as_str().unwrap_or_default();
    if error == UNCAUGHT {
        return given.refused.is_some().then(|| format!("{tree}\n  is refused, upstream panics"));
    }
    if error.starts_with(PANIC) {
        // Upstream counts what sorting a list costs before it looks whether that is one.
        return given.error.is_none().then(|| format!("{tree}\n  has a value, upstream panics"));
    }
    let mut failures = Failures::default();
    failures.compare_with(&case, &wanted, &given);
    failures.first()
}

/// Takes away what can go while there still is a difference; the expression before and the last difference.
fn minimized(original: &mut Original, first: Tree, mut found: String) -> (Tree, String) {
    let mut smallest = first.clone();
    while let Some((tree, difference)) = smallest.smaller().into_iter().find_map(|tree| {
        difference(original, &tree, &mut Counts::default()).map(|difference| (tree, difference))
    }) {
        (smallest, found) = (tree, difference);
    }
    (first, found)
}

/// The expression with a variable of each type.
fn request(expression: &str) -> Json {
    json!({
        "expression": expression,
        "types": {
            "i": "int", "u": "uint", "d": "double", "s": "string", "b": "bool", "y": "bytes", "x": "dyn",
            "r": "duration", "t": "timestamp", "li": "list(int)", "ls": "list(string)",
            "m": "map(string, int)", "q": "quantity", "o": "optional(int)",
        },
        "sizes": {"s": 20, "li": 6, "ls": 5, "ls.@items": 8, "m": 3, "m.@keys": 4, "y": 7},
        "activation": {
            "i": 3, "u": {"$uint": "4"}, "d": 1.5, "s": "héllo wörld", "b": true, "y": {"$bytes": "AQL/"},
            "x": {"a": 1, "l": [1, "b", null], "s": "text"}, "r": {"$duration": "1h30m"},
            "t": {"$timestamp": "2024-02-29T12:34:56.789Z"}, "li": [3, 1, 2], "ls": ["a", "", "ccc"],
            "m": {"k": 5}, "q": {"$quantity": "1500m"}, "o": null,
        },
    })
}
