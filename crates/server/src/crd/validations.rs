//! The rules of a schema, compiled once, and what they say against an object.
//!
//! Rules see only objects that pass the schema. Their cost is counted: one evaluation and all
//! evaluations for an object each have a budget, and running out of one ends the validation with an error.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_lang::cel::declared::{DeclaredType, Shape, escape};
use coffer_lang::cel::error::Error;
use coffer_lang::cel::limits::PER_OBJECT;
use coffer_lang::cel::program::{Budget, Program};
use coffer_lang::cel::schemas::declared_type;
use coffer_lang::cel::value::Value as CelValue;
use coffer_types::Value;
use coffer_types::validation::field::{ErrorKind, FieldError, FieldErrors, Path, Shown};

use super::correlation::{Correlation, KeyedItems, Pair};
use super::rule::{self, Compiled, Known, Scope};
use super::schema::{Additional, Schema};

/// Most bytes of a message that an expression makes.
const MESSAGE: usize = 5 * 1024;
/// How upstream prints the path of nothing.
const NO_FIELD: &str = "<nil>";

/// The rules of one node of a schema and of those below it.
#[derive(Debug)]
pub(crate) struct Validations {
    rules: Vec<Rule>,
    /// What the rules see; none where there are none here.
    declared: Option<Arc<DeclaredType>>,
    /// A rule here compares with what was.
    uses_old_self: bool,
    properties: BTreeMap<String, Validations>,
    additional: Option<Box<Validations>>,
    items: Option<Box<Validations>>,
}

struct Rule {
    compiled: Compiled,
    name: String,
    message: Option<String>,
    message_expression: String,
    reason: Option<String>,
    optional_old_self: bool,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Rule({})", self.name)
    }
}

/// What rules say against an object.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// What is wrong with it.
    pub(crate) errors: FieldErrors,
    /// What was wrong with it before, and has not changed.
    pub(crate) warnings: Vec<String>,
}

impl Validations {
    /// Compiles the rules of a schema, which is read from `tree`; none if there are none. `root` says
    /// that it is that of a whole resource.
    pub(crate) fn compile(tree: &Value, schema: &Schema, root: bool) -> Option<Self> {
        if !rule::has_rules(schema) {
            return None;
        }
        let declared = declared_type(tree, root || schema.embedded_resource, "selfType");
        Self::build(tree, schema, declared.as_ref())
    }

    fn build(tree: &Value, schema: &Schema, declared: Option<&Arc<DeclaredType>>) -> Option<Self> {
        if !rule::has_rules(schema) {
            return None;
        }
        let mut rules = Vec::new();
        if schema.validations.is_some() {
            let scope = declared.map(|declared| Scope::new(declared, Known::All));
            rules.extend(rule::of(tree).map(|text| {
                let compiled = match &scope {
                    Some(scope) => rule::compile(&text, schema, scope, Known::All),
                    None => Compiled { error: Some(UNDECLARED.to_owned()), ..Compiled::default() },
                };
                Rule {
                    compiled,
                    name: text.name().to_owned(),
                    message: (!text.message().is_empty()).then(|| text.message().trim().to_owned()),
                    message_expression: text.message_expression().to_owned(),
                    reason: text.reason().map(str::to_owned),
                    optional_old_self: text.optional_old_self().unwrap_or(false),
                }
            }));
        }
        let uses_old_self = rules.iter().any(|rule| rule.compiled.uses_old_self);
        let below = |tree: Option<&Value>, schema: &Schema| {
            Self::build(tree?, schema, declared.and_then(|declared| element(declared))).map(Box::new)
        };
        let items = schema.items.as_deref().and_then(|items| below(tree.get("items"), items));
        let additional = match &schema.additional {
            Additional::Schema(additional) => below(tree.get("additionalProperties"), additional),
            Additional::Absent | Additional::Flag(_) => None,
        };
        let mut properties = BTreeMap::new();
        for (name, property) in schema.properties.iter().filter(|(_, property)| rule::has_rules(property)) {
            let Some(tree) = tree.at(&["properties", name]) else { continue };
            // Fields that expressions cannot see are left out, with all that is below.
            let Some(declared) = declared_field(declared, name, tree, property) else { continue };
            if let Some(built) = Self::build(tree, property, Some(&declared)) {
                properties.insert(name.clone(), built);
            }
        }
        let declared = declared.filter(|_| !rules.is_empty()).cloned();
        Some(Self { rules, declared, uses_old_self, properties, additional, items })
    }

