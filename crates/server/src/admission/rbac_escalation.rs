//! The check of `authz::escalation` as the last step before validation.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::{Status, Value};

use crate::authz::{Rbac, escalation};
use crate::ports::{Admission, Admit, Authorizer, Operation};

/// The step.
pub struct RbacEscalation {
    rbac: Arc<Rbac>,
    authorizer: Arc<dyn Authorizer>,
}

impl RbacEscalation {
    /// Over the server's policy; `authorizer` decides on `escalate` and `bind`.
    pub fn new(rbac: Arc<Rbac>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { rbac, authorizer }
    }
}

#[async_trait]
impl Admit for RbacEscalation {
    fn is_last(&self) -> bool {
        true
    }

    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|_| request.operation != Operation::Delete) else { return Ok(()) };
        escalation::check(&self.rbac, &*self.authorizer, request.attributes, request.old, object).await
    }
}
