//! The rules of a definition's schema: whether they compile, and what they may cost.

use std::sync::Arc;

use coffer_lang::cel::declared::{DeclaredType, escape};
use coffer_lang::cel::schemas::declared_type;
use coffer_types::Value;
use coffer_types::validation::field::{FieldError, FieldErrors, Path, Shown, go_json};

use super::rule::{self, Compiled, Known, RuleText, Scope};
use super::schema::{Additional, Schema};
use super::validations::element;

/// Most that one expression may cost by its estimate.
const EXPRESSION: u64 = 10_000_000;
/// Most that all expressions of a schema may cost by their estimates.
const TOTAL: u64 = 100_000_000;
/// How many of the dearest expressions are told.
const DEAREST: usize = 4;
/// The largest request, in bytes: nothing in an object can be larger.
const REQUEST_SIZE: u64 = 3 * 1024 * 1024;

/// What an update knows of the definition that it changes.
#[derive(Clone, Copy)]
pub(super) struct Stored<'s> {
    /// The expressions that it has.
    pub(super) expressions: &'s rule::Stored,
    /// The schema is what it was, so that it is not too dear.
    pub(super) unchanged: bool,
}

/// What is wrong with the rules of a schema that is structural; `found` is what is wrong with it otherwise.
pub(super) fn check(
    tree: &Value,
    schema: &Schema,
    path: &Path,
    found: &[FieldError],
    stored: Stored<'_>,
) -> FieldErrors {
    let mut checks = Checks { found, stored, errors: FieldErrors::new(), total: 0, dearest: Vec::new() };
    let place =
        Place { declared: Declared::Outside, is_resource: true, cardinality: Some(1), uncorrelatable: None };
    checks.walk(tree, schema, path, place);
    let Checks { mut errors, total, dearest, .. } = checks;
    if total > TOTAL {
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        errors.extend(dearest.iter().map(|(at, _)| FieldError::forbidden(at, detail)));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, too_dear(what, total, TOTAL)));
    }
    errors
}

struct Checks<'c> {
    found: &'c [FieldError],
    stored: Stored<'c>,
    errors: FieldErrors,
    total: u64,
    dearest: Vec<(Path, u64)>,
}

#[derive(Clone)]
struct Place {
    declared: Declared,
    /// A whole resource is here.
    is_resource: bool,
    /// How many values of this place an object can have, where limits tell.
    cardinality: Option<u64>,
    /// The list whose items cannot be known again.
    uncorrelatable: Option<Path>,
}

/// The type of a place.
#[derive(Clone)]
enum Declared {
    /// No rule is here or above.
    Outside,
    As(Arc<DeclaredType>),
    /// Rules cannot see the values.
    Undeclarable,
}

impl Declared {
    /// The type of what is below, which is found by `step` or is its own.
    fn below(
        &self,
        step: impl FnOnce(&DeclaredType) -> Option<Arc<DeclaredType>>,
        tree: &Value,
        is_resource: bool,
        has_rules: bool,
    ) -> Self {
        let own = || declared_type(tree, is_resource, "selfType").map_or(Self::Undeclarable, Self::As);
        match self {
            Self::Outside if has_rules => own(),
            Self::Outside => Self::Outside,
            Self::As(declared) => step(declared).map_or_else(own, Self::As),
            Self::Undeclarable => Self::Undeclarable,
        }
    }
}

