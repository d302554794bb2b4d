//! The volumes of a pod: what they should hold, and holding it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::SecretBytes;
use k8s_openapi::api::core::v1::{
    Pod, ProjectedVolumeSource, SecretVolumeSource, ServiceAccountTokenProjection, Volume,
};

use super::checkpoint::Checkpoint;
use super::materialised::Materialised;
use super::patience::Stage;
use super::state::{PodState, Retired};
use super::tokens::{self, Wanted};
use super::{Agent, status, uses};
use crate::data_object::DataObject;
use crate::manager::table::Key;
use crate::manager::{GetError, ObjectManager};
use crate::references::containers;
use crate::report::{Consumer, ConsumerKind, ConsumerState};
use crate::volume::atomic_writer::{AtomicWriter, Written};
use crate::volume::payload::{Payload, secret_payload};
use crate::volume::projected::{ProjectedSources, projected_payload};

/// How long the directory of an old version stays for readers that are on their way to it (field case N17).
const READERS_GRACE: Duration = Duration::from_secs(2);

/// A volume that this node makes.
pub(super) enum Source {
    Secret(SecretVolumeSource),
    Projected(ProjectedVolumeSource),
}

impl Source {
    fn of(volume: &Volume) -> Option<Self> {
        let secret = volume.secret.clone().map(Self::Secret);
        secret.or_else(|| volume.projected.clone().map(Self::Projected))
    }

    /// Directory of such volumes below a pod's, as the kubelet names it.
    fn plugin(&self) -> &'static str {
        match self {
            Self::Secret(_) => "kubernetes.io~secret",
            Self::Projected(_) => "kubernetes.io~projected",
        }
    }

    /// The Secrets that it is made of.
    fn secrets(&self) -> BTreeSet<String> {
        let named: Vec<Option<&String>> = match self {
            Self::Secret(source) => vec![source.secret_name.as_ref()],
            Self::Projected(source) => {
                let sources = source.sources.iter().flatten();
                sources.map(|source| source.secret.as_ref().map(|secret| &secret.name)).collect()
            }
        };
        named.into_iter().flatten().filter(|name| !name.is_empty()).cloned().collect()
    }

    /// The ConfigMaps that it is made of.
    pub(super) fn config_maps(&self) -> BTreeSet<String> {
        let Self::Projected(source) = self else { return BTreeSet::new() };
        let maps = source.sources.iter().flatten().filter_map(|source| source.config_map.as_ref());
        maps.map(|map| map.name.clone()).filter(|name| !name.is_empty()).collect()
    }

    fn token_projections(&self) -> impl Iterator<Item = &ServiceAccountTokenProjection> {
        let sources = match self {
            Self::Secret(_) => None,
            Self::Projected(source) => source.sources.as_ref(),
        };
        sources.into_iter().flatten().filter_map(|source| source.service_account_token.as_ref())
    }
}

