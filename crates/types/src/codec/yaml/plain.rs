//! JSON that YAML reads as the same: what most clients send as YAML.

use crate::codec::json::{Node, parse};

/// YAML ends a key that is longer; far below, both agree.
const LONGEST_KEY: usize = 512;
/// Far below the depth that either refuses.
const DEEPEST: usize = 64;
/// Objects with more members are left to YAML, which finds doubled ones faster than by pairs.
const MOST_MEMBERS: usize = 64;
/// Digits that fit an `i64` whatever they are.
const MOST_DIGITS: usize = 18;

/// The document, if it is one line of JSON in which nothing has another meaning in YAML.
pub(super) fn read(bytes: &[u8]) -> Option<Node<'_>> {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if line.first() != Some(&b'{') || !line.iter().all(|byte| is_plain(*byte)) {
        return None;
    }
    let node = parse(line).ok()?;
    means_the_same(&node, 0).then_some(node)
}

/// Printable ASCII without what begins an escape.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'\\'
}

fn means_the_same(node: &Node<'_>, depth: usize) -> bool {
    match node {
        Node::Null | Node::Bool(_) | Node::String(_) => true,
        Node::Number(text) => is_whole(text),
        Node::Array(items) => depth < DEEPEST && items.iter().all(|item| means_the_same(item, depth + 1)),
        Node::Object(members) => {
            depth < DEEPEST
                && members.len() <= MOST_MEMBERS
                && members.iter().enumerate().all(|(index, (name, member))| {
                    name.len() <= LONGEST_KEY
                        // YAML's merge key.
                        && name != "<<"
                        && members[..index].iter().all(|(earlier, _)| earlier != name)
                        && means_the_same(member, depth + 1)
                })
        }
    }
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.len() <= MOST_DIGITS && text != "-0" && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{first, with_duplicates};
    use super::*;
    use crate::codec::json::Decoded;

    fn by_yaml(text: &str) -> Decoded {
        let (node, duplicates) = first(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        with_duplicates(duplicates, node.into_untyped().expect("untyped")).expect("decoded")
    }

    fn by_json(text: &str) -> Option<Decoded> {
        read(text.as_bytes()).map(|node| node.into_untyped().expect("untyped"))
    }

    #[test]
    fn what_clients_send_is_read_as_json() {
        let long = format!(r#"{{"{}":1}}"#, "k".repeat(LONGEST_KEY));
        for text in [
            "{}",
            "{}\n",
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"k":"AAA="}}"#,
            r##"{ "a" : [ 1 , -2, {"b": null}, [], true , "# no: {comment}" ] , "c":"'~ yes" }"##,
            r#"{"a":"","": "on","1":"2020-01-01","no":[0,999999999999999999]}"#,
            &long,
        ] {
            assert!(by_json(text) == Some(by_yaml(text)), "{text}");
        }
    }

    #[test]
    fn what_yaml_may_read_otherwise_is_left_to_it() {
        let long = format!(r#"{{"{}":1}}"#, "k".repeat(LONGEST_KEY + 1));
        let deep = format!("{}{}", r#"{"a":"#.repeat(DEEPEST + 1), "}".repeat(DEEPEST + 1));
        let members: Vec<String> = (0..=MOST_MEMBERS).map(|index| format!(r#""{index}":1"#)).collect();
        let wide = format!("{{{}}}", members.join(","));
        for text in [
            "",
            "a: 1",
            "[1]",
            "{a: 1}",
            r#"{"a":1e3}"#,
            r#"{"a":1.0}"#,
            r#"{"a":-0}"#,
            r#"{"a":1000000000000000000}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"<<":{"a":1}}"#,
            r#"{"a":"\u0041"}"#,
            "{\"a\":\"\u{e9}\"}",
            "{\"a\":\t1}",
            "{\"a\":\n1}",
            "{\"a\":1}\n\n",
            "{\"a\":1}\n---\n{}",
            "{\"a\":\"\u{7f}\"}",
            &long,
            &deep,
            &wide,
        ] {
            assert!(by_json(text).is_none(), "{text}");
        }
    }

    fn trees() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "[ -~]{0,12}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map("[ -~]{0,6}", inner, 0..4)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn both_ways_read_the_same(tree in trees()) {
            let text = serde_json::json!({ "a": tree }).to_string();
            if let Some(decoded) = by_json(&text) {
                prop_assert!(decoded == by_yaml(&text), "{text}");
            }
        }
    }
}
