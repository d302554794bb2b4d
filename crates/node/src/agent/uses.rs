//! The uses of Secrets that do not follow changes by themselves: environments and subPath mounts,
//! which are fixed when a container starts, and pull credentials, which are read at each pull.

use std::collections::{BTreeMap, BTreeSet};

use coffer_types::SecretBytes;
use k8s_openapi::api::core::v1::{Container, Pod, VolumeMount};

use super::Agent;
use super::materialised::Materialised;
use crate::env::Environment;
use crate::manager::table::Key;
use crate::references::containers;
use crate::report::{ANNOTATION, Consumer, ConsumerKind, ConsumerState, Report};
use crate::volume::payload::Payload;

/// An environment that was given to a container.
pub(super) struct FixedEnvironment {
    /// Its values, unless the node was restarted since.
    environment: Option<Environment>,
    /// The resourceVersion of each Secret at that time.
    resource_versions: BTreeMap<String, String>,
}

/// What a container was given by one subPath mount.
pub(super) struct FixedSubPath {
    /// The files, unless the node was restarted since.
    content: Option<SubPathContent>,
    /// The resourceVersion of each Secret at that time.
    resource_versions: BTreeMap<String, String>,
}

/// Which mount: container, volume, subPath.
pub(super) type SubPathKey = (String, String, String);
type SubPathContent = BTreeMap<String, SecretBytes>;

/// Everything that containers of a pod were given once and for all.
#[derive(Default)]
pub(super) struct FixedUses {
    /// By container.
    environments: BTreeMap<String, FixedEnvironment>,
    sub_paths: BTreeMap<SubPathKey, FixedSubPath>,
}

impl FixedUses {
    /// What an earlier life of this node reported: the containers keep what they were given then.
    pub(super) fn of(pod: &Pod) -> Self {
        let annotations = pod.metadata.annotations.as_ref();
        let report: Option<Report> =
            annotations.and_then(|annotations| serde_json::from_str(annotations.get(ANNOTATION)?).ok());
        let mut fixed = Self::default();
        for consumer in report.into_iter().flat_map(|report| report.consumers) {
            if consumer.resource_version.is_empty() {
                continue;
            }
            let versions = match consumer.kind {
                ConsumerKind::Environment => {
                    let new = || FixedEnvironment { environment: None, resource_versions: BTreeMap::new() };
                    &mut fixed.environments.entry(consumer.place).or_insert_with(new).resource_versions
                }
                ConsumerKind::SubPath => {
                    let new = || FixedSubPath { content: None, resource_versions: BTreeMap::new() };
                    let key = (consumer.place, consumer.volume, consumer.sub_path);
                    &mut fixed.sub_paths.entry(key).or_insert_with(new).resource_versions
                }
                ConsumerKind::Volume | ConsumerKind::PullCredential => continue,
            };
            versions.insert(consumer.secret, consumer.resource_version);
        }
        fixed
    }
}

impl Agent {
    /// The uses of Secrets by a container's environment, which is fixed when it is first complete.
    pub(super) fn environment_uses(
        &self,
        namespace: &str,
        container: &Container,
        resolved: Option<Environment>,
        fixed: &mut FixedUses,
    ) -> Vec<Consumer> {
        let names = environment_secrets(container);
        if names.is_empty() {
            return Vec::new();
        }
        let mut now = BTreeMap::new();
        let mut messages = BTreeMap::new();
        for name in &names {
            match self.manager.get(&Key::secret(namespace, name)) {
                Ok(secret) => {
                    now.insert(name.clone(), secret.resource_version.clone());
                }
                Err(error) => {
                    messages.insert(name.clone(), error.to_string());
                }
            }
        }
        let environments = &mut fixed.environments;
        if let Some(environment) = &resolved {
            let odd = environment.odd_names();
            if !odd.is_empty() && !environments.contains_key(&container.name) {
                tracing::debug!(container = container.name, names = ?odd, "variables that no shell can use");
            }
            let fixed = environments.entry(container.name.clone()).or_insert_with(|| FixedEnvironment {
                environment: Some(environment.clone()),
                resource_versions: now.clone(),
            });
            if fixed.environment.as_ref() == Some(environment) {
                // Only metadata or other keys changed: the container holds the newest content.
                fixed.resource_versions.clone_from(&now);
            }
        }
        let held = environments.get(&container.name).map(|fixed| &fixed.resource_versions);
        names
            .into_iter()
            .map(|name| {
                let held = held.and_then(|held| held.get(&name)).cloned();
                Consumer {
                    kind: ConsumerKind::Environment,
                    place: container.name.clone(),
                    volume: String::new(),
                    sub_path: String::new(),
                    path: String::new(),
                    state: fixed_state(held.as_ref(), now.get(&name)),
                    resource_version: held.unwrap_or_default(),
                    message: messages.remove(&name).unwrap_or_default(),
                    secret: name,
                }
            })
            .collect()
    }

