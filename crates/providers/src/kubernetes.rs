//! `kubernetes`: Secrets of this or another cluster.
//!
//! Absent (thin): `authRef` (a kubeconfig), and writing.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use coffer_types::SecretBytes;
use http::Request;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::contract::{
    Calls, Capabilities, Context, Document, Find, Provider, ProviderError, RemoteKey, RemoteRef, Scope,
    SecretMap, SecretsClient, Validation, config,
};
use crate::https::{Answer, Https, HttpsError, Tls, credential, escape, with_json};
use crate::json::{self as text_json, Numbers};
use crate::references::{SecretKeySelector, ServiceAccountSelector};
use crate::trust::Trust;
use crate::{contract, property, strategies};

const PROVIDER: &str = "Kubernetes";
const JSON: &str = "application/json";
/// The object without its data.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// How long a requested service account token is valid.
const TOKEN_SECONDS: i64 = 3600;

/// The provider.
#[derive(Debug)]
pub struct Kubernetes;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    server: Server,
    auth: Option<Auth>,
    auth_ref: Option<SecretKeySelector>,
    remote_namespace: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Server {
    url: String,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Auth {
    cert: Option<CertAuth>,
    token: Option<TokenAuth>,
    service_account: Option<ServiceAccountSelector>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CertAuth {
    client_cert: SecretKeySelector,
    client_key: SecretKeySelector,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct TokenAuth {
    bearer_token: SecretKeySelector,
}

fn parse(spec: &Json) -> Result<Spec, ProviderError> {
    contract::parse(spec, "no store type or wrong store type")
}

#[async_trait]
impl Provider for Kubernetes {
    fn key(&self) -> &'static str {
        "kubernetes"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ReadWrite
    }

    fn check(&self, spec: &Json, scope: &Scope) -> Result<Vec<String>, ProviderError> {
        let spec = parse(spec)?;
        let mut warnings = Vec::new();
        if spec.auth_ref.is_none()
            && spec.server.trust.ca_bundle.is_empty()
            && spec.server.trust.ca_provider.is_none()
        {
            warnings.push(
                "No caBundle or caProvider specified; TLS connections will use system certificate roots."
                    .to_owned(),
            );
        }
        if let Some(provider) = &spec.server.trust.ca_provider {
            if scope.cluster && provider.namespace.is_none() {
                return Err(config("CAProvider.namespace must not be empty with ClusterSecretStore"));
            }
            if !scope.cluster && provider.namespace.is_some() {
                return Err(config("CAProvider.namespace must be empty with SecretStore"));
            }
        }
        let Some(auth) = &spec.auth else { return Ok(warnings) };
        if let Some(cert) = &auth.cert {
            check_selector(&cert.client_cert, "ClientCert", scope)?;
            check_selector(&cert.client_key, "ClientKey", scope)?;
        }
        if let Some(token) = &auth.token {
            check_selector(&token.bearer_token, "BearerToken", scope)?;
        }
        if let Some(account) = &auth.service_account {
            scope.check_namespace(account.namespace.as_deref())?;
        }
        Ok(warnings)
    }

    fn is_referent(&self, spec: &Json, scope: &Scope) -> bool {
        parse(spec).is_ok_and(|spec| spec.auth.is_some_and(|auth| auth.is_referent(scope)))
    }

    async fn connect(
        &self,
        spec: &Json,
        scope: &Scope,
        context: &Context,
    ) -> Result<Arc<dyn SecretsClient>, ProviderError> {
        let spec = parse(spec)?;
        if spec.auth_ref.is_some() {
            let text = if spec.auth.is_some() {
                "authRef and inline auth cannot both be set"
            } else {
                "authRef is not supported: set auth and server instead"
            };
            return Err(config(text));
        }
        let auth = spec.auth.unwrap_or_default();
        let referent = auth.is_referent(scope);
        let access = context.access.as_ref();
        if spec.server.url.is_empty() {
            return Err(config("no server URL provided"));
        }
        let authority = spec.server.trust.authority(scope, access).await?;
        let (token, identity) =
            auth.read(scope, context).await.map_err(|error| error.context("failed to prepare auth"))?;
        let https = Https::new(Tls { authority, identity }, context.clock.clone())
            .map_err(|error| config(format!("error configuring clientset: {error}")))?;
        let url = spec.server.url.trim_end_matches('/');
        let base = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
        let namespace =
            if spec.remote_namespace.is_empty() { "default".to_owned() } else { spec.remote_namespace };
        Ok(Arc::new(Client { https, base, namespace, token, referent, calls: context.calls.clone() }))
    }
}

fn check_selector(selector: &SecretKeySelector, what: &str, scope: &Scope) -> Result<(), ProviderError> {
    if selector.name.is_empty() {
        return Err(config(format!("{what}.Name cannot be empty")));
    }
    if selector.key.is_empty() {
        return Err(config(format!("{what}.Key cannot be empty")));
    }
    scope.check_namespace(selector.namespace.as_deref())
}

impl Auth {
    fn is_referent(&self, scope: &Scope) -> bool {
        let selectors = [
            self.cert.as_ref().map(|cert| cert.client_cert.namespace.as_deref()),
            self.cert.as_ref().map(|cert| cert.client_key.namespace.as_deref()),
            self.token.as_ref().map(|token| token.bearer_token.namespace.as_deref()),
            self.service_account.as_ref().map(|account| account.namespace.as_deref()),
        ];
        selectors.into_iter().flatten().any(|namespace| scope.is_referent(namespace))
    }

    /// The bearer token and the client certificate.
    async fn read(
        &self,
        scope: &Scope,
        context: &Context,
    ) -> Result<(Option<SecretBytes>, Option<(Vec<u8>, SecretBytes)>), ProviderError> {
        let access = context.access.as_ref();
        let given = [self.cert.is_some(), self.token.is_some(), self.service_account.is_some()];
        match given.iter().filter(|given| **given).count() {
            0 => return Err(config("no auth provider given")),
            1 => {}
            _ => {
                return Err(config(
                    "multiple auth methods provided: set exactly one of Token, ServiceAccount, or Cert",
                ));
            }
        }
        if let Some(token) = &self.token {
            let value = token.bearer_token.read_text(scope, access, "").await;
            let value = value.map_err(|error| error.context("could not fetch Auth.Token.BearerToken"))?;
            return Ok((Some(value), None));
        }
        if let Some(account) = &self.service_account {
            let namespace = scope.resolve(account.namespace.as_deref());
            let token = access
                .service_account_token(namespace, &account.name, &account.audiences, TOKEN_SECONDS)
                .await;
            let token = token.map_err(|why| {
                ProviderError::Auth(format!(
                    "could not fetch Auth.ServiceAccount: cannot create service account token: {why:?}"
                ))
            })?;
            return Ok((Some(token), None));
        }
        let Some(cert) = &self.cert else { return Err(config("no auth provider given")) };
        let outer = "could not fetch client key and cert";
        let certificate = cert
            .client_cert
            .read(scope, access, "")
            .await
            .map_err(|error| error.context(&format!("{outer}: unable to fetch client certificate")))?;
        let key = cert.client_key.read(scope, access, "").await;
        let key = key.map_err(|error| error.context(&format!("{outer}: unable to fetch client key")))?;
        Ok((None, Some((certificate.expose().to_vec(), key))))
    }
}

struct Client {
    https: Https,
    base: String,
    namespace: String,
    token: Option<SecretBytes>,
    referent: bool,
    calls: Arc<dyn Calls>,
}

/// What is read of a Secret. No `Debug`: it holds values.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Object {
    metadata: ObjectMeta,
    data: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ObjectMeta {
    name: String,
    labels: Option<Json>,
    annotations: Option<Json>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct List {
    items: Vec<Object>,
}

impl Client {
    async fn call(
        &self,
        call: &'static str,
        method: &str,
        path: &str,
        body: Option<Json>,
    ) -> Result<Answer, ProviderError> {
        self.call_for(JSON, call, method, path, body).await
    }

    /// One call whose answer is wanted as `accept`.
    async fn call_for(
        &self,
        accept: &'static str,
        call: &'static str,
        method: &str,
        path: &str,
        body: Option<Json>,
    ) -> Result<Answer, ProviderError> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header(http::header::AUTHORIZATION, credential(&[b"Bearer ", token.expose()])?);
        }
        request = request.header(http::header::ACCEPT, accept);
        let body = body.map(|body| body.to_string().into_bytes());
        let request = with_json(request, body, "the server's URL or the key is not valid")?;
        let result = self.https.send(request).await;
        let success = result.as_ref().is_ok_and(|answer| answer.status < 400);
        self.calls.observe(PROVIDER, call, success);
        let answer = result.map_err(|error| match error {
            HttpsError::Invalid(text) => config(text),
            other => ProviderError::Retryable(other.to_string()),
        })?;
        match answer.status {
            200..=299 => Ok(answer),
            404 => Err(ProviderError::NotFound),
            401 | 403 => Err(ProviderError::Auth(status_text(&answer))),
            _ => Err(ProviderError::Retryable(status_text(&answer))),
        }
    }

    fn secrets_path(&self, name: &str) -> String {
        let mut path = format!("/api/v1/namespaces/{}/secrets", self.namespace);
        if !name.is_empty() {
            path.push('/');
            path.push_str(&escape(name));
        }
        path
    }
}

/// The `message` of a Status: a server's words about an object, no value of it.
fn status_text(answer: &Answer) -> String {
    #[derive(Deserialize)]
    struct Status {
        message: String,
    }
    serde_json::from_slice::<Status>(answer.body.expose())
        .map_or_else(|_| format!("the server answered {}", answer.status), |status| status.message)
}

fn decode(object: &Object) -> Result<SecretMap, ProviderError> {
    let data = object.data.iter().flatten();
    data.map(|(key, value)| {
        let decoded = base64::engine::general_purpose::STANDARD.decode(value);
        let decoded = decoded
            .map_err(|_| ProviderError::Retryable("the server's answer is not a Secret".to_owned()))?;
        Ok((key.clone(), SecretBytes::new(decoded)))
    })
    .collect()
}

fn object(document: &Document) -> Result<Object, ProviderError> {
    serde_json::from_slice(document.content.expose())
        .map_err(|_| ProviderError::Retryable("the server's answer is not a Secret".to_owned()))
}

/// The version of an object; what is no version by its form is none.
fn resource_version(object: &SecretBytes) -> String {
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Versioned {
        metadata: Version,
    }
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Version {
        resource_version: String,
    }
    let object: Versioned = serde_json::from_slice(object.expose()).unwrap_or_default();
    let version = object.metadata.resource_version;
    if version.bytes().all(|byte| byte.is_ascii_digit()) { version } else { String::new() }
}

/// All of `data` as a JSON object of strings.
fn data_json(data: &SecretMap) -> SecretBytes {
    let mut out = String::from("{");
    for (index, (key, value)) in data.iter().enumerate() {
        if 0 < index {
            out.push(',');
        }
        text_json::write_string(key, false, &mut out);
        out.push(':');
        text_json::write_string(&String::from_utf8_lossy(value.expose()), false, &mut out);
    }
    out.push('}');
    SecretBytes::from(out)
}

fn metadata_json(object: &Object) -> Json {
    let part = |part: &Option<Json>| part.clone().unwrap_or(Json::Null);
    json!({"labels": part(&object.metadata.labels), "annotations": part(&object.metadata.annotations)})
}

#[async_trait]
impl SecretsClient for Client {
    async fn fetch(&self, remote: &RemoteKey) -> Result<Document, ProviderError> {
        let answer = self.call("GetSecret", "GET", &self.secrets_path(&remote.key), None).await?;
        let version = resource_version(&answer.body);
        Ok(Document::new(answer.body).with_version(version))
    }

    fn value(&self, document: &Document, remote: &RemoteRef) -> Result<SecretBytes, ProviderError> {
        let object = object(document)?;
        let (key, property) = (&remote.remote.key, &remote.property);
        if remote.remote.metadata {
            let missing =
                || config(format!("property {property} does not exist in metadata of secret {key:?}"));
            return metadata_value(&object, property)?.ok_or_else(missing);
        }
        let data = decode(&object)?;
        if property.is_empty() {
            return Ok(data_json(&data));
        }
        if let Some(value) = data.get(property) {
            return Ok(value.clone());
        }
        let missing = || config(format!("property {property} does not exist in data of secret {key:?}"));
        let (name, path) = property.split_once('.').ok_or_else(missing)?;
        let value = data.get(name).ok_or_else(missing)?;
        let text = std::str::from_utf8(value.expose()).map_err(|_| missing())?;
        property::get(text, path)?.map(SecretBytes::from).ok_or_else(missing)
    }

    fn map(&self, document: &Document, remote: &RemoteRef) -> Result<SecretMap, ProviderError> {
        let object = object(document)?;
        if remote.remote.metadata {
            let Json::Object(parts) = metadata_json(&object) else { return Ok(SecretMap::new()) };
            return Ok(parts
                .into_iter()
                .map(|(key, value)| (key, SecretBytes::from(value.to_string())))
                .collect());
        }
        let data = decode(&object)?;
        let property = &remote.property;
        if property.is_empty() {
            return Ok(data);
        }
        let invalid = || config("failed to unmarshal secret: invalid JSON format");
        let missing = || config(format!("property {property} does not exist in key {}", remote.remote.key));
        let whole = data_json(&data);
        let text = std::str::from_utf8(whole.expose()).map_err(|_| invalid())?;
        // A key that holds dots wins over a path.
        let found = match property::get(text, &property.replace('.', "\\."))? {
            Some(found) => found,
            None => property::get(text, property)?.ok_or_else(missing)?,
        };
        let members = text_json::members(found.trim()).ok_or_else(invalid)?;
        let values = members.into_iter().map(|(key, value)| {
            let value = text_json::canonical(value.get(), Numbers::Float, false).ok_or_else(invalid)?;
            Ok((key, SecretBytes::from(value)))
        });
        values.collect()
    }

    fn missing_value(&self, remote: &RemoteRef) -> ProviderError {
        // Upstream hands the API server's error through here, so no deletion policy applies.
        ProviderError::Retryable(format!("secrets {:?} not found", remote.remote.key))
    }

    async fn get_all_secrets(&self, find: &Find) -> Result<SecretMap, ProviderError> {
        let mut path = self.secrets_path("");
        let mut pattern = None;
        if !find.tags.is_empty() {
            let selector: Vec<String> =
                find.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
            path.push_str("?labelSelector=");
            path.push_str(&escape(&selector.join(",")));
        } else if let Some(name) = &find.name {
            pattern = Some(strategies::compile_name(name)?);
        } else {
            return Err(config("unexpected find operator: neither name nor tags are set"));
        }
        let answer = self.call("ListSecrets", "GET", &path, None).await;
        let answer = answer.map_err(|error| error.context("unable to list secrets"))?;
        let list: List = serde_json::from_slice(answer.body.expose()).map_err(|_| {
            ProviderError::Retryable("unable to list secrets: the answer is not a list".to_owned())
        })?;
        let mut found = SecretMap::new();
        for object in list.items {
            if pattern.as_ref().is_none_or(|pattern| pattern.is_match(&object.metadata.name)) {
                let data = decode(&object)?;
                found.insert(object.metadata.name, data_json(&data));
            }
        }
        strategies::convert_keys(&find.conversion, found).map_err(config)
    }

    async fn current_version(&self, key: &str) -> Result<Option<String>, ProviderError> {
        let path = self.secrets_path(key);
        let answer = self.call_for(METADATA, "GetSecret", "GET", &path, None).await?;
        let version = resource_version(&answer.body);
        Ok((!version.is_empty()).then_some(version))
    }

    async fn validate(&self) -> Result<Validation, ProviderError> {
        if self.referent {
            return Ok(Validation::Unknown);
        }
        let undetermined = |error: ProviderError| {
            Validation::Undetermined(format!("could not verify if client is valid: {error}"))
        };
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": self.namespace},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        let review = match self.call("CreateSelfSubjectRulesReview", "POST", path, Some(body)).await {
            Ok(answer) => answer,
            Err(error) => return Ok(undetermined(error)),
        };
        if allows(&serde_json::from_slice(review.body.expose()).unwrap_or_default()) {
            return Ok(Validation::Ready);
        }
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"namespace": self.namespace, "verb": "get", "resource": "secrets"}},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let review = match self.call("CreateSelfSubjectAccessReview", "POST", path, Some(body)).await {
            Ok(answer) => answer,
            Err(error) => return Ok(undetermined(error)),
        };
        let review: Json = serde_json::from_slice(review.body.expose()).unwrap_or_default();
        if review["status"]["allowed"] == true {
            return Ok(Validation::Ready);
        }
        Err(ProviderError::Auth("client is not allowed to get secrets".to_owned()))
    }

    async fn close(&self) {}
}

