//! The directory of `coffer up`: keys, certificates, the kubeconfig, and the embedded store.
//!
//! Everything secret is a file of mode 0600 in a directory of mode 0700, and is written
//! beside its place first, synced, and renamed: a crash leaves the old file or the new one.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use coffer_server::pki::{self, Client, Files, Wanted};
use coffer_store::embedded::Lock;
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use coffer_types::time::Timestamp;

use crate::exit::Failure;

/// Resources that a generated configuration encrypts. A store of the provider `fake` holds values itself.
const ENCRYPTED: [&str; 3] =
    ["secrets", "secretstores.external-secrets.io", "clustersecretstores.external-secrets.io"];

/// The file with the admin's kubeconfig, in the directory.
pub(crate) const KUBECONFIG: &str = "kubeconfig";

/// The directory, which no other process has meanwhile.
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: Lock,
}

impl DataDir {
    /// Makes it unless it is there, and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| {
            let next = match error.kind() {
                ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
                    "a file is in the way: choose another directory with --data-dir"
                }
                _ => "give this user write access, or choose another with --data-dir",
            };
            Failure::problem(format!("cannot make the data directory {}: {error}", path.display())).next(next)
        })?;
        // Absolute, so that the kubeconfig's path works from everywhere.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let lock = Lock::take(&path).map_err(Failure::problem)?;
        Ok(Self { path, _lock: lock })
    }

    /// The embedded store's directory.
    pub(crate) fn store(&self) -> PathBuf {
        self.path.join("store")
    }

    /// The node's directory.
    pub(crate) fn node(&self) -> PathBuf {
        self.path.join("node")
    }

    /// The directory of keys and certificates.
    pub(crate) fn pki_path(&self) -> PathBuf {
        self.path.join("pki")
    }

    /// The admin's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path.join(KUBECONFIG)
    }

    /// The encryption configuration.
    pub(crate) fn encryption(&self) -> PathBuf {
        self.path.join("encryption.yaml")
    }

    /// The keys and certificates, made or renewed where needed.
    pub(crate) fn pki(&self, now: Timestamp, names: Vec<String>) -> Result<Files, Failure> {
        let directory = self.pki_path();
        make_private(&directory)?;
        let mut files = Files::new();
        for entry in std::fs::read_dir(&directory).map_err(|error| unreadable(&directory, &error))? {
            let entry = entry.map_err(|error| unreadable(&directory, &error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Leftovers of a crash while writing.
            if name.starts_with('.') {
                continue;
            }
            let content = std::fs::read(entry.path()).map_err(|error| unreadable(&entry.path(), &error))?;
            files.insert(name, SecretBytes::new(content));
        }
        let wanted = Wanted { extra_names: names, clients: vec![Client::admin()] };
        let written = pki::complete(&mut files, &wanted, now)
            .map_err(|error| Failure::problem(format!("{}: {error}", directory.display())))?;
        for name in written {
            if let Some(content) = files.get(&name) {
                write_private(&directory.join(&name), content.expose())?;
            }
        }
        Ok(files)
    }

    /// Makes an encryption configuration with a new key unless there is one; a key is never replaced.
    /// Says whether it was made.
    pub(crate) fn ensure_encryption(&self, random: &dyn Random) -> Result<bool, Failure> {
        let path = self.encryption();
        if path.exists() {
            return Ok(false);
        }
        if self.store().exists() {
            return Err(Failure::problem(format!(
                "{} is missing although {} holds data that it encrypted",
                path.display(),
                self.store().display()
            ))
            .next("restore the file from a backup; without it the Secrets cannot be read"));
        }
        let text = coffer_config::encryption::generate(&ENCRYPTED, random)
            .map_err(|error| Failure::problem(format!("cannot make an encryption key: {error}")))?;
        write_private(&path, text.expose())?;
        Ok(true)
    }

    /// Takes back a configuration that was just made.
    pub(crate) fn remove_encryption(&self) {
        // It protects nothing; whoever starts again meets the same refusal.
        let _ = std::fs::remove_file(self.encryption());
    }

    /// Writes the admin's kubeconfig for a server at `address`.
    pub(crate) fn write_kubeconfig(&self, files: &Files, address: SocketAddr) -> Result<PathBuf, Failure> {
        let file =
            |name: &str| files.get(name).ok_or_else(|| Failure::problem(format!("pki/{name} was not made")));
        let text = pki::kubeconfig(
            &format!("https://{address}"),
            file("ca.crt")?.expose(),
            file("admin.crt")?.expose(),
            file("admin.key")?,
        );
        let path = self.kubeconfig();
        write_private(&path, text.expose())?;
        Ok(path)
    }
}

fn make_private(path: &Path) -> Result<(), Failure> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| {
        Failure::problem(format!("cannot make {}: {error}", path.display()))
            .next("give this user write access, or choose another directory with --data-dir")
    })
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::problem(format!("cannot read {}: {error}", path.display()))
        .next("give this user read access, or choose another directory with --data-dir")
}

