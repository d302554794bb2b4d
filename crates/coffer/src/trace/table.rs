//! A Secret's life for people.

use std::fmt::Write as _;

use super::{AtRest, Entry, Life, State};
use crate::print::{Paint, columns};

/// The text, line by line.
pub(crate) fn render(life: &Life, now: jiff::Timestamp, paint: Paint) -> String {
    let mut out = String::new();
    let heading = |text: &str| paint.bold(text);
    let _ = writeln!(out, "{} {}/{}", heading("Secret"), life.namespace, life.name);
    match &life.secret {
        Some(secret) => {
            let _ = writeln!(
                out,
                "  {}, {} {}, resourceVersion {}",
                secret.secret_type,
                secret.keys.len(),
                if secret.keys.len() == 1 { "key" } else { "keys" },
                secret.resource_version,
            );
        }
        None => {
            let stored = matches!(life.at_rest, AtRest::Encrypted { .. } | AtRest::Plaintext);
            let what = if stored { "is stored but cannot be read" } else { "does not exist" };
            let _ = writeln!(out, "  {}", paint.red(what));
        }
    }
    let _ = writeln!(out, "\n{}", heading("Source"));
    match &life.source {
        None => {
            let _ = writeln!(out, "  none: nothing outside the cluster owns the value");
        }
        Some(source) => {
            let state = if source.ready { paint.green(&source.reason) } else { paint.red(&source.reason) };
            let _ = writeln!(
                out,
                "  {}  {state}, last sync {}",
                source.external_secret,
                ago(&source.last_sync, now)
            );
            let _ = writeln!(out, "  {}  {}", source.store, source.provider);
            let rows: Vec<Vec<String>> = source
                .entries
                .iter()
                .map(|entry| vec![entry.key.clone(), "←".to_owned(), entry.remote.clone(), versions(entry)])
                .collect();
            out.push_str(&columns(&rows, "  "));
            if !source.not_asked.is_empty() {
                let _ = writeln!(out, "  the source was not asked what it holds now: {}", source.not_asked);
            }
        }
    }
    let _ = writeln!(out, "\n{}", heading("At rest"));
    let at_rest = match &life.at_rest {
        AtRest::Encrypted { provider, key, readable: false, .. } => {
            paint.red(&format!("{provider}, key {key}, which the server does not hold"))
        }
        AtRest::Encrypted { provider, key, stale: false, .. } => {
            paint.green(&format!("{provider}, key {key}, the key of new writes"))
        }
        AtRest::Encrypted { provider, key, stale: true, .. } => {
            paint.red(&format!("{provider}, key {key}, not the key of new writes"))
        }
        AtRest::Plaintext => paint.red("plaintext"),
        AtRest::Unknown { why } => format!("unknown: {why}"),
    };
    let _ = writeln!(out, "  {at_rest}");
    let _ = writeln!(out, "\n{}", heading("Consumers"));
    if life.consumers.is_empty() {
        let _ = writeln!(out, "  none");
    } else {
        let mut rows = vec![["POD", "NODE", "USE", "PLACE", "HOLDS", "STATE"].map(str::to_owned).to_vec()];
        for consumer in &life.consumers {
            let state = match consumer.state {
                State::Current => "current",
                State::Stale => "stale",
                State::Missing => "missing",
                State::Silent => "silent",
                State::Unknown => "unknown",
            };
            rows.push(vec![
                consumer.pod.clone(),
                consumer.node.clone(),
                consumer.kind.clone(),
                consumer.place.clone(),
                consumer.resource_version.clone(),
                state.to_owned(),
            ]);
        }
        out.push_str(&columns(&rows, "  "));
    }
    out.push('\n');
    if life.broken.is_empty() {
        let _ = writeln!(out, "{}", paint.green("Everything that was traced is current."));
    } else {
        for line in &life.broken {
            let _ = writeln!(out, "{} {line}", paint.red("✗"));
        }
    }
    out
}

/// What the last sync took, and what the source holds now.
fn versions(entry: &Entry) -> String {
    match (entry.version.as_str(), entry.current.as_str()) {
        _ if entry.gone => "gone at its source".to_owned(),
        ("", "") => String::new(),
        ("", current) => format!("the source has version {current}"),
        (version, "") => format!("version {version}"),
        (version, current) if version == current => format!("version {version}, the newest"),
        (version, current) => format!("version {version}, the source has {current}"),
    }
}

fn ago(time: &str, now: jiff::Timestamp) -> String {
    if time.is_empty() {
        return "never".to_owned();
    }
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => match now.as_second() - time.as_second() {
            seconds if seconds < 120 => format!("{} s ago", seconds.max(0)),
            seconds if seconds < 2 * 3600 => format!("{} min ago", seconds / 60),
            seconds => format!("{} h ago", seconds / 3600),
        },
        Err(_) => time.to_owned(),
    }
}