    /// What the rules say against `object`, which was `old`.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>, schema: &Schema) -> Said {
        let pair = old.map(|old| Pair::new(object, old, schema));
        let correlation = pair.as_ref().map(Correlation::root).unwrap_or_default();
        let mut run = Run::new(PER_OBJECT as i64);
        run.node(self, schema, Place::root(), object, old, correlation);
        run.said
    }

    /// What the rules say against a default at `path`, as a value that stays and as one that comes; takes what that
    /// costs from `budget`.
    pub(super) fn validate_default(
        &self,
        default: &Value,
        schema: &Schema,
        path: &str,
        budget: &mut i64,
    ) -> FieldErrors {
        let mut found = FieldErrors::new();
        let start = *budget;
        for old in [Some(default), None] {
            let mut run = Run::new(start);
            run.node(self, schema, Place(path.to_owned()), default, old, Correlation::default());
            *budget = run.budget.min(*budget);
            found = run.said.errors;
            if !found.is_empty() {
                break;
            }
        }
        found
    }
}

const UNDECLARED: &str = "failed to convert to declType for CEL validation rules";

/// The type of a list's items or of a map's values.
pub(super) fn element(declared: &DeclaredType) -> Option<&Arc<DeclaredType>> {
    match &declared.shape {
        Shape::List { element, .. } | Shape::Map { element } => Some(element),
        _ => None,
    }
}

/// The type of a property, if its object's expressions see it; that of one which they cannot name is
/// its own.
fn declared_field(
    declared: Option<&Arc<DeclaredType>>,
    name: &str,
    tree: &Value,
    schema: &Schema,
) -> Option<Arc<DeclaredType>> {
    match escape(name) {
        Some(escaped) => Some(declared?.field(&escaped)?.declared.clone()),
        None => declared_type(tree, schema.embedded_resource, "selfType"),
    }
}

/// Where in the object a node's value is.
struct Place(String);

impl Place {
    fn root() -> Self {
        Self(String::new())
    }

    fn child(&self, name: &str) -> Self {
        Self(if self.0.is_empty() { name.to_owned() } else { format!("{}.{name}", self.0) })
    }

    fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    fn path(&self) -> Path {
        Path::new(if self.0.is_empty() { NO_FIELD } else { &self.0 })
    }
}

/// One validation.
struct Run {
    said: Said,
    /// What is left; negative once nothing more may be evaluated.
    budget: i64,
}

/// `self` and `oldSelf` of the rules of a node.
struct Variables<'v> {
    new: Result<CelValue<'v>, Error>,
    old: Option<Result<CelValue<'v>, Error>>,
}

impl<'v> Variables<'v> {
    fn values(&self, optional: bool) -> Result<[Option<CelValue<'v>>; 2], Error> {
        let old = self.old.clone().transpose()?;
        let old = if optional { Some(CelValue::Optional(old.map(Arc::new))) } else { old };
        Ok([Some(self.new.clone()?), old])
    }
}

/// Why there is no message.
enum NoMessage {
    /// The expression has none, and the rule's own is told.
    Unusable,
    /// Nothing more may be evaluated.
    Ended(String),
}

impl Run {
    fn new(budget: i64) -> Self {
        Self { said: Said::default(), budget }
    }

