//! The node's own object and its lease.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Error};
use serde_json::json;

use super::{NodeConfig, NodeError};

const LEASE_NAMESPACE: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;
/// How the node's writes are named in managed fields.
pub(super) const MANAGER: &str = "coffer-node";

/// Creates the Node unless it is there, and says that it is ready.
pub(super) async fn register(config: &NodeConfig) -> Result<(), NodeError> {
    let refused =
        |error: Error| NodeError::Register { node: config.node_name.clone(), error: Box::new(error) };
    let nodes: Api<Node> = Api::all(config.client.clone());
    let labels = BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), config.node_name.clone()),
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
    ]);
    let node = Node {
        metadata: ObjectMeta {
            name: Some(config.node_name.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Node::default()
    };
    match nodes
        .create(&PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }, &node)
        .await
    {
        Ok(_) => {}
        Err(Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(refused(error)),
    }
    ready(config, &nodes).await.map_err(refused)?;
    heartbeat(config).await;
    // A node without this right would wait for pods for ever.
    let pods: Api<Pod> = Api::all(config.client.clone());
    pods.list_metadata(&ListParams::default().fields(&mine(config)).limit(1)).await.map_err(refused)?;
    Ok(())
}

/// Selects the pods of this node.
pub(super) fn mine(config: &NodeConfig) -> String {
    format!("spec.nodeName={}", config.node_name)
}

async fn ready(config: &NodeConfig, nodes: &Api<Node>) -> Result<(), Error> {
    let now = coffer_types::time::rfc3339(config.clock.now());
    let status = json!({"status": {"conditions": [{
        "type": "Ready",
        "status": "True",
        "reason": "SecretsOnly",
        "message": "materialises Secrets; runs no containers",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }]}});
    let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    nodes.patch_status(&config.node_name, &parameters, &Patch::Strategic(status)).await.map(drop)
}

/// Says again that the node is ready when the server has it otherwise: it was not heard for a while, or
/// somebody removed it. A failure is only logged: the next chance comes soon.
pub(super) async fn still_ready(config: &NodeConfig) {
    let nodes: Api<Node> = Api::all(config.client.clone());
    let ready = |node: &Node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|held| held.type_ == "Ready" && held.status == "True")
    };
    let said = match nodes.get_opt(&config.node_name).await {
        Ok(Some(node)) if ready(&node) => return,
        Ok(Some(_)) => ready_again(config, &nodes).await,
        Ok(None) => register(config).await.map_err(drop),
        Err(_) => Err(()),
    };
    if said.is_err() {
        tracing::warn!(node = config.node_name, "the node could not say that it is ready");
    }
}

async fn ready_again(config: &NodeConfig, nodes: &Api<Node>) -> Result<(), ()> {
    tracing::info!(node = config.node_name, "the server had lost sight of this node");
    ready(config, nodes).await.map_err(drop)
}

/// Renews the node's lease. A failure is only logged: the next one comes soon.
pub(super) async fn heartbeat(config: &NodeConfig) {
    let leases: Api<Lease> = Api::namespaced(config.client.clone(), LEASE_NAMESPACE);
    let now = MicroTime(config.clock.now());
    let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let renewed = leases
        .patch(&config.node_name, &parameters, &Patch::Merge(json!({"spec": {"renewTime": now}})))
        .await;
    let done = match renewed {
        Err(Error::Api(status)) if status.code == 404 => {
            let lease = Lease {
                metadata: ObjectMeta { name: Some(config.node_name.clone()), ..ObjectMeta::default() },
                spec: Some(LeaseSpec {
                    holder_identity: Some(config.node_name.clone()),
                    lease_duration_seconds: Some(LEASE_SECONDS),
                    renew_time: Some(now),
                    ..LeaseSpec::default()
                }),
            };
            leases
                .create(
                    &PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() },
                    &lease,
                )
                .await
        }
        other => other,
    };
    if done.is_err() {
        tracing::warn!(node = config.node_name, "the node's lease was not renewed");
    }
}
