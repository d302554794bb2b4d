//! Why a store could not be opened, each with what was being opened.

use std::io;
use std::path::PathBuf;

/// Why the data directory could not be opened. Nothing of it was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The operator started a second process on the same directory.
    #[error(
        "the data directory {path} is in use by {}; stop that process or choose another directory",
        holder.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"))
    )]
    Locked {
        /// The data directory.
        path: PathBuf,
        /// The process that holds it, as far as it said so.
        holder: Option<u32>,
    },
    /// Something of another kind is in the way.
    #[error("{path} is not a directory; choose another data directory")]
    NotADirectory {
        /// What was to be the data directory.
        path: PathBuf,
    },
    /// The process may not write there.
    #[error("cannot write to {path}: {source}; give this user write access or choose another data directory")]
    NotWritable {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is full.
    #[error("no space left for {path}: {source}; free some space and start again")]
    NoSpace {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not a store, or was damaged.
    #[error(
        "{path} is not a readable store: {reason}; restore it from a backup, or move it away to start empty"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A later version of the program wrote the file.
    #[error("{path} has format {found}, and this version reads up to {known}; use the version that wrote it")]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format known here.
        known: u64,
    },
    /// Anything else that the system refused.
    #[error("cannot open {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    /// Names the class of an input or output error.
    pub(crate) fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable { path, source }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { path, source },
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => Self::NotADirectory { path },
            _ => Self::Io { path, source },
        }
    }
}
