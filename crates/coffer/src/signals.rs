//! Ctrl-C and SIGTERM.

use tokio::signal::unix::{SignalKind, signal};

/// Completes when the user or the system asks the process to end.
pub(crate) async fn asked_to_end() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        // Without a handler the signal ends the process by itself.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