    /// Pull credentials are read at each pull: what the manager has is what will be used.
    pub(super) fn pull_credentials(&self, pod: &Pod, namespace: &str) -> Vec<Consumer> {
        let references = pod.spec.iter().flat_map(|spec| spec.image_pull_secrets.iter().flatten());
        references
            .filter(|reference| !reference.name.is_empty())
            .map(|reference| {
                let found = self.manager.get(&Key::secret(namespace, &reference.name));
                Consumer {
                    secret: reference.name.clone(),
                    kind: ConsumerKind::PullCredential,
                    place: String::new(),
                    volume: String::new(),
                    sub_path: String::new(),
                    path: String::new(),
                    state: if found.is_ok() { ConsumerState::Current } else { ConsumerState::Missing },
                    message: found.as_ref().err().map(ToString::to_string).unwrap_or_default(),
                    resource_version: found.map(|secret| secret.resource_version.clone()).unwrap_or_default(),
                }
            })
            .collect()
    }
}

/// The subPath mounts of the pod's containers: each is fixed when its files are first there, and stale
/// as soon as the volume has other ones (field case N3).
///
/// Nothing is looked up below the volume's directory, and nothing is made in it: a subPath selects
/// files of the payload by name only (field cases N3, S15).
pub(super) fn sub_path_uses(
    pod: &Pod,
    made: &BTreeMap<String, Materialised>,
    fixed_uses: &mut FixedUses,
) -> Vec<Consumer> {
    let mut uses = Vec::new();
    for container in containers(pod) {
        for mount in container.volume_mounts.iter().flatten() {
            let (Some(made), Some(sub_path)) = (made.get(&mount.name), sub_path(mount)) else { continue };
            let key = (container.name.clone(), mount.name.clone(), sub_path.clone());
            // What an expression expands to may come from a Secret: the report never holds it.
            let literal = mount.sub_path.as_deref().is_some_and(|text| !text.is_empty());
            let content = match (&made.payload, literal) {
                (Some(payload), true) => Some(below(payload, &sub_path)),
                (Some(payload), false) => Some(below(payload, "")),
                (None, _) => None,
            };
            if let Some(content) = content.filter(|content| !content.is_empty()) {
                let fixed = fixed_uses.sub_paths.entry(key.clone()).or_insert_with(|| FixedSubPath {
                    content: Some(content.clone()),
                    resource_versions: made.versions.clone(),
                });
                if fixed.resource_versions == made.versions && fixed.content.is_none() {
                    // The node was restarted: the same version has the same content.
                    fixed.content = Some(content);
                } else if fixed.content.as_ref() == Some(&content) {
                    fixed.resource_versions.clone_from(&made.versions);
                }
            }
            let held = fixed_uses.sub_paths.get(&key).map(|fixed| &fixed.resource_versions);
            for volume in &made.consumers {
                let held = held.and_then(|held| held.get(&volume.secret)).cloned();
                let newest = made.payload.is_some().then(|| made.versions.get(&volume.secret)).flatten();
                let message = match (&held, volume.message.is_empty()) {
                    (None, true) => format!("subPath {sub_path:?} is not in the volume"),
                    _ => volume.message.clone(),
                };
                uses.push(Consumer {
                    secret: volume.secret.clone(),
                    kind: ConsumerKind::SubPath,
                    place: container.name.clone(),
                    volume: mount.name.clone(),
                    sub_path: sub_path.clone(),
                    path: volume.path.clone(),
                    state: fixed_state(held.as_ref(), newest),
                    resource_version: held.unwrap_or_default(),
                    message,
                });
            }
        }
    }
    uses
}

