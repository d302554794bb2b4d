//! JSON patch (RFC 6902) as the API server applies it: with limits, and with the
//! original library's leniency (`replace` and `test` of a missing member work as on null).

use crate::go_quote::go_quote;
use crate::{Map, Value};

/// Most operations of one patch.
pub const OPERATIONS_LIMIT: usize = 10_000;
/// Most bytes, as JSON, that all `copy` operations of one patch may copy together.
pub const COPY_LIMIT: usize = 3 * 1024 * 1024;
/// Most values (scalars, lists and objects) that all `copy` operations may copy
/// together. Upstream has no such limit; a list of empty lists, doubled again
/// and again, takes far more memory than its JSON.
pub const COPIED_VALUES_LIMIT: usize = 100_000;

/// Most items that all insertions into and removals from lists may push aside
/// together. Upstream has no such limit; ten thousand insertions at the front
/// of one list cost more than all the rest of a request.
pub const MOVED_ITEMS_LIMIT: usize = 10_000_000;

/// Why a JSON patch was not applied. No text holds a value of the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// The patch is not a list of operations: 400 with this text.
    #[error("{0}")]
    Malformed(String),
    /// Too many operations: 413.
    #[error("The allowed maximum operations in a JSON patch is {OPERATIONS_LIMIT}, got {0}")]
    TooManyOperations(usize),
    /// An operation failed: 422 with a fixed text; this one is for the log.
    #[error("{0}")]
    Failed(String),
}

/// Applies `patch`, a list of operations, to `document`. On an error `document` is half changed.
pub fn apply(document: &mut Value, patch: &Value) -> Result<(), JsonPatchError> {
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(unmarshal(other.json_kind(), "Patch")),
    };
    if let Some(other) = operations.iter().find(|operation| operation.as_object().is_none()) {
        return Err(unmarshal(other.json_kind(), "Operation"));
    }
    if operations.len() > OPERATIONS_LIMIT {
        return Err(JsonPatchError::TooManyOperations(operations.len()));
    }
    let mut spent = Spent::default();
    for operation in operations {
        one(document, operation, &mut spent).map_err(JsonPatchError::Failed)?;
    }
    Ok(())
}

fn unmarshal(kind: &str, into: &str) -> JsonPatchError {
    JsonPatchError::Malformed(format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.{into}"))
}

fn one(document: &mut Value, operation: &Value, spent: &mut Spent) -> Result<(), String> {
    match operation.get("op").and_then(Value::as_str).unwrap_or("unknown") {
        "add" => add(document, operation, spent),
        "remove" => {
            let path = text(operation, "path").map_err(|_| failed_to_decode("remove", "path", MISSING))?;
            let place = find(document, path).ok_or_else(|| absent_quoted("remove", path))?;
            place.remove(spent).map(drop).map_err(|why| format!("error in remove for path: '{path}': {why}"))
        }
        "replace" => replace(document, operation),
        "move" => move_on(document, operation, spent),
        "copy" => copy(document, operation, spent),
        "test" => test(document, operation),
        other => Err(format!("Unexpected kind: {other}")),
    }
}

/// What the original library says of what is not there.
const MISSING: &str = "missing value";

fn failed_to_decode(operation: &str, field: &str, why: &str) -> String {
    format!("{operation} operation failed to decode {field}: {why}")
}

fn absent(operation: &str, what: &str, path: &str) -> String {
    format!("{operation} operation does not apply: doc is missing {what}: {path}: {MISSING}")
}

fn absent_quoted(operation: &str, path: &str) -> String {
    format!("{operation} operation does not apply: doc is missing path: \"{path}\": {MISSING}")
}

fn text<'a>(operation: &'a Value, field: &str) -> Result<&'a str, String> {
    let comma = if field == "from" { "," } else { "" };
    operation
        .get(field)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("operation{comma} missing {field} field: {MISSING}"))
}

fn value_of(operation: &Value) -> Value {
    operation.get("value").cloned().unwrap_or_default()
}

