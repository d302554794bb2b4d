//! A client for the API server that the user means.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::cli::Global;
use crate::exit::Failure;

/// From `--kubeconfig` and `--context`, else as kubectl and in-cluster clients find it.
pub(crate) async fn connect(global: &Global) -> Result<Client, Failure> {
    let options = KubeConfigOptions { context: global.context.clone(), ..KubeConfigOptions::default() };
    let mut config = match &global.kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unreadable(path, &error))?;
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .map_err(|error| unreadable(path, &error))?
        }
        None if global.context.is_some() => {
            Config::from_kubeconfig(&options).await.map_err(|error| no_cluster(&error))?
        }
        None => Config::infer().await.map_err(|error| no_cluster(&error))?,
    };
    if let Some(namespace) = &global.namespace {
        config.default_namespace.clone_from(namespace);
    }
    Client::try_from(config).map_err(|error| Failure::unreachable(format!("cannot make a client: {error}")))
}

fn unreadable(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::unreachable(format!("cannot use the kubeconfig {}: {}", path.display(), causes(error)))
        .next("name another with --kubeconfig, or make one with: coffer up")
}

fn no_cluster(error: &dyn std::error::Error) -> Failure {
    Failure::unreachable(format!("no kubeconfig was found: {}", causes(error)))
        .next("name one with --kubeconfig, or start a server with: coffer up")
}

/// Says which server does not answer, or what it refused; no body is shown.
pub(crate) fn unreachable(error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => {
            Failure::unreachable(format!("the API server refused: {}", status.message))
        }
        other => Failure::unreachable(format!("cannot reach the API server: {}", causes(other)))
            .next("is it running? name another with --kubeconfig or --context"),
    }
}

/// An error with its causes, each once.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let more = source.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = source.source();
    }
    text
}
