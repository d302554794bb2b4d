//! Expressions that mean harm are refused or stopped, soon and within their memory.

use std::time::{Duration, Instant};

use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::libraries;
use coffer_lang::cel::program::Budget;
use coffer_lang::cel::types::Type;
use coffer_lang::cel::value::Value;

/// The most that any of them may take. Debug builds, on machines with other work, are only kept from hanging.
const TIME: Duration =
    if cfg!(debug_assertions) { Duration::from_secs(120) } else { Duration::from_millis(50) };
/// How often one may be tried to be within its time.
const TRIES: usize = 5;

/// Compiles and evaluates `text`; what ends it must have `expected` in its text.
fn stopped(text: &str, expected: &str) {
    // Frames of debug builds are several times as large as those of release builds.
    let stack = if cfg!(debug_assertions) { 16 << 20 } else { 2 << 20 };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(stack);
        let thread = builder.spawn_scoped(scope, || stopped_here(text, expected)).expect("a thread");
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn stopped_here(text: &str, expected: &str) {
    let mut environment = Environment::new(libraries::kubernetes(), libraries::costs::KUBERNETES);
    environment.declare_type("items", Type::list(Type::Int));
    environment.declare_type("text", Type::String);
    let items = Value::list((0..10_000).map(Value::Int).collect());
    let long = Value::string("a".repeat(100_000));
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let started = Instant::now();
        let ended = ended(&environment, text, &items, &long);
        best = best.min(started.elapsed());
        let shown = &text[..text.len().min(80)];
        assert!(ended.contains(expected), "{shown}: {}", &ended[..ended.len().min(300)]);
        if best < TIME {
            return;
        }
    }
    panic!("{} took {best:?}", &text[..text.len().min(80)]);
}

/// What ended the expression.
fn ended(environment: &Environment, text: &str, items: &Value<'static>, long: &Value<'static>) -> String {
    match environment.check(text) {
        Err(issues) => issues.to_string(),
        Ok(expression) => match expression.program() {
            Err(error) => error.to_string(),
            Ok(program) => {
                match program.evaluate(&[Some(items.clone()), Some(long.clone())], Budget::default()).result {
                    Err(error) => error.to_string(),
                    Ok(_) => "a value".to_owned(),
                }
            }
        },
    }
}

const COST: &str = "actual cost limit exceeded";

#[test]
fn nested_loops_end_within_their_cost() {
    stopped("items.all(a, items.all(b, items.all(c, a + b + c >= 0)))", COST);
    stopped("items.map(a, items.map(b, a * b)).size() > 0", COST);
    stopped("items.exists(a, items.exists(b, items.exists(c, a + b + c < 0)))", COST);
    stopped("items.filter(a, items.filter(b, b > a).size() > 0).size() > 0", COST);
}

#[test]
fn growth_ends_within_cost_or_memory() {
    let doubled =
        (0..30).fold("'aaaaaaaaaaaaaaaaaaaa'".to_owned(), |inner, _| format!("[{inner}].map(x, x + x)[0]"));
    stopped(&doubled, "");
    let text = format!("items.map(x, {}).size() > 0", vec!["text"; 40].join(" + "));
    stopped(&text, "operation cancelled");
    stopped("items.map(a, items).map(l, l + l + l + l).map(l, l.map(x, x)).size() > 0", COST);
}

#[test]
fn patterns_do_not_run_away() {
    stopped("(text + '!').matches('(a*)*b$') || items.all(i, text.matches('(a|a)*b'))", "a value");
    stopped("text.matches('(((a{100}){100}){100}){100}')", "invalid matches argument");
    stopped("items.exists(i, (text + string(i)).matches('(x+x+)+y' + string(i)))", COST);
}

#[test]
fn deep_nesting_is_refused() {
    let nested =
        |open: &str, close: &str, count: usize| format!("{}1{}", open.repeat(count), close.repeat(count));
    stopped(&nested("(", ")", 5_000), "recursion limit exceeded");
    stopped(&nested("[", "]", 5_000), "recursion limit exceeded");
    stopped(&nested("{1: ", "}", 5_000), "recursion limit exceeded");
    stopped(&vec!["1"; 5_000].join(" + "), "max recursion depth exceeded");
    stopped(&format!("items{}", "[0]".repeat(5_000)), "max recursion depth exceeded");
    stopped(&format!("text{}", ".a".repeat(5_000)), "max recursion depth exceeded");
    stopped(&nested("true ? 1 : ", "", 5_000), "recursion");
    stopped(&"(".repeat(50_000), "recursion limit exceeded");
    stopped(&"1 ".repeat(50_000), "error recovery token lookahead limit exceeded: 256");
    stopped(&"a".repeat(100_001), "expression code point size exceeds limit: size: 100001, limit 100000");
}

#[test]
fn macros_that_double_what_they_stand_behind_are_refused() {
    stopped(&format!("optional.of(1){}", ".optMap(v, v)".repeat(40)), "expression has too many parts");
    stopped(&format!("optional.of(1){}", ".optMap(v, v)".repeat(8)), "a value");
}

#[test]
fn many_terms_are_no_harm() {
    let text = vec!["items.size() > 0"; 2_000].join(" && ");
    stopped(&text, "a value");
}
