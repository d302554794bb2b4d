//! Our definitions beside the original's: every field of every path, its type, enumeration, default
//! and what is required. Where they differ stands in a file, so that no difference comes or goes unseen.
//!
//! `definitions.txt` is made by `cargo xtask generate` of the newest version that is published with its
//! definitions (1.3); what 2.9 added is among the differences.

use std::collections::BTreeSet;

use serde_json::Value as Json;

const THEIRS: &str = include_str!("../golden/definitions.txt");
const DIFFERENCES: &str = include_str!("../golden/definition-differences.txt");
/// Providers whose fields are compared; of others only the name counts.
const PROVIDERS: [&str; 3] = ["vault", "kubernetes", "fake"];

fn walk(kind: &str, path: &str, at: &Json, lines: &mut BTreeSet<String>) {
    let mut line = format!("{kind} {path}: {}", at["type"].as_str().unwrap_or_default());
    if let Some(provider) = path.strip_prefix("spec.provider.")
        && !provider.contains('.')
        && !PROVIDERS.contains(&provider)
    {
        lines.insert(line);
        return;
    }
    if let Some(format) = at["format"].as_str() {
        line.push_str(&format!(" {format}"));
    }
    for name in ["enum", "default", "required"] {
        if let Some(value) = at.get(name) {
            line.push_str(&format!(" {name}={value}"));
        }
    }
    lines.insert(line);
    for (name, below) in at["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        walk(kind, &path, below, lines);
    }
    if let Some(items) = at.get("items") {
        walk(kind, &format!("{path}[]"), items, lines);
    }
    if let Some(below) = at.get("additionalProperties").filter(|below| below.is_object()) {
        walk(kind, &format!("{path}{{}}"), below, lines);
    }
}

fn ours() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for definition in coffer_operator::crd::all() {
        let spec = &definition["spec"];
        let (kind, names) = (spec["names"]["plural"].as_str().unwrap(), &spec["names"]);
        let (group, scope) = (spec["group"].as_str().unwrap(), spec["scope"].as_str().unwrap());
        lines.insert(format!("{kind} names {group} {scope} {names}"));
        for version in spec["versions"].as_array().unwrap() {
            if version["name"] == "v1" {
                walk(kind, "", &version["schema"]["openAPIV3Schema"], &mut lines);
            }
        }
    }
    lines
}

#[test]
fn our_definitions_differ_from_the_originals_as_listed_only() {
    let ours = ours();
    let theirs: BTreeSet<String> =
        THEIRS.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    let mut found: Vec<String> = theirs.difference(&ours).map(|line| format!("- {line}")).collect();
    found.extend(ours.difference(&theirs).map(|line| format!("+ {line}")));
    found.sort_by(|a, b| (&a[2..], &a[..1]).cmp(&(&b[2..], &b[..1])));
    if std::env::var_os("COFFER_UPDATE").is_some() {
        let head = DIFFERENCES.lines().take_while(|line| line.starts_with('#'));
        let text: String = head.map(str::to_owned).chain(found).map(|line| line + "\n").collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/definition-differences.txt");
        std::fs::write(path, text).expect("written");
        return;
    }
    let expected: Vec<&str> = DIFFERENCES.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(found, expected);
}
