//! The whole node over an API server in memory, a clock that the tests move, and directories for volumes.

mod api;
mod passes;
mod rows;
mod told;
mod world;
