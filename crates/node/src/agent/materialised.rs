//! What came of a volume: what is told of it, and what it holds.

use std::collections::BTreeMap;

use crate::report::Consumer;
use crate::volume::payload::Payload;

/// A volume after an attempt to bring it up to date.
pub(super) struct Materialised {
    /// One entry for each Secret in it.
    pub(super) consumers: Vec<Consumer>,
    /// Its files, when it was brought up to date.
    pub(super) payload: Option<Payload>,
    /// The resourceVersion of each Secret that the files were made from.
    pub(super) versions: BTreeMap<String, String>,
    /// Whether some container mounts the whole volume, and not only parts by subPath.
    pub(super) mounted_whole: bool,
    /// Why it was not brought up to date.
    pub(super) failure: Option<String>,
    /// Whether it waits for the first answer about one of its objects.
    pub(super) waits: bool,
}
