//! Serves HTTP/1.1 or HTTP/2 on a connection whose handshake is done, and ends it when it is idle.

use std::future::{Future as _, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use coffer_runtime::clock::HttpTimer;
use coffer_types::time::Clock;
use http_body::{Frame, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::gather::{ROOM, gather};
use super::linger::Lingering;
use super::pipeline::{Peer, Pipeline};
use crate::body::{Body, BoxError};

/// Time for a request's headers to arrive, upstream's `ReadHeaderTimeout`. A connection that has
/// brought no request by then is cut off.
pub const HEADER_DEADLINE: Duration = Duration::from_secs(32);

/// How long a connection without an open request is kept, upstream's `IdleTimeout`.
pub const IDLE_DEADLINE: Duration = Duration::from_secs(90);

/// How long an idle client has to take leave.
const GOODBYE_DEADLINE: Duration = Duration::from_secs(10);

/// Requests that one HTTP/2 connection may have open, as upstream.
const MAX_STREAMS: u32 = 250;

/// Size of one request's headers.
const MAX_HEADERS: u32 = 64 * 1024;

/// Header fields of one request.
const MAX_HEADER_FIELDS: usize = 100;

/// A peer that is silent for so long is asked whether it still lives, and gets as long to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Bytes of records that wait for the socket: all that is gathered, with what TLS adds.
const RECORDS: usize = 2 * ROOM;

/// Serves until the connection ends, is idle for too long, or `stop`.
pub(super) async fn serve(
    mut stream: TlsStream<TcpStream>,
    address: SocketAddr,
    pipeline: Arc<Pipeline>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let session = stream.get_mut().1;
    session.set_buffer_limit(Some(RECORDS));
    let certificates = session.peer_certificates().unwrap_or_default();
    let certificates = certificates.iter().map(|certificate| certificate.to_vec()).collect();
    let peer = Arc::new(Peer { certificates, user: None });
    // The handshake has settled the protocol; guessing it from the first bytes would have no deadline.
    let http2 = session.alpn_protocol() == Some(b"h2");
    let builder = builder(http2, &clock);
    let activity = Arc::new(Activity::default());
    let service = {
        let activity = Arc::clone(&activity);
        hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let open = Activity::begin(&activity);
            let answer = Arc::clone(&pipeline).handle(request.map(crate::body::incoming), Arc::clone(&peer));
            async move {
                let answer = answer.await;
                Ok::<_, std::convert::Infallible>(answer.map(|body| Answering { body, _open: open }))
            }
        })
    };
    let (stream, sending) = gather(Lingering::new(stream, Arc::clone(&clock)));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let (mut stopping, mut leaving, mut limit) = (false, false, HEADER_DEADLINE);
    loop {
        let idle = activity.open.load(Ordering::Acquire) == 0;
        tokio::select! {
            result = poll_fn(|context| {
                let result = connection.as_mut().poll(context);
                if result.is_pending() {
                    sending.poll(context, 0 < activity.open.load(Ordering::Acquire));
                }
                result
            }) => {
                if let Err(error) = result {
                    tracing::debug!(%address, %error, "connection ended");
                }
                tokio::select! {
                    () = sending.rest() => {}
                    () = clock.sleep(GOODBYE_DEADLINE) => {}
                }
                return;
            }
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = activity.changed.notified() => limit = IDLE_DEADLINE,
            () = clock.sleep(limit), if idle => {
                if leaving || limit == HEADER_DEADLINE {
                    tracing::debug!(%address, "connection cut off: no request");
                    return;
                }
                (leaving, limit) = (true, GOODBYE_DEADLINE);
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

fn builder(http2: bool, clock: &Arc<dyn Clock>) -> Builder<TokioExecutor> {
    let timer = HttpTimer::new(Arc::clone(clock));
    let builder = Builder::new(TokioExecutor::new());
    let mut builder = if http2 { builder.http2_only() } else { builder.http1_only() };
    builder.http1().timer(timer.clone()).header_read_timeout(HEADER_DEADLINE).max_headers(MAX_HEADER_FIELDS);
    builder
        .http2()
        .timer(timer)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADERS)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    builder
}

/// The open requests of one connection.
#[derive(Default)]
struct Activity {
    open: AtomicUsize,
    /// Told when the first one begins and when the last one ends.
    changed: Notify,
}

/// One open request, from its headers to the end of its answer.
struct Open(Arc<Activity>);

impl Activity {
    fn begin(activity: &Arc<Self>) -> Open {
        if activity.open.fetch_add(1, Ordering::AcqRel) == 0 {
            activity.changed.notify_one();
        }
        Open(Arc::clone(activity))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_one();
        }
    }
}

/// The body of an answer; its request is open until it has been sent.
struct Answering {
    body: Body,
    _open: Open,
}

impl http_body::Body for Answering {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