/// Writes a file of mode 0600 in one step.
fn write_private(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let unfinished = path.with_file_name(format!(
        ".{}.new",
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    ));
    let write = || {
        let _ = std::fs::remove_file(&unfinished);
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)?;
        std::fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|error| {
        Failure::problem(format!("cannot write {}: {error}", path.display())).next(
            "give this user write access and free some space, or choose another directory with --data-dir",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Fixed;

    impl Random for Fixed {
        fn fill(&self, buffer: &mut [u8]) -> Result<(), coffer_types::random::RandomError> {
            buffer.fill(7);
            Ok(())
        }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn what_is_secret_is_private() {
        let base = tempfile::tempdir().expect("a directory");
        let data = DataDir::open(&base.path().join("d")).expect("opened");
        data.ensure_encryption(&Fixed).expect("made");
        let files = data.pki(Timestamp::from_second(1_800_000_000).expect("a time"), vec![]).expect("made");
        let kubeconfig =
            data.write_kubeconfig(&files, "127.0.0.1:1".parse().expect("an address")).expect("made");
        assert_eq!(mode(&base.path().join("d")), 0o700);
        assert_eq!(mode(&data.encryption()), 0o600);
        assert_eq!(mode(&kubeconfig), 0o600);
        for entry in std::fs::read_dir(base.path().join("d/pki")).expect("a directory") {
            assert_eq!(mode(&entry.expect("an entry").path()), 0o600);
        }
    }

    #[test]
    fn keys_are_kept() {
        let base = tempfile::tempdir().expect("a directory");
        let data = DataDir::open(base.path()).expect("opened");
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        data.ensure_encryption(&Fixed).expect("made");
        let key = std::fs::read(data.encryption()).expect("there");
        let first = data.pki(now, vec![]).expect("made");
        let second = data.pki(now, vec![]).expect("read");
        assert!(first == second, "certificates were made anew");
        assert!(!data.ensure_encryption(&Fixed).expect("kept"));
        assert!(std::fs::read(data.encryption()).expect("there") == key, "the key was replaced");
    }

    /// Field case K27: a lost key is noticed before anything is written under another one.
    #[test]
    fn k27_a_missing_key_beside_data_is_an_error() {
        let base = tempfile::tempdir().expect("a directory");
        let data = DataDir::open(base.path()).expect("opened");
        std::fs::create_dir(data.store()).expect("made");
        let failure = data.ensure_encryption(&Fixed).expect_err("data without its key");
        assert!(failure.message.contains("encryption.yaml is missing"), "{failure}");
    }

    #[test]
    fn a_place_that_cannot_be_is_named() {
        let base = tempfile::tempdir().expect("a directory");
        let file = base.path().join("file");
        std::fs::write(&file, "").expect("written");
        let failure = DataDir::open(&file.join("d")).err().expect("not a directory");
        assert!(failure.message.contains("cannot make the data directory"), "{failure}");
        assert!(failure.next.contains("--data-dir"));
    }
}
