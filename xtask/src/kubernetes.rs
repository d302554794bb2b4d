//! `cargo xtask conformance kubernetes`: Kubernetes' own conformance tests against `coffer apiserver`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;

use crate::control_plane::{ControlPlane, NODE, Options, inside, program};
use crate::peers::{cargo, install, root, run};

/// The media types that the tests' clients speak.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const JSON: &str = "application/json";

/// Which specs run, beside which other components.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Those that need an API server only; kube-controller-manager runs for the controllers that coffer does not have.
    Api,
    /// Of those the ones that need none of its controllers; coffer runs alone.
    Alone,
}

/// Runs a group of specs with bodies in `content_type`; `focus` instead of all.
pub(crate) fn conformance(group: Group, content_type: &str, focus: Option<&str>) -> anyhow::Result<()> {
    let mut peers = vec!["e2e.test", "ginkgo", "kubectl"];
    if group == Group::Api {
        peers.push("kube-controller-manager");
    }
    install(&peers)?;
    run(cargo().args(["build", "--package", "coffer"]))?;
    let directory = tempfile::tempdir()?;
    let options = Options { controllers: group == Group::Api, ..Options::default() };
    let plane = ControlPlane::start(directory.path(), &options)?;
    // The specs of what a node may do want one to be known; it need not run.
    let node = directory.path().join("node.yaml");
    std::fs::write(&node, format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {NODE}}}\n"))?;
    let create = ["create", "--filename", &node.display().to_string()];
    anyhow::ensure!(plane.kubectl(&options, &create), "the node cannot be created");
    let focus = focus.map_or_else(|| expressions("api.focus"), |focus| Ok(focus.to_owned()))?;
    let mut skip = expressions("api.skip")?;
    if group == Group::Alone {
        skip = format!("{skip}|{}", expressions("alone.skip")?);
    }
    let outcomes = specs_of(directory.path(), &plane, &options, content_type, &focus, &skip)?;
    drop(plane);
    judge(&outcomes, &not_yet("not-yet.txt")?)
}

/// Runs specs against a control plane and tells how each ended.
pub(crate) fn specs_of(
    directory: &Path,
    plane: &ControlPlane,
    options: &Options<'_>,
    content_type: &str,
    focus: &str,
    skip: &str,
) -> anyhow::Result<BTreeMap<String, bool>> {
    let reports = directory.join("reports");
    std::fs::create_dir_all(&reports)?;
    let log = directory.join("log");
    let status = inside(options.namespace, &program("ginkgo")?)
        .args(["--procs=2", "--no-color", "--timeout=60m"])
        .arg(format!("--focus={focus}"))
        .arg(format!("--skip={skip}"))
        .arg(program("e2e.test")?)
        .arg("--")
        .arg(format!("--kubeconfig={}", plane.kubeconfig.display()))
        .arg(format!("--kubectl-path={}", program("kubectl")?.display()))
        .arg(format!("--report-dir={}", reports.display()))
        .arg(format!("--kube-api-content-type={content_type}"))
        .args(["--provider=skeleton", "--allowed-not-ready-nodes=-1", "--num-nodes=1"])
        .args(["--disable-log-dump", "--dump-logs-on-failure=false"])
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&log)?)
        .stderr(Stdio::inherit())
        .status()
        .context("cannot start ginkgo")?;
    let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
    let outcomes = outcomes(&reports)?;
    anyhow::ensure!(!outcomes.is_empty(), "no spec ran ({status}):\n{text}");
    for line in summary(&text) {
        eprintln!("conformance: {line}");
    }
    for line in failures(&text) {
        eprintln!("conformance: {line}");
    }
    Ok(outcomes)
}

/// What ginkgo says at its end.
fn summary(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter(|line| line.starts_with("Ran ") || line.contains(" Passed | "))
}

/// Why specs failed, and where.
fn failures(log: &str) -> impl Iterator<Item = &str> {
    log.lines().map(str::trim).filter(|line| line.starts_with("[FAILED] "))
}

fn folder() -> PathBuf {
    root().join("peers/e2e")
}

/// The lines of a file as one regular expression.
pub(crate) fn expressions(file: &str) -> anyhow::Result<String> {
    let path = folder().join(file);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(text.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("|"))
}

/// What is known to fail, with its reason.
pub(crate) fn not_yet(file: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let path = folder().join(file);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    text.lines()
        .map(|line| {
            let (spec, reason) = line.split_once('\t').with_context(|| format!("no reason: {line}"))?;
            anyhow::ensure!(!reason.is_empty(), "no reason: {line}");
            Ok((spec.to_owned(), reason.to_owned()))
        })
        .collect()
}

