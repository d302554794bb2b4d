//! Expressions that mean harm, and what ends them.

use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::libraries;
use coffer_lang::cel::program::Budget;
use coffer_lang::cel::types::Type;
use coffer_lang::cel::value::Value;

/// What one of them may take of a thread's time in a release build.
pub(crate) const MILLISECONDS: u64 = 50;

const COST: &str = "actual cost limit exceeded";
const MEMORY: &str = "operation cancelled: the expression's values need too much memory";
const RECURSION: &str = "recursion limit exceeded";
const DEPTH: &str = "max recursion depth exceeded";

/// An expression that means harm.
pub(crate) struct Hostile {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// Part of what ends it; "a value" where it may come to its end.
    pub(crate) expected: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Loops,
    Growth,
    Patterns,
    Depth,
    Macros,
    Terms,
}

impl Hostile {
    /// Its beginning, to be shown.
    pub(crate) fn shown(&self) -> &str {
        let end = self.text.char_indices().nth(60).map_or(self.text.len(), |(place, _)| place);
        &self.text[..end]
    }
}

/// All of them.
pub(crate) fn hostile() -> Vec<Hostile> {
    let nested =
        |open: &str, close: &str, count: usize| format!("{}1{}", open.repeat(count), close.repeat(count));
    let doubled =
        (0..30).fold("'aaaaaaaaaaaaaaaaaaaa'".to_owned(), |inner, _| format!("[{inner}].map(x, x + x)[0]"));
    let copies = format!("items.map(x, {}).size() > 0", vec!["text"; 40].join(" + "));
    let literal = |open: &str, close: &str| {
        let each: Vec<String> = (0..1_500).map(|index| format!("text.{open}{index}{close}")).collect();
        each.join(" || ")
    };
    let rows = [
        (Kind::Loops, "items.all(a, items.all(b, items.all(c, a + b + c >= 0)))".to_owned(), COST),
        (Kind::Loops, "items.map(a, items.map(b, a * b)).size() > 0".to_owned(), COST),
        (Kind::Loops, "items.exists(a, items.exists(b, items.exists(c, a + b + c < 0)))".to_owned(), COST),
        (Kind::Loops, "items.filter(a, items.filter(b, b > a).size() > 0).size() > 0".to_owned(), COST),
        (Kind::Growth, doubled, ""),
        (
            Kind::Growth,
            "items.transformMapEntry(i, v, {duration(string(v) + 's'): v}).size() > 0".to_owned(),
            "a value",
        ),
        (Kind::Growth, "items.transformMapEntry(i, v, {[v]: v}).size() > 0".to_owned(), "a value"),
        (Kind::Growth, copies, "operation cancelled"),
        (
            Kind::Growth,
            "items.map(a, items).map(l, l + l + l + l).map(l, l.map(x, x)).size() > 0".to_owned(),
            COST,
        ),
        (
            Kind::Patterns,
            "(text + '!').matches('(a*)*b$') || items.all(i, text.matches('(a|a)*b'))".to_owned(),
            "a value",
        ),
        (
            Kind::Patterns,
            "text.matches('(((a{100}){100}){100}){100}')".to_owned(),
            "invalid matches argument",
        ),
        (
            Kind::Patterns,
            "items.exists(i, (text + string(i)).matches('(x+x+)+y' + string(i)))".to_owned(),
            COST,
        ),
        (Kind::Patterns, "items.exists(i, ''.matches('(a{100}){50}' + string(i)))".to_owned(), MEMORY),
        (
            Kind::Patterns,
            "items.exists(i, ''.matches('((a{100}){100}){100}' + string(i)))".to_owned(),
            MEMORY,
        ),
        (Kind::Patterns, "items.exists(i, ''.matches('[a-z]+' + string(i)))".to_owned(), MEMORY),
        (Kind::Patterns, literal("matches('(a{100}){50}", "')"), "invalid matches argument"),
        (Kind::Patterns, literal("find('(a{100}){50}", "') == ''"), MEMORY),
        (Kind::Depth, nested("(", ")", 5_000), RECURSION),
        (Kind::Depth, nested("[", "]", 5_000), RECURSION),
        (Kind::Depth, nested("{1: ", "}", 5_000), RECURSION),
        (Kind::Depth, vec!["1"; 5_000].join(" + "), DEPTH),
        (Kind::Depth, format!("items{}", "[0]".repeat(5_000)), DEPTH),
        (Kind::Depth, format!("text{}", ".a".repeat(5_000)), DEPTH),
        (Kind::Depth, nested("true ? 1 : ", "", 5_000), "recursion"),
        (Kind::Depth, "(".repeat(50_000), RECURSION),
        (Kind::Depth, "1 ".repeat(50_000), "error recovery token lookahead limit exceeded: 256"),
        (
            Kind::Depth,
            "a".repeat(100_001),
            "expression code point size exceeds limit: size: 100001, limit 100000",
        ),
        (
            Kind::Macros,
            format!("optional.of(1){}", ".optMap(v, v)".repeat(40)),
            "expression has too many parts",
        ),
        (Kind::Macros, format!("optional.of(1){}", ".optMap(v, v)".repeat(8)), "a value"),
        (Kind::Terms, vec!["items.size() > 0"; 2_000].join(" && "), "a value"),
    ];
    rows.into_iter().map(|(kind, text, expected)| Hostile { kind, text, expected }).collect()
}

/// What they work on.
pub(crate) struct Surroundings {
    environment: Environment,
    variables: [Option<Value<'static>>; 2],
}

impl Surroundings {
    pub(crate) fn new() -> Self {
        let mut environment = Environment::new(libraries::kubernetes(), libraries::costs::KUBERNETES);
        environment.declare_type("items", Type::list(Type::Int));
        environment.declare_type("text", Type::String);
        let items = Value::list((0..10_000).map(Value::Int).collect());
        let long = Value::string("a".repeat(100_000));
        Self { environment, variables: [Some(items), Some(long)] }
    }

    /// Compiles and evaluates; the end's text must be as expected.
    pub(crate) fn stop(&self, hostile: &Hostile) {
        let ended = self.end(&hostile.text);
        let shown: String = ended.chars().take(300).collect();
        assert!(ended.contains(hostile.expected), "{}: {shown}", hostile.shown());
    }

    fn end(&self, text: &str) -> String {
        let expression = match self.environment.check(text) {
            Ok(expression) => expression,
            Err(issues) => return issues.to_string(),
        };
        let program = match expression.program() {
            Ok(program) => program,
            Err(error) => return error.to_string(),
        };
        match program.evaluate(&self.variables, Budget::default()).result {
            Err(error) => error.to_string(),
            Ok(_) => "a value".to_owned(),
        }
    }
}
