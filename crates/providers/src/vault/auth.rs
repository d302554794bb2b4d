//! How to log in: which method, with which credentials, from where.

use coffer_types::SecretBytes;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::contract::{Context, ProviderError, Scope, config};
use crate::references::{SecretKeySelector, ServiceAccountSelector};

/// How long a requested service account token is valid.
const TOKEN_SECONDS: i64 = 600;

/// `auth`. The first method that is set counts, in the order of the fields.
#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
pub struct Auth {
    /// Namespace of the login; "" for the store's.
    pub(super) namespace: String,
    pub(crate) token_secret_ref: Option<SecretKeySelector>,
    pub(crate) app_role: Option<AppRole>,
    kubernetes: Option<KubernetesAuth>,
    ldap: Option<Password>,
    pub(crate) user_pass: Option<Password>,
    jwt: Option<Jwt>,
    pub(super) cert: Option<Cert>,
    iam: Option<Json>,
    gcp: Option<Json>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AppRole {
    path: String,
    pub(crate) role_id: String,
    pub(crate) role_ref: Option<SecretKeySelector>,
    secret_ref: SecretKeySelector,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
struct KubernetesAuth {
    mount_path: String,
    role: String,
    service_account_ref: Option<ServiceAccountSelector>,
    secret_ref: Option<SecretKeySelector>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Password {
    path: String,
    username: String,
    secret_ref: SecretKeySelector,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
struct Jwt {
    path: String,
    role: String,
    secret_ref: Option<SecretKeySelector>,
    kubernetes_service_account_token: Option<JwtServiceAccount>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
struct JwtServiceAccount {
    service_account_ref: ServiceAccountSelector,
    audiences: Option<Vec<String>>,
    expiration_seconds: Option<i64>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Cert {
    path: String,
    vault_role: String,
    pub(super) client_cert: SecretKeySelector,
    pub(super) secret_ref: SecretKeySelector,
}

/// What a login sends. No `Debug`: the body holds credentials.
pub(crate) struct Login {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Map<String, Json>,
    /// What no error text may repeat.
    pub(super) secrets: Vec<SecretBytes>,
}

/// What to do for a token.
pub(crate) enum Plan {
    /// The credential is the token.
    Static(SecretBytes),
    /// It is exchanged for one.
    Login(Login),
}

fn or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text.trim_matches('/') }
}

impl Auth {
    /// Whether the certificate login is the one that counts.
    pub(super) fn uses_cert(&self) -> bool {
        self.cert.is_some()
            && self.token_secret_ref.is_none()
            && self.app_role.is_none()
            && self.kubernetes.is_none()
            && self.ldap.is_none()
            && self.user_pass.is_none()
            && self.jwt.is_none()
    }

    /// Every reference to a namespace that the credentials hold, with upstream's word for it.
    fn namespaces(&self) -> Vec<(&'static str, Option<&str>)> {
        let mut found: Vec<(&'static str, Option<&str>)> = Vec::new();
        fn key(selector: &SecretKeySelector) -> Option<&str> {
            selector.namespace.as_deref()
        }
        fn account(selector: &ServiceAccountSelector) -> Option<&str> {
            selector.namespace.as_deref()
        }
        if let Some(role) = &self.app_role {
            found.push(("invalid Auth.AppRole.SecretRef", key(&role.secret_ref)));
            found.extend(role.role_ref.as_ref().map(|role| ("invalid Auth.AppRole.RoleRef", key(role))));
        }
        if let Some(cert) = &self.cert {
            found.push(("invalid Auth.Cert.ClientCert", key(&cert.client_cert)));
            found.push(("invalid Auth.Cert.SecretRef", key(&cert.secret_ref)));
        }
        if let Some(jwt) = &self.jwt {
            found.extend(jwt.secret_ref.as_ref().map(|secret| ("invalid Auth.Jwt.SecretRef", key(secret))));
            found.extend(jwt.kubernetes_service_account_token.as_ref().map(|token| {
                let what = "invalid Auth.Jwt.KubernetesServiceAccountToken.ServiceAccountRef";
                (what, account(&token.service_account_ref))
            }));
        }
        if let Some(kubernetes) = &self.kubernetes {
            let reference = kubernetes.service_account_ref.as_ref();
            found.extend(
                reference.map(|reference| ("invalid Auth.Kubernetes.ServiceAccountRef", account(reference))),
            );
            let secret = kubernetes.secret_ref.as_ref();
            found.extend(secret.map(|secret| ("invalid Auth.Kubernetes.SecretRef", key(secret))));
        }
        if let Some(ldap) = &self.ldap {
            found.push(("invalid Auth.Ldap.SecretRef", key(&ldap.secret_ref)));
        }
        if let Some(user) = &self.user_pass {
            found.push(("invalid Auth.UserPass.SecretRef", key(&user.secret_ref)));
        }
        found.extend(self.token_secret_ref.as_ref().map(|token| ("invalid Auth.TokenSecretRef", key(token))));
        found
    }

    /// Checks without a network.
    pub(crate) fn check(&self, scope: &Scope) -> Result<(), ProviderError> {
        for (what, namespace) in self.namespaces() {
            scope.check_namespace(namespace).map_err(|error| error.context(what))?;
        }
        if let Some(role) = &self.app_role
            && role.role_id.is_empty()
            && role.role_ref.is_none()
        {
            return Err(config("invalid Auth.AppRole: neither `roleId` nor `roleRef` was supplied"));
        }
        if let Some(jwt) = &self.jwt
            && jwt.secret_ref.is_none()
            && jwt.kubernetes_service_account_token.is_none()
        {
            return Err(config(
                "neither `secretRef` nor `kubernetesServiceAccountToken` was supplied as token source for jwt authentication",
            ));
        }
        Ok(())
    }

    /// Whether the credentials differ by who asks.
    pub(crate) fn is_referent(&self, scope: &Scope) -> bool {
        self.namespaces().iter().any(|(_, namespace)| scope.is_referent(*namespace))
    }

    /// Reads the credentials.
    pub(super) async fn plan(&self, scope: &Scope, context: &Context) -> Result<Plan, ProviderError> {
        let access = context.access.as_ref();
        if let Some(token) = &self.token_secret_ref {
            return Ok(Plan::Static(token.read_text(scope, access, "").await?));
        }
        if let Some(role) = &self.app_role {
            let id = match &role.role_ref {
                Some(reference) => text(&reference.read_text(scope, access, "").await?)?,
                None => role.role_id.trim().to_owned(),
            };
            let secret = role.secret_ref.read_text(scope, access, "").await?;
            let path = format!("auth/{}/login", or(&role.path, "approle"));
            return login("POST", path, &[("role_id", &id), ("secret_id", &text(&secret)?)], vec![secret]);
        }
        if let Some(kubernetes) = &self.kubernetes {
            let jwt = kubernetes.token(scope, context).await?;
            let path = format!("auth/{}/login", or(&kubernetes.mount_path, "kubernetes"));
            return login("POST", path, &[("role", &kubernetes.role), ("jwt", &text(&jwt)?)], vec![jwt]);
        }
        for (method, default) in [(&self.ldap, "ldap"), (&self.user_pass, "userpass")] {
            if let Some(user) = method {
                let password = user.secret_ref.read_text(scope, access, "").await?;
                let username = crate::https::escape(user.username.trim());
                let path = format!("auth/{}/login/{username}", or(&user.path, default));
                return login("POST", path, &[("password", &text(&password)?)], vec![password]);
            }
        }
        if let Some(jwt) = &self.jwt {
            let token = jwt.token(scope, context).await?;
            let path = format!("auth/{}/login", or(&jwt.path, "jwt"));
            return login("PUT", path, &[("role", jwt.role.trim()), ("jwt", &text(&token)?)], vec![token]);
        }
        if let Some(cert) = &self.cert {
            let path = format!("auth/{}/login", or(&cert.path, "cert"));
            let fields: &[(&str, &str)] =
                if cert.vault_role.is_empty() { &[] } else { &[("name", cert.vault_role.as_str())] };
            return login("PUT", path, fields, Vec::new());
        }
        if self.iam.is_some() || self.gcp.is_some() {
            return Err(config("the iam and gcp logins are not supported: use another auth method"));
        }
        Err(config("cannot initialize Vault client: no valid auth method specified"))
    }
}

fn text(bytes: &SecretBytes) -> Result<String, ProviderError> {
    String::from_utf8(bytes.expose().to_vec())
        .map_err(|_| ProviderError::Auth("a credential is not valid UTF-8".to_owned()))
}

fn login(
    method: &'static str,
    path: String,
    fields: &[(&str, &str)],
    secrets: Vec<SecretBytes>,
) -> Result<Plan, ProviderError> {
    let body = fields.iter().map(|(key, value)| ((*key).to_owned(), Json::from(*value))).collect();
    Ok(Plan::Login(Login { method, path, body, secrets }))
}

impl KubernetesAuth {
    async fn token(&self, scope: &Scope, context: &Context) -> Result<SecretBytes, ProviderError> {
        let access = context.access.as_ref();
        if let Some(account) = &self.service_account_ref {
            return request_token(account, &account.audiences, TOKEN_SECONDS, scope, context).await;
        }
        if let Some(secret) = &self.secret_ref {
            return secret.read_text(scope, access, "token").await;
        }
        access.pod_token().await.map_err(ProviderError::Auth)
    }
}

impl Jwt {
    async fn token(&self, scope: &Scope, context: &Context) -> Result<SecretBytes, ProviderError> {
        if let Some(secret) = &self.secret_ref {
            return secret.read_text(scope, context.access.as_ref(), "").await;
        }
        let Some(token) = &self.kubernetes_service_account_token else {
            return Err(config(
                "neither `secretRef` nor `kubernetesServiceAccountToken` was supplied as token source for jwt authentication",
            ));
        };
        let mut audiences = token.audiences.clone().unwrap_or_else(|| vec!["vault".to_owned()]);
        audiences.extend(token.service_account_ref.audiences.iter().cloned());
        let seconds = token.expiration_seconds.unwrap_or(TOKEN_SECONDS);
        request_token(&token.service_account_ref, &audiences, seconds, scope, context).await
    }
}

async fn request_token(
    account: &ServiceAccountSelector,
    audiences: &[String],
    seconds: i64,
    scope: &Scope,
    context: &Context,
) -> Result<SecretBytes, ProviderError> {
    let namespace = scope.resolve(account.namespace.as_deref());
    let token = context.access.service_account_token(namespace, &account.name, audiences, seconds).await;
    token.map_err(|why| {
        let name = &account.name;
        ProviderError::Auth(format!(
            "cannot request Kubernetes service account token for service account {name:?}: {why}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(auth: Json, cluster: bool) -> Result<(), String> {
        let scope = Scope { cluster, store: "s".to_owned(), namespace: "own".to_owned() };
        let auth = Auth::deserialize(auth).unwrap();
        auth.check(&scope).map_err(|error| error.to_string())
    }

    #[test]
    fn stores_are_checked_as_upstream_does() {
        let foreign = "namespace should either be empty or match the namespace of the SecretStore for a namespaced SecretStore";
        let cases = [
            (json!({"tokenSecretRef": {"name": "t", "key": "k"}}), Ok(())),
            (json!({"tokenSecretRef": {"name": "t", "namespace": "own"}}), Ok(())),
            (
                json!({"tokenSecretRef": {"name": "t", "namespace": "other"}}),
                Err(format!("invalid Auth.TokenSecretRef: {foreign}")),
            ),
            (
                json!({"appRole": {"secretRef": {"name": "s"}}}),
                Err("invalid Auth.AppRole: neither `roleId` nor `roleRef` was supplied".to_owned()),
            ),
            (
                json!({"appRole": {"roleId": "r", "secretRef": {"name": "s", "namespace": "other"}}}),
                Err(format!("invalid Auth.AppRole.SecretRef: {foreign}")),
            ),
            (
                json!({"kubernetes": {"serviceAccountRef": {"name": "a", "namespace": "other"}}}),
                Err(format!("invalid Auth.Kubernetes.ServiceAccountRef: {foreign}")),
            ),
            (
                json!({"jwt": {"role": "r"}}),
                Err("neither `secretRef` nor `kubernetesServiceAccountToken` was supplied as token source for jwt authentication".to_owned()),
            ),
        ];
        for (auth, expected) in cases {
            assert_eq!(check(auth.clone(), false), expected, "{auth}");
        }
        assert_eq!(check(json!({"tokenSecretRef": {"name": "t", "namespace": "other"}}), true), Ok(()));
    }

    #[test]
    fn credentials_of_a_cluster_store_may_depend_on_who_asks() {
        let scope = Scope { cluster: true, store: "s".to_owned(), namespace: "a".to_owned() };
        let cases = [
            (json!({"tokenSecretRef": {"name": "t"}}), true),
            (json!({"tokenSecretRef": {"name": "t", "namespace": "x"}}), false),
            (json!({"appRole": {"roleId": "r", "secretRef": {"name": "s"}}}), true),
            (json!({}), false),
        ];
        for (auth, expected) in cases {
            assert_eq!(Auth::deserialize(auth.clone()).unwrap().is_referent(&scope), expected, "{auth}");
        }
    }
}
