//! Keys in a file: `NAME: BASE64` a line, 32 bytes each, the first one writes.
//!
//! The file is read again whenever a status is asked for, so that a rotation is an edit:
//! a new line at the top. A broken file never replaces a working one; the status then says
//! what is wrong, since the next start would fail.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_crypto::check_value::{KeyIdentity, key_check_value};
use coffer_crypto::kms::{Annotations, KmsEncrypted};
use coffer_crypto::{AesGcm, Layer, TransformError};
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use parking_lot::RwLock;

use super::{Backend, BackendError};

const KEY: usize = 32;
/// A thousand keys; more is some other file.
const LARGEST_FILE: u64 = 128 * 1024;
/// Bits of a file's mode that let others than its owner at it.
const OTHERS: u32 = 0o077;
/// A name, its check value and the dots between fit into the 1,024 bytes of the protocol.
const LONGEST_NAME: usize = 253;
/// What keys of these files are checked as; see [`key_check_value`].
const GROUP: &str = "coffer-kms-plugin";

/// Why a key file is refused. Never holds a byte of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read {file}: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
    /// Others than its owner may read or write it.
    #[error("{file} holds keys, but others may use it (mode {mode:04o})")]
    Open {
        /// The file.
        file: String,
        /// Its mode.
        mode: u32,
    },
    /// A line, or the whole, is wrong.
    #[error("{file}: {problem}")]
    Wrong {
        /// The file.
        file: String,
        /// What is wrong, with the line's number.
        problem: String,
    },
}

/// The backend.
pub struct LocalKeys {
    file: PathBuf,
    random: Arc<dyn Random>,
    keys: RwLock<Arc<[LocalKey]>>,
}

struct LocalKey {
    /// Name and check value: other bytes under the same name are another key.
    id: String,
    cipher: AesGcm,
}

impl LocalKeys {
    /// Reads the file.
    pub fn open(file: &Path, random: Arc<dyn Random>) -> Result<Self, KeyFileError> {
        let keys = load(file, &random)?;
        Ok(Self { file: file.to_owned(), random, keys: RwLock::new(keys.into()) })
    }

    fn keys(&self) -> Arc<[LocalKey]> {
        self.keys.read().clone()
    }

    fn reload(&self) -> Result<(), KeyFileError> {
        let keys = load(&self.file, &self.random)?;
        *self.keys.write() = keys.into();
        Ok(())
    }
}

#[async_trait]
impl Backend for LocalKeys {
    async fn current_key_id(&self) -> Result<String, BackendError> {
        self.reload().map_err(|error| BackendError::Unavailable(error.to_string()))?;
        let keys = self.keys();
        let first = keys.first().ok_or_else(|| BackendError::NoSuchKey("there is no key".to_owned()))?;
        Ok(first.id.clone())
    }

    async fn encrypt(&self, plaintext: &SecretBytes) -> Result<KmsEncrypted, BackendError> {
        let keys = self.keys();
        let first = keys.first().ok_or_else(|| BackendError::NoSuchKey("there is no key".to_owned()))?;
        let mut ciphertext = Vec::with_capacity(first.cipher.sealed_len(plaintext.len()));
        first
            .cipher
            .seal_into(plaintext.expose(), first.id.as_bytes(), &mut ciphertext)
            .map_err(|error| BackendError::Unavailable(TransformError::from(error).to_string()))?;
        Ok(KmsEncrypted { ciphertext, key_id: first.id.clone(), annotations: Annotations::new() })
    }

    async fn decrypt(&self, encrypted: &KmsEncrypted) -> Result<SecretBytes, BackendError> {
        let find = |keys: &[LocalKey]| keys.iter().position(|key| key.id == encrypted.key_id);
        let mut keys = self.keys();
        if find(&keys).is_none() && self.reload().is_ok() {
            // Another server may have seen a new file first.
            keys = self.keys();
        }
        let place = find(&keys).ok_or_else(|| {
            BackendError::NoSuchKey(format!(
                "no key {:?} in {}; put it back, below the others",
                encrypted.key_id,
                self.file.display()
            ))
        })?;
        let opened = keys[place].cipher.open(&encrypted.ciphertext, encrypted.key_id.as_bytes());
        opened.map(|plain| plain.bytes).map_err(|error| {
            BackendError::Invalid(format!(
                "not encrypted under {:?}: {}",
                encrypted.key_id,
                TransformError::from(error)
            ))
        })
    }
}

