//! Tokens against vectors made by OpenSSL and by a real kube-apiserver v1.37.2.

use std::sync::Arc;

use coffer_types::time::rfc3339;
use serde_json::json;

use super::jws::{KeyError, SigningKey};
use super::request::TokenRequests;
use super::*;
use crate::ports::{Attributes, CreateOnly as _};
use crate::testing::{FixedRandom, MemoryObjects, TestClock, block_on};

/// When the vectors of OpenSSL were issued; they live an hour.
const ISSUED: &str = "2026-01-02T03:04:05Z";
const ISSUER: &str = "https://kubernetes.default.svc";

macro_rules! testdata {
    ($file:literal) => {
        include_bytes!(concat!("../../testdata/tokens/", $file))
    };
}

fn private_pem(name: &str) -> &'static [u8] {
    match name {
        "rs256" => testdata!("rs256.pem"),
        "es256" => testdata!("es256.pem"),
        "es384" => testdata!("es384.pem"),
        _ => testdata!("es512.pem"),
    }
}

/// Key name, key ID, public PEM, token, JWK.
fn vectors() -> Vec<[String; 5]> {
    let vectors: Vec<Map<String, Json>> = serde_json::from_slice(testdata!("vectors.json")).expect("vectors");
    let text = |vector: &Map<String, Json>, field: &str| vector[field].as_str().expect("text").to_owned();
    vectors
        .iter()
        .map(|vector| ["key", "kid", "public", "token", "jwk"].map(|field| text(vector, field)))
        .collect()
}

