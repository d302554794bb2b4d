//! `coffer apiserver`: the API server alone.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use coffer_config::encryption::Transformers;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::authz::Mode;
use coffer_server::security::SecurityConfig;
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use coffer_types::time::Clock;

use super::up::bind;
use crate::cli::Apiserver;
use crate::control_plane::{ControlPlane, ServerOptions, certificate, store};
use crate::exit::{Exit, Failure};
use crate::{say, signals};

/// Runs until it is asked to end.
pub(crate) async fn run(flags: &Apiserver) -> Result<Exit, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
    if flags.etcd.etcd_servers.is_empty() && flags.data_dir.is_none() {
        return Err(Failure::usage("--etcd-servers must be specified")
            .next("or name a directory for the embedded store with --data-dir"));
    }
    let security = security(flags)?;
    let certificate = certificate::from_pem(
        "--tls-cert-file, --tls-private-key-file",
        &store::read("--tls-cert-file", &flags.tls_cert_file)?,
        &SecretBytes::new(store::read("--tls-private-key-file", &flags.tls_private_key_file)?),
    )?;
    let transformers = match &flags.encryption_provider_config {
        Some(file) => store::transformers(file, &random)?,
        None => Transformers::identity(),
    };
    let address = SocketAddr::new(flags.bind_address, flags.secure_port);
    let listener = bind(address, "--bind-address and --secure-port").await?;
    let address = listener.local_addr().map_err(Failure::problem)?;
    let directory = flags.data_dir.as_deref().unwrap_or(Path::new(""));
    let control_plane = ControlPlane::start(ServerOptions {
        kv: store::open(&flags.etcd, directory, &clock).await?,
        prefix: flags.etcd.etcd_prefix.clone(),
        transformers,
        security,
        clock,
        random,
    })?;
    let server = control_plane.server.clone();
    let serving = tokio::spawn(async move { server.serve(listener, certificate).await });
    let ready = async {
        control_plane.wait_ready().await?;
        say(&format!("coffer: https://{address} is ready"));
        std::future::pending::<Result<(), Failure>>().await
    };
    let ended = tokio::select! {
        () = signals::asked_to_end() => Ok(Exit::Done),
        failed = ready => failed.map(|()| Exit::Done),
    };
    control_plane.stop().await;
    match serving.await {
        Ok(Ok(())) => ended,
        Ok(Err(error)) => Err(Failure::problem(error)),
        Err(_) => Err(Failure::problem("the server stopped")),
    }
}

fn security(flags: &Apiserver) -> Result<SecurityConfig, Failure> {
    let client_ca =
        flags.client_ca_file.as_deref().map(|file| store::read("--client-ca-file", file)).transpose()?;
    let token_file = match &flags.token_auth_file {
        Some(file) => {
            let text = String::from_utf8(store::read("--token-auth-file", file)?).map_err(|_| {
                Failure::problem(format!("{} is not text", file.display()))
                    .next("its lines must be: token,user,uid,\"group,group\"")
            })?;
            Some((file.display().to_string(), text))
        }
        None => None,
    };
    let modes = flags.authorization_mode.iter().map(|mode| Mode::parse(mode));
    // Clients inside verify the server with the CA of its certificate; without one that is the certificate itself.
    let root_ca = match &client_ca {
        Some(ca) => ca.clone(),
        None => store::read("--tls-cert-file", &flags.tls_cert_file)?,
    };
    Ok(SecurityConfig {
        client_ca,
        token_file,
        bootstrap_tokens: false,
        anonymous: true,
        issuers: flags.service_account_issuer.clone(),
        api_audiences: Vec::new(),
        signing_key: store::read(
            "--service-account-signing-key-file",
            &flags.service_account_signing_key_file,
        )?,
        verification_keys: flags
            .service_account_key_file
            .iter()
            .map(|file| store::read("--service-account-key-file", file))
            .collect::<Result<_, _>>()?,
        extend_expiration: true,
        modes: modes
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::usage(error).next("write it as: --authorization-mode RBAC"))?,
        external_address: format!("{}:{}", flags.bind_address, flags.secure_port),
        root_ca: String::from_utf8_lossy(&root_ca).into_owned(),
        bind_pods: false,
    })
}
