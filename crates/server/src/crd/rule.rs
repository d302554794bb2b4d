//! One rule of `x-kubernetes-validations`, compiled.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use coffer_lang::cel::declared::DeclaredType;
use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::libraries::{self, costs};
use coffer_lang::cel::program::Program;
use coffer_lang::cel::schemas::SchemaSizes;
use coffer_lang::cel::types::Type;
use coffer_types::Value;

use super::field_path;
use super::schema::{Additional, Schema};

/// What only stored expressions may use: it came with this version, and the version before could not
/// read a definition with it.
const NEWER: [&str; 1] = ["includes"];

/// A rule as the definition has it.
pub(super) struct RuleText<'t>(pub(super) &'t Value);

impl<'t> RuleText<'t> {
    pub(super) fn rule(&self) -> &'t str {
        self.0.str_at(&["rule"])
    }

    pub(super) fn message(&self) -> &'t str {
        self.0.str_at(&["message"])
    }

    pub(super) fn message_expression(&self) -> &'t str {
        self.0.str_at(&["messageExpression"])
    }

    pub(super) fn reason(&self) -> Option<&'t str> {
        self.0.get("reason").and_then(Value::as_str)
    }

    pub(super) fn field_path(&self) -> &'t str {
        self.0.str_at(&["fieldPath"])
    }

    pub(super) fn optional_old_self(&self) -> Option<bool> {
        self.0.get("optionalOldSelf").and_then(Value::as_bool)
    }

    /// What errors call the rule.
    pub(super) fn name(&self) -> &'t str {
        if self.message().is_empty() { self.rule().trim() } else { self.message().trim() }
    }
}

/// The rules of one node of a schema.
pub(super) fn of(tree: &Value) -> impl Iterator<Item = RuleText<'_>> {
    let rules = tree.get("x-kubernetes-validations").and_then(Value::as_array).unwrap_or_default();
    rules.iter().map(RuleText)
}

/// Whether a schema has a rule anywhere.
pub(super) fn has_rules(schema: &Schema) -> bool {
    schema.validations.is_some()
        || schema.items.as_deref().is_some_and(has_rules)
        || matches!(&schema.additional, Additional::Schema(below) if has_rules(below))
        || schema.properties.values().any(has_rules)
}

/// Expressions of a stored definition.
#[derive(Default)]
pub(super) struct Stored {
    rules: HashSet<String>,
    messages: HashSet<String>,
}

impl Stored {
    /// Adds those of a schema.
    pub(super) fn add(&mut self, schema: &Schema) {
        let rules = schema.validations.as_ref().and_then(Value::as_array).unwrap_or_default();
        for rule in rules.iter().map(RuleText) {
            self.rules.insert(rule.rule().to_owned());
            if !rule.message_expression().is_empty() {
                self.messages.insert(rule.message_expression().to_owned());
            }
        }
        let additional = match &schema.additional {
            Additional::Schema(schema) => Some(&**schema),
            Additional::Absent | Additional::Flag(_) => None,
        };
        let below = schema.items.as_deref().into_iter().chain(additional).chain(schema.nested());
        for schema in below.chain(schema.properties.values()) {
            self.add(schema);
        }
    }
}

/// Which expressions may use what only stored ones may.
#[derive(Clone, Copy)]
pub(super) enum Known<'s> {
    /// All of them.
    All,
    /// These.
    Only(&'s Stored),
}

impl Known<'_> {
    fn rule(self, text: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(stored) => stored.rules.contains(text),
        }
    }

    fn message(self, text: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(stored) => stored.messages.contains(text),
        }
    }
}

/// What the rules of one node see.
pub(super) struct Scope {
    declared: Arc<DeclaredType>,
    known: Environments,
    fresh: Option<Environments>,
}

struct Environments {
    plain: Environment,
    optional: Environment,
}

static STORED: LazyLock<Environment> =
    LazyLock::new(|| Environment::new(libraries::kubernetes(), costs::KUBERNETES));

