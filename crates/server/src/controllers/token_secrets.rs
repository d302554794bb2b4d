//! Fills Secrets of type `kubernetes.io/service-account-token`, and deletes them with their account.
//!
//! | Secret | Service account | Actions |
//! |---|---|---|
//! | lacks token, namespace or the present CA | there | fill in what is missing |
//! | there | not there, or made anew | ask the store; delete when it agrees |
//! | deleted | there, refers to it | remove the reference |
//!
//! A token that is there is never issued anew.

use coffer_types::meta::Meta as _;
use coffer_types::{SecretBytes, Value};
use serde_json::{Map, Value as Json};

use super::{Action, Controller, Edit, Event, Mirror, Owner, Target, core};
use crate::authn::service_account_username;
use crate::ports::{Change, GroupResource, Interest, ServedResource};
use crate::tokens::LEGACY_ISSUER;
use crate::tokens::jws::SigningKey;

const SECRET_TYPE: &str = "kubernetes.io/service-account-token";
const NAME_ANNOTATION: &str = "kubernetes.io/service-account.name";
const UID_ANNOTATION: &str = "kubernetes.io/service-account.uid";

/// What a token Secret must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Filling {
    /// PEM of the CA.
    ca: SecretBytes,
    /// The token; `None` when the Secret has one.
    token: Option<SecretBytes>,
    /// Name of the account.
    account: String,
    /// UID of the account.
    uid: String,
}

impl Filling {
    /// Sets what is missing in a Secret.
    pub(super) fn apply(&self, secret: &mut Value) {
        if data(secret, "ca.crt") != Some(&self.ca) && !self.ca.is_empty() {
            secret.set(&["data", "ca.crt"], self.ca.clone());
        }
        if data(secret, "namespace").is_none_or(SecretBytes::is_empty) {
            let namespace = SecretBytes::from(secret.namespace().to_owned());
            secret.set(&["data", "namespace"], namespace);
        }
        if let Some(token) = self.token.as_ref().filter(|_| lacks_token(secret)) {
            secret.set(&["data", "token"], token.clone());
        }
        secret.set(&["metadata", "annotations", NAME_ANNOTATION], self.account.as_str());
        secret.set(&["metadata", "annotations", UID_ANNOTATION], self.uid.as_str());
    }
}

/// Fills and deletes.
pub(super) struct TokenSecrets {
    key: SigningKey,
    ca: SecretBytes,
    accounts: Mirror,
    /// Token Secrets only.
    secrets: Mirror,
}

impl TokenSecrets {
    pub(super) fn new(key: SigningKey, ca: &str) -> Self {
        Self { key, ca: ca.to_owned().into(), accounts: Mirror::default(), secrets: Mirror::default() }
    }

    fn look_at(&self, secret: &Value) -> Option<Action> {
        let target = Target::of(&core("secrets"), secret);
        let name = secret.annotation(NAME_ANNOTATION).unwrap_or_default();
        let uid = secret.annotation(UID_ANNOTATION).unwrap_or_default();
        let account = self.accounts.get(secret.namespace(), name);
        let Some(account) = account.filter(|account| uid.is_empty() || account.uid() == uid) else {
            let owner = Owner {
                api_version: "v1".to_owned(),
                kind: "ServiceAccount".to_owned(),
                name: name.to_owned(),
                uid: uid.to_owned(),
                blocks: false,
            };
            return Some(Action::CheckOwners(target, vec![owner]));
        };
        let wrong_ca = !self.ca.is_empty() && data(secret, "ca.crt") != Some(&self.ca);
        let no_namespace = data(secret, "namespace").is_none_or(SecretBytes::is_empty);
        if !wrong_ca && !no_namespace && !lacks_token(secret) {
            return None;
        }
        let token = if lacks_token(secret) { Some(self.sign(account, secret)?) } else { None };
        let filling = Filling {
            ca: self.ca.clone(),
            token,
            account: account.name().to_owned(),
            uid: account.uid().to_owned(),
        };
        Some(Action::Edit(target, Edit::FillToken(filling)))
    }

