//! One pod: its volumes, its environment, and their end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use coffer_types::SecretBytes;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::Api;
use kube::api::{DeleteParams, Preconditions};

use super::patience::{self, Stage};
use super::state::PodState;
use super::uses::sub_path_uses;
use super::volumes::volumes;
use super::{Agent, RETRY, status};
use crate::env::{self, Sources};
use crate::files::wipe_and_remove;
use crate::manager::table::Key;
use crate::manager::{GetError, ObjectManager};
use crate::pod_warnings::pod_warnings;
use crate::references::{containers, secret_names};
use crate::report::Report;
use crate::volume::tmpfs::PODS;

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
        let volumes = volumes(pod);
        let mut config_maps: BTreeSet<String> =
            containers(pod).iter().flat_map(environment_config_maps).collect();
        config_maps.extend(volumes.iter().flat_map(|(_, source)| source.config_maps()));
        let mut keys: BTreeSet<Key> =
            secret_names(pod).iter().map(|name| Key::secret(&namespace, name)).collect();
        keys.extend(config_maps.iter().map(|name| Key::config_map(&namespace, name)));
        self.manager.register(uid, keys.clone());
        let now = self.config.clock.monotonic();
        state.retry_at = None;
        let stage = self.wait(&keys, now, state);
        if stage == Some(Stage::Quiet) {
            return;
        }
        self.remove_retired(state).await;
        let mut report = Report::default();
        let mut failures = Vec::new();
        let mut made = BTreeMap::new();
        let mut failed = false;
        for (volume, source) in volumes {
            let stage = stage.unwrap_or(Stage::Slow);
            let done = self.sync_volume(uid, pod, &volume, &source, stage, state).await;
            failed |= done.failure.is_some() && !done.waits;
            failures.extend(done.failure.clone());
            if done.mounted_whole {
                report.consumers.extend(done.consumers.iter().cloned());
            }
            made.insert(volume, done);
        }
        self.save_checkpoint(uid, state);
        report.consumers.extend(sub_path_uses(pod, &made, &mut state.fixed));
        let mut waiting = BTreeMap::new();
        for container in containers(pod) {
            let sources = PodSources { manager: &self.manager, namespace: &namespace };
            let resolved = env::resolve(pod, &container, &sources);
            if let Err(error) = &resolved {
                waiting.insert(container.name.clone(), error.to_string());
            }
            let uses = self.environment_uses(&namespace, &container, resolved.ok(), &mut state.fixed);
            report.consumers.extend(uses);
        }
        report.consumers.extend(self.pull_credentials(pod, &namespace));
        report.consumers.sort_by(|a, b| a.order().cmp(&b.order()));
        // What waits for an object is moved by its watch; the timer is for what no watch tells.
        if failed {
            state.try_again(now + RETRY);
        }
        if let Some(due) = state.retired.iter().map(|retired| retired.due).min() {
            state.try_again(due);
        }
        let condition = status::condition(pod, &report, &failures, &waiting, &self.place);
        if state.reported.as_ref() != Some(&(report.clone(), condition.clone())) {
            if status::write(&self.config, pod, &report, &condition, &waiting).await {
                state.reported = Some((report, condition));
            } else {
                state.try_again(now + RETRY);
            }
        }
    }

    /// How far the wait for first answers has come; `None` when nothing is waited for.
    fn wait(&self, keys: &BTreeSet<Key>, now: Duration, state: &mut PodState) -> Option<Stage> {
        if !keys.iter().any(|key| matches!(self.manager.get(key), Err(GetError::NotSynced(_)))) {
            state.waiting_since = None;
            return None;
        }
        let since = *state.waiting_since.get_or_insert(now);
        let (stage, pause) = patience::stage(now.saturating_sub(since));
        // Each first answer starts another round by itself.
        state.try_again(now + pause);
        Some(stage)
    }

    pub(super) async fn warn_about(&self, uid: &str) {
        let Some(pod) = self.pods.get(uid).and_then(|state| state.pod.as_ref()) else { return };
        for warning in pod_warnings(pod) {
            self.metrics.pod_warnings.increment(&[warning.reason]);
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

    pub(super) fn pod_directory(&self, uid: &str) -> PathBuf {
        self.place.directory().join(PODS).join(uid)
    }
}

struct PodSources<'a> {
    manager: &'a ObjectManager,
    namespace: &'a str,
}

impl Sources for PodSources<'_> {
    fn secret(&self, name: &str) -> Result<Option<BTreeMap<String, SecretBytes>>, String> {
        self.data(&Key::secret(self.namespace, name))
    }

    fn config_map(&self, name: &str) -> Result<Option<BTreeMap<String, SecretBytes>>, String> {
        self.data(&Key::config_map(self.namespace, name))
    }
}

impl PodSources<'_> {
    fn data(&self, key: &Key) -> Result<Option<BTreeMap<String, SecretBytes>>, String> {
        match self.manager.get(key) {
            Ok(object) => Ok(Some(object.data.clone())),
            Err(GetError::NotFound(..)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
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
