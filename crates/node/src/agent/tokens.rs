//! Tokens of service accounts for projected volumes: asked for when a volume is made, and again well
//! before they end, by the kubelet's rule.

use std::collections::BTreeMap;

use coffer_types::SecretBytes;
use coffer_types::time::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection};
use kube::Api;
use kube::api::PostParams;

use super::Agent;

/// What the API server sets when a volume does not say.
const DEFAULT_EXPIRATION: i64 = 3600;
/// No token is kept for longer, however long it lasts.
const LONGEST_USE: SignedDuration = SignedDuration::from_hours(24);
/// Refreshes are spread over this many seconds.
const JITTER_SECONDS: u32 = 10;

/// Audience and seconds: what tells the tokens of one pod apart.
pub(super) type Wanted = (String, i64);

/// A token that is in use.
pub(super) struct HeldToken {
    text: SecretBytes,
    expires: Timestamp,
    refresh: Timestamp,
}

/// What a volume asks for.
pub(super) fn wanted(projection: &ServiceAccountTokenProjection) -> Wanted {
    (
        projection.audience.clone().unwrap_or_default(),
        projection.expiration_seconds.unwrap_or(DEFAULT_EXPIRATION),
    )
}

/// When a token is to be replaced: after 24 h or four fifths of its life, a little earlier by chance.
fn refresh_time(expires: Timestamp, lifetime_seconds: i64, jitter_seconds: u32) -> Timestamp {
    let lifetime = SignedDuration::from_secs(lifetime_seconds);
    let by_age = expires.saturating_sub(lifetime).and_then(|issued| issued.saturating_add(LONGEST_USE));
    let by_end = expires.saturating_sub(SignedDuration::from_secs(lifetime_seconds * 20 / 100));
    let earlier = match (by_age, by_end) {
        (Ok(by_age), Ok(by_end)) => by_age.min(by_end),
        _ => expires,
    };
    earlier.saturating_sub(SignedDuration::from_secs(i64::from(jitter_seconds))).unwrap_or(earlier)
}

impl Agent {
    /// The tokens that a volume asks for, each new only when it has to be; and when to look again.
    pub(super) async fn tokens<'a>(
        &self,
        pod: &Pod,
        projections: impl Iterator<Item = &'a ServiceAccountTokenProjection>,
        held: &mut BTreeMap<Wanted, HeldToken>,
    ) -> (BTreeMap<Wanted, Result<SecretBytes, String>>, Option<Timestamp>) {
        let mut tokens = BTreeMap::new();
        let mut look_again: Option<Timestamp> = None;
        for projection in projections {
            let key = wanted(projection);
            let now = self.config.clock.now();
            let due = held.get(&key).is_none_or(|token| now > token.refresh);
            let mut refused = None;
            if due {
                match self.request_token(pod, &key).await {
                    Ok(token) => drop(held.insert(key.clone(), token)),
                    Err(error) => refused = Some(error),
                }
            }
            let given = match (held.get(&key), refused) {
                (None, refused) => Err(format!("failed to fetch token: {}", refused.unwrap_or_default())),
                (Some(held), Some(refused)) if now > held.expires => {
                    Err(format!("token expired and refresh failed: {refused}"))
                }
                (Some(held), Some(_)) => {
                    tracing::warn!(
                        pod = pod.metadata.name,
                        "a token was not refreshed; the old one is still good"
                    );
                    Ok(held.text.clone())
                }
                (Some(held), None) => {
                    look_again = Some(look_again.map_or(held.refresh, |other| other.min(held.refresh)));
                    Ok(held.text.clone())
                }
            };
            tokens.insert(key, given);
        }
        (tokens, look_again)
    }

    async fn request_token(&self, pod: &Pod, (audience, seconds): &Wanted) -> Result<HeldToken, String> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
        let account = account.filter(|name| !name.is_empty()).unwrap_or("default");
        let api: Api<ServiceAccount> = Api::namespaced(self.config.client.clone(), namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: Some(if audience.is_empty() { Vec::new() } else { vec![audience.clone()] }),
                expiration_seconds: Some(*seconds),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: pod.metadata.name.clone(),
                    uid: pod.metadata.uid.clone(),
                }),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let answer = api.create_token_request(account, &PostParams::default(), &request).await;
        let answer = answer.map_err(|error| match error {
            kube::Error::Api(status) => status.message.clone(),
            // Other texts may quote the answer.
            _ => format!("no good answer about a token of service account {account:?}"),
        })?;
        let lifetime = answer.spec.and_then(|spec| spec.expiration_seconds).unwrap_or(*seconds);
        let given = answer.status.and_then(|status| Some((status.token?, status.expiration_timestamp?.0)));
        let (token, expires) = given.ok_or_else(|| "the answer holds no token".to_owned())?;
        let mut jitter = [0_u8; 4];
        self.config.random.fill(&mut jitter).map_err(|error| error.to_string())?;
        Ok(HeldToken {
            text: SecretBytes::from(token),
            expires,
            refresh: refresh_time(expires, lifetime, u32::from_le_bytes(jitter) % JITTER_SECONDS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kubelet's own cases: a token of an hour is replaced after 48 min, one of a week after a day.
    #[test]
    fn tokens_are_replaced_by_the_kubelets_rule() {
        let hour = 3600;
        for (lifetime, jitter, after) in [
            (hour, 0, 2880),
            (hour, 9, 2871),
            (600, 9, 471),
            (3607, 0, 2886),
            (24 * hour, 0, 24 * hour * 8 / 10),
            (7 * 24 * hour, 0, 24 * hour),
            (7 * 24 * hour, 5, 24 * hour - 5),
        ] {
            let issued = Timestamp::from_second(1_700_000_000).expect("in range");
            let expires = issued.checked_add(SignedDuration::from_secs(lifetime)).expect("in range");
            let found = refresh_time(expires, lifetime, jitter);
            assert_eq!(found.as_second() - issued.as_second(), after, "{lifetime} s, jitter {jitter} s");
        }
    }
}
