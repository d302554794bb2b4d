//! A client for the API server that the user means.

use std::path::Path;

use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
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
            Config::from_kubeconfig(&options).await.map_err(|error| no_context(&error))?
        }
        None => Config::infer().await.map_err(|error| no_cluster(&error))?,
    };
    if let Some(namespace) = &global.namespace {
        config.default_namespace.clone_from(namespace);
    }
    Client::try_from(config).map_err(|error| Failure::unreachable(format!("cannot make a client: {error}")))
}

fn unreadable(path: &Path, error: &KubeconfigError) -> Failure {
    Failure::unreachable(format!("cannot use the kubeconfig {}: {}", path.display(), told(error)))
        .next("name another with --kubeconfig, or make one with: coffer up")
}

/// The error without anything of the file's content: a kubeconfig holds tokens and keys, and the
/// parser's text shows the lines around the fault.
fn told(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        KubeconfigError::LoadContext(name) => format!("it has no context {name:?}"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster {name:?}"),
        KubeconfigError::CurrentContextNotSet => "it has no current context".to_owned(),
        KubeconfigError::MissingClusterUrl => "its cluster has no server".to_owned(),
        KubeconfigError::LoadCertificateAuthority(_)
        | KubeconfigError::LoadClientCertificate(_)
        | KubeconfigError::LoadClientKey(_) => {
            "a certificate or key that it names cannot be loaded".to_owned()
        }
        KubeconfigError::FindPath => "the home directory is not known".to_owned(),
        _ => "it is not a valid kubeconfig".to_owned(),
    }
}

fn no_context(error: &KubeconfigError) -> Failure {
    Failure::unreachable(format!("no kubeconfig can be used: {}", told(error)))
        .next("name one with --kubeconfig, or start a server with: coffer up")
}

fn no_cluster(error: &InferConfigError) -> Failure {
    let why = std::error::Error::source(error)
        .and_then(|cause| cause.downcast_ref::<KubeconfigError>())
        .map_or_else(|| "none can be used".to_owned(), told);
    Failure::unreachable(format!("no kubeconfig was found: {why}"))
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
