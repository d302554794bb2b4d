//! One pod: its volumes, its environment, and their end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use coffer_types::SecretBytes;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, SecretVolumeSource};
use kube::Api;
use kube::api::{DeleteParams, Preconditions};

use super::{Agent, RETRY, status};
use crate::env::{self, Environment, Sources};
use crate::files::wipe_and_remove;
use crate::manager::table::Key;
use crate::manager::{GetError, SecretManager};
use crate::pod_warnings::pod_warnings;
use crate::references::{containers, secret_names};
use crate::report::{ANNOTATION, Consumer, ConsumerKind, ConsumerState, Report};
use crate::volume::atomic_writer::{AtomicWriter, Written};
use crate::volume::payload::{Payload, secret_payload};
use crate::volume::tmpfs::PODS;

/// Directory of Secret volumes below a pod's, as the kubelet names it.
const SECRET_VOLUMES: &str = "kubernetes.io~secret";

/// What the node knows of one pod.
#[derive(Default)]
pub(super) struct PodState {
    pub(super) pod: Option<Pod>,
    /// When to try again what failed for a reason that no watch will tell, in monotonic time.
    pub(super) retry_at: Option<Duration>,
    /// Until when the first answer about each Secret is waited for quietly (field case N7).
    quiet_until: Option<Duration>,
    /// Which content each volume holds: volume name → resourceVersion.
    held: BTreeMap<String, String>,
    /// The environment of each container as it was fixed: container name → environment.
    fixed: BTreeMap<String, Fixed>,
    /// What was reported last.
    reported: Option<(Report, status::PodCondition)>,
}

/// An environment that was given to a container.
struct Fixed {
    /// Its values, unless the node was restarted since.
    environment: Option<Environment>,
    /// The resourceVersion of each Secret at that time.
    resource_versions: BTreeMap<String, String>,
}

impl PodState {
    /// A pod that an earlier life of this node may have served: its containers keep what they were given then.
    pub(super) fn of(pod: Pod) -> Self {
        let fixed = earlier_environments(&pod)
            .into_iter()
            .map(|(container, resource_versions)| (container, Fixed { environment: None, resource_versions }))
            .collect();
        Self { pod: Some(pod), fixed, ..Self::default() }
    }
}

impl Agent {
    /// Brings the pod's volumes and report up to date with what the manager knows.
    pub(super) async fn sync(&mut self, uid: &str) {
        let Some(mut state) = self.pods.remove(uid) else { return };
        if let Some(pod) = state.pod.clone() {
            self.sync_pod(uid, &pod, &mut state).await;
        }
        self.pods.insert(uid.to_owned(), state);
    }

    async fn sync_pod(&self, uid: &str, pod: &Pod, state: &mut PodState) {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let names = secret_names(pod);
        let keys: BTreeSet<Key> = names.iter().map(|name| Key::new(&namespace, name)).collect();
        self.manager.register(uid, keys.clone());
        let now = self.config.clock.monotonic();
        if keys.iter().any(|key| matches!(self.manager.get(key), Err(GetError::NotSynced))) {
            let until = *state.quiet_until.get_or_insert(now + RETRY);
            if now < until {
                // Each first answer starts another round.
                state.retry_at = Some(until);
                return;
            }
        }
        let mut report = Report::default();
        let mut failed = false;
        for (volume, source) in secret_volumes(pod) {
            let consumer = self.sync_volume(uid, pod, &namespace, &volume, &source, state).await;
            failed |= consumer.state != ConsumerState::Current;
            report.consumers.push(consumer);
        }
        let config_maps = self.config_maps(pod, &namespace).await;
        let mut waiting = BTreeMap::new();
        for container in containers(pod) {
            let sources =
                PodSources { manager: &self.manager, namespace: &namespace, config_maps: &config_maps };
            let resolved = env::resolve(pod, &container, &sources);
            if let Err(error) = &resolved {
                waiting.insert(container.name.clone(), error.to_string());
            }
            report.consumers.extend(self.environment_uses(&namespace, &container, resolved.ok(), state));
        }
        report.consumers.extend(self.pull_credentials(pod, &namespace));
        report.consumers.sort_by(|a, b| (&a.secret, &a.place).cmp(&(&b.secret, &b.place)));
        failed |= config_maps.values().any(Result::is_err);
        // What waits for a Secret is moved by its watch; the timer is for what no watch tells.
        state.retry_at = failed.then(|| self.config.clock.monotonic() + RETRY);
        let condition = status::condition(pod, &report, &waiting, &self.place);
        if state.reported.as_ref() != Some(&(report.clone(), condition.clone()))
            && status::write(&self.config, pod, &report, &condition, &waiting).await
        {
            state.reported = Some((report, condition));
        }
    }

