//! `coffer demo`: the main job, shown step by step.

use std::path::{Path, PathBuf};
use std::time::Duration;

use coffer_runtime::clock::SystemClock;
use coffer_types::SecretBytes;
use coffer_types::time::Clock;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::up::{Chain, ChainOptions};
use crate::cli::{Demo, EtcdFlags, Global};
use crate::exit::{Exit, Failure};
use crate::print::Paint;
use crate::put;
use crate::signals::{self, Signals};
use crate::trace::gather::Ask;
use crate::trace::{gather, table};
use crate::vault::Vault;

const NAMESPACE: &str = "default";
const NODE: &str = "coffer";
/// How long a step may take before the demo gives up.
const STEP_LIMIT: Duration = Duration::from_secs(30);
/// How often a step looks.
const LOOK: Duration = Duration::from_millis(20);
/// Path of the credential in an external store.
const REMOTE: &str = "coffer-demo/db";

/// Runs the show.
pub(crate) async fn run(global: &Global, flags: &Demo) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let fresh = Fresh::make(flags.data_dir.as_deref())?;
    let remote = match (&flags.vault_addr, &flags.vault_token_file) {
        (Some(address), Some(file)) => Remote::Vault(Box::new(Vault::new(address, read_token(file)?)?)),
        _ => Remote::Fake,
    };
    let clock = SystemClock::new();
    let started = clock.monotonic();
    let mut show = Show { paint: Paint::new(global.color), step: 0 };
    show.step("Everything starts in one process: API server, operator, node, keys")?;
    let options = ChainOptions {
        data_dir: fresh.path.clone(),
        listen: "127.0.0.1:0".parse().map_err(Failure::problem)?,
        etcd: EtcdFlags { etcd_prefix: "/registry".to_owned(), ..EtcdFlags::default() },
        node_name: NODE.to_owned(),
    };
    let interrupted = || Failure::problem("interrupted before the show was over");
    let chain = match Chain::start_unless_asked_to_end(options, &mut signals).await {
        Ok(Some(chain)) => chain,
        ended => {
            fresh.remove();
            return ended.and(Err(interrupted()));
        }
    };
    show.line(&format!("directory   {}", fresh.path.display()))?;
    show.line(&format!("API server  https://{}", chain.address))?;
    let outcome = tokio::select! {
        outcome = story(&mut show, &chain, &remote, &clock, started) => outcome,
        () = signals.asked_to_end() => Err(interrupted()),
    };
    if outcome.is_ok() && !flags.once {
        show.step("It stays up for you until Ctrl-C")?;
        show.line(&format!("export KUBECONFIG={}", chain.kubeconfig.display()))?;
        show.line("kubectl get secret,externalsecret,pod")?;
        show.line("kubectl get secret db -o jsonpath='{.data.password}' | base64 -d")?;
        show.line("coffer trace secret/db")?;
        signals.asked_to_end().await;
    }
    let stopped = chain.stop().await;
    fresh.remove();
    outcome.and(stopped)?;
    if !flags.once {
        signals::ended();
    }
    Ok(Exit::Done)
}

/// The steps. Each ends with something that was seen, not assumed.
async fn story(
    show: &mut Show,
    chain: &Chain,
    remote: &Remote,
    clock: &SystemClock,
    started: Duration,
) -> Result<(), Failure> {
    let client = &chain.admin;
    show.step(&format!("A credential is written to {}", remote.describe()))?;
    remote.write(client, "correct-horse-1").await?;
    remote.install_store(client).await?;
    apply(client, "external-secrets.io", "v1", "ExternalSecret", "externalsecrets", external_secret())
        .await?;
    show.line("ExternalSecret db asks for it; pod web mounts it and takes it as an environment variable")?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let pod: Pod = serde_json::from_value(pod()).map_err(Failure::problem)?;
    let pod = pods.create(&Default::default(), &pod).await.map_err(|error| refused("the pod", &error))?;
    let uid = pod.metadata.uid.unwrap_or_default();

    show.step("The node writes the file, on a tmpfs")?;
    let file = file_path(client, &uid, clock).await?;
    wait_for_content(&file, "correct-horse-1", clock).await?;
    let seconds = (clock.monotonic() - started).as_secs_f64();
    show.line(&format!("{}  holds it, {seconds:.1} s after the start", file.display()))?;

    show.step("The stored copy is encrypted")?;
    let copy = life(client, Ask::Nobody).await?.at_rest;
    match copy {
        crate::trace::AtRest::Encrypted { provider, key, stale: false, .. } => {
            show.line(&format!(
                "{} of the store begins k8s:enc:{provider}:v1:{key}:",
                "/registry/secrets/default/db"
            ))?;
        }
        other => {
            return Err(Failure::problem(format!(
                "the stored copy is not encrypted as configured: {other:?}"
            )));
        }
    }

    show.step("It is rotated at its source")?;
    let rotated = clock.monotonic();
    remote.write(client, "correct-horse-2").await?;
    wait_for_content(&file, "correct-horse-2", clock).await?;
    let seconds = (clock.monotonic() - rotated).as_secs_f64();
    show.line(&format!("the file flipped {seconds:.1} s later; the ExternalSecret refreshes every second"))?;

    show.step("Who has the new value, and who still has the old one?")?;
    wait_for_stale_environment(client, clock).await?;
    let life = life(client, Ask::Source).await?;
    let text = table::render(&life, clock.now(), show.paint);
    for line in text.lines() {
        show.line(line)?;
    }
    let encoded = read_secret(client).await?;
    if encoded.expose() != b"correct-horse-2" {
        return Err(Failure::problem("the API server gives another value than the file holds"));
    }
    show.line("")?;
    show.line("Every step held.")
}