/// Every spec that ran, and whether it passed, from the JUnit reports.
fn outcomes(reports: &Path) -> anyhow::Result<BTreeMap<String, bool>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(reports)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "xml") {
            found.extend(specs(&std::fs::read_to_string(path)?));
        }
    }
    Ok(found)
}

/// The `<testcase>` elements of a report that are specs and were not skipped.
fn specs(report: &str) -> Vec<(String, bool)> {
    let attribute = |element: &str, name: &str| {
        let text = element.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?;
        let text =
            text.replace("&#34;", "\"").replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">");
        Some(text.replace("&amp;", "&"))
    };
    report
        .split("<testcase ")
        .skip(1)
        .filter_map(|rest| {
            let element = format!(" {}", rest.split('>').next()?);
            let name = attribute(&element, "name")?.strip_prefix("[It] ")?.to_owned();
            let status = attribute(&element, "status")?;
            (status != "skipped").then_some((name, status == "passed"))
        })
        .collect()
}

/// Fails unless just what is listed fails.
pub(crate) fn judge(
    outcomes: &BTreeMap<String, bool>,
    not_yet: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let passed: BTreeSet<&String> =
        outcomes.iter().filter(|(_, passed)| **passed).map(|(name, _)| name).collect();
    let failed: BTreeSet<&String> = outcomes.keys().filter(|name| !passed.contains(name)).collect();
    for name in &passed {
        eprintln!("conformance: passed {name}");
    }
    for name in &failed {
        eprintln!("conformance: failed {name}: {}", not_yet.get(*name).map_or("UNEXPECTED", String::as_str));
    }
    eprintln!("conformance: {} of {} specs passed", passed.len(), outcomes.len());
    let news: Vec<String> = failed
        .iter()
        .filter(|name| !not_yet.contains_key(**name))
        .map(|name| format!("{name} fails"))
        .chain(not_yet.keys().filter(|name| passed.contains(name)).map(|name| format!("{name} passes now")))
        .collect();
    anyhow::ensure!(news.is_empty(), "{}", news.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<testsuites><testsuite>
<testcase name="[SynchronizedBeforeSuite]" status="passed" time="1"></testcase>
<testcase name="[It] [sig-api] A &#34;b&#34; [Conformance]" classname="e2e" status="passed" time="1.5"></testcase>
<testcase name="[It] [sig-api] C" classname="e2e" status="failed" time="1"><failure message="x &gt; y">text</failure></testcase>
<testcase name="[It] [sig-api] D" classname="e2e" status="skipped" time="0"></testcase>
</testsuite></testsuites>"#;

    #[test]
    fn a_report_tells_what_ran() {
        assert_eq!(
            specs(REPORT),
            [("[sig-api] A \"b\" [Conformance]".to_owned(), true), ("[sig-api] C".to_owned(), false)]
        );
    }

    #[test]
    fn the_end_of_a_log_tells_why() {
        let log = "x\nRan 2 of 9 Specs in 1.5 seconds\nFAIL! -- 1 Passed | 1 Failed | 0 Pending | 7 Skipped\n  [FAILED] no such thing\n";
        let lines: Vec<&str> = summary(log).chain(failures(log)).collect();
        assert_eq!(
            lines,
            [
                "Ran 2 of 9 Specs in 1.5 seconds",
                "FAIL! -- 1 Passed | 1 Failed | 0 Pending | 7 Skipped",
                "[FAILED] no such thing"
            ]
        );
    }

    #[test]
    fn every_listed_spec_has_a_reason_and_every_expression_is_one() {
        for file in ["api.focus", "api.skip", "alone.skip", "node.focus", "node.skip"] {
            assert!(!expressions(file).expect(file).is_empty(), "{file}");
        }
        for file in ["not-yet.txt", "node-not-yet.txt"] {
            assert!(not_yet(file).is_ok(), "{file}");
        }
    }

    #[test]
    fn only_what_is_listed_may_fail() {
        let outcomes: BTreeMap<_, _> = specs(REPORT).into_iter().collect();
        let listed = |name: &str| BTreeMap::from([(name.to_owned(), "why".to_owned())]);
        assert!(judge(&outcomes, &listed("[sig-api] C")).is_ok());
        assert!(judge(&outcomes, &BTreeMap::new()).is_err());
        let both = judge(&outcomes, &listed("[sig-api] A \"b\" [Conformance]")).expect_err("both are news");
        assert_eq!(both.to_string(), "[sig-api] C fails\n[sig-api] A \"b\" [Conformance] passes now");
    }
}