impl Checks<'_> {
    fn walk(&mut self, tree: &Value, schema: &Schema, path: &Path, mut place: Place) {
        if !rule::has_rules(schema) {
            return;
        }
        if matches!(place.declared, Declared::Outside) {
            let has_rules = schema.validations.is_some();
            place.declared = Declared::Outside.below(|_| None, tree, place.is_resource, has_rules);
        }
        let place = &place;
        let cardinality =
            place.cardinality.zip(repeats(schema)).map(|(here, each)| here.saturating_mul(each));
        let below =
            |step: &dyn Fn(&DeclaredType) -> Option<Arc<DeclaredType>>, tree: &Value, schema: &Schema| {
                let is_resource = schema.embedded_resource;
                let declared = place.declared.below(step, tree, is_resource, schema.validations.is_some());
                Place { declared, is_resource, cardinality, uncorrelatable: place.uncorrelatable.clone() }
            };
        let of_element = |declared: &DeclaredType| element(declared).cloned();
        if let (Additional::Schema(additional), Some(tree)) =
            (&schema.additional, tree.get("additionalProperties"))
        {
            let place = below(&of_element, tree, additional);
            self.walk(tree, additional, &path.child("additionalProperties"), place);
        }
        for (name, property) in &schema.properties {
            let Some(tree) = tree.at(&["properties", name]) else { continue };
            let of_field =
                |declared: &DeclaredType| declared.field(&escape(name)?).map(|field| field.declared.clone());
            let place = below(&of_field, tree, property);
            self.walk(tree, property, &path.child("properties").key(name), place);
        }
        if let (Some(items), Some(tree)) = (schema.items.as_deref(), tree.get("items")) {
            let mut place = below(&of_element, tree, items);
            if place.uncorrelatable.is_none() && schema.list_type.as_deref() != Some("map") {
                place.uncorrelatable = Some(path.clone());
            }
            self.walk(tree, items, &path.child("items"), place);
        }
        if schema.validations.is_some() && !self.is_broken(path) {
            self.rules(tree, schema, &path.child("x-kubernetes-validations"), place);
        }
    }

    /// Whether something else is wrong with the schema here or below.
    fn is_broken(&self, path: &Path) -> bool {
        self.found.iter().any(|error| {
            let rest = error.field.strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    fn rules(&mut self, tree: &Value, schema: &Schema, path: &Path, place: &Place) {
        let Declared::As(declared) = &place.declared else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                          unable to convert structural schema to CEL declarations";
            self.errors.push(FieldError::internal(path, detail));
            return;
        };
        let known = Known::Only(self.stored.expressions);
        let scope = Scope::new(declared, known);
        let most = REQUEST_SIZE / declared.minimum_serialized.saturating_add(1);
        for (index, text) in rule::of(tree).enumerate() {
            let compiled = rule::compile(&text, schema, &scope, known);
            let times = place.cardinality.unwrap_or(most);
            self.rule(&text, &compiled, times, place.uncorrelatable.as_ref(), &path.index(index));
        }
    }

    fn rule(
        &mut self,
        text: &RuleText<'_>,
        compiled: &Compiled,
        times: u64,
        uncorrelatable: Option<&Path>,
        path: &Path,
    ) {
        let (rule_path, message_path) = (path.child("rule"), path.child("messageExpression"));
        let shown = || Shown::verbatim(go_rule(text));
        self.cost("estimated rule cost", &rule_path, compiled.cost.saturating_mul(times));
        if let Some(error) = &compiled.error {
            self.errors.push(FieldError::invalid(&rule_path, shown(), error));
        }
        if let Some(error) = &compiled.message_error {
            self.errors.push(FieldError::invalid(&message_path, shown(), error));
        } else if compiled.message.is_some() {
            self.cost("estimated messageExpression cost", &message_path, compiled.message_cost);
        }
        match (compiled.uses_old_self, text.optional_old_self()) {
            (true, _) => {
                if let Some(list) = uncorrelatable {
                    let detail = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                    );
                    self.errors.push(FieldError::invalid(&rule_path, text.rule(), detail));
                }
            }
            (false, Some(optional)) => {
                let detail = "may not be set if oldSelf is not used in rule";
                self.errors.push(FieldError::invalid(&path.child("optionalOldSelf"), optional, detail));
            }
            (false, None) => {}
        }
    }

    /// Adds a cost to the total; refuses it where it alone is too much.
    fn cost(&mut self, what: &str, path: &Path, cost: u64) {
        if cost > EXPRESSION && !self.stored.unchanged {
            self.errors.push(FieldError::forbidden(path, too_dear(what, cost, EXPRESSION)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL / 100 {
            self.dearest.push((path.clone(), cost));
            self.dearest.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.dearest.truncate(DEAREST);
        }
    }
}

/// How many values can be below one of this schema; none where nothing limits them.
fn repeats(schema: &Schema) -> Option<u64> {
    let limit = |most: Option<i64>| most.map(|most| u64::try_from(most).unwrap_or(0));
    match schema.kind.as_str() {
        "object" if matches!(schema.additional, Additional::Absent) => Some(1),
        "object" => limit(schema.rules.as_ref().and_then(|rules| rules.max_properties)),
        "array" => limit(schema.rules.as_ref().and_then(|rules| rules.max_items)),
        _ => Some(1),
    }
}

fn too_dear(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as Go prints it.
fn go_rule(text: &RuleText<'_>) -> String {
    let quoted = |text: &str| go_json(&Value::from(text));
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        quoted(text.rule()),
        quoted(text.message()),
        quoted(text.message_expression()),
        text.reason().map_or_else(|| "null".to_owned(), quoted),
        quoted(text.field_path()),
        text.optional_old_self().map_or_else(|| "null".to_owned(), |optional| optional.to_string()),
    )
}
