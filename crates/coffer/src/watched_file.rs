//! A file, and word of every change to it.
//!
//! Directories are watched, never the file itself: an editor or a deployment puts another file in its
//! place, and a mounted ConfigMap flips a symlink beside it. Whatever is not noticed (a network file
//! system, a directory that comes later) is seen by those who look again after a while.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use coffer_server::encryption::ConfigFile;
use coffer_types::SecretBytes;
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// No configuration is larger; a device or a log that is named by mistake is not read to its end.
const MOST_BYTES: u64 = 4 << 20;
/// After so many symlinks a path leads nowhere, as in the kernel.
const MOST_LINKS: usize = 40;

/// What is said of a mounted file that another one took the place of.
const REPLACED: &str = "the file is mounted by itself and was replaced where it comes from, which is not seen here: mount its directory";

/// A file on disk.
pub(crate) struct WatchedFile {
    path: PathBuf,
    changed: Arc<Notify>,
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    /// `None` when the system has no watches to give.
    watcher: Option<RecommendedWatcher>,
    places: Arc<Mutex<Vec<Place>>>,
    /// Watched directories and their inodes: another directory of the same name is watched anew.
    directories: Vec<(PathBuf, u64)>,
}

/// A name whose directory entry decides what a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    directory: PathBuf,
    name: OsString,
}

impl WatchedFile {
    /// Watches from now on.
    pub(crate) fn new(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let file = Self { path, changed: Arc::default(), watched: Mutex::default() };
        file.watch();
        if is_mounted_alone(&file.path) {
            tracing::warn!(
                file = %file.path.display(),
                "the file is mounted by itself, so that a new file in its place is not seen here: mount its directory"
            );
        }
        file
    }

    /// Watches what the path leads through now.
    pub(crate) fn watch(&self) {
        let mut watched = self.watched.lock();
        if watched.watcher.is_none() {
            watched.watcher = self.watcher(&watched.places);
        }
        let places = places(&self.path);
        let mut directories: Vec<(PathBuf, u64)> = Vec::new();
        for Place { directory, .. } in &places {
            let Ok(metadata) = std::fs::metadata(directory) else { continue };
            if directories.iter().all(|(known, _)| known != directory) {
                directories.push((directory.clone(), metadata.ino()));
            }
        }
        *watched.places.lock() = places;
        let Watched { watcher: Some(watcher), directories: old, .. } = &mut *watched else { return };
        for (directory, _) in old.iter().filter(|known| !directories.contains(known)) {
            // It may be gone, and its watch with it.
            let _ = watcher.unwatch(directory);
        }
        directories.retain(|known| {
            old.contains(known) || watcher.watch(&known.0, RecursiveMode::NonRecursive).is_ok()
        });
        *old = directories;
    }

    fn watcher(&self, places: &Arc<Mutex<Vec<Place>>>) -> Option<RecommendedWatcher> {
        let (places, changed) = (places.clone(), self.changed.clone());
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let concerns = match event {
                Ok(event) => event.need_rescan() || concerns(&event, &places.lock()),
                // Something was missed.
                Err(_) => true,
            };
            if concerns {
                changed.notify_one();
            }
        });
        watcher
            .map_err(|error| {
                tracing::warn!(%error, "changes of files are only seen every minute");
            })
            .ok()
    }
}

