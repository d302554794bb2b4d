//! What the node remembers of a pod's volumes over a restart (field case N25): which Secrets, in which
//! versions, their files were made from. No value, and no digest of one.
//!
//! It lies beside the volumes, on the same tmpfs, and goes with them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::Files;

const FILE: &str = "secrets.json";
const NEXT: &str = "secrets.json.next";

/// The volumes of one pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// Namespace of the pod.
    pub(super) namespace: String,
    /// Its name.
    pub(super) pod: String,
    /// Volume → Secret → resourceVersion.
    pub(super) volumes: BTreeMap<String, BTreeMap<String, String>>,
}

impl Checkpoint {
    /// What an earlier life of this node left in the directory of a pod. One that cannot be read counts as
    /// none: the files themselves are compared before they are written.
    pub(super) fn read(files: &dyn Files, directory: &Path) -> Option<Self> {
        serde_json::from_slice(&files.read(&directory.join(FILE)).ok()?).ok()
    }

    /// Replaces it in one step.
    pub(super) fn write(&self, files: &dyn Files, directory: &Path) -> io::Result<()> {
        let next = directory.join(NEXT);
        match files.remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        files.write_new(&next, &text, 0o600)?;
        files.rename(&next, &directory.join(FILE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::RealFiles;

    #[test]
    fn n25_a_checkpoint_is_replaced_whole_and_a_torn_one_counts_as_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        assert_eq!(Checkpoint::read(&RealFiles, path), None);
        let mut checkpoint =
            Checkpoint { namespace: "ns".into(), pod: "web".into(), volumes: BTreeMap::new() };
        for version in ["1", "2"] {
            let secrets = BTreeMap::from([("db".to_owned(), version.to_owned())]);
            checkpoint.volumes.insert("v".to_owned(), secrets);
            // What a crash between the two steps leaves is no obstacle.
            std::fs::write(path.join(NEXT), "{").expect("written");
            checkpoint.write(&RealFiles, path).expect("written");
            assert_eq!(Checkpoint::read(&RealFiles, path).as_ref(), Some(&checkpoint));
        }
        std::fs::write(path.join(FILE), "{\"namesp").expect("torn");
        assert_eq!(Checkpoint::read(&RealFiles, path), None);
    }
}
