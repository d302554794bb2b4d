//! Keys within the paths of JSON patches.

use super::made;
use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::Value;

pub(super) fn library() -> Library {
    Library {
        name: "kubernetes.jsonpatch",
        functions: vec![Function::new(
            "jsonpatch.escapeKey",
            vec![Overload::global("string_jsonpatch_escapeKey_string", [Type::String], Type::String, escape)],
        )],
        ..Library::default()
    }
}

fn escape<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let key = arguments[0].as_text()?;
    context.charge(key.len())?;
    made(context, key.replace('~', "~0").replace('/', "~1"))
}
