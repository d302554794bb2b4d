//! Calls with one request and one answer, straight on HTTP/2.
//!
//! Whoever calls writes the request into the connection and reads the answer out of it. A channel of
//! tonic hands each call through four more tasks, which for a small transaction costs more than all the
//! rest of the call. Streams are few and go through tonic.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use coffer_types::time::Clock;
use futures::future::{Either, select};
use h2::client::SendRequest;
use h2::{Ping, PingPong, RecvStream};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, StatusCode, Uri};
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::{Code, ConnectError, Status};

use super::EtcdConfig;

const TE: HeaderName = HeaderName::from_static("te");

/// What stands before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// What one stream may have on its way. A watch that nobody reads stops here,
pub(super) const STREAM_WINDOW: u32 = 1 << 20;
/// and leaves the connection, which has no limit of its own, to the others.
pub(super) const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// What is reserved for an answer on the server's word that it will be as long.
const MAX_RESERVED: usize = 16 * 1024 * 1024;

/// The way to one server. The connection is made when it is needed, and again when it broke.
pub(super) struct Line {
    scheme: Scheme,
    authority: Authority,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    clock: Arc<dyn Clock>,
    dial_timeout: Duration,
    keepalive_time: Duration,
    keepalive_timeout: Duration,
    /// Held for a copy only.
    open: Mutex<Option<SendRequest<Bytes>>>,
    /// Held while a connection is made: who comes meanwhile uses it too.
    dialling: tokio::sync::Mutex<()>,
}

