//! The generated CA, the certificates that it signs, the service account key, and kubeconfigs.
//!
//! Everything is returned as bytes; the binary writes files, private ones with mode 0600.
//! Absent on purpose: the file system, and a clock: what must be renewed is a function of `now`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_types::SecretBytes;
use coffer_types::time::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

/// How long the CA lives.
pub const CA_LIFETIME: Duration = Duration::from_secs(10 * 365 * DAY);
/// How long every other certificate lives.
pub const LIFETIME: Duration = Duration::from_secs(365 * DAY);
/// A certificate is renewed when it has less than this left.
pub const RENEW_BEFORE: Duration = Duration::from_secs(30 * DAY);
/// Clocks of clients may be behind by this much.
const BACKDATE: Duration = Duration::from_secs(5 * 60);
const DAY: u64 = 24 * 60 * 60;

/// The names under which every API server is reached.
const SERVER_NAMES: [&str; 7] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
];

/// Why the keys and certificates cannot be made or read. Never holds key bytes.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file that exists is not what its name says: someone changed it.
    #[error("{file}: {why}; restore it, or remove it to have a new one made")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The certificate is there but its private key is not, or the other way round.
    #[error(
        "{missing} is missing although {present} is there; restore it, or remove {present} to have both made anew"
    )]
    HalfPair {
        /// The file that is there.
        present: String,
        /// The file that is not.
        missing: String,
    },
    /// Names that cannot stand in a certificate: a wrong flag.
    #[error("cannot make a certificate: {0}")]
    Refused(#[from] rcgen::Error),
    /// A user with more groups than can be written: a fault of the caller.
    #[error("a generated client certificate holds at most {MAX_GROUPS} groups")]
    TooManyGroups,
}

/// A certificate that a client shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Name of the files, without ending.
    pub file: String,
    /// User name (CN).
    pub user: String,
    /// Groups (O).
    pub groups: Vec<String>,
}

impl Client {
    /// Who may do anything.
    pub fn admin() -> Self {
        Self {
            file: "admin".to_owned(),
            user: "coffer-admin".to_owned(),
            groups: vec!["system:masters".to_owned()],
        }
    }

    /// The node that runs in the same process as the server.
    pub fn node(name: &str) -> Self {
        Self {
            file: "node".to_owned(),
            user: format!("system:node:{name}"),
            groups: vec!["system:nodes".to_owned()],
        }
    }
}

/// What there must be.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Names and addresses of the server beside the usual ones.
    pub extra_names: Vec<String>,
    /// Client certificates.
    pub clients: Vec<Client>,
}

/// File names and contents. Private keys end in `.key`.
pub type Files = BTreeMap<String, SecretBytes>;

/// Completes `files` to what is wanted and gives the names of those that are new and must be written.
///
/// A certificate is renewed, with a new key, when it is near its end, when another CA signed it,
/// or when it lacks a name or group. The CA and the service account key are never replaced,
/// because everything signed by them would be lost: an expired CA is left as it is.
///
/// # Errors
/// When a file that exists is damaged or half of a pair is missing.
pub fn complete(files: &mut Files, wanted: &Wanted, now: Timestamp) -> Result<Vec<String>, PkiError> {
    let mut written = Vec::new();
    if !has_pair(files, "ca")? {
        put_pair(files, &mut written, "ca", new_ca(now)?);
    }
    let ca = Authority::read(files)?;
    let names = server_names(&wanted.extra_names)?;
    if needs_renewal(files, "server", &ca, now, |certificate| {
        names.iter().all(|name| certificate.has_name(name))
    })? {
        put_pair(files, &mut written, "server", ca.sign(server_params(&names), now)?);
    }
    for client in &wanted.clients {
        let fits = |certificate: &Certificate| certificate.is_of(client);
        if needs_renewal(files, &client.file, &ca, now, fits)? {
            put_pair(files, &mut written, &client.file, ca.sign(client_params(client)?, now)?);
        }
    }
    const ACCOUNT_KEY: &str = "service-account.key";
    match files.get(ACCOUNT_KEY) {
        Some(pem) => {
            crate::tokens::jws::SigningKey::from_pem(pem.expose())
                .map_err(|error| unreadable(ACCOUNT_KEY, error))?;
        }
        None => {
            files.insert(ACCOUNT_KEY.to_owned(), KeyPair::generate()?.serialize_pem().into());
            written.push(ACCOUNT_KEY.to_owned());
        }
    }
    Ok(written)
}

