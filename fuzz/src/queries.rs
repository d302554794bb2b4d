//! What comes in with a request's query, and the small texts within objects.

use std::sync::LazyLock;

use coffer_lang::field_selector::FieldSelector;
use coffer_lang::jsonpath::JsonPath;
use coffer_lang::label_selector::LabelSelector;
use coffer_store::continue_token::ContinueToken;
use coffer_types::codec::{json, quantity, times};
use coffer_types::meta::Meta;
use coffer_types::names::PathSegment;
use coffer_types::validation::field::go_quote;
use coffer_types::validation::{go_json, pem};
use coffer_types::{Value, names};

/// An object with something of each sort for expressions to find.
static OBJECT: LazyLock<Value> = LazyLock::new(|| {
    let text = r#"{"kind":"Secret","metadata":{"name":"a","namespace":"b","labels":{"app":"web","n":"5"}},
        "list":[1,-2.5,"x",null,true,{"a":{"b":[[],{}]}}],"data":{"tls.crt":"MQ==","key":"Mg=="}}"#;
    json::decode_untyped(text.as_bytes()).expect("an object").object
});

/// A `continue` token.
pub(crate) fn continue_token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(token) = ContinueToken::decode(text) {
        let again = token.encode().map(|text| ContinueToken::decode(&text));
        assert!(matches!(again, Some(Ok(again)) if again == token), "a token keeps what it says");
    }
    // As the text within a token too, which few guesses would reach.
    let wrapped = ContinueToken::after(data, 5).encode();
    if let Some(wrapped) = wrapped {
        drop(ContinueToken::decode(&wrapped));
    }
}

/// A label selector.
pub(crate) fn label_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(selector) = LabelSelector::parse(text) else { return };
    let matched = selector.matches(OBJECT.labels());
    let shown = selector.to_string();
    let again = LabelSelector::parse(&shown).expect("what was printed is read");
    assert_eq!(again.matches(OBJECT.labels()), matched, "printing keeps the selector");
}

/// A field selector.
pub(crate) fn field_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(selector) = FieldSelector::parse(text) else { return };
    selector.matches(&OBJECT);
    selector.may_match("b", "a");
    std::hint::black_box(selector.exact("metadata.name"));
}

/// A JSONPath expression, run on an object.
pub(crate) fn jsonpath(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(path) = JsonPath::parse(text) else { return };
    drop(path.find(&OBJECT));
}

/// Quantities, times, names, PEM blocks and quoted texts.
pub(crate) fn scalars(data: &[u8]) {
    drop(go_json::check_object(data));
    for block in pem::blocks(data) {
        drop(block);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(canonical) = quantity::canonical(text) {
        assert_eq!(quantity::canonical(&canonical).as_ref(), Ok(&canonical), "canonical stays as it is");
    }
    for (parsed, micros) in [(times::parse_seconds(text), false), (times::parse_micros(text), true)] {
        if let Ok(time) = parsed {
            drop(times::format(time, micros));
        }
    }
    drop(PathSegment::parse(text));
    drop(names::dns_subdomain(text, true));
    drop(names::dns_label(text, false));
    drop(names::path_segment(text, false));
    drop(go_quote(text));
}
