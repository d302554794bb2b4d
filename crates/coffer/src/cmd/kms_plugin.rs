//! `coffer kms-plugin`: a KMS v2 plugin on a Unix socket.

use std::sync::Arc;

use coffer_keys::kms_plugin::{Backend, BackendError, KeyFileError, LocalKeys, Socket, SocketError, serve};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::kms::socket_name;
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use tokio_util::sync::CancellationToken;

use crate::cli::KmsPlugin;
use crate::exit::{Exit, Failure};
use crate::kms_plugin::transit::{Transit, TransitConfig};
use crate::say;
use crate::signals::{self, Signals};

/// Runs until it is asked to end. Nothing is served before the backend has shown that it works.
pub(crate) async fn run(flags: &KmsPlugin) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
    let path = socket_name(&flags.listen).map_err(|error| {
        Failure::usage(format!("--listen: {error}")).next("write it as: --listen unix:///run/coffer/kms.sock")
    })?;
    if !path.starts_with('/') {
        return Err(Failure::usage(format!("--listen {:?} names no path", flags.listen))
            .next("write it as: --listen unix:///run/coffer/kms.sock"));
    }
    let backend = backend(flags, &random).await?;
    let key = try_out(&*backend, &*random).await?;
    let (listener, socket) = Socket::bind(path.as_ref()).map_err(|error| match error {
        SocketError::InUse(_) => Failure::problem(&error).next("stop it, or name another path with --listen"),
        _ => Failure::problem(&error).next("name another path with --listen"),
    })?;
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, backend, stop.clone()));
    say(&format!("coffer: the KMS plugin serves unix://{path} under key {key} until Ctrl-C"));
    signals.asked_to_end().await;
    // New calls find nobody; those on their way are answered.
    drop(socket);
    stop.cancel();
    serving.await.map_err(|_| Failure::problem("the plugin stopped"))?;
    signals::ended();
    Ok(Exit::Done)
}

async fn backend(flags: &KmsPlugin, random: &Arc<dyn Random>) -> Result<Arc<dyn Backend>, Failure> {
    if let Some(file) = &flags.key_file {
        let keys = LocalKeys::open(file, random.clone()).map_err(|error| match &error {
            KeyFileError::Unreadable { .. } => Failure::unreachable(&error)
                .next("name a file that is there and that this user may read with --key-file"),
            KeyFileError::Open { file, .. } => {
                Failure::problem(&error).next(format!("type: chmod 600 {file}"))
            }
            KeyFileError::Wrong { .. } => Failure::problem(&error).next(
                "its lines are NAME: BASE64, the first one writes; make a key with: openssl rand -base64 32",
            ),
        })?;
        return Ok(Arc::new(keys));
    }
    #[cfg(feature = "pkcs11")]
    if let Some(token) = token(&flags.pkcs11, random)? {
        return Ok(token);
    }
    let (Some(address), Some(key), Some(token_file)) =
        (&flags.transit_address, &flags.transit_key, &flags.transit_token_file)
    else {
        return Err(Failure::usage("no backend is named").next(
            "name one with --key-file, or with --transit-address, --transit-key and --transit-token-file",
        ));
    };
    let authority = match &flags.transit_ca_file {
        Some(file) => Some(crate::control_plane::store::read("--transit-ca-file", file)?),
        None => None,
    };
    let config = TransitConfig {
        address: address.clone(),
        mount: flags.transit_mount.clone(),
        key: key.clone(),
        namespace: flags.transit_namespace.clone(),
        token_file: token_file.clone(),
        authority,
        clock: Arc::new(SystemClock::new()),
    };
    Ok(Arc::new(Transit::new(config)?))
}

#[cfg(feature = "pkcs11")]
fn token(
    flags: &crate::cli::Pkcs11Flags,
    random: &Arc<dyn Random>,
) -> Result<Option<Arc<dyn Backend>>, Failure> {
    use crate::kms_plugin::pkcs11::{Pkcs11Config, Token};

    let (Some(module), Some(token), Some(key), Some(pin_file)) =
        (&flags.pkcs11_module, &flags.pkcs11_token, &flags.pkcs11_key, &flags.pkcs11_pin_file)
    else {
        return Ok(None);
    };
    let token = Token::new(Pkcs11Config {
        module: module.clone(),
        token: token.clone(),
        key: key.clone(),
        pin_file: pin_file.clone(),
        random: random.clone(),
    })?;
    Ok(Some(Arc::new(token)))
}

/// Encrypts and decrypts once; gives the key's name.
async fn try_out(backend: &dyn Backend, random: &dyn Random) -> Result<String, Failure> {
    let key = backend.current_key_id().await.map_err(|error| refused(&error))?;
    let mut bytes = vec![0; 32];
    random.fill(&mut bytes).map_err(Failure::problem)?;
    let probe = SecretBytes::new(bytes);
    let encrypted = backend.encrypt(&probe).await.map_err(|error| refused(&error))?;
    let decrypted = backend.decrypt(&encrypted).await.map_err(|error| refused(&error))?;
    if decrypted != probe {
        return Err(Failure::problem("the backend decrypts to something else than was encrypted"));
    }
    Ok(key)
}

fn refused(error: &BackendError) -> Failure {
    match error {
        BackendError::Denied(_) => Failure::problem(error).next(
            "the token must be allowed to read MOUNT/keys/KEY and to update MOUNT/encrypt/KEY and MOUNT/decrypt/KEY",
        ),
        BackendError::Unavailable(_) => {
            Failure::unreachable(error).next("start it, or name another with --transit-address")
        }
        BackendError::NoSuchKey(_) => {
            Failure::problem(error).next("name a key that is there, or make one with: bao write -f MOUNT/keys/KEY")
        }
        BackendError::Invalid(_) => Failure::problem(error),
    }
}