#[async_trait]
impl ConfigFile for WatchedFile {
    async fn read(&self) -> Result<SecretBytes, String> {
        // First: what changes while it is read is told.
        self.watch();
        let read = || {
            let mut bytes = Vec::new();
            let file = File::open(&self.path)?;
            // No name leads to it any more but the mount's.
            if file.metadata()?.nlink() == 0 && is_mounted_alone(&self.path) {
                return Err(std::io::Error::other(REPLACED));
            }
            file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
            Ok(SecretBytes::new(bytes))
        };
        let bytes = read().map_err(|error: std::io::Error| error.to_string())?;
        if MOST_BYTES < bytes.len() as u64 {
            return Err(format!("it is larger than {MOST_BYTES} bytes"));
        }
        Ok(bytes)
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Whether an event may mean another content.
fn concerns(event: &notify::Event, places: &[Place]) -> bool {
    match event.kind {
        // Our own reading.
        EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write) => return false,
        _ => {}
    }
    event.paths.iter().any(|path| {
        places.iter().any(|place| {
            path == &place.directory
                || (path.parent() == Some(&place.directory) && path.file_name() == Some(&place.name))
        })
    })
}

/// The directory entries that decide what an absolute path leads to: its own, and each symlink on the way.
fn places(path: &Path) -> Vec<Place> {
    let mut places = Vec::new();
    let mut links = 0;
    let mut resolved = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = names(path);
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            resolved.pop();
            continue;
        }
        let entry = resolved.join(&name);
        let target = std::fs::read_link(&entry).ok();
        if target.is_some() || rest.is_empty() {
            places.push(Place { directory: resolved.clone(), name });
        }
        let Some(target) = target else {
            resolved = entry;
            continue;
        };
        links += 1;
        if MOST_LINKS < links {
            break;
        }
        if target.is_absolute() {
            resolved = PathBuf::from("/");
        }
        for name in names(&target).into_iter().rev() {
            rest.push_front(name);
        }
    }
    places
}

fn names(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect()
}