/// Where the credential lives outside the cluster.
enum Remote {
    Fake,
    Vault(Box<Vault>),
}

impl Remote {
    fn describe(&self) -> String {
        match self {
            Self::Fake => "the built-in store (provider fake)".to_owned(),
            Self::Vault(vault) => format!("{} at secret/{REMOTE}", vault.address()),
        }
    }

    async fn write(&self, client: &Client, password: &str) -> Result<(), Failure> {
        match self {
            // The fake provider's data stands in the store object.
            Self::Fake => {
                apply_store(
                    client,
                    json!({"fake": {"data": [
                        {"key": REMOTE, "value": json!({"user": "app", "password": password}).to_string()},
                    ]}}),
                )
                .await
            }
            Self::Vault(vault) => vault.write(REMOTE, &json!({"user": "app", "password": password})).await,
        }
    }

    async fn install_store(&self, client: &Client) -> Result<(), Failure> {
        let Self::Vault(vault) = self else { return Ok(()) };
        let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
        let mut token = Secret::default();
        token.metadata.name = Some("vault-token".to_owned());
        token.data = Some([("token".to_owned(), ByteString(vault.token().expose().to_vec()))].into());
        match secrets.create(&Default::default(), &token).await {
            Ok(_) => {}
            Err(error) => return Err(refused("the Secret with the token", &error)),
        }
        apply_store(
            client,
            json!({"vault": {
                "server": vault.address(),
                "path": "secret",
                "version": "v2",
                "auth": {"tokenSecretRef": {"name": "vault-token", "key": "token"}},
            }}),
        )
        .await
    }
}

fn external_secret() -> Value {
    let entry = |key: &str| json!({"secretKey": key, "remoteRef": {"key": REMOTE, "property": key}});
    json!({
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": "db", "namespace": NAMESPACE},
        "spec": {
            "refreshInterval": "1s",
            "secretStoreRef": {"name": "demo", "kind": "SecretStore"},
            "target": {"name": "db"},
            "data": [entry("user"), entry("password")],
        },
    })
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "app",
                "image": "registry.example/app",
                "env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
                "volumeMounts": [{"name": "credentials", "mountPath": "/var/run/credentials"}],
            }],
            "volumes": [{"name": "credentials", "secret": {"secretName": "db", "defaultMode": 0o400}}],
        },
    })
}

async fn apply_store(client: &Client, provider: Value) -> Result<(), Failure> {
    let store = json!({
        "apiVersion": "external-secrets.io/v1",
        "kind": "SecretStore",
        "metadata": {"name": "demo", "namespace": NAMESPACE},
        "spec": {"provider": provider},
    });
    apply(client, "external-secrets.io", "v1", "SecretStore", "secretstores", store).await
}

/// Creates the object, or merges into the one that is there.
async fn apply(
    client: &Client,
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    object: Value,
) -> Result<(), Failure> {
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match api.patch(&name, &manager(), &Patch::Merge(object.clone())).await {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => {
            let object: DynamicObject = serde_json::from_value(object).map_err(Failure::problem)?;
            api.create(&Default::default(), &object).await.map(drop).map_err(|error| refused(kind, &error))
        }
        Err(error) => Err(refused(kind, &error)),
    }
}

fn manager() -> PatchParams {
    PatchParams { field_manager: Some("coffer-demo".to_owned()), ..PatchParams::default() }
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn refused(what: &str, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => Failure::problem(format!("{what} was refused: {}", status.message)),
        other => Failure::problem(format!("{what} was not written: {other}")),
    }
}

async fn life(client: &Client, ask: Ask) -> Result<crate::trace::Life, Failure> {
    gather::life(client, NAMESPACE, "db", ask)
        .await
        .map_err(|error| refused("reading the Secret's life", &error))
}

