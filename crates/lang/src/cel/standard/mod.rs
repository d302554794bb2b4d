//! The standard library: operators, sizes, conversions, text, times, optional values.

mod conversions;
mod operators;
mod optional;
mod text;
mod times;

use super::functions::Library;
use super::types::{OPTIONAL, Type};

/// The functions of the language itself and of optional values.
pub(crate) fn library() -> Library {
    let mut functions = operators::functions();
    functions.extend(conversions::functions());
    functions.extend(text::functions());
    functions.extend(times::functions());
    functions.extend(optional::functions());
    let types = vec![Type::opaque(OPTIONAL)];
    Library { name: "cel.lib.std", functions, types, ..Library::default() }
}
