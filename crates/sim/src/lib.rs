//! Test only: clock, network, disk and fault injection, models, validators.

pub mod clock;
pub mod random;

pub use clock::SimClock;
pub use random::SeededRandom;
