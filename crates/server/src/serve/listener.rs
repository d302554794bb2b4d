//! Accepts connections, shakes hands within a deadline, and serves HTTP/1.1 and HTTP/2 on them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::Clock;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Peer, Pipeline};

/// A client that has not finished the TLS handshake by then is cut off.
pub const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// Connections in their handshake at one time. More wait in the kernel's backlog: a silent
/// client costs one slot for at most [`HANDSHAKE_DEADLINE`].
pub const MAX_HALF_OPEN: usize = 1024;

/// Time for a request's headers to arrive, upstream's `ReadHeaderTimeout`.
pub const HEADER_DEADLINE: Duration = Duration::from_secs(32);

/// Requests that one HTTP/2 connection may have open, as upstream.
const MAX_STREAMS: u32 = 250;

/// Size of one request's headers.
const MAX_HEADERS: u32 = 64 * 1024;

/// Header fields of one request.
const MAX_HEADER_FIELDS: usize = 100;

/// A peer that is silent for so long is asked whether it still lives, and gets as long to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

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
    let half_open = Arc::new(Semaphore::new(MAX_HALF_OPEN));
    let connections = TaskTracker::new();
    loop {
        let slot = tokio::select! {
            () = stop.cancelled() => break,
            slot = Arc::clone(&half_open).acquire_owned() => slot,
        };
        let Ok(slot) = slot else { break };
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
                () = stop.cancelled() => return,
            };
            drop(slot);
            match stream {
                Ok(stream) => connection(stream, address, pipeline, stop).await,
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

async fn connection(stream: Stream, address: SocketAddr, pipeline: Arc<Pipeline>, stop: CancellationToken) {
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let peer = Arc::new(Peer {
        certificates: certificates.iter().map(|certificate| certificate.to_vec()).collect(),
        user: None,
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_DEADLINE)
        .max_headers(MAX_HEADER_FIELDS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADERS)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    let service = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let pipeline = Arc::clone(&pipeline);
        let peer = Arc::clone(&peer);
        async move {
            let request = request.map(super::body::incoming);
            Ok::<_, std::convert::Infallible>(pipeline.handle(request, peer).await)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let mut stopping = false;
    loop {
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%address, %error, "connection ended");
                }
                return;
            }
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
