//! Puts authentication, authorization, admission, tokens and controllers together.
//!
//! One place knows how they depend on each other; the binary gives files and flags, the HTTP layer
//! takes what comes out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use coffer_types::random::Random;
use coffer_types::time::Clock;

use crate::admission;
use crate::authn::{
    Authn, BootstrapTokens, CertificateError, TokenAuthenticator, TokenCache, TokenFile, TokenUnion, X509,
};
use crate::authz::{Chain, Mode, NodeAuthorizer, Rbac};
use crate::controllers::{self, Controller};
use crate::ports::{AdmissionChain, CreateOnly, Objects};
use crate::service_addresses::Range;
use crate::tokens::discovery::{self, Documents};
use crate::tokens::jws::{KeyError, PublicKey, SigningKey};
use crate::tokens::request::TokenRequests;
use crate::tokens::{LegacyVerifier, Verifier};
use crate::virtual_resources::{
    LocalSubjectAccessReviews, SelfSubjectAccessReviews, SelfSubjectReviews, SelfSubjectRulesReviews,
    SubjectAccessReviews, TokenReviews,
};

/// What files and flags say.
pub struct SecurityConfig {
    /// PEM of the CAs of client certificates (`--client-ca-file`); without it certificates are not looked at.
    pub client_ca: Option<Vec<u8>>,
    /// `--token-auth-file`: its path and text.
    pub token_file: Option<(String, String)>,
    /// `--enable-bootstrap-token-auth`.
    pub bootstrap_tokens: bool,
    /// `--anonymous-auth`.
    pub anonymous: bool,
    /// `--service-account-issuer`; the first issues, all are accepted.
    pub issuers: Vec<String>,
    /// `--api-audiences`; the issuers when empty.
    pub api_audiences: Vec<String>,
    /// PEM of the key that signs service account tokens.
    pub signing_key: Vec<u8>,
    /// PEMs of more keys that tokens may be signed with (`--service-account-key-file`).
    pub verification_keys: Vec<Vec<u8>>,
    /// `--service-account-extend-token-expiration`.
    pub extend_expiration: bool,
    /// `--authorization-mode`.
    pub modes: Vec<Mode>,
    /// `--enable-admission-plugins`.
    pub admission: admission::Enabled,
    /// Host and port under which clients reach the server.
    pub external_address: String,
    /// PEM of the CA that pods verify the server with.
    pub root_ca: String,
    /// Whether pods without a node are bound to the only one.
    pub bind_pods: bool,
    /// Addresses of Services (`--service-cluster-ip-range`).
    pub service_range: Range,
}

impl SecurityConfig {
    /// One certificate authority and one key for all, nodes and roles decide, and pods go to the only node.
    pub fn of(ca: &[u8], signing_key: &[u8], issuer: &str, external_address: &str) -> Self {
        Self {
            client_ca: Some(ca.to_vec()),
            token_file: None,
            bootstrap_tokens: false,
            anonymous: true,
            issuers: vec![issuer.to_owned()],
            api_audiences: Vec::new(),
            signing_key: signing_key.to_vec(),
            verification_keys: Vec::new(),
            extend_expiration: true,
            modes: vec![Mode::Node, Mode::Rbac],
            admission: admission::Enabled::default(),
            external_address: external_address.to_owned(),
            root_ca: String::from_utf8_lossy(ca).into_owned(),
            bind_pods: true,
            service_range: Range::default(),
        }
    }
}

