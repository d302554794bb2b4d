//! What hurt users of the original, one test for each row, on an injected clock and without any peer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails at that place")]

mod access;
mod api;
mod definitions;
mod drift;
mod lead;
mod memory;
mod remote;
mod sharing;
mod start;
mod world;
