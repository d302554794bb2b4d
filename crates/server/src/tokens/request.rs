//! TokenRequest: `POST …/serviceaccounts/NAME/token`.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::{Meta as _, split_api_version};
use coffer_types::random::{Random, uuid};
use coffer_types::time::{Clock, Timestamp, rfc3339};
use coffer_types::validation::field::{FieldError, Path, to_status};
use coffer_types::{Status, Value};

use super::claims::{self, Bound, EXTENDED_SECONDS, Private, Public, WARN_ONLY_SECONDS};
use super::jws::SigningKey;
use crate::authn::service_account_username;
use crate::authz::quote::quote;
use crate::ports::{Attributes, CreateOnly, GroupResource, Objects};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// Lifetime when the request names none.
const DEFAULT_SECONDS: i64 = 60 * 60;
/// Shortest lifetime.
const MINIMUM_SECONDS: i64 = 10 * 60;
/// Longest lifetime.
const MAXIMUM_SECONDS: i64 = 1 << 32;

/// Issues tokens.
pub struct TokenRequests {
    /// `iss` of every token.
    pub issuer: String,
    /// Signs every token.
    pub key: SigningKey,
    /// Audiences of a request that names none.
    pub api_audiences: Vec<String>,
    /// Whether tokens of pods live a year while clients that do not reload them are found.
    pub extend_expiration: bool,
    /// Where service accounts and bound objects are looked up.
    pub objects: Arc<dyn Objects>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Token IDs.
    pub random: Arc<dyn Random>,
}

#[async_trait]
impl CreateOnly for TokenRequests {
    async fn create(&self, attributes: &Attributes, object: Value, _dry_run: bool) -> Result<Value, Status> {
        let Attributes { namespace, name, .. } = attributes;
        check_names(&object, namespace, name)?;
        let account = self.get("serviceaccounts", namespace, name).await?;
        if !object.uid().is_empty() && object.uid() != account.uid() {
            let why = format!(
                "the UID in the token request ({}) does not match the UID of the service account ({})",
                object.uid(),
                account.uid()
            );
            return Err(Status::conflict(GROUP, KIND, name, why));
        }
        let now = self.clock.now();
        let mut answer = self.default(object, &account, now);
        validate(&answer)?;
        let seconds =
            answer.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64).unwrap_or(DEFAULT_SECONDS);
        let mut private = Private {
            namespace: namespace.clone(),
            service_account: Bound { name: name.clone(), uid: account.uid().to_owned() },
            ..Private::default()
        };
        self.bind(&answer, name, &mut private).await?;
        let audiences = strings(&answer, &["spec", "audiences"]);
        let mut lifetime = seconds;
        let ours = audiences.iter().all(|audience| self.api_audiences.contains(audience));
        if self.extend_expiration && private.pod.is_some() && seconds == WARN_ONLY_SECONDS && ours {
            private.warn_after = Some(now.as_second() + seconds);
            lifetime = EXTENDED_SECONDS;
        }
        let public = Public {
            issuer: self.issuer.clone(),
            subject: service_account_username(namespace, name),
            audiences,
            id: uuid(&*self.random).map_err(Status::internal)?,
            expires: Some(now.as_second() + lifetime),
            not_before: Some(now.as_second()),
            issued_at: Some(now.as_second()),
        };
        let token = self
            .key
            .sign(&claims::encode(&public, &private))
            .map_err(|error| Status::internal(format!("failed to generate token: {error}")))?;
        let expires = Timestamp::from_second(now.as_second() + seconds).map_err(Status::internal)?;
        answer.set(&["status", "token"], token.as_str());
        answer.set(&["status", "expirationTimestamp"], rfc3339(expires));
        Ok(answer)
    }
}

/// What a request has when it is left out.
pub(crate) fn set_defaults(request: &mut Value) {
    if request.at(&["spec", "expirationSeconds"]).is_none_or(Value::is_null) {
        request.set(&["spec", "expirationSeconds"], DEFAULT_SECONDS);
    }
}

impl TokenRequests {
    /// The request with everything filled in that the answer shows.
    fn default(&self, mut object: Value, account: &Value, now: Timestamp) -> Value {
        object.set_type("authentication.k8s.io/v1", KIND);
        object.set_meta_str("name", account.name());
        object.set_meta_str("namespace", account.namespace());
        object.set_meta_str("uid", account.uid());
        object.set_meta_str("creationTimestamp", &rfc3339(now));
        if strings(&object, &["spec", "audiences"]).is_empty() {
            let audiences: Vec<Value> =
                self.api_audiences.iter().map(|text| Value::from(text.as_str())).collect();
            object.set(&["spec", "audiences"], audiences);
        }
        set_defaults(&mut object);
        if object.at(&["spec", "boundObjectRef"]).is_none() {
            object.set(&["spec", "boundObjectRef"], Value::Null);
        }
        object.set(&["status"], Value::object());
        object
    }

