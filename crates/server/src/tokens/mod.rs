//! Service account tokens: signing, verification, issuing and discovery.
//!
//! Nothing here has a `Debug` that shows a token.

pub mod claims;
pub mod discovery;
pub mod jws;
pub mod request;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::Meta as _;
use coffer_types::time::{Clock, Timestamp};
use coffer_types::{SecretBytes, Value};
use serde_json::{Map, Value as Json};

use self::claims::{Bound, LEEWAY_SECONDS, Private, Public};
use self::jws::{Jws, PublicKey};
use crate::authn::{
    CREDENTIAL_ID, TokenAuthenticator, TokenUser, service_account_groups, service_account_username,
    split_service_account_username,
};
use crate::authz::quote::{aggregate, quote, quote_list};
use crate::ports::{AuthenticationSource, GroupResource, Objects, UserInfo};

/// Issuer of the tokens that live in Secrets.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// What tokens are checked against.
pub struct Verifier {
    /// Whose tokens are taken.
    pub issuers: Vec<String>,
    /// Keys; more than one while keys are rotated.
    pub keys: Vec<PublicKey>,
    /// Audiences of this server: those of a token without any, and what a request without any asks for.
    pub api_audiences: Vec<String>,
    /// Where service accounts and bound objects are looked up.
    pub objects: Arc<dyn Objects>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl Verifier {
    /// Whether the token claims one of the issuers, before anything about it is believed.
    fn parse<'a>(issuers: &[String], token: &'a str) -> Option<Jws<'a>> {
        let jws = Jws::parse(token)?;
        let issuer = jws.claims.get("iss").and_then(Json::as_str)?;
        issuers.iter().any(|known| known == issuer).then_some(jws)
    }

    /// Checks signature and audiences; gives the claims that may now be believed, and the audiences in common.
    fn verify(
        &self,
        issuers: &[String],
        jws: &Jws<'_>,
        audiences: Option<&[String]>,
    ) -> Result<(Public, Vec<String>), String> {
        let keys: Vec<&PublicKey> =
            self.keys.iter().filter(|key| jws.key_id.is_empty() || key.id() == jws.key_id).collect();
        if keys.is_empty() {
            return Err("invalid signature, no keys found".to_owned());
        }
        let failures: Vec<_> = keys.iter().map_while(|key| key.verify(jws).err()).collect();
        if failures.len() == keys.len() {
            return Err(aggregate(&failures.iter().map(ToString::to_string).collect::<Vec<_>>()));
        }
        let public = claims::public(&jws.claims).ok_or(
            "service account token claims could not be validated due to unexpected validation error",
        )?;
        if !issuers.contains(&public.issuer) {
            return Err(format!("token issuer {} is invalid", quote(&public.issuer)));
        }
        let own = if public.audiences.is_empty() { &self.api_audiences } else { &public.audiences };
        let wanted = audiences.unwrap_or(&self.api_audiences);
        let common: Vec<String> = own.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
        if common.is_empty() && !self.api_audiences.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quote_list(own),
                quote_list(wanted)
            ));
        }
        Ok((public, common))
    }

    /// From the cache, else from the store: what a token speaks of may be newer than the cache.
    async fn find(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, String> {
        let kind = GroupResource::new("", resource);
        for live in [false, true] {
            match self.objects.get(&kind, namespace, name, live).await {
                Ok(Some(object)) => return Ok(object),
                Ok(None) => {}
                Err(status) => return Err(status.message),
            }
        }
        Err(format!("{resource} {} not found", quote(name)))
    }
}

/// Tokens from TokenRequest: bound to a service account and perhaps to a pod, a node or a Secret.
#[async_trait]
impl TokenAuthenticator for Verifier {
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String> {
        let Some(jws) = Self::parse(&self.issuers, token) else { return Ok(None) };
        let (public, audiences) = self.verify(&self.issuers, &jws, audiences)?;
        let private = claims::private(&jws.claims).ok_or(
            "service account token claims could not be validated due to unexpected validation error",
        )?;
        let now = self.clock.now();
        claims::check_time(&public, now)?;
        self.check_service_account(&private, now).await?;
        self.check_bound(&private, now).await?;
        Ok(Some(TokenUser {
            user: user(&public, &private),
            source: AuthenticationSource::ServiceAccountToken,
            audiences,
            warnings: Vec::new(),
        }))
    }
}

