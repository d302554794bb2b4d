//! Ctrl-C and SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Failure};
use crate::say;

/// Ctrl-C and SIGTERM, which end nothing by themselves from when this is made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::problem(format!("cannot listen to signals: {error}")))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Completes when the user or the system asks the process to end, and says so. When it is asked once
    /// more, the process ends at once.
    pub(crate) async fn asked_to_end(&mut self) {
        self.next().await;
        let again = Self::listen();
        say("coffer: stopping; Ctrl-C again ends it at once");
        if let Ok(mut again) = again {
            tokio::spawn(async move {
                again.next().await;
                end_at_once();
            });
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Says that what was asked to end has ended.
pub(crate) fn ended() {
    say("coffer: stopped");
}

#[expect(clippy::exit, reason = "whatever still runs is what the user does not want to wait for")]
fn end_at_once() {
    say(
        "coffer: ended at once; what was in memory may be left there, the next start on the directory clears it",
    );
    std::process::exit(i32::from(Exit::Problem as u8));
}
