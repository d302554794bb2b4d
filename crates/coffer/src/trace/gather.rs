//! Reads a Secret's life over the Kubernetes API. The Secret's values are not kept.

use std::collections::BTreeMap;

use coffer_node::report::{ANNOTATION, ConsumerKind, ConsumerState, Report};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::api::ListParams;
use kube::{Api, Client, Error};
use serde::Deserialize;

use super::{AtRest, Consumer, Life, SecretFacts, State, judge, source};

/// Whom to ask beside the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The external store, for the version that it holds now.
    Source,
    /// Nobody.
    Nobody,
}

/// Everything that can be learned.
pub(crate) async fn life(client: &Client, namespace: &str, name: &str, ask: Ask) -> Result<Life, Error> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut unreadable = false;
    let secret = match secrets.get_opt(name).await {
        Ok(secret) => secret,
        // The stored copy cannot be decrypted or decoded: the rest of its life can still be told.
        Err(Error::Api(status)) if status.code == 500 => {
            unreadable = true;
            None
        }
        Err(error) => return Err(error),
    };
    let owner = secret.as_ref().and_then(source::owner);
    let mut source = source::find(client, namespace, name, owner.as_deref()).await?;
    if let (Some(source), Ask::Source) = (&mut source, ask) {
        source::ask(client, namespace, source).await;
    }
    let at_rest = match &secret {
        _ if unreadable => at_rest(client, namespace, name).await,
        Some(_) => at_rest(client, namespace, name).await,
        None => AtRest::Unknown { why: "there is no stored copy".to_owned() },
    };
    let facts = secret.map(facts);
    let version = facts.as_ref().map(|facts| facts.resource_version.clone()).unwrap_or_default();
    let consumers = consumers(client, namespace, name, &version).await?;
    let mut life = Life {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        secret: facts,
        source,
        at_rest,
        consumers,
        broken: Vec::new(),
    };
    life.broken = judge::broken(&life);
    Ok(life)
}

fn facts(secret: Secret) -> SecretFacts {
    SecretFacts {
        secret_type: secret.type_.unwrap_or_default(),
        resource_version: secret.metadata.resource_version.unwrap_or_default(),
        keys: secret.data.unwrap_or_default().into_keys().collect(),
        immutable: secret.immutable.unwrap_or_default(),
        deleting: secret.metadata.deletion_timestamp.is_some(),
    }
}

/// What the server says about the stored copy.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredCopy {
    #[serde(default)]
    provider: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    stale: bool,
    #[serde(default)]
    readable: bool,
}

async fn at_rest(client: &Client, namespace: &str, name: &str) -> AtRest {
    let path = format!("/coffer/v1/at-rest?resource=secrets&namespace={namespace}&name={name}");
    let Ok(request) = http::Request::get(path).body(Vec::new()) else {
        return AtRest::Unknown { why: "the name cannot be asked for".to_owned() };
    };
    match client.request::<StoredCopy>(request).await {
        Ok(copy) if copy.provider == "identity" => AtRest::Plaintext,
        Ok(copy) => AtRest::Encrypted {
            provider: copy.provider,
            key: copy.key,
            stale: copy.stale,
            readable: copy.readable,
        },
        Err(Error::Api(status)) if status.code == 403 => {
            AtRest::Unknown { why: "you may not get /coffer/v1/at-rest".to_owned() }
        }
        Err(Error::Api(status)) if status.code == 404 => {
            AtRest::Unknown { why: "the API server is not coffer's and does not say".to_owned() }
        }
        Err(Error::Api(status)) => {
            AtRest::Unknown { why: format!("the API server could not tell: {}", status.message) }
        }
        Err(_) => AtRest::Unknown { why: "the API server gave no answer that can be read".to_owned() },
    }
}

async fn consumers(
    client: &Client,
    namespace: &str,
    name: &str,
    version: &str,
) -> Result<Vec<Consumer>, Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let list = pods.list(&ListParams::default()).await?;
    let mut consumers = Vec::new();
    let mut silent = BTreeMap::new();
    for pod in list.items {
        if !coffer_node::references::secret_names(&pod).contains(name) {
            continue;
        }
        let pod_name = pod.metadata.name.clone().unwrap_or_default();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        if !silent.contains_key(&node) {
            silent.insert(node.clone(), silence(client, &node).await);
        }
        let silence = silent.get(&node).cloned().flatten();
        let report: Option<Report> = pod
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| serde_json::from_str(annotations.get(ANNOTATION)?).ok());
        let Some(report) = report else {
            consumers.push(unreported(pod_name, node, silence));
            continue;
        };
        for found in report.consumers.into_iter().filter(|consumer| consumer.secret == name) {
            let kind = match found.kind {
                ConsumerKind::Volume => "file",
                ConsumerKind::SubPath => "subPath",
                ConsumerKind::Environment => "environment",
                ConsumerKind::PullCredential => "pull credential",
            };
            let behind = found.resource_version != version;
            let place = match found.kind {
                ConsumerKind::SubPath => format!("{} {}/{}", found.place, found.volume, found.sub_path),
                _ => found.place,
            };
            consumers.push(Consumer {
                pod: pod_name.clone(),
                node: node.clone(),
                kind: kind.to_owned(),
                place,
                path: found.path,
                state: match found.state {
                    ConsumerState::Missing => State::Missing,
                    ConsumerState::Stale => State::Stale,
                    // The node has not seen the newest version yet.
                    ConsumerState::Current if behind => State::Stale,
                    ConsumerState::Current if silence.is_some() => State::Silent,
                    ConsumerState::Current => State::Current,
                },
                resource_version: found.resource_version,
                message: silence.clone().unwrap_or(found.message),
            });
        }
    }
    Ok(consumers)
}

/// Why nothing new is heard of a node; `None` when it is ready, or may not be looked at.
async fn silence(client: &Client, name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let node = match nodes.get_opt(name).await {
        Ok(Some(node)) => node,
        Ok(None) => return Some(format!("node {name} does not exist")),
        Err(_) => return None,
    };
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready")?;
    if ready.status == "True" {
        return None;
    }
    let why: Vec<String> = [ready.reason, ready.message].into_iter().flatten().collect();
    Some(format!("node {name} no longer reports, its Ready is {} ({})", ready.status, why.join(": ")))
}

fn unreported(pod: String, node: String, silence: Option<String>) -> Consumer {
    let state = if silence.is_some() { State::Silent } else { State::Unknown };
    let message = silence.unwrap_or_else(|| match node.as_str() {
        "" => "not bound to a node".to_owned(),
        _ => "its node does not report".to_owned(),
    });
    Consumer {
        pod,
        node,
        kind: "pod".to_owned(),
        place: String::new(),
        path: String::new(),
        resource_version: String::new(),
        state,
        message,
    }
}