    async fn sync_volume(
        &self,
        uid: &str,
        pod: &Pod,
        namespace: &str,
        volume: &str,
        source: &SecretVolumeSource,
        state: &mut PodState,
    ) -> Consumer {
        let name = source.secret_name.clone().unwrap_or_default();
        let directory = self.volume_directory(uid, volume);
        let found = self.manager.get(&Key::new(namespace, &name));
        let (payload, resource_version) = match &found {
            Ok(secret) => (
                secret_payload(source, Some(secret)).map_err(|error| error.to_string()),
                secret.resource_version.clone(),
            ),
            Err(GetError::NotFound(_)) if source.optional == Some(true) => {
                (secret_payload(source, None).map_err(|error| error.to_string()), String::new())
            }
            Err(error) => (Err(error.to_string()), String::new()),
        };
        let written = match payload {
            Ok(payload) => self.write_volume(pod, &directory, payload).await,
            Err(message) => Err(message),
        };
        let (held, message) = match written {
            Ok(_) => {
                state.held.insert(volume.to_owned(), resource_version);
                (true, String::new())
            }
            Err(message) => {
                if !matches!(found, Err(GetError::NotSynced)) {
                    let text = format!("MountVolume.SetUp failed for volume {volume:?} : {message}");
                    status::event(&self.config, pod, "FailedMount", text).await;
                }
                (false, message)
            }
        };
        let resource_version = state.held.get(volume).cloned();
        Consumer {
            secret: name,
            kind: ConsumerKind::Volume,
            place: volume.to_owned(),
            path: directory.display().to_string(),
            state: match (held, &resource_version) {
                (true, _) => ConsumerState::Current,
                // What was there before is still there: a failed update touches nothing.
                (false, Some(_)) => ConsumerState::Stale,
                (false, None) => ConsumerState::Missing,
            },
            resource_version: resource_version.unwrap_or_default(),
            message,
        }
    }

