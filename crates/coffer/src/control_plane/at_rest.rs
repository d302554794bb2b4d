//! `GET /coffer/v1/at-rest?resource=secrets&namespace=NS&name=NAME`: under which provider and
//! key the stored copy of an object is, without any byte of it.
//!
//! It is no resource: the right to get the path is granted as for other paths, and
//! `system:masters` has it.

use std::sync::Arc;

use coffer_config::encryption::Transformers;
use coffer_server::api::Route;
use coffer_store::key::{KeySpace, Origin};
use coffer_store::kv::{Kv, KvError, RangeRequest};
use coffer_types::Status;
use futures::future::BoxFuture;

/// Where it is served.
pub(crate) const PATH: &str = "/coffer/v1/at-rest";

/// The route.
pub(crate) fn route(kv: Arc<dyn Kv>, prefix: &str, transformers: Arc<Transformers>) -> Route {
    let prefix = prefix.to_owned();
    let answer = move |query: Vec<(String, String)>| {
        let (kv, prefix, transformers) = (kv.clone(), prefix.clone(), transformers.clone());
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
    let keys = KeySpace::new(prefix, "", "secrets", Origin::BuiltIn, true)
        .map_err(|error| Status::bad_request(error.to_string()))?;
    let key = keys.object(&namespace, &name).map_err(|error| Status::bad_request(error.to_string()))?;
    let request = RangeRequest { start: key.bytes(), limit: 1, ..RangeRequest::default() };
    let found = kv.range(request).await.map_err(|error| match error {
        KvError::Unavailable(_) | KvError::Timeout => Status::internal("the store does not answer"),
        other => Status::internal(other),
    })?;
    let Some(stored) = found.items.first() else {
        return Err(Status::not_found("", "secrets", &name));
    };
    let (provider, key_name) = match transformers.describe(&stored.value) {
        Some(under) => (under.provider.to_string(), under.key_name),
        None => ("unknown".to_owned(), String::new()),
    };
    // Decrypting is the only way to know whether a write would use another key; the bytes are wiped.
    let transformer = transformers.transformer_for("", "secrets");
    let (readable, stale) = match transformer.from_storage(&stored.value, key.context()) {
        Ok(plain) => (true, plain.stale),
        Err(_) => (false, true),
    };
    let text = serde_json::json!({
        "provider": provider,
        "key": key_name,
        "stale": stale,
        "readable": readable,
        "revision": stored.mod_revision,
    });
    Ok((text.to_string() + "\n").into_bytes())
}