/// Why it cannot be put together. Each is a fault of a file or flag; none holds key or token bytes.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// The client CA cannot be used.
    #[error("unable to load client CA: {0}")]
    ClientCa(#[from] CertificateError),
    /// A service account key cannot be used.
    #[error("unable to load a service account key: {0}")]
    ServiceAccountKey(#[from] KeyError),
    /// The token file cannot be used.
    #[error("{0}")]
    TokenFile(String),
    /// There is no issuer.
    #[error("service-account-issuer is a required flag")]
    NoIssuer,
    /// The bootstrap policy is malformed: a fault of this program.
    #[error("the bootstrap policy is malformed at line: {0}")]
    BootstrapPolicy(String),
    /// The operating system gave no randomness.
    #[error("{0}")]
    Random(#[from] coffer_types::random::RandomError),
}

/// Everything that decides about requests, and the controllers.
pub struct Security {
    /// Who asks.
    pub authn: Arc<Authn>,
    /// May they.
    pub authorizer: Arc<Chain>,
    /// Roles and bindings; [`controllers::feed_policy`] must run to keep them up to date.
    pub rbac: Arc<Rbac>,
    /// What nodes may read; [`controllers::feed_node_graph`] must run to keep it up to date.
    pub node: Arc<NodeAuthorizer>,
    /// Admission plugins in order.
    pub admission: AdmissionChain,
    /// What stores nothing, by `resource.group` or `resource/subresource`.
    pub create_only: BTreeMap<String, Arc<dyn CreateOnly>>,
    /// OpenID documents, or why the issuer cannot have them.
    pub discovery: Result<Documents, String>,
    /// To be run by [`controllers::run`], each in a task of its own.
    pub controllers: Vec<Box<dyn Controller>>,
    /// Set once the bootstrap policy is stored.
    pub policy_ready: Arc<AtomicBool>,
}

impl Security {
    /// Puts it together over the stored objects.
    ///
    /// # Errors
    /// When a file or flag cannot be used.
    pub fn new(
        config: SecurityConfig,
        objects: Arc<dyn Objects>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, SecurityError> {
        let issuer = config.issuers.first().cloned().ok_or(SecurityError::NoIssuer)?;
        let api_audiences = if config.api_audiences.is_empty() {
            config.issuers.clone()
        } else {
            config.api_audiences.clone()
        };
        let signing_key = SigningKey::from_pem(&config.signing_key)?;
        let keys = verification_keys(&signing_key, &config.verification_keys)?;
        let discovery = discovery::documents(&issuer, &config.external_address, &keys);
        let verifier = Verifier {
            issuers: config.issuers.clone(),
            keys,
            api_audiences: api_audiences.clone(),
            objects: objects.clone(),
            clock: clock.clone(),
        };
        let tokens = token_authenticators(&config, &api_audiences, Arc::new(verifier))?;
        let tokens = TokenCache::new(Arc::new(TokenUnion(tokens)), clock.clone(), &*random)?;
        let x509 = config.client_ca.as_deref().map(|pem| X509::new(pem, clock.clone())).transpose()?;
        let authn = Arc::new(Authn::new(x509, Arc::new(tokens), api_audiences.clone(), config.anonymous));

        let rbac = Arc::new(Rbac::default());
        let node = Arc::new(NodeAuthorizer::new(objects.clone()).map_err(SecurityError::BootstrapPolicy)?);
        let authorizer = Arc::new(Chain::new(config.modes.clone(), rbac.clone(), node.clone()));
        let admission = admission::chain(admission::Dependencies {
            objects: objects.clone(),
            clock: clock.clone(),
            random: random.clone(),
            rbac: rbac.clone(),
            authorizer: authorizer.clone(),
            enabled: config.admission,
        });
        let token_requests = TokenRequests {
            issuer,
            key: signing_key.clone(),
            api_audiences,
            extend_expiration: config.extend_expiration,
            objects,
            clock: clock.clone(),
            random,
        };
        let policy_ready = Arc::new(AtomicBool::new(false));
        let controllers = controllers::all(&controllers::Settings {
            root_ca: config.root_ca,
            policy_ready: policy_ready.clone(),
            signing_key: Some(signing_key),
            bind_pods: config.bind_pods,
            service_range: config.service_range,
        })
        .map_err(SecurityError::BootstrapPolicy)?;
        let create_only = create_only(&authn, &authorizer, token_requests, clock);
        Ok(Self {
            authn,
            authorizer,
            rbac,
            node,
            admission,
            create_only,
            discovery,
            controllers,
            policy_ready,
        })
    }
}

/// The signing key's public half and every key of the files, each once.
fn verification_keys(signing: &SigningKey, pems: &[Vec<u8>]) -> Result<Vec<PublicKey>, KeyError> {
    let mut keys = vec![signing.public().clone()];
    for pem in pems {
        for key in PublicKey::all_from_pem(pem)? {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    Ok(keys)
}

/// Upstream's order: token file, legacy service account tokens, bound ones, bootstrap tokens.
fn token_authenticators(
    config: &SecurityConfig,
    api_audiences: &[String],
    verifier: Arc<Verifier>,
) -> Result<Vec<Arc<dyn TokenAuthenticator>>, SecurityError> {
    let mut authenticators: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
    if let Some((path, text)) = &config.token_file {
        let file = TokenFile::parse(path, text, api_audiences.to_vec()).map_err(SecurityError::TokenFile)?;
        authenticators.push(Arc::new(file));
    }
    authenticators.push(Arc::new(LegacyVerifier(verifier.clone())));
    let bootstrap = config.bootstrap_tokens.then(|| BootstrapTokens {
        objects: verifier.objects.clone(),
        clock: verifier.clock.clone(),
        api_audiences: api_audiences.to_vec(),
    });
    authenticators.push(verifier);
    if let Some(bootstrap) = bootstrap {
        authenticators.push(Arc::new(bootstrap));
    }
    Ok(authenticators)
}

fn create_only(
    authn: &Arc<Authn>,
    authorizer: &Arc<Chain>,
    token_requests: TokenRequests,
    clock: Arc<dyn Clock>,
) -> BTreeMap<String, Arc<dyn CreateOnly>> {
    let all: [(&str, Arc<dyn CreateOnly>); 7] = [
        ("serviceaccounts/token", Arc::new(token_requests)),
        ("tokenreviews.authentication.k8s.io", Arc::new(TokenReviews::new(authn.clone()))),
        ("selfsubjectreviews.authentication.k8s.io", Arc::new(SelfSubjectReviews::new(clock))),
        ("subjectaccessreviews.authorization.k8s.io", Arc::new(SubjectAccessReviews(authorizer.clone()))),
        (
            "selfsubjectaccessreviews.authorization.k8s.io",
            Arc::new(SelfSubjectAccessReviews(authorizer.clone())),
        ),
        (
            "localsubjectaccessreviews.authorization.k8s.io",
            Arc::new(LocalSubjectAccessReviews(authorizer.clone())),
        ),
        (
            "selfsubjectrulesreviews.authorization.k8s.io",
            Arc::new(SelfSubjectRulesReviews(authorizer.clone())),
        ),
    ];
    all.into_iter().map(|(name, resource)| (name.to_owned(), resource)).collect()
}

#[cfg(test)]
mod tests {
    use coffer_types::Value;
    use coffer_types::meta::Meta as _;
    use http::HeaderMap;
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;

    use super::*;
    use crate::authz::rbac::PolicyKind;
    use crate::pki::{self, Client, Files, Wanted};
    use crate::ports::{Attributes, Authenticator as _, Authorizer as _, Change, Credentials, Decision};
    use crate::testing::{FixedRandom, MemoryObjects, TestClock, block_on};

    const NOW: &str = "2026-01-02T03:04:05Z";

    fn config(files: &Files) -> SecurityConfig {
        let (ca, key) = (files["ca.crt"].expose(), files["service-account.key"].expose());
        SecurityConfig {
            token_file: Some(("tokens.csv".to_owned(), "file-token,ann,7\n".to_owned())),
            bootstrap_tokens: true,
            ..SecurityConfig::of(ca, key, "https://kubernetes.default.svc", "127.0.0.1:6443")
        }
    }

    fn files() -> Files {
        let mut files = Files::new();
        let wanted = Wanted { clients: vec![Client::admin(), Client::node("n1")], ..Wanted::default() };
        pki::complete(&mut files, &wanted, NOW.parse().expect("a time")).expect("complete");
        files
    }

    fn security(files: &Files) -> Security {
        let mut account = Value::object();
        account.set_meta_str("namespace", "default");
        account.set_meta_str("name", "robot");
        account.set_meta_str("uid", "robot-uid");
        let objects = MemoryObjects::with(&[("", "serviceaccounts", account)]);
        let security = Security::new(config(files), objects, TestClock::at(NOW), Arc::new(FixedRandom(0)));
        security.expect("put together")
    }

    /// `user: groups`, or the log's text of the 401.
    fn who(security: &Security, token: &str, certificate: Option<&[u8]>) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        if !token.is_empty() {
            headers.insert("authorization", format!("Bearer {token}").parse().expect("a header"));
        }
        let chain: Vec<Vec<u8>> = certificate
            .map(|pem| CertificateDer::from_pem_slice(pem).expect("a certificate").to_vec())
            .into_iter()
            .collect();
        let found =
            block_on(security.authn.authenticate(Credentials { headers: &headers, certificates: &chain }));
        found
            .map(|found| format!("{}: {}", found.user.name, found.user.groups.join(" ")))
            .map_err(|status| status.internal.unwrap_or_default())
    }

    #[test]
    fn everyone_is_known() {
        let files = files();
        let security = security(&files);
        let attributes =
            Attributes { namespace: "default".into(), name: "robot".into(), ..Attributes::default() };
        let requests = &security.create_only["serviceaccounts/token"];
        let answer = block_on(requests.create(&attributes, Value::object(), false)).expect("a token");
        let token = answer.str_at(&["status", "token"]);
        let robot = "system:serviceaccount:default:robot: system:serviceaccounts system:serviceaccounts:default system:authenticated";
        for (token, certificate, expected) in [
            ("", None, Ok("system:anonymous: system:unauthenticated")),
            ("file-token", None, Ok("ann: system:authenticated")),
            (token, None, Ok(robot)),
            ("", Some("admin.crt"), Ok("coffer-admin: system:masters system:authenticated")),
            ("", Some("node.crt"), Ok("system:node:n1: system:nodes system:authenticated")),
            ("nobody", None, Err("invalid bearer token")),
            ("abcdef.0123456789abcdef", None, Err("invalid bearer token")),
        ] {
            let certificate = certificate.map(|file| files[file].expose());
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(who(&security, token, certificate), expected);
        }
        let discovery = security.discovery.expect("documents");
        assert!(discovery.jwks.contains("\"ES256\""));
    }

    #[test]
    fn the_bootstrap_policy_serves_the_generated_identities() {
        let security = security(&files());
        for object in crate::authz::bootstrap::objects().expect("a table") {
            let kind = PolicyKind::ALL.into_iter().find(|kind| kind.kind() == object.kind());
            security.rbac.apply(kind.expect("a kind"), &Change::Applied(Box::new(object)));
        }
        let user = |name: &str, groups: &[&str]| crate::authz::rbac::tests::user(name, groups);
        let node = user("system:node:n1", &["system:nodes"]);
        let stranger = user("system:node:n2", &["system:nodes"]);
        let operator = user("system:serviceaccount:kube-system:coffer-operator", &["system:serviceaccounts"]);
        let admin = user("coffer-admin", &["system:masters"]);
        for (user, verb, group, resource, expected) in [
            (&node, "get", "", "secrets", false),
            (&node, "create", "events.k8s.io", "events", true),
            (&node, "update", "", "secrets", false),
            (&node, "patch", "", "pods/status", true),
            (&stranger, "get", "", "secrets", false),
            (&operator, "create", "", "secrets", true),
            (&operator, "update", "external-secrets.io", "externalsecrets/status", true),
            (&operator, "delete", "", "nodes", false),
            (&admin, "delete", "", "nodes", true),
        ] {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let attributes = Attributes {
                user: user.clone(),
                verb: verb.into(),
                group: group.into(),
                resource: resource.into(),
                subresource: subresource.into(),
                namespace: "default".into(),
                name: "x".into(),
                resource_request: true,
                ..Attributes::default()
            };
            let (decision, _) = block_on(security.authorizer.authorize(&attributes));
            assert_eq!(matches!(decision, Decision::Allow(_)), expected, "{} {verb} {resource}", user.name);
        }
        assert_eq!(security.admission.len(), 13);
        assert_eq!(security.create_only.len(), 7);
        assert_eq!(security.controllers.len(), 13);
    }

    #[test]
    fn bad_files_and_flags_are_named() {
        let files = files();
        type Change = fn(&mut SecurityConfig);
        let cases: [(Change, &str); 5] = [
            (|config| config.issuers.clear(), "service-account-issuer is a required flag"),
            (
                |config| config.signing_key = b"hunter2".to_vec(),
                "unable to load a service account key: data does not contain a valid RSA or ECDSA private key",
            ),
            (
                |config| config.verification_keys = vec![b"hunter2".to_vec()],
                "unable to load a service account key: data does not contain any valid RSA or ECDSA public keys",
            ),
            (
                |config| config.client_ca = Some(b"hunter2".to_vec()),
                "unable to load client CA: malformed certificate: data does not contain any valid certificates",
            ),
            (
                |config| config.token_file = Some(("f".to_owned(), "hunter2".to_owned())),
                "token file 'f' must have at least 3 columns (token, user name, user uid), found 1",
            ),
        ];
        for (change, expected) in cases {
            let mut config = config(&files);
            change(&mut config);
            let objects = Arc::new(MemoryObjects::default());
            let made = Security::new(config, objects, TestClock::at(NOW), Arc::new(FixedRandom(0)));
            assert_eq!(made.err().map(|error| error.to_string()), Some(expected.to_owned()));
        }
    }
}
