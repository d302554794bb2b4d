//! Field management beside upstream's own (`peers/go/apply`).

mod definition;
mod generate;
#[path = "../../../crypto/tests/peers/original.rs"]
mod original;
mod sequences;
