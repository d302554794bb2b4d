//! The file system as a port, so that a crash can be tested at each step.

use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use coffer_types::SecretBytes;

/// What the atomic writer needs of a file system. Every method is one step.
pub trait Files: Send + Sync {
    /// Makes a directory with exactly this mode; its parent exists.
    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Writes a new file with exactly this mode.
    fn write_new(&self, path: &Path, content: &[u8], mode: u32) -> io::Result<()>;
    /// Makes a symbolic link at `path`.
    fn symlink(&self, target: &Path, path: &Path) -> io::Result<()>;
    /// Renames atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file or a symbolic link.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and everything in it. A reader that has a file open keeps its content.
    fn remove_tree(&self, path: &Path) -> io::Result<()>;
    /// Where a symbolic link points.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    /// Whether the file at `path` holds exactly `content`.
    fn holds(&self, path: &Path, content: &[u8]) -> io::Result<bool>;
    /// The names in a directory, sorted; and whether each is a directory (links are not followed).
    fn list(&self, path: &Path) -> io::Result<Vec<(String, bool)>>;
    /// The content of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Gives a file or link (not its target) to a user.
    fn set_owner(&self, path: &Path, owner: u32) -> io::Result<()>;
    /// Gives a file, directory or link (not its target) to a group and applies the rules of `fsGroup`.
    fn set_group(&self, path: &Path, group: u32, is_dir: bool) -> io::Result<()>;
}

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        std::fs::DirBuilder::new().mode(mode).create(path)?;
        // The umask may have taken bits away.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
    }

    fn write_new(&self, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
        use std::io::Write;
        // Nobody else may read it before its mode is set.
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(content)?;
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }

    fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(target, path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir_all(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::read_link(path)
    }

    fn holds(&self, path: &Path, content: &[u8]) -> io::Result<bool> {
        if std::fs::symlink_metadata(path)?.len() != content.len() as u64 {
            return Ok(false);
        }
        let found = SecretBytes::new(std::fs::read(path)?);
        Ok(found.expose() == content)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<(String, bool)>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let is_dir = entry.file_type()?.is_dir();
            names.push((entry.file_name().to_string_lossy().into_owned(), is_dir));
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn set_owner(&self, path: &Path, owner: u32) -> io::Result<()> {
        std::os::unix::fs::lchown(path, Some(owner), None)
    }

    fn set_group(&self, path: &Path, group: u32, is_dir: bool) -> io::Result<()> {
        std::os::unix::fs::lchown(path, None, Some(group))?;
        let metadata = std::fs::symlink_metadata(path)?;
        if metadata.is_symlink() {
            return Ok(());
        }
        // A read-only volume: readable by the group, directories searchable and inheriting it.
        let more = if is_dir { 0o2550 } else { 0o440 };
        let mode = metadata.permissions().mode() | more;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o7777))
    }
}

/// Removes a volume whose pod is gone: every file is overwritten with zeros first, which on a
/// tmpfs is the memory itself. Never for a version that a reader may still have open.
pub fn wipe_and_remove(path: &Path) -> io::Result<()> {
    match wipe(path).and_then(|()| std::fs::remove_dir_all(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Overwrites every file below a directory with zeros and truncates it. Links are not followed. One that
/// cannot be wiped keeps none of the others from it; the first failure is returned.
pub(crate) fn wipe(path: &Path) -> io::Result<()> {
    let mut first = Ok(());
    for entry in std::fs::read_dir(path)? {
        let wiped = entry.and_then(|entry| {
            let kind = entry.file_type()?;
            if kind.is_dir() {
                wipe(&entry.path())
            } else if kind.is_file() {
                wipe_file(&entry.path())
            } else {
                Ok(())
            }
        });
        first = first.and(wiped);
    }
    first
}

fn wipe_file(path: &Path) -> io::Result<()> {
    use std::io::Write;
    let metadata = std::fs::symlink_metadata(path)?;
    if metadata.permissions().mode() & 0o200 == 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    }
    // A link that took the file's place must not lead elsewhere.
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut file = std::fs::OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    let zeros = [0_u8; 4096];
    let mut left = metadata.len();
    while left > 0 {
        let step = left.min(zeros.len() as u64);
        file.write_all(&zeros[..usize::try_from(step).unwrap_or(zeros.len())])?;
        left -= step;
    }
    // Whoever has it open or mapped sees nothing any more.
    file.set_len(0)
}