/// Whether exactly this file is mounted from elsewhere: the mount keeps the file that was there.
fn is_mounted_alone(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    statx(CWD, path, AtFlags::empty(), StatxFlags::empty())
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;

    async fn told(file: &WatchedFile) {
        // A watch that does not tell would let the test hang; the limit only ends that.
        tokio::time::timeout(Duration::from_secs(60), file.changed()).await.expect("the change is told");
    }

    async fn check(file: &WatchedFile, expected: &[u8]) {
        told(file).await;
        // A change in several steps is told in several parts.
        while file.read().await.map(|bytes| bytes.expose().to_vec()).as_deref() != Ok(expected) {
            told(file).await;
        }
    }

    /// Field case K13: another file in its place is another inode, and is seen.
    #[tokio::test]
    async fn k13_every_way_to_change_a_file_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("encryption.yaml");
        std::fs::write(&path, "one").expect("written");
        let file = WatchedFile::new(&path);
        assert_eq!(file.read().await.expect("can be read").expose(), b"one");

        // Truncated and written.
        std::fs::write(&path, "two").expect("written");
        check(&file, b"two").await;
        // Deleted and created.
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, "three").expect("written");
        check(&file, b"three").await;
        // Moved into its place.
        let new = directory.path().join("new");
        std::fs::write(&new, "four").expect("written");
        std::fs::rename(&new, &path).expect("moved");
        check(&file, b"four").await;
    }

    /// A mounted ConfigMap: the file is a symlink through `..data`, which is replaced.
    #[tokio::test]
    async fn k13_a_flipped_symlink_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        for (version, content) in [("..1", "one"), ("..2", "two")] {
            std::fs::create_dir(at(version)).expect("made");
            std::fs::write(at(version).join("encryption.yaml"), content).expect("written");
        }
        symlink("..1", at("..data")).expect("linked");
        symlink("..data/encryption.yaml", at("encryption.yaml")).expect("linked");
        let file = WatchedFile::new(&at("encryption.yaml"));
        assert_eq!(file.read().await.expect("can be read").expose(), b"one");
        symlink("..2", at("..data_tmp")).expect("linked");
        std::fs::rename(at("..data_tmp"), at("..data")).expect("flipped");
        check(&file, b"two").await;
        // What it leads to now is watched too.
        std::fs::write(at("..2").join("encryption.yaml"), "three").expect("written");
        check(&file, b"three").await;
    }

    /// A file that is mounted by itself. Only the whole run of tests may ask for the right to do so.
    #[cfg(feature = "peers")]
    struct Mounted(PathBuf);

    #[cfg(feature = "peers")]
    impl Mounted {
        fn new(source: &Path, target: PathBuf) -> Self {
            std::fs::write(&target, "").expect("written");
            rustix::mount::mount_bind(source, &target).expect("this test needs the right to mount");
            Self(target)
        }
    }

    #[cfg(feature = "peers")]
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
        }
    }

    /// Field case K13 as it was met: the file alone is mounted. What is written into it is seen. What takes its
    /// place is not, for the mount keeps what was there; that is told in the place of an old content.
    #[cfg(feature = "peers")]
    #[tokio::test]
    async fn k13_a_file_replaced_behind_its_bind_mount_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let source = directory.path().join("encryption.yaml");
        std::fs::write(&source, "one").expect("written");
        let mounted = Mounted::new(&source, directory.path().join("mounted"));
        assert!(is_mounted_alone(&mounted.0) && !is_mounted_alone(&source));
        let file = WatchedFile::new(&mounted.0);
        let read = async || file.read().await.map(|bytes| bytes.expose().to_vec());
        assert_eq!(read().await, Ok(b"one".to_vec()));
        std::fs::write(&source, "two").expect("written");
        assert_eq!(read().await, Ok(b"two".to_vec()));
        let new = directory.path().join("new");
        std::fs::write(&new, "three").expect("written");
        std::fs::rename(&new, &source).expect("moved");
        assert_eq!(read().await, Err(REPLACED.to_owned()));
        // Its directory is mounted: seen.
        let file = WatchedFile::new(&source);
        assert_eq!(file.read().await.expect("can be read").expose(), b"three");
    }

    #[tokio::test]
    async fn reading_is_no_change_and_neither_is_another_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("encryption.yaml");
        std::fs::write(&path, "one").expect("written");
        let file = WatchedFile::new(&path);
        for _ in 0..3 {
            file.read().await.expect("can be read");
            std::fs::write(directory.path().join("other"), "x").expect("written");
        }
        std::fs::write(&path, "two").expect("written");
        told(&file).await;
        // All that is still to be told is of the last write: every event carries the file's name.
        let event = |kind, name: &str| {
            let paths = vec![directory.path().join(name)];
            notify::Event { kind, paths, attrs: notify::event::EventAttributes::default() }
        };
        let places = places(&directory.path().canonicalize().expect("a path").join("encryption.yaml"));
        let open = EventKind::Access(AccessKind::Open(AccessMode::Any));
        let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
        assert!(!concerns(&event(open, "encryption.yaml"), &places));
        assert!(!concerns(&event(written, "other"), &places));
        assert!(concerns(&event(written, "encryption.yaml"), &places));
    }

    #[test]
    fn a_path_is_decided_by_its_name_and_the_symlinks_on_the_way() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        std::fs::create_dir_all(root.join("real/deep")).expect("made");
        symlink("real/deep", root.join("link")).expect("linked");
        symlink(root.join("real/deep/../file"), root.join("real/deep/name")).expect("linked");
        let place =
            |directory: &str, name: &str| Place { directory: root.join(directory), name: name.into() };
        let found = places(&root.join("link/name"));
        let expected = [place("", "link"), place("real/deep", "name"), place("real", "file")];
        assert_eq!(
            found.iter().map(|place| (place.directory.join(""), &place.name)).collect::<Vec<_>>(),
            expected.iter().map(|place| (place.directory.join(""), &place.name)).collect::<Vec<_>>()
        );
        // Links in a circle lead nowhere, and end.
        symlink("b", root.join("a")).expect("linked");
        symlink("a", root.join("b")).expect("linked");
        assert!(places(&root.join("a")).len() <= MOST_LINKS + 1);
    }

    #[tokio::test]
    async fn what_is_no_configuration_by_its_size_is_not_read() {
        let file = WatchedFile::new(Path::new("/dev/zero"));
        assert_eq!(file.read().await.map(drop), Err(format!("it is larger than {MOST_BYTES} bytes")));
        let file = WatchedFile::new(Path::new("/nonexistent/encryption.yaml"));
        assert!(file.read().await.is_err());
    }
}
