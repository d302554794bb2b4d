//! Mounting as a port, and the kernel behind it.

use std::io;
use std::path::Path;

use super::holders::{Holder, holders_in};

/// `TMPFS_MAGIC` of statfs(2).
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// `RAMFS_MAGIC` of statfs(2).
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// Mounting as a port.
pub trait Mounter: Send + Sync {
    /// Mounts a tmpfs of at most `size` bytes at `path`.
    fn mount_tmpfs(&self, path: &Path, size: u64) -> io::Result<()>;
    /// Unmounts; [`io::ErrorKind::ResourceBusy`] while somebody uses it.
    fn unmount(&self, path: &Path) -> io::Result<()>;
    /// Takes a mount out of sight at once; it goes when nobody uses it any more.
    fn detach(&self, path: &Path) -> io::Result<()>;
    /// The processes that use a mount, as far as they can be found.
    fn holders(&self, path: &Path) -> Vec<Holder>;
    /// Whether `path` is on a tmpfs or ramfs.
    fn in_memory(&self, path: &Path) -> io::Result<bool>;
    /// Whether something is mounted exactly at `path`.
    fn is_mount_point(&self, path: &Path) -> io::Result<bool>;
}

/// The kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealMounter;

impl Mounter for RealMounter {
    fn mount_tmpfs(&self, path: &Path, size: u64) -> io::Result<()> {
        use rustix::mount::{MountFlags, mount};
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let with = |options: String| {
            let options = std::ffi::CString::new(options).map_err(io::Error::other)?;
            mount("tmpfs", path, "tmpfs", flags, Some(options.as_c_str())).map_err(io::Error::from)
        };
        // `noswap` came with Linux 6.4; older kernels refuse it.
        with(format!("size={size},mode=0750,noswap")).or_else(|_| with(format!("size={size},mode=0750")))
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        use rustix::mount::{UnmountFlags, unmount};
        unmount(path, UnmountFlags::empty()).map_err(io::Error::from)
    }

    fn detach(&self, path: &Path) -> io::Result<()> {
        use rustix::mount::{UnmountFlags, unmount};
        unmount(path, UnmountFlags::DETACH).map_err(io::Error::from)
    }

    fn holders(&self, path: &Path) -> Vec<Holder> {
        use std::os::unix::fs::MetadataExt;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let device = std::fs::symlink_metadata(&path)
            .ok()
            .map(|metadata| (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev())));
        holders_in(Path::new("/proc"), &path, device)
    }

    fn in_memory(&self, path: &Path) -> io::Result<bool> {
        let kind = u64::try_from(rustix::fs::statfs(path)?.f_type).unwrap_or_default();
        Ok(matches!(kind, TMPFS_MAGIC | RAMFS_MAGIC))
    }

    fn is_mount_point(&self, path: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let here = std::fs::symlink_metadata(path)?;
        let above = std::fs::symlink_metadata(path.parent().unwrap_or(Path::new("/")))?;
        Ok(here.dev() != above.dev())
    }
}
