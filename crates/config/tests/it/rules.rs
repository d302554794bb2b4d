//! Each rule, one case at a time; tests/peers holds the same cases to the original.

use coffer_config::Problem;
use coffer_config::encryption::{Reload, parse};
use coffer_sim::encryption_configs::{self as cases, KEY};

use crate::support::{FILE, build};

#[test]
fn test_structure() {
    let cases = cases::all();
    assert!(120 < cases.len(), "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let found = build(&case.config).map_or_else(|error| error.to_string(), |_| String::new());
        if found != case.expected {
            wrong.push(format!("{}\n  expected {}\n  found    {found}", case.name, case.expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_error_holds_a_key_or_a_file() {
    for case in cases::all() {
        let Err(error) = build(&case.config) else { continue };
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains(KEY) && !text.contains("0123456789abcdef"), "{}: {text}", case.name);
        }
    }
}

#[test]
fn an_error_names_file_field_and_rule() {
    let text =
        r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{}]}"#;
    let error = build(text).expect_err("breaks two rules");
    assert_eq!(error.file, FILE);
    let fields: Vec<_> = error.fields().iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["resources[0].resources", "resources[0].providers"]);
    assert!(matches!(error.problem, Problem::Invalid(_)));
}

/// Names of KMS plugins must be unique in a file that is reloaded, whatever their version.
#[test]
fn test_kms_provider_name() {
    let plugin =
        |version| format!(r#"{{"kms":{{"apiVersion":"{version}","name":"a","endpoint":"unix:///a"}}}}"#);
    let check = |first, second, reload, refused| {
        let providers = format!("[{},{}]", plugin(first), plugin(second));
        let text = format!(
            r#"{{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{{"resources":["secrets"],"providers":{providers}}}]}}"#
        );
        assert_eq!(parse(FILE, text.as_bytes(), reload).is_err(), refused, "{first} {second} {reload:?}");
    };
    check("v1", "v1", Reload::Never, false);
    check("v2", "v1", Reload::Never, false);
    check("v1", "v2", Reload::Never, true);
    check("v2", "v2", Reload::Never, true);
    check("v1", "v1", Reload::Automatic, true);
    check("v2", "v1", Reload::Automatic, true);
}
