//! POST pods/NAME/binding: the pod gets its node.

use async_trait::async_trait;
use coffer_store::registry::{Current, Preconditions, Updater};
use coffer_types::meta::Meta as _;
use coffer_types::{Map, Status, Value};
use http::{Response, StatusCode};

use super::call::Call;
use super::options::{WriteOptions, WriteVerb};
use super::write::Scope;
use crate::body::Body;
use crate::negotiate::{self, Offers};
use crate::ports::Operation;
use crate::resources::Resource;
use crate::respond;
use crate::wire::{self, Wire};

pub(super) async fn handle(call: &mut Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let accepted = negotiate::accept(&call.headers, Offers::Plain)?;
    let media = negotiate::content_type(&call.headers, Offers::BuiltIn)?;
    let body = call.read_body().await?;
    let options = WriteOptions::parse(&call.query, WriteVerb::Create)?;
    let wire =
        Wire::built_in("", "v1", "Binding", None).ok_or_else(|| Status::internal("no schema for Binding"))?;
    let decoded = wire.decode(&body, media)?;
    let mut scope = Scope::of_call(call, resource, options);
    let outcome = async {
        let mut binding = scope.take_strict(decoded)?;
        scope.settle_namespace(&mut binding)?;
        run(&mut scope, binding).await
    }
    .await;
    let warnings = std::mem::take(&mut scope.warnings);
    drop(scope);
    call.warnings.extend(warnings);
    outcome?;
    let mut status = Value::from([("kind", "Status"), ("apiVersion", "v1"), ("status", "Success")]);
    status.set(&["metadata"], Value::object());
    status.set(&["code"], 201);
    let bytes = wire::encode_status(&status, accepted.media);
    Ok(respond::encoded(StatusCode::CREATED, &accepted, bytes, &call.headers, &call.query))
}

/// Binds the scope's pod.
pub(crate) async fn run(scope: &mut Scope<'_>, mut binding: Value) -> Result<(), Status> {
    if binding.name() != scope.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let node = binding.str_at(&["target", "name"]).to_owned();
    let kind = binding.str_at(&["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        let path = coffer_types::validation::field::Path::of(&["target", "kind"]);
        let error =
            coffer_types::validation::field::FieldError::not_supported(&path, kind, &["Node", "<empty>"]);
        return Err(coffer_types::validation::field::to_status("", "Binding", binding.name(), &[error]));
    }
    if node.is_empty() {
        let path = coffer_types::validation::field::Path::of(&["target", "name"]);
        let error = coffer_types::validation::field::FieldError::required(&path, "");
        return Err(coffer_types::validation::field::to_status("", "Binding", binding.name(), &[error]));
    }
    scope.mutate(Operation::Create, None, Some(&mut binding)).await?;
    scope.validate(Operation::Create, None, Some(&binding)).await?;
    if scope.options.dry_run {
        return Ok(());
    }
    let now = coffer_types::time::rfc3339(scope.server.clock.now());
    let annotations = binding.annotations().clone();
    let uid = Some(binding.uid().to_owned()).filter(|uid| !uid.is_empty());
    let preconditions = Preconditions { uid, resource_version: None };
    let mut assign = Assign { name: scope.name.clone(), node, annotations, now };
    let registry = scope.resource.registry()?;
    registry.update(&scope.namespace, &scope.name, &preconditions, false, &mut assign).await.map(drop)
}

struct Assign {
    name: String,
    node: String,
    /// Those of the binding, which the pod gets.
    annotations: Map,
    now: String,
}

#[async_trait]
impl Updater for Assign {
    async fn update(&mut self, current: Current) -> Result<Value, Status> {
        let conflict = |why: String| Status::conflict("", "pods/binding", &self.name, why);
        let Some(mut pod) = current.object else { return Err(Status::not_found("", "pods", &self.name)) };
        if pod.deletion_timestamp().is_some() {
            return Err(conflict(format!(
                "pod {} is being deleted, cannot be assigned to a host",
                self.name
            )));
        }
        let assigned = pod.str_at(&["spec", "nodeName"]);
        if !assigned.is_empty() {
            return Err(conflict(format!(
                "pod {} is already assigned to node {}",
                self.name,
                crate::quote(assigned)
            )));
        }
        pod.set(&["spec", "nodeName"], self.node.as_str());
        for (key, value) in &self.annotations {
            pod.set(&["metadata", "annotations", key], value.clone());
        }
        let condition = Value::from([
            ("type", "PodScheduled"),
            ("status", "True"),
            ("lastTransitionTime", self.now.as_str()),
        ]);
        let conditions = pod.object_at_mut(&["status"]).entry("conditions".to_owned()).or_default();
        if let Value::Array(conditions) = conditions {
            conditions.retain(|one| one.str_at(&["type"]) != "PodScheduled");
            conditions.push(condition);
        } else {
            *conditions = Value::Array(vec![condition]);
        }
        Ok(pod)
    }
}
