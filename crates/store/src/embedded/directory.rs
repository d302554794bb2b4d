//! The data directory: its modes, its lock, and the file in it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::error::OpenError;

/// The file that holds everything, in the store's directory.
pub const DATA_FILE: &str = "store.db";

/// A store that is being made; it gets its name when it is complete.
const NEW_FILE: &str = "store.db.new";

/// Space that deletions get on a full disk.
const RESERVE_FILE: &str = "store.reserve";

/// The file that is locked, and says by whom.
const LOCK_FILE: &str = "lock";

/// Nobody else may look into the directory or the files.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A data directory that is ours until it is dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    _lock: Lock,
}

/// Keeps other processes out of a directory until it is dropped. The system lets go of it when the
/// process ends, even by a kill.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a directory that is there.
    ///
    /// # Errors
    /// [`OpenError::Locked`] with its holder, or why the lock's file cannot be used.
    pub fn take(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(LOCK_FILE);
        let mut file = private_file(&path, false).map_err(|source| OpenError::io(&path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(OpenError::Locked { path: directory.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(OpenError::io(&path, source)),
        }
        // Only for the other process's error text, so failing to write it is no error.
        let _ignored = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

impl Directory {
    /// Makes the directory if need be, and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(path)
            .map_err(|source| OpenError::io(path, source))?;
        // It may have been made by somebody with another umask.
        narrow(path, DIRECTORY_MODE)?;
        let lock = Lock::take(path)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// The path of the data file.
    pub(crate) fn data_path(&self) -> PathBuf {
        self.path.join(DATA_FILE)
    }

    /// The file that holds the reserve.
    pub(crate) fn reserve_file(&self) -> Result<File, OpenError> {
        let path = self.path.join(RESERVE_FILE);
        private_file(&path, false).map_err(|source| OpenError::io(&path, source))
    }

    /// The data file; made with `initialise` if there is none, so that it is complete or absent.
    pub(crate) fn data_file(
        &self,
        initialise: impl FnOnce(File) -> Result<(), OpenError>,
    ) -> Result<File, OpenError> {
        let path = self.data_path();
        if !path.try_exists().map_err(|source| OpenError::io(&path, source))? {
            let new = self.path.join(NEW_FILE);
            initialise(private_file(&new, true).map_err(|source| OpenError::io(&new, source))?)?;
            File::open(&new)
                .and_then(|file| file.sync_all())
                .map_err(|source| OpenError::io(&new, source))?;
            fs::rename(&new, &path).map_err(|source| OpenError::io(&path, source))?;
            // The name itself must survive a power cut.
            File::open(&self.path)
                .and_then(|directory| directory.sync_all())
                .map_err(|source| OpenError::io(&self.path, source))?;
        }
        let file = private_file(&path, false).map_err(|source| OpenError::io(&path, source))?;
        narrow(&path, FILE_MODE)?;
        Ok(file)
    }
}

fn private_file(path: &Path, truncate: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(truncate).mode(FILE_MODE).open(path)
}

/// Takes away what others may do, and leaves what the owner may do.
fn narrow(path: &Path, mode: u32) -> Result<(), OpenError> {
    let present = fs::metadata(path).map_err(|source| OpenError::io(path, source))?.permissions().mode();
    if present & 0o777 & !mode == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(present & mode))
        .map_err(|source| OpenError::io(path, source))
}
