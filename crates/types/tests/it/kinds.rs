//! The kinds that are stored for others, held to upstream's strategies, printers and protobuf.

use coffer_types::codec::{json, proto};
use coffer_types::meta::Meta as _;
use coffer_types::schema;
use coffer_types::time::Timestamp;
use coffer_types::validation::{kinds, pod};
use coffer_types::{Value, print};

const WRITES: &str = include_str!("../golden/kinds/writes.txt");
const COLUMNS: &str = include_str!("../golden/kinds/columns.txt");

/// One write, as `peers/go/kinds` describes it.
struct Write<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    operation: &'a str,
    before: &'a str,
    sent: &'a str,
    stored: &'a str,
    errors: &'a str,
    cells: &'a str,
    bytes: &'a str,
}

fn writes() -> Vec<Write<'static>> {
    let lines = WRITES.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [group, version, kind, operation, before, sent, stored, errors, cells, bytes] =
                fields[..].try_into().expect("ten fields");
            Write { group, version, kind, operation, before, sent, stored, errors, cells, bytes }
        })
        .collect()
}

impl Write<'_> {
    fn schema(&self) -> &'static schema::Kind {
        schema::lookup(self.group, self.version, self.kind).expect("a kind that is spoken")
    }

    fn decode(&self, text: &str) -> Value {
        let mut object = json::decode(self.schema().message, text.as_bytes()).expect("an object").object;
        object.set_type(&self.schema().api_version(), self.kind);
        match kinds::of(self.group, self.kind) {
            Some(rules) => rules.default(&mut object),
            None => pod::default(&mut object),
        }
        object
    }

    /// As it would be stored, and what is wrong with it.
    fn run(&self) -> (Value, Vec<String>) {
        let mut object = self.decode(self.sent);
        // What a store gives every object; the golden file does without.
        object.set_meta_str("uid", "u");
        let rules = kinds::of(self.group, self.kind);
        let subresource = if self.operation == "update" { "" } else { self.operation };
        let errors = match (rules, self.operation) {
            (Some(rules), "create") => {
                rules.prepare_create(&mut object);
                rules.validate(&object)
            }
            (Some(rules), _) => {
                let mut before = self.decode(self.before);
                before.set_meta_str("uid", "u");
                before.set_meta_str("resourceVersion", "1");
                object.set_meta_str("resourceVersion", "1");
                coffer_types::validation::meta::take_over(&mut object, &before);
                rules.prepare_update(subresource, &mut object, &before);
                rules.validate_update(subresource, &object, &before)
            }
            (None, "create") => {
                pod::prepare_create(&mut object);
                Vec::new()
            }
            (None, _) => Vec::new(),
        };
        for field in ["uid", "resourceVersion"] {
            object.remove(&["metadata", field]);
        }
        (object, errors.iter().map(ToString::to_string).collect())
    }
}

/// Upstream prints a difference or a whole value there, which may hold what is secret.
fn without_values(text: &str) -> String {
    let text = text.split("\n@@").next().unwrap_or_default();
    for field in ["spec.template.spec", "spec.volumeClaimTemplates", "data"] {
        if let Some(rest) = text.strip_prefix(&format!("{field}: Invalid value: "))
            && let Some(detail) = rest.rsplit(": ").next()
        {
            return format!("{field}: Invalid value: {detail}");
        }
    }
    text.trim_end().to_owned()
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

#[test]
fn what_is_wrong_is_told_in_upstreams_words() {
    let mut faults = Vec::new();
    for write in writes().iter().filter(|write| write.kind != "Pod") {
        let expected: Vec<String> = if write.errors.is_empty() {
            Vec::new()
        } else {
            serde_json::from_str(write.errors).expect("a list of texts")
        };
        let expected = sorted(expected.iter().map(|text| without_values(text)).collect());
        let (_, found) = write.run();
        let found = sorted(found.iter().map(|text| without_values(text)).collect());
        if found != expected {
            faults.push(format!(
                "{} {} {}\n   found {found:#?}\n   expected {expected:#?}",
                write.kind, write.operation, write.sent
            ));
        }
    }
    assert!(faults.is_empty(), "{} differ:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn what_is_stored_is_what_upstream_stores() {
    let mut faults = Vec::new();
    for write in writes().iter().filter(|write| !write.stored.is_empty()) {
        if write.kind == "Pod" && write.operation != "create" {
            continue;
        }
        let (mut found, _) = write.run();
        let encode = |object: &Value| {
            let mut out = Vec::new();
            json::encode(write.schema().message, object, &mut out);
            String::from_utf8(out).expect("text")
        };
        let mut expected =
            json::decode(write.schema().message, write.stored.as_bytes()).expect("an object").object;
        expected.set_type(&write.schema().api_version(), write.kind);
        // Given by the server's clock.
        expected.remove(&["status", "lastPhaseTransitionTime"]);
        found.remove(&["status", "lastPhaseTransitionTime"]);
        if write.kind == "PersistentVolumeClaim" {
            // Upstream leaves the first phase to whoever reads the claim.
            expected.set(
                &["status", "phase"],
                expected.at(&["status", "phase"]).cloned().unwrap_or("Pending".into()),
            );
        }
        let (found, expected) = (encode(&found), encode(&expected));
        if found != expected {
            faults.push(format!(
                "{} {} {}\n   found    {found}\n   expected {expected}",
                write.kind, write.operation, write.sent
            ));
        }
    }
    assert!(faults.is_empty(), "{} differ:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn stored_bytes_are_upstreams() {
    for write in writes().iter().filter(|write| !write.bytes.is_empty()) {
        let bytes = hex(write.bytes);
        let object = proto::decode_enveloped(&bytes, Some(write.schema())).expect("upstream's bytes");
        let again = proto::encode_enveloped(write.schema(), &object);
        assert!(again == bytes, "{} {}", write.kind, write.sent);
    }
}

#[test]
fn rows_and_columns_are_upstreams() {
    let mut faults = Vec::new();
    let now: Timestamp = "2024-01-01T00:00:00Z".parse().expect("a time");
    for write in writes().iter().filter(|write| !write.cells.is_empty()) {
        let object =
            proto::decode_enveloped(&hex(write.bytes), Some(write.schema())).expect("upstream's bytes");
        let cells = Value::Array(print::table_row(write.group, write.kind, &object, now));
        let found = coffer_types::validation::field::go_json(&cells);
        let expected: serde_json::Value = serde_json::from_str(write.cells).expect("cells");
        let found: serde_json::Value = serde_json::from_str(&found).expect("cells");
        if found != expected {
            faults
                .push(format!("{} {}\n   found    {found}\n   expected {expected}", write.kind, write.sent));
        }
    }
    for line in COLUMNS.lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.split('\t');
        let (group, kind) = (parts.next().expect("a group"), parts.next().expect("a kind"));
        let expected: Vec<&str> = parts.collect();
        let columns = print::columns(group, kind);
        let found: Vec<String> = columns
            .iter()
            .map(|one| format!("{}|{}|{}|{}", one.name, one.kind, one.format, one.priority))
            .collect();
        if found != expected {
            faults.push(format!("columns of {kind}\n   found    {found:?}\n   expected {expected:?}"));
        }
    }
    assert!(faults.is_empty(), "{} differ:\n{}", faults.len(), faults.join("\n"));
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    (0..text.len()).step_by(2).map(digit).collect()
}
