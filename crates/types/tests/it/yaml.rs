//! YAML held to sigs.k8s.io/yaml.

use coffer_types::codec::{json, yaml};
use coffer_types::{Value, schema};

use crate::codec::text;

struct Case {
    input: String,
    json: String,
    problem: String,
    yaml: String,
    coerced: String,
}

fn cases() -> Vec<Case> {
    let lines = include_str!("../golden/yaml.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let [input, json, problem, yaml, coerced]: [String; 5] =
                serde_json::from_str(line).expect("five strings");
            Case { input, json, problem, yaml, coerced }
        })
        .collect()
}

/// As the API machinery reads JSON: a whole number beyond 64 bits is a floating point number.
fn reread(json: &str) -> String {
    let object = json::decode_untyped(json.as_bytes()).expect("Go's JSON").object;
    text(|out| json::encode_untyped(&object, out))
}

#[track_caller]
fn none_of(failures: &[String]) {
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn reading_gives_go_s_json() {
    let mut failures = Vec::new();
    // The parser takes a tab before the first key of a document, which upstream refuses.
    for case in cases().into_iter().filter(|case| !case.input.starts_with('\t')) {
        let result = yaml::decode_untyped(case.input.as_bytes());
        let error = case.problem.strip_prefix("error: ");
        match (result, error) {
            (Err(actual), Some(expected)) => {
                // The parser's own words for bad syntax; ours leave out the offending key.
                let exact = expected.starts_with("json:") || expected.contains("aliasing");
                if exact && actual.0 != expected {
                    failures.push(format!("{:?}\n  got  {actual}\n  want {expected}", case.input));
                }
            }
            (Ok(decoded), None) => {
                let actual = text(|out| json::encode_untyped(&decoded.object, out));
                let strict = decoded.strict_errors.join(", ");
                if actual != reread(&case.json) || strict != case.problem {
                    failures.push(format!(
                        "{:?}\n  got  {actual} {strict}\n  want {} {}",
                        case.input, case.json, case.problem
                    ));
                }
            }
            (Ok(decoded), Some(expected)) => {
                let actual = text(|out| json::encode_untyped(&decoded.object, out));
                failures.push(format!("{:?}\n  got  {actual}\n  want {expected}", case.input));
            }
            (Err(error), None) => {
                failures.push(format!("{:?}\n  got  {error}\n  want {}", case.input, case.json))
            }
        }
    }
    none_of(&failures);
}

#[test]
fn writing_gives_go_s_yaml() {
    let mut failures = Vec::new();
    for case in cases().into_iter().filter(|case| !case.yaml.is_empty() && reread(&case.json) == case.json) {
        let actual = text(|out| yaml::from_json(case.json.as_bytes(), out).expect("valid"));
        if actual != case.yaml {
            failures.push(format!("{}\n--- got\n{actual}--- want\n{}", case.json, case.yaml));
        }
        let back = yaml::decode_untyped(actual.as_bytes()).expect("our own YAML").object;
        let back = text(|out| json::encode_untyped(&back, out));
        if back != case.json {
            failures.push(format!("{} comes back as {back}", case.json));
        }
    }
    none_of(&failures);
}

#[test]
fn text_fields_of_files_take_numbers_and_booleans() {
    let kind = schema::lookup("", "v1", "Secret").expect("built in");
    let mut failures = Vec::new();
    for case in cases().into_iter().filter(|case| !case.coerced.is_empty()) {
        let actual = match yaml::decode_coercing(kind.message, case.input.as_bytes()) {
            Ok(decoded) => text(|out| json::encode(kind.message, &decoded.object, out)),
            Err(error) => error.0,
        };
        if actual != case.coerced {
            failures.push(format!("{:?}\n  got  {actual}\n  want {}", case.input, case.coerced));
        }
    }
    none_of(&failures);
    assert_eq!(yaml::text_of(&Value::Bool(true)).as_deref(), Some("true"));
    assert_eq!(yaml::text_of(&Value::from("x")), None);
}

#[test]
fn golden_objects_come_back_from_yaml() {
    for golden in crate::codec::goldens() {
        // DEL and the like cannot be in a YAML body.
        if golden.json.contains('\u{7f}') {
            continue;
        }
        let object = json::decode(golden.kind.message, golden.json.as_bytes()).expect("valid").object;
        let written = text(|out| yaml::encode(golden.kind.message, &object, out));
        let back = yaml::decode(golden.kind.message, written.as_bytes()).expect("our own YAML");
        assert!(back.object == object, "{}:\n{written}", golden.kind.kind);
    }
}

/// Upstream's texts print the value, and a file that does not decode may hold Secrets.
#[test]
fn errors_about_numbers_and_keys_hold_no_value() {
    let cases = [
        ("? [hunter2]\n: b\n", "yaml: invalid map key"),
        ("? {hunter2: hunter2}\n: b\n", "yaml: invalid map key"),
        ("~: hunter2\n", "unsupported map key of type: %!s(<nil>), key: <nil>"),
        ("a: !!int hunter2\n", "yaml: cannot decode !!str as a !!int"),
        ("a: !!float hunter2\n", "yaml: cannot decode !!str as a !!float"),
        ("a: !!bool hunter2\n", "yaml: cannot decode !!str as a !!bool"),
        ("a: !!null hunter2\n", "yaml: cannot decode !!str as a !!null"),
        ("a: !!int 4711.5\n", "yaml: cannot decode !!float as a !!int"),
        ("a: !!binary hunter2\n", "yaml: !!binary value contains invalid base64 data"),
        ("<<: hunter2\n", "yaml: map merge requires map or sequence of maps as the value"),
    ];
    for (document, expected) in cases {
        let error = yaml::decode_untyped(document.as_bytes()).expect_err("refused");
        assert_eq!(error.0, expected, "{document}");
    }
}

#[test]
fn all_documents_of_a_file_are_read() {
    let documents: Vec<_> = yaml::documents(b"a: 1\n---\nb: 2\n---\n---\nc: [\n").collect();
    assert_eq!(documents.len(), 4);
    let shown = |index: usize| {
        text(|out| json::encode_untyped(&documents[index].as_ref().expect("valid").object, out))
    };
    assert_eq!([shown(0), shown(1), shown(2)], [r#"{"a":1}"#, r#"{"b":2}"#, "null"]);
    assert!(documents[3].is_err());
}

#[test]
fn hostile_documents_cost_little() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in ('b'..'k').zip('a'..) {
        let aliases = vec![format!("*{before}"); 9].join(",");
        bomb.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }
    let error = yaml::decode_untyped(bomb.as_bytes()).expect_err("too much");
    assert_eq!(error.0, "yaml: document contains excessive aliasing");
    for deep in ["[".repeat(100_000), "{a: ".repeat(10_000), "- ".repeat(100_000), "? ".repeat(10_000)] {
        assert!(yaml::decode_untyped(deep.as_bytes()).is_err());
    }
    // Anchors within anchors, each of which is a copy.
    let anchored = |items: usize| {
        let document = format!("{}{}{}", "&a [".repeat(500), "b,".repeat(items), "]".repeat(500));
        yaml::decode_untyped(document.as_bytes()).map(drop)
    };
    assert_eq!(anchored(30_000).expect_err("too much").0, "yaml: document contains excessive aliasing");
    assert_eq!(anchored(10), Ok(()));
    for (levels, fits) in [(512, true), (513, false)] {
        let flow = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let block = format!("{}1", "- ".repeat(levels));
        for nested in [flow, block] {
            assert_eq!(yaml::decode_untyped(nested.as_bytes()).is_ok(), fits, "{levels} levels");
        }
    }
    assert!(yaml::decode_untyped(b"a: &a [*a]\n").is_err());
    assert!(yaml::decode_untyped(b"\xff").is_err());
    assert_eq!(
        yaml::decode_untyped(b"a: \x01").expect_err("refused").0,
        "yaml: control characters are not allowed"
    );
}

/// Far below the first level a long list would be all indentation: it is written as JSON is. What is
/// written stays in proportion to what it says, and is read as what it was.
#[test]
fn deep_and_wide_trees_are_written_in_proportion() {
    for (depth, open, close, item) in [
        (500, "[", "]", "\"a: b, [\\u0001\\u007f \\n\",1,null,[],{}"),
        (500, "{\"k\":", "}", "{\"a b\":[\"\",true],\"#\":-1.5}"),
        (250, "[{\"k\":", "}]", "{\"a b\":[\"\",true],\"#\":-1.5}"),
    ] {
        let items = vec![item; 5_000].join(",");
        let document = format!("{}[{items}]{}", open.repeat(depth), close.repeat(depth));
        let object = json::decode_untyped(document.as_bytes()).expect("JSON").object;
        let mut written = Vec::new();
        yaml::encode_untyped(&object, &mut written);
        assert!(written.len() <= 8 * document.len() + (2 << 20), "{} of {}", written.len(), document.len());
        assert_eq!(yaml::decode_untyped(&written).expect("read again").object, object, "{depth} {open}");
        // Long keys too.
        let long = format!("{{\"{}\":{document}}}", "k".repeat(2_000));
        let object = json::decode_untyped(long.as_bytes()).expect("JSON").object;
        let mut written = Vec::new();
        yaml::encode_untyped(&object, &mut written);
        assert_eq!(yaml::decode_untyped(&written).expect("read again").object, object);
    }
    // As ever: lists that are long and not deep, and trees that are deep and not wide.
    for (document, expected) in [
        (
            format!("{{\"a\":{{\"a\":{{\"a\":[{}]}}}}}}", vec!["1"; 200_000].join(",")),
            "a:\n  a:\n    a:\n    - 1\n",
        ),
        (format!("{}1{}", "{\"a\":".repeat(400), "}".repeat(400)), "a:\n  a:\n    a:\n"),
    ] {
        let object = json::decode_untyped(document.as_bytes()).expect("JSON").object;
        let mut written = Vec::new();
        yaml::encode_untyped(&object, &mut written);
        assert!(written.starts_with(expected.as_bytes()) && !written.contains(&b'['), "{expected}");
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn random_text_never_panics(text in "[-a:?{}\\[\\],&*!|>'\"%@`#<~ \n\t01.eyn]{0,60}") {
            let _ = yaml::decode_untyped(text.as_bytes());
            yaml::documents(text.as_bytes()).for_each(drop);
        }

        #[test]
        fn any_text_survives(key: String, content: String, more in "[ -a:#\n'\"]{0,40}") {
            let object = Value::from([(key, Value::from(content.clone())), (more.clone(), Value::from(vec![
                Value::from(more), Value::from(content),
            ]))]);
            let written = text(|out| yaml::encode_untyped(&object, out));
            let back = yaml::decode_untyped(written.as_bytes());
            prop_assert!(back.is_ok_and(|back| back.object == object), "{}", written);
        }
    }
}
