//! A resource's numbers at this moment.

use super::Cache;
use super::snapshot::Snapshot;
use crate::statistics::Statistics;

impl Cache {
    pub(crate) fn statistics(&self) -> Statistics {
        let counts = &self.objects.counts;
        let (objects, revision, (capacity, capacity_increases, capacity_decreases)) = {
            let state = self.state.read();
            (state.objects.clone(), state.revision, state.history.capacity())
        };
        Statistics {
            group: self.objects.resource.group.clone(),
            resource: self.objects.resource.name.clone(),
            objects: objects.len(),
            bytes: bytes(&objects),
            revision,
            capacity,
            capacity_increases,
            capacity_decreases,
            received: counts.received.get(),
            dispatched: counts.dispatched.get(),
            progress_reports: counts.progress_reports.get(),
            initializations: counts.initializations.observed(),
            initialization_errors: counts.initialization_errors.get(),
            initial_events: counts.initial_events.get(),
            terminated_watchers: counts.terminated_watchers.get(),
            dispatch: counts.dispatch.observed(),
            consistent_reads: counts.consistent_reads(),
            read_waits: counts.read_waits.observed(),
            requests: counts.requests(),
            decode_errors: counts.decode_errors.get(),
            store_lists: counts.store_lists.get(),
            store_list_seconds: counts.store_list_seconds.observed(),
            cache_lists: counts.cache_lists.get(),
        }
    }
}

fn bytes(objects: &Snapshot) -> usize {
    let mut cursor = objects.seek(b"");
    let mut bytes = 0;
    while let Some(slot) = objects.next(&mut cursor, b"") {
        bytes += slot.bytes();
    }
    bytes
}