/// The `subPath` or `subPathExpr` of a mount, unless it mounts the whole volume.
pub(super) fn sub_path(mount: &VolumeMount) -> Option<String> {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    text(&mount.sub_path).or_else(|| text(&mount.sub_path_expr))
}

/// The files that a subPath names: one, or all of a directory.
fn below(payload: &Payload, sub_path: &str) -> SubPathContent {
    let wanted = sub_path.trim_end_matches('/');
    let inside = |path: &str| {
        wanted.is_empty()
            || path == wanted
            || path.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'))
    };
    let files = payload.iter().filter(|(path, _)| inside(path));
    files.map(|(path, file)| (path.clone(), file.content.clone())).collect()
}

fn fixed_state(held: Option<&String>, newest: Option<&String>) -> ConsumerState {
    match held {
        None => ConsumerState::Missing,
        Some(held) if Some(held) == newest => ConsumerState::Current,
        Some(_) => ConsumerState::Stale,
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::volume::payload::FileProjection;

    fn pod(mounts: serde_json::Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "volumeMounts": mounts}]},
        }))
        .expect("a pod")
    }

    fn made(version: &str, files: Option<&[(&str, &str)]>) -> BTreeMap<String, Materialised> {
        let file = |content: &str| FileProjection {
            content: SecretBytes::from(content.to_owned()),
            mode: 0o644,
            owner: None,
        };
        let consumer = Consumer {
            secret: "db".to_owned(),
            kind: ConsumerKind::Volume,
            place: "v".to_owned(),
            volume: String::new(),
            sub_path: String::new(),
            path: "/node/v".to_owned(),
            resource_version: version.to_owned(),
            state: ConsumerState::Current,
            message: if files.is_some() { String::new() } else { "secret \"db\" not found".to_owned() },
        };
        let made = Materialised {
            consumers: vec![consumer],
            payload: files.map(|files| {
                files.iter().map(|(path, content)| ((*path).to_owned(), file(content))).collect()
            }),
            versions: BTreeMap::from([("db".to_owned(), version.to_owned())]),
            mounted_whole: false,
            failure: None,
            waits: false,
        };
        BTreeMap::from([("v".to_owned(), made)])
    }

    fn show(uses: &[Consumer]) -> Vec<String> {
        uses.iter()
            .map(|one| {
                format!(
                    "{} {} {} {:?} {:?} {}",
                    one.place, one.volume, one.sub_path, one.resource_version, one.state, one.message
                )
                .trim_end()
                .to_owned()
            })
            .collect()
    }

    /// Field case N3: a subPath mount holds what it was given, and is stale from the first change of its files on.
    #[test]
    fn n3_a_sub_path_mount_is_stale_when_its_files_change() {
        let mount = |sub_path: &str| json!([{"name": "v", "mountPath": "/m", "subPath": sub_path}]);
        type Step<'a> = (&'a str, Option<&'a [(&'a str, &'a str)]>, &'a str);
        let cases: [(serde_json::Value, &[Step<'_>]); 5] = [
            (
                mount("k"),
                &[
                    ("1", None, "c v k \"\" Missing secret \"db\" not found"),
                    ("2", Some(&[("k", "one")]), "c v k \"2\" Current"),
                    // Only metadata or another key changed: the mount holds the newest content.
                    ("3", Some(&[("k", "one"), ("other", "x")]), "c v k \"3\" Current"),
                    ("4", Some(&[("k", "two")]), "c v k \"3\" Stale"),
                    ("5", Some(&[("k", "three")]), "c v k \"3\" Stale"),
                    ("6", Some(&[("other", "x")]), "c v k \"3\" Stale"),
                    ("7", None, "c v k \"3\" Stale secret \"db\" not found"),
                    // It holds what the Secret holds again.
                    ("8", Some(&[("k", "one")]), "c v k \"8\" Current"),
                ],
            ),
            // The key is not there: nothing is held, and nothing is made in its place.
            (
                mount("absent"),
                &[
                    (
                        "1",
                        Some(&[("k", "one")]),
                        "c v absent \"\" Missing subPath \"absent\" is not in the volume",
                    ),
                    ("2", Some(&[("absent", "x")]), "c v absent \"2\" Current"),
                ],
            ),
            (
                mount("dir/"),
                &[
                    ("1", Some(&[("dir/a", "one"), ("directory", "x")]), "c v dir/ \"1\" Current"),
                    ("2", Some(&[("dir/a", "one"), ("directory", "y")]), "c v dir/ \"2\" Current"),
                    ("3", Some(&[("dir/a", "one"), ("dir/b", "new")]), "c v dir/ \"2\" Stale"),
                ],
            ),
            // An expression may expand to anything: any change of the volume counts, and only its text is told.
            (
                json!([{"name": "v", "mountPath": "/m", "subPathExpr": "$(PASSWORD)"}]),
                &[
                    ("1", Some(&[("k", "one")]), "c v $(PASSWORD) \"1\" Current"),
                    ("2", Some(&[("k", "two")]), "c v $(PASSWORD) \"1\" Stale"),
                ],
            ),
            (json!([{"name": "v", "mountPath": "/m"}]), &[("1", Some(&[("k", "one")]), "")]),
        ];
        for (mounts, steps) in cases {
            let pod = pod(mounts);
            let mut fixed = FixedUses::of(&pod);
            for (version, files, expected) in steps {
                let uses = sub_path_uses(&pod, &made(version, *files), &mut fixed);
                assert_eq!(show(&uses).join("\n"), *expected, "version {version}");
                assert!(uses.iter().all(|one| !one.kind.follows_changes()));
            }
        }
    }

    /// After a restart of the node only the version is known: another one counts as another content.
    #[test]
    fn n3_a_restarted_node_knows_what_sub_path_mounts_hold() {
        let before = pod(json!([{"name": "v", "mountPath": "/m", "subPath": "k"}]));
        let mut fixed = FixedUses::of(&before);
        let consumers = sub_path_uses(&before, &made("1", Some(&[("k", "one")])), &mut fixed);
        let mut after = before.clone();
        let report = serde_json::to_string(&Report { consumers }).expect("a report");
        after.metadata.annotations = Some(BTreeMap::from([(ANNOTATION.to_owned(), report)]));
        for (version, content, expected) in [
            ("1", "one", "c v k \"1\" Current"),
            ("2", "one", "c v k \"1\" Stale"),
            ("1", "one", "c v k \"1\" Current"),
        ] {
            let mut fixed = FixedUses::of(&after);
            let uses = sub_path_uses(&after, &made(version, Some(&[("k", content)])), &mut fixed);
            assert_eq!(show(&uses), [expected]);
        }
        let mut fixed = FixedUses::of(&after);
        for (version, content, expected) in [
            ("1", "one", "c v k \"1\" Current"),
            ("2", "one", "c v k \"2\" Current"),
            ("3", "x", "c v k \"2\" Stale"),
        ] {
            let uses = sub_path_uses(&after, &made(version, Some(&[("k", content)])), &mut fixed);
            assert_eq!(show(&uses), [expected]);
        }
    }
}
