//! Compact JWS: what service account tokens are signed with and checked against.
//!
//! Absent on purpose: symmetric algorithms and `none`, so that no token can choose its own strength.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{self, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey, VerificationAlgorithm};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use serde_json::{Map, Value as Json};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey as ParsedKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// Why a key cannot be used. Never holds key bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The file holds no PEM block of a kind that is understood.
    #[error("data does not contain a valid RSA or ECDSA private key")]
    NoPrivateKey,
    /// The file holds no PEM block of a kind that is understood.
    #[error("data does not contain any valid RSA or ECDSA public keys")]
    NoPublicKey,
    /// A curve or key type that Kubernetes does not sign with.
    #[error("unknown private key curve, must be 256, 384, or 521")]
    UnknownCurve,
    /// Malformed or too weak (RSA below 2048 bits).
    #[error("the key is malformed or too weak: {0}")]
    Rejected(&'static str),
}

/// Why a token does not verify; the texts are those of the Go library that Kubernetes uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The signature is wrong.
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    Signature,
    /// The header names an algorithm that the key cannot do.
    #[error("go-jose/go-jose: unknown/unsupported algorithm")]
    Algorithm,
}

/// The kind of a key, which fixes how it signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    P256,
    P384,
    P521,
}

impl KeyKind {
    /// What Kubernetes signs with.
    fn algorithm(self) -> &'static str {
        match self {
            Self::Rsa => "RS256",
            Self::P256 => "ES256",
            Self::P384 => "ES384",
            Self::P521 => "ES512",
        }
    }

    /// How to verify `algorithm` with a key of this kind.
    fn verification(self, algorithm: &str) -> Option<&'static dyn VerificationAlgorithm> {
        Some(match (self, algorithm) {
            (Self::Rsa, "RS256") => &signature::RSA_PKCS1_2048_8192_SHA256,
            (Self::Rsa, "RS384") => &signature::RSA_PKCS1_2048_8192_SHA384,
            (Self::Rsa, "RS512") => &signature::RSA_PKCS1_2048_8192_SHA512,
            (Self::Rsa, "PS256") => &signature::RSA_PSS_2048_8192_SHA256,
            (Self::Rsa, "PS384") => &signature::RSA_PSS_2048_8192_SHA384,
            (Self::Rsa, "PS512") => &signature::RSA_PSS_2048_8192_SHA512,
            (Self::P256, "ES256") => &signature::ECDSA_P256_SHA256_FIXED,
            (Self::P384, "ES384") => &signature::ECDSA_P384_SHA384_FIXED,
            (Self::P521, "ES512") => &signature::ECDSA_P521_SHA512_FIXED,
            _ => return None,
        })
    }
}

/// A key that tokens are checked against.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    kind: KeyKind,
    /// SubjectPublicKeyInfo.
    der: Vec<u8>,
    id: String,
}