/// A kubeconfig that holds everything it needs. Its text is secret, because the key is in it.
pub fn kubeconfig(server: &str, ca: &[u8], certificate: &[u8], key: &SecretBytes) -> SecretBytes {
    let encode = |bytes: &[u8]| zeroize::Zeroizing::new(STANDARD.encode(bytes));
    let text = format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: coffer\n\
         \x20 cluster:\n\
         \x20   server: {server}\n\
         \x20   certificate-authority-data: {}\n\
         users:\n\
         - name: coffer\n\
         \x20 user:\n\
         \x20   client-certificate-data: {}\n\
         \x20   client-key-data: {}\n\
         contexts:\n\
         - name: coffer\n\
         \x20 context:\n\
         \x20   cluster: coffer\n\
         \x20   user: coffer\n\
         current-context: coffer\n",
        *encode(ca),
        *encode(certificate),
        *encode(key.expose()),
    );
    SecretBytes::from(text)
}

fn has_pair(files: &Files, name: &str) -> Result<bool, PkiError> {
    let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
    match (files.contains_key(&certificate), files.contains_key(&key)) {
        (true, true) => Ok(true),
        (false, false) => Ok(false),
        (true, false) => Err(PkiError::HalfPair { present: certificate, missing: key }),
        (false, true) => Err(PkiError::HalfPair { present: key, missing: certificate }),
    }
}

fn put_pair(
    files: &mut Files,
    written: &mut Vec<String>,
    name: &str,
    (certificate, key): (String, SecretBytes),
) {
    for (ending, content) in [("crt", SecretBytes::from(certificate)), ("key", key)] {
        let file = format!("{name}.{ending}");
        files.insert(file.clone(), content);
        written.push(file);
    }
}

fn needs_renewal(
    files: &Files,
    name: &str,
    ca: &Authority,
    now: Timestamp,
    fits: impl Fn(&Certificate) -> bool,
) -> Result<bool, PkiError> {
    if !has_pair(files, name)? {
        return Ok(true);
    }
    let certificate = Certificate::read(files, &format!("{name}.crt"))?;
    let left = certificate.not_after.saturating_sub(now.as_second());
    let near_its_end = left < i64::try_from(RENEW_BEFORE.as_secs()).unwrap_or(i64::MAX);
    // The clock was ahead when it was made.
    let not_yet = now.as_second() < certificate.not_before;
    // A crash between the two files of a renewal leaves the new one beside the old one.
    let halves = !certificate.belongs_to(&key_pair(files, &format!("{name}.key"))?);
    let stranger = certificate.authority_key != ca.certificate.subject_key;
    Ok(near_its_end || not_yet || halves || stranger || !fits(&certificate))
}

fn text<'a>(files: &'a Files, file: &str) -> Result<&'a str, PkiError> {
    let pem = files.get(file).map(SecretBytes::expose).unwrap_or_default();
    std::str::from_utf8(pem).map_err(|error| unreadable(file, error))
}

fn key_pair(files: &Files, file: &str) -> Result<KeyPair, PkiError> {
    KeyPair::from_pem(text(files, file)?).map_err(|error| unreadable(file, error))
}

fn unreadable(file: &str, why: impl ToString) -> PkiError {
    PkiError::Unreadable { file: file.to_owned(), why: why.to_string() }
}

/// What is looked at in a certificate.
struct Certificate {
    not_before: i64,
    not_after: i64,
    public_key: Vec<u8>,
    authority_key: Option<Vec<u8>>,
    subject_key: Option<Vec<u8>>,
    names: Vec<String>,
    common_name: String,
    groups: Vec<String>,
}

impl Certificate {
    fn read(files: &Files, file: &str) -> Result<Self, PkiError> {
        let pem = files.get(file).map(SecretBytes::expose).unwrap_or_default();
        let der = CertificateDer::from_pem_slice(pem).map_err(|error| unreadable(file, error))?;
        let (_, certificate) = X509Certificate::from_der(&der).map_err(|error| unreadable(file, error))?;
        let alternatives = certificate
            .subject_alternative_name()
            .ok()
            .flatten()
            .map(|extension| &extension.value.general_names);
        let mut read = Self {
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            public_key: certificate.public_key().raw.to_vec(),
            authority_key: None,
            subject_key: None,
            names: alternatives.into_iter().flatten().filter_map(shown_name).collect(),
            common_name: certificate
                .subject()
                .iter_common_name()
                .last()
                .and_then(|name| name.as_str().ok())
                .unwrap_or_default()
                .to_owned(),
            groups: certificate
                .subject()
                .iter_organization()
                .filter_map(|name| name.as_str().ok())
                .map(str::to_owned)
                .collect(),
        };
        for extension in certificate.iter_extensions() {
            match extension.parsed_extension() {
                x509_parser::extensions::ParsedExtension::AuthorityKeyIdentifier(identifier) => {
                    read.authority_key = identifier.key_identifier.as_ref().map(|key| key.0.to_vec());
                }
                x509_parser::extensions::ParsedExtension::SubjectKeyIdentifier(identifier) => {
                    read.subject_key = Some(identifier.0.to_vec());
                }
                _ => {}
            }
        }
        Ok(read)
    }

