//! ServiceAccount: a pod runs as a service account that exists, with its token mounted,
//! and, where the account says so, with no Secrets but the account's own.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coffer_types::meta::Meta as _;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use coffer_types::{Status, Value};

use super::forbid;
use crate::authz::quote::quote;
use crate::pod_references::{Place, SecretReference, secret_references};
use crate::ports::{Admission, Admit, GroupResource, Objects, Operation};
use crate::tokens::claims::WARN_ONLY_SECONDS;

const DEFAULT_ACCOUNT: &str = "default";
const ENFORCE_ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
/// 0644.
const DEFAULT_MODE: i64 = 420;
/// How often the account `default` is looked for: it comes into being right after its namespace.
const ATTEMPTS_FOR_DEFAULT: u32 = 10;
const RETRY_INTERVAL: Duration = Duration::from_millis(150);
/// Characters of generated names: nothing that reads as a word or as another character.
const NAME_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const NAME_LENGTH: usize = 5;

/// The plugin.
pub struct ServiceAccounts {
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl ServiceAccounts {
    /// Over the stored service accounts.
    pub fn new(objects: Arc<dyn Objects>, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { objects, clock, random }
    }

    /// The account of a pod, or the 403.
    async fn account(&self, request: &Admission<'_>, pod: &Value) -> Result<Value, Status> {
        let namespace = &request.attributes.namespace;
        let name = pod.str_at(&["spec", "serviceAccountName"]);
        if name.is_empty() {
            let why = format!("no service account specified for pod {namespace}/{}", pod.name());
            return Err(forbid(request, Some(pod), why));
        }
        let refuse = |why: &dyn std::fmt::Display| {
            forbid(request, Some(pod), format!("error looking up service account {namespace}/{name}: {why}"))
        };
        let resource = GroupResource::new("", "serviceaccounts");
        let attempts = if name == DEFAULT_ACCOUNT { ATTEMPTS_FOR_DEFAULT } else { 1 };
        let cached = self.objects.get(&resource, namespace, name, false).await;
        if let Some(account) = cached.map_err(|error| refuse(&error))? {
            return Ok(account);
        }
        for attempt in 0..attempts {
            if 0 < attempt {
                self.clock.sleep(RETRY_INTERVAL).await;
            }
            let live = self.objects.get(&resource, namespace, name, true).await;
            if let Some(account) = live.map_err(|error| refuse(&error))? {
                return Ok(account);
            }
        }
        Err(refuse(&format!("serviceaccount {} not found", quote(name))))
    }

    fn volume_name(&self) -> Result<String, Status> {
        let mut bytes = [0_u8; NAME_LENGTH];
        self.random.fill(&mut bytes).map_err(Status::internal)?;
        let characters =
            bytes.iter().map(|byte| char::from(NAME_ALPHABET[usize::from(*byte) % NAME_ALPHABET.len()]));
        Ok(VOLUME_PREFIX.chars().chain(characters).collect())
    }
}

#[async_trait]
impl Admit for ServiceAccounts {
    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| is_new_pod(request)) else { return Ok(()) };
        if is_mirror(pod) {
            return Ok(());
        }
        if pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
            pod.set(&["spec", "serviceAccountName"], DEFAULT_ACCOUNT);
            pod.set(&["spec", "serviceAccount"], DEFAULT_ACCOUNT);
        }
        let account = self.account(request, pod).await?;
        if automounts(&account, pod) {
            mount_token(pod, || self.volume_name())?;
        }
        let own = pod.at(&["spec", "imagePullSecrets"]).and_then(Value::as_array).unwrap_or_default();
        let of_account = account.get("imagePullSecrets").and_then(Value::as_array).unwrap_or_default();
        if own.is_empty() && !of_account.is_empty() {
            let names = of_account.iter().map(|secret| Value::from([("name", secret.str_at(&["name"]))]));
            pod.set(&["spec", "imagePullSecrets"], names.collect::<Vec<_>>());
        }
        Ok(())
    }

    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some(pod) = object else { return Ok(()) };
        let ephemeral = is_ephemeral_containers(request);
        if !is_new_pod(request) && !ephemeral {
            return Ok(());
        }
        if !ephemeral && is_mirror(pod) {
            return check_mirror(pod).map_err(|why| forbid(request, Some(pod), why));
        }
        let account = self.account(request, pod).await?;
        if enforces_mountable_secrets(&account) {
            check_references(&account, pod, ephemeral).map_err(|why| forbid(request, Some(pod), why))?;
        }
        Ok(())
    }
}

fn is_pod(request: &Admission<'_>, subresource: &str) -> bool {
    let attributes = request.attributes;
    attributes.group.is_empty() && attributes.resource == "pods" && attributes.subresource == subresource
}

fn is_new_pod(request: &Admission<'_>) -> bool {
    request.operation == Operation::Create && is_pod(request, "")
}

fn is_ephemeral_containers(request: &Admission<'_>) -> bool {
    request.operation == Operation::Update && is_pod(request, "ephemeralcontainers")
}

fn is_mirror(pod: &Value) -> bool {
    pod.annotations().contains_key(MIRROR_ANNOTATION)
}

