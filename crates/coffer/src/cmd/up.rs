//! `coffer up`: the whole chain in one process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::authn::{service_account_groups, service_account_username};
use coffer_server::authz::Mode;
use coffer_server::ports::UserInfo;
use coffer_server::security::SecurityConfig;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{node, operator};
use crate::cli::{EtcdFlags, Up};
use crate::control_plane::data_dir::DataDir;
use crate::control_plane::{ControlPlane, ServerOptions, certificate, store};
use crate::exit::{Exit, Failure};
use crate::{put, say, signals};

/// `iss` of tokens: reachable as the service of every cluster.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Runs until it is asked to end.
pub(crate) async fn run(flags: &Up) -> Result<Exit, Failure> {
    let mut chain = Chain::start(ChainOptions {
        data_dir: flags.data_dir.clone(),
        listen: flags.listen,
        etcd: flags.etcd.clone(),
        node_name: flags.node_name.clone(),
    })
    .await?;
    put(&format!("export KUBECONFIG={}\n", chain.kubeconfig.display()))?;
    say(&format!(
        "coffer: https://{} is up. Type the line above in another terminal, then: kubectl get namespaces",
        chain.address
    ));
    let ended = tokio::select! {
        () = signals::asked_to_end() => Ok(Exit::Done),
        failure = chain.part_ended() => Err(failure),
    };
    let stopped = chain.stop().await;
    ended.and_then(|exit| stopped.map(|()| exit))
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
    node_root: PathBuf,
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
        let transformers = store::transformers(&data.encryption(), &random)?;
        let ours =
            store::refuse_foreign_secrets(&*kv, &transformers, &options.etcd.etcd_prefix, &data.encryption())
                .await;
        if ours.is_err() && new_key {
            // A key that opens nothing must not be taken for the one that is missing.
            data.remove_encryption();
        }
        ours?;
        let files = data.pki(clock.now(), vec![address.ip().to_string()])?;
        let kubeconfig = data.write_kubeconfig(&files, address)?;
        let file = |name: &str| {
            files.get(name).cloned().ok_or_else(|| Failure::problem(format!("pki/{name} was not made")))
        };
        let (ca, account_key) = (file("ca.crt")?, file("service-account.key")?);
        let control_plane = ControlPlane::start(ServerOptions {
            kv,
            prefix: options.etcd.etcd_prefix.clone(),
            transformers,
            security: SecurityConfig {
                client_ca: Some(ca.expose().to_vec()),
                token_file: None,
                bootstrap_tokens: false,
                anonymous: true,
                issuers: vec![ISSUER.to_owned()],
                api_audiences: Vec::new(),
                signing_key: account_key.expose().to_vec(),
                verification_keys: Vec::new(),
                extend_expiration: true,
                modes: vec![Mode::Rbac],
                external_address: address.to_string(),
                root_ca: String::from_utf8_lossy(ca.expose()).into_owned(),
                bind_pods: true,
            },
            clock: clock.clone(),
            random: random.clone(),
        })?;
        let certificate =
            certificate::from_pem("pki/server.crt", file("server.crt")?.expose(), &file("server.key")?)?;
        let stop = CancellationToken::new();
        let mut parts = JoinSet::new();
        let server = control_plane.server.clone();
        parts.spawn(async move { server.serve(listener, certificate).await.map_err(Failure::problem) });
        control_plane.wait_ready().await?;
        let client = |user| kube::Client::new(control_plane.server.in_process(user), "default");
        operator::install(&client(admin()), &*clock).await?;
        let operator = operator::Parts {
            client: client(service_account("coffer-operator")),
            clock: clock.clone(),
            random: random.clone(),
        };
        parts.spawn(operator::start(operator, operator::Settings::default(), stop.clone()));
        let node_client = client(node_user(&options.node_name));
        let node = node::config(node_client, options.node_name.clone(), data.node());
        let node_stop = stop.clone();
        parts.spawn(
            async move { coffer_node::run(node, node_stop).await.map_err(|error| node::failure(&error)) },
        );
        Ok(Self {
            address,
            kubeconfig,
            admin: client(admin()),
            control_plane,
            node_name: options.node_name,
            node_root: data.node(),
            parts,
            stop,
        })
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
        node::clear(&self.node_name, &self.node_root)
    }
}

/// Binds a listening socket; `flag` names what to change when that fails.
pub(crate) async fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::problem(format!("address {address} is in use"))
            .next(format!("stop what listens there, or choose another address with {flag}")),
        std::io::ErrorKind::PermissionDenied => {
            Failure::problem(format!("this user may not listen on {address}"))
                .next(format!("choose a port above 1023 with {flag}"))
        }
        _ => Failure::problem(format!("cannot listen on {address}: {error}"))
            .next(format!("choose an address of this machine with {flag}")),
    })
}

fn admin() -> UserInfo {
    user("coffer-admin", &["system:masters", "system:authenticated"])
}

fn node_user(name: &str) -> UserInfo {
    user(&format!("system:node:{name}"), &["system:nodes", "coffer:nodes", "system:authenticated"])
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