impl Agent {
    pub(super) async fn sync_volume(
        &self,
        uid: &str,
        pod: &Pod,
        volume: &str,
        source: &Source,
        stage: Stage,
        state: &mut PodState,
    ) -> Materialised {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let directory = self.pod_directory(uid).join("volumes").join(source.plugin()).join(volume);
        let secrets = source.secrets();
        let maps = source.config_maps();
        let keys = secrets.iter().map(|name| Key::secret(&namespace, name));
        let mut keys = keys.chain(maps.iter().map(|name| Key::config_map(&namespace, name)));
        let waits = keys.any(|key| matches!(self.manager.get(&key), Err(GetError::NotSynced(_))));
        let (tokens, refresh) = self.tokens(pod, source.token_projections(), &mut state.tokens).await;
        if let Some(refresh) = refresh {
            let left =
                Duration::try_from(refresh.duration_since(self.config.clock.now())).unwrap_or_default();
            // The rule says later than, not at.
            state.try_again(self.config.clock.monotonic() + left + Duration::from_secs(1));
        }
        let seen = Seen { manager: &self.manager, namespace: &namespace, tokens };
        let payload = payload(source, pod, &seen);
        let versions: BTreeMap<String, String> = secrets
            .iter()
            .map(|name| {
                let found = self.manager.get(&Key::secret(&namespace, name));
                (name.clone(), found.map(|secret| secret.resource_version.clone()).unwrap_or_default())
            })
            .collect();
        let written = match &payload {
            Ok(payload) => self.write_volume(pod, &directory, payload.clone(), state).await,
            Err(message) => Err(message.clone()),
        };
        let failure = match written {
            Ok(flipped) => {
                let before = state.held.volumes.insert(volume.to_owned(), versions.clone());
                // A volume that was only mended says nothing about how long news takes.
                if flipped && before.as_ref() != Some(&versions) {
                    self.note_delay(&namespace, source);
                }
                None
            }
            Err(message) => {
                if !waits || stage == Stage::Overdue {
                    let text = format!("MountVolume.SetUp failed for volume {volume:?} : {message}");
                    status::event(&self.config, pod, "FailedMount", text).await;
                }
                Some(message)
            }
        };
        let held = state.held.volumes.get(volume);
        let consumers = secrets
            .into_iter()
            .map(|secret| {
                let held = held.and_then(|held| held.get(&secret)).cloned();
                Consumer {
                    kind: ConsumerKind::Volume,
                    place: volume.to_owned(),
                    volume: String::new(),
                    sub_path: String::new(),
                    path: directory.display().to_string(),
                    state: match (&failure, &held) {
                        (None, _) => ConsumerState::Current,
                        // What was there before is still there: a failed update touches nothing.
                        (Some(_), Some(_)) => ConsumerState::Stale,
                        (Some(_), None) => ConsumerState::Missing,
                    },
                    resource_version: held.unwrap_or_default(),
                    message: failure.clone().unwrap_or_default(),
                    secret,
                }
            })
            .collect();
        Materialised {
            payload: payload.ok().filter(|_| failure.is_none()),
            versions,
            mounted_whole: mounts_whole(pod, volume),
            failure,
            waits,
            consumers,
        }
    }

    /// Whether the volume was flipped.
    async fn write_volume(
        &self,
        pod: &Pod,
        directory: &Path,
        payload: Payload,
        state: &mut PodState,
    ) -> Result<bool, String> {
        let files = self.config.files.clone();
        let volume = directory.to_owned();
        let now = self.config.clock.now();
        let mut suffix = [0_u8; 4];
        self.config.random.fill(&mut suffix).map_err(|error| error.to_string())?;
        let group = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.security_context.as_ref()?.fs_group)
            .and_then(|group| u32::try_from(group).ok());
        let of_volume = state.retired.iter().filter(|retired| retired.volume == directory);
        let retired: BTreeSet<String> = of_volume.map(|retired| retired.name.clone()).collect();
        let write = move || {
            std::fs::create_dir_all(&volume).map_err(|error| format!("{}: {error}", volume.display()))?;
            AtomicWriter { files: &*files, directory: &volume, group, retired: &retired }
                .write(&payload, now, u32::from_le_bytes(suffix))
                .map_err(|error| error.to_string())
        };
        let written = tokio::task::spawn_blocking(write).await;
        match written.unwrap_or_else(|_| Err("the writer stopped".to_owned()))? {
            Written::Unchanged => Ok(false),
            Written::Flipped { retired: None } => Ok(true),
            Written::Flipped { retired: Some(name) } => {
                let due = self.config.clock.monotonic() + READERS_GRACE;
                state.retired.push(Retired { volume: directory.to_owned(), name, due });
                Ok(true)
            }
        }
    }

    /// Removes the old versions whose readers have had their time.
    pub(super) async fn remove_retired(&self, state: &mut PodState) {
        let now = self.config.clock.monotonic();
        let (due, kept): (Vec<_>, Vec<_>) = state.retired.drain(..).partition(|retired| retired.due <= now);
        state.retired = kept;
        if due.is_empty() {
            return;
        }
        let files = self.config.files.clone();
        let remove = move || {
            let none = BTreeSet::new();
            let removed = due.into_iter().map(|Retired { volume, name, .. }| {
                AtomicWriter { files: &*files, directory: &volume, group: None, retired: &none }
                    .remove_retired(&name)
            });
            removed.fold(Ok(()), Result::and)
        };
        // What is left over is removed by the next write.
        if !matches!(tokio::task::spawn_blocking(remove).await, Ok(Ok(()))) {
            tracing::warn!("an old version of a volume was not removed");
        }
    }

    /// Writes down what the volumes hold, when that has changed.
    pub(super) fn save_checkpoint(&self, uid: &str, state: &mut PodState) {
        if state.saved.as_ref() == Some(&state.held) || state.held.volumes.is_empty() {
            return;
        }
        match state.held.write(&*self.config.files, &self.pod_directory(uid)) {
            Ok(()) => state.saved = Some(state.held.clone()),
            Err(error) => tracing::warn!(pod_uid = uid, %error, "what the volumes hold was not written down"),
        }
    }

    /// What an earlier life of this node wrote down.
    pub(super) fn load_checkpoint(&self, uid: &str, state: &mut PodState) {
        let found = Checkpoint::read(&*self.config.files, &self.pod_directory(uid));
        state.held = found.clone().unwrap_or_default();
        if let Some(metadata) = state.pod.as_ref().map(|pod| &pod.metadata) {
            state.held.namespace = metadata.namespace.clone().unwrap_or_default();
            state.held.pod = metadata.name.clone().unwrap_or_default();
        }
        state.saved = found;
    }

    /// From learning of the newest version to its files (field case N1).
    fn note_delay(&self, namespace: &str, source: &Source) {
        let secrets = source.secrets();
        let found = secrets.iter().filter_map(|name| self.manager.get(&Key::secret(namespace, name)).ok());
        if let Some(seen) = found.map(|secret| secret.seen).max() {
            let delay = self.config.clock.monotonic().saturating_sub(seen);
            self.metrics.propagation.observe(&[], delay.as_secs_f64());
        }
    }
}

