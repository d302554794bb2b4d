//! From source text to a tree, with upstream's errors.
//!
//! The grammar and its recovery from errors are those of the generated parser
//! that upstream uses, so that texts, lines and columns are the same.

pub mod ast;
mod containers;
mod issues;
mod lexer;
mod literal;
pub mod macros;
mod parser;
mod recovery;
mod token;

pub(crate) use issues::Source;
pub use issues::{Issue, Issues};
pub(crate) use parser::parse;
