//! Forgets old history: the protocol by which all API servers on one etcd take turns.
//!
//! All of them keep the key [`COMPACT_KEY`], whose version counts the rounds. A
//! server that finds the version as it left it may compact to the revision of
//! its last round; one that does not only learns where the others are. So what
//! was current at a round is kept for at least one whole interval.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coffer_types::time::Clock;
use tokio_util::sync::CancellationToken;

use crate::kv::{Compare, Kv, KvError, Op, OpResponse, RangeRequest, Revision, SharedValue, Txn, contained};

/// The key that all servers share; it has no prefix.
pub const COMPACT_KEY: &[u8] = b"compact_rev_key";
/// `--etcd-compaction-interval` where none is given; 0 means never.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Compacts once an interval.
pub struct Compactor {
    kv: Arc<dyn Kv>,
    clock: Arc<dyn Clock>,
    interval: Duration,
    /// Told the revision that was compacted to, by this server or another.
    compacted: Box<dyn Fn(Revision) + Send + Sync>,
    round: Round,
}

/// What is remembered between rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Round {
    /// The version that the key had after the last round.
    version: i64,
    /// The store's revision at the last round; 0 before the first.
    revision: Revision,
}

impl Compactor {
    /// An interval of 0 never compacts.
    pub fn new(
        kv: Arc<dyn Kv>,
        clock: Arc<dyn Clock>,
        interval: Duration,
        compacted: Box<dyn Fn(Revision) + Send + Sync>,
    ) -> Self {
        Self { kv, clock, interval, compacted, round: Round::default() }
    }

    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        if self.interval.is_zero() {
            return;
        }
        loop {
            tokio::select! {
                () = self.clock.sleep(self.interval) => {}
                () = stop.cancelled() => return,
            }
            if let Err(error) = contained(self.round()).await {
                tracing::warn!(%error, "compaction failed and is tried again in the next round");
            }
        }
    }

    /// One round.
    pub async fn round(&mut self) -> Result<(), KvError> {
        let Round { version, revision } = self.round;
        let key = Bytes::from_static(COMPACT_KEY);
        let response = self
            .kv
            .txn(Txn {
                compare: vec![Compare::Version(key.clone(), version)],
                success: vec![Op::Put {
                    key: key.clone(),
                    value: SharedValue(Bytes::from(revision.to_string())),
                    lease: 0,
                }],
                failure: vec![Op::Range(RangeRequest { start: key, limit: 1, ..RangeRequest::default() })],
            })
            .await?;
        if response.succeeded {
            self.round = Round { version: version + 1, revision: response.revision };
            // The first round only finds out where the store is.
            if revision != 0 {
                self.kv.compact(revision).await?;
                (self.compacted)(revision);
            }
            return Ok(());
        }
        let theirs = match response.responses.into_iter().next() {
            Some(OpResponse::Range(range)) => range.items.into_iter().next(),
            _ => None,
        };
        self.round =
            Round { version: theirs.as_ref().map_or(0, |kv| kv.version), revision: response.revision };
        let compacted = theirs.and_then(|kv| std::str::from_utf8(&kv.value).ok()?.parse().ok());
        if let Some(compacted @ 1..) = compacted {
            (self.compacted)(compacted);
        }
        Ok(())
    }
}
