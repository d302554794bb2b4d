//! Files that change all at once: the layout and the steps of the kubelet's AtomicWriter.
//!
//! A volume holds `..data`, a link to a directory named by time, and one link per top-level
//! name into `..data`. A new payload is written beside the old one; renaming a link over
//! `..data` flips all files in one step. Unlike upstream, leftovers of a crash (a stale
//! `..data_tmp`, directories that nothing points to) are removed by the next write, and the old
//! directory stays until readers that were on their way through `..data` have arrived (field case N17):
//! the caller removes it later.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use coffer_types::time::Timestamp;

use super::payload::Payload;
use crate::files::Files;

/// The link that all readers go through.
pub const DATA: &str = "..data";
/// The next value of [`DATA`] before it is renamed.
pub const NEW_DATA: &str = "..data_tmp";
/// Longest path, in bytes.
const MAX_PATH: usize = 4096;
/// Longest name, in bytes.
const MAX_NAME: usize = 255;

/// Why a payload was not written. Nothing changed unless the step says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A path breaks a rule; upstream's texts.
    #[error("invalid path: {0}")]
    InvalidPath(String),
    /// A step failed.
    #[error("{step} {path}: {source}")]
    Io {
        /// What was being done.
        step: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The files were already as wanted.
    Unchanged,
    /// The volume was flipped to a new directory.
    Flipped {
        /// The directory of the old version, for [`AtomicWriter::remove_retired`].
        retired: Option<String>,
    },
}

/// Writes payloads into one directory. One writer at a time per directory is the caller's duty.
pub struct AtomicWriter<'a> {
    /// The file system.
    pub files: &'a dyn Files,
    /// The volume's directory; it exists.
    pub directory: &'a Path,
    /// `fsGroup` of the pod.
    pub group: Option<u32>,
    /// Directories of old versions that readers may still be on their way to.
    pub retired: &'a BTreeSet<String>,
}

