//! Telling of every transformation, for metrics.

use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::Clock;

use crate::kms::Direction;
use crate::prefix::{IDENTITY, UNKNOWN};
use crate::{Failure, Layer as _, Plain, PrefixList, TransformError, Transformer};

/// Who is told. No method ever gets a value or a key.
pub trait TransformObserver: Send + Sync + 'static {
    /// Where it is told that values of `resource` went through the layer behind `prefix`. Asked for once,
    /// whether or not a value ever does: the names are not looked up for each value.
    fn successes(&self, resource: &str, direction: Direction, prefix: &str) -> Box<dyn Successes>;

    /// A value of `resource` did not go through the layer behind `prefix`.
    fn failed(&self, resource: &str, direction: Direction, prefix: &str, failure: &Failure);
}

/// Values of one resource that went through one layer in one direction.
pub trait Successes: Send + Sync {
    /// One more, which took so long.
    fn count(&self, took: Duration);
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

/// A list that tells of what it does, and what the lists in it do.
pub struct WatchedList {
    list: Told,
    watched: Watched,
}

impl WatchedList {
    /// Tells `watched` of what `list` does.
    pub fn new(list: &PrefixList, watched: Watched) -> Self {
        Self { list: Told::new(list, &watched), watched }
    }
}

impl Transformer for WatchedList {
    fn from_storage(&self, stored: &[u8], context: &[u8]) -> Result<Plain, TransformError> {
        Ok(self.list.open(stored, context, &mut Lap::begin(&self.watched))?)
    }

    fn to_storage(&self, plain: &[u8], context: &[u8]) -> Result<Vec<u8>, TransformError> {
        let mut out = Vec::with_capacity(self.list.list.sealed_len(plain.len()));
        self.list.seal(plain, context, &mut out, &mut Lap::begin(&self.watched))?;
        Ok(out)
    }

    fn writes_under(&self) -> String {
        self.list.list.seals_under()
    }
}

/// A list with where is told of each of its entries.
struct Told {
    list: PrefixList,
    /// The first writes.
    sealed: Box<dyn Successes>,
    /// In the list's order.
    entries: Vec<ToldEntry>,
}

struct ToldEntry {
    opened: Box<dyn Successes>,
    /// The entry's layer, when it is a list itself.
    inner: Option<Told>,
}

impl Told {
    fn new(list: &PrefixList, watched: &Watched) -> Self {
        let Watched { resource, observer, .. } = watched;
        let entries = list.entries().map(|entry| ToldEntry {
            opened: observer.successes(resource, Direction::FromStorage, &shown(&entry.prefix)),
            inner: entry.layer.list().map(|inner| Self::new(inner, watched)),
        });
        let first = String::from_utf8_lossy(&list.first().prefix);
        Self {
            entries: entries.collect(),
            sealed: observer.successes(resource, Direction::ToStorage, &first),
            list: list.clone(),
        }
    }

    fn open(&self, stored: &[u8], context: &[u8], lap: &mut Lap<'_>) -> Result<Plain, Failure> {
        let mut told = false;
        let opened = self.list.try_entries(stored, |index, entry, rest| {
            let ToldEntry { opened, inner } = &self.entries[index];
            lap.again();
            let result = match inner {
                Some(list) => list.open(rest, context, lap),
                None => entry.layer.open(rest, context),
            };
            match &result {
                Ok(_) => opened.count(lap.took()),
                // Identity in front of a provider (on the way back to plaintext) meets
                // encrypted values all the time; that is not worth telling.
                Err(_) if entry.prefix.is_empty() => {}
                Err(failure) => {
                    told = true;
                    lap.failed(Direction::FromStorage, &shown(&entry.prefix), failure);
                }
            }
            result
        });
        if let Err(failure) = &opened
            && !told
        {
            lap.failed(Direction::FromStorage, UNKNOWN, failure);
        }
        opened
    }

    fn seal(
        &self,
        plain: &[u8],
        context: &[u8],
        out: &mut Vec<u8>,
        lap: &mut Lap<'_>,
    ) -> Result<(), Failure> {
        let first = self.list.first();
        out.extend_from_slice(&first.prefix);
        let sealed = match self.entries.first().and_then(|entry| entry.inner.as_ref()) {
            Some(list) => list.seal(plain, context, out, lap),
            None => first.layer.seal_into(plain, context, out),
        };
        match &sealed {
            Ok(()) => self.sealed.count(lap.took()),
            Err(failure) => {
                lap.failed(Direction::ToStorage, &String::from_utf8_lossy(&first.prefix), failure);
            }
        }
        sealed
    }
}

/// What metrics call a prefix that reads.
fn shown(prefix: &[u8]) -> std::borrow::Cow<'_, str> {
    if prefix.is_empty() { IDENTITY.into() } else { String::from_utf8_lossy(prefix) }
}

/// The time of one value. A list in a list begins and ends with the outer one, but for nanoseconds: the
/// clock is read once for both.
struct Lap<'w> {
    watched: &'w Watched,
    started: Duration,
    took: Option<Duration>,
}

impl<'w> Lap<'w> {
    fn begin(watched: &'w Watched) -> Self {
        Self { watched, started: watched.clock.monotonic(), took: None }
    }

    /// Another entry is tried.
    fn again(&mut self) {
        self.took = None;
    }

    fn took(&mut self) -> Duration {
        let Self { watched, started, took } = self;
        *took.get_or_insert_with(|| watched.clock.monotonic().saturating_sub(*started))
    }

    fn failed(&self, direction: Direction, prefix: &str, failure: &Failure) {
        self.watched.observer.failed(&self.watched.resource, direction, prefix, failure);
    }
}
