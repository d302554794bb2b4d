//! The node's own object and its lease.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Error};
use serde_json::json;

use super::{NodeConfig, NodeError};

const LEASE_NAMESPACE: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;
/// How the node's writes are named in managed fields.
pub(super) const MANAGER: &str = "coffer-node";

/// Creates the Node unless it is there, and says that it is ready.
pub(super) async fn register(config: &NodeConfig) -> Result<(), NodeError> {
    let refused = |error: Error| NodeError::Register {
        node: config.node_name.clone(),
        message: match error {
            Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        },
    };
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
    Ok(())
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
