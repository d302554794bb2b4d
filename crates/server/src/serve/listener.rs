//! Accepts connections and shakes hands within a deadline.

use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::Clock;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection;
use super::half_open::HalfOpen;
use super::pipeline::Pipeline;

/// A client that has not finished the TLS handshake by then is cut off.
pub const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// Connections in their handshake at one time. One more, and the oldest of them is cut off.
pub const MAX_HALF_OPEN: usize = 1024;

/// How long open requests may take to end once the server stops.
const DRAIN_DEADLINE: Duration = Duration::from_secs(10);

/// Pause after a failed accept (no file descriptors left, mostly), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop`, then lets open requests end.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    pipeline: Arc<Pipeline>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(tls);
    let half_open = HalfOpen::with_room(MAX_HALF_OPEN);
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (socket, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                clock.sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let place = half_open.enter();
        let acceptor = acceptor.clone();
        let pipeline = Arc::clone(&pipeline);
        let clock = Arc::clone(&clock);
        let stop = stop.clone();
        connections.spawn(async move {
            let stream = tokio::select! {
                stream = shake_hands(acceptor, socket) => stream,
                () = clock.sleep(HANDSHAKE_DEADLINE) => {
                    tracing::debug!(%address, "TLS handshake timed out");
                    return;
                }
                () = place.taken_back.cancelled() => {
                    tracing::debug!(%address, "TLS handshake cut off: too many are under way");
                    return;
                }
                () = stop.cancelled() => return,
            };
            drop(place);
            match stream {
                Ok(stream) => connection::serve(stream, address, pipeline, clock, stop).await,
                Err(error) => tracing::debug!(%address, %error, "TLS handshake failed"),
            }
        });
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        () = clock.sleep(DRAIN_DEADLINE) => tracing::warn!("connections were still open at the end"),
    }
}

type Stream = tokio_rustls::server::TlsStream<TcpStream>;

async fn shake_hands(acceptor: TlsAcceptor, socket: TcpStream) -> std::io::Result<Stream> {
    socket.set_nodelay(true)?;
    acceptor.accept(socket).await
}