impl Verifier {
    async fn check_service_account(&self, private: &Private, now: Timestamp) -> Result<(), String> {
        let Private { namespace, service_account: Bound { name, uid }, .. } = private;
        let account = self.find("serviceaccounts", namespace, name).await?;
        if account.uid() != uid {
            return Err(format!("service account UID ({}) does not match claim ({uid})", account.uid()));
        }
        if deleted_long_ago(&account, now) {
            return Err(format!("service account {namespace}/{name} has been deleted"));
        }
        Ok(())
    }

    /// What the token is bound to must still be there. The node of a pod is only information.
    async fn check_bound(&self, private: &Private, now: Timestamp) -> Result<(), String> {
        const INVALIDATED: &str = "service account token has been invalidated";
        let node = if private.pod.is_some() { &None } else { &private.node };
        for (kind, resource, namespace, bound) in [
            ("secret", "secrets", private.namespace.as_str(), &private.secret),
            ("pod", "pods", private.namespace.as_str(), &private.pod),
            ("node", "nodes", "", node),
        ] {
            let Some(Bound { name, uid }) = bound else { continue };
            let object = self.find(resource, namespace, name).await.map_err(|_| INVALIDATED)?;
            if object.uid() != uid {
                return Err(format!(
                    "{kind} UID ({}) does not match service account {kind} ref claim ({uid})",
                    object.uid()
                ));
            }
            if deleted_long_ago(&object, now) {
                return Err(INVALIDATED.to_owned());
            }
        }
        Ok(())
    }
}

fn user(public: &Public, private: &Private) -> UserInfo {
    let Private { namespace, service_account: Bound { name, uid }, .. } = private;
    let mut user = UserInfo {
        name: service_account_username(namespace, name),
        uid: uid.clone(),
        groups: service_account_groups(namespace),
        ..UserInfo::default()
    };
    let mut add = |key: &str, text: &str| {
        user.extra.insert(key.to_owned(), vec![text.to_owned()]);
    };
    if let Some(pod) = private.pod.as_ref().filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty()) {
        add(POD_NAME, &pod.name);
        add(POD_UID, &pod.uid);
    }
    if !public.id.is_empty() {
        add(CREDENTIAL_ID, &format!("JTI={}", public.id));
    }
    if let Some(node) = private.node.as_ref().filter(|node| !node.name.is_empty()) {
        add(NODE_NAME, &node.name);
        if !node.uid.is_empty() {
            add(NODE_UID, &node.uid);
        }
    }
    user
}

/// Deleted for longer than clocks may differ.
fn deleted_long_ago(object: &Value, now: Timestamp) -> bool {
    object.deletion_timestamp().is_some_and(|time| {
        // A deletion time that cannot be read counts as long ago.
        time.parse::<Timestamp>().map_or(true, |time| time.as_second() < now.as_second() - LEEWAY_SECONDS)
    })
}

/// Tokens that live in a Secret of type `kubernetes.io/service-account-token`: no expiry, no audience.
pub struct LegacyVerifier(pub Arc<Verifier>);

