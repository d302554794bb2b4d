//! Where secret bytes may be: on a tmpfs, never on a disk.

use std::io;
use std::path::{Path, PathBuf};

use coffer_types::time::Clock;

use super::mounter::Mounter;
use super::unmount::{self, Detached};

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
/// for a node that will not come back. A mount that stays busy is detached, and told.
pub async fn clear(
    mounter: &dyn Mounter,
    clock: &dyn Clock,
    root: &Path,
    candidates: &[PathBuf],
    instance: &str,
) -> io::Result<Option<Detached>> {
    for candidate in candidates {
        crate::files::wipe_and_remove(&candidate.join(directory_name(instance)))?;
    }
    if !root.exists() {
        return Ok(None);
    }
    crate::files::wipe_and_remove(&root.join(PODS))?;
    if !mounter.is_mount_point(root)? {
        return Ok(None);
    }
    unmount::unmount(mounter, clock, root).await
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
    use super::super::holders::Holder;
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

        fn detach(&self, _: &Path) -> io::Result<()> {
            Ok(())
        }

        fn holders(&self, _: &Path) -> Vec<Holder> {
            Vec::new()
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

    #[tokio::test]
    async fn a_node_that_does_not_come_back_leaves_nothing() {
        let base = tempfile::tempdir().expect("a directory");
        let (root, candidate) = (base.path().join("shm"), base.path().join("other"));
        for directory in [root.join(PODS), candidate.join("coffer-node-n1").join(PODS)] {
            std::fs::create_dir_all(&directory).expect("made");
            std::fs::write(directory.join("password"), "x").expect("written");
        }
        let fake = Fake { may_mount: true, mounted: Mutex::default() };
        let clock = coffer_sim::clock::SimClock::default();
        let candidates = [candidate.clone()];
        let done = clear(&fake, &clock, &root, &candidates, "n1").await.expect("cleared");
        assert_eq!(done, None);
        assert!(!root.join(PODS).exists());
        assert!(!candidate.join("coffer-node-n1").exists());
        let never = base.path().join("never");
        clear(&fake, &clock, &never, &candidates, "n1").await.expect("nothing to clear");
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
