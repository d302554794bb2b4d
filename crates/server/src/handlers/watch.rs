//! WATCH: events as frames. One encoding of an event serves every watcher of the same format.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use coffer_store::registry::{Event, EventStream, EventType, WatchOptions};
use coffer_types::Status;
use coffer_types::time::Sleep;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::call::Call;
use super::options::{ListOptions, revision};
use super::selection::Selection;
use super::table;
use crate::body::Body;
use crate::negotiate::{self, Accepted, Media, MetaVersion, Offers, Shape};
use crate::resources::{Resource, Served};
use crate::serve::body::BoxError;
use crate::state::Server;
use crate::wire;

/// Shortest watch when the client names no length; upstream takes a random one from here to twice this.
const MIN_WATCH: Duration = Duration::from_secs(1800);

/// Frames that are sent as one piece when they are ready together.
const BATCH_BYTES: usize = 64 * 1024;

pub(super) async fn handle(call: &mut Call, resource: &Arc<Resource>) -> Result<Response<Body>, Status> {
    let accepted = negotiate::accept_stream(&call.headers, resource.info.behaviour.offers)?;
    let options = ListOptions::parse(&call.query, true)?;
    let include = match accepted.shape {
        Shape::Table(_) => table::Include::parse(&call.query)?,
        _ => table::Include::Metadata,
    };
    let selection = Selection::parse(&options, resource)?;
    let from = revision(&options.resource_version).map_err(Status::plain)?;
    // `/watch/…/NAME` is a watch of one object.
    let in_path = call.info.parts.get(1).filter(|_| call.info.path.contains("/watch/")).cloned();
    let timeout = match options.timeout {
        Some(timeout) => timeout,
        None => MIN_WATCH + MIN_WATCH.mul_f64(fraction(call)?),
    };
    let from_now = from.is_none_or(|from| from == 0);
    // Without a version the present state comes first, as if it had been asked for.
    let initial = options.send_initial_events.or(from_now.then_some(true));
    let stream = resource
        .registry()?
        .watch(WatchOptions {
            namespace: call.storage_namespace(resource),
            name: in_path.or_else(|| selection.name()),
            from,
            send_initial_events: initial,
            bookmarks: options.bookmarks,
            timeout: Some(timeout),
            predicate: selection.into_predicate(),
        })
        .await?;
    let body = WatchBody {
        stream,
        encoder: Encoder {
            served: call.server.resources.load(),
            server: Arc::clone(&call.server),
            resource: Arc::clone(resource),
            accepted,
            include,
            columns_sent: false,
            clock: Arc::clone(&call.server.clock),
        },
        ends: call.server.clock.sleep(timeout),
        stopped: Box::pin(call.server.stop.clone().cancelled_owned()),
        closed: false,
        _gauge: call.server.metrics.watcher(&resource.info),
    };
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(accepted.media.stream_name()));
    Ok(response)
}

/// A random number in [0, 1), so that watches do not all end together.
fn fraction(call: &Call) -> Result<f64, Status> {
    let mut bytes = [0_u8; 2];
    call.server.random.fill(&mut bytes).map_err(Status::internal)?;
    Ok(f64::from(u16::from_be_bytes(bytes)) / 65_536.0)
}

/// Turns events into frames.
struct Encoder {
    server: Arc<Server>,
    /// What was served when `resource` was last looked up.
    served: Arc<Served>,
    resource: Arc<Resource>,
    accepted: Accepted,
    include: table::Include,
    /// Only the first event of a table carries the columns.
    columns_sent: bool,
    clock: Arc<dyn coffer_types::time::Clock>,
}

impl Encoder {
    /// Takes over a definition that has changed; `false` when the resource is not served any more.
    fn refresh(&mut self) -> bool {
        if self.resource.info.behaviour.offers != Offers::Custom
            || self.server.resources.is_current(&self.served)
        {
            return true;
        }
        self.served = self.server.resources.load();
        let info = &self.resource.info;
        match self.served.find(&info.group, &info.version, &info.plural) {
            Some(resource) => self.resource = Arc::clone(resource),
            None => return false,
        }
        true
    }