    async fn write_volume(&self, pod: &Pod, directory: &Path, payload: Payload) -> Result<Written, String> {
        let files = self.config.files.clone();
        let directory = directory.to_owned();
        let now = self.config.clock.now();
        let mut suffix = [0_u8; 4];
        self.config.random.fill(&mut suffix).map_err(|error| error.to_string())?;
        let group = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.security_context.as_ref()?.fs_group)
            .and_then(|group| u32::try_from(group).ok());
        let write = move || {
            std::fs::create_dir_all(&directory)
                .map_err(|error| format!("{}: {error}", directory.display()))?;
            AtomicWriter { files: &*files, directory: &directory, group }
                .write(&payload, now, u32::from_le_bytes(suffix))
                .map_err(|error| error.to_string())
        };
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|_| Err("the writer stopped".to_owned()))
    }

    /// The uses of Secrets by a container's environment, which is fixed when it is first complete.
    fn environment_uses(
        &self,
        namespace: &str,
        container: &Container,
        resolved: Option<Environment>,
        state: &mut PodState,
    ) -> Vec<Consumer> {
        let names = environment_secrets(container);
        if names.is_empty() {
            return Vec::new();
        }
        let now: BTreeMap<String, String> = names
            .iter()
            .filter_map(|name| {
                let secret = self.manager.get(&Key::new(namespace, name)).ok()?;
                Some((name.clone(), secret.resource_version.clone()))
            })
            .collect();
        if let Some(environment) = &resolved {
            state.fixed.entry(container.name.clone()).or_insert_with(|| Fixed {
                environment: Some(environment.clone()),
                resource_versions: now.clone(),
            });
        }
        let fixed = state.fixed.get_mut(&container.name);
        let same_values = match (&resolved, &fixed) {
            (Some(now), Some(fixed)) => fixed.environment.as_ref().map(|environment| environment == now),
            _ => None,
        };
        if let (Some(true), Some(fixed)) = (same_values, &mut state.fixed.get_mut(&container.name)) {
            // Only metadata or other keys changed: the container holds the newest content.
            fixed.resource_versions.clone_from(&now);
        }
        let held = state.fixed.get(&container.name).map(|fixed| fixed.resource_versions.clone());
        names
            .into_iter()
            .map(|name| {
                let version = held.as_ref().and_then(|held| held.get(&name)).cloned();
                let newest = now.get(&name);
                Consumer {
                    kind: ConsumerKind::Environment,
                    place: container.name.clone(),
                    path: String::new(),
                    state: match &version {
                        None => ConsumerState::Missing,
                        Some(version) if Some(version) == newest => ConsumerState::Current,
                        Some(_) => ConsumerState::Stale,
                    },
                    resource_version: version.unwrap_or_default(),
                    message: match newest {
                        None => format!("secret {name:?} not found"),
                        Some(_) => String::new(),
                    },
                    secret: name,
                }
            })
            .collect()
    }

    /// Pull credentials are read at each pull: what the manager has is what will be used.
    fn pull_credentials(&self, pod: &Pod, namespace: &str) -> Vec<Consumer> {
        let references = pod.spec.iter().flat_map(|spec| spec.image_pull_secrets.iter().flatten());
        references
            .filter(|reference| !reference.name.is_empty())
            .map(|reference| {
                let found = self.manager.get(&Key::new(namespace, &reference.name));
                Consumer {
                    secret: reference.name.clone(),
                    kind: ConsumerKind::PullCredential,
                    place: String::new(),
                    path: String::new(),
                    state: if found.is_ok() { ConsumerState::Current } else { ConsumerState::Missing },
                    message: found.as_ref().err().map(ToString::to_string).unwrap_or_default(),
                    resource_version: found.map(|secret| secret.resource_version.clone()).unwrap_or_default(),
                }
            })
            .collect()
    }

    /// The ConfigMaps that the containers' environments name, read once for all of them.
    async fn config_maps(&self, pod: &Pod, namespace: &str) -> ConfigMaps {
        let api: Api<ConfigMap> = Api::namespaced(self.config.client.clone(), namespace);
        let names: BTreeSet<String> = containers(pod).iter().flat_map(environment_config_maps).collect();
        let mut found = ConfigMaps::new();
        for name in names {
            let answer = match api.get_opt(&name).await {
                Ok(map) => Ok(map.map(|map| map.data.unwrap_or_default())),
                Err(kube::Error::Api(status)) => Err(status.message.clone()),
                Err(_) => Err(format!("failed to read configmap {name:?}")),
            };
            found.insert(name, answer);
        }
        found
    }

    pub(super) async fn warn_about(&self, uid: &str) {
        let Some(pod) = self.pods.get(uid).and_then(|state| state.pod.as_ref()) else { return };
        for warning in pod_warnings(pod) {
            status::event(&self.config, pod, warning.reason, warning.message).await;
        }
    }

    /// The pod is to end: its volumes go first, whatever became of its Secrets (field case N13).
    pub(super) async fn terminate(&mut self, uid: &str, pod: &Pod) {
        self.forget(uid).await;
        let api: Api<Pod> = Api::namespaced(
            self.config.client.clone(),
            pod.metadata.namespace.as_deref().unwrap_or_default(),
        );
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        match api.delete(pod.metadata.name.as_deref().unwrap_or_default(), &parameters).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(_) => tracing::warn!(pod_uid = uid, "the end of a pod was not reported"),
        }
    }

    pub(super) async fn forget(&mut self, uid: &str) {
        self.pods.remove(uid);
        self.remove_volumes(uid).await;
        self.manager.unregister(uid);
    }

    pub(super) async fn remove_volumes(&self, uid: &str) {
        let directory = self.pod_directory(uid);
        let removed = tokio::task::spawn_blocking(move || wipe_and_remove(&directory)).await;
        if !matches!(removed, Ok(Ok(()))) {
            tracing::warn!(pod_uid = uid, "the volumes of a pod were not removed");
        }
    }

    pub(super) fn directories_of_pods(&self) -> Vec<String> {
        let pods = self.place.directory().join(PODS);
        self.config
            .files
            .list(&pods)
            .map(|names| names.into_iter().filter(|(_, is_dir)| *is_dir).map(|(name, _)| name).collect())
            .unwrap_or_default()
    }

    fn pod_directory(&self, uid: &str) -> PathBuf {
        self.place.directory().join(PODS).join(uid)
    }

    fn volume_directory(&self, uid: &str, volume: &str) -> PathBuf {
        self.pod_directory(uid).join("volumes").join(SECRET_VOLUMES).join(volume)
    }
}

