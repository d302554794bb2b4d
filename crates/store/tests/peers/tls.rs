//! TLS to a real etcd.

use std::path::{Path, PathBuf};

use coffer_store::etcd::{ConnectError, EtcdKv};
use coffer_types::SecretBytes;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use crate::etcd::Etcd;
use crate::kv::helpers::{put, read, show, single};

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("signed");
        Self { issuer, directory: tempfile::tempdir().expect("a directory") }
    }

    /// A certificate and its key, as PEM.
    fn issue(&self, names: &[&str]) -> (String, String) {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("names");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        (certificate.pem(), key.serialize_pem())
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).expect("written");
        path
    }

    fn pem(&self) -> String {
        self.issuer.pem()
    }
}

fn flag(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

#[tokio::test]
// TestTLSConnection
async fn tls_with_client_certificates() {
    let authority = Authority::new();
    let (certificate, key) = authority.issue(&["127.0.0.1"]);
    let arguments = [
        flag("--cert-file", &authority.write("server.crt", &certificate)),
        flag("--key-file", &authority.write("server.key", &key)),
        flag("--trusted-ca-file", &authority.write("ca.crt", &authority.pem())),
        "--client-cert-auth".into(),
    ];
    let server = Etcd::start_with("https", &arguments).await;
    let (certificate, key) = authority.issue(&["client"]);
    let mut config = server.config();
    config.ca = Some(authority.pem().into_bytes());
    config.identity = Some((certificate.into_bytes(), SecretBytes::from(key)));
    let kv = EtcdKv::connect(config.clone()).await.expect("connects");
    assert_eq!(put(&kv, "/a", "1").await, 2);
    assert_eq!(show(&read(&kv, single("/a")).await), ["/a=1@2.2.1"]);

    let refused = async |config| EtcdKv::connect(config).await.map(|_| ()).expect_err("it must not connect");
    let mut anonymous = config.clone();
    anonymous.identity = None;
    let error = refused(anonymous).await;
    assert!(matches!(&error, ConnectError::Unreachable(text) if text.contains(&server.url())), "{error}");

    let mut stranger = config.clone();
    stranger.ca = Some(Authority::new().pem().into_bytes());
    let error = refused(stranger).await.to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");

    let mut system = config.clone();
    system.ca = None;
    let error = refused(system).await.to_string();
    assert!(error.contains("invalid peer certificate") || error.contains("certificates"), "{error}");

    let mut garbage = config;
    garbage.identity = Some((b"no certificate".to_vec(), SecretBytes::from("hunter2-key".to_owned())));
    let error = refused(garbage).await;
    assert!(matches!(&error, ConnectError::InvalidEndpoint { .. }), "{error:?}");
    assert!(!error.to_string().contains("hunter2") && !format!("{error:?}").contains("hunter2"), "{error:?}");
}
