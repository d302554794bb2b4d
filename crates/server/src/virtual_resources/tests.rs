//! Reviews, with texts as a real kube-apiserver v1.37.2 answered them.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::time::Clock;
use coffer_types::{Status, Value};

use super::*;
use crate::authn::{Authn, TokenAuthenticator, TokenUser};
use crate::authz::rbac::tests::{rbac, user};
use crate::authz::{Chain, Mode};
use crate::ports::{Attributes, CreateOnly, UserInfo};
use crate::testing::{TestClock, block_on};

/// The fields of a body.
type Fields<'a> = Vec<(&'a str, &'a str)>;

const TABLE: &str = "\
ClusterRole reader
  get,list core secrets a
  get url /api
ClusterRoleBinding b ClusterRole reader User:ann
";

fn object(pairs: &[(&str, &str)]) -> Value {
    let mut object = Value::object();
    for (path, text) in pairs {
        object.set(&path.split('.').collect::<Vec<_>>(), *text);
    }
    object
}

fn create(review: &dyn CreateOnly, namespace: &str, body: Value) -> Result<Value, Status> {
    let mut attributes =
        Attributes { user: user("ann", &["g"]), namespace: namespace.to_owned(), ..Attributes::default() };
    attributes.user.extra.insert("k".to_owned(), vec!["v".to_owned()]);
    block_on(review.create(&attributes, body, false))
}

fn chain() -> Arc<Chain> {
    let objects = Arc::new(crate::testing::MemoryObjects::default());
    let node = Arc::new(crate::authz::NodeAuthorizer::new(objects).expect("a table"));
    Arc::new(Chain::new(vec![Mode::Rbac], Arc::new(rbac(TABLE)), node))
}

#[test]
fn malformed_access_reviews() {
    let subject = SubjectAccessReviews(chain());
    let own = SelfSubjectAccessReviews(chain());
    let local = LocalSubjectAccessReviews(chain());
    let exactly = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let resource = ("spec.resourceAttributes.verb", "get");
    let path = [("spec.nonResourceAttributes.path", "/"), ("spec.nonResourceAttributes.verb", "get")];
    let cases: Vec<(&dyn CreateOnly, Fields<'_>, String)> = vec![
        (&subject, vec![], format!("[spec: Invalid value: null: {exactly}, spec.user: Invalid value: \"\": at least one of user or group must be specified]")),
        (&subject, vec![("spec.user", "u")], format!("spec: Invalid value: null: {exactly}")),
        (&subject, vec![("spec.user", "u"), resource, path[0], path[1]], format!("spec: Invalid value: {{\"Path\":\"/\",\"Verb\":\"get\"}}: {exactly}")),
        (&subject, vec![resource], "spec.user: Invalid value: \"\": at least one of user or group must be specified".to_owned()),
        (&subject, vec![("metadata.name", "x"), ("spec.user", "u"), resource], "metadata: Invalid value: {\"name\":\"x\"}: must be empty".to_owned()),
        (&own, vec![], format!("spec: Invalid value: null: {exactly}")),
        (&local, vec![("metadata.name", "z"), ("spec.user", "u"), ("spec.resourceAttributes.namespace", "other")], "[metadata: Invalid value: {\"name\":\"z\"}: must be empty except for namespace, spec.resourceAttributes.namespace: Invalid value: \"other\": must match metadata.namespace]".to_owned()),
        (&local, vec![("spec.user", "u"), path[0], path[1]], "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/\",\"Verb\":\"get\"}: disallowed on this kind of request".to_owned()),
    ];
    for (review, body, expected) in cases {
        let status = create(review, "default", object(&body)).expect_err(&expected);
        assert_eq!(status.message, format!(".authorization.k8s.io \"\" is invalid: {expected}"));
        assert_eq!(status.code, 422);
    }
}

