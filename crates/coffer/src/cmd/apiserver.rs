//! `coffer apiserver`: the API server alone.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coffer_config::encryption::Reload;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::admission::Enabled;
use coffer_server::authz::Mode;
use coffer_server::kubelet::Kubelets;
use coffer_server::security::{SecurityConfig, SecurityError};
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use coffer_types::time::Clock;

use crate::cli::Apiserver;
use crate::control_plane::encryption::{Configured, FeatureGates};
use crate::control_plane::listen::bind;
use crate::control_plane::policy::CheckTimeouts;
use crate::control_plane::{ControlPlane, ServerOptions, StartError, certificate, store};
use crate::exit::{Exit, Failure};
use crate::say;
use crate::signals::{self, Signals};

/// Runs until it is asked to end.
pub(crate) async fn run(flags: &Apiserver) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
    if flags.etcd.etcd_servers.is_empty() && flags.data_dir.is_none() {
        return Err(Failure::usage("--etcd-servers must be specified")
            .next("or name a directory for the embedded store with --data-dir"));
    }
    if flags.encryption_provider_config_automatic_reload && flags.encryption_provider_config.is_none() {
        return Err(Failure::usage(
            "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config",
        )
        .next("name the file to reload with --encryption-provider-config"));
    }
    let security = security(flags)?;
    let certificate = certificate::from_pem(
        &format!(
            "--tls-cert-file {}, --tls-private-key-file {}",
            flags.tls_cert_file.display(),
            flags.tls_private_key_file.display()
        ),
        &store::read("--tls-cert-file", &flags.tls_cert_file)?,
        &SecretBytes::new(store::read("--tls-private-key-file", &flags.tls_private_key_file)?),
    )?;
    let gates = FeatureGates::parse(&flags.feature_gates)?;
    let reload =
        if flags.encryption_provider_config_automatic_reload { Reload::Automatic } else { Reload::Never };
    let encryption = match &flags.encryption_provider_config {
        Some(file) => {
            Configured::load("--encryption-provider-config", file, &clock, &random, gates, reload).await?
        }
        None => Configured::none(),
    };
    let directory = flags.data_dir.as_deref().unwrap_or(Path::new(""));
    // Before the port: who has the directory says more than who has the port.
    let kv = store::open(&flags.etcd, directory, &clock).await?;
    let address = SocketAddr::new(flags.bind_address, flags.secure_port);
    let listener = bind(address, "--bind-address and --secure-port").await?;
    let address = listener.local_addr().map_err(Failure::problem)?;
    let control_plane = ControlPlane::start(ServerOptions {
        kv,
        prefix: flags.etcd.etcd_prefix.clone(),
        encryption,
        security,
        clock,
        random,
        timeouts: CheckTimeouts::new(flags.etcd_healthcheck_timeout, flags.etcd_readycheck_timeout),
        kubelets: kubelets(flags)?,
    })
    .map_err(|error| refused(flags, &error))?;
    let server = control_plane.server.clone();
    let serving = tokio::spawn(async move { server.serve(listener, certificate).await });
    let ready = async {
        control_plane.wait_ready().await?;
        say(&format!("coffer: https://{address} is ready"));
        std::future::pending::<Result<(), Failure>>().await
    };
    let ended = tokio::select! {
        () = signals.asked_to_end() => Ok(Exit::Done),
        failed = ready => failed.map(|()| Exit::Done),
    };
    control_plane.stop().await;
    match serving.await {
        Ok(Ok(())) => {
            let exit = ended?;
            signals::ended();
            Ok(exit)
        }
        Ok(Err(error)) => Err(Failure::problem(error)),
        Err(_) => Err(Failure::problem("the server stopped")),
    }
}

/// Names the file that is refused, and what it must hold.
fn refused(flags: &Apiserver, error: &StartError) -> Failure {
    let error = match error {
        StartError::Prefix(error) => return Failure::usage(format!("--etcd-prefix: {error}")),
        StartError::Security(error) => error,
    };
    let failure = Failure::problem(error);
    let shown = |file: Option<&PathBuf>| file.map(|file| file.display().to_string()).unwrap_or_default();
    match error {
        SecurityError::ClientCa(_) => failure.next(format!(
            "--client-ca-file {} must hold PEM certificates",
            shown(flags.client_ca_file.as_ref())
        )),
        SecurityError::ServiceAccountKey(_) => {
            let verifying: Vec<String> =
                flags.service_account_key_file.iter().map(|file| file.display().to_string()).collect();
            failure.next(format!(
                "--service-account-signing-key-file {} must hold a private key in PEM, \
                 --service-account-key-file {} public or private keys",
                flags.service_account_signing_key_file.display(),
                verifying.join(", ")
            ))
        }
        SecurityError::TokenFile(_) => failure.next(format!(
            "the lines of --token-auth-file {} must be: token,user,uid,\"group,group\"",
            shown(flags.token_auth_file.as_ref())
        )),
        SecurityError::NoIssuer => failure.next("name one with --service-account-issuer"),
        _ => failure,
    }
}

/// Who asks kubelets for logs, if that is wanted.
fn kubelets(flags: &Apiserver) -> Result<Option<Kubelets>, Failure> {
    let Some(certificate) = &flags.kubelet_client_certificate else { return Ok(None) };
    // The two that go with it are required with it.
    let (Some(key), Some(authority)) = (&flags.kubelet_client_key, &flags.kubelet_certificate_authority)
    else {
        return Ok(None);
    };
    let read = |flag: &str, file: &Path| store::read(flag, file);
    let made = Kubelets::new(
        &read("--kubelet-client-certificate", certificate)?,
        &read("--kubelet-client-key", key)?,
        &read("--kubelet-certificate-authority", authority)?,
        flags.kubelet_preferred_address_types.clone(),
    );
    made.map(Some).map_err(|error| {
        Failure::problem(error).next("the three files of --kubelet-client-certificate, --kubelet-client-key and --kubelet-certificate-authority must hold PEM")
    })
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
        admission: Enabled::parse(flags.enable_admission_plugins.iter().map(String::as_str)).map_err(
            |error| {
                Failure::usage(error)
                    .next("write it as: --enable-admission-plugins OwnerReferencesPermissionEnforcement")
            },
        )?,
        external_address: SocketAddr::new(
            flags.advertise_address.unwrap_or(flags.bind_address),
            flags.secure_port,
        )
        .to_string(),
        root_ca: String::from_utf8_lossy(&root_ca).into_owned(),
        bind_pods: false,
        service_range: flags.service_cluster_ip_range,
    })
}
