//! `/version`.

use crate::respond;

/// The Kubernetes release whose API is spoken. Clients parse it as a semantic version and judge
/// their skew by it, so it is upstream's; coffer's own version is build metadata behind a `+`.
pub(crate) const GIT_VERSION: &str = concat!("v1.37.2+coffer-", env!("CARGO_PKG_VERSION"));

/// The release without its patches, as OpenAPI documents name it.
pub(crate) const MINOR_VERSION: &str = "1.37";

pub(super) fn document() -> Vec<u8> {
    let platform = format!("{}/{}", std::env::consts::OS, architecture());
    let document = format!(
        concat!(
            r#"{{"major":"1","minor":"37","emulationMajor":"1","emulationMinor":"37","#,
            r#""minCompatibilityMajor":"1","minCompatibilityMinor":"36","gitVersion":"{}","#,
            r#""gitCommit":"","gitTreeState":"clean","buildDate":"1970-01-01T00:00:00Z","#,
            r#""goVersion":"","compiler":"rustc","platform":"{}"}}"#
        ),
        GIT_VERSION, platform
    );
    respond::indent(document.as_bytes())
}

/// Go's name of the processor.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
