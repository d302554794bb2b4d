//! The libraries of functions that Kubernetes adds to the standard one: a file each.
//!
//! [`kubernetes`] has those of every environment of 1.37, [`mutation`] what
//! mutations have besides; [`costs::KUBERNETES`] is what calls of them cost.

mod addresses;
pub mod authorizer;
mod cidr;
pub mod costs;
mod extended_lists;
mod format_string;
mod formats;
mod ip;
mod json_patch;
mod lists;
pub mod quantity;
mod regex;
pub mod semver;
mod sets;
mod strings;
mod two_variables;
pub mod url;
mod urls;

use super::error::Error;
use super::functions::{Context, Library};
use super::types::Type;
use super::value::{List, Value};

pub use addresses::{Cidr, Ip};
pub use formats::Format;

/// The libraries of every environment of Kubernetes 1.37 beside the standard library and optionals.
pub fn kubernetes() -> Vec<Library> {
    vec![
        urls::library(),
        regex::library(),
        authorizer::library(),
        quantity::library(),
        strings::library(),
        sets::library(),
        ip::library(),
        cidr::library(),
        formats::library(),
        two_variables::library(),
        semver::library(),
        extended_lists::library(),
        lists::library(),
    ]
}

/// What mutations have besides.
pub fn mutation() -> Library {
    json_patch::library()
}

/// The types whose values have an order, with the names that overloads call them by.
const COMPARABLE: [(&str, Type); 8] = [
    ("int", Type::Int),
    ("uint", Type::Uint),
    ("double", Type::Double),
    ("bool", Type::Bool),
    ("duration", Type::Duration),
    ("timestamp", Type::Timestamp),
    ("string", Type::String),
    ("bytes", Type::Bytes),
];

/// Whether the value has an order.
fn is_comparable(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Bool(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::String(_)
            | Value::Bytes(_)
    )
}

/// Text that the evaluation makes, charged for.
fn made<'v>(context: &mut Context<'_>, text: String) -> Result<Value<'v>, Error> {
    context.charge(text.len())?;
    Ok(Value::string(text))
}

/// A list that the evaluation makes, charged for.
fn made_list<'v>(context: &mut Context<'_>, items: Vec<Value<'v>>) -> Result<Value<'v>, Error> {
    context.charge(items.len().saturating_mul(size_of::<Value<'_>>()))?;
    Ok(Value::List(List::new(items)))
}
