//! How far a migration is: what is kept between two runs.

use serde::{Deserialize, Serialize};

/// How far a migration is. It holds names and counts, never a value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Progress {
    /// The server: another one has other tokens.
    pub server: String,
    /// Whether the server was asked to write nothing.
    pub dry_run: bool,
    /// The resources, in order.
    pub resources: Vec<ResourceProgress>,
}

/// How far one resource is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceProgress {
    /// `secrets` or `deployments.apps`.
    pub resource: String,
    /// Where the next page begins.
    pub token: String,
    /// Whether all pages are done.
    pub finished: bool,
    /// Objects that are done, whatever became of them.
    pub done: u64,
    /// Those that were written anew.
    pub rewritten: u64,
    /// Those that were deleted meanwhile.
    pub gone: u64,
    /// Objects still to come, where the server tells.
    pub remaining: Option<u64>,
    /// Those that could not be rewritten.
    pub failed: Vec<Failed>,
}

/// An object that could not be rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Failed {
    /// `<namespace>/<name>` or `<name>`.
    pub name: String,
    /// The server's words.
    pub reason: String,
}

impl Progress {
    /// Nothing is done yet.
    pub fn new(server: &str, resources: &[String], dry_run: bool) -> Self {
        let resources = resources
            .iter()
            .map(|resource| ResourceProgress { resource: resource.clone(), ..ResourceProgress::default() })
            .collect();
        Self { server: server.to_owned(), dry_run, resources }
    }

    /// Whether this is the progress of a run over the same resources of the same server.
    pub fn belongs_to(&self, server: &str, resources: &[String], dry_run: bool) -> bool {
        self.server == server
            && self.dry_run == dry_run
            && self.resources.iter().map(|of| &of.resource).eq(resources)
    }

    /// Objects that could not be rewritten.
    pub fn failed(&self) -> usize {
        self.resources.iter().map(|of| of.failed.len()).sum()
    }

    /// Objects that are done.
    pub fn done(&self) -> u64 {
        self.resources.iter().map(|of| of.done).sum()
    }

    /// Objects that are known to be left.
    pub fn remaining(&self) -> u64 {
        self.resources.iter().filter_map(|of| of.remaining).sum()
    }
}
