//! Programs: what a checked expression is compiled into, and how it is evaluated.

mod attributes;
mod evaluate;
mod folds;
mod node;
mod plan;

use std::fmt;

use super::check::{self, Checked};
use super::environment::Environment;
use super::error::Error;
use super::estimate::{Range, SizeEstimator};
use super::limits::{self, Memory};
use super::syntax::{self, Issues, Source};
use super::types::Type;
use super::value::Value;

/// An expression whose types fit.
pub struct Expression {
    checked: Checked,
    environment: Environment,
}

/// A compiled expression, to be evaluated any number of times, from any thread.
pub struct Program {
    root: node::Node,
    /// How many variables of comprehensions there are.
    locals: usize,
    result: Type,
}

/// What one evaluation may use.
#[derive(Clone, Copy)]
pub struct Budget<'b> {
    /// The most cost.
    pub cost: u64,
    /// The most memory of its own values, in bytes.
    pub memory: usize,
    /// Asked now and then whether to stop.
    pub interrupted: Option<&'b dyn Fn() -> bool>,
}

impl Default for Budget<'_> {
    fn default() -> Self {
        Self { cost: limits::PER_CALL, memory: limits::MEMORY, interrupted: None }
    }
}

/// Gives variables their values.
pub trait Variables<'v> {
    /// The value of the variable in `slot`, if there is one.
    ///
    /// # Errors
    /// When it has none for a reason, which is that of the evaluation then.
    fn get(&self, slot: usize) -> Result<Option<Value<'v>>, Error>;
}

/// Values in the places of their variables.
struct Slots<'a, 'v>(&'a [Option<Value<'v>>]);

impl<'v> Variables<'v> for Slots<'_, 'v> {
    fn get(&self, slot: usize) -> Result<Option<Value<'v>>, Error> {
        Ok(self.0.get(slot).cloned().flatten())
    }
}

/// What came of an evaluation.
pub struct Evaluation<'v> {
    /// The value.
    pub result: Result<Value<'v>, Error>,
    /// What it cost, also where it failed.
    pub cost: u64,
}

impl Environment {
    /// Parses `text` and finds its types.
    ///
    /// # Errors
    /// All that is wrong, with upstream's texts.
    pub fn check(&self, text: &str) -> Result<Expression, Issues> {
        let source = Source::new(text);
        let tree = syntax::parse(&source, &self.macros)?;
        let checked = check::check(self, &source, tree.root, tree.offsets)?;
        Ok(Expression { checked, environment: self.clone() })
    }
}

impl Expression {
    /// The type of the value.
    pub fn result_type(&self) -> &Type {
        self.checked.type_of(&self.checked.root)
    }

    /// Whether the variable `name` stands in the expression.
    pub fn uses(&self, name: &str) -> bool {
        let slot = self.environment.variables.get(name).map(|variable| variable.slot);
        let is_it = |reference: &check::Reference| matches!(reference, check::Reference::Variable(place) if Some(*place) == slot);
        self.checked.references.iter().any(is_it)
    }

    /// What one evaluation may cost, with the sizes that `sizes` tells.
    pub fn estimate(&self, sizes: &dyn SizeEstimator) -> Range {
        check::estimate(&self.environment, &self.checked, sizes)
    }

    /// Compiles the expression; constants are folded, and literal patterns compiled.
    ///
    /// # Errors
    /// When a constant part has no value.
    pub fn program(&self) -> Result<Program, Error> {
        let plan::Planned { root, locals } = plan::plan(&self.environment, &self.checked)?;
        Ok(Program { root, locals, result: self.result_type().clone() })
    }
}

impl Program {
    /// The type of the value.
    pub fn result_type(&self) -> &Type {
        &self.result
    }

