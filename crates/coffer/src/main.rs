//! Carries a Kubernetes Secret through its whole life.
fn main() {}