fn add(document: &mut Value, operation: &Value, spent: &mut Spent) -> Result<(), String> {
    let path = text(operation, "path").map_err(|_| failed_to_decode("add", "path", MISSING))?;
    let place = find(document, path).ok_or_else(|| absent_quoted("add", path))?;
    place.add(value_of(operation), spent).map_err(|why| format!("error in add for path: '{path}': {why}"))
}

fn replace(document: &mut Value, operation: &Value) -> Result<(), String> {
    let path = text(operation, "path").map_err(|why| failed_to_decode("replace", "path", &why))?;
    let value = value_of(operation);
    if path.is_empty() {
        if !matches!(value, Value::Object(_) | Value::Array(_)) {
            return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
        }
        *document = value;
        return Ok(());
    }
    let place = find(document, path).ok_or_else(|| absent("replace", "path", path))?;
    match place {
        Place::Member(members, key) => {
            members.insert(key, value);
        }
        Place::Item(items, key) => {
            let index = index(&key, items.len()).map_err(|_| absent("replace", "key", path))?;
            items[index] = value;
        }
    }
    Ok(())
}

fn move_on(document: &mut Value, operation: &Value, spent: &mut Spent) -> Result<(), String> {
    let from = text(operation, "from").map_err(|why| failed_to_decode("move", "from", &why))?;
    let place = find(document, from).ok_or_else(|| absent("move", "from path", from))?;
    let key = place.key().to_owned();
    let moved = place.remove(spent).map_err(|why| format!("error in move for path: '{key}': {why}"))?;
    let path = text(operation, "path").map_err(|why| failed_to_decode("move", "path", &why))?;
    let place = find(document, path).ok_or_else(|| absent("move", "destination path", path))?;
    place.add(moved, spent).map_err(|why| format!("error in move for path: '{path}': {why}"))
}

fn copy(document: &mut Value, operation: &Value, spent: &mut Spent) -> Result<(), String> {
    let from = text(operation, "from").map_err(|why| failed_to_decode("copy", "from", &why))?;
    let place = find(document, from).ok_or_else(|| absent("copy", "from path", from))?;
    let source = place.get().map_err(|why| format!("error in copy for from: '{from}': {why}"))?;
    let source = match source {
        Some(source) => {
            spent.copy(source)?;
            source.clone()
        }
        None => Value::Null,
    };
    let path = text(operation, "path").map_err(|_| failed_to_decode("copy", "path", MISSING))?;
    let place = find(document, path).ok_or_else(|| absent("copy", "destination path", path))?;
    place.add(source, spent).map_err(|why| format!("error while adding value during copy: {why}"))
}

fn test(document: &mut Value, operation: &Value) -> Result<(), String> {
    let path = text(operation, "path").map_err(|why| failed_to_decode("test", "path", &why))?;
    let value = value_of(operation);
    let equal = if path.is_empty() {
        *document == value
    } else {
        let place = find(document, path)
            .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: {MISSING}"))?;
        let found = place.get().map_err(|why| format!("error in test for path: '{path}': {why}"))?;
        *found.unwrap_or(&Value::Null) == value
    };
    if equal { Ok(()) } else { Err(format!("testing value {path} failed: test failed")) }
}

