//! Calls that wait for their answer, from code that does not.
//!
//! Encryption is a plain function, called deep inside reads and writes. Few of these need the
//! plugin; those that do wait here, while a thread of its own makes the call. The async
//! runtime is told, so that other requests go on.

use std::sync::mpsc::sync_channel;

use coffer_crypto::kms::CallError;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

/// The thread that makes the calls of all plugins of a configuration.
pub(super) struct CallThread(Option<Runtime>);

impl CallThread {
    pub(super) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("kms-plugin-calls")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    /// Makes a call and waits for it. What bounds the time is in the call.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<T, CallError> {
        let closed = || CallError::new("Canceled", "grpc: the client connection is closing");
        let runtime = self.0.as_ref().ok_or_else(closed)?;
        let (sender, receiver) = sync_channel(1);
        runtime.spawn(async move {
            // Nobody waits any more only when the process ends.
            let _ = sender.send(call.await);
        });
        let wait = move || receiver.recv().unwrap_or_else(|_| Err(closed()));
        match Handle::try_current().map(|handle| handle.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
            _ => wait(),
        }
    }

    /// Where connections live.
    pub(super) fn handle(&self) -> Option<Handle> {
        self.0.as_ref().map(|runtime| runtime.handle().clone())
    }
}

impl Drop for CallThread {
    fn drop(&mut self) {
        // The plain way blocks, which an async context must not.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