    fn belongs_to(&self, key: &KeyPair) -> bool {
        self.public_key == key.subject_public_key_info()
    }

    fn has_name(&self, name: &SanType) -> bool {
        let name = match name {
            SanType::DnsName(name) => name.as_str().to_owned(),
            SanType::IpAddress(address) => address.to_string(),
            _ => return false,
        };
        self.names.contains(&name)
    }

    fn is_of(&self, client: &Client) -> bool {
        self.common_name == client.user && self.groups == client.groups
    }
}

fn shown_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let address = match bytes.len() {
                4 => IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?),
                _ => IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?),
            };
            Some(address.to_string())
        }
        _ => None,
    }
}

/// The CA with its key.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

impl Authority {
    fn read(files: &Files) -> Result<Self, PkiError> {
        let key = key_pair(files, "ca.key")?;
        let certificate = Certificate::read(files, "ca.crt")?;
        if !certificate.belongs_to(&key) {
            return Err(unreadable("ca.key", "it is the key of another certificate than ca.crt"));
        }
        let issuer = Issuer::from_ca_cert_pem(text(files, "ca.crt")?, key)
            .map_err(|error| unreadable("ca.crt", error))?;
        Ok(Self { issuer, certificate })
    }

    fn sign(&self, mut params: CertificateParams, now: Timestamp) -> Result<(String, SecretBytes), PkiError> {
        set_validity(&mut params, now, LIFETIME);
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate.pem(), key.serialize_pem().into()))
    }
}

fn new_ca(now: Timestamp) -> Result<(String, SecretBytes), PkiError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "coffer-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, now, CA_LIFETIME);
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem().into()))
}

fn server_names(extra: &[String]) -> Result<Vec<SanType>, PkiError> {
    let names = SERVER_NAMES.iter().map(|name| (*name).to_owned()).chain(extra.iter().cloned());
    let mut all = Vec::new();
    for name in names {
        let name = match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.try_into()?),
        };
        if !all.contains(&name) {
            all.push(name);
        }
    }
    Ok(all)
}

fn server_params(names: &[SanType]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "coffer-apiserver");
    params.subject_alt_names = names.to_vec();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

/// The library keeps one value for each type of name; the second group goes in under the bare number of its type.
const MAX_GROUPS: usize = 2;

