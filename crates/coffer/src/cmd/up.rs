//! `coffer up`: the whole chain in one process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use coffer_config::encryption::Reload;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::authn::{service_account_groups, service_account_username};
use coffer_server::ports::UserInfo;
use coffer_server::security::SecurityConfig;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{node, operator};
use crate::cli::{EtcdFlags, Up};
use crate::control_plane::data_dir::DataDir;
use crate::control_plane::encryption::{Configured, FeatureGates};
use crate::control_plane::listen::bind;
use crate::control_plane::policy::CheckTimeouts;
use crate::control_plane::{ControlPlane, ServerOptions, StartError, certificate, store};
use crate::exit::{Exit, Failure};
use crate::signals::{self, Signals};
use crate::{put, say};

/// `iss` of tokens: reachable as the service of every cluster.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Runs until it is asked to end.
pub(crate) async fn run(flags: &Up) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let options = ChainOptions {
        data_dir: flags.data_dir.clone(),
        listen: flags.listen,
        etcd: flags.etcd.clone(),
        node_name: flags.node_name.clone(),
    };
    let Some(mut chain) = Chain::start_unless_asked_to_end(options, &mut signals).await? else {
        signals::ended();
        return Ok(Exit::Done);
    };
    put(&format!("export KUBECONFIG={}\n", chain.kubeconfig.display()))?;
    say(&format!(
        "coffer: https://{} is up. Type the line above in another terminal, then: kubectl get namespaces",
        chain.address
    ));
    let ended = tokio::select! {
        () = signals.asked_to_end() => Ok(Exit::Done),
        failure = chain.part_ended() => Err(failure),
    };
    let stopped = chain.stop().await;
    let exit = ended.and_then(|exit| stopped.map(|()| exit))?;
    signals::ended();
    Ok(exit)
}

/// What the chain is started with.
pub(crate) struct ChainOptions {
    pub(crate) data_dir: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) etcd: EtcdFlags,
    pub(crate) node_name: String,
}

/// The running chain.
pub(crate) struct Chain {
    pub(crate) address: SocketAddr,
    pub(crate) kubeconfig: PathBuf,
    /// A client that may do anything, without a socket.
    pub(crate) admin: kube::Client,
    control_plane: ControlPlane,
    node_name: String,
    /// Ours until the end.
    data: DataDir,
    parts: JoinSet<Result<(), Failure>>,
    stop: CancellationToken,
}

