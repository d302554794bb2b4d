//! Stored objects that nobody can read: named, counted, removable, and the same to everyone who asks.

use std::sync::Arc;

use bytes::Bytes;
use coffer_crypto::{Identity, NamedKey, PrefixList, Provider, Transformer, keyed};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::api::ApiServer;
use coffer_store::Transformers;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::{Kv, Op, RangeRequest, SharedValue, Txn};
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use serde_json::{Value, json};

use crate::support::{Client, Events, Log, secured_on, wait};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
const CORRUPT: &str = "data from the storage is not transformable revision=0: the value cannot be decrypted";
const WAY_OUT: &str = "give the server the key that it was written under, or delete it unread with the delete \
                       option ignoreStoreReadErrorWithClusterBreakingPotential=true, for which the verb \
                       unsafe-delete-ignore-read-errors is needed";

/// Secrets under one provider with a key of the name `key1`; everything else as it is.
fn transformers(provider: Provider) -> Transformers {
    let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
    let key = NamedKey { name: "key1".to_owned(), secret: SecretBytes::new(vec![7; 32]) };
    let entry = keyed(provider, &[key], &random).expect("a provider");
    let secrets: Arc<dyn Transformer> =
        Arc::new(PrefixList::new(entry, Vec::new(), "no matching prefix found"));
    Box::new(move |_, resource| if resource == "secrets" { Arc::clone(&secrets) } else { Arc::new(Identity) })
}

async fn store() -> Arc<dyn Kv> {
    let clock = Arc::new(SystemClock::new());
    Arc::new(Embedded::in_memory(EmbeddedOptions::new(clock)).await.expect("a store in memory"))
}

async fn server(kv: &Arc<dyn Kv>, provider: Provider) -> ApiServer {
    secured_on(Arc::clone(kv), transformers(provider), Arc::new(SystemClock::new()), Vec::new()).await
}

fn admin(api: &ApiServer) -> Client {
    Client::in_groups(api, "admin", &["system:masters"])
}

async fn put(kv: &Arc<dyn Kv>, name: &str, value: &[u8]) {
    let key = Bytes::from(format!("/registry/secrets/default/{name}"));
    let put = Op::Put { key, value: SharedValue(Bytes::copy_from_slice(value)), lease: 0 };
    kv.txn(Txn { success: vec![put], ..Txn::default() }).await.expect("written");
}

async fn raw(kv: &Arc<dyn Kv>, name: &str) -> Option<Vec<u8>> {
    let start = Bytes::from(format!("/registry/secrets/default/{name}"));
    let range = kv.range(RangeRequest { start, limit: 1, ..RangeRequest::default() }).await.expect("read");
    range.items.first().map(|found| found.value.to_vec())
}

