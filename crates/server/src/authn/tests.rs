//! Who is believed to be whom, and what the refusals say.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, HeaderValue};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::*;
use crate::pki::{self, Client, Files, Wanted};
use crate::testing::{FixedRandom, TestClock, block_on};

const NOW: &str = "2026-01-02T03:04:05Z";
const AUDIENCE: &str = "https://kubernetes.default.svc";

struct Fixed;

#[async_trait]
impl TokenAuthenticator for Fixed {
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String> {
        let user = UserInfo { name: token.to_owned(), ..UserInfo::default() };
        match token {
            "ann" | "bob" => Ok(Some(TokenUser {
                user,
                source: AuthenticationSource::TokenFile,
                audiences: audiences.unwrap_or_default().to_vec(),
                warnings: vec!["w".to_owned()],
            })),
            "expired" => Err("service account token has expired".to_owned()),
            _ => Ok(None),
        }
    }
}

fn files(clients: &[Client]) -> Files {
    let mut files = Files::new();
    let now = NOW.parse().expect("a time");
    pki::complete(&mut files, &Wanted { clients: clients.to_vec(), ..Wanted::default() }, now)
        .expect("complete");
    files
}

fn chain(files: &Files, file: &str) -> Vec<Vec<u8>> {
    let der = CertificateDer::from_pem_slice(files[file].expose()).expect("a certificate");
    vec![der.to_vec()]
}

fn client(user: &str, groups: &[&str]) -> Client {
    Client {
        file: "c".into(),
        user: user.into(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
    }
}

fn authn(files: &Files, clock: Arc<TestClock>, anonymous: bool) -> Authn {
    let x509 = X509::new(files["ca.crt"].expose(), clock).expect("a CA");
    Authn::new(Some(x509), Arc::new(Fixed), vec![AUDIENCE.to_owned()], anonymous)
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).expect("a header"));
    }
    headers
}

