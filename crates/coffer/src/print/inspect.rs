//! One stored value for people.

use std::fmt::Write as _;

use coffer_keys::inspect::{Envelope, Explained, Object, Opened};

use super::{Paint, columns};

/// The text, from the outside to the inside.
pub(crate) fn render(explained: &Explained, paint: Paint) -> String {
    let mut out = String::new();
    let row = |name: &str, text: String| vec![name.to_owned(), text];
    let mut rows = Vec::new();
    if !explained.etcd_key.is_empty() {
        rows.push(row("key in etcd", explained.etcd_key.clone()));
    }
    if !explained.resource.is_empty() {
        rows.push(row("resource", explained.resource.clone()));
    }
    let provider = match explained.provider.as_str() {
        "identity" => "identity: not encrypted".to_owned(),
        provider => provider.to_owned(),
    };
    rows.push(row("provider", provider));
    if !explained.key.is_empty() {
        rows.push(row("key", explained.key.clone()));
    }
    if let Some(envelope) = &explained.envelope {
        rows.extend(of_plugin(envelope).into_iter().map(|(name, text)| row(name, text)));
    }
    let parts: Vec<String> =
        explained.parts.iter().map(|part| format!("{} {}", part.name, part.length)).collect();
    rows.push(row("bytes", format!("{}: {}", explained.bytes, parts.join(", "))));
    let state = match &explained.opened {
        None => "not tried: add --config FILE".to_owned(),
        Some(Opened::Undecryptable { reason }) => paint.red(&format!("no key opens it: {reason}")),
        Some(Opened::Readable { stale: true, .. }) => {
            paint.red("opens, but a write would store it in another form now")
        }
        Some(Opened::Readable { .. }) if explained.provider == "identity" => "readable by anyone".to_owned(),
        Some(Opened::Readable { .. }) => paint.green("opens with the key of new writes"),
    };
    rows.push(row("state", state));
    out.push_str(&columns(&rows, ""));
    if let Some(Opened::Readable { object, .. }) = &explained.opened {
        match object {
            Some(object) => out.push_str(&inside(object, paint)),
            None => out.push_str("\nIt holds no object in any known encoding.\n"),
        }
    }
    out
}

/// How the plugin holds the data key.
fn of_plugin(envelope: &Envelope) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if !envelope.key_id.is_empty() {
        // Whoever may write to the store has chosen it.
        rows.push(("plugin's key", envelope.key_id.escape_debug().to_string()));
    }
    let source = &envelope.source;
    rows.push(("encrypted by it", format!("the {source}, {} bytes", envelope.source_length)));
    if !envelope.annotations.is_empty() {
        let all = envelope.annotations.iter();
        let all: Vec<String> = all.map(|(name, length)| format!("{name} {length}")).collect();
        rows.push(("annotations", all.join(", ")));
    }
    rows
}

fn inside(object: &Object, paint: Paint) -> String {
    let mut out = String::from("\n");
    let name = match object.namespace.as_str() {
        "" => object.name.clone(),
        namespace => format!("{namespace}/{}", object.name),
    };
    let _ = writeln!(
        out,
        "{} {} {} ({})",
        paint.bold("Holds"),
        format_args!("{} {}", object.api_version, object.kind),
        name,
        object.encoding
    );
    if object.misplaced {
        let _ = writeln!(out, "  {}", paint.red("but the key in etcd is that of another object"));
    }
    let rows: Vec<Vec<String>> =
        object.data.iter().map(|(name, length)| vec![name.clone(), format!("{length} bytes")]).collect();
    out.push_str(&columns(&rows, "  "));
    out
}