/// Waits until the server has seen so many unreadable Secrets, and gives the page of its metrics.
async fn metrics_with_unreadable(admin: &Client, count: usize) -> String {
    let line = format!("coffer_storage_unreadable_objects{{resource=\"secrets\"}} {count}\n");
    for _ in 0..1000 {
        let text = admin.get("/metrics").await.text;
        if text.contains(&line) || (count == 0 && !text.contains("unreadable_objects{")) {
            return text;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("never {count} unreadable Secrets");
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

/// TestAllowUnsafeMalformedObjectDeletionFeature, TestAuthorizeUnsafeDelete and ValidateIgnoreStoreReadError;
/// the texts were measured at kube-apiserver 1.37.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k21_one_corrupt_of_ten_is_named_and_can_be_deleted_unread() {
    let kv = store().await;
    let api = server(&kv, Provider::AesGcm).await;
    let admin = admin(&api);
    for number in 0..10 {
        let secret = json!({"metadata": {"name": format!("s{number}"), "finalizers": ["a.b/c"]}});
        assert_eq!(admin.post(SECRETS, &secret.to_string()).await.code, 201);
    }
    put(&kv, "s3", b"k8s:enc:aesgcm:v1:key1:garbagegarbagegarbagegarbagegarbage").await;
    metrics_with_unreadable(&admin, 1).await;

    // The list names the one.
    let answer = admin.get(SECRETS).await;
    assert_eq!(answer.code, 500);
    let list = answer.json();
    let corrupt = format!(
        "StorageError: corrupt object, Code: 7, Key: /registry/secrets/default/s3, ResourceVersion: 0, \
         AdditionalErrorMsg: {CORRUPT}"
    );
    assert_eq!(list["reason"], "StoreReadError");
    assert_eq!(message(&list), format!("failed to read one or more secrets from the storage: {corrupt}"));
    let cause = json!([{
        "reason": "UnexpectedServerResponse", "message": corrupt, "field": "/registry/secrets/default/s3"
    }]);
    assert_eq!(list["details"]["causes"], cause);
    assert_eq!(admin.get(&format!("{SECRETS}/s4")).await.code, 200);
    assert_eq!(admin.get(&format!("{SECRETS}?fieldSelector=metadata.name=s4")).await.code, 200);

    // Who reads or deletes it is told what to do.
    let bad = format!("{SECRETS}/s3");
    let get = admin.get(&bad).await.json();
    assert_eq!(get["reason"], "InternalError");
    let relative = corrupt.replace("/registry/", "/");
    assert_eq!(message(&get), format!("Internal error occurred: {relative}; {WAY_OUT}"));
    assert_eq!(admin.delete(&bad, "").await.code, 500);

    // What does not go together.
    let invalid = |parts: &[&str]| {
        let part = |text: &&str| format!("{OPTION}: Invalid value: true: {text}");
        let parts: Vec<String> = parts.iter().map(part).collect();
        let joined = if parts.len() == 1 { parts[0].clone() } else { format!("[{}]", parts.join(", ")) };
        format!("DeleteOptions.meta.k8s.io \"\" is invalid: {joined}")
    };
    let together = |name: &str| format!("cannot be set together with .{name}");
    let (policy, orphan) = (together("propagationPolicy"), together("orphanDependents"));
    let (grace, preconditions) = (together("gracePeriodSeconds"), together("preconditions"));
    let body = format!(r#"{{"{OPTION}":true,"orphanDependents":true,"preconditions":{{"uid":"x"}}}}"#);
    for (url, body, expected) in [
        (
            format!("{bad}?{OPTION}=true&gracePeriodSeconds=0&propagationPolicy=Orphan"),
            "",
            invalid(&[&policy, &grace]),
        ),
        (bad.clone(), body.as_str(), invalid(&[&orphan, &preconditions])),
        (
            format!("{SECRETS}?{OPTION}=true"),
            "",
            invalid(&["is not allowed with DELETECOLLECTION, try again after removing the option"]),
        ),
    ] {
        let answer = admin.delete(&url, body).await;
        assert_eq!((answer.code, message(&answer.json())), (422, expected.as_str()), "{url}");
    }

    // `delete` is not enough.
    let unread = |name: &str| format!("{SECRETS}/{name}?{OPTION}=true");
    let rule = json!({"verbs": ["delete"], "apiGroups": [""], "resources": ["secrets"]});
    let role = json!({"metadata": {"name": "deleter"}, "rules": [rule]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    assert_eq!(admin.post(&format!("{rbac}/roles"), &role.to_string()).await.code, 201);
    let binding = json!({
        "metadata": {"name": "deleter"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deleter"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]
    });
    assert_eq!(admin.post(&format!("{rbac}/rolebindings"), &binding.to_string()).await.code, 201);
    let ann = Client::named(&api, "ann");
    let mut answer = ann.delete(&unread("s3"), "").await;
    for _ in 0..500 {
        if message(&answer.json()).contains("not permitted") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        answer = ann.delete(&unread("s3"), "").await;
    }
    assert_eq!(answer.code, 403);
    let expected =
        "secrets \"s3\" is forbidden: not permitted to do \"unsafe-delete-ignore-read-errors\", reason: ";
    assert_eq!(message(&answer.json()), expected);

    // What can be read is not deleted so; what is not there is not found.
    let answer = admin.delete(&unread("s4"), "").await;
    assert_eq!(answer.code, 409);
    assert_eq!(
        message(&answer.json()),
        "Operation cannot be fulfilled on secrets \"s4\": StorageError: invalid object, Code: 4, Key: \
         /registry/secrets/default/s4, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed \
         because the object is decodable from storage"
    );
    assert_eq!(admin.delete(&unread("none"), "").await.code, 404);

    // Its finalizers are not known, so they hold nothing. Whoever watches starts anew.
    let success = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "s3", "kind": "Secret"}, "code": 200
    });
    let dry = admin.delete(&format!("{}&dryRun=All", unread("s3")), "").await;
    assert_eq!((dry.code, dry.json()), (200, success.clone()));
    assert!(raw(&kv, "s3").await.is_some(), "it was tried only");
    let list = admin.get(&format!("{SECRETS}?fieldSelector=metadata.name=s4")).await.json();
    let from = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let mut watch =
        Events::new(admin.open("GET", &format!("{SECRETS}?watch=1&resourceVersion={from}"), &[], b"").await);
    let answer = admin.delete(&unread("s3"), "").await;
    assert_eq!((answer.code, answer.json()), (200, success));
    assert_eq!(raw(&kv, "s3").await, None);
    let event = watch.next().await.expect("an event");
    assert_eq!((&event["type"], &event["object"]["reason"]), (&json!("ERROR"), &json!("StoreReadError")));
    assert_eq!(admin.get(SECRETS).await.json()["items"].as_array().map(Vec::len), Some(9));
    metrics_with_unreadable(&admin, 0).await;
}

/// What tells a wrong padding from a wrong key would let a client decrypt, one byte at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s45_every_failure_to_decrypt_reads_the_same() {
    for provider in [Provider::AesCbc, Provider::AesGcm, Provider::Secretbox] {
        let kv = store().await;
        let api = server(&kv, provider).await;
        let admin = admin(&api);
        let good = json!({"metadata": {"name": "a"}, "data": {"k": "dg=="}}).to_string();
        assert_eq!(admin.post(SECRETS, &good).await.code, 201);
        let sealed = raw(&kv, "a").await.expect("stored");
        let prefix = format!("{}key1:", provider.prefix());
        let body = sealed.strip_prefix(prefix.as_bytes()).expect("under the key").to_vec();
        let mut last = body.clone();
        *last.last_mut().expect("bytes") ^= 1;
        let under = |prefix: &str, body: &[u8]| [prefix.as_bytes(), body].concat();
        let cases = [
            under(&prefix, &last),
            under(&prefix, &body[..body.len() - 16]),
            under(&prefix, &body[..8]),
            under(&prefix, &body[..body.len() - 1]),
            under(&prefix, b""),
            under(&format!("{}gone:", provider.prefix()), &body),
            under("k8s:enc:kms:v2:p:", &body),
            body.clone(),
        ];
        for (number, value) in cases.iter().enumerate() {
            let name = format!("b{number}");
            put(&kv, &name, value).await;
            let url = format!("{SECRETS}/{name}");
            let what = format!("{provider:?} {number}");
            let expected = format!(
                "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /secrets/default/{name}, \
                 ResourceVersion: 0, AdditionalErrorMsg: {CORRUPT}; {WAY_OUT}"
            );
            assert_eq!(message(&admin.get(&url).await.json()), expected, "{what}");
            let object = json!({"metadata": {"name": name}}).to_string();
            let on_write = format!("Internal error occurred: {CORRUPT}; {WAY_OUT}");
            assert_eq!(message(&admin.put(&url, &object).await.json()), on_write, "{what}");
            let patched = admin.patch(&url, "merge", r#"{"data":{}}"#).await;
            assert_eq!(message(&patched.json()), on_write, "{what}");
        }
        metrics_with_unreadable(&admin, cases.len()).await;
        let list = admin.get(SECRETS).await.json();
        let causes = list["details"]["causes"].as_array().expect("causes");
        assert_eq!(causes.len(), cases.len());
        for cause in causes {
            assert!(message(cause).ends_with(&format!("AdditionalErrorMsg: {CORRUPT}")), "{cause}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s45_the_writes_of_an_aesgcm_key_are_a_metric() {
    let kv = store().await;
    let api = server(&kv, Provider::AesGcm).await;
    let admin = admin(&api);
    let line = "coffer_encryption_key_writes_total{provider=\"aesgcm\",key=\"key1\"}";
    assert!(admin.get("/metrics").await.text.contains(&format!("{line} 0\n")));
    for (number, value) in ["YQ==", "Yg=="].into_iter().enumerate() {
        let secret = json!({"metadata": {"name": "s"}, "data": {"k": value}}).to_string();
        let answer = match number {
            0 => admin.post(SECRETS, &secret).await,
            _ => admin.put(&format!("{SECRETS}/s"), &secret).await,
        };
        assert!(answer.code < 300, "{}", answer.text);
    }
    // Reading takes no nonce, and neither does what was not encrypted.
    assert_eq!(admin.get(&format!("{SECRETS}/s")).await.code, 200);
    let text = admin.get("/metrics").await.text;
    assert!(text.contains(&format!("{line} 2\n")), "{text}");
    assert!(!text.contains("key=\"\""), "{text}");
}

#[tokio::test]
async fn a_server_that_starts_on_unreadable_objects_says_so_and_is_ready() {
    let kv = store().await;
    for number in 0..3 {
        put(&kv, &format!("s{number}"), b"k8s:enc:aesgcm:v1:gone:garbagegarbagegarbagegarbage").await;
    }
    // See `Log::start`: the place of the warning has been passed before.
    let earlier = server(&kv, Provider::AesGcm).await;
    let log = Log::start();
    let api = server(&kv, Provider::AesGcm).await;
    wait(|| api.ready()).await;
    let warnings: Vec<Value> = log
        .lines()
        .into_iter()
        .filter(|line| line["level"] == "WARN" && message(&line["fields"]).contains("cannot be read"))
        .collect();
    assert_eq!(warnings.len(), 1, "{}", log.text());
    let fields = &warnings[0]["fields"];
    assert_eq!((&fields["resource"], &fields["count"]), (&json!("secrets"), &json!(3)));
    assert_eq!(fields["error"], "no matching key was found for the provided AES transformer");

    let admin = admin(&api);
    let ready = admin.get("/readyz?verbose").await;
    assert_eq!(ready.code, 200);
    assert!(ready.text.contains("[+]stored-objects ok: cannot be read: 3 secrets\n"), "{}", ready.text);
    assert_eq!(admin.get("/readyz/stored-objects").await.text, "ok: cannot be read: 3 secrets");
    assert!(!admin.get("/livez?verbose").await.text.contains("stored-objects"));
    drop(earlier);
}
