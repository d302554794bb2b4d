//! Bootstrap tokens: `ID.SECRET`, kept in Secrets of `kube-system` for machines that join.
//!
//! A token that is no good is not an error here, only not a success; the log says why, without the token.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::Meta as _;
use coffer_types::time::{Clock, Timestamp};
use coffer_types::{SecretBytes, Value};

use super::{TokenAuthenticator, TokenUser, audiences_of_server};
use crate::ports::{AuthenticationSource, GroupResource, Objects, UserInfo};

const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
const DEFAULT_GROUP: &str = "system:bootstrappers";
/// Longest part of a group's name after `system:bootstrappers:`, its last character not counted.
const MAX_GROUP_BODY: usize = 255;

/// Authenticates bootstrap tokens.
pub struct BootstrapTokens {
    /// Where the Secrets are.
    pub objects: Arc<dyn Objects>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Audiences of this server.
    pub api_audiences: Vec<String>,
}

#[async_trait]
impl TokenAuthenticator for BootstrapTokens {
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String> {
        let Some((id, secret)) = parse(token) else { return Ok(None) };
        let Some(audiences) = audiences_of_server(&self.api_audiences, audiences) else { return Ok(None) };
        let name = format!("bootstrap-token-{id}");
        let resource = GroupResource::new("", "secrets");
        let stored = self
            .objects
            .get(&resource, "kube-system", &name, false)
            .await
            .map_err(|status| status.message)?;
        let Some(stored) = stored else { return Ok(None) };
        match check(&stored, id, secret, self.clock.now()) {
            Ok(groups) => {
                let user = UserInfo { name: format!("system:bootstrap:{id}"), groups, ..UserInfo::default() };
                Ok(Some(TokenUser {
                    user,
                    source: AuthenticationSource::BootstrapToken,
                    audiences,
                    warnings: Vec::new(),
                }))
            }
            Err(why) => {
                tracing::info!(namespace = "kube-system", name, why, "bootstrap token refused");
                Ok(None)
            }
        }
    }
}

fn parse(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let word = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (word(id, ID_LENGTH) && word(secret, SECRET_LENGTH)).then_some((id, secret))
}

/// The groups of the token's user, or why it is no good.
fn check(stored: &Value, id: &str, secret: &str, now: Timestamp) -> Result<Vec<String>, &'static str> {
    let bytes = |key: &str| stored.at(&["data", key]).and_then(Value::as_bytes);
    let text =
        |key: &str| bytes(key).and_then(|bytes| std::str::from_utf8(bytes.expose()).ok()).unwrap_or_default();
    if stored.deletion_timestamp().is_some() {
        return Err("is deleted and awaiting removal");
    }
    if stored.str_at(&["type"]) != SECRET_TYPE || stored.get("data").is_none() {
        return Err("has invalid type, expected bootstrap.kubernetes.io/token.");
    }
    // Constant time, as every comparison of secret bytes is.
    if bytes("token-secret") != Some(&SecretBytes::from(secret.to_owned())) {
        return Err("has invalid value for key token-secret.");
    }
    if text("token-id") != id {
        return Err("has invalid value for key token-id.");
    }
    let expiration = text("expiration");
    if !expiration.is_empty() && !expiration.parse::<Timestamp>().is_ok_and(|expires| now < expires) {
        return Err("has expired");
    }
    if text("usage-bootstrap-authentication") != "true" {
        return Err("not marked usage-bootstrap-authentication=true.");
    }
    let mut groups = BTreeSet::from([DEFAULT_GROUP.to_owned()]);
    let extra = text("auth-extra-groups");
    for group in extra.split(',').filter(|_| !extra.is_empty()) {
        if !valid_group(group) {
            return Err("has invalid value for key auth-extra-groups.");
        }
        groups.insert(group.to_owned());
    }
    Ok(groups.into_iter().collect())
}