    fn sign(&self, account: &Value, secret: &Value) -> Option<SecretBytes> {
        let claims: Map<String, Json> = [
            ("iss", LEGACY_ISSUER.to_owned()),
            ("kubernetes.io/serviceaccount/namespace", account.namespace().to_owned()),
            ("kubernetes.io/serviceaccount/secret.name", secret.name().to_owned()),
            ("kubernetes.io/serviceaccount/service-account.name", account.name().to_owned()),
            ("kubernetes.io/serviceaccount/service-account.uid", account.uid().to_owned()),
            ("sub", service_account_username(account.namespace(), account.name())),
        ]
        .into_iter()
        .map(|(name, text)| (name.to_owned(), Json::from(text)))
        .collect();
        // No valid key refuses to sign; if one does, the Secret stays as it is and is looked at again.
        self.key.sign(&claims).ok().map(|token| SecretBytes::from(token.as_bytes().to_vec()))
    }

    fn look_at_all(&self) -> Vec<Action> {
        if !self.accounts.synced() || !self.secrets.synced() {
            return Vec::new();
        }
        let live = self.secrets.iter().filter(|secret| secret.deletion_timestamp().is_none());
        live.filter_map(|secret| self.look_at(secret)).collect()
    }

    /// The account forgets a Secret that is gone.
    fn forget(&self, secret: &Value) -> Option<Action> {
        let account = self.accounts.get(secret.namespace(), secret.annotation(NAME_ANNOTATION)?)?;
        let references = account.get("secrets").and_then(Value::as_array).unwrap_or_default();
        let refers = references.iter().any(|reference| reference.str_at(&["name"]) == secret.name());
        let target = Target::of(&core("serviceaccounts"), account);
        refers.then(|| Action::Edit(target, Edit::ForgetSecret(secret.name().to_owned())))
    }
}

impl Controller for TokenSecrets {
    fn name(&self) -> &'static str {
        "service-account-token-secrets"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![core("serviceaccounts"), core("secrets")]
    }

    fn interest(&self, resource: &GroupResource) -> Interest {
        if *resource == core("secrets") { Interest::Field("type", SECRET_TYPE) } else { Interest::Whole }
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Changed(resource, change) if resource.resource == "serviceaccounts" => {
                self.accounts.apply(change);
                self.look_at_all()
            }
            Event::Changed(_, change) => self.secret_changed(change),
            Event::Resync => self.look_at_all(),
            Event::OwnersChecked { uid, absent } if !absent.is_empty() => {
                let gone = self.secrets.iter().filter(|secret| secret.uid() == uid);
                gone.map(|secret| Action::Delete(Target::of(&core("secrets"), secret), None)).collect()
            }
            Event::OwnersChecked { .. }
            | Event::Watching(_)
            | Event::Emptied { .. }
            | Event::Silent { .. }
            | Event::Recount { .. }
            | Event::Read { .. } => Vec::new(),
        }
    }
}

impl TokenSecrets {
    fn secret_changed(&mut self, change: Change) -> Vec<Action> {
        match change {
            Change::Reset(mut secrets) => {
                secrets.retain(is_token_secret);
                self.secrets.apply(Change::Reset(secrets));
                self.look_at_all()
            }
            Change::Applied(secret) if is_token_secret(&secret) => {
                let action = self.accounts.synced().then(|| self.look_at(&secret)).flatten();
                self.secrets.apply(Change::Applied(secret));
                action.into_iter().collect()
            }
            Change::Deleted(secret) if is_token_secret(&secret) => {
                let action = self.forget(&secret);
                self.secrets.apply(Change::Deleted(secret));
                action.into_iter().collect()
            }
            Change::Applied(_) | Change::Deleted(_) => Vec::new(),
        }
    }
}

fn is_token_secret(secret: &Value) -> bool {
    secret.str_at(&["type"]) == SECRET_TYPE
}

fn data<'a>(secret: &'a Value, key: &str) -> Option<&'a SecretBytes> {
    secret.at(&["data", key]).and_then(Value::as_bytes)
}

fn lacks_token(secret: &Value) -> bool {
    data(secret, "token").is_none_or(SecretBytes::is_empty)
}