    /// Evaluates with variables that are asked for when they are used.
    pub fn evaluate_with<'v>(&'v self, variables: &dyn Variables<'v>, budget: Budget<'_>) -> Evaluation<'v> {
        let mut evaluator =
            evaluate::Evaluator::new(variables, self.locals, Memory::new(budget.memory), budget);
        let result = evaluator.evaluate(&self.root);
        Evaluation { result, cost: evaluator.cost() }
    }

    /// Evaluates with `variables` in the places that the environment gave them.
    pub fn evaluate<'v>(&'v self, variables: &[Option<Value<'v>>], budget: Budget<'_>) -> Evaluation<'v> {
        self.evaluate_with(&Slots(variables), budget)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Program({})", self.result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::functions::CallCosts;

    fn evaluate(text: &str, budget: Budget<'_>) -> (Result<String, String>, u64) {
        let environment = Environment::new(Vec::new(), CallCosts::NONE);
        let program = environment.check(text).expect("types fit").program().expect("constants have values");
        let evaluation = program.evaluate(&[], budget);
        let result = evaluation.result.map(|value| value.in_messages()).map_err(|error| error.to_string());
        (result, evaluation.cost)
    }

    #[test]
    fn expressions_have_values_and_costs() {
        let cases = [
            ("1 + 2 * 3", "7", 2),
            ("[1, 2, 3].filter(x, x > 1).map(x, x * 2)", "[4, 6]", 62),
            ("[1, 2, 3].exists(i, v, i == 1 && v == 2)", "true", 18),
            ("{'a': 1}.transformMap(k, v, v + 1)", "{a: 2}", 6),
            ("1 / 0 == 1 || true", "true", 2),
            ("duration('1s') in {duration('1s'): 1}", "true", 1),
            ("timestamp('2023-01-01T01:00:00+01:00') in {timestamp('2023-01-01T00:00:00Z'): 1}", "false", 1),
            ("{duration('1s'): 1}.exists(k, v, v == 1)", "true", 7),
            ("{[1]: 1}.exists(k, v, v == 1)", "true", 7),
        ];
        for (text, value, cost) in cases {
            let (found, found_cost) = evaluate(text, Budget::default());
            assert_eq!((found.as_deref(), found_cost), (Ok(value), cost), "{text}");
        }
    }

    #[test]
    fn operators_that_an_operand_does_not_have_are_named_unless_it_has_methods() {
        let cases = [
            ("dyn([1]) - 1", "no such overload: _-_"),
            ("dyn(true) - 1", "no such overload: _-_"),
            ("dyn('a') - 1", "no such overload"),
            ("dyn('a') * 2", "no such overload"),
            ("dyn('a') % 2", "no such overload"),
            ("dyn(timestamp(0)) * 2", "no such overload"),
            ("dyn(duration('1s')) / 2", "no such overload"),
            ("-dyn('a')", "no such overload"),
        ];
        for (text, error) in cases {
            assert_eq!(evaluate(text, Budget::default()), (Err(error.to_owned()), 1), "{text}");
        }
    }

    #[test]
    fn a_map_can_have_keys_of_bytes() {
        let (found, _) = evaluate("{b'a': 7}.size() == 1 && !(b'a' in {b'a': 7})", Budget::default());
        assert_eq!(found.as_deref(), Ok("true"));
    }

    #[test]
    fn variables_that_stand_in_an_expression_are_known() {
        let mut environment = Environment::new(Vec::new(), CallCosts::NONE);
        environment.declare_type("self", Type::Dyn);
        environment.declare_type("oldSelf", Type::Dyn);
        let uses = |text: &str, name: &str| environment.check(text).expect("types fit").uses(name);
        assert!(uses("self.oldSelf == 1", "self") && !uses("self.oldSelf == 1", "oldSelf"));
        assert!(uses("[1].all(x, has(oldSelf.a))", "oldSelf") && !uses("true", "self"));
    }

    #[test]
    fn budgets_end_an_evaluation_and_nothing_absorbs_that() {
        let text = "[1, 2, 3].all(x, [1, 2, 3].all(y, x + y < 10)) || true";
        let (result, _) = evaluate(text, Budget { cost: 20, ..Budget::default() });
        assert_eq!(result, Err("operation cancelled: actual cost limit exceeded".to_owned()));
        let long =
            "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, true)))";
        let (result, _) = evaluate(long, Budget { interrupted: Some(&|| true), ..Budget::default() });
        assert_eq!(result, Err("operation interrupted".to_owned()));
        let growing = "[1, 2].map(x, 'abcdefghijabcdefghij' + string(x))";
        let (result, _) = evaluate(growing, Budget { memory: 100, ..Budget::default() });
        assert!(result.is_err_and(|error| error.contains("memory")));
    }
}