/// Whether a rules review lets one get Secrets.
fn allows(review: &Json) -> bool {
    let has = |rule: &Json, field: &str, wanted: &str| {
        rule[field].as_array().is_some_and(|list| list.iter().any(|item| item == wanted || item == "*"))
    };
    let rules = review["status"]["resourceRules"].as_array();
    rules.into_iter().flatten().any(|rule| {
        let groups = rule["apiGroups"].as_array();
        has(rule, "resources", "secrets")
            && has(rule, "verbs", "get")
            && (groups.is_none_or(Vec::is_empty) || has(rule, "apiGroups", ""))
    })
}

/// `labels`, `annotations`, `labels.KEY` or a path into the value of one.
fn metadata_value(object: &Object, property: &str) -> Result<Option<SecretBytes>, ProviderError> {
    let metadata = metadata_json(object);
    if property.is_empty() {
        return Ok(Some(SecretBytes::from(metadata.to_string())));
    }
    let mut parts = property.split('.');
    let kind = parts.next().unwrap_or_default();
    let part = &metadata[kind];
    if part.is_null() {
        return Ok(None);
    }
    let Some(key) = parts.next() else { return Ok(Some(SecretBytes::from(part.to_string()))) };
    let Some(value) = part[key].as_str() else { return Ok(None) };
    // Upstream joins what is left without dots; nobody can have meant that, but it is what it does.
    let rest: String = parts.collect();
    if rest.is_empty() {
        return Ok(Some(SecretBytes::from(value.to_owned())));
    }
    Ok(property::get(value, &rest)?.map(SecretBytes::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_allow_reading() {
        let rule = |groups: Json, resources: &str, verb: &str| json!({"status": {"resourceRules": [{"apiGroups": groups, "resources": [resources], "verbs": [verb]}]}});
        let cases = [
            (rule(json!([""]), "secrets", "get"), true),
            (rule(json!(["*"]), "*", "*"), true),
            (rule(json!([]), "secrets", "get"), true),
            (rule(json!(["apps"]), "*", "*"), false),
            (rule(json!([""]), "secrets", "list"), false),
            (rule(json!([""]), "configmaps", "get"), false),
            (json!({}), false),
        ];
        for (review, expected) in cases {
            assert_eq!(allows(&review), expected, "{review}");
        }
    }

    #[test]
    fn a_secret_has_a_version() {
        let cases = [
            (
                r#"{"metadata":{"name":"s","resourceVersion":"4711"},"data":{"resourceVersion":"eA=="}}"#,
                "4711",
            ),
            (r#"{"metadata":{"name":"s"}}"#, ""),
            (r#"{"metadata":{"resourceVersion":"some text"}}"#, ""),
            ("<html>", ""),
        ];
        for (object, expected) in cases {
            assert_eq!(resource_version(&SecretBytes::from(object.to_owned())), expected, "{object}");
        }
    }

    #[test]
    fn metadata_is_read_by_path() {
        let object: Object = serde_json::from_value(json!({"metadata": {
            "name": "s", "labels": {"app": "db"}, "annotations": {"json": "{\"k\":{\"v\":1}}"},
        }}))
        .unwrap();
        let cases = [
            ("labels", Some(r#"{"app":"db"}"#)),
            ("labels.app", Some("db")),
            ("labels.absent", None),
            ("annotations.json.k", Some(r#"{"v":1}"#)),
            ("annotations.json.k.v", None),
            ("spec", None),
        ];
        for (property, expected) in cases {
            let found = metadata_value(&object, property).unwrap();
            let found = found.map(|value| String::from_utf8(value.expose().to_vec()).unwrap());
            assert_eq!(found.as_deref(), expected, "{property}");
        }
    }
}
