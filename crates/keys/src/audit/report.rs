//! What an audit found.

use std::collections::{BTreeMap, HashMap};

use coffer_store::kv::Revision;
use serde::{Deserialize, Serialize};

use super::verdict::{Judged, Verdict};

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The revision that was read. A running store may forget it meanwhile: then the one at which the
    /// rest was read.
    pub revision: Revision,
    /// Whether every copy was opened with the keys of a configuration.
    pub opened: bool,
    /// Whether nothing was found: every live copy is stored as a write would store it now.
    pub clean: bool,
    /// Totals, ordered by resource, provider, key.
    pub copies: Vec<Copies>,
    /// Every live copy that is not as it should be, ordered by key. Copies under an old key that is
    /// held are counted in [`Copies::remaining`] instead.
    pub findings: Vec<Finding>,
}

/// The copies of one resource under one key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Copies {
    /// `secrets` or `deployments.apps`; "" for keys that belong to no resource.
    pub resource: String,
    /// `identity`, `aescbc`, `aesgcm`, `secretbox`, `kms v1`, `kms v2`; `unknown` for a form that nobody knows.
    pub provider: String,
    /// Name of the key or plugin; "" for identity.
    pub key: String,
    /// Live copies.
    pub live: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Copies in the history that no longer count, but that a stolen file still holds.
    /// `None` where the history cannot be seen: a running etcd does not show it.
    pub old_revisions: Option<u64>,
    /// Live copies that a held key opens, but that a write would store in another form now.
    pub old_key: u64,
    /// Where those are: how many in each namespace ("" for none).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remaining: BTreeMap<String, u64>,
}

/// A live copy that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Its key in etcd.
    pub etcd_key: String,
    /// What is wrong.
    pub problem: Problem,
    /// Its resource.
    pub resource: String,
    /// `<namespace>/<name>` or `<name>`.
    pub name: String,
    /// As in [`Copies::provider`].
    pub provider: String,
    /// As in [`Copies::key`].
    pub key: String,
    /// More about it.
    pub reason: String,
}

/// What is wrong with a live copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Problem {
    /// Not encrypted although it should be.
    Plaintext,
    /// No key of the configuration opens it.
    Undecryptable,
    /// It is no object.
    Undecodable,
    /// It is the object of another key.
    Misplaced,
}

impl Problem {
    /// As a person reads it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Undecryptable => "undecryptable",
            Self::Undecodable => "undecodable",
            Self::Misplaced => "misplaced",
        }
    }
}

/// Which group of copies one belongs to; small, since there is one for every key.
pub(super) type GroupId = u32;

/// A report in the making.
#[derive(Debug, Default)]
pub(super) struct Tally {
    groups: Vec<Copies>,
    ids: HashMap<String, GroupId>,
    /// Resource, provider and key of the copy at hand.
    wanted: String,
    /// The group of the copy before: copies of one resource stand together.
    last: GroupId,
    findings: Vec<Finding>,
}

impl Tally {
    /// The group that a copy belongs to.
    pub(super) fn group(&mut self, judged: &Judged<'_>) -> GroupId {
        use std::fmt::Write as _;

        let (provider, key) = match &judged.under {
            Some(under) => (under.provider.name(), under.key_name.as_str()),
            None => ("unknown", ""),
        };
        let of_last = |last: &&Copies| {
            let resource =
                judged.resource.map_or(last.resource.is_empty(), |resource| resource.is(&last.resource));
            resource && last.provider == provider && last.key == key
        };
        if self.groups.get(self.last as usize).filter(of_last).is_some() {
            return self.last;
        }
        self.wanted.clear();
        if let Some(resource) = judged.resource {
            // Writing to a string cannot fail.
            let _ = write!(self.wanted, "{resource}");
        }
        let resource = self.wanted.len();
        let _ = write!(self.wanted, "\0{provider}\0{key}");
        if let Some(id) = self.ids.get(&self.wanted) {
            self.last = *id;
            return *id;
        }
        let id = GroupId::try_from(self.groups.len()).unwrap_or(GroupId::MAX);
        self.groups.push(Copies {
            resource: self.wanted[..resource].to_owned(),
            provider: provider.to_owned(),
            key: key.to_owned(),
            ..Copies::default()
        });
        self.ids.insert(self.wanted.clone(), id);
        self.last = id;
        id
    }

    /// Counts a live copy.
    pub(super) fn live(
        &mut self,
        group: GroupId,
        etcd_key: &str,
        name: &str,
        bytes: usize,
        verdict: Verdict,
    ) {
        let Some(copies) = self.groups.get_mut(group as usize) else { return };
        copies.live += 1;
        copies.bytes += bytes as u64;
        let (problem, reason) = match verdict {
            Verdict::Good => return,
            Verdict::OldKey => {
                copies.old_key += 1;
                let namespace = name.split_once('/').map_or("", |(namespace, _)| namespace);
                *copies.remaining.entry(namespace.to_owned()).or_default() += 1;
                return;
            }
            Verdict::Plaintext => (Problem::Plaintext, String::new()),
            Verdict::Undecryptable(reason) => (Problem::Undecryptable, reason),
            Verdict::Undecodable => {
                (Problem::Undecodable, "it is no object in any known encoding".to_owned())
            }
            Verdict::Misplaced(own) => (Problem::Misplaced, format!("it is the object {own}")),
        };
        self.findings.push(Finding {
            etcd_key: etcd_key.to_owned(),
            problem,
            resource: copies.resource.clone(),
            name: name.to_owned(),
            provider: copies.provider.clone(),
            key: copies.key.clone(),
            reason,
        });
    }

    /// Counts a copy that no longer counts.
    pub(super) fn old(&mut self, group: GroupId) {
        if let Some(copies) = self.groups.get_mut(group as usize) {
            *copies.old_revisions.get_or_insert_default() += 1;
        }
    }

    /// A copy that no key opens was found to belong to another key.
    pub(super) fn moved(&mut self, etcd_key: &str, from: &str) {
        for finding in self.findings.iter_mut().filter(|finding| finding.etcd_key == etcd_key) {
            finding.problem = Problem::Misplaced;
            finding.reason = format!("it was stored as {from}");
        }
    }

    /// The report. `history` says whether old revisions were seen.
    pub(super) fn finish(self, revision: Revision, opened: bool, history: bool) -> Report {
        let Self { mut groups, mut findings, .. } = self;
        if history {
            for copies in &mut groups {
                copies.old_revisions.get_or_insert_default();
            }
        }
        groups.sort_by(|a, b| (&a.resource, &a.provider, &a.key).cmp(&(&b.resource, &b.provider, &b.key)));
        findings.sort();
        let clean = findings.is_empty() && groups.iter().all(|copies| copies.old_key == 0);
        Report { revision, opened, clean, copies: groups, findings }
    }
}
