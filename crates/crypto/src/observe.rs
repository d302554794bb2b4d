//! Telling of every transformation, for metrics.

use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::Clock;

use crate::kms::Direction;
use crate::{Failure, Layer, Plain, PrefixList, TransformError, Transformer};

/// Who is told. No method ever gets a value or a key.
pub trait TransformObserver: Send + Sync + 'static {
    /// A value of `resource` went through the layer behind `prefix`, or did not.
    fn transformed(
        &self,
        resource: &str,
        direction: Direction,
        prefix: &str,
        outcome: Result<Duration, &Failure>,
    );
}

/// The resource whose values are transformed, and who is told.
#[derive(Clone)]
pub struct Watched {
    /// As in a configuration: `secrets`, `deployments.apps`.
    pub resource: String,
    /// Measures.
    pub clock: Arc<dyn Clock>,
    /// Is told.
    pub observer: Arc<dyn TransformObserver>,
}

impl Watched {
    pub(crate) fn started(&self) -> Duration {
        self.clock.monotonic()
    }

    pub(crate) fn ended(
        &self,
        direction: Direction,
        prefix: &[u8],
        started: Duration,
        failure: Option<&Failure>,
    ) {
        let took = self.clock.monotonic().saturating_sub(started);
        let prefix = String::from_utf8_lossy(prefix);
        self.observer.transformed(&self.resource, direction, &prefix, failure.map_or(Ok(took), Err));
    }
}

/// A list that tells of what it does.
pub struct WatchedList {
    /// The list.
    pub list: Arc<PrefixList>,
    /// Of whose values, to whom.
    pub watched: Watched,
}

impl Transformer for WatchedList {
    fn from_storage(&self, stored: &[u8], context: &[u8]) -> Result<Plain, TransformError> {
        Ok(self.list.open_watched(stored, context, &self.watched)?)
    }

    fn to_storage(&self, plain: &[u8], context: &[u8]) -> Result<Vec<u8>, TransformError> {
        let mut out = Vec::with_capacity(self.list.sealed_len(plain.len()));
        self.list.seal_watched(plain, context, &mut out, &self.watched)?;
        Ok(out)
    }

    fn writes_under(&self) -> String {
        self.list.seals_under()
    }
}
