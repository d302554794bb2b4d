//! GET of one object: its stored bytes are transcoded, no object is built.

use coffer_types::Status;
use http::{Response, StatusCode};

use super::answer::{accept_object, answer_object};
use super::call::{Call, Output};
use super::options;
use crate::body::Body;
use crate::query::Query;
use crate::resources::Resource;

pub(super) async fn handle(call: &Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let accepted = accept_object(call, &resource.info)?;
    refuse_export(&call.query)?;
    if call.info.name.contains('\0') {
        // No key of the store holds it, so there is no such object.
        return Err(Status::not_found(&resource.info.group, &resource.info.plural, &call.info.name));
    }
    let at = options::get_at(call.query.text("resourceVersion"))?;
    let stored = resource.registry()?.get(&call.storage_namespace(resource), &call.info.name, at).await?;
    answer_object(call, resource, &accepted, StatusCode::OK, &Output::Stored(stored))
}

/// An option of old.
fn refuse_export(query: &Query) -> Result<(), Status> {
    if !query.text("export").is_empty() && query.flag("export") == Some(true) {
        return Err(Status::bad_request(
            "the export parameter, deprecated since v1.14, is no longer supported",
        ));
    }
    Ok(())
}

impl Call {
    /// The namespace as the store knows it: none for cluster-scoped objects, namespaces included.
    pub(crate) fn storage_namespace(&self, resource: &Resource) -> String {
        if resource.info.namespaced { self.info.namespace.clone() } else { String::new() }
    }
}
