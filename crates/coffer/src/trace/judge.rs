//! What is broken in a Secret's life, in the order of the chain.

use super::{AtRest, Life, Source, State};

/// Every broken link with what to do about it, first link first.
pub(crate) fn broken(life: &Life) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(source) = &life.source {
        if !source.ready {
            let why = if source.message.is_empty() { &source.reason } else { &source.message };
            found.push(format!("{} is not ready: {why}", source.external_secret));
        } else if source.outdated {
            found.push(format!("{} was changed after its last sync", source.external_secret));
        }
        found.extend(rotated(&life.namespace, source));
    }
    match &life.secret {
        None if matches!(life.at_rest, AtRest::Encrypted { .. } | AtRest::Plaintext) => {
            found.push(format!("secret {}/{} is stored but cannot be read", life.namespace, life.name));
        }
        None => {
            let elsewhere = if life.source.is_none() { "; -n names another namespace" } else { "" };
            found.push(format!("secret {}/{} does not exist{elsewhere}", life.namespace, life.name));
        }
        Some(secret) if secret.deleting => {
            found.push(format!("secret {}/{} is being deleted", life.namespace, life.name));
        }
        Some(_) => {}
    }
    match &life.at_rest {
        AtRest::Plaintext => {
            found.push("the stored copy is plaintext: configure encryption, then rewrite it".to_owned())
        }
        AtRest::Encrypted { provider, key, readable: false, .. } => found.push(format!(
            "the stored copy is under {provider} key {key}, and no key that the server holds opens it: \
             put that key back into the encryption configuration and start the server again"
        )),
        AtRest::Encrypted { key, stale: true, .. } => {
            let (namespace, name) = (&life.namespace, &life.name);
            found.push(format!(
                "the stored copy is under {key}, which is not the key of new writes; rewrite it: \
                 kubectl get secret -n {namespace} {name} -o yaml | kubectl replace -f -"
            ));
        }
        AtRest::Encrypted { .. } | AtRest::Unknown { .. } => {}
    }
    for consumer in &life.consumers {
        let who = match (consumer.kind.as_str(), consumer.place.as_str()) {
            ("pod", _) => format!("pod {}", consumer.pod),
            (kind, "") => format!("pod {} ({kind})", consumer.pod),
            (kind, place) => format!("pod {} ({kind} {place})", consumer.pod),
        };
        match consumer.state {
            State::Current | State::Unknown => {}
            State::Silent => found.push(format!("{who}: {}", consumer.message)),
            State::Stale if matches!(consumer.kind.as_str(), "environment" | "subPath") => {
                found.push(format!("{who} holds an older value: restart it"));
            }
            State::Stale => found.push(format!("{who} holds an older value{}", because(&consumer.message))),
            State::Missing => found.push(format!("{who} holds nothing{}", because(&consumer.message))),
        }
    }
    found
}