#[async_trait]
impl TokenAuthenticator for LegacyVerifier {
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String> {
        let verifier = &self.0;
        let issuers = [LEGACY_ISSUER.to_owned()];
        let Some(jws) = Verifier::parse(&issuers, token) else { return Ok(None) };
        let (public, audiences) = verifier.verify(&issuers, &jws, audiences)?;
        let names = LegacyClaims::read(&public, &jws.claims)?;
        let (secret, warnings) = self.check(&names, token).await?;
        verifier.note_use(&secret).await;
        if secret.label(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
            let LegacyClaims { namespace, secret, account, .. } = names;
            return Err(format!(
                "the token in secret {namespace}/{secret} for service account {namespace}/{account} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            ));
        }
        let user = UserInfo {
            name: service_account_username(&names.namespace, &names.account),
            uid: names.uid,
            groups: service_account_groups(&names.namespace),
            ..UserInfo::default()
        };
        let source = AuthenticationSource::LegacyServiceAccountToken;
        Ok(Some(TokenUser { user, source, audiences, warnings }))
    }
}

/// The claims of a token in a Secret.
struct LegacyClaims {
    namespace: String,
    secret: String,
    account: String,
    uid: String,
}

impl LegacyClaims {
    fn read(public: &Public, claims: &Map<String, Json>) -> Result<Self, String> {
        let text = |field: &str| {
            let name = format!("kubernetes.io/serviceaccount/{field}");
            claims.get(&name).and_then(Json::as_str).unwrap_or_default().to_owned()
        };
        if public.subject.is_empty() {
            return Err("sub claim is missing".to_owned());
        }
        let read = Self {
            namespace: text("namespace"),
            secret: text("secret.name"),
            account: text("service-account.name"),
            uid: text("service-account.uid"),
        };
        for (claim, found) in [
            ("namespace", &read.namespace),
            ("secretName", &read.secret),
            ("serviceAccountName", &read.account),
            ("serviceAccountUID", &read.uid),
        ] {
            if found.is_empty() {
                return Err(format!("{claim} claim is missing"));
            }
        }
        if split_service_account_username(&public.subject) != Some((&read.namespace, &read.account)) {
            return Err("sub claim is invalid".to_owned());
        }
        Ok(read)
    }
}

impl LegacyVerifier {
    /// The Secret, which must hold this very token, and warnings for the client.
    async fn check(&self, names: &LegacyClaims, token: &str) -> Result<(Value, Vec<String>), String> {
        let LegacyClaims { namespace, secret: secret_name, account: account_name, uid } = names;
        let secret = self.0.find("secrets", namespace, secret_name).await;
        let secret = secret
            .ok()
            .filter(|secret| secret.deletion_timestamp().is_none())
            .ok_or("Token has been invalidated")?;
        let stored = secret.at(&["data", "token"]).and_then(Value::as_bytes).cloned().unwrap_or_default();
        if stored != SecretBytes::from(token.to_owned()) {
            return Err("Token does not match server's copy".to_owned());
        }
        let account = self.0.find("serviceaccounts", namespace, account_name).await?;
        if account.deletion_timestamp().is_some() {
            return Err(format!("ServiceAccount {namespace}/{account_name} has been deleted"));
        }
        if account.uid() != uid {
            return Err(format!("ServiceAccount UID ({}) does not match claim ({uid})", account.uid()));
        }
        let references = account.get("secrets").and_then(Value::as_array).unwrap_or_default();
        let generated = references.iter().any(|reference| reference.str_at(&["name"]) == secret_name);
        let warnings = generated.then(|| {
            "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.".to_owned()
        });
        Ok((secret, warnings.into_iter().collect()))
    }
}

impl Verifier {
    /// Labels the Secret with today's date, at most once a day. A failure is logged, the request goes on.
    async fn note_use(&self, secret: &Value) {
        let now = self.clock.now();
        let date = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
        let today = date(now);
        let tomorrow = now.checked_add(jiff::SignedDuration::from_hours(24)).map(date).unwrap_or_default();
        let last = secret.label(LAST_USED).unwrap_or_default();
        if last == today || last == tomorrow {
            return;
        }
        let mut labelled = secret.clone();
        labelled.set(&["metadata", "labels", LAST_USED], today);
        if let Err(status) = self.objects.update(&GroupResource::new("", "secrets"), "", labelled).await {
            tracing::warn!(
                namespace = secret.namespace(),
                name = secret.name(),
                error = %status,
                "cannot record the use of a service account token"
            );
        }
    }
}