fn load(file: &Path, random: &Arc<dyn Random>) -> Result<Vec<LocalKey>, KeyFileError> {
    let shown = file.display().to_string();
    let unreadable =
        |error: std::io::Error| KeyFileError::Unreadable { file: shown.clone(), why: error.to_string() };
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    let mode = opened.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(KeyFileError::Open { file: shown, mode });
    }
    let mut bytes = Vec::with_capacity(LARGEST_FILE as usize);
    opened.take(LARGEST_FILE).read_to_end(&mut bytes).map_err(unreadable)?;
    let bytes = SecretBytes::new(bytes);
    parse(&bytes, random).map_err(|problem| KeyFileError::Wrong { file: shown, problem })
}

/// Keys from the file's text; empty lines and those that start with `#` are skipped.
fn parse(text: &SecretBytes, random: &Arc<dyn Random>) -> Result<Vec<LocalKey>, String> {
    let text = std::str::from_utf8(text.expose()).map_err(|_| "it is no text".to_owned())?;
    let mut keys: Vec<LocalKey> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |problem: &str| format!("line {number}: {problem}");
        let (name, key) = line.split_once(':').ok_or_else(|| wrong("write it as NAME: BASE64"))?;
        let usable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || LONGEST_NAME < name.len() || !name.bytes().all(usable) {
            return Err(wrong("a name is made of letters, digits, '-', '_' and '.'"));
        }
        let key = STANDARD.decode(key.trim()).map(SecretBytes::new);
        let key = key.map_err(|_| wrong("the key is not in base64"))?;
        if key.len() != KEY {
            return Err(wrong(&format!("the key must be {KEY} bytes, got {}", key.len())));
        }
        let check = key_check_value(key.expose(), KeyIdentity { group: GROUP, dimension: name, revision: 0 });
        let id = format!("{name}.{}", check.ok_or_else(|| wrong("the name is too long"))?);
        if keys.iter().any(|known| known.id == id) {
            return Err(wrong("the same key under the same name is there already"));
        }
        let cipher =
            AesGcm::new(key.expose(), Arc::clone(random)).map_err(|error| wrong(&error.to_string()))?;
        keys.push(LocalKey { id, cipher });
    }
    if keys.is_empty() { Err("it holds no key".to_owned()) } else { Ok(keys) }
}

#[cfg(test)]
mod tests {
    use coffer_sim::SeededRandom;

    use super::*;

    /// 32 times the letter A.
    const KEY_A: &str = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=";
    const KEY_B: &str = "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=";