impl Line {
    /// `uri` has a scheme and an authority.
    pub(super) fn new(uri: Uri, tls: Option<TlsConnector>, config: &EtcdConfig) -> Result<Self, String> {
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err("it names no server".to_owned());
        };
        let tls = match tls {
            Some(connector) => Some((connector, server_name(&authority)?)),
            None => None,
        };
        Ok(Self {
            scheme,
            authority,
            tls,
            clock: config.clock.clone(),
            dial_timeout: config.dial_timeout,
            keepalive_time: config.keepalive_time,
            keepalive_timeout: config.keepalive_timeout,
            open: Mutex::default(),
            dialling: tokio::sync::Mutex::default(),
        })
    }

    /// Sends a message and gives the one that answers it.
    pub(super) async fn call(
        &self,
        path: &'static str,
        request: &impl prost::Message,
    ) -> Result<Bytes, Status> {
        let body = framed(request)?;
        let mut sender = self.sender().await?;
        let (answer, mut stream) = sender.send_request(self.head(path)?, false).map_err(broken)?;
        stream.send_data(body, true).map_err(broken)?;
        let answer = answer.await.map_err(broken)?;
        if answer.status() != StatusCode::OK {
            return Err(Status::unavailable(format!("HTTP status {}", answer.status())));
        }
        // An error may come without a body.
        told(Status::from_header_map(answer.headers()))?;
        let mut body = answer.into_body();
        let message = whole(&mut body).await?;
        match body.trailers().await.map_err(broken)? {
            None => return Err(Status::unknown("the answer has no end")),
            Some(trailers) => told(Status::from_header_map(&trailers))?,
        }
        unframed(message)
    }

    fn head(&self, path: &'static str) -> Result<Request<()>, Status> {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::from_static(path));
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_parts(parts).map_err(|error| Status::internal(error.to_string()))?;
        *request.version_mut() = http::Version::HTTP_2;
        request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        Ok(request)
    }

    /// The open connection, or a new one.
    async fn sender(&self) -> Result<SendRequest<Bytes>, Status> {
        if let Some(ready) = self.known().await {
            return Ok(ready);
        }
        let _alone = self.dialling.lock().await;
        if let Some(ready) = self.known().await {
            return Ok(ready);
        }
        let sender = match select(std::pin::pin!(self.dial()), self.clock.sleep(self.dial_timeout)).await {
            Either::Left((dialled, _)) => dialled,
            Either::Right(((), _)) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        };
        let sender = sender.map_err(|error| Status::from_error(Box::new(ConnectError(error))))?;
        *self.open.lock() = Some(sender.clone());
        sender.ready().await.map_err(broken)
    }

    /// The open connection, if it still takes requests.
    async fn known(&self) -> Option<SendRequest<Bytes>> {
        let open = self.open.lock().clone()?;
        open.ready().await.ok()
    }

    async fn dial(&self) -> Result<SendRequest<Bytes>, BoxError> {
        let default_port = if self.scheme == Scheme::HTTPS { 443 } else { 80 };
        let port = self.authority.port_u16().unwrap_or(default_port);
        let socket = TcpStream::connect((bare_host(&self.authority), port)).await?;
        socket.set_nodelay(true)?;
        let Some((connector, name)) = &self.tls else { return self.shake_hands(socket).await };
        let stream = connector.connect(name.clone(), socket).await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err("HTTP/2 was not negotiated".into());
        }
        self.shake_hands(stream).await
    }

    async fn shake_hands(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<SendRequest<Bytes>, BoxError> {
        let (sender, mut connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(stream)
            .await?;
        let pings = connection.ping_pong();
        let (clock, time, timeout) = (self.clock.clone(), self.keepalive_time, self.keepalive_timeout);
        tokio::spawn(async move {
            let silent = async {
                match pings {
                    Some(pings) => silence(pings, &*clock, time, timeout).await,
                    None => std::future::pending().await,
                }
            };
            // Dropped, it tells all who wait for answers.
            select(std::pin::pin!(connection), std::pin::pin!(silent)).await;
        });
        Ok(sender)
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Ends when the server does not answer a ping in time.
async fn silence(mut pings: PingPong, clock: &dyn Clock, time: Duration, timeout: Duration) {
    loop {
        clock.sleep(time).await;
        match select(std::pin::pin!(pings.ping(Ping::opaque())), clock.sleep(timeout)).await {
            Either::Left((Ok(_), _)) => {}
            Either::Left((Err(_), _)) | Either::Right(_) => return,
        }
    }
}

fn server_name(authority: &Authority) -> Result<ServerName<'static>, String> {
    ServerName::try_from(bare_host(authority).to_owned()).map_err(|error| error.to_string())
}

/// Without the brackets of an IPv6 address.
fn bare_host(authority: &Authority) -> &str {
    let host = authority.host();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn broken(error: h2::Error) -> Status {
    Status::from_error(Box::new(error))
}

/// What the server said about the call.
fn told(status: Option<Status>) -> Result<(), Status> {
    match status {
        Some(status) if status.code() != Code::Ok => Err(status),
        _ => Ok(()),
    }
}

fn framed(message: &impl prost::Message) -> Result<Bytes, Status> {
    let length = message.encoded_len();
    let announced = u32::try_from(length).map_err(|_| Status::resource_exhausted("larger than max"))?;
    let mut body = Vec::with_capacity(PREFIX + length);
    body.push(0);
    body.extend_from_slice(&announced.to_be_bytes());
    message.encode(&mut body).map_err(|error| Status::internal(error.to_string()))?;
    Ok(Bytes::from(body))
}

/// All data of a body; a small answer comes in one piece, which is not copied.
async fn whole(body: &mut RecvStream) -> Result<Bytes, Status> {
    let Some(first) = next(body).await? else { return Ok(Bytes::new()) };
    let Some(second) = next(body).await? else { return Ok(first) };
    let mut message = BytesMut::with_capacity((PREFIX + announced(&first).unwrap_or(0)).min(MAX_RESERVED));
    message.extend_from_slice(&first);
    message.extend_from_slice(&second);
    while let Some(piece) = next(body).await? {
        message.extend_from_slice(&piece);
    }
    Ok(message.freeze())
}

async fn next(body: &mut RecvStream) -> Result<Option<Bytes>, Status> {
    let Some(piece) = body.data().await else { return Ok(None) };
    let piece = piece.map_err(broken)?;
    body.flow_control().release_capacity(piece.len()).map_err(broken)?;
    Ok(Some(piece))
}

/// The length of the message that begins here.
fn announced(bytes: &[u8]) -> Option<usize> {
    let length: [u8; 4] = bytes.get(1..PREFIX)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

fn unframed(mut bytes: Bytes) -> Result<Bytes, Status> {
    match (bytes.first(), announced(&bytes)) {
        (Some(0), Some(length)) if PREFIX + length == bytes.len() => {
            bytes.advance(PREFIX);
            Ok(bytes)
        }
        _ => Err(Status::internal("the answer is not one message that is not compressed")),
    }
}