/// Where a pointer leads: a member that may not be there, or an item by its number's text.
enum Place<'a> {
    Member(&'a mut Map, String),
    Item(&'a mut Vec<Value>, String),
}

impl<'a> Place<'a> {
    fn key(&self) -> &str {
        match self {
            Self::Member(_, key) | Self::Item(_, key) => key,
        }
    }

    fn get(self) -> Result<Option<&'a Value>, String> {
        match self {
            Self::Member(members, key) => Ok(members.get(&key)),
            Self::Item(items, key) => {
                let index = index(&key, items.len())?;
                Ok(items.get(index))
            }
        }
    }

    fn add(self, value: Value, spent: &mut Spent) -> Result<(), String> {
        match self {
            Self::Member(members, key) => {
                members.insert(key, value);
            }
            Self::Item(items, key) if key == "-" => items.push(value),
            Self::Item(items, key) => {
                if let Err(why) = number(&key) {
                    return Err(format!("value was not a proper array index: '{key}': {why}"));
                }
                let index = index(&key, items.len() + 1)?;
                spent.shift(items.len() - index)?;
                items.insert(index, value);
            }
        }
        Ok(())
    }

    fn remove(self, spent: &mut Spent) -> Result<Value, String> {
        match self {
            Self::Member(members, key) => members
                .remove(&key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: {MISSING}")),
            Self::Item(items, key) => {
                let index = index(&key, items.len())?;
                spent.shift(items.len() - index)?;
                Ok(items.remove(index))
            }
        }
    }
}

/// `None` where a part before the last is not there.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<Place<'a>> {
    // What stands before the first slash does not count.
    let (_, path) = path.split_once('/')?;
    let (parents, last) = path.rsplit_once('/').map_or((None, path), |(parents, last)| (Some(parents), last));
    let mut current = document;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let key = unescape(part);
        current = match current {
            Value::Object(members) => members.get_mut(&key)?,
            Value::Array(items) => {
                let index = index(&key, items.len()).ok()?;
                &mut items[index]
            }
            _ => return None,
        };
    }
    match current {
        Value::Object(members) => Some(Place::Member(members, unescape(last))),
        Value::Array(items) => Some(Place::Item(items, unescape(last))),
        _ => None,
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// An index below `length`; a negative one counts from the end, as the original library has it.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let number = number(key)?;
    let from_start = if number < 0 { number + i64::try_from(length).unwrap_or(i64::MAX) } else { number };
    usize::try_from(from_start)
        .ok()
        .filter(|index| *index < length)
        .ok_or_else(|| format!("Unable to access invalid index: {number}: invalid index referenced"))
}

/// Go's `strconv.Atoi`.
fn number(key: &str) -> Result<i64, String> {
    key.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", go_quote(key)))
}

/// What the operations have cost so far.
#[derive(Default)]
struct Spent {
    bytes: usize,
    values: usize,
    moved: usize,
}

impl Spent {
    /// Counts the items that an insertion or removal pushes aside.
    fn shift(&mut self, items: usize) -> Result<(), String> {
        self.moved += items;
        if self.moved <= MOVED_ITEMS_LIMIT {
            return Ok(());
        }
        Err(format!("the accumulated number of moved list items exceeds {MOVED_ITEMS_LIMIT}"))
    }

