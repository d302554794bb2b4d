//! Observations by upper bound.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Observations by upper bound, taken without a lock.
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// Observations up to each bound and above the one before; beyond the last bound at the end.
    buckets: Box<[AtomicU64]>,
    /// The sum, as the bits of a float.
    sum: AtomicU64,
}

/// What a histogram has observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Upper bounds.
    pub bounds: &'static [f64],
    /// Observations up to each bound.
    pub buckets: Vec<u64>,
    /// All observations.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, buckets, sum: AtomicU64::new(0) }
    }

    pub(crate) fn observe(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let add = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // It is only given up when the closure says so.
        let _always = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    pub(crate) fn observe_time(&self, took: Duration) {
        self.observe(took.as_secs_f64());
    }

    pub(crate) fn observed(&self) -> Observed {
        let mut count = 0;
        let mut buckets: Vec<u64> = self
            .buckets
            .iter()
            .map(|bucket| {
                count += bucket.load(Ordering::Relaxed);
                count
            })
            .collect();
        buckets.pop();
        let sum = f64::from_bits(self.sum.load(Ordering::Relaxed));
        Observed { bounds: self.bounds, buckets, count, sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_counts_up_to_its_bound() {
        let histogram = Histogram::new(&[1.0, 2.0, 4.0]);
        assert_eq!(histogram.observed().count, 0);
        for value in [0.0, 1.0, 1.5, 4.0, 4.5, 100.0] {
            histogram.observe(value);
        }
        let Observed { buckets, count, sum, .. } = histogram.observed();
        assert_eq!((buckets, count, sum), (vec![2, 3, 4], 6, 111.0));
    }
}
