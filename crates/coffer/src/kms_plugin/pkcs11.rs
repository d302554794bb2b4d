//! A token behind PKCS#11: keys that never leave the hardware.
//!
//! All AES keys of one label are one key in versions; the one with the largest ID writes. A
//! rotation makes another key of the label, with a larger ID.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use coffer_crypto::kms::{Annotations, KmsEncrypted};
use coffer_keys::kms_plugin::{Backend, BackendError};
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;
use parking_lot::Mutex;

use crate::exit::Failure;

const NONCE: usize = 12;
const TAG_BITS: u64 = 128;

/// What leads to a key.
pub(crate) struct Pkcs11Config {
    /// The vendor's library.
    pub(crate) module: PathBuf,
    /// Label of the token.
    pub(crate) token: String,
    /// Label of the keys.
    pub(crate) key: String,
    pub(crate) pin_file: PathBuf,
    pub(crate) random: Arc<dyn Random>,
}

/// The backend.
pub(crate) struct Token(Arc<Inner>);

struct Inner {
    config: Pkcs11Config,
    library: Pkcs11,
    /// One call at a time: a login is the whole process's. Holds the PIN that was refused, which is not
    /// tried again: a token locks itself after a few.
    refused: Mutex<Option<SecretBytes>>,
}

/// One version of the key.
struct Version {
    id: Vec<u8>,
    handle: ObjectHandle,
}

impl Token {
    /// Loads the library.
    pub(crate) fn new(config: Pkcs11Config) -> Result<Self, Failure> {
        let shown = config.module.display().to_string();
        let library = Pkcs11::new(&config.module).map_err(|error| {
            Failure::unreachable(format!("cannot load {shown}: {error}"))
                .next("name the PKCS#11 library of the token's vendor with --pkcs11-module")
        })?;
        library
            .initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK))
            .map_err(|error| Failure::unreachable(format!("{shown} cannot be initialized: {error}")))?;
        Ok(Self(Arc::new(Inner { config, library, refused: Mutex::new(None) })))
    }

    /// Runs `work` with a session that is logged in, where blocking is no harm.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &Session) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let inner = Arc::clone(&self.0);
        let worked = tokio::task::spawn_blocking(move || {
            let mut refused = inner.refused.lock();
            let session = inner.log_in(&mut refused)?;
            work(&inner, &session)
        });
        worked.await.map_err(|_| BackendError::Unavailable("the call ended early".to_owned()))?
    }
}

