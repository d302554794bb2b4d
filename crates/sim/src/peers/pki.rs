//! Certificates and keys for a peer control plane.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority in a directory, with a server certificate for loopback and a
/// service-account key.
pub struct Pki {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Pki {
    /// Makes one in `directory`.
    ///
    /// # Panics
    /// When files cannot be written.
    pub fn create(directory: &Path) -> Self {
        std::fs::create_dir_all(directory).expect("a directory");
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, "peers-ca");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = parameters.self_signed(&key).expect("a certificate");
        std::fs::write(directory.join("ca.crt"), certificate.pem()).expect("written");
        let pki = Self { directory: directory.to_owned(), issuer: Issuer::new(parameters, key) };
        let names = ["localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        pki.certificate("apiserver", "kube-apiserver", &[], &names);
        pki.certificate("admin", "admin", &["system:masters"], &[]);
        let service_accounts = KeyPair::generate().expect("a key");
        std::fs::write(directory.join("sa.key"), service_accounts.serialize_pem()).expect("written");
        std::fs::write(directory.join("sa.pub"), service_accounts.public_key_pem()).expect("written");
        pki
    }

    /// A file of the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The flags by which an API server uses it.
    pub fn server_flags(&self) -> Vec<String> {
        let file = |flag: &str, name: &str| format!("--{flag}={}", self.path(name).display());
        vec![
            file("client-ca-file", "ca.crt"),
            file("tls-cert-file", "apiserver.crt"),
            file("tls-private-key-file", "apiserver.key"),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            file("service-account-signing-key-file", "sa.key"),
            file("service-account-key-file", "sa.pub"),
        ]
    }

    /// Makes `FILE.crt` and `FILE.key` for a user with groups, or for a server with names.
    ///
    /// # Panics
    /// When files cannot be written.
    pub fn certificate(&self, file: &str, user: &str, groups: &[&str], names: &[&str]) {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).expect("valid names");
        parameters.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            parameters.distinguished_name.push(DnType::OrganizationName, *group);
        }
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = parameters.signed_by(&key, &self.issuer).expect("a certificate");
        std::fs::write(self.path(&format!("{file}.crt")), certificate.pem()).expect("written");
        std::fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).expect("written");
    }

    /// Writes a kubeconfig that uses `FILE.crt` and gives its path.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn kubeconfig(&self, file: &str, server: &str) -> PathBuf {
        let text = format!(
            "apiVersion: v1\nkind: Config\n\
             clusters: [{{name: k, cluster: {{server: \"{server}\", certificate-authority: {ca}}}}}]\n\
             users: [{{name: u, user: {{client-certificate: {certificate}, client-key: {key}}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\ncurrent-context: c\n",
            ca = self.path("ca.crt").display(),
            certificate = self.path(&format!("{file}.crt")).display(),
            key = self.path(&format!("{file}.key")).display(),
        );
        let path = self.path(&format!("{file}.kubeconfig"));
        std::fs::write(&path, text).expect("written");
        path
    }
}