/// ConfigMaps by name; `Ok(None)` when one does not exist.
type ConfigMaps = BTreeMap<String, Result<Option<BTreeMap<String, String>>, String>>;

struct PodSources<'a> {
    manager: &'a SecretManager,
    namespace: &'a str,
    config_maps: &'a ConfigMaps,
}

impl Sources for PodSources<'_> {
    fn secret(&self, name: &str) -> Result<Option<BTreeMap<String, SecretBytes>>, String> {
        match self.manager.get(&Key::new(self.namespace, name)) {
            Ok(secret) => Ok(Some(secret.data.clone())),
            Err(GetError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn config_map(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, String> {
        self.config_maps.get(name).cloned().unwrap_or(Ok(None))
    }
}

/// The Secret volumes that some container mounts; the others are neither made nor waited for, as in the kubelet.
fn secret_volumes(pod: &Pod) -> Vec<(String, SecretVolumeSource)> {
    let mounted: BTreeSet<String> = containers(pod)
        .iter()
        .flat_map(|container| container.volume_mounts.iter().flatten().map(|mount| mount.name.clone()))
        .collect();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter(|volume| mounted.contains(&volume.name))
        .filter_map(|volume| Some((volume.name.clone(), volume.secret.clone()?)))
        .collect()
}

fn environment_secrets(container: &Container) -> BTreeSet<String> {
    let from = container.env_from.iter().flatten().filter_map(|source| source.secret_ref.as_ref());
    let keys = container
        .env
        .iter()
        .flatten()
        .filter_map(|variable| variable.value_from.as_ref()?.secret_key_ref.as_ref());
    let names = from.map(|reference| &reference.name).chain(keys.map(|reference| &reference.name));
    names.filter(|name| !name.is_empty()).cloned().collect()
}

fn environment_config_maps(container: &Container) -> BTreeSet<String> {
    let from = container.env_from.iter().flatten().filter_map(|source| source.config_map_ref.as_ref());
    let keys = container
        .env
        .iter()
        .flatten()
        .filter_map(|variable| variable.value_from.as_ref()?.config_map_key_ref.as_ref());
    let names = from.map(|reference| &reference.name).chain(keys.map(|reference| &reference.name));
    names.filter(|name| !name.is_empty()).cloned().collect()
}

/// What an earlier life of this node reported: container → Secret → resourceVersion.
fn earlier_environments(pod: &Pod) -> BTreeMap<String, BTreeMap<String, String>> {
    let annotations = pod.metadata.annotations.as_ref();
    let report: Option<Report> =
        annotations.and_then(|annotations| serde_json::from_str(annotations.get(ANNOTATION)?).ok());
    let mut environments: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for consumer in report.into_iter().flat_map(|report| report.consumers) {
        if consumer.kind == ConsumerKind::Environment && !consumer.resource_version.is_empty() {
            environments
                .entry(consumer.place)
                .or_default()
                .insert(consumer.secret, consumer.resource_version);
        }
    }
    environments
}
