//! Every place of a pod that names a Secret, from the generated tables: whoever looks for references is
//! tested against them, and fails when a new field is added (field case S9).

use std::collections::BTreeSet;

use coffer_types::Value;
use coffer_types::schema::{self, Message, Shape, Type};

/// How many there are in v1.37: two in each of three kinds of containers, ten kinds of volumes, projected
/// sources, and pull secrets.
const KNOWN: usize = 3 * 2 + 10 + 1 + 1;

/// Every path of the pod's spec whose last field names a Secret: text fields called `secretName`, and names
/// inside fields that are called after a Secret.
///
/// # Panics
/// When there are not as many as there were: the tables were not walked to every corner, or a field is new.
pub fn secret_fields() -> BTreeSet<String> {
    let pod = schema::lookup("", "v1", "Pod").expect("the tables hold Pod").message;
    let Some(Shape::One(Type::Message(spec))) = pod.field("spec").map(|field| field.shape) else {
        panic!("a pod has a spec");
    };
    let mut found = BTreeSet::new();
    walk(spec, "", false, &mut found);
    assert_eq!(found.len(), KNOWN, "{found:#?}");
    found
}

fn walk(message: &'static Message, path: &str, inside: bool, found: &mut BTreeSet<String>) {
    for field in message.fields {
        let path = match (path.is_empty(), field.json.is_empty()) {
            (_, true) => path.to_owned(),
            (true, false) => field.json.to_owned(),
            (false, false) => format!("{path}.{}", field.json),
        };
        let named_after_secret = field.json.to_lowercase().contains("secret");
        match field.shape {
            Shape::One(Type::Message(inner)) | Shape::List(Type::Message(inner)) => {
                // An inlined struct belongs to its parent.
                let inside = if field.json.is_empty() { inside } else { named_after_secret };
                walk(inner, &path, inside, found);
            }
            Shape::One(Type::String) if field.json == "secretName" || (inside && field.json == "name") => {
                found.insert(path);
            }
            _ => {}
        }
    }
}

/// A spec with a Secret called after the path at that path, lists made of one item.
pub fn spec_with(path: &str) -> Value {
    const LISTS: [&str; 8] = [
        "volumes",
        "sources",
        "initContainers",
        "containers",
        "ephemeralContainers",
        "env",
        "envFrom",
        "imagePullSecrets",
    ];
    let mut value = Value::from(path);
    for field in path.rsplit('.') {
        let inner = if LISTS.contains(&field) { Value::from(vec![value]) } else { value };
        value = Value::from([(field, inner)]);
    }
    value
}
