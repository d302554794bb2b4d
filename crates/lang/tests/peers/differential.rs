//! Generated expressions, compiled and evaluated by both.
//!
//! Type, static and actual cost, result and errors must be the same. The fixed seed runs every time;
//! `COFFER_SEED` names another, `COFFER_EXPRESSIONS` how many expressions.

use coffer_lang::cel::libraries::{self, costs};
use serde_json::{Value as Json, json};

use crate::cel::{Case, Failures, answer};
use crate::generate::Generator;
use crate::original::Original;

/// How upstream tells that the evaluation panicked.
const PANIC: &str = "internal error: interface conversion: ";
/// How many expressions every run compares.
const EXPRESSIONS: u64 = 300;

#[test]
fn generated_expressions_have_the_answers_of_kube_apiserver() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("COFFER_SEED").unwrap_or(1);
    let mut original = Original::start("cel");
    let mut generator = Generator::new(seed);
    let mut failures = Failures::default();
    let (mut results, mut errors, mut refused) = (0, 0, 0);
    for _ in 0..number("COFFER_EXPRESSIONS").unwrap_or(EXPRESSIONS) {
        let case = Case { request: request(&generator.expression()) };
        let wanted = original.ask(&case.request);
        let has = |name: &str| u64::from(wanted.get(name).is_some());
        (results, errors, refused) =
            (results + has("result"), errors + has("error"), refused + has("refused"));
        let given = answer(&case, libraries::kubernetes(), costs::KUBERNETES);
        let panicked = wanted["error"].as_str().is_some_and(|error| error.starts_with(PANIC));
        if panicked {
            // Upstream counts what sorting a list costs before it looks whether that is one.
            assert!(given.error.is_some(), "{}", case.expression());
        } else {
            failures.compare_with(&case, &wanted, &given);
        }
    }
    failures.report();
    // Expressions that all fail, or never do, would show little.
    let enough = results > 100 && errors > 10 && refused > 10;
    let asked_for =
        std::env::var_os("COFFER_SEED").is_some() || std::env::var_os("COFFER_EXPRESSIONS").is_some();
    assert!(enough || asked_for, "{results} results, {errors} errors, {refused} refused");
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