/// What the external store holds and the Secret does not, each remote value once.
fn rotated(namespace: &str, source: &Source) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for entry in &source.entries {
        let external = &source.external_secret;
        let remote = entry.remote.split('#').next().unwrap_or_default();
        let line = if entry.gone {
            format!("{external}: {remote} does not exist at {} any more", entry.store)
        } else if !entry.current.is_empty() && !entry.version.is_empty() && entry.current != entry.version {
            let name = external.trim_start_matches("ExternalSecret/");
            format!(
                "{external}: {remote} was rotated, not refreshed yet: {} holds version {}, the last sync took {}; \
                 do not wait for it: kubectl annotate externalsecret -n {namespace} {name} \
                 force-sync=$(date +%s) --overwrite",
                entry.store, entry.current, entry.version
            )
        } else {
            continue;
        };
        if !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

fn because(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

#[cfg(test)]
mod tests {
    use super::super::{Consumer, Entry, SecretFacts};
    use super::*;

    fn life() -> Life {
        Life {
            namespace: "ns".into(),
            name: "db".into(),
            secret: Some(SecretFacts {
                secret_type: "Opaque".into(),
                resource_version: "5".into(),
                keys: vec!["password".into()],
                immutable: false,
                deleting: false,
            }),
            source: Some(Source {
                external_secret: "ExternalSecret/db".into(),
                store: "SecretStore/vault".into(),
                provider: "vault".into(),
                entries: vec![],
                ready: true,
                reason: "SecretSynced".into(),
                message: "secret synced".into(),
                last_sync: "2026-01-01T00:00:00Z".into(),
                outdated: false,
                refresh_interval: "1h".into(),
                not_asked: String::new(),
            }),
            at_rest: AtRest::Encrypted {
                provider: "aesgcm".into(),
                key: "key1".into(),
                stale: false,
                readable: true,
            },
            consumers: vec![],
            broken: vec![],
        }
    }

    fn consumer(kind: &str, state: State, message: &str) -> Consumer {
        Consumer {
            pod: "web".into(),
            node: "n".into(),
            kind: kind.into(),
            place: "p".into(),
            path: String::new(),
            resource_version: "4".into(),
            state,
            message: message.into(),
        }
    }

    fn entry(version: &str, current: &str, gone: bool) -> Entry {
        Entry {
            key: "k".into(),
            remote: "app/db#password".into(),
            version: version.into(),
            current: current.into(),
            gone,
            store: "SecretStore/vault".into(),
            asked_for: "app/db".into(),
        }
    }

    /// A source that holds `entries`, asked or not.
    fn check_source(entries: Vec<Entry>, not_asked: &str, expected: &[&str]) {
        let change = |life: &mut Life| {
            let source = life.source.as_mut().expect("a source");
            (source.entries, source.not_asked) = (entries, not_asked.into());
        };
        check(change, expected);
    }

    #[test]
    fn a_rotation_that_is_not_refreshed_is_told_once() {
        let told = "ExternalSecret/db: app/db was rotated, not refreshed yet: SecretStore/vault holds version 4, \
                    the last sync took 3; do not wait for it: kubectl annotate externalsecret -n ns db \
                    force-sync=$(date +%s) --overwrite";
        check_source(vec![entry("3", "3", false)], "", &[]);
        check_source(vec![entry("3", "4", false), entry("3", "4", false)], "", &[told]);
        // Nothing is known of one side.
        check_source(vec![entry("", "4", false)], "", &[]);
        check_source(vec![entry("3", "", false)], "SecretStore/vault: forbidden", &[]);
        let gone = "ExternalSecret/db: app/db does not exist at SecretStore/vault any more";
        check_source(vec![entry("3", "", true)], "", &[gone]);
    }

    #[test]
    fn a_node_that_stopped_is_named() {
        let why = "node n no longer reports, its Ready is Unknown (NodeStatusUnknown: stopped)";
        check(
            |life| life.consumers = vec![consumer("file", State::Silent, why)],
            &[&format!("pod web (file p): {why}")],
        );
        check(|life| life.consumers = vec![consumer("pod", State::Unknown, "its node does not report")], &[]);
    }

    fn check(change: impl FnOnce(&mut Life), expected: &[&str]) {
        let mut life = life();
        change(&mut life);
        assert_eq!(broken(&life), expected);
    }

    #[test]
    fn each_link_can_break() {
        check(|_| {}, &[]);
        check(|life| life.source = None, &[]);
        check(
            |life| {
                let source = life.source.as_mut().expect("a source");
                (source.ready, source.message) = (false, "could not get secret data from provider".into());
            },
            &["ExternalSecret/db is not ready: could not get secret data from provider"],
        );
        check(
            |life| life.source.as_mut().expect("a source").outdated = true,
            &["ExternalSecret/db was changed after its last sync"],
        );
        check(
            |life| {
                life.secret = None;
                life.at_rest = AtRest::Unknown { why: "there is no stored copy".into() };
            },
            &["secret ns/db does not exist"],
        );
        check(
            |life| life.secret.as_mut().expect("a secret").deleting = true,
            &["secret ns/db is being deleted"],
        );
        check(
            |life| life.at_rest = AtRest::Plaintext,
            &["the stored copy is plaintext: configure encryption, then rewrite it"],
        );
        check(
            |life| {
                life.at_rest = AtRest::Encrypted {
                    provider: "aesgcm".into(),
                    key: "old".into(),
                    stale: true,
                    readable: true,
                };
            },
            &["the stored copy is under old, which is not the key of new writes; rewrite it: \
               kubectl get secret -n ns db -o yaml | kubectl replace -f -"],
        );
        check(
            |life| {
                let (provider, key) = ("aesgcm".into(), "gone".into());
                life.secret = None;
                life.at_rest = AtRest::Encrypted { provider, key, stale: true, readable: false };
            },
            &[
                "secret ns/db is stored but cannot be read",
                "the stored copy is under aesgcm key gone, and no key that the server holds opens it: \
                 put that key back into the encryption configuration and start the server again",
            ],
        );
        check(|life| life.at_rest = AtRest::Unknown { why: "x".into() }, &[]);
        check(|life| life.consumers = vec![consumer("file", State::Current, "")], &[]);
        check(|life| life.consumers = vec![consumer("file", State::Unknown, "")], &[]);
        check(
            |life| life.consumers = vec![consumer("environment", State::Stale, "")],
            &["pod web (environment p) holds an older value: restart it"],
        );
        check(
            |life| life.consumers = vec![consumer("subPath", State::Stale, "")],
            &["pod web (subPath p) holds an older value: restart it"],
        );
        check(
            |life| life.consumers = vec![consumer("file", State::Stale, "no space")],
            &["pod web (file p) holds an older value: no space"],
        );
        check(
            |life| life.consumers = vec![consumer("file", State::Missing, "secret \"db\" not found")],
            &["pod web (file p) holds nothing: secret \"db\" not found"],
        );
        // Of what belongs to the whole pod only the kind is told.
        let mut pull = consumer("pull credential", State::Missing, "secret \"db\" not found");
        pull.place.clear();
        check(
            |life| life.consumers = vec![pull],
            &["pod web (pull credential) holds nothing: secret \"db\" not found"],
        );
    }
}
