//! Opens the store that the flags name.

use std::path::Path;
use std::sync::Arc;

use coffer_config::encryption::Transformers;
use coffer_keys::at_rest::{AtRestError, foreign_copy};
use coffer_server::encryption::Vet;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::etcd::{ConnectError, EtcdConfig, EtcdKv};
use coffer_store::kv::Kv;
use coffer_types::SecretBytes;
use coffer_types::time::Clock;

use crate::cli::EtcdFlags;
use crate::exit::Failure;

/// etcd, or the embedded store in `directory`.
pub(crate) async fn open(
    etcd: &EtcdFlags,
    directory: &Path,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<dyn Kv>, Failure> {
    if etcd.etcd_servers.is_empty() {
        let store =
            Embedded::open(directory, EmbeddedOptions::new(clock.clone())).await.map_err(Failure::problem)?;
        return Ok(Arc::new(store));
    }
    let mut config = EtcdConfig::new(etcd.etcd_servers.clone(), clock.clone());
    config.ca = etcd.etcd_cafile.as_deref().map(|file| read("--etcd-cafile", file)).transpose()?;
    if let (Some(certificate), Some(key)) = (&etcd.etcd_certfile, &etcd.etcd_keyfile) {
        config.identity =
            Some((read("--etcd-certfile", certificate)?, SecretBytes::new(read("--etcd-keyfile", key)?)));
    }
    let store = EtcdKv::connect(config).await.map_err(|error| match &error {
        ConnectError::Unreachable(_) => Failure::unreachable(&error).next(
            "start etcd, or name its client URLs with --etcd-servers; without the flag the store is embedded",
        ),
        _ => Failure::usage(&error).next("write it as: --etcd-servers http://HOST:2379,https://HOST:2379"),
    })?;
    Ok(Arc::new(store))
}

/// Stops before anything is written under keys that do not open what is stored.
pub(crate) async fn refuse_foreign_secrets(
    kv: &dyn Kv,
    transformers: &Transformers,
    prefix: &str,
    file: &Path,
) -> Result<(), Failure> {
    match foreign_copy(kv, transformers, prefix, "secrets").await {
        Ok(None) => Ok(()),
        Ok(Some(key)) => Err(Failure::problem(format!(
            "the store holds Secrets that no key of {} opens, {key} for one",
            file.display()
        ))
        .next("restore the keys that they were written under from a backup, or name another store")),
        Err(AtRestError::Key(error)) => Err(Failure::usage(format!("--etcd-prefix: {error}"))),
        Err(error @ AtRestError::Store(_)) => Err(Failure::unreachable(error)),
    }
}

/// The same of each later configuration, before it is used.
pub(crate) fn refuse_foreign_files(kv: &Arc<dyn Kv>, prefix: &str, file: &Path) -> Vet {
    let (kv, prefix, file) = (kv.clone(), prefix.to_owned(), file.to_owned());
    Box::new(move |transformers| {
        let (kv, prefix, file) = (kv.clone(), prefix.clone(), file.clone());
        Box::pin(async move {
            let refused = refuse_foreign_secrets(&*kv, &transformers, &prefix, &file).await;
            refused.map_err(|failure| failure.message)
        })
    })
}

/// A file that `flag` names.
pub(crate) fn read(flag: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| {
        Failure::unreachable(format!("cannot read {}: {error}", file.display()))
            .next(format!("name a file that is there and that this user may read with {flag}"))
    })
}