fn client_params(client: &Client) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let types = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    if types.len() < client.groups.len() {
        return Err(PkiError::TooManyGroups);
    }
    for (kind, group) in types.into_iter().zip(&client.groups) {
        params.distinguished_name.push(kind, group.as_str());
    }
    params.distinguished_name.push(DnType::CommonName, client.user.as_str());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn set_validity(params: &mut CertificateParams, now: Timestamp, lifetime: Duration) {
    let seconds = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
    let now = rcgen::date_time_ymd(1970, 1, 1) + seconds;
    params.not_before = now - BACKDATE;
    params.not_after = now + lifetime;
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_767_323_045;
    const DAYS: i64 = 24 * 60 * 60;

    fn at(days: i64) -> Timestamp {
        Timestamp::from_second(START + days * DAYS).expect("in range")
    }

    fn wanted(extra: &[&str], clients: &[Client]) -> Wanted {
        Wanted {
            extra_names: extra.iter().map(|name| (*name).to_owned()).collect(),
            clients: clients.to_vec(),
        }
    }

    #[test]
    fn what_is_written_when() {
        let both = [Client::admin(), Client::node("n1")];
        let mut files = Files::new();
        let run = |files: &mut Files, wanted: &Wanted, days: i64| {
            complete(files, wanted, at(days)).expect("complete")
        };
        let all = [
            "ca.crt",
            "ca.key",
            "server.crt",
            "server.key",
            "admin.crt",
            "admin.key",
            "node.crt",
            "node.key",
            "service-account.key",
        ];
        assert_eq!(run(&mut files, &wanted(&[], &both), 0), all);
        assert_eq!(run(&mut files, &wanted(&[], &both), 0), [""; 0]);
        assert_eq!(run(&mut files, &wanted(&[], &both), 334), [""; 0], "31 days left");
        assert_eq!(run(&mut files, &wanted(&["localhost"], &both), 1), [""; 0]);
        assert_eq!(
            run(&mut files, &wanted(&["10.0.0.1", "api.example"], &both), 1),
            ["server.crt", "server.key"]
        );
        assert_eq!(
            run(&mut files, &wanted(&["10.0.0.1"], &both), 2),
            [""; 0],
            "a name too many does no harm"
        );
        assert_eq!(
            run(&mut files, &wanted(&[], &[Client::admin(), Client::node("n2")]), 2),
            ["node.crt", "node.key"]
        );
        let old = ["server.crt", "server.key", "admin.crt", "admin.key", "node.crt", "node.key"];
        assert_eq!(run(&mut files, &wanted(&[], &[Client::admin(), Client::node("n2")]), 340), old);

        let mut other = Files::new();
        run(&mut other, &wanted(&[], &both), 0);
        for file in ["ca.crt", "ca.key"] {
            files.insert(file.to_owned(), other[file].clone());
        }
        assert_eq!(run(&mut files, &wanted(&[], &[Client::admin()]), 341), &old[..4], "another CA");
    }

    #[test]
    fn damaged_files_are_named_and_never_replaced() {
        let mut files = Files::new();
        complete(&mut files, &wanted(&[], &[]), at(0)).expect("complete");
        for (file, expected) in [
            ("ca.key", "ca.key: "),
            ("ca.crt", "ca.crt: "),
            ("server.crt", "server.crt: "),
            ("service-account.key", "service-account.key: "),
        ] {
            let mut damaged = files.clone();
            damaged.insert(file.to_owned(), SecretBytes::from("hunter2".to_owned()));
            let error = complete(&mut damaged, &wanted(&[], &[]), at(0)).expect_err("damaged").to_string();
            assert!(error.starts_with(expected) && !error.contains("hunter2"), "{error}");
        }
        files.remove("ca.key");
        let error = complete(&mut files, &wanted(&[], &[]), at(0)).expect_err("half a pair").to_string();
        assert_eq!(
            error,
            "ca.key is missing although ca.crt is there; restore it, or remove ca.crt to have both made anew"
        );
    }

    /// What a crash between the two files of a pair leaves, and what somebody's hand does.
    #[test]
    fn a_key_beside_another_ones_certificate_is_noticed() {
        let (mut files, mut other) = (Files::new(), Files::new());
        let wanted = wanted(&[], &[Client::admin()]);
        complete(&mut files, &wanted, at(0)).expect("made");
        complete(&mut other, &wanted, at(0)).expect("made");
        for pair in ["server", "admin"] {
            for ending in ["crt", "key"] {
                let file = format!("{pair}.{ending}");
                files.insert(file.clone(), other[&file].clone());
                let written = complete(&mut files, &wanted, at(0)).expect("made anew");
                assert_eq!(written, [format!("{pair}.crt"), format!("{pair}.key")], "{file}");
                assert!(complete(&mut files, &wanted, at(0)).expect("whole").is_empty(), "{file}");
            }
        }
        files.insert("ca.key".to_owned(), other["ca.key"].clone());
        assert_eq!(
            complete(&mut files, &wanted, at(0)).expect_err("another CA's key").to_string(),
            "ca.key: it is the key of another certificate than ca.crt; restore it, or remove it to have a new one made"
        );
    }

    #[test]
    fn certificates_from_the_future_are_renewed() {
        let mut files = Files::new();
        let wanted = wanted(&[], &[Client::admin()]);
        complete(&mut files, &wanted, at(100)).expect("made");
        let written = complete(&mut files, &wanted, at(0)).expect("made anew");
        assert_eq!(written, ["server.crt", "server.key", "admin.crt", "admin.key"]);
    }

    #[test]
    fn a_kubeconfig_reads_back() {
        let key = SecretBytes::from("KEY".to_owned());
        let text = kubeconfig("https://127.0.0.1:6443", b"CA", b"CERT", &key);
        let text = std::str::from_utf8(text.expose()).expect("text");
        for line in [
            "    server: https://127.0.0.1:6443",
            "    certificate-authority-data: Q0E=",
            "    client-certificate-data: Q0VSVA==",
            "    client-key-data: S0VZ",
            "    user: coffer",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
        assert!(text.lines().all(|line| line.trim_start().len() == line.len() || line.starts_with("  ")));
    }
}
