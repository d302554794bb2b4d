use super::*;
use crate::schema;
use crate::validation::testing::object;

#[track_caller]
fn check(kind: &str, document: &str, patch: &str, expected: &str) {
    let message = schema::lookup("", "v1", kind).expect("built in").message;
    match apply(object(document), object(patch), message) {
        Ok(actual) => {
            let text = crate::validation::field::go_json(&actual);
            assert!(actual == object(expected), "{patch}: {text}");
        }
        Err(error) => assert_eq!(error.to_string(), expected, "{patch}"),
    }
}

#[test]
fn maps_merge_and_null_deletes() {
    let secret = r#"{"data":{"a":"MQ==","b":"Mg=="},"type":"Opaque"}"#;
    check(
        "Secret",
        secret,
        r#"{"data":{"a":null,"c":"Mw=="}}"#,
        r#"{"data":{"b":"Mg==","c":"Mw=="},"type":"Opaque"}"#,
    );
    check("Secret", secret, r#"{"data":null}"#, r#"{"type":"Opaque"}"#);
    check(
        "Secret",
        secret,
        r#"{"stringData":{"a":"x","b":null}}"#,
        r#"{"data":{"a":"MQ==","b":"Mg=="},"type":"Opaque","stringData":{"a":"x"}}"#,
    );
    check("Secret", secret, r#"{"type":"other"}"#, r#"{"data":{"a":"MQ==","b":"Mg=="},"type":"other"}"#);
    check("Secret", "{}", r#"{"metadata":{"labels":{"a":"b"}}}"#, r#"{"metadata":{"labels":{"a":"b"}}}"#);
    check("Secret", r#"{"data":{"a":"MQ=="}}"#, r#"{"data":"x"}"#, r#"{"data":"x"}"#);
}

#[test]
fn patch_directives_on_maps() {
    let secret = r#"{"data":{"a":"MQ==","b":"Mg=="}}"#;
    check("Secret", secret, r#"{"data":{"$patch":"replace","c":"Mw=="}}"#, r#"{"data":{"c":"Mw=="}}"#);
    check("Secret", secret, r#"{"data":{"$patch":"delete"}}"#, r#"{"data":{}}"#);
    check("Secret", "{}", r#"{"data":{"$patch":"delete"}}"#, "{}");
    check("Secret", secret, r#"{"data":{"$patch":"x"}}"#, "unknown patch type in map");
    check("Secret", secret, r#"{"$patch":"replace","type":"x"}"#, r#"{"type":"x"}"#);
}

#[test]
fn lists_of_objects_merge_by_key() {
    let owners = r#"{"metadata":{"ownerReferences":[{"uid":"a","name":"x"},{"uid":"b","name":"y"}]}}"#;
    check(
        "Secret",
        owners,
        r#"{"metadata":{"ownerReferences":[{"uid":"b","name":"z"},{"uid":"c","name":"n"}]}}"#,
        r#"{"metadata":{"ownerReferences":[{"uid":"a","name":"x"},{"uid":"b","name":"z"},{"uid":"c","name":"n"}]}}"#,
    );
    check(
        "Secret",
        owners,
        r#"{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"a"}]}}"#,
        r#"{"metadata":{"ownerReferences":[{"uid":"b","name":"y"}]}}"#,
    );
    check(
        "Secret",
        owners,
        r#"{"metadata":{"ownerReferences":[{"$patch":"replace"},{"uid":"c"}]}}"#,
        r#"{"metadata":{"ownerReferences":[{"uid":"c"}]}}"#,
    );
    check(
        "Secret",
        owners,
        r#"{"metadata":{"ownerReferences":[{"$patch":"merge"}]}}"#,
        "merging lists cannot yet be specified in the patch",
    );
    check(
        "Secret",
        owners,
        r#"{"metadata":{"ownerReferences":[{"name":"z"}]}}"#,
        "map does not contain declared merge key: uid",
    );
    check(
        "Secret",
        owners,
        r#"{"metadata":{"$setElementOrder/ownerReferences":[{"uid":"b"},{"uid":"a"}]}}"#,
        r#"{"metadata":{"ownerReferences":[{"uid":"b","name":"y"},{"uid":"a","name":"x"}]}}"#,
    );
}

#[test]
fn lists_of_scalars_merge_as_sets() {
    let finalizers = r#"{"metadata":{"finalizers":["a/a","b/b"]}}"#;
    check(
        "Secret",
        finalizers,
        r#"{"metadata":{"finalizers":["b/b","c/c"]}}"#,
        r#"{"metadata":{"finalizers":["a/a","b/b","c/c"]}}"#,
    );
    check(
        "Secret",
        finalizers,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a/a"]}}"#,
        r#"{"metadata":{"finalizers":["b/b"]}}"#,
    );
    check(
        "Secret",
        finalizers,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a/a"],"finalizers":["c/c"],
            "$setElementOrder/finalizers":["c/c","b/b"]}}"#,
        r#"{"metadata":{"finalizers":["c/c","b/b"]}}"#,
    );
    check(
        "Secret",
        finalizers,
        r#"{"metadata":{"$deleteFromPrimitiveList":["a"]}}"#,
        "invalid patch format of primitive list",
    );
    check(
        "Secret",
        finalizers,
        r#"{"metadata":{"$setElementOrder":["a"]}}"#,
        "invalid patch format of setElementOrder list",
    );
    check(
        "Secret",
        finalizers,
        r#"{"metadata":{"$setElementOrder/finalizers":["a/a"],"finalizers":["x/x"]}}"#,
        "The order in patch list doesn't match $setElementOrder list",
    );
}

#[test]
fn nested_lists_of_pods() {
    let pod = r#"{"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"1"}],
        "args":["x","y"]}],"volumes":[{"name":"v","secret":{"secretName":"s"}}]}}"#;
    check(
        "Pod",
        pod,
        r#"{"spec":{"containers":[{"name":"c","env":[{"name":"B","value":"2"}],"args":["z"]}]}}"#,
        r#"{"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"B","value":"2"},{"name":"A","value":"1"}],
            "args":["z"]}],"volumes":[{"name":"v","secret":{"secretName":"s"}}]}}"#,
    );
    check(
        "Pod",
        pod,
        r#"{"spec":{"volumes":[{"name":"v","emptyDir":{},"$retainKeys":["name","emptyDir"]}]}}"#,
        r#"{"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"1"}],"args":["x","y"]}],
            "volumes":[{"name":"v","emptyDir":{}}]}}"#,
    );
    check(
        "Pod",
        pod,
        r#"{"spec":{"volumes":[{"name":"v","emptyDir":{},"$retainKeys":["name"]}]}}"#,
        "invalid patch format of retainKeys",
    );
    check(
        "Pod",
        r#"{"x":{"a":1}}"#,
        r#"{"x":{"b":1}}"#,
        "unable to find api field in struct Pod for the json field \"x\"",
    );
}

#[test]
fn only_objects_are_patched() {
    check("Secret", "{}", "[]", "invalid JSON document");
}
