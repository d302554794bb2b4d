//! NamespaceLifecycle: nothing new in a namespace that is missing or going away, and three that stay.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coffer_types::time::Clock;
use coffer_types::{Status, Value};
use parking_lot::Mutex;

use super::forbid;
use crate::ports::{Admission, Admit, GroupResource, Objects, Operation};

/// The namespaces that may not be deleted.
pub const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
/// How long a namespace that is missing from the cache is waited for.
const MISSING_WAIT: Duration = Duration::from_millis(50);
/// How long after a deletion the cache is not believed that a namespace lives.
const DISTRUST: Duration = Duration::from_secs(30);
/// The phase of a namespace that is going away.
const TERMINATING: &str = "Terminating";
/// How many recent deletions are remembered at most.
const MAX_REMEMBERED: usize = 100;

/// The plugin.
pub struct NamespaceLifecycle {
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    /// Recently deleted namespaces and until when they are distrusted (monotonic).
    deleted: Mutex<HashMap<String, Duration>>,
}

impl NamespaceLifecycle {
    /// Over the stored namespaces.
    pub fn new(objects: Arc<dyn Objects>, clock: Arc<dyn Clock>) -> Self {
        Self { objects, clock, deleted: Mutex::new(HashMap::new()) }
    }

    fn remember_deletion(&self, name: &str) {
        let now = self.clock.monotonic();
        let mut deleted = self.deleted.lock();
        deleted.retain(|_, until| now < *until);
        if MAX_REMEMBERED <= deleted.len() {
            deleted.clear();
        }
        deleted.insert(name.to_owned(), now + DISTRUST);
    }

    fn is_distrusted(&self, name: &str) -> bool {
        let now = self.clock.monotonic();
        self.deleted.lock().get(name).is_some_and(|until| now < *until)
    }

    /// The phase of a namespace.
    async fn find(&self, name: &str, live: bool) -> Result<Option<String>, Status> {
        let resource = GroupResource::new("", "namespaces");
        let phase = self.objects.field(&resource, "", name, "status.phase", live).await;
        phase.map_err(|status| Status::internal(status.message))
    }

    async fn check(&self, request: &Admission<'_>, object: Option<&Value>) -> Result<(), Status> {
        let attributes = request.attributes;
        let is_namespace = attributes.group.is_empty() && request.kind == "Namespace";
        if is_namespace {
            if request.operation == Operation::Delete {
                if IMMORTAL.contains(&attributes.name.as_str()) {
                    return Err(forbid(request, None, "this namespace may not be deleted"));
                }
                self.remember_deletion(&attributes.name);
            }
            return Ok(());
        }
        let is_review =
            attributes.group == "authorization.k8s.io" && attributes.resource == "localsubjectaccessreviews";
        let name = &attributes.namespace;
        // Whether the namespace is there would tell a secret to those who only ask about access.
        if name.is_empty() || request.operation != Operation::Create || is_review {
            return Ok(());
        }
        let mut phase = self.find(name, false).await?;
        if phase.is_none() {
            self.clock.sleep(MISSING_WAIT).await;
            phase = self.find(name, false).await?;
        }
        let stale = phase.as_ref().is_some_and(|phase| phase != TERMINATING && self.is_distrusted(name));
        if phase.is_none() || stale {
            phase = self.find(name, true).await?;
        }
        let Some(phase) = phase else { return Err(Status::not_found("", "namespaces", name)) };
        if phase != TERMINATING {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        let cause = format!("namespace {name} is being terminated");
        Err(forbid(request, object, why).with_cause("NamespaceTerminating", cause, "metadata.namespace"))
    }
}

#[async_trait]
impl Admit for NamespaceLifecycle {
    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        self.check(request, object.as_deref()).await
    }
}