impl AtomicWriter<'_> {
    /// Makes the volume hold exactly `payload`. `now` and `suffix` name the new directory.
    pub fn write(&self, payload: &Payload, now: Timestamp, suffix: u32) -> Result<Written, WriteError> {
        let payload = cleaned(payload)?;
        let current = self.current()?;
        self.remove_leftovers(current.as_deref())?;
        let wanted: BTreeSet<String> = payload.keys().flat_map(|path| with_parents(path)).collect();
        let found = match &current {
            Some(directory) => self.walk(&self.directory.join(directory), "")?,
            None => BTreeSet::new(),
        };
        let gone: BTreeSet<&String> = found.difference(&wanted).collect();
        let changed = current.is_none() || !gone.is_empty() || self.differs(&payload, current.as_deref());
        if !changed {
            // A crash after the flip may have left the names as they were.
            self.link_names(&payload)?;
            self.remove_names(&wanted)?;
            return Ok(Written::Unchanged);
        }
        let name = format!("..{}.{suffix}", now.strftime("%Y_%m_%d_%H_%M_%S"));
        self.write_directory(&name, &payload)?;
        self.flip(&name)?;
        self.link_names(&payload)?;
        self.remove_names(&wanted)?;
        Ok(Written::Flipped { retired: current })
    }

    /// Removes the directory of an old version. A link in its place goes, and not what it leads to.
    pub fn remove_retired(&self, name: &str) -> Result<(), WriteError> {
        let path = self.directory.join(name);
        tolerate_missing(self.files.remove_tree(&path)).map_err(at("remove", &path))
    }

    /// The directory that `..data` points to. A link that leads out of the volume was put there by somebody
    /// else: it counts as none, so that nothing behind it is listed, compared or removed (field case S15).
    fn current(&self) -> Result<Option<String>, WriteError> {
        let link = self.directory.join(DATA);
        match self.files.read_link(&link) {
            Ok(target) => Ok(Some(target.to_string_lossy().into_owned()).filter(|name| is_version(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at("read the link", &link)(error)),
        }
    }

    /// Removes what a crash left: the unfinished link and directories that nothing points to.
    fn remove_leftovers(&self, current: Option<&str>) -> Result<(), WriteError> {
        for (name, is_dir) in self.files.list(self.directory).map_err(at("list", self.directory))? {
            let path = self.directory.join(&name);
            if name == NEW_DATA {
                self.files.remove_file(&path).map_err(at("remove", &path))?;
            } else if is_dir
                && name.starts_with("..")
                && Some(name.as_str()) != current
                && !self.retired.contains(&name)
            {
                self.files.remove_tree(&path).map_err(at("remove", &path))?;
            }
        }
        Ok(())
    }

    fn walk(&self, directory: &Path, below: &str) -> Result<BTreeSet<String>, WriteError> {
        let mut paths = BTreeSet::new();
        let names = match self.files.list(directory) {
            Ok(names) => names,
            // `..data` dangles: there is no old version.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(paths),
            Err(error) => return Err(at("list", directory)(error)),
        };
        for (name, is_dir) in names {
            let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            if is_dir {
                paths.extend(self.walk(&directory.join(&name), &path)?);
            }
            paths.insert(path);
        }
        Ok(paths)
    }

    /// Whether a file is missing or has other bytes. Modes are not compared, as upstream.
    fn differs(&self, payload: &Payload, current: Option<&str>) -> bool {
        let Some(current) = current else { return true };
        payload.iter().any(|(path, file)| {
            let path = self.directory.join(current).join(path);
            !self.files.holds(&path, file.content.expose()).unwrap_or(false)
        })
    }

    fn write_directory(&self, name: &str, payload: &Payload) -> Result<(), WriteError> {
        let root = self.directory.join(name);
        let written = self.write_files(&root, payload);
        if written.is_err() {
            // Best effort: the next write removes it if this fails too.
            let _ = self.files.remove_tree(&root);
        }
        written
    }

    fn write_files(&self, root: &Path, payload: &Payload) -> Result<(), WriteError> {
        self.files.make_dir(root, 0o755).map_err(at("make the directory", root))?;
        let mut made = BTreeSet::new();
        for (path, file) in payload {
            for parent in with_parents(path).into_iter().filter(|parent| parent != path) {
                if made.insert(parent.clone()) {
                    let directory = root.join(&parent);
                    self.files.make_dir(&directory, 0o755).map_err(at("make the directory", &directory))?;
                }
            }
            let path = root.join(path);
            self.files.write_new(&path, file.content.expose(), file.mode).map_err(at("write", &path))?;
            if let Some(owner) = file.owner {
                self.files.set_owner(&path, owner).map_err(at("set the owner of", &path))?;
            }
        }
        match self.group {
            Some(group) => self.give_to(group, root, true),
            None => Ok(()),
        }
    }

    /// Children before parents, as upstream.
    fn give_to(&self, group: u32, path: &Path, is_dir: bool) -> Result<(), WriteError> {
        if is_dir {
            for (name, is_dir) in self.files.list(path).map_err(at("list", path))? {
                self.give_to(group, &path.join(name), is_dir)?;
            }
        }
        self.files.set_group(path, group, is_dir).map_err(at("set the group of", path))
    }

    fn flip(&self, name: &str) -> Result<(), WriteError> {
        let new = self.directory.join(NEW_DATA);
        let data = self.directory.join(DATA);
        let flipped = self
            .files
            .symlink(Path::new(name), &new)
            .map_err(at("link", &new))
            .and_then(|()| self.files.rename(&new, &data).map_err(at("rename to", &data)));
        if flipped.is_err() {
            let _ = self.files.remove_file(&new);
            let _ = self.files.remove_tree(&self.directory.join(name));
        }
        flipped
    }

    /// Makes the missing links of the top-level names. What is there already is left.
    fn link_names(&self, payload: &Payload) -> Result<(), WriteError> {
        // A link belongs to the owner of the first file below it that has one, as upstream.
        let mut names: BTreeMap<&str, Option<u32>> = BTreeMap::new();
        for (path, file) in payload {
            let owner = names.entry(first_element(path)).or_default();
            *owner = owner.or(file.owner);
        }
        for (name, owner) in names {
            let link = self.directory.join(name);
            match self.files.read_link(&link) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let target = Path::new(DATA).join(name);
                    self.files.symlink(&target, &link).map_err(at("link", &link))?;
                    if let Some(owner) = owner {
                        self.files.set_owner(&link, owner).map_err(at("set the owner of", &link))?;
                    }
                    if let Some(group) = self.group {
                        self.files.set_group(&link, group, false).map_err(at("set the group of", &link))?;
                    }
                }
                // A directory of a nested mount, or a link already.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Removes the links of top-level names that are gone, also those that a crash left behind.
    fn remove_names(&self, wanted: &BTreeSet<String>) -> Result<(), WriteError> {
        for (name, is_dir) in self.files.list(self.directory).map_err(at("list", self.directory))? {
            if is_dir || name.starts_with("..") || wanted.contains(&name) {
                continue;
            }
            let link = self.directory.join(&name);
            // Only our own links: they point into `..data`.
            if self.files.read_link(&link).is_ok_and(|target| target == Path::new(DATA).join(&name)) {
                self.files.remove_file(&link).map_err(at("remove", &link))?;
            }
        }
        Ok(())
    }
}

fn at(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::Io { step, path, source }
}

fn tolerate_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Whether a name is one that [`AtomicWriter::write`] gives a directory.
fn is_version(name: &str) -> bool {
    let plain = name.strip_prefix("..").is_some_and(|rest| !rest.is_empty() && !rest.contains('/'));
    plain && name != DATA && name != NEW_DATA
}

fn first_element(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// `a/b/c` gives `a`, `a/b` and `a/b/c`.
fn with_parents(path: &str) -> Vec<String> {
    let mut paths: Vec<String> = path.match_indices('/').map(|(index, _)| path[..index].to_owned()).collect();
    paths.push(path.to_owned());
    paths
}

/// Checks every path and removes empty and `.` elements.
fn cleaned(payload: &Payload) -> Result<Payload, WriteError> {
    payload
        .iter()
        .map(|(path, file)| {
            check_path(path).map_err(WriteError::InvalidPath)?;
            let clean: Vec<&str> =
                path.split('/').filter(|element| !element.is_empty() && *element != ".").collect();
            if clean.is_empty() {
                return Err(WriteError::InvalidPath(format!("must not be empty: {path:?}")));
            }
            Ok((clean.join("/"), file.clone()))
        })
        .collect()
}

/// The rules on raw paths, in upstream's order and words.
fn check_path(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("must not be empty: \"\"".to_owned());
    }
    if path.starts_with('/') {
        return Err(format!("must be relative path: {path}"));
    }
    if path.len() > MAX_PATH {
        return Err(format!("must be less than or equal to {MAX_PATH} characters"));
    }
    for element in path.split('/') {
        if element == ".." {
            return Err(format!("must not contain '..': {path}"));
        }
        if element.len() > MAX_NAME {
            return Err(format!("filenames must be less than or equal to {MAX_NAME} characters"));
        }
    }
    if first_element(path).starts_with("..") {
        return Err(format!("must not start with '..': {path}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