impl Chain {
    /// Starts everything and returns when the API server is ready.
    pub(crate) async fn start(options: ChainOptions) -> Result<Self, Failure> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
        let data = DataDir::open(&options.data_dir)?;
        let listener = bind(options.listen, "--listen").await?;
        let address = listener.local_addr().map_err(Failure::problem)?;
        let new_key = data.ensure_encryption(&*random)?;
        let kv = store::open(&options.etcd, &data.store(), &clock).await?;
        let mut encryption = Configured::load(
            "--encryption-provider-config",
            &data.encryption(),
            &clock,
            &random,
            FeatureGates::default(),
            Reload::Automatic,
        )
        .await?;
        let ours = store::refuse_foreign_secrets(
            &*kv,
            &encryption.encryption.current().transformers(),
            &options.etcd.etcd_prefix,
            &data.encryption(),
        )
        .await;
        if ours.is_err() && new_key {
            // A key that opens nothing must not be taken for the one that is missing.
            data.remove_encryption();
        }
        ours?;
        encryption.vet(store::refuse_foreign_files(&kv, &options.etcd.etcd_prefix, &data.encryption()));
        let files = data.pki(clock.now(), vec![address.ip().to_string()])?;
        let kubeconfig = data.write_kubeconfig(&files, address)?;
        let file = |name: &str| {
            files.get(name).cloned().ok_or_else(|| Failure::problem(format!("pki/{name} was not made")))
        };
        let (ca, account_key) = (file("ca.crt")?, file("service-account.key")?);
        let control_plane = ControlPlane::start(ServerOptions {
            kv,
            prefix: options.etcd.etcd_prefix.clone(),
            encryption,
            security: SecurityConfig::of(ca.expose(), account_key.expose(), ISSUER, &address.to_string()),
            clock: clock.clone(),
            random: random.clone(),
            timeouts: CheckTimeouts::default(),
            kubelets: None,
        })
        .map_err(|error| match error {
            StartError::Prefix(error) => Failure::usage(format!("--etcd-prefix: {error}")),
            StartError::Security(error) => Failure::problem(format!("{}: {error}", data.pki_path().display()))
                .next("restore that directory from a backup, or move it away: then new keys are made, and tokens and kubeconfigs of before are void"),
        })?;
        let certificate =
            certificate::from_pem("pki/server.crt", file("server.crt")?.expose(), &file("server.key")?)?;
        let stop = CancellationToken::new();
        let mut parts = JoinSet::new();
        let server = control_plane.server.clone();
        parts.spawn(async move { server.serve(listener, certificate).await.map_err(Failure::problem) });
        control_plane.wait_ready().await?;
        let client = |user| kube::Client::new(control_plane.server.in_process(user), "default");
        operator::install(&client(admin()), "its own API server", &*clock, operator::Old::Stored).await?;
        let operator = operator::Parts {
            client: client(service_account("coffer-operator")),
            clock: clock.clone(),
            random: random.clone(),
        };
        parts.spawn(operator::start(operator, stop.clone()));
        let node_client = client(node_user(&options.node_name));
        let metrics = control_plane.metrics.clone();
        let node = node::config(node_client, options.node_name.clone(), data.node(), metrics);
        let node_stop = stop.clone();
        let url = format!("https://{address}");
        parts.spawn(async move {
            coffer_node::run(node, node_stop).await.map_err(|error| node::failure(&url, &error))
        });
        Ok(Self {
            address,
            kubeconfig,
            admin: client(admin()),
            control_plane,
            node_name: options.node_name,
            data,
            parts,
            stop,
        })
    }

    /// Starts everything; `None` when the process was asked to end meanwhile.
    pub(crate) async fn start_unless_asked_to_end(
        options: ChainOptions,
        signals: &mut Signals,
    ) -> Result<Option<Self>, Failure> {
        let start = Self::start(options);
        tokio::pin!(start);
        tokio::select! {
            chain = &mut start => chain.map(Some),
            () = signals.asked_to_end() => {
                // Its threads and mounts cannot be left halfway: it is stopped when it stands.
                start.await?.stop().await?;
                Ok(None)
            }
        }
    }

    /// Completes when a part ended by itself, with why.
    pub(crate) async fn part_ended(&mut self) -> Failure {
        match self.parts.join_next().await {
            Some(Ok(Err(failure))) => failure,
            Some(Err(_)) => Failure::problem("a part of the chain stopped"),
            Some(Ok(Ok(()))) | None => Failure::problem("a part of the chain ended by itself"),
        }
    }

    /// Ends the parts, the clients before the server, and takes the volumes out of memory: no container
    /// holds them, nobody would keep them current, and the directory could not be removed.
    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        self.stop.cancel();
        self.control_plane.stop().await;
        while self.parts.join_next().await.is_some() {}
        node::clear(&self.node_name, &self.data.node()).await
    }
}

fn admin() -> UserInfo {
    user("coffer-admin", &["system:masters", "system:authenticated"])
}

fn node_user(name: &str) -> UserInfo {
    user(&format!("system:node:{name}"), &["system:nodes", "system:authenticated"])
}

fn service_account(name: &str) -> UserInfo {
    let mut groups = service_account_groups("kube-system");
    groups.push("system:authenticated".to_owned());
    UserInfo { name: service_account_username("kube-system", name), groups, ..UserInfo::default() }
}

fn user(name: &str, groups: &[&str]) -> UserInfo {
    UserInfo {
        name: name.to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..UserInfo::default()
    }
}