fn valid_group(group: &str) -> bool {
    let Some(body) = group.strip_prefix("system:bootstrappers:") else { return false };
    let last = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| last(byte) || byte == b':' || byte == b'-';
    match body.as_bytes().split_last() {
        Some((end, rest)) => {
            last(*end) && rest.len() <= MAX_GROUP_BODY && rest.iter().all(|byte| inner(*byte))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-02T03:04:05Z";

    fn stored(changes: &[(&str, &str)]) -> Value {
        let mut secret = Value::from([("type", SECRET_TYPE)]);
        for (key, text) in [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
        ]
        .iter()
        .chain(changes)
        {
            match key.strip_prefix('!') {
                Some(path) => secret.set(&path.split('.').collect::<Vec<_>>(), *text),
                None => secret.set(&["data", key], SecretBytes::from((*text).to_owned())),
            }
        }
        secret
    }

    #[test]
    fn each_condition_in_order() {
        let groups = |items: &[&str]| Ok(items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        for (changes, expected) in [
            (vec![], groups(&["system:bootstrappers"])),
            (
                vec![("auth-extra-groups", "system:bootstrappers:b,system:bootstrappers:a-1")],
                groups(&["system:bootstrappers", "system:bootstrappers:a-1", "system:bootstrappers:b"]),
            ),
            (
                vec![("auth-extra-groups", "system:masters")],
                Err("has invalid value for key auth-extra-groups."),
            ),
            (
                vec![("auth-extra-groups", "system:bootstrappers:")],
                Err("has invalid value for key auth-extra-groups."),
            ),
            (vec![("expiration", "2026-01-02T03:04:06Z")], groups(&["system:bootstrappers"])),
            (vec![("expiration", NOW)], Err("has expired")),
            (vec![("expiration", "soon")], Err("has expired")),
            (
                vec![("usage-bootstrap-authentication", "yes")],
                Err("not marked usage-bootstrap-authentication=true."),
            ),
            (vec![("token-id", "abcdeg")], Err("has invalid value for key token-id.")),
            (vec![("token-secret", "x")], Err("has invalid value for key token-secret.")),
            (vec![("!type", "Opaque")], Err("has invalid type, expected bootstrap.kubernetes.io/token.")),
            (vec![("!metadata.deletionTimestamp", NOW)], Err("is deleted and awaiting removal")),
        ] {
            let now = NOW.parse().expect("a time");
            assert_eq!(check(&stored(&changes), "abcdef", "0123456789abcdef", now), expected, "{changes:?}");
        }
    }

    #[test]
    fn forms() {
        assert_eq!(parse("abcdef.0123456789abcdef"), Some(("abcdef", "0123456789abcdef")));
        for token in [
            "abcdef.0123456789abcde",
            "abcdeF.0123456789abcdef",
            "abcdef",
            "abcdef.0123456789abcdef.x",
            "a.b",
            "",
        ] {
            assert_eq!(parse(token), None, "{token}");
        }
    }

    #[test]
    fn s33_a_wrong_secret_is_neither_taken_nor_logged() {
        let right = stored(&[("token-secret", "canarycanary0001")]);
        let mut right = right;
        right.set_meta_str("namespace", "kube-system");
        right.set_meta_str("name", "bootstrap-token-abcdef");
        let objects = crate::testing::MemoryObjects::with(&[("", "secrets", right)]);
        let tokens =
            BootstrapTokens { objects, clock: crate::testing::TestClock::at(NOW), api_audiences: Vec::new() };
        let logs = crate::testing::logs_of(|| {
            for (token, expected) in [
                ("abcdef.canarycanary0001", true),
                ("abcdef.canarycanary0002", false),
                ("zzzzzz.canarycanary0003", false),
            ] {
                let found = crate::testing::block_on(tokens.authenticate(token, None)).expect("no error");
                assert_eq!(found.is_some(), expected, "{token}");
            }
        });
        assert!(logs.contains("bootstrap token refused"), "{logs}");
        assert!(!logs.contains("canary"), "{logs}");
    }
}
