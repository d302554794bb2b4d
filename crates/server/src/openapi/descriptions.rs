//! What every object has in common, in our own words, for `kubectl explain`.

use serde_json::{Value, json};

/// Fields of an object itself.
const OBJECT: &[(&str, &str)] = &[
    ("apiVersion", "APIVersion defines the group and version whose schema this object follows."),
    ("kind", "Kind names the schema of this object within its group and version, in CamelCase."),
    ("metadata", "Standard object's metadata."),
];

/// Fields of `metadata`.
const METADATA: &[(&str, &str)] = &[
    ("name", "Name is unique among the objects of a kind in a namespace, and never changes."),
    (
        "generateName",
        "GenerateName is what the server makes a name of, with five characters more, when none is given.",
    ),
    ("namespace", "Namespace is where the object lives; empty for kinds that have none."),
    ("selfLink", "SelfLink is no longer filled in."),
    ("uid", "UID tells this object from all others of all times; the server sets it."),
    (
        "resourceVersion",
        "ResourceVersion is opaque and changes with every write; an update that names an older one is refused.",
    ),
    ("generation", "Generation counts the changes of what is wanted; the server sets it."),
    ("creationTimestamp", "CreationTimestamp is a timestamp of when the server first stored the object."),
    (
        "deletionTimestamp",
        "DeletionTimestamp is when the object goes, once its deletion was asked for; the server sets it.",
    ),
    (
        "deletionGracePeriodSeconds",
        "DeletionGracePeriodSeconds is how long the object may take to end, once its deletion was asked for.",
    ),
    ("labels", "Labels are keys and values that selectors look at."),
    ("annotations", "Annotations are keys and values that tools keep here; selectors do not look at them."),
    (
        "ownerReferences",
        "OwnerReferences name what this object belongs to; it is deleted when all of them are gone.",
    ),
    (
        "finalizers",
        "Finalizers must all be taken away, each by who put it there, before a deleted object goes.",
    ),
    ("managedFields", "ManagedFields tell which manager set which fields, and when."),
];

/// Describes a field of the message with Go's name `message`, if it is one that all objects share.
pub(super) fn describe(message: &str, field: &str, is_object: bool, schema: Value) -> Value {
    let table = match message {
        "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta" => METADATA,
        _ if is_object => OBJECT,
        _ => return schema,
    };
    match table.iter().find(|(name, _)| *name == field) {
        Some((_, text)) => described(text, schema),
        None => schema,
    }
}

/// The same for an object of a custom kind.
pub(super) fn describe_own(field: &str, schema: Value) -> Value {
    describe("", field, true, schema)
}

fn described(text: &str, mut schema: Value) -> Value {
    // Nothing may stand beside a reference.
    if schema.get("$ref").is_some() {
        schema = json!({ "allOf": [schema] });
    }
    schema["description"] = text.into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_metadata_is_described() {
        let kind = coffer_types::schema::lookup("", "v1", "Secret").expect("a built-in kind");
        let field = kind.message.field("metadata").expect("has metadata");
        let coffer_types::schema::Shape::One(coffer_types::schema::Type::Message(metadata)) = field.shape
        else {
            panic!("metadata is a message");
        };
        let names: Vec<&str> = metadata.fields.iter().map(|field| field.json).collect();
        assert_eq!(names, METADATA.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn a_reference_stands_alone() {
        let described = describe_own("metadata", json!({ "$ref": "#/a" }));
        assert_eq!(described["allOf"], json!([{ "$ref": "#/a" }]));
        assert_eq!(described["description"], "Standard object's metadata.");
        let other = json!({ "type": "string" });
        assert_eq!(describe("k8s.io/api/core/v1.Secret", "data", true, other.clone()), other);
        assert_eq!(describe("k8s.io/api/core/v1.SecretReference", "name", false, other.clone()), other);
    }
}