    /// Looks up what the token is to be bound to.
    async fn bind(&self, request: &Value, account: &str, private: &mut Private) -> Result<(), Status> {
        let Some(reference) =
            request.at(&["spec", "boundObjectRef"]).filter(|reference| !reference.is_null())
        else {
            return Ok(());
        };
        let (group, version) = split_api_version(reference.str_at(&["apiVersion"]));
        let kind = reference.str_at(&["kind"]);
        let name = reference.str_at(&["name"]);
        let namespace = private.namespace.clone();
        let bound =
            |object: &Value| Some(Bound { name: object.name().to_owned(), uid: object.uid().to_owned() });
        let uid = match (group, kind) {
            ("", "Pod") => {
                let pod = self.get("pods", &namespace, name).await?;
                if pod.str_at(&["spec", "serviceAccountName"]) != account {
                    return Err(Status::bad_request(format!(
                        "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                        quote(account)
                    )));
                }
                private.pod = bound(&pod);
                private.node = self.node_of(&pod).await?;
                pod.uid().to_owned()
            }
            ("", "Node") => {
                let node = self.get("nodes", "", name).await?;
                private.node = bound(&node);
                node.uid().to_owned()
            }
            ("", "Secret") => {
                let secret = self.get("secrets", &namespace, name).await?;
                private.secret = bound(&secret);
                secret.uid().to_owned()
            }
            _ => {
                let what = format!("{group}/{version}, Kind={kind}");
                return Err(Status::bad_request(format!("cannot bind token to object of type {what}")));
            }
        };
        let wanted = reference.str_at(&["uid"]);
        if !wanted.is_empty() && wanted != uid {
            let why = format!(
                "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            return Err(Status::conflict(group, kind, name, why));
        }
        Ok(())
    }

    /// The node that a pod runs on, by name alone when there is no such object.
    async fn node_of(&self, pod: &Value) -> Result<Option<Bound>, Status> {
        let name = pod.str_at(&["spec", "nodeName"]);
        if name.is_empty() {
            return Ok(None);
        }
        let node = self
            .objects
            .get(&GroupResource::new("", "nodes"), "", name, false)
            .await
            .map_err(|status| Status::internal(status.message))?;
        let uid = node.map(|node| node.uid().to_owned()).unwrap_or_default();
        Ok(Some(Bound { name: name.to_owned(), uid }))
    }

    async fn get(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, Status> {
        let found = self.objects.get(&GroupResource::new("", resource), namespace, name, true).await?;
        found.ok_or_else(|| Status::not_found("", resource, name))
    }
}

fn check_names(request: &Value, namespace: &str, name: &str) -> Result<(), Status> {
    for (field, given, expected) in
        [("name", request.name(), name), ("namespace", request.namespace(), namespace)]
    {
        if !given.is_empty() && given != expected {
            let detail = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(&Path::of(&["metadata", field]), given, detail);
            return Err(to_status(GROUP, KIND, name, &[error]));
        }
    }
    Ok(())
}

fn validate(request: &Value) -> Result<(), Status> {
    let mut errors = Vec::new();
    let seconds = request.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64).unwrap_or_default();
    let path = Path::of(&["spec", "expirationSeconds"]);
    if seconds < MINIMUM_SECONDS {
        errors.push(FieldError::invalid(&path, seconds, "may not specify a duration less than 10 minutes"));
    }
    if MAXIMUM_SECONDS < seconds {
        errors.push(FieldError::invalid(
            &path,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        ));
    }
    let attestations = request.at(&["spec", "attestations"]).filter(|attestations| !attestations.is_null());
    if let Some(attestations) =
        attestations.filter(|value| value.as_object().is_none_or(|map| !map.is_empty()))
    {
        let detail = "attestations may only be specified with a webhook bound object reference";
        errors = vec![FieldError::invalid(&Path::of(&["spec", "attestations"]), attestations, detail)];
    }
    if errors.is_empty() { Ok(()) } else { Err(to_status(GROUP, KIND, "", &errors)) }
}

fn strings(object: &Value, path: &[&str]) -> Vec<String> {
    let items = object.at(path).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
