//! kubectl's annotation of client-side apply: what it said last, which a first server-side apply by
//! kubectl may take over, and which is kept in step from then on.

use crate::Value;
use crate::codec::json;
use crate::fields::compare::compare_trees;
use crate::fields::set::Set;
use crate::fields::shape::Schema;
use crate::fields::typed::{Duplicates, mentioned, validate};
use crate::meta::Meta as _;

/// The annotation.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Most bytes of all annotations together; beyond, the annotation is left out.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// What the annotation of an object says, if it has one.
pub(crate) fn of(object: &Value) -> Option<&str> {
    object.annotation(ANNOTATION).filter(|text| !text.is_empty())
}

/// The fields that were applied by the client and have the same value still; none when that cannot be told.
pub(crate) fn unchanged(schema: Schema<'_>, api_version: &str, live: &Value) -> Option<Set> {
    let text = of(live)?;
    validate(schema, live, Duplicates::Refused).ok()?;
    let applied = json::decode_untyped(text.as_bytes()).ok()?.object;
    if applied.kind().is_empty() || applied.api_version() != api_version {
        return None;
    }
    validate(schema, &applied, Duplicates::Refused).ok()?;
    let comparison = compare_trees(schema, &applied, live).ok()?;
    let set = mentioned(schema, &applied);
    Some(set.difference(&comparison.modified).difference(&comparison.added).difference(&comparison.removed))
}

/// What the annotation is to say after an apply: the applied object without it.
pub(crate) fn text(applied: &Value) -> String {
    let mut applied = applied.clone();
    applied.remove(&["metadata", "annotations", ANNOTATION]);
    let mut bytes = Vec::new();
    json::encode_untyped(&applied, &mut bytes);
    bytes.push(b'\n');
    String::from_utf8(bytes).unwrap_or_default()
}

/// Sets the annotation, or removes it when the annotations become too large.
pub(crate) fn set(object: &mut Value, text: &str) {
    let annotations = object.object_at_mut(&["metadata", "annotations"]);
    annotations.insert(ANNOTATION.to_owned(), Value::from(text));
    let size: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum();
    if size > ANNOTATIONS_LIMIT {
        annotations.remove(ANNOTATION);
    }
}
