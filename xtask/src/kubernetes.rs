//! `cargo xtask conformance kubernetes`: Kubernetes' own conformance tests against `coffer up`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::peers::{cache, cargo, install, root, run};

/// The media types that the tests' clients speak.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const JSON: &str = "application/json";

/// How long coffer may take until it is there.
const START: Duration = Duration::from_secs(60);

/// Runs the specs that need an API server only, with bodies in `content_type`; `focus` instead of all.
pub(crate) fn conformance(content_type: &str, focus: Option<&str>) -> anyhow::Result<()> {
    install(&["e2e.test", "ginkgo", "kubectl"])?;
    run(cargo().args(["build", "--package", "coffer"]))?;
    let binary = target_directory()?.join("debug/coffer");
    let directory = tempfile::tempdir()?;
    let coffer = Coffer::start(&binary, directory.path())?;
    let reports = directory.path().join("reports");
    std::fs::create_dir(&reports)?;
    let programs = cache()?.join("bin");
    let focus = focus.map_or_else(|| expressions("api.focus"), |focus| Ok(focus.to_owned()))?;
    let status = Command::new(programs.join("ginkgo"))
        .args(["--procs=2", "--no-color", "--timeout=40m"])
        .arg(format!("--focus={focus}"))
        .arg(format!("--skip={}", expressions("api.skip")?))
        .arg(programs.join("e2e.test"))
        .arg("--")
        .arg(format!("--kubeconfig={}", coffer.kubeconfig.display()))
        .arg(format!("--kubectl-path={}", programs.join("kubectl").display()))
        .arg(format!("--report-dir={}", reports.display()))
        .arg(format!("--kube-api-content-type={content_type}"))
        .args(["--provider=skeleton", "--allowed-not-ready-nodes=-1", "--num-nodes=1"])
        .args(["--disable-log-dump", "--dump-logs-on-failure=false"])
        .stdout(std::fs::File::create(directory.path().join("log"))?)
        .stderr(Stdio::inherit())
        .status()
        .context("cannot start ginkgo")?;
    drop(coffer);
    let outcomes = outcomes(&reports)?;
    if outcomes.is_empty() {
        let log = std::fs::read_to_string(directory.path().join("log"))?;
        anyhow::bail!("no spec ran ({status}):\n{log}");
    }
    judge(&outcomes, &not_yet()?)
}

/// Where cargo builds.
fn target_directory() -> anyhow::Result<PathBuf> {
    let output = cargo().args(["metadata", "--no-deps", "--format-version=1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(PathBuf::from(metadata["target_directory"].as_str().context("cargo names no target directory")?))
}

struct Coffer {
    process: Child,
    kubeconfig: PathBuf,
}

impl Coffer {
    fn start(binary: &Path, directory: &Path) -> anyhow::Result<Self> {
        let data = directory.join("data");
        let log = std::fs::File::create(directory.join("coffer.log"))?;
        let mut process = Command::new(binary)
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let kubeconfig = data.join("kubeconfig");
        let started = Instant::now();
        while !kubeconfig.exists() {
            if process.try_wait()?.is_some() || START < started.elapsed() {
                drop(process.kill());
                anyhow::bail!(
                    "coffer does not start:\n{}",
                    std::fs::read_to_string(directory.join("coffer.log"))?
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(Self { process, kubeconfig })
    }
}

impl Drop for Coffer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn folder() -> PathBuf {
    root().join("peers/e2e")
}

/// The lines of a file as one regular expression.
fn expressions(file: &str) -> anyhow::Result<String> {
    let path = folder().join(file);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(text.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("|"))
}

/// What is known to fail, with its reason.
fn not_yet() -> anyhow::Result<BTreeMap<String, String>> {
    let path = folder().join("not-yet.txt");
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
fn judge(outcomes: &BTreeMap<String, bool>, not_yet: &BTreeMap<String, String>) -> anyhow::Result<()> {
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
    fn only_what_is_listed_may_fail() {
        let outcomes: BTreeMap<_, _> = specs(REPORT).into_iter().collect();
        let listed = |name: &str| BTreeMap::from([(name.to_owned(), "why".to_owned())]);
        assert!(judge(&outcomes, &listed("[sig-api] C")).is_ok());
        assert!(judge(&outcomes, &BTreeMap::new()).is_err());
        let both = judge(&outcomes, &listed("[sig-api] A \"b\" [Conformance]")).expect_err("both are news");
        assert_eq!(both.to_string(), "[sig-api] C fails\n[sig-api] A \"b\" [Conformance] passes now");
    }
}
