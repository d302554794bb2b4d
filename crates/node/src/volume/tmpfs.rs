//! Where secret bytes may be: on a tmpfs, never on a disk.

use std::io;
use std::path::{Path, PathBuf};

/// `TMPFS_MAGIC` of statfs(2).
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// `RAMFS_MAGIC` of statfs(2).
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// Mounting as a port.
pub trait Mounter: Send + Sync {
    /// Mounts a tmpfs of at most `size` bytes at `path`.
    fn mount_tmpfs(&self, path: &Path, size: u64) -> io::Result<()>;
    /// Unmounts.
    fn unmount(&self, path: &Path) -> io::Result<()>;
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
        unmount(path, UnmountFlags::empty())
            // Someone still looks at it: it goes when they leave; the bytes were wiped before.
            .or_else(|_| unmount(path, UnmountFlags::DETACH))
            .map_err(io::Error::from)
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

/// Where the volumes of this node are, chosen once at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Below the root directory, a tmpfs mounted on it.
    Mounted(PathBuf),
    /// A directory of an existing tmpfs, since this process may not mount.
    Existing(PathBuf),
}

impl Place {
    /// The directory below which all volumes are.
    pub fn directory(&self) -> &Path {
        match self {
            Self::Mounted(path) | Self::Existing(path) => path,
        }
    }

    /// What the pod's status says about it.
    pub fn describe(&self) -> String {
        match self {
            Self::Mounted(path) => format!("on a tmpfs mounted at {}", path.display()),
            Self::Existing(path) => format!(
                "in {}, a directory of an existing tmpfs, because this process may not mount one",
                path.display()
            ),
        }
    }
}

/// No tmpfs is to be had. Secret volumes are not materialised then.
#[derive(Debug, thiserror::Error)]
#[error(
    "no tmpfs for secret volumes: mounting one at {} failed ({mount}), and none of {} is a directory on a tmpfs; \
     run with the right to mount (CAP_SYS_ADMIN) or name a directory on a tmpfs with --root-dir",
    root.display(),
    candidates.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
)]
pub struct NoMemory {
    root: PathBuf,
    mount: String,
    candidates: Vec<PathBuf>,
}

/// Size limit of the node's tmpfs in bytes: Secrets are at most 1 MiB each.
pub const TMPFS_SIZE: u64 = 512 * 1024 * 1024;

/// Chooses where volumes go: a tmpfs already at or mounted on `root`, else a directory below
/// the first of `candidates` (the user's runtime directory, /dev/shm) that is on a tmpfs.
/// It never falls back to a disk.
pub fn choose(
    mounter: &dyn Mounter,
    root: &Path,
    candidates: &[PathBuf],
    instance: &str,
) -> Result<Place, NoMemory> {
    let no_memory =
        |mount: String| NoMemory { root: root.to_owned(), mount, candidates: candidates.to_vec() };
    let made = private_directory(root);
    let mounted = match made {
        Err(error) => Err(error),
        Ok(()) if mounter.in_memory(root).unwrap_or(false) => {
            let own = mounter.is_mount_point(root).unwrap_or(false);
            return Ok(if own { Place::Mounted(root.to_owned()) } else { Place::Existing(root.to_owned()) });
        }
        Ok(()) => mounter.mount_tmpfs(root, TMPFS_SIZE),
    };
    let refused = match mounted {
        Ok(()) => return Ok(Place::Mounted(root.to_owned())),
        Err(error) => error.to_string(),
    };
    for candidate in candidates {
        if mounter.in_memory(candidate).unwrap_or(false) {
            let directory = candidate.join(directory_name(instance));
            if private_directory(&directory).is_ok() && mounter.in_memory(&directory).unwrap_or(false) {
                return Ok(Place::Existing(directory));
            }
        }
    }
    Err(no_memory(refused))
}

/// Wipes everything below `root` and the directory in memory that [`choose`] would take for it, and unmounts:
/// for a node that will not come back.
pub fn clear(mounter: &dyn Mounter, root: &Path, candidates: &[PathBuf], instance: &str) -> io::Result<()> {
    for candidate in candidates {
        crate::files::wipe_and_remove(&candidate.join(directory_name(instance)))?;
    }
    if !root.exists() {
        return Ok(());
    }
    crate::files::wipe_and_remove(&root.join(PODS))?;
    if mounter.is_mount_point(root)? {
        mounter.unmount(root)?;
    }
    Ok(())
}

