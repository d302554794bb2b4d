//! Log lines: which, and where to.

use tracing::Metadata;
use tracing_subscriber::filter::{EnvFilter, FilterFn, LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

/// Log lines go to standard error; `COFFER_LOG` overrides the level, module by module.
pub(crate) fn start(verbose: u8) {
    let filter = EnvFilter::try_from_env("COFFER_LOG").unwrap_or_else(|_| wanted(verbose));
    tracing_subscriber::registry().with(lines(filter)).init();
}

/// What is logged unless `COFFER_LOG` says otherwise.
fn wanted(verbose: u8) -> EnvFilter {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    // Libraries below log request paths and the like: only when asked for module by module.
    EnvFilter::new(format!("warn,{}", own_crates(level)))
}

fn lines(filter: EnvFilter) -> impl Layer<Registry> + Send + Sync {
    let bodies = silent_bodies(filter.max_level_hint());
    tracing_subscriber::fmt::layer()
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_filter(filter)
        .with_filter(bodies)
}

/// Lets everything up to `most` pass but the modules that print bodies.
///
/// It has to name its highest level: a filter that does not makes the spans of every library be
/// built just to be thrown away, which took a tenth of the server's time.
fn silent_bodies(most: Option<LevelFilter>) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    let most = most.unwrap_or(LevelFilter::TRACE);
    filter_fn(move |metadata| *metadata.level() <= most && !prints_bodies(metadata.target()))
        .with_max_level_hint(most)
}

/// Whether a library's module is known to print what it sends or receives. Such a module is
/// silent at every level, whatever `COFFER_LOG` says: a body may be a Secret.
fn prints_bodies(target: &str) -> bool {
    // The HTTP client of Kubernetes prints a whole answer that it cannot decode as a warning.
    target.starts_with("kube_client")
}

fn own_crates(level: &str) -> String {
    ["", "_server", "_store", "_operator", "_providers", "_node", "_runtime", "_config", "_keys"]
        .map(|name| format!("coffer{name}={level}"))
        .join(",")
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    /// The spans of the libraries on the way of every request cost nothing when nobody reads them.
    #[test]
    fn what_is_not_logged_is_not_built() {
        for (filter, expected) in [
            (wanted(0), LevelFilter::WARN),
            (wanted(1), LevelFilter::INFO),
            (wanted(2), LevelFilter::DEBUG),
            (wanted(3), LevelFilter::TRACE),
            (EnvFilter::new("error"), LevelFilter::ERROR),
        ] {
            let subscriber = tracing_subscriber::registry().with(lines(filter));
            let hint = tracing::Subscriber::max_level_hint(&subscriber);
            assert_eq!(hint, Some(expected));
        }
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines(wanted(0))), || {
            assert!(!tracing::enabled!(target: "h2::client", Level::TRACE));
            assert!(tracing::enabled!(target: "h2::client", Level::WARN));
        });
    }

    #[test]
    fn modules_that_print_bodies_are_silent_whatever_is_asked_for() {
        let asked = EnvFilter::new("trace,kube_client=trace");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines(asked)), || {
            assert!(!tracing::enabled!(target: "kube_client::client", Level::ERROR));
            assert!(tracing::enabled!(target: "kube_runtime::watcher", Level::TRACE));
        });
    }
}
