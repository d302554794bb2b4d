//! The data directory: its modes, its lock, and the file in it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::error::OpenError;

/// The file that holds everything.
pub(crate) const DATA_FILE: &str = "store.db";

/// A store that is being made; it gets its name when it is complete.
const NEW_FILE: &str = "store.db.new";

/// The file that is locked, and says by whom.
const LOCK_FILE: &str = "lock";

/// Nobody else may look into the directory or the files.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A data directory that is ours until it is dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// The system lets go of the lock when the file is closed, even by a kill.
    _lock: File,
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
        let lock_path = path.join(LOCK_FILE);
        let mut lock = private_file(&lock_path, false).map_err(|source| OpenError::io(&lock_path, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder = lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(OpenError::Locked { path: path.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(OpenError::io(&lock_path, source)),
        }
        // Only for the other process's error text, so failing to write it is no error.
        let _ignored = lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id()));
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// The path of the data file.
    pub(crate) fn data_path(&self) -> PathBuf {
        self.path.join(DATA_FILE)
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