/// The directory of the pods' volumes, as the kubelet names it.
pub const PODS: &str = "pods";

fn directory_name(instance: &str) -> String {
    format!("coffer-node-{instance}")
}

/// Makes a directory that only we can enter; one that is there must be ours and closed to others.
fn private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o750).create(path)?;
    let metadata = std::fs::symlink_metadata(path)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} is not a directory of this user", path.display()),
        ));
    }
    if metadata.permissions().mode() & 0o007 != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o750))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A kernel that mounts or refuses, and calls directories with `shm` in their path tmpfs.
    struct Fake {
        may_mount: bool,
        mounted: Mutex<Vec<PathBuf>>,
    }

    impl Mounter for Fake {
        fn mount_tmpfs(&self, path: &Path, _: u64) -> io::Result<()> {
            if !self.may_mount {
                return Err(io::Error::from_raw_os_error(1));
            }
            self.mounted.lock().expect("no panic").push(path.to_owned());
            Ok(())
        }

        fn unmount(&self, _: &Path) -> io::Result<()> {
            Ok(())
        }

        fn in_memory(&self, path: &Path) -> io::Result<bool> {
            Ok(path.to_string_lossy().contains("shm"))
        }

        fn is_mount_point(&self, path: &Path) -> io::Result<bool> {
            Ok(path.ends_with("shm"))
        }
    }

    fn place(may_mount: bool, root: &str, candidate: &str) -> Result<(Place, usize), NoMemory> {
        let base = tempfile::tempdir().expect("a directory");
        let candidate = base.path().join(candidate);
        std::fs::create_dir_all(&candidate).expect("made");
        let fake = Fake { may_mount, mounted: Mutex::default() };
        let place = choose(&fake, &base.path().join(root), &[candidate], "n1")?;
        let strip = |path: &Path| path.strip_prefix(base.path()).expect("below").to_owned();
        let mounts = fake.mounted.lock().expect("no panic").len();
        Ok((
            match &place {
                Place::Mounted(path) => Place::Mounted(strip(path)),
                Place::Existing(path) => Place::Existing(strip(path)),
            },
            mounts,
        ))
    }

    #[test]
    fn a_disk_is_never_chosen() {
        assert_eq!(place(true, "root", "shm").expect("a place"), (Place::Mounted("root".into()), 1));
        assert_eq!(
            place(false, "root", "shm").expect("a place"),
            (Place::Existing("shm/coffer-node-n1".into()), 0)
        );
        assert_eq!(place(false, "shm/x", "no").expect("a place"), (Place::Existing("shm/x".into()), 0));
        assert_eq!(place(true, "shm", "no").expect("a place"), (Place::Mounted("shm".into()), 0));
        let error = place(false, "root", "disk").expect_err("no tmpfs").to_string();
        assert!(error.contains("none of"), "{error}");
        assert!(error.contains("--root-dir"), "{error}");
    }

    #[test]
    fn a_node_that_does_not_come_back_leaves_nothing() {
        let base = tempfile::tempdir().expect("a directory");
        let (root, candidate) = (base.path().join("shm"), base.path().join("other"));
        for directory in [root.join(PODS), candidate.join("coffer-node-n1").join(PODS)] {
            std::fs::create_dir_all(&directory).expect("made");
            std::fs::write(directory.join("password"), "x").expect("written");
        }
        let fake = Fake { may_mount: true, mounted: Mutex::default() };
        clear(&fake, &root, std::slice::from_ref(&candidate), "n1").expect("cleared");
        assert!(!root.join(PODS).exists());
        assert!(!candidate.join("coffer-node-n1").exists());
        clear(&fake, &base.path().join("never"), &[candidate], "n1").expect("nothing to clear");
    }

    #[test]
    fn a_directory_of_others_is_closed() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().expect("a directory");
        let path = base.path().join("open");
        std::fs::create_dir(&path).expect("made");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("opened");
        private_directory(&path).expect("closed");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o750);
    }
}
