//! Runs that take long or need peers that are large: `cargo xtask conformance operator` starts them.

mod external_secrets;

use std::process::Command;

/// The binary under test.
fn quiet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coffer"));
    command.env_remove("KUBECONFIG");
    command
}
