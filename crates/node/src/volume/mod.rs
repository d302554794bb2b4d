//! Volumes: what files Secrets and their like become, and how they get to a tmpfs in one step.

pub mod atomic_writer;
pub mod holders;
pub mod mounter;
pub mod payload;
pub mod projected;
pub mod tmpfs;
pub mod unmount;
