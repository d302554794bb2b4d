//! What the node knows of one pod, between two looks at it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use super::checkpoint::Checkpoint;
use super::status;
use super::tokens::{HeldToken, Wanted};
use super::uses::FixedUses;
use crate::report::Report;

/// What the node knows of one pod.
#[derive(Default)]
pub(super) struct PodState {
    pub(super) pod: Option<Pod>,
    /// When to look again for a reason that no watch will tell, in monotonic time.
    pub(super) retry_at: Option<Duration>,
    /// When the periodic pass comes to it, in monotonic time.
    pub(super) pass_at: Option<Duration>,
    /// Since when the first answer about some object is waited for.
    pub(super) waiting_since: Option<Duration>,
    /// Which content each volume holds.
    pub(super) held: Checkpoint,
    /// The checkpoint as it is on the tmpfs.
    pub(super) saved: Option<Checkpoint>,
    /// What its containers were given when they started.
    pub(super) fixed: FixedUses,
    pub(super) tokens: BTreeMap<Wanted, HeldToken>,
    pub(super) retired: Vec<Retired>,
    /// What was reported last.
    pub(super) reported: Option<(Report, status::PodCondition)>,
}

impl PodState {
    /// A pod that an earlier life of this node may have served: its containers keep what they were given then.
    pub(super) fn of(pod: Pod) -> Self {
        Self { fixed: FixedUses::of(&pod), pod: Some(pod), ..Self::default() }
    }

    /// Writes the report again, whatever was written before.
    pub(super) fn forget_report(&mut self) {
        self.reported = None;
    }

    /// Whether it waits for the first answer about some object.
    pub(super) fn waits(&self) -> bool {
        self.waiting_since.is_some()
    }

    /// Looks again at a time, or earlier.
    pub(super) fn try_again(&mut self, at: Duration) {
        self.retry_at = Some(self.retry_at.map_or(at, |other| other.min(at)));
    }
}

/// The directory of an old version.
pub(super) struct Retired {
    pub(super) volume: PathBuf,
    pub(super) name: String,
    /// When it goes, in monotonic time.
    pub(super) due: Duration,
}
