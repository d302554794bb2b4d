//! What the macros over two variables put maps together with.

use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::{Entries, Map, Value};

pub(super) fn library() -> Library {
    let (key, value) = (Type::param("K"), Type::param("V"));
    let map = Type::map(key.clone(), value.clone());
    Library {
        name: "cel.lib.ext.comprev2",
        functions: vec![Function::new(
            "cel.@mapInsert",
            vec![
                Overload::global(
                    "@mapInsert_map_key_value",
                    [map.clone(), key, value],
                    map.clone(),
                    |context, arguments| {
                        let mut entries = begun(context, &arguments[0], 1)?;
                        insert(&mut entries, arguments[1].clone(), arguments[2].clone())?;
                        Ok(Value::Map(Map::new(entries)))
                    },
                ),
                Overload::global(
                    "@mapInsert_map_map",
                    [map.clone(), map.clone()],
                    map,
                    |context, arguments| {
                        let Value::Map(update) = &arguments[1] else { return Err(Error::no_such_overload()) };
                        let mut entries = begun(context, &arguments[0], update.len())?;
                        for (key, value) in update.entries()? {
                            insert(&mut entries, key, value)?;
                        }
                        Ok(Value::Map(Map::new(entries)))
                    },
                ),
            ],
        )],
        ..Library::default()
    }
}

/// A copy of the map for `more` entries, which alone are charged for: the map that is copied goes.
fn begun<'v>(context: &mut Context<'_>, map: &Value<'v>, more: usize) -> Result<Entries<'v>, Error> {
    let Value::Map(map) = map else { return Err(Error::no_such_overload()) };
    context.charge(more.saturating_mul(2 * size_of::<Value<'_>>()))?;
    let mut entries = Entries::default();
    for (key, value) in map.entries()? {
        entries.insert(key, value)?;
    }
    Ok(entries)
}

fn insert<'v>(entries: &mut Entries<'v>, key: Value<'v>, value: Value<'v>) -> Result<(), Error> {
    if entries.find(&key).is_some() {
        return Err(Error::new(format!("insert failed: key {} already exists", key.in_messages())));
    }
    entries.insert(key, value)
}
