//! Secret volumes: what files a Secret becomes, and how they get to a tmpfs in one step.

pub mod atomic_writer;
pub mod payload;
pub mod tmpfs;
