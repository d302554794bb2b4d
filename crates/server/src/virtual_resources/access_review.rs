//! SubjectAccessReview and its relatives: may someone do something, and what may I do.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::Meta as _;
use coffer_types::validation::field::{FieldError, Path, Shown, to_status};
use coffer_types::{Map, Status, Value};

use crate::authz::RuleResolver;
use crate::authz::quote::aggregate;
use crate::ports::{Attributes, Authorizer, CreateOnly, Decision, UserInfo};

const GROUP: &str = "authorization.k8s.io";
const API_VERSION: &str = "authorization.k8s.io/v1";

/// May anyone do anything.
pub struct SubjectAccessReviews(pub Arc<dyn Authorizer>);
/// May I do something.
pub struct SelfSubjectAccessReviews(pub Arc<dyn Authorizer>);
/// May anyone do something in this namespace.
pub struct LocalSubjectAccessReviews(pub Arc<dyn Authorizer>);
/// What may I do in a namespace.
pub struct SelfSubjectRulesReviews(pub Arc<dyn RuleResolver>);

#[async_trait]
impl CreateOnly for SubjectAccessReviews {
    async fn create(&self, _attributes: &Attributes, object: Value, _dry_run: bool) -> Result<Value, Status> {
        let mut causes = spec_causes(&object);
        causes.extend(subject_causes(&object));
        causes.extend(metadata_causes(&object, ""));
        answer(&*self.0, "SubjectAccessReview", subject(&object), object, &causes).await
    }
}

#[async_trait]
impl CreateOnly for SelfSubjectAccessReviews {
    async fn create(&self, attributes: &Attributes, object: Value, _dry_run: bool) -> Result<Value, Status> {
        let mut causes = spec_causes(&object);
        causes.extend(metadata_causes(&object, ""));
        answer(&*self.0, "SelfSubjectAccessReview", attributes.user.clone(), object, &causes).await
    }
}

#[async_trait]
impl CreateOnly for LocalSubjectAccessReviews {
    async fn create(
        &self,
        attributes: &Attributes,
        mut object: Value,
        _dry_run: bool,
    ) -> Result<Value, Status> {
        if object.namespace().is_empty() {
            object.set_meta_str("namespace", &attributes.namespace);
        }
        let mut causes = spec_causes(&object);
        causes.extend(subject_causes(&object));
        causes.extend(metadata_causes(&object, &attributes.namespace));
        if let Some(resource) = given(&object, "resourceAttributes") {
            let namespace = resource.str_at(&["namespace"]);
            if namespace != object.namespace() {
                let path = Path::of(&["spec", "resourceAttributes", "namespace"]);
                causes.push(FieldError::invalid(&path, namespace, "must match metadata.namespace"));
            }
        }
        if let Some(path) = given(&object, "nonResourceAttributes") {
            let field = Path::of(&["spec", "nonResourceAttributes"]);
            causes.push(FieldError::invalid(&field, shown_path(path), "disallowed on this kind of request"));
        }
        answer(&*self.0, "LocalSubjectAccessReview", subject(&object), object, &causes).await
    }
}

#[async_trait]
impl CreateOnly for SelfSubjectRulesReviews {
    async fn create(&self, attributes: &Attributes, object: Value, _dry_run: bool) -> Result<Value, Status> {
        let namespace = object.str_at(&["spec", "namespace"]);
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let (rules, errors) = self.0.rules_for(&attributes.user, namespace);
        let mut resource_rules = Vec::new();
        let mut path_rules = Vec::new();
        for rule in rules {
            let value = rule.to_value();
            let part = |fields: &[&str]| {
                let fields =
                    fields.iter().filter_map(|field| Some(((*field).to_owned(), value.get(field)?.clone())));
                Value::Object(fields.collect())
            };
            if !rule.resources.is_empty() {
                resource_rules.push(part(&["verbs", "apiGroups", "resources", "resourceNames"]));
            }
            if !rule.non_resource_urls.is_empty() {
                path_rules.push(part(&["verbs", "nonResourceURLs"]));
            }
        }
        let mut answer = Value::object();
        answer.set_type(API_VERSION, "SelfSubjectRulesReview");
        answer.set(&["metadata"], Value::object());
        answer.set(&["spec"], Value::object());
        answer.set(&["status", "resourceRules"], resource_rules);
        answer.set(&["status", "nonResourceRules"], path_rules);
        answer.set(&["status", "incomplete"], false);
        if !errors.is_empty() {
            answer.set(&["status", "evaluationError"], aggregate(&errors));
        }
        Ok(answer)
    }
}