    struct Fixture {
        directory: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().expect("a directory") }
        }

        fn write(&self, text: &str, mode: u32) -> PathBuf {
            let path = self.directory.path().join("keys");
            std::fs::write(&path, text).expect("can be written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("own file");
            path
        }

        fn open(&self, text: &str) -> Result<LocalKeys, KeyFileError> {
            LocalKeys::open(&self.write(text, 0o600), Arc::new(SeededRandom::new(1)))
        }
    }

    #[tokio::test]
    async fn a_new_first_line_is_a_rotation() {
        let fixture = Fixture::new();
        let keys = fixture.open(&format!("# comment\n\none: {KEY_A}\n")).expect("a good file");
        let first = keys.current_key_id().await.expect("is well");
        assert!(first.starts_with("one.") && first.len() == "one.".len() + 16, "{first}");
        let old = keys.encrypt(&b"seed".to_vec().into()).await.expect("is well");
        assert_eq!(old.key_id, first);

        fixture.write(&format!("two: {KEY_B}\none: {KEY_A}\n"), 0o600);
        let second = keys.current_key_id().await.expect("is well");
        assert!(second.starts_with("two."), "{second}");
        assert_eq!(keys.encrypt(&b"seed".to_vec().into()).await.expect("is well").key_id, second);
        assert_eq!(keys.decrypt(&old).await.expect("is well").expose(), b"seed");

        // The same name over other bytes is another key, and the old one is missed by name.
        fixture.write(&format!("two: {KEY_B}\none: {KEY_B}\n"), 0o600);
        keys.current_key_id().await.expect("is well");
        let error = keys.decrypt(&old).await.map(|_| ()).expect_err("its key is gone");
        assert!(matches!(&error, BackendError::NoSuchKey(text) if text.contains(&first)), "{error}");
    }

    /// The bytes on disk are not those in memory: seen before the next start loses all.
    #[tokio::test]
    async fn field_case_k27_a_broken_file_shows_and_does_not_replace_the_keys() {
        let fixture = Fixture::new();
        let keys = fixture.open(&format!("one: {KEY_A}")).expect("a good file");
        let old = keys.encrypt(&b"seed".to_vec().into()).await.expect("is well");
        fixture.write("one: AAAA", 0o600);
        let error = keys.current_key_id().await.expect_err("is broken");
        assert!(error.to_string().ends_with("line 1: the key must be 32 bytes, got 3"), "{error}");
        assert_eq!(keys.decrypt(&old).await.expect("the old keys stay").expose(), b"seed");
        fixture.write(&format!("one: {KEY_A}"), 0o600);
        assert_eq!(keys.current_key_id().await.expect("is well again"), old.key_id);
    }

    #[tokio::test]
    async fn what_was_changed_is_refused() {
        let fixture = Fixture::new();
        let keys = fixture.open(&format!("one: {KEY_A}\ntwo: {KEY_A}")).expect("a good file");
        let good = keys.encrypt(&b"seed".to_vec().into()).await.expect("is well");
        for place in 0..good.ciphertext.len() {
            let mut changed = good.clone();
            changed.ciphertext[place] ^= 1;
            let refused = keys.decrypt(&changed).await.map(|_| ());
            assert!(matches!(refused, Err(BackendError::Invalid(_))), "{place}");
        }
        // The same bytes under another name: the ciphertext is bound to its key's name.
        fixture.write(&format!("two: {KEY_A}"), 0o600);
        let other = KmsEncrypted { key_id: keys.current_key_id().await.expect("is well"), ..good };
        assert!(matches!(keys.decrypt(&other).await.map(|_| ()), Err(BackendError::Invalid(_))));
    }

    #[test]
    fn files_that_are_refused() {
        let fixture = Fixture::new();
        let check = |text: &str, expected: &str| {
            let error = fixture.open(text).map(|_| ()).expect_err(text).to_string();
            assert!(error.ends_with(expected), "{text:?}: {error}");
            assert!(!error.contains("QUFB"), "{error}");
        };
        check("", "it holds no key");
        check("# one: x\n", "it holds no key");
        check(KEY_A, "line 1: write it as NAME: BASE64");
        check(&format!("a b: {KEY_A}"), "line 1: a name is made of letters, digits, '-', '_' and '.'");
        check(&format!(": {KEY_A}"), "line 1: a name is made of letters, digits, '-', '_' and '.'");
        check(&format!("ok: {KEY_A}\nx: QUFB!"), "line 2: the key is not in base64");
        check("x: QUFB", "line 1: the key must be 32 bytes, got 3");
        check(
            &format!("x: {KEY_A}\nx: {KEY_A}"),
            "line 2: the same key under the same name is there already",
        );
        let open = fixture.write(&format!("x: {KEY_A}"), 0o644);
        let error = LocalKeys::open(&open, Arc::new(SeededRandom::new(1))).map(|_| ()).expect_err("is open");
        assert!(error.to_string().ends_with("holds keys, but others may use it (mode 0644)"), "{error}");
        let missing = LocalKeys::open(Path::new("/nowhere/keys"), Arc::new(SeededRandom::new(1)));
        assert!(matches!(missing.map(|_| ()), Err(KeyFileError::Unreadable { .. })));
    }
}
