//! Conversion of custom resources between versions by a webhook.
//!
//! [`review`] is what is sent and what is taken of an answer, [`Converter`] calls, and
//! [`registry::Converted`] is the store of a resource as one version sees it.

pub(crate) mod registry;
mod review;

use std::sync::Arc;
use std::time::Duration;

use coffer_types::codec::json;
use coffer_types::meta::Meta as _;
use coffer_types::random::{self, Random};
use coffer_types::time::Clock;
use coffer_types::{Status, Value};

use crate::webhook::{Resolve, ReviewVersion, Target, WebhookClient};
use crate::wire::schemas::Schemas;

/// How long one call may take: upstream's.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// What upstream says of a conversion webhook that does not answer in time.
const OVERDUE: &str = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
/// Objects that are sent in one call.
const BATCH_OBJECTS: usize = 500;
/// Bytes of objects that are sent in one call, unless one object alone is larger.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Converts the objects of one definition.
pub(crate) struct Converter {
    schemas: Arc<Schemas>,
    review: Option<ReviewVersion>,
    /// Why there is none, when the configuration cannot be used.
    client: Result<WebhookClient, String>,
    random: Arc<dyn Random>,
}

impl Converter {
    /// The converter of a definition, if it has a webhook.
    pub(crate) fn of(
        definition: &Value,
        schemas: Arc<Schemas>,
        services: Arc<dyn Resolve>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Option<Self> {
        let conversion = definition.at(&["spec", "conversion"])?;
        if conversion.str_at(&["strategy"]) != "Webhook" {
            return None;
        }
        let nothing = Value::object();
        let config = conversion.at(&["webhook", "clientConfig"]).unwrap_or(&nothing);
        let client = Target::of(config).and_then(|target| {
            let mut client = WebhookClient::new(target, services, clock)?;
            client.overdue = OVERDUE;
            Ok(client)
        });
        let versions = conversion.at(&["webhook", "conversionReviewVersions"]).and_then(Value::as_array);
        let versions = versions.unwrap_or_default().iter().filter_map(Value::as_str);
        Some(Self { schemas, review: ReviewVersion::choose(versions), client, random })
    }

    /// What is stored, in the version that it is stored in.
    fn settle(&self, stored: &[u8]) -> Result<Value, Status> {
        let object = json::decode_untyped(stored).map_err(|error| Status::plain(error.to_string()))?.object;
        self.schemas.settle(object).map_err(Status::plain)
    }

    /// The objects in another version, in their order. Those that are of it already stay as they are.
    pub(crate) async fn convert(
        &self,
        mut objects: Vec<Value>,
        api_version: &str,
    ) -> Result<Vec<Value>, Status> {
        if !self.schemas.trees.contains_key(api_version) {
            let why = format!("request to convert CR to an invalid group/version: {api_version}");
            return Err(Status::plain(why));
        }
        let mut batch = Vec::new();
        let mut size = 0;
        for index in 0..objects.len() {
            let object = &mut objects[index];
            if object.api_version() == api_version {
                continue;
            }
            // An object that is nothing but its type is nothing in any version.
            if object.as_object().is_some_and(|members| members.len() == 2) && object.get("kind").is_some() {
                object.set(&["apiVersion"], api_version);
                continue;
            }
            let mut encoded = Vec::with_capacity(1024);
            json::encode_untyped(object, &mut encoded);
            if !batch.is_empty() && (batch.len() == BATCH_OBJECTS || BATCH_BYTES < size + encoded.len()) {
                self.call(&mut objects, std::mem::take(&mut batch), api_version).await?;
                size = 0;
            }
            size += encoded.len();
            batch.push((index, encoded));
        }
        if !batch.is_empty() {
            self.call(&mut objects, batch, api_version).await?;
        }
        Ok(objects)
    }

    async fn call(
        &self,
        objects: &mut [Value],
        batch: Vec<(usize, Vec<u8>)>,
        api_version: &str,
    ) -> Result<(), Status> {
        let review = self.review.ok_or_else(|| Status::plain("no supported conversion review versions"))?;
        let uid = random::uuid(&*self.random).map_err(Status::internal)?;
        let (indices, encoded): (Vec<usize>, Vec<Vec<u8>>) = batch.into_iter().unzip();
        let of = indices.first().map(|index| review::type_of(&objects[*index])).unwrap_or_default();
        let failed = |why: String| {
            tracing::debug!(of, to = api_version, objects = indices.len(), "a conversion webhook failed");
            Status::plain(format!("conversion webhook for {of} failed: {why}"))
        };
        let client = self.client.as_ref().map_err(|why| failed(why.clone()))?;
        let body = review.request(&uid, api_version, &encoded).into();
        let answer = client.post(body, CALL_LIMIT).await.map_err(|error| failed(error.text))?;
        drop(encoded);
        let converted = review.answer(&uid, &answer).map_err(failed)?;
        if converted.len() != indices.len() {
            return Err(Status::plain(format!(
                "conversion webhook for {of} returned {} objects, expected {}",
                converted.len(),
                indices.len()
            )));
        }
        for (index, converted) in indices.iter().zip(converted) {
            let original = &mut objects[*index];
            let mut checked = review::check(original, converted, api_version).map_err(Status::plain)?;
            self.schemas.trim(&mut checked, api_version);
            *original = checked;
        }
        Ok(())
    }
}
