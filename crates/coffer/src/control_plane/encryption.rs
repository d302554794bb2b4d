//! What encrypts at rest, with the KMS plugins behind it.

use std::path::Path;
use std::sync::Arc;

use coffer_config::encryption::{Reload, Transformers};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::metrics::Registry;
use coffer_server::encryption::{Encryption, InUse, Loader, LoaderParts, Reloader, Vet};
use coffer_store::Storage;
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use coffer_types::time::Clock;

use super::store::read;
use crate::exit::Failure;
use crate::watched_file::WatchedFile;

/// Feature gates that a flag may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FeatureGates {
    /// `KMSv1`.
    pub(crate) kms_v1: bool,
}

impl FeatureGates {
    /// From `--feature-gates`: `NAME=true` or `NAME=false`.
    pub(crate) fn parse(flags: &[String]) -> Result<Self, Failure> {
        let mut gates = Self::default();
        for flag in flags {
            let (name, value) = flag.split_once('=').ok_or_else(|| {
                Failure::usage(format!("--feature-gates: missing bool value for {flag}"))
                    .next("write it as: --feature-gates KMSv1=true")
            })?;
            let value: bool = value.parse().map_err(|_| {
                Failure::usage(format!("--feature-gates: invalid value of {name}: {value}"))
                    .next("write true or false")
            })?;
            match name {
                "KMSv1" => gates.kms_v1 = value,
                other => {
                    return Err(Failure::usage(format!(
                        "--feature-gates: unrecognized feature gate: {other}"
                    ))
                    .next("the gates here are: KMSv1"));
                }
            }
        }
        Ok(gates)
    }
}

/// The configuration that a server starts with, and what keeps it true to its file.
pub(crate) struct Configured {
    pub(crate) encryption: Arc<Encryption>,
    /// `None` without a configuration.
    pub(crate) watched: Option<Watched>,
    /// Where the plugins count, and the server too.
    pub(crate) metrics: Arc<Registry>,
}

/// A configuration's file and what loads it again.
pub(crate) struct Watched {
    loader: Loader,
    pub(crate) reload: Reload,
    pub(crate) file: Arc<WatchedFile>,
    vet: Option<Vet>,
}

impl Configured {
    /// Nothing is encrypted.
    pub(crate) fn none() -> Self {
        Self { encryption: Encryption::none(), watched: None, metrics: Arc::default() }
    }

    /// What `file` says. Each of its plugins has been asked once: one that does not answer is no
    /// failure, since it may come up later.
    pub(crate) async fn load(
        flag: &str,
        file: &Path,
        clock: &Arc<dyn Clock>,
        random: &Arc<dyn Random>,
        gates: FeatureGates,
        reload: Reload,
    ) -> Result<Self, Failure> {
        let loader = loader(file, reload, clock, random, gates);
        // Before it is read, so that no change is missed.
        let watched = WatchedFile::new(file);
        let loaded = load(flag, file, &loader).await?;
        Ok(Self {
            encryption: Encryption::start(&loader, loaded),
            metrics: loader.metrics().clone(),
            watched: Some(Watched { loader, reload, file: Arc::new(watched), vet: None }),
        })
    }

    /// Uses no later file that `vet` refuses.
    pub(crate) fn vet(&mut self, vet: Vet) {
        if let Some(watched) = &mut self.watched {
            watched.vet = Some(vet);
        }
    }
}

impl Watched {
    /// What the file is called.
    pub(crate) fn name(&self) -> String {
        self.loader.file().to_owned()
    }

    /// Keeps `storage` and the file the same, or tells that they are not.
    pub(crate) fn reloader(self, encryption: Arc<Encryption>, storage: Arc<Storage>) -> Reloader {
        let swap = Box::new(move |transformers| storage.set_transformers(by_resource(transformers)));
        Reloader { loader: self.loader, file: self.file, encryption, swap, vet: self.vet }
    }
}

/// As a store asks.
pub(crate) fn by_resource(transformers: Arc<Transformers>) -> coffer_store::Transformers {
    Box::new(move |group: &str, resource: &str| transformers.transformer_for(group, resource))
}

fn loader(
    file: &Path,
    reload: Reload,
    clock: &Arc<dyn Clock>,
    random: &Arc<dyn Random>,
    gates: FeatureGates,
) -> Loader {
    Loader::new(LoaderParts {
        file: file.display().to_string(),
        reload,
        clock: clock.clone(),
        random: random.clone(),
        metrics: Arc::default(),
        allow_kms_v1: gates.kms_v1,
    })
}

async fn load(flag: &str, file: &Path, loader: &Loader) -> Result<InUse, Failure> {
    let text = SecretBytes::new(read(flag, file)?);
    loader.load(text.expose()).await.map_err(|error| {
        Failure::problem(format!("{}: {error}", file.display()))
            .next("check it with: coffer config check FILE")
    })
}

/// What opens stored values for a command that writes none: the keys of `--config`, and its
/// plugins of both versions.
pub(crate) async fn readers(
    file: Option<&Path>,
    random: &Arc<dyn Random>,
) -> Result<Option<Transformers>, Failure> {
    let Some(file) = file else { return Ok(None) };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let gates = FeatureGates { kms_v1: true };
    let loaded = load("--config", file, &loader(file, Reload::Never, &clock, random, gates)).await?;
    Ok(Some(Transformers::clone(&loaded.transformers())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn feature_gates() {
        let parse = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            FeatureGates::parse(&flags).map_err(|failure| (failure.exit, failure.message))
        };
        assert_eq!(parse(&[]), Ok(FeatureGates { kms_v1: false }));
        assert_eq!(parse(&["KMSv1=true"]), Ok(FeatureGates { kms_v1: true }));
        assert_eq!(parse(&["KMSv1=true", "KMSv1=false"]), Ok(FeatureGates { kms_v1: false }));
        let refused = |text: &str| Err((Exit::Usage, format!("--feature-gates: {text}")));
        assert_eq!(parse(&["KMSv1"]), refused("missing bool value for KMSv1"));
        assert_eq!(parse(&["KMSv1=yes"]), refused("invalid value of KMSv1: yes"));
        assert_eq!(parse(&["Pandas=true"]), refused("unrecognized feature gate: Pandas"));
    }
}
