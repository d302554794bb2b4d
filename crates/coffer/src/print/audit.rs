//! An audit's report for people.

use std::fmt::Write as _;

use coffer_keys::audit::{Copies, Report};

use super::{Paint, columns};

/// How many findings are shown; `-o json` has them all.
const SHOWN: usize = 50;

/// The text: totals, what is not as it should be, and what to do next.
pub(crate) fn render(report: &Report, paint: Paint) -> String {
    let mut out = String::new();
    let mut rows =
        vec![["RESOURCE", "PROVIDER", "KEY", "LIVE", "OLD REVISIONS", "STATE"].map(str::to_owned).to_vec()];
    for copies in &report.copies {
        let old = copies.old_revisions.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let (resource, key) = (or_dash(&copies.resource), or_dash(&copies.key));
        let live = copies.live.to_string();
        rows.push(vec![resource, copies.provider.clone(), key, live, old, state(copies, report, paint)]);
    }
    out.push_str(&columns(&rows, ""));
    if !report.findings.is_empty() {
        let _ = writeln!(out, "\n{}", paint.bold("Problems"));
        let shown = report.findings.iter().take(SHOWN);
        let rows: Vec<Vec<String>> = shown
            .map(|found| {
                let problem = found.problem.name().to_owned();
                vec![problem, found.resource.clone(), found.name.clone(), found.reason.clone()]
            })
            .collect();
        out.push_str(&columns(&rows, "  "));
        if report.findings.len() > SHOWN {
            let _ = writeln!(out, "  and {} more: coffer audit -o json", report.findings.len() - SHOWN);
        }
    }
    out.push('\n');
    out.push_str(&verdict(report, paint));
    out
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn state(copies: &Copies, report: &Report, paint: Paint) -> String {
    let wrong = report.findings.iter().filter(|found| {
        found.resource == copies.resource && found.provider == copies.provider && found.key == copies.key
    });
    let mut parts = Vec::new();
    for (problem, count) in counted(wrong.map(|found| found.problem.name())) {
        parts.push(paint.red(&format!("{count} {problem}")));
    }
    if copies.old_key > 0 {
        parts.push(paint.red(&format!("{} not under the key of new writes", copies.old_key)));
    }
    match parts.is_empty() {
        false => parts.join(", "),
        true if copies.live == 0 => "only in the history".to_owned(),
        true if copies.provider == "identity" => "not encrypted".to_owned(),
        true if report.opened => paint.green("good"),
        true => "encrypted".to_owned(),
    }
}

fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}

fn verdict(report: &Report, paint: Paint) -> String {
    let mut out = String::new();
    let live: u64 = report.copies.iter().map(|copies| copies.live).sum();
    let old: u64 = report.copies.iter().map(|copies| copies.old_key).sum();
    let wrong = report.findings.len() as u64;
    let _ = match (report.clean, report.opened) {
        (true, true) => writeln!(
            out,
            "{}: all {live} copies open and are stored as a write would store them now (revision {}).",
            paint.green("Clean"),
            report.revision
        ),
        (true, false) => writeln!(
            out,
            "No Secret is plaintext, of {live} copies (revision {}). Whether the keys that you hold open \
             them: add --config FILE.",
            report.revision
        ),
        (false, _) => writeln!(
            out,
            "{}: {wrong} of {live} copies are not as they should be, {old} are not under the key of new \
             writes (revision {}).",
            paint.red("Not clean"),
            report.revision
        ),
    };
    let history: u64 = report
        .copies
        .iter()
        .filter(|copies| copies.provider == "identity" && copies.resource == "secrets")
        .filter_map(|copies| copies.old_revisions)
        .sum();
    if history > 0 {
        let _ = writeln!(
            out,
            "{history} old revisions of Secrets in this file are plaintext; they stay in etcd until it is \
             compacted and defragmented, and in every copy of the file."
        );
    }
    out
}
