//! Test only: clock, network, disk and fault injection, models, validators, and the originals as processes.

pub mod clock;
pub mod disk;
pub mod encryption_configs;
pub mod history;
pub mod marks;
pub mod peers;
pub mod pod_fields;
pub mod random;

pub use clock::SimClock;
pub use disk::{Fault, FaultyDisk};
pub use random::SeededRandom;