    /// The number of the format among an event's shared encodings, if it is shared.
    fn format(&self) -> Option<usize> {
        if !self.resource.wire.shares_events() {
            return None;
        }
        let media = match self.accepted.media {
            Media::Json => 0,
            Media::Protobuf => 1,
            Media::Yaml => return None,
        };
        match self.accepted.shape {
            Shape::Object => Some(media),
            Shape::Partial(MetaVersion::V1) | Shape::PartialList(MetaVersion::V1) => Some(2 + media),
            Shape::Table(MetaVersion::V1)
                if self.columns_sent && self.include == table::Include::Metadata && media == 0 =>
            {
                Some(4)
            }
            _ => None,
        }
    }

    fn frame(&mut self, event: &Event) -> Bytes {
        let frame = match self.format() {
            Some(format) => event.frames.get_or_encode(format, || self.encode(event)),
            None => self.encode(event),
        };
        self.columns_sent = true;
        frame
    }

    fn encode(&self, event: &Event) -> Bytes {
        let object = match &event.object {
            None => self.bookmark(event),
            Some(stored) => match self.accepted.shape {
                Shape::Object => self.resource.wire.event_object(stored, self.accepted.media),
                Shape::Partial(version) | Shape::PartialList(version) => {
                    self.resource.wire.partial(stored, version, self.accepted.media)
                }
                Shape::Table(version) => table::of_event(
                    &self.resource,
                    stored,
                    version,
                    self.include,
                    self.accepted.media,
                    !self.columns_sent,
                    self.clock.now(),
                ),
            },
        };
        match object {
            Ok(object) => wire::event_frame(self.accepted.media, event_name(event.event_type), &object),
            Err(status) => self.error(&status),
        }
    }

    fn bookmark(&self, event: &Event) -> Result<Vec<u8>, Status> {
        let info = &self.resource.info;
        match self.accepted.shape {
            Shape::Table(version) => {
                table::bookmark(&self.resource, event, version, self.accepted.media, self.clock.now())
            }
            Shape::Partial(version) | Shape::PartialList(version) => wire::bookmark(
                version.api_version(),
                "PartialObjectMetadata",
                event.revision,
                event.initial_events_end,
                None,
                self.accepted.media,
            ),
            Shape::Object => wire::bookmark(
                &info.api_version(),
                &info.kind,
                event.revision,
                event.initial_events_end,
                (info.behaviour.offers != Offers::Custom).then_some(&self.resource.wire),
                self.accepted.media,
            ),
        }
    }

    fn error(&self, status: &Status) -> Bytes {
        let object = wire::encode_status(&status.to_value(), self.accepted.media);
        wire::event_frame(self.accepted.media, "ERROR", &object)
    }
}

fn event_name(event_type: EventType) -> &'static str {
    match event_type {
        EventType::Added => "ADDED",
        EventType::Modified => "MODIFIED",
        EventType::Deleted => "DELETED",
        EventType::Bookmark => "BOOKMARK",
    }
}

/// The body of a watch: ends with its time, with the server, or after an error event.
struct WatchBody {
    stream: EventStream,
    encoder: Encoder,
    ends: Sleep,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    closed: bool,
    /// Counts this watch as long as it is open.
    _gauge: crate::metrics::WatcherGauge,
}

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.closed {
            return Poll::Ready(None);
        }
        let mut first: Option<Bytes> = None;
        let mut batch = BytesMut::new();
        loop {
            match self.stream.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(_))) if !self.encoder.refresh() => {
                    self.closed = true;
                    break;
                }
                Poll::Ready(Some(Ok(event))) => {
                    let frame = self.encoder.frame(&event);
                    match &first {
                        // A lone event, the usual case, is not copied.
                        None => first = Some(frame),
                        Some(start) => {
                            if batch.is_empty() {
                                batch.extend_from_slice(start);
                            }
                            batch.extend_from_slice(&frame);
                        }
                    }
                    if batch.len() >= BATCH_BYTES {
                        break;
                    }
                }
                Poll::Ready(Some(Err(status))) => {
                    let frame = self.encoder.error(&status);
                    if let Some(start) = &first
                        && batch.is_empty()
                    {
                        batch.extend_from_slice(start);
                    }
                    batch.extend_from_slice(&frame);
                    first = Some(Bytes::new());
                    self.closed = true;
                    break;
                }
                Poll::Ready(None) => {
                    self.closed = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if !batch.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(batch.freeze()))));
        }
        if let Some(frame) = first {
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        if self.closed
            || self.ends.as_mut().poll(context).is_ready()
            || self.stopped.as_mut().poll(context).is_ready()
        {
            self.closed = true;
            return Poll::Ready(None);
        }
        Poll::Pending
    }
}
