//! `coffer trace secret/NAME`.

use coffer_runtime::clock::SystemClock;
use coffer_types::time::Clock;

use crate::cli::{Global, Output, Trace};
use crate::exit::{Exit, Failure};
use crate::print::{Paint, document};
use crate::trace::gather::Ask;
use crate::trace::{Life, gather, table};
use crate::{client, put};

/// Prints the life; 1 when something is broken or stale.
pub(crate) async fn run(global: &Global, flags: &Trace) -> Result<Exit, Failure> {
    let argument = match &flags.name {
        None => flags.secret.clone(),
        Some(name) => format!("{}/{name}", flags.secret),
    };
    let name = secret_name(&argument)?;
    let server = client::connect(global).await?;
    let namespace = server.client.default_namespace();
    let life = gather::life(&server.client, namespace, name, Ask::Source)
        .await
        .map_err(|error| client::unreachable(&server.url, &error))?;
    put(&rendered(&life, global)?)?;
    Ok(if life.broken.is_empty() { Exit::Done } else { Exit::Problem })
}

fn rendered(life: &Life, global: &Global) -> Result<String, Failure> {
    match global.output {
        Output::Table => Ok(table::render(life, SystemClock::new().now(), Paint::new(global.color))),
        Output::Json | Output::Yaml => document(life, global.output),
        Output::Name => Ok(format!("secret/{}\n", life.name)),
    }
}

/// `secret/NAME`, `secrets/NAME` or `NAME`; `secret NAME` has come as the first of them.
fn secret_name(argument: &str) -> Result<&str, Failure> {
    let (kind, name) = argument.split_once('/').unwrap_or(("secret", argument));
    if !matches!(kind, "secret" | "secrets") || name.is_empty() || name.contains('/') {
        return Err(Failure::usage(format!("{argument:?} does not name a Secret"))
            .next("write it as: coffer trace secret/NAME [-n NAMESPACE]"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_can_be_named_in_three_ways() {
        for argument in ["db", "secret/db", "secrets/db"] {
            assert_eq!(secret_name(argument).expect("a name"), "db");
        }
        for argument in ["pod/db", "secret/", "/db", "secret/a/b", ""] {
            let failure = secret_name(argument).expect_err(argument);
            assert_eq!(failure.exit, Exit::Usage);
        }
    }
}