#[test]
fn access_reviews_decide() {
    let subject = SubjectAccessReviews(chain());
    let own = SelfSubjectAccessReviews(chain());
    let local = LocalSubjectAccessReviews(chain());
    let by = "RBAC: allowed by ClusterRoleBinding \"b\" of ClusterRole \"reader\" to User \"ann\"";
    let secret = [("spec.resourceAttributes.resource", "secrets"), ("spec.resourceAttributes.verb", "get")];
    let named = [secret[0], secret[1], ("spec.resourceAttributes.name", "a")];
    let cases: Vec<(&dyn CreateOnly, Fields<'_>, bool, &str)> = vec![
        (&subject, [&[("spec.user", "ann")], &named[..]].concat(), true, by),
        (&subject, [&[("spec.user", "ann")], &secret[..]].concat(), false, ""),
        (&subject, [&[("spec.user", "bob")], &named[..]].concat(), false, ""),
        (&own, named.to_vec(), true, by),
        (
            &own,
            vec![("spec.nonResourceAttributes.path", "/api"), ("spec.nonResourceAttributes.verb", "get")],
            true,
            by,
        ),
        (
            &own,
            vec![("spec.nonResourceAttributes.path", "/apis"), ("spec.nonResourceAttributes.verb", "get")],
            false,
            "",
        ),
        (
            &own,
            [&[("spec.resourceAttributes.fieldSelector.rawSelector", "metadata.name=a")], &secret[..]]
                .concat(),
            false,
            "",
        ),
        (
            &local,
            [&[("spec.user", "ann"), ("spec.resourceAttributes.namespace", "default")], &named[..]].concat(),
            true,
            by,
        ),
    ];
    for (review, body, allowed, reason) in cases {
        let answer = create(review, "default", object(&body)).expect("a decision");
        let status = answer.get("status").expect("a status");
        assert_eq!(
            (status.get("allowed"), status.str_at(&["reason"])),
            (Some(&Value::Bool(allowed)), reason),
            "{body:?}"
        );
        assert_eq!(status.get("denied"), None);
    }
}

#[test]
fn rules_reviews_list() {
    let rules = SelfSubjectRulesReviews(chain());
    let status = create(&rules, "", object(&[])).expect_err("no namespace");
    assert_eq!((status.code, status.message.as_str()), (400, "no namespace on request"));
    let answer = create(&rules, "", object(&[("spec.namespace", "default")])).expect("rules");
    let count = |field: &str| answer.at(&["status", field]).and_then(Value::as_array).map(<[Value]>::len);
    assert_eq!((count("resourceRules"), count("nonResourceRules")), (Some(1), Some(1)));
    assert_eq!(answer.at(&["status", "incomplete"]), Some(&Value::Bool(false)));
}

struct Tokens;

#[async_trait]
impl TokenAuthenticator for Tokens {
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String> {
        let found = |audiences: Vec<String>| {
            let user = UserInfo { name: "ann".to_owned(), uid: "7".to_owned(), ..UserInfo::default() };
            Ok(Some(TokenUser { user, source: Default::default(), audiences, warnings: Vec::new() }))
        };
        match token {
            "good" => found(audiences.unwrap_or_default().to_vec()),
            "confused" => found(vec!["elsewhere".to_owned()]),
            "old" => Err("service account token has expired".to_owned()),
            _ => Ok(None),
        }
    }
}

#[test]
fn token_reviews() {
    let authn = Authn::new(None, Arc::new(Tokens), vec!["api".to_owned()], true);
    let reviews = TokenReviews::new(Arc::new(authn));
    let ask = |token: &str| create(&reviews, "", object(&[("spec.token", token)]));
    for (token, code, expected) in [
        ("", 400, "token is required for TokenReview in authentication"),
        ("confused", 500, "Internal error occurred: error validating audiences"),
    ] {
        let status = ask(token).expect_err(expected);
        assert_eq!((status.code, status.message.as_str()), (code, expected));
    }
    for (token, expected) in [
        ("bad", "invalid bearer token"),
        ("old", "[invalid bearer token, service account token has expired]"),
    ] {
        let answer = ask(token).expect("an answer");
        assert_eq!(answer.at(&["status", "authenticated"]), None);
        assert_eq!(answer.str_at(&["status", "error"]), expected);
        assert_eq!(answer.at(&["status", "user"]), Some(&Value::object()));
    }
    let answer = ask("good").expect("an answer");
    let mut expected = Value::from([("authenticated", true)]);
    expected.set(&["user", "username"], "ann");
    expected.set(&["user", "uid"], "7");
    expected.set(&["user", "groups"], vec![Value::from("system:authenticated")]);
    expected.set(&["audiences"], vec![Value::from("api")]);
    assert_eq!(answer.get("status"), Some(&expected));
    let status = create(&reviews, "ns", object(&[("spec.token", "good")])).expect_err("namespaced");
    assert_eq!(status.message, "namespace is not allowed on this type: ns");
}

#[test]
fn self_subject_reviews() {
    let clock: Arc<dyn Clock> = TestClock::at("2026-01-02T03:04:05Z");
    let answer = create(&SelfSubjectReviews::new(clock), "", Value::object()).expect("an answer");
    assert_eq!(answer.str_at(&["metadata", "creationTimestamp"]), "2026-01-02T03:04:05Z");
    assert_eq!(answer.str_at(&["status", "userInfo", "username"]), "ann");
    assert_eq!(answer.at(&["status", "userInfo", "extra", "k"]), Some(&Value::from(vec![Value::from("v")])));
}
