//! The texts of the cases, and the routes, are those of kube-apiserver's own loader.
#![allow(missing_docs, reason = "tests")]

#[path = "../../../crypto/tests/peers/original.rs"]
mod original;

use coffer_config::encryption::generate;
use coffer_sim::encryption_configs as cases;
use coffer_types::random::{Random, RandomError};
use serde_json::{Value, json};

use original::Original;

fn load(original: &mut Original, config: &str, resources: &[&str]) -> Result<Vec<String>, String> {
    let answer = original.ask(&json!({"op": "config", "config": config, "resources": resources}));
    match answer.get("err").and_then(Value::as_str) {
        Some(error) => Err(error.to_owned()),
        None => {
            let prefixes = answer.get("prefixes").and_then(Value::as_array).cloned().unwrap_or_default();
            Ok(prefixes.iter().map(|prefix| prefix.as_str().unwrap_or_default().to_owned()).collect())
        }
    }
}

#[test]
fn the_original_says_the_same() {
    let mut original = Original::start("transform");
    let mut wrong = Vec::new();
    for case in cases::all() {
        let said = load(&mut original, &case.config, &[]).err().unwrap_or_default();
        let as_expected = if case.differs {
            // Never the same: the list of differences must not outlive the differences.
            said != case.expected && !said.is_empty()
        } else {
            said == case.expected
        };
        if !as_expected {
            wrong.push(format!("{}\n  expected {}\n  original {said}", case.name, case.expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_original_routes_the_same() {
    let mut original = Original::start("transform");
    for route in cases::routes() {
        let (resources, prefixes): (Vec<_>, Vec<_>) = route.expected.into_iter().unzip();
        let found = load(&mut original, &route.config, &resources).expect("keeps the rules");
        assert_eq!(found, prefixes, "{resources:?}");
    }
}

/// What `generate` makes is what a stock kube-apiserver starts with.
#[test]
fn the_original_takes_a_generated_configuration() {
    struct Fixed;
    impl Random for Fixed {
        fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
            buffer.fill(7);
            Ok(())
        }
    }
    let text = generate(&["secrets", "*.example.com"], &Fixed).expect("the source works");
    let text = std::str::from_utf8(text.expose()).expect("is text");
    let found = load(&mut Original::start("transform"), text, &["secrets", "things.example.com", "pods"]);
    let key1 = "k8s:enc:aesgcm:v1:key1:".to_owned();
    assert_eq!(found, Ok(vec![key1.clone(), key1, String::new()]));
}
