//! What every controller shares: work queue, reflectors, clock, events, metrics.