    /// Counts `value`, its bytes as JSON near enough for a limit, and stops at a limit.
    fn copy(&mut self, value: &Value) -> Result<(), String> {
        self.values += 1;
        self.bytes += match value {
            Value::Null | Value::Bool(_) => 4,
            Value::Int(_) | Value::Float(_) => 8,
            Value::String(text) => text.len() + 2,
            Value::Bytes(bytes) => bytes.len().div_ceil(3) * 4 + 2,
            Value::Array(_) => 2,
            Value::Object(members) => members.keys().fold(2, |size, key| size + key.len() + 4),
        };
        if self.bytes > COPY_LIMIT {
            return Err(format!("the accumulated size of copied values exceeds {COPY_LIMIT} bytes"));
        }
        if self.values > COPIED_VALUES_LIMIT {
            return Err(format!("the accumulated number of copied values exceeds {COPIED_VALUES_LIMIT}"));
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.copy(item)),
            Value::Object(members) => members.values().try_for_each(|member| self.copy(member)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::validation::testing::object;

    /// `Ok` with the result, or the class of failure.
    #[track_caller]
    fn check(document: &str, patch: &str, expected: Result<&str, &str>) {
        let mut value = object(document);
        match (apply(&mut value, &object(patch)), expected) {
            (Ok(()), Ok(expected)) => assert!(value == object(expected), "{patch}"),
            (Err(error), Err(class)) => {
                let actual = match error {
                    JsonPatchError::Malformed(_) => "malformed",
                    JsonPatchError::TooManyOperations(_) => "too many",
                    JsonPatchError::Failed(_) => "failed",
                };
                assert_eq!(actual, class, "{patch}");
            }
            (result, _) => panic!("{patch}: {result:?}"),
        }
    }

    #[test]
    fn operations() {
        let one = |document: &str, operation: &str, expected: Result<&str, &str>| {
            check(document, &format!("[{operation}]"), expected);
        };
        one(r#"{"a":1}"#, r#"{"op":"add","path":"/b","value":2}"#, Ok(r#"{"a":1,"b":2}"#));
        one(r#"{"a":1}"#, r#"{"op":"add","path":"/a","value":2}"#, Ok(r#"{"a":2}"#));
        one(r#"{"a":1}"#, r#"{"op":"add","path":"/b"}"#, Ok(r#"{"a":1,"b":null}"#));
        one(r#"{"a":[1]}"#, r#"{"op":"add","path":"/a/-","value":2}"#, Ok(r#"{"a":[1,2]}"#));
        one(r#"{"a":[1]}"#, r#"{"op":"add","path":"/a/0","value":2}"#, Ok(r#"{"a":[2,1]}"#));
        one(r#"{"a":[1]}"#, r#"{"op":"add","path":"/a/1","value":2}"#, Ok(r#"{"a":[1,2]}"#));
        one(r#"{"a":[1]}"#, r#"{"op":"add","path":"/a/-1","value":2}"#, Ok(r#"{"a":[1,2]}"#));
        one(r#"{"a":[1]}"#, r#"{"op":"add","path":"/a/2","value":2}"#, Err("failed"));
        one(r#"{"a":[1]}"#, r#"{"op":"add","path":"/a/x","value":2}"#, Err("failed"));
        one("{}", r#"{"op":"add","path":"/a/b","value":2}"#, Err("failed"));
        one("{}", r#"{"op":"add","path":"","value":{}}"#, Err("failed"));
        one("{}", r#"{"op":"add","value":{}}"#, Err("failed"));
        one(r#"{"a":1,"b":2}"#, r#"{"op":"remove","path":"/a"}"#, Ok(r#"{"b":2}"#));
        one(r#"{"a":[1,2]}"#, r#"{"op":"remove","path":"/a/0"}"#, Ok(r#"{"a":[2]}"#));
        one("{}", r#"{"op":"remove","path":"/a"}"#, Err("failed"));
        one(r#"{"a":1}"#, r#"{"op":"replace","path":"/a","value":2}"#, Ok(r#"{"a":2}"#));
        one("{}", r#"{"op":"replace","path":"/a","value":2}"#, Ok(r#"{"a":2}"#));
        one("{}", r#"{"op":"replace","path":"/a/b","value":2}"#, Err("failed"));
        one(r#"{"a":1}"#, r#"{"op":"replace","path":"","value":{"b":1}}"#, Ok(r#"{"b":1}"#));
        one(r#"{"a":1}"#, r#"{"op":"replace","path":"","value":1}"#, Err("failed"));
        one(r#"{"a":[1]}"#, r#"{"op":"replace","path":"/a/1","value":2}"#, Err("failed"));
        one(r#"{"a":1}"#, r#"{"op":"move","from":"/a","path":"/b"}"#, Ok(r#"{"b":1}"#));
        one("{}", r#"{"op":"move","from":"/a","path":"/b"}"#, Err("failed"));
        one(r#"{"a":{"b":1}}"#, r#"{"op":"move","from":"/a","path":"/a/b"}"#, Err("failed"));
        one(r#"{"a":1}"#, r#"{"op":"copy","from":"/a","path":"/b"}"#, Ok(r#"{"a":1,"b":1}"#));
        one("{}", r#"{"op":"copy","from":"/a","path":"/b"}"#, Ok(r#"{"b":null}"#));
        one(r#"{"a":1}"#, r#"{"op":"test","path":"/a","value":1}"#, Ok(r#"{"a":1}"#));
        one(r#"{"a":1}"#, r#"{"op":"test","path":"/a","value":2}"#, Err("failed"));
        one(r#"{"a":{"x":[1]}}"#, r#"{"op":"test","path":"/a","value":{"x":[1]}}"#, Ok(r#"{"a":{"x":[1]}}"#));
        one("{}", r#"{"op":"test","path":"/a","value":null}"#, Ok("{}"));
        one("{}", r#"{"op":"test","path":"/a","value":1}"#, Err("failed"));
        one(r#"{"a/b":1,"~":2}"#, r#"{"op":"remove","path":"/a~1b"}"#, Ok(r#"{"~":2}"#));
        one(r#"{"a/b":1,"~":2}"#, r#"{"op":"remove","path":"/~0"}"#, Ok(r#"{"a/b":1}"#));
        one("{}", r#"{"op":"x","path":"/a"}"#, Err("failed"));
        one("{}", r#"{"path":"/a"}"#, Err("failed"));
    }

    /// The words of the original library, which a client reads when a webhook patches badly.
    #[test]
    fn failures_are_worded_as_by_the_original_library() {
        for (operation, expected) in [
            (
                r#"{"op":"add","path":"/x/y"}"#,
                r#"add operation does not apply: doc is missing path: "/x/y": missing value"#,
            ),
            (r#"{"op":"add","value":1}"#, "add operation failed to decode path: missing value"),
            (
                r#"{"op":"add","path":"/l/x","value":1}"#,
                r#"error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax"#,
            ),
            (
                r#"{"op":"add","path":"/l/9","value":1}"#,
                "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
            ),
            (
                r#"{"op":"remove","path":"/x"}"#,
                "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                r#"{"op":"remove","path":"/x/y"}"#,
                r#"remove operation does not apply: doc is missing path: "/x/y": missing value"#,
            ),
            (
                r#"{"op":"replace","path":"/x/y"}"#,
                "replace operation does not apply: doc is missing path: /x/y: missing value",
            ),
            (
                r#"{"op":"replace","path":"/l/7"}"#,
                "replace operation does not apply: doc is missing key: /l/7: missing value",
            ),
            (
                r#"{"op":"replace"}"#,
                "replace operation failed to decode path: operation missing path field: missing value",
            ),
            (
                r#"{"op":"move","path":"/a"}"#,
                "move operation failed to decode from: operation, missing from field: missing value",
            ),
            (
                r#"{"op":"move","from":"/x","path":"/a"}"#,
                "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                r#"{"op":"copy","from":"/x/y","path":"/a"}"#,
                "copy operation does not apply: doc is missing from path: /x/y: missing value",
            ),
            (r#"{"op":"test","path":"/l","value":1}"#, "testing value /l failed: test failed"),
            (
                r#"{"op":"test","path":"/x/y","value":1}"#,
                "test operation does not apply: is missing path: /x/y: missing value",
            ),
            (r#"{"op":"spoil","path":"/l"}"#, "Unexpected kind: spoil"),
            (r#"{"path":"/l"}"#, "Unexpected kind: unknown"),
        ] {
            let patch = object(&format!("[{operation}]"));
            let error = apply(&mut object(r#"{"l":[]}"#), &patch).expect_err("it fails");
            assert_eq!(error.to_string(), expected, "{operation}");
        }
    }

    #[test]
    fn malformed_patches() {
        check("{}", "{}", Err("malformed"));
        check("{}", "\"x\"", Err("malformed"));
        check("{}", "[1]", Err("malformed"));
        check("{}", "[]", Ok("{}"));
        check("{}", "null", Ok("{}"));
        let text = apply(&mut object("{}"), &object("{}")).expect_err("an object is no patch").to_string();
        assert_eq!(text, "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
    }

    /// CVE-2019-1002100: a hostile patch costs little.
    #[test]
    fn s5_twenty_hostile_patches_are_cheap() {
        let repeat = |operation: &str, count: usize| format!("[{}]", vec![operation; count].join(","));
        let test = r#"{"op":"test","path":"/a","value":1}"#;
        check(r#"{"a":1}"#, &repeat(test, OPERATIONS_LIMIT), Ok(r#"{"a":1}"#));
        check(r#"{"a":1}"#, &repeat(test, OPERATIONS_LIMIT + 1), Err("too many"));
        let many =
            apply(&mut object("{}"), &object(&repeat("{}", 10_001))).expect_err("too many").to_string();
        assert_eq!(many, "The allowed maximum operations in a JSON patch is 10000, got 10001");

        let big = "x".repeat(100_000);
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
        let hostile = [
            repeat(r#"{"op":"copy","from":"/a","path":"/b/-"}"#, 10_000),
            repeat(r#"{"op":"copy","from":"/b","path":"/b/-"}"#, 10_000),
            repeat(r#"{"op":"copy","from":"/b","path":"/b/0"}"#, 10_000),
            repeat(r#"{"op":"copy","from":"","path":"/b"}"#, 10_000),
            repeat(r#"{"op":"add","path":"/b/0","value":1}"#, 10_000),
            repeat(r#"{"op":"add","path":"/b/-","value":1}"#, 10_000),
            repeat(r#"{"op":"move","from":"/b","path":"/b"}"#, 10_000),
            repeat(r#"{"op":"move","from":"/a","path":"/a"}"#, 10_000),
            repeat(r#"{"op":"remove","path":"/x"}"#, 10_000),
            repeat(r#"{"op":"replace","path":"/a","value":1}"#, 10_000),
            repeat(r#"{"op":"test","path":"/d","value":1}"#, 10_000),
            repeat(r#"{"op":"test","path":"/x","value":null}"#, 10_000),
            repeat("{}", 10_000),
            repeat("{}", 20_000),
            repeat("1", 20_000),
            format!(r#"[{{"op":"add","path":"{}","value":1}}]"#, "/a".repeat(50_000)),
            format!(r#"[{{"op":"add","path":"/{}","value":1}}]"#, "~1".repeat(50_000)),
            format!(r#"[{{"op":"remove","path":"/b/{}"}}]"#, "9".repeat(50_000)),
            format!(r#"[{{"op":"replace","path":"","value":{deep}}}]"#),
            format!(r#"[{{"op":"test","path":"/a","value":"{big}"}}]"#),
        ];
        assert!(hostile.len() >= 20);
        for patch in &hostile {
            let document = object(&format!(r#"{{"a":"{big}","b":[],"d":{{"c":1}}}}"#));
            let patch_value = object(patch);
            // Another try or two, so that a busy machine does not count as a costly patch.
            let mut took = std::time::Duration::MAX;
            for _ in 0..8 {
                let mut document = document.clone();
                let start = Instant::now();
                let _ = apply(&mut document, &patch_value);
                took = took.min(start.elapsed());
                if took.as_millis() < 100 {
                    break;
                }
            }
            assert!(took.as_millis() < 100, "{took:?} for {}", &patch[..patch.len().min(60)]);
        }
    }

    #[test]
    fn copies_have_a_limit_together() {
        let list = |items: usize| object(&format!(r#"{{"a":[{}]}}"#, vec!["1"; items].join(",")));
        let copy_list = object(r#"[{"op":"copy","from":"/a","path":"/b"}]"#);
        assert_eq!(apply(&mut list(COPIED_VALUES_LIMIT - 1), &copy_list), Ok(()));
        let error = apply(&mut list(COPIED_VALUES_LIMIT), &copy_list);
        assert!(matches!(error, Err(JsonPatchError::Failed(_))));

        let document = format!(r#"{{"a":"{}"}}"#, "x".repeat(COPY_LIMIT / 2 - 2));
        let copy = r#"{"op":"copy","from":"/a","path":"/b"}"#;
        let mut value = object(&document);
        assert_eq!(apply(&mut value, &object(&format!("[{copy},{copy}]"))), Ok(()));
        let error = apply(&mut object(&document), &object(&format!("[{copy},{copy},{copy}]")));
        assert!(matches!(error, Err(JsonPatchError::Failed(_))));
    }
}