/// The node tells where the file is.
async fn file_path(client: &Client, uid: &str, clock: &SystemClock) -> Result<PathBuf, Failure> {
    let mut last = String::new();
    let until = clock.monotonic() + STEP_LIMIT;
    while clock.monotonic() < until {
        let life = life(client, Ask::Nobody).await?;
        if let Some(consumer) = life.consumers.iter().find(|consumer| consumer.path.contains(uid)) {
            return Ok(Path::new(&consumer.path).join("password"));
        }
        last = life.broken.first().cloned().unwrap_or_default();
        clock.sleep(LOOK).await;
    }
    Err(too_slow("the node to take the pod", &last))
}

async fn wait_for_content(file: &Path, expected: &str, clock: &SystemClock) -> Result<(), Failure> {
    let until = clock.monotonic() + STEP_LIMIT;
    while clock.monotonic() < until {
        if std::fs::read_to_string(file).is_ok_and(|content| content == expected) {
            return Ok(());
        }
        clock.sleep(LOOK).await;
    }
    Err(too_slow(&format!("{} to hold the credential", file.display()), ""))
}

async fn wait_for_stale_environment(client: &Client, clock: &SystemClock) -> Result<(), Failure> {
    let until = clock.monotonic() + STEP_LIMIT;
    loop {
        let life = life(client, Ask::Nobody).await?;
        let state = |kind: &str| {
            life.consumers.iter().find(|consumer| consumer.kind == kind).map(|found| found.state)
        };
        if state("file") == Some(crate::trace::State::Current)
            && state("environment") == Some(crate::trace::State::Stale)
        {
            return Ok(());
        }
        if clock.monotonic() >= until {
            return Err(too_slow(
                "the node to report its consumers",
                life.broken.first().map_or("", String::as_str),
            ));
        }
        clock.sleep(LOOK).await;
    }
}

async fn read_secret(client: &Client) -> Result<SecretBytes, Failure> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let secret = secrets.get("db").await.map_err(|error| refused("reading the Secret", &error))?;
    let mut data = secret.data.unwrap_or_default();
    Ok(SecretBytes::new(data.remove("password").unwrap_or_default().0))
}

fn too_slow(what: &str, last: &str) -> Failure {
    let seconds = STEP_LIMIT.as_secs();
    let failure = Failure::timed_out(format!("waited {seconds} s for {what}"));
    if last.is_empty() { failure } else { failure.next(format!("last seen: {last}")) }
}

fn read_token(file: &Path) -> Result<SecretBytes, Failure> {
    let text = std::fs::read(file).map_err(|error| {
        Failure::unreachable(format!("cannot read the token file {}: {error}", file.display()))
            .next("name a readable file with --vault-token-file")
    })?;
    let token = SecretBytes::new(text);
    let trimmed = token.expose().trim_ascii();
    if trimmed.is_empty() {
        return Err(Failure::unreachable(format!("the token file {} is empty", file.display()))
            .next("write a token that may write secret/coffer-demo/* into it"));
    }
    Ok(SecretBytes::new(trimmed.to_vec()))
}

/// A directory that was empty.
struct Fresh {
    path: PathBuf,
    /// Whether we made it and may remove it.
    ours: bool,
}

impl Fresh {
    fn make(wanted: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = wanted else {
            let mut bytes = [0_u8; 8];
            coffer_types::random::Random::fill(&coffer_runtime::random::SystemRandom::new(), &mut bytes)
                .map_err(Failure::problem)?;
            let name = format!("coffer-demo-{:016x}", u64::from_le_bytes(bytes));
            return Ok(Self { path: std::env::temp_dir().join(name), ours: true });
        };
        match std::fs::read_dir(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Failure::problem(format!("cannot use {}: {error}", path.display()))
                    .next("name an empty directory, or one that does not exist, with --data-dir"));
            }
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(Failure::usage(format!("{} is not empty", path.display())).next(
                        "the demo wants a fresh directory; to go on with this one run: coffer up --data-dir DIR",
                    ));
                }
            }
        }
        Ok(Self { path: path.to_owned(), ours: false })
    }

    fn remove(self) {
        if self.ours {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The show's own lines are the command's output.
struct Show {
    paint: Paint,
    step: usize,
}

impl Show {
    fn step(&mut self, title: &str) -> Result<(), Failure> {
        self.step += 1;
        put(&format!("\n{} {}\n", self.paint.bold(&format!("{}.", self.step)), self.paint.bold(title)))
    }

    fn line(&self, text: &str) -> Result<(), Failure> {
        put(&format!("   {text}\n").replace("   \n", "\n"))
    }
}
