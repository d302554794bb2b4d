//! How much one compilation or evaluation may do.

use std::sync::Arc;

use regex::Regex;

use super::error::Error;

/// Most cost of one evaluation.
pub const PER_CALL: u64 = 1_000_000;
/// Most cost of all evaluations for one object.
pub const PER_OBJECT: u64 = 10_000_000;
/// Most cost of all match conditions of one webhook or policy.
pub const MATCH_CONDITIONS: u64 = 2_500_000;
/// Iterations of comprehensions between two looks at the interruption.
pub const INTERRUPT_EVERY: u64 = 100;
/// Most that one evaluation's own values hold, in bytes: more than the text in ASCII that its cost allows.
pub const MEMORY: usize = 12 << 20;
/// Deepest nesting of an expression's source.
pub const RECURSION: usize = 250;
/// Most parts of an expression that a macro may still be expanded in: some repeat what stands before
/// the dot, so that a chain of them doubles the whole with each link.
pub const PARTS: usize = 50_000;
/// Longest source of an expression, in characters.
pub const SOURCE: usize = 100_000;

/// What an evaluation's own values may still take.
#[derive(Debug)]
pub struct Memory {
    left: usize,
}

impl Memory {
    /// Memory for `bytes`.
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes }
    }

    /// Takes `bytes`.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        self.left = self.left.checked_sub(bytes).ok_or_else(Error::memory_limit)?;
        Ok(())
    }
    /// Takes what a pattern's compiled form counts for.
    ///
    /// # Errors
    /// When `pattern` is none, or fewer bytes are left.
    pub(crate) fn compile(&mut self, pattern: &str) -> Result<Arc<Regex>, Error> {
        if self.left == 0 {
            return Err(Error::memory_limit());
        }
        let (compiled, size) = super::regex::compile(pattern);
        // Also what fails, or is not kept, took its time; what comes after too much is not even tried.
        if let Err(error) = self.charge(size) {
            self.left = 0;
            return Err(error);
        }
        compiled.map(Arc::new).map_err(Error::new)
    }
}
