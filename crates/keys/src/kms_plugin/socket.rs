//! The socket: nobody but its owner can connect at any time, and no two plugins share it.

use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

const SOCKET_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// The kernel's limit. The socket is made under a name that is three bytes longer.
const LONGEST_PATH: usize = 107;

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another plugin holds it.
    #[error("another plugin serves {0}")]
    InUse(PathBuf),
    /// Something else is there.
    #[error("{0} is there already, and is no socket")]
    NotASocket(PathBuf),
    /// The kernel takes no such path.
    #[error("{0} is too long for a socket: at most {LONGEST_PATH} bytes")]
    TooLong(PathBuf),
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}")]
    Files {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A bound socket, removed when it is dropped.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    /// Held as long as the socket: a plugin that ends in any way lets go of it.
    _lock: File,
}

impl Socket {
    /// Binds `path`. What a dead plugin left there is replaced; a living one is refused.
    ///
    /// The socket is made in a directory of our own and gets its mode there, then moves to its
    /// place: there is no moment at which others could connect.
    pub fn bind(path: &Path) -> Result<(UnixListener, Self), SocketError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| SocketError::Files { action, path, source }
        };
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if !directory.exists() {
            let mut builder = DirBuilder::new();
            let made = builder.recursive(true).mode(DIRECTORY_MODE).create(directory);
            made.map_err(failed("make the directory", directory))?;
        }
        let lock = lock(path)?;
        match path.symlink_metadata() {
            Ok(there) if !there.file_type().is_socket() => {
                return Err(SocketError::NotASocket(path.to_owned()));
            }
            // One that takes no lock: another program, or a plugin in another container.
            Ok(_) if UnixStream::connect(path).is_ok() => return Err(SocketError::InUse(path.to_owned())),
            Ok(_) => tracing::info!(path = %path.display(), "a socket that nobody serves is replaced"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("look at", path)(error)),
        }
        // The lock is ours, so that nobody else uses this name.
        let mut private = std::ffi::OsString::from(".");
        private.push(path.file_name().unwrap_or_default());
        let private = directory.join(private);
        let unbound = private.join("s");
        if LONGEST_PATH < unbound.as_os_str().len().max(path.as_os_str().len()) {
            return Err(SocketError::TooLong(path.to_owned()));
        }
        match std::fs::remove_dir_all(&private) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("clear", &private)(error));
            }
            _ => {}
        }
        let made = DirBuilder::new().mode(DIRECTORY_MODE).create(&private);
        made.map_err(failed("make the directory", &private))?;
        let bound = UnixListener::bind(&unbound).map_err(failed("bind", &unbound)).and_then(|listener| {
            std::fs::set_permissions(&unbound, Permissions::from_mode(SOCKET_MODE))
                .map_err(failed("protect", &unbound))?;
            std::fs::rename(&unbound, path).map_err(failed("put in place", path))?;
            Ok(listener)
        });
        // Left over only when something failed, and cleared by the next start.
        let _ = std::fs::remove_dir_all(&private);
        Ok((bound?, Self { path: path.to_owned(), _lock: lock }))
    }
}

/// `PATH.lock`, held by one process at a time.
fn lock(path: &Path) -> Result<File, SocketError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let failed = |source| SocketError::Files { action: "lock", path: name.clone(), source };
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(SOCKET_MODE)
        .open(&name)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SocketError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The lock's file stays: removing it would let two others lock two files of one name.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().expect("is there").permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn only_its_owner_may_connect() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("new/kms.sock");
        let (_listener, socket) = Socket::bind(&path).expect("can be bound");
        assert_eq!((mode(&path), mode(path.parent().expect("a parent"))), (0o600, 0o700));
        UnixStream::connect(&path).expect("is served");
        drop(socket);
        assert!(!path.exists());
        let left: Vec<_> =
            std::fs::read_dir(path.parent().expect("a parent")).expect("a directory").collect();
        assert_eq!(left.len(), 1, "the lock alone: {left:?}");
    }

    #[tokio::test]
    async fn what_a_dead_plugin_left_is_replaced_and_a_living_one_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kms.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("can be bound"));
        std::fs::create_dir(directory.path().join(".coffer-kms")).expect("can be made");
        let (listener, socket) = Socket::bind(&path).expect("nobody serves it");
        assert!(matches!(Socket::bind(&path), Err(SocketError::InUse(_))));
        drop((listener, socket));

        let foreign = std::os::unix::net::UnixListener::bind(&path).expect("can be bound");
        let error = Socket::bind(&path).expect_err("another program serves it");
        assert_eq!(error.to_string(), format!("another plugin serves {}", path.display()));
        drop(foreign);
        Socket::bind(&path).expect("nobody serves it any more");
    }

    #[tokio::test]
    async fn what_is_no_socket_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, "content").expect("can be written");
        assert!(matches!(Socket::bind(&path), Err(SocketError::NotASocket(_))));
        assert_eq!(std::fs::read(&path).expect("is there"), b"content");
        let long = directory.path().join("s".repeat(100));
        assert!(matches!(Socket::bind(&long), Err(SocketError::TooLong(_))));
        let error = Socket::bind(&path.join("below/kms.sock")).expect_err("a file is no directory");
        assert!(error.to_string().starts_with("cannot make the directory"), "{error}");
    }
}
