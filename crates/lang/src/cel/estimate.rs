//! Estimates of sizes and costs, as ranges that saturate.

use super::types::Type;
use super::value::Value;

/// Cost of looking at one character.
pub const STRING_TRAVERSAL: f64 = 0.1;
/// Cost of one character of a regular expression.
pub const REGEX_LENGTH: f64 = 0.25;
/// Cost of making a list.
pub const LIST_CREATE: u64 = 10;
/// Cost of making a map.
pub const MAP_CREATE: u64 = 30;
/// Cost of making an object.
pub const STRUCT_CREATE: u64 = 40;

/// A range of numbers: of sizes or of costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Range {
    /// Anything.
    pub const UNKNOWN: Range = Range { min: 0, max: u64::MAX };

    /// From `min` to `max`.
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// One number.
    pub const fn fixed(number: u64) -> Self {
        Self { min: number, max: number }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Range) -> Range {
        Range { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product.
    #[must_use]
    pub fn times(self, other: Range) -> Range {
        Range { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Each number times `factor`, rounded up.
    #[must_use]
    pub fn times_factor(self, factor: f64) -> Range {
        Range { min: multiply_by(self.min, factor), max: multiply_by(self.max, factor) }
    }

    /// The least range that has both.
    #[must_use]
    pub fn union(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// `number` times `factor`, rounded up; too large is the largest.
pub fn multiply_by(number: u64, factor: f64) -> u64 {
    let product = (number as f64 * factor).ceil();
    if product >= 18_446_744_073_709_551_616.0 { u64::MAX } else { product as u64 }
}

/// What a call may cost and how large its result may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEstimate {
    /// The cost without that of the arguments.
    pub cost: Range,
    /// The result's size, where it can be told.
    pub result_size: Option<Range>,
}

impl CallEstimate {
    /// A cost, and a result of which nothing is known.
    pub fn of(cost: Range) -> Self {
        Self { cost, result_size: None }
    }

    /// A cost and a result of `size`.
    pub fn sized(cost: Range, size: Range) -> Self {
        Self { cost, result_size: Some(size) }
    }
}

/// An argument of a call, as the estimate sees it.
#[derive(Clone)]
pub struct CostNode<'a> {
    /// The way from a variable: field names, `@items`, `@keys`, `@values`, `@indices`.
    pub path: Option<Vec<String>>,
    /// The type that the checker found.
    pub declared: Type,
    /// The size, if the expression tells it.
    pub computed_size: Option<Range>,
    /// The value, if this is a literal.
    pub literal: Option<&'a Value<'static>>,
}

/// Tells sizes from what schemas declare.
pub trait SizeEstimator {
    /// The size of what is at `path`.
    fn size(&self, path: &[String], declared: &Type) -> Option<Range>;
}

/// No sizes are known.
pub struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn size(&self, _: &[String], _: &Type) -> Option<Range> {
        None
    }
}

/// A call whose cost is estimated.
pub struct CallSite<'a> {
    /// The overload's id.
    pub overload: &'a str,
    /// What stands before the dot.
    pub target: Option<&'a CostNode<'a>>,
    /// What stands in the parentheses.
    pub arguments: &'a [CostNode<'a>],
    pub(crate) sizes: &'a dyn SizeEstimator,
}

impl CallSite<'_> {
    /// The size of `node`, or [`Range::UNKNOWN`].
    pub fn size(&self, node: &CostNode<'_>) -> Range {
        node.computed_size
            .or_else(|| self.sizes.size(node.path.as_deref().unwrap_or_default(), &node.declared))
            .unwrap_or(Range::UNKNOWN)
    }

    /// What the list `node` holds, if it is a list (or has parameters otherwise).
    pub fn element<'b>(&self, node: &CostNode<'b>) -> Option<CostNode<'b>> {
        let declared = (*node.declared.parameters().first()?).clone();
        let path = node.path.as_ref().map(|path| {
            let mut path = path.clone();
            path.push("@items".to_owned());
            path
        });
        Some(CostNode { path, declared, computed_size: None, literal: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_saturate() {
        let large = Range::fixed(u64::MAX);
        assert_eq!(large.plus(Range::fixed(1)), large);
        assert_eq!(large.times(Range::fixed(2)), large);
        assert_eq!(large.times_factor(2.0), large);
        assert_eq!(Range::new(1, 5).times_factor(STRING_TRAVERSAL), Range::new(1, 1));
        assert_eq!(Range::new(2, 3).union(Range::new(1, 2)), Range::new(1, 3));
    }
}
