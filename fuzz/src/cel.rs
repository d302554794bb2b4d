//! Expressions that clusters write.

use std::sync::LazyLock;

use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::estimate::UnknownSizes;
use coffer_lang::cel::functions::CallCosts;
use coffer_lang::cel::libraries::{self, costs};
use coffer_lang::cel::program::Budget;
use coffer_lang::cel::types::Type;
use coffer_lang::cel::value::Value;
use coffer_types::codec::json;

/// The language alone.
static BARE: LazyLock<Environment> = LazyLock::new(|| Environment::new(Vec::new(), CallCosts::NONE));

/// All libraries, and a variable of each sort.
static FULL: LazyLock<Environment> = LazyLock::new(|| {
    let mut environment = Environment::new(libraries::kubernetes(), costs::KUBERNETES);
    for (name, declared) in [
        ("x", Type::Dyn),
        ("i", Type::Int),
        ("s", Type::String),
        ("l", Type::list(Type::String)),
        ("m", Type::map(Type::String, Type::Int)),
    ] {
        environment.declare_type(name, declared);
    }
    environment
});

/// The variables' values, in their order.
static VALUES: LazyLock<coffer_types::Value> = LazyLock::new(|| {
    let text = r#"{"values":[{"a":1,"b":[1,"x",null,{"c":2.5}]},7,"héllo",["a","","10.0.0.1"],{"k":5}]}"#;
    json::decode_untyped(text.as_bytes()).expect("an object").object
});

/// The most that one evaluation may cost here.
const COST: u64 = 20_000;
/// The most memory that one evaluation may hold here.
const MEMORY: usize = 1 << 20;

/// The parser, and the checker where no name is known.
pub(crate) fn cel_parser(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(issues) = BARE.check(text) {
        assert!(issues.to_string().starts_with("ERROR: <input>:"), "an error has a place");
    }
}

/// The checker and the estimate.
pub(crate) fn cel_checker(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(expression) = FULL.check(text) else { return };
    let cost = expression.estimate(&UnknownSizes);
    assert!(cost.min <= cost.max, "{cost:?}");
}

/// The evaluator: within its cost, and twice with the same result.
pub(crate) fn cel_evaluator(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(expression) = FULL.check(text) else { return };
    let Ok(program) = expression.program() else { return };
    let values = VALUES.get("values").and_then(coffer_types::Value::as_array).expect("a list");
    let variables: Vec<_> = values.iter().map(|value| Some(Value::plain(value))).collect();
    let budget = Budget { cost: COST, memory: MEMORY, interrupted: None };
    let evaluate = || {
        let evaluation = program.evaluate(&variables, budget);
        let result = evaluation.result.map(|value| value.in_messages()).map_err(|error| error.to_string());
        (result, evaluation.cost)
    };
    let (result, cost) = evaluate();
    assert!(result.is_err() || cost <= COST, "{cost}");
    assert_eq!(evaluate(), (result, cost), "an expression is a function");
}
