//! How much work one evaluation may do.

/// Most steps of one JSONPath evaluation: values that are looked at.
pub const JSONPATH_STEPS: usize = 100_000;
/// Longest JSONPath expression, in bytes.
pub const JSONPATH_LENGTH: usize = 10_000;
/// Deepest nesting of filters in a JSONPath expression.
pub const JSONPATH_DEPTH: usize = 16;

/// Steps left of one evaluation.
#[derive(Debug)]
pub struct Budget(usize);

/// The budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the evaluation takes too many steps")]
pub struct Exhausted;

impl Budget {
    /// A budget of `steps`.
    pub fn new(steps: usize) -> Self {
        Self(steps)
    }

    /// Takes one step.
    pub fn step(&mut self) -> Result<(), Exhausted> {
        self.0 = self.0.checked_sub(1).ok_or(Exhausted)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends() {
        let mut budget = Budget::new(2);
        assert_eq!([budget.step(), budget.step(), budget.step()], [Ok(()), Ok(()), Err(Exhausted)]);
    }
}