async fn answer(
    authorizer: &dyn Authorizer,
    kind: &str,
    user: UserInfo,
    mut object: Value,
    causes: &[FieldError],
) -> Result<Value, Status> {
    if !causes.is_empty() {
        // Upstream's text begins with a dot, because the decoded object no longer knows its kind.
        return Err(to_status(GROUP, "", "", causes));
    }
    let (decision, error) = authorizer.authorize(&attributes_of(user, &object)).await;
    let (allowed, denied, reason) = match decision {
        Decision::Allow(reason) => (true, false, reason),
        Decision::Deny(reason) => (false, true, reason),
        Decision::NoOpinion(reason) => (false, false, reason),
    };
    object.set_type(API_VERSION, kind);
    object.set(&["status"], Value::from([("allowed", allowed)]));
    if denied {
        object.set(&["status", "denied"], true);
    }
    object.set_str(&["status", "reason"], &reason);
    object.set_str(&["status", "evaluationError"], &error.unwrap_or_default());
    Ok(object)
}

/// What is asked about. A selector never stands in for a name here.
fn attributes_of(user: UserInfo, object: &Value) -> Attributes {
    let Some(resource) = given(object, "resourceAttributes") else {
        let path = |field: &str| object.str_at(&["spec", "nonResourceAttributes", field]).to_owned();
        return Attributes { user, verb: path("verb"), path: path("path"), ..Attributes::default() };
    };
    let text = |field: &str| resource.str_at(&[field]).to_owned();
    let version = match text("version") {
        version if version.is_empty() => "*".to_owned(),
        version => version,
    };
    Attributes {
        selected_node: String::new(),
        user,
        verb: text("verb"),
        group: text("group"),
        version,
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        resource_request: true,
        path: String::new(),
    }
}

fn subject(object: &Value) -> UserInfo {
    let list = |value: Option<&Value>| -> Vec<String> {
        let items = value.and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = object.at(&["spec", "extra"]).and_then(Value::as_object);
    UserInfo {
        name: object.str_at(&["spec", "user"]).to_owned(),
        uid: object.str_at(&["spec", "uid"]).to_owned(),
        groups: list(object.at(&["spec", "groups"])),
        extra: extra
            .map(|extra| extra.iter().map(|(key, texts)| (key.clone(), list(Some(texts)))).collect())
            .unwrap_or_default(),
    }
}

fn given<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.at(&["spec", field]).filter(|attributes| !attributes.is_null())
}

fn spec_causes(object: &Value) -> Vec<FieldError> {
    let resource = given(object, "resourceAttributes");
    let path = given(object, "nonResourceAttributes");
    if resource.is_some() != path.is_some() {
        return Vec::new();
    }
    let shown = path.map_or_else(|| Shown::from(&Value::Null), shown_path);
    let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    vec![FieldError::invalid(&Path::new("spec"), shown, detail)]
}

fn subject_causes(object: &Value) -> Option<FieldError> {
    let subject = subject(object);
    (subject.name.is_empty() && subject.groups.is_empty()).then(|| {
        let path = Path::of(&["spec", "user"]);
        FieldError::invalid(&path, "", "at least one of user or group must be specified")
    })
}

/// Metadata must hold nothing but, for the local review, the namespace.
fn metadata_causes(object: &Value, namespace: &str) -> Option<FieldError> {
    let members = object.get("metadata").and_then(Value::as_object)?;
    let extra: Map = members
        .iter()
        .filter(|(field, value)| {
            let own_namespace = !namespace.is_empty() && field.as_str() == "namespace";
            !(own_namespace || value.is_null() || field.as_str() == "managedFields")
        })
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    if extra.is_empty() {
        return None;
    }
    let detail = if namespace.is_empty() { "must be empty" } else { "must be empty except for namespace" };
    Some(FieldError::invalid(&Path::new("metadata"), &Value::Object(extra), detail))
}

/// As upstream prints its internal struct in an error.
fn shown_path(path: &Value) -> Shown {
    Shown::from(&Value::from([("Path", path.str_at(&["path"])), ("Verb", path.str_at(&["verb"]))]))
}