#[test]
fn tokens_signed_by_openssl_verify() {
    let vectors = vectors();
    for [name, kid, public, token, jwk] in &vectors {
        let keys = PublicKey::all_from_pem(public.as_bytes()).expect("a key");
        assert_eq!(keys.len(), 1);
        assert_eq!(keys[0].id(), kid);
        assert_eq!(keys[0].algorithm(), name.to_uppercase());
        assert_eq!(SigningKey::from_pem(private_pem(name)).expect("a key").public(), &keys[0]);
        assert_eq!(PublicKey::all_from_pem(private_pem(name)).expect("its public half"), keys);
        let jws = Jws::parse(token).expect("a token");
        assert_eq!(&jws.key_id, kid);
        assert_eq!(keys[0].verify(&jws), Ok(()), "{name}");
        let document = discovery::documents(ISSUER, "h:1", &keys).expect("documents");
        assert_eq!(document.jwks, format!(r#"{{"keys":[{jwk}]}}"#));
        for [other, _, _, token, _] in &vectors {
            let jws = Jws::parse(token).expect("a token");
            assert_eq!(keys[0].verify(&jws).is_ok(), other == name, "{name} on a token of {other}");
        }
    }
}

#[test]
fn our_tokens_verify_and_any_change_is_seen() {
    let claims: Map<String, Json> =
        [("iss".to_owned(), json!("x")), ("sub".to_owned(), json!("y"))].into_iter().collect();
    for [name, ..] in vectors() {
        let key = SigningKey::from_pem(private_pem(&name)).expect("a key");
        let token = key.sign(&claims).expect("signed");
        let jws = Jws::parse(&token).expect("a token");
        assert_eq!(jws.claims, claims);
        assert_eq!(key.public().verify(&jws), Ok(()), "{name}");
        for index in [0, token.len() / 2, token.len() - 10] {
            let mut changed = token.as_bytes().to_vec();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ASCII");
            let verified = Jws::parse(&changed).is_some_and(|jws| key.public().verify(&jws).is_ok());
            assert!(!verified, "{name} at {index}");
        }
    }
}

#[test]
fn nothing_chooses_its_own_strength() {
    let [_, kid, public, token, _] = &vectors()[0];
    let key = &PublicKey::all_from_pem(public.as_bytes()).expect("a key")[0];
    let rest = token.split_once('.').expect("three parts").1;
    let encode = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, text);
    for algorithm in ["none", "HS256", "ES256", "EdDSA", "", "rs256"] {
        let header = encode(&format!(r#"{{"alg":"{algorithm}","kid":"{kid}"}}"#));
        let forged = format!("{header}.{rest}");
        let jws = Jws::parse(&forged).expect("a token");
        assert_eq!(key.verify(&jws), Err(jws::VerifyError::Algorithm), "{algorithm}");
    }
    let critical = format!("{}.{rest}", encode(r#"{"alg":"RS256","crit":["x"]}"#));
    assert!(Jws::parse(&critical).is_none());
    for text in ["", "a", "a.b", "a.b.c", "..", "{}", "e30.e30", "e30.e30.!", "e30.W10.AA", "e30.e30.AA.AA"] {
        assert!(Jws::parse(text).is_none(), "{text}");
    }
}

#[test]
fn keys_that_are_none() {
    for (pem, private, public) in [
        ("", KeyError::NoPrivateKey, KeyError::NoPublicKey),
        ("junk", KeyError::NoPrivateKey, KeyError::NoPublicKey),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            KeyError::UnknownCurve,
            KeyError::UnknownCurve,
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
            KeyError::Rejected("not an RSA key of 2048 to 8192 bits"),
            KeyError::Rejected("not an RSA key of 2048 to 8192 bits"),
        ),
    ] {
        assert_eq!(SigningKey::from_pem(pem.as_bytes()).err(), Some(private), "{pem}");
        assert_eq!(PublicKey::all_from_pem(pem.as_bytes()).err(), Some(public), "{pem}");
    }
}

#[test]
fn s17_keys_and_their_debug_show_no_secret() {
    let key = SigningKey::from_pem(private_pem("es256")).expect("a key");
    let shown = format!("{key:?}");
    assert!(shown.starts_with("SigningKey { public: PublicKey { kind: P256"), "{shown}");
}

#[test]
fn discovery_documents() {
    let key = |name: &str| SigningKey::from_pem(private_pem(name)).expect("a key").public().clone();
    let keys = [key("rs256"), key("es256"), key("es256")];
    let documents = discovery::documents(ISSUER, "127.0.0.1:6443", &keys).expect("documents");
    assert_eq!(
        documents.configuration,
        r#"{"issuer":"https://kubernetes.default.svc","jwks_uri":"https://127.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256","RS256"]}"#
    );
    let real = PublicKey::all_from_pem(testdata!("kube_apiserver.pub.pem")).expect("a key");
    let documents = discovery::documents(ISSUER, "h", &real).expect("documents");
    assert_eq!(documents.jwks.as_bytes(), testdata!("kube_apiserver.jwks.json"));
    for (issuer, expected) in [
        ("", "empty issuer URL"),
        ("http://x", "issuer URL must use https scheme, got: http://x"),
        ("https://x?q", "issuer URL may not include a query, got: https://x?q"),
        ("https://x#f", "issuer URL may not include a fragment, got: https://x#f"),
    ] {
        assert_eq!(discovery::documents(issuer, "h", &[]), Err(expected.to_owned()));
    }
}

fn object(namespace: &str, name: &str, uid: &str) -> Value {
    let mut object = Value::object();
    object.set_meta_str("namespace", namespace);
    object.set_meta_str("name", name);
    object.set_meta_str("uid", uid);
    object
}

fn pod(name: &str, uid: &str, account: &str, node: &str) -> Value {
    let mut pod = object("default", name, uid);
    pod.set(&["spec", "serviceAccountName"], account);
    pod.set_str(&["spec", "nodeName"], node);
    pod
}

fn store() -> Arc<MemoryObjects> {
    MemoryObjects::with(&[
        ("", "serviceaccounts", object("default", "sa1", "sa-uid")),
        ("", "pods", pod("p", "pod-uid", "sa1", "")),
        ("", "pods", pod("on-node", "pod2-uid", "sa1", "n1")),
        ("", "pods", pod("on-gone", "pod3-uid", "sa1", "gone")),
        ("", "pods", pod("other", "pod4-uid", "sa2", "")),
        ("", "nodes", object("", "n1", "node-uid")),
        ("", "secrets", object("default", "s1", "secret-uid")),
    ])
}

fn verifier(objects: Arc<MemoryObjects>, clock: Arc<TestClock>) -> Verifier {
    let vectors = vectors();
    let keys = vectors
        .iter()
        .flat_map(|[_, _, public, ..]| PublicKey::all_from_pem(public.as_bytes()).expect("a key"));
    Verifier {
        issuers: vec![ISSUER.to_owned()],
        keys: keys.collect(),
        api_audiences: vec![ISSUER.to_owned()],
        objects,
        clock,
    }
}

#[test]
fn a_token_of_a_real_kube_apiserver_is_taken() {
    let issuer = "https://kubernetes.default.svc.cluster.local".to_owned();
    let objects = MemoryObjects::with(&[
        ("", "serviceaccounts", object("default", "sa1", "f797a70e-01e4-4a38-bb10-5e97414aff54")),
        ("", "pods", pod("p", "1092c8b7-2305-4219-b130-994c4930b35b", "sa1", "")),
    ]);
    let verifier = Verifier {
        issuers: vec![issuer.clone()],
        keys: PublicKey::all_from_pem(testdata!("kube_apiserver.pub.pem")).expect("a key"),
        api_audiences: vec![issuer.clone()],
        objects,
        clock: TestClock::at("2026-11-30T08:00:00Z"),
    };
    let token = std::str::from_utf8(testdata!("kube_apiserver.jwt")).expect("text");
    let found = block_on(verifier.authenticate(token, None)).expect("valid").expect("ours");
    assert_eq!(found.audiences, [issuer]);
    assert_eq!(found.user.name, "system:serviceaccount:default:sa1");
    assert_eq!(found.user.uid, "f797a70e-01e4-4a38-bb10-5e97414aff54");
    assert_eq!(found.user.groups, ["system:serviceaccounts", "system:serviceaccounts:default"]);
    let extra = |key: &str| found.user.extra[key].as_slice();
    assert_eq!(extra(POD_NAME), ["p"]);
    assert_eq!(extra(POD_UID), ["1092c8b7-2305-4219-b130-994c4930b35b"]);
    assert_eq!(extra(CREDENTIAL_ID), ["JTI=9ec796c2-b3b8-4166-afca-d6e3d2089163"]);
}

/// Signs claims that differ from good ones in what `change` does.
fn token(change: impl FnOnce(&mut Public, &mut Private)) -> zeroize::Zeroizing<String> {
    let issued = ISSUED.parse::<Timestamp>().expect("a time").as_second();
    let mut public = Public {
        issuer: ISSUER.to_owned(),
        subject: "system:serviceaccount:default:sa1".to_owned(),
        audiences: vec![ISSUER.to_owned()],
        id: "j".to_owned(),
        expires: Some(issued + 3600),
        not_before: Some(issued),
        issued_at: Some(issued),
    };
    let mut private = Private {
        namespace: "default".to_owned(),
        service_account: Bound { name: "sa1".to_owned(), uid: "sa-uid".to_owned() },
        ..Private::default()
    };
    change(&mut public, &mut private);
    SigningKey::from_pem(private_pem("es256"))
        .expect("a key")
        .sign(&claims::encode(&public, &private))
        .expect("signed")
}

fn bound(name: &str, uid: &str) -> Option<Bound> {
    Some(Bound { name: name.to_owned(), uid: uid.to_owned() })
}

#[test]
fn each_condition_of_a_token() {
    type Change = Box<dyn FnOnce(&mut Public, &mut Private)>;
    let issued = ISSUED.parse::<Timestamp>().expect("a time").as_second();
    let invalidated = "service account token has been invalidated";
    let cases: Vec<(&str, i64, Change, Result<bool, &str>)> = vec![
        ("good", 0, Box::new(|_, _| {}), Ok(true)),
        ("another issuer", 0, Box::new(|public, _| public.issuer = "https://x".into()), Ok(false)),
        ("last moment with leeway", 3660, Box::new(|_, _| {}), Ok(true)),
        ("expired", 3661, Box::new(|_, _| {}), Err("service account token has expired")),
        ("early, within leeway", -60, Box::new(|_, _| {}), Ok(true)),
        ("too early", -61, Box::new(|_, _| {}), Err("service account token is not valid yet")),
        (
            "from the future",
            0,
            Box::new(move |public, _| public.issued_at = Some(issued + 61)),
            Err("service account token is issued in the future"),
        ),
        (
            "other audience",
            0,
            Box::new(|public, _| public.audiences = vec!["a".into(), "b".into()]),
            Err(
                "token audiences [\"a\" \"b\"] is invalid for the target audiences [\"https://kubernetes.default.svc\"]",
            ),
        ),
        ("no audience", 0, Box::new(|public, _| public.audiences = vec![]), Ok(true)),
        (
            "account gone",
            0,
            Box::new(|_, private| private.service_account.name = "gone".into()),
            Err("serviceaccounts \"gone\" not found"),
        ),
        (
            "account made anew",
            0,
            Box::new(|_, private| private.service_account.uid = "old".into()),
            Err("service account UID (sa-uid) does not match claim (old)"),
        ),
        ("pod there", 0, Box::new(|_, private| private.pod = bound("p", "pod-uid")), Ok(true)),
        ("pod gone", 0, Box::new(|_, private| private.pod = bound("gone", "x")), Err(invalidated)),
        (
            "pod made anew",
            0,
            Box::new(|_, private| private.pod = bound("p", "old")),
            Err("pod UID (pod-uid) does not match service account pod ref claim (old)"),
        ),
        ("secret there", 0, Box::new(|_, private| private.secret = bound("s1", "secret-uid")), Ok(true)),
        ("secret gone", 0, Box::new(|_, private| private.secret = bound("gone", "x")), Err(invalidated)),
        (
            "secret made anew",
            0,
            Box::new(|_, private| private.secret = bound("s1", "old")),
            Err("secret UID (secret-uid) does not match service account secret ref claim (old)"),
        ),
        ("node there", 0, Box::new(|_, private| private.node = bound("n1", "node-uid")), Ok(true)),
        ("node gone", 0, Box::new(|_, private| private.node = bound("gone", "x")), Err(invalidated)),
        (
            "node made anew",
            0,
            Box::new(|_, private| private.node = bound("n1", "old")),
            Err("node UID (node-uid) does not match service account node ref claim (old)"),
        ),
        (
            "node of a pod is only information",
            0,
            Box::new(|_, private| {
                private.pod = bound("p", "pod-uid");
                private.node = bound("gone", "");
            }),
            Ok(true),
        ),
    ];
    for (name, seconds, change, expected) in cases {
        let clock = TestClock::at(ISSUED);
        clock.advance(seconds);
        let found = block_on(verifier(store(), clock).authenticate(&token(change), None));
        assert_eq!(found.map(|found| found.is_some()), expected.map_err(str::to_owned), "{name}");
    }
}

#[test]
fn deleted_objects_invalidate_after_the_leeway() {
    for (resource, name, expected) in [
        ("serviceaccounts", "sa1", "service account default/sa1 has been deleted"),
        ("pods", "p", "service account token has been invalidated"),
    ] {
        for (deleted, expected) in [
            ("2026-01-02T03:03:05Z", Ok(true)),
            ("2026-01-02T03:03:04Z", Err(expected.to_owned())),
            ("soon", Err(expected.to_owned())),
        ] {
            let objects = store();
            let mut object = block_on(objects.get(&GroupResource::new("", resource), "default", name, true))
                .expect("read")
                .expect("there");
            object.set_meta_str("deletionTimestamp", deleted);
            objects.put("", resource, object);
            let token = token(|_, private| private.pod = bound("p", "pod-uid"));
            let found = block_on(verifier(objects, TestClock::at(ISSUED)).authenticate(&token, None));
            assert_eq!(found.map(|found| found.is_some()), expected, "{resource} {deleted}");
        }
    }
}

#[test]
fn keys_are_chosen_by_their_id() {
    let mut verifier = verifier(store(), TestClock::at(ISSUED));
    verifier.keys.retain(|key| key.algorithm() == "RS256");
    let found = block_on(verifier.authenticate(&token(|_, _| {}), None));
    assert_eq!(found.map(|found| found.is_some()), Err("invalid signature, no keys found".to_owned()));
}

fn legacy_token(changes: &[(&str, &str)]) -> zeroize::Zeroizing<String> {
    let mut claims = Map::new();
    for (name, text) in [
        ("iss", LEGACY_ISSUER),
        ("sub", "system:serviceaccount:default:sa1"),
        ("kubernetes.io/serviceaccount/namespace", "default"),
        ("kubernetes.io/serviceaccount/secret.name", "t1"),
        ("kubernetes.io/serviceaccount/service-account.name", "sa1"),
        ("kubernetes.io/serviceaccount/service-account.uid", "sa-uid"),
    ]
    .iter()
    .chain(changes)
    {
        claims.insert((*name).to_owned(), json!(text));
    }
    // Deterministic, so that two calls give the same token.
    SigningKey::from_pem(private_pem("rs256")).expect("a key").sign(&claims).expect("signed")
}

#[test]
fn legacy_tokens_and_their_secret() {
    let good = legacy_token(&[]);
    let run = |token: &str, change: &dyn Fn(&mut Value)| {
        let objects = store();
        let mut secret = object("default", "t1", "t-uid");
        secret.set(&["data", "token"], SecretBytes::from(good.to_string()));
        change(&mut secret);
        if !secret.name().is_empty() {
            objects.put("", "secrets", secret);
        }
        let verifier = Arc::new(verifier(objects.clone(), TestClock::at(ISSUED)));
        let found = block_on(LegacyVerifier(verifier).authenticate(token, None));
        (found.map(|found| found.map(|found| found.user.name)), objects.log.lock().clone())
    };
    let (found, log) = run(&good, &|_| {});
    assert_eq!(found, Ok(Some("system:serviceaccount:default:sa1".to_owned())));
    assert_eq!(log, ["update secrets default/t1"], "the day of use is recorded");
    let (_, log) = run(&good, &|secret| secret.set(&["metadata", "labels", LAST_USED], "2026-01-02"));
    assert_eq!(log, [""; 0]);
    let (_, log) = run(&good, &|secret| secret.set(&["metadata", "labels", LAST_USED], "2026-01-03"));
    assert_eq!(log, [""; 0]);

    let refused = |token: &str, change: &dyn Fn(&mut Value)| run(token, change).0.expect_err("refused");
    for (claim, expected) in [
        ("sub", "sub claim is missing"),
        ("kubernetes.io/serviceaccount/namespace", "namespace claim is missing"),
        ("kubernetes.io/serviceaccount/secret.name", "secretName claim is missing"),
        ("kubernetes.io/serviceaccount/service-account.name", "serviceAccountName claim is missing"),
        ("kubernetes.io/serviceaccount/service-account.uid", "serviceAccountUID claim is missing"),
    ] {
        assert_eq!(refused(&legacy_token(&[(claim, "")]), &|_| {}), expected);
    }
    assert_eq!(
        refused(&legacy_token(&[("sub", "system:serviceaccount:default:sa2")]), &|_| {}),
        "sub claim is invalid"
    );
    assert_eq!(refused(&good, &|secret| secret.set_meta_str("name", "")), "Token has been invalidated");
    assert_eq!(
        refused(&good, &|secret| secret.set_meta_str("deletionTimestamp", ISSUED)),
        "Token has been invalidated"
    );
    assert_eq!(refused(&legacy_token(&[("x", "y")]), &|_| {}), "Token does not match server's copy");
    assert_eq!(
        refused(&good, &|secret| secret.set(&["metadata", "labels", INVALID_SINCE], "2025-01-01")),
        "the token in secret default/t1 for service account default/sa1 has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token"
    );
}

fn request(body: Json) -> Value {
    fn value(json: &Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => Value::Int(number.as_i64().expect("whole")),
            Json::String(text) => Value::from(text.as_str()),
            Json::Array(items) => Value::Array(items.iter().map(value).collect()),
            Json::Object(members) => {
                Value::Object(members.iter().map(|(key, json)| (key.clone(), value(json))).collect())
            }
        }
    }
    value(&body)
}

fn issue(name: &str, body: Json) -> Result<Value, Status> {
    let requests = TokenRequests {
        issuer: ISSUER.to_owned(),
        key: SigningKey::from_pem(private_pem("es256")).expect("a key"),
        api_audiences: vec![ISSUER.to_owned()],
        extend_expiration: true,
        objects: store(),
        clock: TestClock::at(ISSUED),
        random: Arc::new(FixedRandom(0)),
    };
    let attributes = Attributes { namespace: "default".into(), name: name.into(), ..Attributes::default() };
    block_on(requests.create(&attributes, request(body), false))
}

use coffer_types::Status;

#[test]
fn token_requests_are_refused_as_upstream() {
    let pod = |name: &str, uid: &str| json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid}}});
    for (name, body, code, expected) in [
        ("nope", json!({"spec": {}}), 404, "serviceaccounts \"nope\" not found"),
        (
            "sa1",
            json!({"metadata": {"name": "b"}}),
            422,
            "TokenRequest.authentication.k8s.io \"sa1\" is invalid: metadata.name: Invalid value: \"b\": must match the service account name if specified",
        ),
        (
            "sa1",
            json!({"metadata": {"namespace": "b"}}),
            422,
            "TokenRequest.authentication.k8s.io \"sa1\" is invalid: metadata.namespace: Invalid value: \"b\": must match the service account namespace if specified",
        ),
        (
            "sa1",
            json!({"metadata": {"uid": "b"}}),
            409,
            "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"sa1\": the UID in the token request (b) does not match the UID of the service account (sa-uid)",
        ),
        (
            "sa1",
            json!({"spec": {"expirationSeconds": 1}}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes",
        ),
        (
            "sa1",
            json!({"spec": {"expirationSeconds": 599}}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
        ),
        (
            "sa1",
            json!({"spec": {"expirationSeconds": 4_294_967_297_i64}}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (
            "sa1",
            json!({"spec": {"attestations": {"a": ["b"]}}}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.attestations: Invalid value: {\"a\":[\"b\"]}: attestations may only be specified with a webhook bound object reference",
        ),
        (
            "sa1",
            json!({"spec": {"boundObjectRef": {"kind": "Foo", "apiVersion": "apps/v1"}}}),
            400,
            "cannot bind token to object of type apps/v1, Kind=Foo",
        ),
        (
            "sa1",
            json!({"spec": {"boundObjectRef": {"kind": "Foo", "apiVersion": "v1"}}}),
            400,
            "cannot bind token to object of type /v1, Kind=Foo",
        ),
        ("sa1", pod("gone", ""), 404, "pods \"gone\" not found"),
        (
            "sa1",
            pod("other", ""),
            400,
            "cannot bind token for serviceaccount \"sa1\" to pod running with different serviceaccount name.",
        ),
        (
            "sa1",
            pod("p", "zz"),
            409,
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (zz) does not match the UID in record. The object might have been deleted and then recreated",
        ),
    ] {
        let status = issue(name, body).expect_err(expected);
        assert_eq!((status.code, status.message.as_str()), (code, expected));
    }
}

#[test]
fn token_requests_are_answered_as_upstream() {
    let reference = |kind: &str, name: &str| json!({"kind": kind, "apiVersion": "v1", "name": name});
    let day = |seconds: i64| {
        rfc3339(
            Timestamp::from_second(ISSUED.parse::<Timestamp>().expect("a time").as_second() + seconds)
                .expect("in range"),
        )
    };
    // Spec of the request; lifetime that the answer tells; lifetime in the token; what else the token says.
    for (spec, told, real, bound) in [
        (json!({}), 3600, 3600, json!({})),
        (json!({"expirationSeconds": 600, "audiences": ["a", "b"]}), 600, 600, json!({})),
        (json!({"expirationSeconds": 4_294_967_296_i64}), 4_294_967_296, 4_294_967_296, json!({})),
        (json!({"expirationSeconds": 3607}), 3607, 3607, json!({})),
        (
            json!({"expirationSeconds": 3607, "boundObjectRef": reference("Pod", "p")}),
            3607,
            31_536_000,
            json!({"pod": {"name": "p", "uid": "pod-uid"}, "warnafter": 3607}),
        ),
        (
            json!({"expirationSeconds": 3608, "boundObjectRef": reference("Pod", "p")}),
            3608,
            3608,
            json!({"pod": {"name": "p", "uid": "pod-uid"}}),
        ),
        (
            json!({"expirationSeconds": 3607, "audiences": ["x"], "boundObjectRef": reference("Pod", "p")}),
            3607,
            3607,
            json!({"pod": {"name": "p", "uid": "pod-uid"}}),
        ),
        (
            json!({"boundObjectRef": reference("Pod", "on-node")}),
            3600,
            3600,
            json!({"pod": {"name": "on-node", "uid": "pod2-uid"}, "node": {"name": "n1", "uid": "node-uid"}}),
        ),
        (
            json!({"boundObjectRef": reference("Pod", "on-gone")}),
            3600,
            3600,
            json!({"pod": {"name": "on-gone", "uid": "pod3-uid"}, "node": {"name": "gone"}}),
        ),
        (
            json!({"boundObjectRef": reference("Node", "n1")}),
            3600,
            3600,
            json!({"node": {"name": "n1", "uid": "node-uid"}}),
        ),
        (
            json!({"boundObjectRef": reference("Secret", "s1")}),
            3600,
            3600,
            json!({"secret": {"name": "s1", "uid": "secret-uid"}}),
        ),
    ] {
        let answer = issue("sa1", json!({"spec": spec})).expect("issued");
        assert_eq!(
            (answer.kind(), answer.name(), answer.namespace(), answer.uid()),
            ("TokenRequest", "sa1", "default", "sa-uid")
        );
        assert_eq!(answer.str_at(&["metadata", "creationTimestamp"]), ISSUED);
        assert_eq!(answer.str_at(&["status", "expirationTimestamp"]), day(told), "{spec}");
        assert_eq!(answer.at(&["spec", "expirationSeconds"]), Some(&Value::Int(told)));

        let issued = ISSUED.parse::<Timestamp>().expect("a time").as_second();
        let mut kubernetes =
            json!({"namespace": "default", "serviceaccount": {"name": "sa1", "uid": "sa-uid"}});
        for (key, value) in bound.as_object().expect("members") {
            kubernetes[key] = if key == "warnafter" { json!(issued + 3607) } else { value.clone() };
        }
        let audiences = spec.get("audiences").cloned().unwrap_or(json!([ISSUER]));
        let jws = Jws::parse(answer.str_at(&["status", "token"])).expect("a token");
        let expected = json!({
            "aud": audiences, "exp": issued + real, "iat": issued, "iss": ISSUER,
            "jti": "00000000-0000-4000-8000-000000000000", "kubernetes.io": kubernetes, "nbf": issued,
            "sub": "system:serviceaccount:default:sa1",
        });
        assert_eq!(Json::Object(jws.claims), expected);
    }
}

#[test]
fn s17_no_token_in_the_debug_of_an_answer() {
    let answer = issue("sa1", json!({"spec": {}})).expect("issued");
    let token = answer.str_at(&["status", "token"]).to_owned();
    let shown = format!("{answer:?}");
    assert!(!token.is_empty() && token.split('.').all(|part| !shown.contains(part)));
}

#[test]
fn s17_refusals_and_logs_never_hold_the_token() {
    let good = token(|_, _| {});
    let legacy = legacy_token(&[]);
    let forged = format!("{}AAAA", &good[..good.len() - 4]);
    let expired = token(|public, _| public.expires = Some(0));
    let logs = crate::testing::logs_of(|| {
        for text in [forged.as_str(), &expired, &legacy, "canary.canary.canary"] {
            let verifier = Arc::new(verifier(store(), TestClock::at(ISSUED)));
            let union = crate::authn::TokenUnion(vec![Arc::new(LegacyVerifier(verifier.clone())), verifier]);
            let authn = crate::authn::Authn::new(None, Arc::new(union), vec![ISSUER.to_owned()], true);
            let headers = [("authorization", format!("Bearer {text}"))];
            let headers: http::HeaderMap = headers
                .into_iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().expect("a header")))
                .collect();
            let credentials = crate::ports::Credentials { headers: &headers, certificates: &[] };
            let status = block_on(crate::ports::Authenticator::authenticate(&authn, credentials))
                .expect_err("refused");
            let shown = format!("{status:?} {status}");
            assert!(text.split('.').all(|part| !shown.contains(part)), "{shown}");
        }
    });
    for text in [forged.as_str(), &expired, &legacy, "canary.canary.canary"] {
        assert!(text.split('.').all(|part| !logs.contains(part)), "{logs}");
    }
}