fn check_mirror(pod: &Value) -> Result<(), &'static str> {
    if !pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    if !secret_references(spec).is_empty() {
        return Err("a mirror pod may not reference secrets");
    }
    let volumes = spec.get("volumes").and_then(Value::as_array).unwrap_or_default();
    let projects_token = volumes
        .iter()
        .flat_map(|volume| volume.at(&["projected", "sources"]).and_then(Value::as_array).unwrap_or_default())
        .any(|source| source.get("serviceAccountToken").is_some());
    if projects_token {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

fn automounts(account: &Value, pod: &Value) -> bool {
    let of_pod = pod.at(&["spec", "automountServiceAccountToken"]).and_then(Value::as_bool);
    of_pod.or_else(|| account.get("automountServiceAccountToken")?.as_bool()).unwrap_or(true)
}

/// Go's `strconv.ParseBool`; anything else is false.
fn enforces_mountable_secrets(account: &Value) -> bool {
    matches!(account.annotation(ENFORCE_ANNOTATION), Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

/// Every Secret that the pod names must be one of the account's. Upstream looks at secret volumes,
/// variables and pull secrets only; here every place is looked at, because each one hands out a Secret.
fn check_references(account: &Value, pod: &Value, only_ephemeral: bool) -> Result<(), String> {
    let names = |field: &str| -> Vec<&str> {
        let items = account.get(field).and_then(Value::as_array).unwrap_or_default();
        items.iter().map(|item| item.str_at(&["name"])).collect()
    };
    let mountable = names("secrets");
    let pullable = names("imagePullSecrets");
    let account = account.name();
    for reference in secret_references(pod.get("spec").unwrap_or(&Value::Null)) {
        let SecretReference { name, place } = reference;
        let is_ephemeral = matches!(
            place,
            Place::Variable { containers: "ephemeralContainers", .. }
                | Place::AllVariables { containers: "ephemeralContainers", .. }
        );
        if only_ephemeral && !is_ephemeral {
            continue;
        }
        let allowed = if matches!(place, Place::PullSecret { .. }) { &pullable } else { &mountable };
        if allowed.contains(&name) {
            continue;
        }
        let what = match place {
            Place::SecretVolume => format!("volume with secret.secretName=\"{name}\""),
            Place::OtherVolume { volume } => {
                format!("volume {volume} referencing secret.secretName=\"{name}\"")
            }
            Place::Variable { containers, container, variable } => {
                let kind = container_kind(containers);
                format!("{kind} {container} with envVar {variable} referencing secret.secretName=\"{name}\"")
            }
            Place::AllVariables { containers, container } => {
                let kind = container_kind(containers);
                format!("{kind} {container} with envFrom referencing secret.secretName=\"{name}\"")
            }
            Place::PullSecret { index } => {
                return Err(format!(
                    "imagePullSecrets[{index}].name=\"{name}\" is not allowed because service account {account} does not reference that imagePullSecret"
                ));
            }
        };
        return Err(format!(
            "{what} is not allowed because service account {account} does not reference that secret"
        ));
    }
    Ok(())
}

fn container_kind(containers: &str) -> &'static str {
    match containers {
        "initContainers" => "init container",
        "ephemeralContainers" => "ephemeral container",
        _ => "container",
    }
}

/// Mounts the token into every container that has nothing at its path, and adds the volume when one needs it.
fn mount_token(pod: &mut Value, new_name: impl FnOnce() -> Result<String, Status>) -> Result<(), Status> {
    let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array).unwrap_or_default();
    let existing =
        volumes.iter().map(|volume| volume.str_at(&["name"])).find(|name| name.starts_with(VOLUME_PREFIX));
    let existing = existing.map(str::to_owned);
    let has_volume = existing.is_some();
    let name = match existing {
        Some(name) => name,
        None => new_name()?,
    };
    let mut needed = false;
    for field in ["initContainers", "containers"] {
        let containers =
            pod.get_mut("spec").and_then(|spec| spec.get_mut(field)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut mounts =
                container.get("volumeMounts").and_then(Value::as_array).unwrap_or_default().to_vec();
            if mounts.iter().any(|mount| mount.str_at(&["mountPath"]) == MOUNT_PATH) {
                continue;
            }
            let mut mount = Value::from([("name", name.as_str()), ("mountPath", MOUNT_PATH)]);
            mount.set(&["readOnly"], true);
            mounts.push(mount);
            container.set(&["volumeMounts"], mounts);
            needed = true;
        }
    }
    if needed && !has_volume {
        let mut volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array).unwrap_or_default().to_vec();
        volumes.push(token_volume(&name));
        pod.set(&["spec", "volumes"], volumes);
    }
    Ok(())
}

fn token_volume(name: &str) -> Value {
    let token =
        Value::from([("path", Value::from("token")), ("expirationSeconds", WARN_ONLY_SECONDS.into())]);
    let key = Value::from([("key", "ca.crt"), ("path", "ca.crt")]);
    let ca = Value::from([("name", Value::from("kube-root-ca.crt")), ("items", Value::from(vec![key]))]);
    let field = Value::from([("apiVersion", "v1"), ("fieldPath", "metadata.namespace")]);
    let file = Value::from([("path", Value::from("namespace")), ("fieldRef", field)]);
    let sources = vec![
        Value::from([("serviceAccountToken", token)]),
        Value::from([("configMap", ca)]),
        Value::from([("downwardAPI", Value::from([("items", vec![file])]))]),
    ];
    let projected =
        Value::from([("defaultMode", Value::from(DEFAULT_MODE)), ("sources", Value::from(sources))]);
    Value::from([("name", Value::from(name)), ("projected", projected)])
}
