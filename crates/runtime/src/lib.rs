//! What every controller shares: work queue, reflectors, clock, events, metrics.

pub mod clock;
pub mod queue;
pub mod random;
