//! A client for the API server that the user means.

use std::path::Path;

use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::cli::Global;
use crate::exit::Failure;

/// A server that a kubeconfig names.
pub(crate) struct Server {
    pub(crate) client: Client,
    /// Its URL, for errors.
    pub(crate) url: String,
}

impl Server {
    /// The server that `config` names.
    pub(crate) fn of(config: Config) -> Result<Self, Failure> {
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = Client::try_from(config)
            .map_err(|error| Failure::unreachable(format!("cannot make a client for {url}: {error}")))?;
        Ok(Self { client, url })
    }
}

/// The API server that the user means.
pub(crate) async fn connect(global: &Global) -> Result<Server, Failure> {
    Server::of(configuration(global).await?)
}

/// From `--kubeconfig` and `--context`, else as kubectl and in-cluster clients find it.
pub(crate) async fn configuration(global: &Global) -> Result<Config, Failure> {
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
    Ok(config)
}

fn unreadable(path: &Path, error: &KubeconfigError) -> Failure {
    let why = match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        other => told(other),
    };
    Failure::unreachable(format!("cannot use the kubeconfig {}: {why}", path.display()))
        .next(other_kubeconfig("name another with --kubeconfig, or make one with: coffer up"))
}

/// `otherwise`, or the kubeconfig of a `coffer up` in this directory.
fn other_kubeconfig(otherwise: &str) -> String {
    let made = Path::new("coffer-data/kubeconfig");
    if made.exists() {
        format!("name the one that coffer up made: --kubeconfig {}", made.display())
    } else {
        otherwise.to_owned()
    }
}

/// The error without anything of the file's content: a kubeconfig holds tokens and keys, and the
/// parser's text shows the lines around the fault.
fn told(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, path) => format!("{}: {error}", path.display()),
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
        .next(other_kubeconfig("name one with --kubeconfig, or start a server with: coffer up"))
}

fn no_cluster(error: &InferConfigError) -> Failure {
    let why = std::error::Error::source(error)
        .and_then(|cause| cause.downcast_ref::<KubeconfigError>())
        .map_or_else(|| "none can be used".to_owned(), told);
    Failure::unreachable(format!("no kubeconfig was found: {why}"))
        .next(other_kubeconfig("name one with --kubeconfig, or start a server with: coffer up"))
}

/// Says that the server at `url` does not answer, or what it refused; no body is shown.
pub(crate) fn unreachable(url: &str, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => {
            let failure = Failure::unreachable(format!("{url} refused: {}", status.message));
            match status.code {
                401 => failure
                    .next("the kubeconfig's credentials are not valid there: name another with --kubeconfig"),
                403 => {
                    failure.next("ask its administrator for this right, or name another user with --context")
                }
                _ => failure,
            }
        }
        other => Failure::unreachable(format!("cannot reach {url}: {}", root_cause(other)))
            .next("is the API server running? name another with --kubeconfig or --context"),
    }
}

/// What began it; what stands around it is only which layers of the client it went through.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
