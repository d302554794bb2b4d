//! TokenReview and SelfSubjectReview.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::Meta as _;
use coffer_types::time::{Clock, rfc3339};
use coffer_types::{Status, Value};

use crate::authn::Authn;
use crate::ports::{Attributes, CreateOnly, UserInfo};

/// Tells whose a token is.
pub struct TokenReviews {
    authn: Arc<Authn>,
}

impl TokenReviews {
    /// Over the server's own authenticators.
    pub fn new(authn: Arc<Authn>) -> Self {
        Self { authn }
    }
}

#[async_trait]
impl CreateOnly for TokenReviews {
    async fn create(
        &self,
        attributes: &Attributes,
        mut object: Value,
        _dry_run: bool,
    ) -> Result<Value, Status> {
        if !attributes.namespace.is_empty() {
            return Err(Status::bad_request(format!(
                "namespace is not allowed on this type: {}",
                attributes.namespace
            )));
        }
        let token = object.str_at(&["spec", "token"]).to_owned();
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let named = object.at(&["spec", "audiences"]).and_then(Value::as_array).unwrap_or_default();
        let named: Vec<String> = named.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let audiences = if named.is_empty() { self.authn.api_audiences().to_vec() } else { named };

        object.set_type("authentication.k8s.io/v1", "TokenReview");
        let mut status = Value::from([("user", Value::object())]);
        match self.authn.review(&token, &audiences).await {
            Ok(found) => {
                if !audiences.is_empty()
                    && !found.audiences.iter().any(|audience| audiences.contains(audience))
                {
                    return Err(Status::internal("error validating audiences"));
                }
                status.set(&["authenticated"], true);
                status.set(&["user"], user_value(&found.user));
                set_strings(&mut status, "audiences", &found.audiences);
            }
            Err(error) => status.set(&["error"], error),
        }
        object.set(&["status"], status);
        Ok(object)
    }
}

/// Tells who asks.
pub struct SelfSubjectReviews {
    clock: Arc<dyn Clock>,
}

impl SelfSubjectReviews {
    /// The clock stamps the answer.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

#[async_trait]
impl CreateOnly for SelfSubjectReviews {
    async fn create(&self, attributes: &Attributes, _object: Value, _dry_run: bool) -> Result<Value, Status> {
        let mut answer = Value::object();
        answer.set_type("authentication.k8s.io/v1", "SelfSubjectReview");
        answer.set(&["metadata", "creationTimestamp"], rfc3339(self.clock.now()));
        answer.set(&["status", "userInfo"], user_value(&attributes.user));
        Ok(answer)
    }
}

/// `authentication.k8s.io/v1` UserInfo.
fn user_value(user: &UserInfo) -> Value {
    let mut value = Value::object();
    value.set_str(&["username"], &user.name);
    value.set_str(&["uid"], &user.uid);
    set_strings(&mut value, "groups", &user.groups);
    for (key, texts) in &user.extra {
        let texts: Vec<Value> = texts.iter().map(|text| Value::from(text.as_str())).collect();
        value.set(&["extra", key], texts);
    }
    value
}

fn set_strings(value: &mut Value, field: &str, items: &[String]) {
    if !items.is_empty() {
        value.set(&[field], items.iter().map(|item| Value::from(item.as_str())).collect::<Vec<_>>());
    }
}
