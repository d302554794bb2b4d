//! How a command ends: the exit codes of the contract, and errors that say what to do next.

use std::fmt;

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Found a problem, or the operation failed.
    Problem = 1,
    /// Wrong usage.
    Usage = 2,
    /// Could not reach or read what was named.
    Unreachable = 3,
    /// Out of time.
    TimedOut = 124,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed. Neither text ever holds secret bytes.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What happened.
    pub(crate) message: String,
    /// What to do next, or "".
    pub(crate) next: String,
}

impl Failure {
    /// The operation failed.
    pub(crate) fn problem(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Problem, message: message.to_string(), next: String::new() }
    }

    /// The command line asks for something that cannot be.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string(), next: String::new() }
    }

    /// What was named could not be reached or read.
    pub(crate) fn unreachable(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Unreachable, message: message.to_string(), next: String::new() }
    }

    /// Out of time.
    pub(crate) fn timed_out(message: impl fmt::Display) -> Self {
        Self { exit: Exit::TimedOut, message: message.to_string(), next: String::new() }
    }

    /// Adds what to do next.
    pub(crate) fn next(mut self, next: impl fmt::Display) -> Self {
        self.next = next.to_string();
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.message)?;
        if !self.next.is_empty() {
            write!(formatter, "\n  {}", self.next)?;
        }
        Ok(())
    }
}