impl Inner {
    fn log_in(&self, refused: &mut Option<SecretBytes>) -> Result<Session, BackendError> {
        let Pkcs11Config { token, pin_file, .. } = &self.config;
        let shown = pin_file.display();
        let pin = std::fs::read(pin_file).map(SecretBytes::new);
        let pin = pin.map_err(|error| BackendError::Denied(format!("cannot read {shown}: {error}")))?;
        let denied = || BackendError::Denied(format!("the token {token:?} refused the PIN in {shown}"));
        if refused.as_ref() == Some(&pin) {
            return Err(denied());
        }
        let session = self.library.open_ro_session(self.slot()?).map_err(|error| self.failed(&error))?;
        let text = std::str::from_utf8(pin.expose().trim_ascii()).map_err(|_| denied())?;
        match session.login(UserType::User, Some(&AuthPin::from(text.to_owned()))) {
            Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => {
                *refused = None;
                Ok(session)
            }
            Err(Error::Pkcs11(RvError::PinIncorrect | RvError::PinInvalid | RvError::PinLenRange, _)) => {
                *refused = Some(pin);
                Err(denied())
            }
            Err(Error::Pkcs11(RvError::PinLocked | RvError::PinExpired, _)) => {
                *refused = Some(pin);
                Err(BackendError::Denied(format!("the token {token:?} is locked, or its PIN has expired")))
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn slot(&self) -> Result<cryptoki::slot::Slot, BackendError> {
        let slots = self.library.get_slots_with_token().map_err(|error| self.failed(&error))?;
        let named = |slot: &cryptoki::slot::Slot| {
            self.library.get_token_info(*slot).is_ok_and(|info| info.label() == self.config.token)
        };
        let found = slots.into_iter().find(named);
        found.ok_or_else(|| BackendError::Unavailable(format!("there is no token {:?}", self.config.token)))
    }

    /// From the smallest ID to the largest, as numbers.
    fn versions(&self, session: &Session) -> Result<Vec<Version>, BackendError> {
        let wanted = [
            Attribute::Class(ObjectClass::SECRET_KEY),
            Attribute::KeyType(KeyType::AES),
            Attribute::Label(self.config.key.clone().into_bytes()),
        ];
        let handles = session.find_objects(&wanted).map_err(|error| self.failed(&error))?;
        let mut versions = Vec::with_capacity(handles.len());
        for handle in handles {
            let attributes = session.get_attributes(handle, &[AttributeType::Id]);
            let id = attributes.map_err(|error| self.failed(&error))?.into_iter().find_map(|attribute| {
                let Attribute::Id(id) = attribute else { return None };
                Some(id)
            });
            versions.push(Version { id: id.unwrap_or_default(), handle });
        }
        versions.sort_by(|one, other| (one.id.len(), &one.id).cmp(&(other.id.len(), &other.id)));
        Ok(versions)
    }

    fn newest(&self, session: &Session) -> Result<Version, BackendError> {
        self.versions(session)?.pop().ok_or_else(|| {
            BackendError::NoSuchKey(format!(
                "the token {:?} has no AES key labelled {:?}",
                self.config.token, self.config.key
            ))
        })
    }

    fn key_id(&self, version: &Version) -> String {
        let id: String = version.id.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("pkcs11/{}/{}/{id}", self.config.token, self.config.key)
    }

    fn failed(&self, error: &Error) -> BackendError {
        BackendError::Unavailable(format!("the token {:?} failed: {error}", self.config.token))
    }
}

#[async_trait]
impl Backend for Token {
    async fn current_key_id(&self) -> Result<String, BackendError> {
        self.with(|inner, session| Ok(inner.key_id(&inner.newest(session)?))).await
    }

    async fn encrypt(&self, plaintext: &SecretBytes) -> Result<KmsEncrypted, BackendError> {
        let plaintext = plaintext.clone();
        self.with(move |inner, session| {
            let version = inner.newest(session)?;
            let key_id = inner.key_id(&version);
            let mut nonce = [0; NONCE];
            let drawn = inner.config.random.fill(&mut nonce);
            drawn.map_err(|error| BackendError::Unavailable(error.to_string()))?;
            let mut ciphertext = nonce.to_vec();
            let gcm = GcmParams::new(&mut nonce, key_id.as_bytes(), TAG_BITS.into());
            let gcm = gcm.map_err(|error| inner.failed(&error))?;
            let sealed = session.encrypt(&Mechanism::AesGcm(gcm), version.handle, plaintext.expose());
            ciphertext.extend(sealed.map_err(|error| inner.failed(&error))?);
            Ok(KmsEncrypted { ciphertext, key_id, annotations: Annotations::new() })
        })
        .await
    }

    async fn decrypt(&self, encrypted: &KmsEncrypted) -> Result<SecretBytes, BackendError> {
        let encrypted = encrypted.clone();
        self.with(move |inner, session| {
            let versions = inner.versions(session)?;
            let version = versions.iter().find(|version| inner.key_id(version) == encrypted.key_id);
            let version = version.ok_or_else(|| {
                BackendError::NoSuchKey(format!("the token has no key {:?}", encrypted.key_id))
            })?;
            let none = || BackendError::Invalid(format!("not encrypted under {:?}", encrypted.key_id));
            let (nonce, sealed) = encrypted.ciphertext.split_first_chunk::<NONCE>().ok_or_else(none)?;
            let mut nonce = *nonce;
            let gcm = GcmParams::new(&mut nonce, encrypted.key_id.as_bytes(), TAG_BITS.into());
            let gcm = gcm.map_err(|error| inner.failed(&error))?;
            let opened = session.decrypt(&Mechanism::AesGcm(gcm), version.handle, sealed);
            opened.map(SecretBytes::new).map_err(|_| none())
        })
        .await
    }
}