/// `name groups` or the internal text of the 401.
fn run(authn: &Authn, pairs: &[(&'static str, &str)], certificates: &[Vec<u8>]) -> Result<String, String> {
    let headers = headers(pairs);
    let credentials = Credentials { headers: &headers, certificates };
    match block_on(authn.authenticate(credentials)) {
        Ok(found) => Ok(format!("{} {}", found.user.name, found.user.groups.join(","))),
        Err(status) => {
            assert_eq!((status.code, status.message.as_str()), (401, "Unauthorized"));
            Err(status.internal.unwrap_or_default())
        }
    }
}

#[test]
fn the_order_of_authenticators_and_their_errors() {
    let files = files(&[client("carl", &["g1", "g2"])]);
    let mut other = Files::new();
    pki::complete(
        &mut other,
        &Wanted { clients: vec![client("eve", &["system:masters"])], ..Wanted::default() },
        NOW.parse().expect("a time"),
    )
    .expect("complete");
    let good = chain(&files, "c.crt");
    let foreign = chain(&other, "c.crt");
    let server = chain(&files, "server.crt");
    let authn = authn(&files, TestClock::at(NOW), true);
    let none: &[Vec<u8>] = &[];
    let foreign_error = run(&authn, &[], &foreign).expect_err("another CA");
    assert!(foreign_error.starts_with("verifying certificate SN="), "{foreign_error}");
    let bearer = |token: &'static str| vec![("authorization", token)];
    for (pairs, certificates, expected) in [
        (vec![], none, Ok("system:anonymous system:unauthenticated".to_owned())),
        (bearer("Bearer ann"), none, Ok("ann system:authenticated".to_owned())),
        (bearer("bEaReR  ann"), none, Ok("system:anonymous system:unauthenticated".to_owned())),
        (bearer("Bearer"), none, Ok("system:anonymous system:unauthenticated".to_owned())),
        (bearer("Bearer "), none, Ok("system:anonymous system:unauthenticated".to_owned())),
        (bearer("Basic YTpi"), none, Ok("system:anonymous system:unauthenticated".to_owned())),
        (bearer("Bearer nobody"), none, Err("invalid bearer token".to_owned())),
        (bearer("Bearer expired"), none, Err("service account token has expired".to_owned())),
        (vec![], &good, Ok("carl g1,g2,system:authenticated".to_owned())),
        (bearer("Bearer nobody"), &good, Ok("carl g1,g2,system:authenticated".to_owned())),
        (bearer("Bearer ann"), &foreign, Ok("ann system:authenticated".to_owned())),
        (bearer("Bearer nobody"), &foreign, Err(format!("[{foreign_error}, invalid bearer token]"))),
        (vec![], &server, Err(String::new())),
    ] {
        let found = run(&authn, &pairs, certificates);
        match &expected {
            // The text of the library for a certificate that is not for clients is not ours.
            Err(text) if text.is_empty() => assert!(found.is_err(), "{pairs:?}"),
            _ => assert_eq!(found, expected, "{pairs:?}"),
        }
    }
}

#[test]
fn certificates_have_a_time_and_name_themselves() {
    let files = files(&[client("carl", &[])]);
    let clock = TestClock::at(NOW);
    let x509 = X509::new(files["ca.crt"].expose(), clock.clone()).expect("a CA");
    let leaf = chain(&files, "c.crt");
    let user = x509.authenticate(&leaf).expect("good").expect("named");
    let id = &user.extra[CREDENTIAL_ID][0];
    assert!(id.starts_with("X509SHA256=") && id.len() == 11 + 64, "{id}");
    clock.advance(366 * 24 * 60 * 60);
    assert!(matches!(x509.authenticate(&leaf), Err(CertificateError::Untrusted { .. })));
    clock.advance(-367 * 24 * 60 * 60);
    assert!(matches!(x509.authenticate(&leaf), Err(CertificateError::Untrusted { .. })), "not yet");
    assert!(matches!(x509.authenticate(&[b"junk".to_vec()]), Err(CertificateError::Malformed(_))));
    assert!(X509::new(b"", clock).is_err());
}

/// A chain that holds is remembered, with its user; one that does not is looked at each time.
#[test]
fn a_verified_chain_is_remembered_while_it_is_valid() {
    let files = files(&[client("carl", &["g1"]), Client { file: "d".into(), ..client("dora", &[]) }]);
    let clock = TestClock::at(NOW);
    let x509 = X509::new(files["ca.crt"].expose(), clock.clone()).expect("a CA");
    let (carl, dora) = (chain(&files, "c.crt"), chain(&files, "d.crt"));
    let name = |chain: &[Vec<u8>]| x509.authenticate(chain).map(|user| user.expect("named").name);
    for (leaf, expected, remembered) in
        [(&carl, "carl", 1), (&carl, "carl", 1), (&dora, "dora", 2), (&carl, "carl", 2), (&dora, "dora", 2)]
    {
        assert_eq!(name(leaf).as_deref(), Ok(expected));
        assert_eq!(x509.remembered(), remembered);
    }
    // The server's own certificate is not for clients.
    assert!(x509.authenticate(&chain(&files, "server.crt")).is_err());
    // A chain is more than its leaf: with other certificates after it, it is another one.
    assert_eq!(name(&[carl.clone(), dora.clone()].concat()).as_deref(), Ok("carl"));
    assert_eq!(x509.remembered(), 3);
    // What is remembered does not outlive the certificate.
    clock.advance(366 * 24 * 60 * 60);
    assert!(name(&carl).is_err());
    clock.advance(-366 * 24 * 60 * 60);
    assert_eq!(name(&carl).as_deref(), Ok("carl"));
}

#[test]
fn without_anonymous_no_credentials_is_a_401() {
    let files = files(&[]);
    let authn = authn(&files, TestClock::at(NOW), false);
    assert_eq!(run(&authn, &[], &[]), Err(String::new()));
}

#[test]
fn a_space_before_the_token_is_warned_of() {
    let files = files(&[]);
    let authn = authn(&files, TestClock::at(NOW), true);
    let headers = headers(&[("authorization", "Bearer  ann")]);
    let credentials = Credentials { headers: &headers, certificates: &[] };
    assert_eq!(block_on(authn.authenticate(credentials)).expect("anonymous").warnings, [SPACE_WARNING]);
}

#[test]
fn websocket_protocols() {
    let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket")];
    for (protocols, expected) in [
        ("base64url.bearer.authorization.k8s.io.YW5u, v4.channel.k8s.io", Ok(Some("ann".to_owned()))),
        ("base64url.bearer.authorization.k8s.io.YW5u", Err("missing additional subprotocol")),
        ("v4.channel.k8s.io", Ok(None)),
        ("base64url.bearer.authorization.k8s.io., v4", Err("missing base64.bearer.authorization token")),
        (
            "base64url.bearer.authorization.k8s.io.!, v4",
            Err("invalid base64.bearer.authorization token encoding"),
        ),
        (
            "base64url.bearer.authorization.k8s.io.YQ,base64url.bearer.authorization.k8s.io.YQ",
            Err("multiple base64.bearer.authorization tokens specified"),
        ),
    ] {
        let pairs = [upgrade[0], upgrade[1], ("sec-websocket-protocol", protocols)];
        assert_eq!(websocket_token(&headers(&pairs)), expected, "{protocols}");
        assert_eq!(websocket_token(&headers(&pairs[2..])), Ok(None), "no upgrade");
    }
}

#[test]
fn token_file_users() {
    let file = TokenFile::parse("f", "t1,ann,7,\"g1,g2\"\nt2,bob,8\n,nobody,9\n", vec![AUDIENCE.to_owned()])
        .expect("a file");
    let find = |token: &str, audiences: Option<&[String]>| {
        block_on(file.authenticate(token, audiences)).expect("no error").map(|found| found.user)
    };
    let ann = find("t1", None).expect("ann");
    assert_eq!(
        (ann.name.as_str(), ann.uid.as_str(), ann.groups),
        ("ann", "7", vec!["g1".to_owned(), "g2".to_owned()])
    );
    assert_eq!(find("t2", Some(&[AUDIENCE.to_owned()])).map(|user| user.name), Some("bob".to_owned()));
    assert_eq!(find("t2", Some(&["other".to_owned()])), None);
    assert_eq!(find("", None), None);
    assert_eq!(find("t3", None), None);
}

struct Counting(AtomicUsize);

#[async_trait]
impl TokenAuthenticator for Counting {
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Fixed.authenticate(token, audiences).await
    }
}

#[test]
fn the_cache_remembers_successes_for_ten_seconds() {
    let inner = Arc::new(Counting(AtomicUsize::new(0)));
    let clock = TestClock::at(NOW);
    let cache = TokenCache::new(inner.clone(), clock.clone(), &FixedRandom(1)).expect("a cache");
    let audiences = [vec!["a".to_owned()], vec!["b".to_owned()]];
    // Token, audience, seconds that pass before, calls of the inner one so far.
    for (token, audience, seconds, calls) in [
        ("ann", 0, 0, 1),
        ("ann", 0, 9, 1),
        ("ann", 1, 0, 2),
        ("bob", 0, 0, 3),
        ("ann", 0, 1, 4),
        ("nobody", 0, 0, 5),
        ("nobody", 0, 0, 6),
        ("expired", 0, 0, 7),
        ("expired", 0, 0, 8),
    ] {
        clock.advance(seconds);
        let found = block_on(cache.authenticate(token, Some(&audiences[audience])));
        assert_eq!(matches!(found, Ok(Some(_))), ["ann", "bob"].contains(&token), "{token}");
        assert_eq!(inner.0.load(Ordering::SeqCst), calls, "{token} {audience}");
    }
}

#[test]
fn the_union_takes_the_first_success() {
    struct Failing(&'static str);
    #[async_trait]
    impl TokenAuthenticator for Failing {
        async fn authenticate(&self, _: &str, _: Option<&[String]>) -> Result<Option<TokenUser>, String> {
            Err(self.0.to_owned())
        }
    }
    let ask = |authenticators: Vec<Arc<dyn TokenAuthenticator>>, token: &str| {
        block_on(TokenUnion(authenticators).authenticate(token, None))
            .map(|found| found.map(|found| found.user.name))
    };
    assert_eq!(ask(vec![Arc::new(Failing("a")), Arc::new(Fixed)], "ann"), Ok(Some("ann".to_owned())));
    assert_eq!(ask(vec![Arc::new(Failing("a")), Arc::new(Fixed)], "nobody"), Err("a".to_owned()));
    assert_eq!(ask(vec![Arc::new(Failing("a")), Arc::new(Failing("b"))], "ann"), Err("[a, b]".to_owned()));
    assert_eq!(ask(vec![Arc::new(Fixed)], "nobody"), Ok(None));
}

#[test]
fn names_of_service_accounts() {
    for (name, expected) in [
        ("system:serviceaccount:ns:sa", Some(("ns", "sa"))),
        ("system:serviceaccount:ns:", None),
        ("system:serviceaccount::sa", None),
        ("system:serviceaccount:a:b:c", None),
        ("ann", None),
    ] {
        assert_eq!(split_service_account_username(name), expected, "{name}");
    }
    assert_eq!(service_account_username("ns", "sa"), "system:serviceaccount:ns:sa");
}
