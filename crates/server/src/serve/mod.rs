//! From a socket, or from inside the process, to a handler and back.

pub mod connection;
mod gather;
mod half_open;
mod in_process;
pub mod linger;
pub mod listener;
pub(crate) mod pipeline;
pub mod tls;
mod warnings;

pub use self::in_process::InProcess;
pub use self::pipeline::MAX_READS;
pub use crate::body::{self, Body};
