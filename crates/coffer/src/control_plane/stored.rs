//! `GET /coffer/v1/inspect?key=KEY`: one value that this server stores, explained with the keys that it
//! uses, for `coffer inspect` of a store that nobody else can open.
//!
//! The answer holds no byte of the value. It is no resource: the right to get the path is granted as
//! for other paths, and `system:masters` has it.

use std::sync::Arc;

use coffer_keys::inspect::{Stored, explain};
use coffer_server::api::Route;
use coffer_server::encryption::Encryption;
use coffer_store::kv::{Kv, RangeRequest};
use coffer_types::Status;
use futures::future::BoxFuture;
use serde::Serialize;
use tokio::runtime::Handle;

/// Where one value is explained.
pub(crate) const INSPECT: &str = "/coffer/v1/inspect";

/// The route.
pub(crate) fn route(kv: &Arc<dyn Kv>, prefix: &str, encryption: &Arc<Encryption>) -> Route {
    let reader =
        Arc::new(Reader { kv: kv.clone(), prefix: prefix.to_owned(), encryption: encryption.clone() });
    let inspect = move |query: Vec<(String, String)>| -> BoxFuture<'static, _> {
        Box::pin(off_the_workers(reader.clone().inspect(query)))
    };
    Route::new(INSPECT, "application/json", Box::new(inspect))
}

struct Reader {
    kv: Arc<dyn Kv>,
    prefix: String,
    encryption: Arc<Encryption>,
}

impl Reader {
    /// `null` when there is no such key.
    async fn inspect(self: Arc<Self>, query: Vec<(String, String)>) -> Result<Vec<u8>, Status> {
        let key = query.into_iter().find(|(name, _)| name == "key").map(|(_, value)| value);
        let key = key.filter(|key| !key.is_empty());
        let key = key
            .ok_or_else(|| Status::bad_request("key: name one, such as /registry/secrets/NAMESPACE/NAME"))?;
        let request = RangeRequest { start: key.clone().into(), ..RangeRequest::default() };
        let found = self.kv.range(request).await.map_err(Status::internal)?;
        let Some(item) = found.items.first() else { return document(&None::<()>) };
        let transformers = self.encryption.current().transformers();
        let stored = Stored {
            etcd_key: &key,
            value: &item.value,
            prefix: &self.prefix,
            transformers: Some(&transformers),
        };
        // The plaintext is wiped here.
        let (explained, _) = explain(&stored).map_err(Status::internal)?;
        document(&explained)
    }
}

/// A plugin may be waited for.
async fn off_the_workers(
    answer: impl Future<Output = Result<Vec<u8>, Status>> + Send + 'static,
) -> Result<Vec<u8>, Status> {
    let runtime = Handle::current();
    let answer = tokio::task::spawn_blocking(move || runtime.block_on(answer)).await;
    answer.unwrap_or_else(|_| Err(Status::internal("reading the store stopped")))
}

fn document(answer: &impl Serialize) -> Result<Vec<u8>, Status> {
    let mut text = serde_json::to_vec(answer).map_err(Status::internal)?;
    text.push(b'\n');
    Ok(text)
}
