//! Values go both ways between us and the code of kube-apiserver.
#![allow(missing_docs, reason = "tests")]

mod kms;
mod original;
#[path = "../it/support.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod support;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_crypto::{Entry, Identity, NamedKey, PrefixList, Provider, Transformer};
use serde_json::{Value, json};

use original::Original;
use support::{NO_MATCH, Seeded, key, list};

const VALUES: usize = 1_000;

/// One value with the key and the place that it is stored under.
struct Sample {
    provider: Provider,
    key: NamedKey,
    context: String,
    plain: Vec<u8>,
}

impl Sample {
    fn draw(provider: Provider, random: &Seeded) -> Self {
        let key_size = match provider {
            Provider::Secretbox | Provider::KmsV1 | Provider::KmsV2 => 32,
            _ => [16, 24, 32][random.below(3)],
        };
        // Most values are small; a few are large.
        let size = [64, 64, 2_048, 2_048, 2_048, 65_536][random.below(6)];
        Self {
            provider,
            key: key(&format!("key-{}", random.below(1_000_000)), &random.bytes(key_size)),
            context: format!("/registry/secrets/ns-{}/s{}", random.below(1_000), random.below(1_000)),
            plain: random.bytes(random.below(size)),
        }
    }

    fn ours(&self, random: &Arc<Seeded>) -> PrefixList {
        if self.provider == Provider::Identity {
            let entry = Entry { prefix: Vec::new(), layer: Arc::new(Identity) };
            return PrefixList::new(entry, Vec::new(), NO_MATCH);
        }
        if let Some(entry) = kms::entry(self.provider, &self.key, random) {
            return PrefixList::new(entry, Vec::new(), NO_MATCH);
        }
        list(&[(self.provider, std::slice::from_ref(&self.key))], random.clone())
    }

    fn ask(&self, original: &mut Original, op: &str, context: &str, value: &[u8]) -> Outcome {
        self.ask_as(self.provider.name(), original, op, context, value)
    }

    fn ask_as(
        &self,
        provider: &str,
        original: &mut Original,
        op: &str,
        context: &str,
        value: &[u8],
    ) -> Outcome {
        let answer = original.ask(&json!({
            "op": op,
            "provider": provider,
            "name": self.key.name,
            "key": STANDARD.encode(self.key.secret.expose()),
            "context": context,
            "value": STANDARD.encode(value),
        }));
        match answer.get("err").and_then(Value::as_str) {
            Some(error) => Err(error.to_owned()),
            None => {
                let value = answer.get("value").and_then(Value::as_str).unwrap_or_default();
                let stale = answer.get("stale").and_then(Value::as_bool).unwrap_or(false);
                Ok((STANDARD.decode(value).expect("base64"), stale))
            }
        }
    }
}

/// The value and whether it is stale, or the error's text.
type Outcome = Result<(Vec<u8>, bool), String>;

fn read(transformer: &PrefixList, stored: &[u8], context: &str) -> Outcome {
    transformer
        .from_storage(stored, context.as_bytes())
        .map(|plain| (plain.bytes.expose().to_vec(), plain.stale))
        .map_err(|error| error.to_string())
}

#[test]
fn each_side_reads_what_the_other_wrote() {
    let mut original = Original::start("transform");
    let random = Arc::new(Seeded::new(20));
    for provider in Provider::ALL {
        for number in 0..VALUES {
            let sample = Sample::draw(provider, &random);
            let ours = sample.ours(&random);
            let about = format!("{provider} {number} {} bytes", sample.plain.len());
            let expected = Ok((sample.plain.clone(), false));

            let stored = ours.to_storage(&sample.plain, sample.context.as_bytes()).expect("can be written");
            assert!(sample.ask(&mut original, "decrypt", &sample.context, &stored) == expected, "{about}");

            let (stored, _) = sample
                .ask(&mut original, "encrypt", &sample.context, &sample.plain)
                .unwrap_or_else(|error| panic!("{about}: {error}"));
            assert!(read(&ours, &stored, &sample.context) == expected, "{about}");
        }
    }
}

/// Before 1.29 Kubernetes wrote under the key itself: such values are read, and are stale.
#[test]
fn values_of_before_seeds_are_read() {
    let mut original = Original::start("transform");
    let random = Arc::new(Seeded::new(22));
    for number in 0..VALUES {
        let sample = Sample::draw(Provider::KmsV2, &random);
        let (stored, _) = sample
            .ask_as("kms v2 key", &mut original, "encrypt", &sample.context, &sample.plain)
            .unwrap_or_else(|error| panic!("{number}: {error}"));
        let found = read(&sample.ours(&random), &stored, &sample.context);
        assert!(found == Ok((sample.plain.clone(), true)), "{number}");
        let moved = read(&sample.ours(&random), &stored, "/registry/secrets/elsewhere/s1");
        assert_eq!(moved, Err("cipher: message authentication failed".to_owned()), "{number}");
    }
}

/// Go's protobuf says what is wrong with a message, differently from build to build on purpose;
/// and its older envelope is tried by one cipher here, by two in a server.
fn plain_text(error: String) -> String {
    if error.starts_with("proto:") {
        return "proto".to_owned();
    }
    match error.strip_prefix('[').and_then(|list| list.split_once(", ")) {
        Some((first, _)) => first.to_owned(),
        None => error,
    }
}

/// Moved, cut, extended and changed values: both sides say the same, to the letter.
#[test]
fn both_sides_say_the_same_to_a_bad_value() {
    let mut original = Original::start("transform");
    let random = Arc::new(Seeded::new(21));
    let mut refused = 0;
    for provider in Provider::ALL {
        for number in 0..VALUES {
            let sample = Sample::draw(provider, &random);
            let ours = sample.ours(&random);
            let mut stored =
                ours.to_storage(&sample.plain, sample.context.as_bytes()).expect("can be written");
            let mut context = sample.context.as_str();
            match number % 5 {
                0 => context = "/registry/secrets/elsewhere/s1",
                1 => stored.truncate(random.below(stored.len() + 1)),
                2 => stored.extend(random.bytes(1 + random.below(40))),
                3 if stored.is_empty() => stored.extend(b"k8s:enc:aesgcm:v1:key1:"),
                _ => {
                    let bit = random.below(stored.len().max(1) * 8);
                    if let Some(byte) = stored.get_mut(bit / 8) {
                        *byte ^= 1 << (bit % 8);
                    }
                }
            }
            let prefix = provider.prefix().len() + sample.key.name.len() + 1;
            if provider == Provider::AesCbc && stored.len() == prefix + 16 {
                // An IV without ciphertext makes the original panic.
                continue;
            }
            let (theirs, ours) =
                (sample.ask(&mut original, "decrypt", context, &stored), read(&ours, &stored, context));
            let (theirs, ours) = (theirs.map_err(plain_text), ours.map_err(plain_text));
            refused += usize::from(ours.is_err());
            assert!(
                ours == theirs,
                "{provider} {number}: {:?} but the original {:?}",
                ours.map(|(value, stale)| (value.len(), stale)),
                theirs.map(|(value, stale)| (value.len(), stale)),
            );
        }
    }
    assert!(VALUES < refused, "only {refused} were refused");
}