    fn node<'v>(
        &mut self,
        node: &Validations,
        schema: &'v Schema,
        place: Place,
        value: &'v Value,
        old: Option<&'v Value>,
        correlation: Correlation<'_, 'v>,
    ) {
        if value.is_null() {
            return;
        }
        self.rules(node, schema, &place, value, old.filter(|old| !old.is_null()), correlation);
        match value {
            Value::Array(items) => {
                let (Some(below), Some(schema_below)) = (&node.items, schema.items.as_deref()) else {
                    return;
                };
                let old = KeyedItems::new(schema, old.and_then(Value::as_array).unwrap_or_default());
                for (index, item) in items.iter().enumerate() {
                    if self.budget < 0 {
                        return;
                    }
                    let pair = correlation.item(index);
                    let correlation = correlation.below(pair.as_ref());
                    self.node(below, schema_below, place.index(index), item, old.get(item), correlation);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let (below, schema, place) = match (node.properties.get(name), &node.additional) {
                        (Some(below), _) => match schema.property(name) {
                            Some(property) => (below, property, place.child(name)),
                            None => continue,
                        },
                        (None, Some(below)) => match &schema.additional {
                            Additional::Schema(additional) => (&**below, &**additional, place.key(name)),
                            Additional::Absent | Additional::Flag(_) => continue,
                        },
                        (None, None) => continue,
                    };
                    if self.budget < 0 {
                        return;
                    }
                    let old = old.and_then(|old| old.get(name));
                    // The type of the object itself is the request's, whatever it was.
                    if correlation.is_root() && matches!(name.as_str(), "apiVersion" | "kind") {
                        self.node(below, schema, place, member, old, Correlation::default());
                        continue;
                    }
                    let pair = correlation.member(name);
                    self.node(below, schema, place, member, old, correlation.below(pair.as_ref()));
                }
            }
            _ => {}
        }
    }

    fn rules<'v>(
        &mut self,
        node: &Validations,
        schema: &Schema,
        place: &Place,
        value: &'v Value,
        old: Option<&'v Value>,
        correlation: Correlation<'_, '_>,
    ) {
        if self.budget < 0 || node.rules.is_empty() {
            return;
        }
        let invalid = |detail: String| FieldError::invalid(&place.path(), &schema.kind, detail);
        let Some(declared) = &node.declared else {
            self.said.errors.push(invalid(format!("rule compiler initialization error: {UNDECLARED}")));
            return;
        };
        if self.budget == 0 {
            self.end(invalid(OUT_OF_BUDGET.to_owned()));
            return;
        }
        let variables = Variables {
            new: CelValue::view(value, declared),
            old: old.filter(|_| node.uses_old_self).map(|old| CelValue::view(old, declared)),
        };
        for rule in &node.rules {
            if let Some(error) = &rule.compiled.error {
                self.said.errors.push(invalid(format!("rule compile error: {error}")));
                continue;
            }
            let Some(program) = &rule.compiled.program else { continue };
            if rule.compiled.uses_old_self && old.is_none() && !rule.optional_old_self {
                continue;
            }
            let (result, cost) = evaluate(program, &variables, rule.optional_old_self);
            if !self.charge(cost) {
                self.end(invalid(OUT_OF_BUDGET.to_owned()));
                return;
            }
            match result {
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => {
                    self.refuse(rule, schema, place, value, &variables, correlation);
                    if self.budget < 0 {
                        return;
                    }
                }
                Err(error) if error.ends_evaluation() => {
                    let detail = format!(
                        "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.name
                    );
                    self.end(invalid(detail));
                    return;
                }
                Err(error) if error.message().starts_with("no such overload") => {
                    self.said.errors.push(invalid(format!(
                        "'{error}': call arguments did not match a supported operator, function or macro signature for \
                         rule: {}",
                        rule.name
                    )));
                }
                Err(error) => {
                    self.said.errors.push(invalid(format!("{error} evaluating rule: {}", rule.name)));
                }
            }
        }
    }

    /// A rule does not hold.
    fn refuse(
        &mut self,
        rule: &Rule,
        schema: &Schema,
        place: &Place,
        value: &Value,
        variables: &Variables<'_>,
        correlation: Correlation<'_, '_>,
    ) {
        let path = match rule.compiled.field_path.as_str() {
            "" => place.path(),
            below => place.child(below).path(),
        };
        let mut ended = None;
        let message = rule.compiled.message.as_ref().and_then(|program| {
            match self.message(program, &rule.message_expression, variables) {
                Ok(message) => Some(message),
                Err(NoMessage::Unusable) => None,
                Err(NoMessage::Ended(why)) => {
                    ended = Some(why);
                    None
                }
            }
        });
        let error = match ended {
            Some(why) => FieldError::invalid(&path, &schema.kind, why),
            None => {
                let detail = message
                    .or_else(|| rule.message.clone())
                    .unwrap_or_else(|| format!("failed rule: {}", rule.name));
                let shown = match schema.kind.as_str() {
                    "object" | "array" => Shown::omitted(),
                    _ => Shown::from(value),
                };
                match rule.reason.as_deref() {
                    Some("FieldValueForbidden") => FieldError::forbidden(&path, detail),
                    Some("FieldValueRequired") => FieldError::required(&path, detail),
                    Some("FieldValueDuplicate") => FieldError::duplicate(&path, shown),
                    _ => FieldError::invalid(&path, shown, detail),
                }
            }
        };
        if !rule.compiled.uses_old_self && correlation.is_same() {
            self.said.warnings.push(error.to_string());
        } else {
            self.said.errors.push(error);
        }
    }

    fn message(
        &mut self,
        program: &Program,
        text: &str,
        variables: &Variables<'_>,
    ) -> Result<String, NoMessage> {
        // As upstream: a message's `oldSelf` is never optional.
        let (result, cost) = evaluate(program, variables, false);
        if !self.charge(cost) {
            self.budget = -1;
            return Err(NoMessage::Ended(
                "messageExpression evaluation failed due to running out of cost budget, no further validation rules \
                 will be run"
                    .to_owned(),
            ));
        }
        match result {
            Ok(CelValue::String(message)) => {
                let message = message.trim();
                if message.is_empty() || message.len() > MESSAGE || message.contains('\n') {
                    return Err(NoMessage::Unusable);
                }
                Ok(message.to_owned())
            }
            Err(error) if error.ends_evaluation() => {
                self.budget = -1;
                Err(NoMessage::Ended(format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                    crate::quote(text)
                )))
            }
            Ok(_) | Err(_) => Err(NoMessage::Unusable),
        }
    }

    /// Takes a cost from the budget, if that much is left.
    fn charge(&mut self, cost: u64) -> bool {
        match i64::try_from(cost).ok().filter(|cost| *cost <= self.budget) {
            Some(cost) => self.budget -= cost,
            None => return false,
        }
        true
    }

    fn end(&mut self, error: FieldError) {
        self.said.errors.push(error);
        self.budget = -1;
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

fn evaluate<'v>(
    program: &'v Program,
    variables: &Variables<'v>,
    optional: bool,
) -> (Result<CelValue<'v>, Error>, u64) {
    match variables.values(optional) {
        Ok(values) => {
            let evaluation = program.evaluate(&values, Budget::default());
            (evaluation.result, evaluation.cost)
        }
        // Looking at what does not fit costs as much as looking at what does.
        Err(error) => (Err(error), 1),
    }
}

/// Whether a schema has rules.
pub(crate) fn has_any(schema: &Schema) -> bool {
    rule::has_rules(schema)
}

/// What an object that fails its schema is told of the rules, if what is wrong keeps them from being checked.
pub(crate) fn blocked(errors: &FieldErrors) -> Option<FieldError> {
    let blocks = |error: &FieldError| {
        matches!(
            error.kind,
            ErrorKind::NotSupported
                | ErrorKind::Required
                | ErrorKind::TooLong
                | ErrorKind::TooMany
                | ErrorKind::TypeInvalid
        )
    };
    errors.iter().any(blocks).then(|| {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                      errors to complete validation";
        FieldError::invalid(&Path::new(NO_FIELD), Shown::verbatim("null"), detail)
    })
}
