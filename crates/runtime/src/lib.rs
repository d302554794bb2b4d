//! What every controller shares: work queue, reflectors, clock, events, metrics.

pub mod anonymous;
pub mod api;
pub mod clock;
pub mod events;
pub mod health;
pub mod informer;
pub mod lease;
pub mod metrics;
pub mod queue;
pub mod random;