impl PublicKey {
    /// Every public key of a PEM file: public keys, certificates and private keys (their public half).
    ///
    /// # Errors
    /// When there is none, or one is malformed.
    pub fn all_from_pem(pem: &[u8]) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
            let Ok((kind, der)) = section else { continue };
            match kind {
                SectionKind::PublicKey => keys.push(Self::from_der(&der)?),
                SectionKind::Certificate => {
                    let (_, certificate) = x509_parser::parse_x509_certificate(&der)
                        .map_err(|_| KeyError::Rejected("not a certificate"))?;
                    keys.push(Self::from_der(certificate.public_key().raw)?);
                }
                SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey | SectionKind::PrivateKey => {
                    keys.push(SigningKey::from_section(kind, &der)?.public);
                }
                _ => {}
            }
        }
        if keys.is_empty() { Err(KeyError::NoPublicKey) } else { Ok(keys) }
    }

    /// From SubjectPublicKeyInfo.
    fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let (_, info) =
            SubjectPublicKeyInfo::from_der(der).map_err(|_| KeyError::Rejected("not a public key"))?;
        let kind = match info.parsed().map_err(|_| KeyError::Rejected("not a public key"))? {
            ParsedKey::RSA(_) => KeyKind::Rsa,
            ParsedKey::EC(_) => {
                let curve =
                    info.algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
                match curve.map(|curve| curve.to_id_string()).as_deref() {
                    Some("1.2.840.10045.3.1.7") => KeyKind::P256,
                    Some("1.3.132.0.34") => KeyKind::P384,
                    Some("1.3.132.0.35") => KeyKind::P521,
                    _ => return Err(KeyError::UnknownCurve),
                }
            }
            _ => return Err(KeyError::UnknownCurve),
        };
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, der));
        Ok(Self { kind, der: der.to_vec(), id })
    }

    /// The key ID that Kubernetes gives: base64url of SHA-256 of the PKIX DER.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the key's owner signs with.
    pub fn algorithm(&self) -> &'static str {
        self.kind.algorithm()
    }

    /// Checks a parsed token.
    ///
    /// # Errors
    /// When the signature or the algorithm does not fit.
    pub fn verify(&self, token: &Jws<'_>) -> Result<(), VerifyError> {
        let algorithm = self.kind.verification(&token.algorithm).ok_or(VerifyError::Algorithm)?;
        UnparsedPublicKey::new(algorithm, &self.der)
            .verify(token.signed.as_bytes(), &token.signature)
            .map_err(|_| VerifyError::Signature)
    }

    /// The key as a JSON Web Key, members in the order that Kubernetes prints them.
    pub fn to_jwk(&self) -> Result<Vec<(&'static str, String)>, KeyError> {
        let (_, info) =
            SubjectPublicKeyInfo::from_der(&self.der).map_err(|_| KeyError::Rejected("not a public key"))?;
        let mut members = vec![("use", "sig".to_owned())];
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match info.parsed().map_err(|_| KeyError::Rejected("not a public key"))? {
            ParsedKey::RSA(rsa) => {
                members.push(("kty", "RSA".to_owned()));
                members.push(("kid", self.id.clone()));
                members.push(("alg", self.algorithm().to_owned()));
                members.push(("n", encode(without_leading_zeros(rsa.modulus))));
                members.push(("e", encode(without_leading_zeros(rsa.exponent))));
            }
            ParsedKey::EC(point) => {
                let coordinates = point.data().get(1..).unwrap_or_default();
                let (x, y) = coordinates.split_at(coordinates.len() / 2);
                let curve = match self.kind {
                    KeyKind::P384 => "P-384",
                    KeyKind::P521 => "P-521",
                    KeyKind::P256 | KeyKind::Rsa => "P-256",
                };
                members.push(("kty", "EC".to_owned()));
                members.push(("kid", self.id.clone()));
                members.push(("crv", curve.to_owned()));
                members.push(("alg", self.algorithm().to_owned()));
                members.push(("x", encode(x)));
                members.push(("y", encode(y)));
            }
            _ => return Err(KeyError::UnknownCurve),
        }
        Ok(members)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PublicKey")
            .field("kind", &self.kind)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A key that tokens are signed with. Its `Debug` shows the public half only.
#[derive(Clone)]
pub struct SigningKey {
    secret: Arc<Secret>,
    public: PublicKey,
}

enum Secret {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
}

impl SigningKey {
    /// The first private key of a PEM file: PKCS#1, SEC1 or PKCS#8.
    ///
    /// # Errors
    /// When there is none, or it is malformed or of a kind that Kubernetes does not sign with.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
            let Ok((kind, der)) = section else { continue };
            if matches!(
                kind,
                SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey | SectionKind::PrivateKey
            ) {
                return Self::from_section(kind, &zeroize::Zeroizing::new(der));
            }
        }
        Err(KeyError::NoPrivateKey)
    }

    fn from_section(kind: SectionKind, der: &[u8]) -> Result<Self, KeyError> {
        if kind != SectionKind::EcPrivateKey {
            let pair = match kind {
                SectionKind::RsaPrivateKey => RsaKeyPair::from_der(der),
                _ => RsaKeyPair::from_pkcs8(der),
            };
            match pair {
                Ok(pair) => return Self::from_rsa(pair),
                Err(_) if kind == SectionKind::RsaPrivateKey => {
                    return Err(KeyError::Rejected("not an RSA key of 2048 to 8192 bits"));
                }
                Err(_) => {}
            }
        }
        for algorithm in [
            &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
            &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
            &signature::ECDSA_P521_SHA512_FIXED_SIGNING,
        ] {
            let pair = match kind {
                SectionKind::EcPrivateKey => EcdsaKeyPair::from_private_key_der(algorithm, der),
                _ => EcdsaKeyPair::from_pkcs8(algorithm, der),
            };
            if let Ok(pair) = pair {
                return Self::from_ecdsa(pair);
            }
        }
        Err(KeyError::UnknownCurve)
    }

    fn from_rsa(pair: RsaKeyPair) -> Result<Self, KeyError> {
        let der = pair.public_key().as_der().map_err(|_| KeyError::Rejected("no public half"))?;
        let public = PublicKey::from_der(der.as_ref())?;
        Ok(Self { secret: Arc::new(Secret::Rsa(pair)), public })
    }

    fn from_ecdsa(pair: EcdsaKeyPair) -> Result<Self, KeyError> {
        let der = pair.public_key().as_der().map_err(|_| KeyError::Rejected("no public half"))?;
        let public = PublicKey::from_der(der.as_ref())?;
        Ok(Self { secret: Arc::new(Secret::Ecdsa(pair)), public })
    }

    /// The public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs claims into a compact token.
    ///
    /// # Errors
    /// When the backend refuses, which no valid key makes it do.
    pub fn sign(&self, claims: &Map<String, Json>) -> Result<zeroize::Zeroizing<String>, KeyError> {
        const REFUSED: KeyError = KeyError::Rejected("the backend refused to sign");
        let header = format!(r#"{{"alg":"{}","kid":"{}"}}"#, self.public.algorithm(), self.public.id());
        let claims = serde_json::to_vec(claims).map_err(|_| REFUSED)?;
        let mut token = zeroize::Zeroizing::new(format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims)
        ));
        let random = SystemRandom::new();
        let signature = match &*self.secret {
            Secret::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, token.as_bytes(), &mut signature)
                    .map_err(|_| REFUSED)?;
                signature
            }
            Secret::Ecdsa(pair) => {
                pair.sign(&random, token.as_bytes()).map_err(|_| REFUSED)?.as_ref().to_vec()
            }
        };
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Ok(token)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// A token taken apart, not verified. No `Debug`: it is a credential.
pub struct Jws<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    algorithm: String,
    /// `kid`, or "".
    pub key_id: String,
    /// The claims. Not to be trusted before [`PublicKey::verify`].
    pub claims: Map<String, Json>,
}

impl<'a> Jws<'a> {
    /// Takes a compact token apart; `None` when it is not one.
    pub fn parse(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let object = |text: &str| serde_json::from_slice::<Map<String, Json>>(&decode(text)?).ok();
        let header = object(header)?;
        let text = |name: &str| header.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        // A critical extension that is not understood makes the token unusable.
        if header.contains_key("crit") {
            return None;
        }
        Some(Self {
            signed,
            signature: decode(signature)?,
            algorithm: text("alg"),
            key_id: text("kid"),
            claims: object(claims)?,
        })
    }
}

fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}