static FRESH: LazyLock<Environment> = LazyLock::new(|| {
    let mut libraries = libraries::kubernetes();
    for library in &mut libraries {
        library.functions.retain(|function| !NEWER.contains(&&*function.name));
    }
    Environment::new(libraries, costs::KUBERNETES)
});

impl Environments {
    fn of(base: &Environment, declared: &Arc<DeclaredType>) -> Self {
        let mut base = base.clone();
        base.declare("self", declared.clone());
        let (mut plain, mut optional) = (base.clone(), base);
        plain.declare("oldSelf", declared.clone());
        optional.declare_type("oldSelf", Type::optional(declared.cel.clone()));
        Self { plain, optional }
    }

    fn pick(&self, optional: bool) -> &Environment {
        if optional { &self.optional } else { &self.plain }
    }
}

impl Scope {
    /// What the rules of a node of this type see.
    pub(super) fn new(declared: &Arc<DeclaredType>, known: Known<'_>) -> Self {
        let fresh = matches!(known, Known::Only(_)).then(|| Environments::of(&FRESH, declared));
        Self { declared: declared.clone(), known: Environments::of(&STORED, declared), fresh }
    }

    fn environment(&self, known: bool, optional: bool) -> &Environment {
        let environments = if known { &self.known } else { self.fresh.as_ref().unwrap_or(&self.known) };
        environments.pick(optional)
    }
}

/// What came of compiling a rule. An empty one has neither a program nor an error.
#[derive(Default)]
pub(super) struct Compiled {
    pub(super) program: Option<Program>,
    pub(super) error: Option<String>,
    /// The rule compares with what was.
    pub(super) uses_old_self: bool,
    /// The most that one evaluation costs.
    pub(super) cost: u64,
    pub(super) message: Option<Program>,
    pub(super) message_error: Option<String>,
    pub(super) message_cost: u64,
    /// The field that errors are about, below the node's own.
    pub(super) field_path: String,
}

/// Compiles a rule of `schema`.
pub(super) fn compile(rule: &RuleText<'_>, schema: &Schema, scope: &Scope, known: Known<'_>) -> Compiled {
    let mut compiled = Compiled::default();
    let text = rule.rule();
    if text.trim().is_empty() {
        return compiled;
    }
    let optional = rule.optional_old_self().unwrap_or(false);
    let sizes = SchemaSizes(&scope.declared);
    let expression = match scope.environment(known.rule(text), optional).check(text) {
        Ok(expression) => expression,
        Err(issues) => {
            compiled.error = Some(format!("compilation failed: {issues}"));
            return compiled;
        }
    };
    if *expression.result_type() != Type::Bool {
        compiled.error = Some("cel expression must evaluate to a bool".to_owned());
        return compiled;
    }
    compiled.uses_old_self = expression.uses("oldSelf");
    match expression.program() {
        Ok(program) => compiled.program = Some(program),
        Err(error) => {
            compiled.error = Some(format!("program instantiation failed: {error}"));
            return compiled;
        }
    }
    compiled.cost = expression.estimate(&sizes).max;
    let text = rule.message_expression();
    if !text.is_empty() {
        let environment = scope.environment(known.message(text), optional);
        match compile_message(text, environment, &sizes) {
            Ok((program, cost)) => (compiled.message, compiled.message_cost) = (Some(program), cost),
            Err(error) => {
                compiled.message_error = Some(error);
                return compiled;
            }
        }
    }
    if !rule.field_path().is_empty() {
        compiled.field_path = field_path::normalize(rule.field_path(), schema).unwrap_or_default();
    }
    compiled
}

fn compile_message(
    text: &str,
    environment: &Environment,
    sizes: &SchemaSizes<'_>,
) -> Result<(Program, u64), String> {
    let expression = environment
        .check(text)
        .map_err(|issues| format!("messageExpression compilation failed: {issues}"))?;
    if *expression.result_type() != Type::String {
        return Err("messageExpression must evaluate to a string".to_owned());
    }
    let program =
        expression.program().map_err(|error| format!("messageExpression instantiation failed: {error}"))?;
    Ok((program, expression.estimate(sizes).max))
}
