//! Certificates and keys for the servers and clients of a conformance run.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority in a directory.
pub(crate) struct Pki {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Pki {
    /// Makes one, with a key for service accounts.
    pub(crate) fn create(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, "conformance-ca");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = parameters.self_signed(&key)?;
        std::fs::write(directory.join("ca.crt"), certificate.pem())?;
        std::fs::write(directory.join("ca.key"), key.serialize_pem())?;
        let accounts = KeyPair::generate()?;
        std::fs::write(directory.join("sa.key"), accounts.serialize_pem())?;
        std::fs::write(directory.join("sa.pub"), accounts.public_key_pem())?;
        Ok(Self { directory: directory.to_owned(), issuer: Issuer::new(parameters, key) })
    }

    /// A file of the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// `--FLAG=FILE` for a file of the directory.
    pub(crate) fn flag(&self, flag: &str, name: &str) -> String {
        format!("--{flag}={}", self.path(name).display())
    }

    /// Makes `FILE.crt` and `FILE.key` for a user of a group, and for a server with names.
    pub(crate) fn certificate(
        &self,
        file: &str,
        user: &str,
        group: &str,
        names: &[&str],
    ) -> anyhow::Result<()> {
        let key = KeyPair::generate()?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names)?;
        parameters.distinguished_name.push(DnType::CommonName, user);
        if !group.is_empty() {
            parameters.distinguished_name.push(DnType::OrganizationName, group);
        }
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        std::fs::write(self.path(&format!("{file}.crt")), certificate.pem())?;
        std::fs::write(self.path(&format!("{file}.key")), key.serialize_pem())?;
        Ok(())
    }

    /// Writes a kubeconfig that uses `FILE.crt`.
    pub(crate) fn kubeconfig(&self, file: &str, server: &str) -> anyhow::Result<PathBuf> {
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
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}
