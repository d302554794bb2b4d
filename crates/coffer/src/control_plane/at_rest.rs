//! `GET /coffer/v1/at-rest?resource=secrets&namespace=NS&name=NAME`: under which provider and
//! key the stored copy of an object is, without any byte of it.
//!
//! It is no resource: the right to get the path is granted as for other paths, and
//! `system:masters` has it.

use std::sync::Arc;

use coffer_config::encryption::Transformers;
use coffer_keys::at_rest::{AtRestError, Place, stored_copy};
use coffer_server::api::Route;
use coffer_server::encryption::Encryption;
use coffer_store::kv::Kv;
use coffer_types::Status;
use futures::future::BoxFuture;

/// Where it is served.
pub(crate) const PATH: &str = "/coffer/v1/at-rest";

/// The route.
pub(crate) fn route(kv: Arc<dyn Kv>, prefix: &str, encryption: Arc<Encryption>) -> Route {
    let prefix = prefix.to_owned();
    let answer = move |query: Vec<(String, String)>| {
        let (kv, prefix, transformers) = (kv.clone(), prefix.clone(), encryption.current().transformers());
        let answer: BoxFuture<'static, _> =
            Box::pin(async move { answer(&*kv, &prefix, &transformers, &query).await });
        answer
    };
    Route::new(PATH, "application/json", Box::new(answer))
}

async fn answer(
    kv: &dyn Kv,
    prefix: &str,
    transformers: &Transformers,
    query: &[(String, String)],
) -> Result<Vec<u8>, Status> {
    let parameter = |wanted: &str| {
        query.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let (group, resource) = (parameter("group"), parameter("resource"));
    let (namespace, name) = (parameter("namespace"), parameter("name"));
    if resource != "secrets" || !group.is_empty() {
        return Err(Status::bad_request("resource: only \"secrets\" can be asked for"));
    }
    let place = Place { prefix, resource: &resource, namespace: &namespace, name: &name };
    let copy = stored_copy(kv, transformers, place).await.map_err(|error| match error {
        AtRestError::Key(error) => Status::bad_request(error.to_string()),
        AtRestError::Store(error) => Status::internal(error),
    })?;
    let copy = copy.ok_or_else(|| Status::not_found("", "secrets", &name))?;
    let mut text = serde_json::to_vec(&copy).map_err(Status::internal)?;
    text.push(b'\n');
    Ok(text)
}