fn payload(source: &Source, pod: &Pod, seen: &Seen<'_>) -> Result<Payload, String> {
    match source {
        Source::Secret(source) => {
            let name = source.secret_name.clone().unwrap_or_default();
            let secret = match seen.secret(&name)? {
                None if source.optional != Some(true) => return Err(format!("secret {name:?} not found")),
                found => found,
            };
            secret_payload(source, secret.as_deref()).map_err(|error| error.to_string())
        }
        Source::Projected(source) => projected_payload(source, pod, seen),
    }
}

/// What the node knows now.
struct Seen<'a> {
    manager: &'a ObjectManager,
    namespace: &'a str,
    tokens: BTreeMap<Wanted, Result<SecretBytes, String>>,
}

impl Seen<'_> {
    fn get(&self, key: &Key) -> Result<Option<Arc<DataObject>>, String> {
        match self.manager.get(key) {
            Ok(object) => Ok(Some(object)),
            Err(GetError::NotFound(..)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl ProjectedSources for Seen<'_> {
    fn secret(&self, name: &str) -> Result<Option<Arc<DataObject>>, String> {
        self.get(&Key::secret(self.namespace, name))
    }

    fn config_map(&self, name: &str) -> Result<Option<Arc<DataObject>>, String> {
        self.get(&Key::config_map(self.namespace, name))
    }

    fn token(&self, projection: &ServiceAccountTokenProjection) -> Result<SecretBytes, String> {
        let token = self.tokens.get(&tokens::wanted(projection));
        token.cloned().unwrap_or_else(|| Err("failed to fetch token: not asked for".to_owned()))
    }
}

/// The volumes that this node makes and some container mounts; the others are neither made nor waited for,
/// as in the kubelet.
pub(super) fn volumes(pod: &Pod) -> Vec<(String, Source)> {
    let mounted: BTreeSet<String> = containers(pod)
        .iter()
        .flat_map(|container| container.volume_mounts.iter().flatten().map(|mount| mount.name.clone()))
        .collect();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter(|volume| mounted.contains(&volume.name))
        .filter_map(|volume| Some((volume.name.clone(), Source::of(volume)?)))
        .collect()
}

fn mounts_whole(pod: &Pod, volume: &str) -> bool {
    containers(pod).iter().any(|container| {
        let mut mounts = container.volume_mounts.iter().flatten();
        mounts.any(|mount| mount.name == volume && uses::sub_path(mount).is_none())
    })
}
