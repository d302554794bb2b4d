//! `GET /coffer/v1/audit`: all that this server stores, judged with the keys that it uses, for `coffer
//! audit` of a store that nobody else can open.
//!
//! The answer comes in lines of JSON: how far it is, as it goes on, and the report as the last one. So
//! an audit may take as long as it needs; one whose store does not go on, or whose reader is gone, ends.
//! There is one at a time: it reads and opens everything.
//!
//! No line holds a byte of a value. It is no resource: the right to get the path is granted as for other
//! paths, and `system:masters` has it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coffer_config::encryption::Transformers;
use coffer_keys::audit::{Auditor, Report, live};
use coffer_server::api::Route;
use coffer_server::encryption::Encryption;
use coffer_store::kv::{Kv, KvError};
use coffer_types::Status;
use coffer_types::time::Clock;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;

/// Where all that is stored is judged.
pub(crate) const PATH: &str = "/coffer/v1/audit";

/// An audit whose store answers nothing for so long is given up.
const STALLED: Duration = Duration::from_secs(60);
/// Between two lines that tell how far it is.
const BETWEEN: Duration = Duration::from_millis(200);
/// When who came while an audit runs is to come again, in seconds: most take less.
const COME_AGAIN: i32 = 5;

/// One line of the answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Line {
    /// How far it is.
    Progress {
        /// Copies that have been judged.
        done: u64,
        /// Copies there are.
        total: u64,
    },
    /// What was found; the last line.
    Report(Report),
    /// Why there is no report; the last line.
    Failed(String),
}

/// The route.
pub(crate) fn route(
    kv: &Arc<dyn Kv>,
    prefix: &str,
    encryption: &Arc<Encryption>,
    clock: &Arc<dyn Clock>,
) -> Route {
    let audits = Arc::new(Audits {
        kv: kv.clone(),
        prefix: prefix.to_owned(),
        encryption: encryption.clone(),
        clock: clock.clone(),
        place: Arc::new(Semaphore::new(1)),
    });
    let make = move |_| -> futures::future::BoxFuture<'static, _> {
        let audits = audits.clone();
        Box::pin(async move { audits.start() })
    };
    Route::streamed(PATH, "application/x-ndjson", Box::new(make))
}

struct Audits {
    kv: Arc<dyn Kv>,
    prefix: String,
    encryption: Arc<Encryption>,
    clock: Arc<dyn Clock>,
    /// Taken while one reads, also when nobody listens any more.
    place: Arc<Semaphore>,
}

impl Audits {
    fn start(&self) -> Result<BoxStream<'static, Bytes>, Status> {
        let place = self.place.clone().try_acquire_owned().map_err(|_| busy())?;
        let transformers = Transformers::clone(&self.encryption.current().transformers());
        let auditor = Auditor::new(&self.prefix, Some(transformers)).map_err(Status::internal)?;
        let (tell, told) = watch::channel((0, 0));
        let audit = tokio::task::spawn_blocking({
            let (kv, runtime) = (self.kv.clone(), Handle::current());
            // Opening many values takes a while, and a plugin is waited for: not on the server's workers.
            move || runtime.block_on(read(kv, auditor, tell, place))
        });
        let running = Running { audit, told, clock: self.clock.clone(), next_line: Duration::ZERO };
        let lines = stream::unfold(Some(running), |running| async { running?.next().await });
        Ok(lines.map(|line| Bytes::from(written(&line))).boxed())
    }
}

fn busy() -> Status {
    Status::new(429, "TooManyRequests", "an audit is running already, and there is one at a time")
        .retry_after(COME_AGAIN)
}

/// `None` when the reader is gone.
async fn read(
    kv: Arc<dyn Kv>,
    auditor: Auditor,
    tell: watch::Sender<(u64, u64)>,
    _place: OwnedSemaphorePermit,
) -> Option<Result<Report, KvError>> {
    let mut progress = |done, total| {
        tell.send_replace((done, total));
    };
    tokio::select! {
        biased;
        () = tell.closed() => None,
        report = live::audit(&*kv, &auditor, &mut progress) => Some(report),
    }
}

/// An audit that somebody listens to.
struct Running {
    audit: JoinHandle<Option<Result<Report, KvError>>>,
    told: watch::Receiver<(u64, u64)>,
    clock: Arc<dyn Clock>,
    /// When a line may tell how far it is.
    next_line: Duration,
}

impl Running {
    /// The next line, and what goes on after it.
    async fn next(mut self) -> Option<(Line, Option<Self>)> {
        loop {
            let goes_on = tokio::select! {
                changed = self.told.changed() => changed.is_ok(),
                () = self.clock.sleep(STALLED) => {
                    let text = format!("the store has not answered for {} s", STALLED.as_secs());
                    return Some((Line::Failed(text), None));
                }
            };
            if !goes_on {
                break;
            }
            let (done, total) = *self.told.borrow_and_update();
            let now = self.clock.monotonic();
            if self.next_line <= now {
                self.next_line = now + BETWEEN;
                return Some((Line::Progress { done, total }, Some(self)));
            }
        }
        let last = match self.audit.await {
            Ok(Some(Ok(report))) => Line::Report(report),
            Ok(Some(Err(error))) => Line::Failed(format!("the store did not answer: {error}")),
            Ok(None) | Err(_) => Line::Failed("the audit stopped".to_owned()),
        };
        Some((last, None))
    }
}

fn written(line: &Line) -> Vec<u8> {
    // Numbers and text always have a form.
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use coffer_server::api::Answer;
    use coffer_sim::SimClock;

    use super::*;
    use crate::control_plane::slow_store::SlowStore;

    /// Enough time for anything that happens at all.
    const PATIENCE: Duration = Duration::from_secs(20);

    struct World {
        pages: Arc<SlowStore>,
        clock: SimClock,
        route: Route,
    }

    impl World {
        fn new(pages: usize) -> Self {
            let pages = Arc::new(SlowStore::new(pages));
            let clock = SimClock::default();
            let (kv, time): (Arc<dyn Kv>, Arc<dyn Clock>) = (pages.clone(), Arc::new(clock.clone()));
            let route = route(&kv, "/registry", &Encryption::none(), &time);
            Self { pages, clock, route }
        }

        async fn ask(&self) -> Result<BoxStream<'static, Bytes>, Status> {
            let Answer::Pieces(make) = &self.route.answer else { panic!("an answer in lines") };
            make(Vec::new()).await
        }
    }

    async fn line(lines: &mut BoxStream<'static, Bytes>) -> Option<Line> {
        let text = tokio::time::timeout(PATIENCE, lines.next()).await.expect("in time")?;
        assert!(text.ends_with(b"\n"));
        Some(serde_json::from_slice(&text).expect("a line"))
    }

    /// However long it takes in all: the clock goes on for ten minutes while the store gives page by page.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_audit_tells_how_far_it_is_and_takes_as_long_as_it_needs() {
        let world = World::new(20);
        let mut lines = world.ask().await.expect("a stream");
        for page in 1..=19 {
            world.pages.leave.add_permits(1);
            assert_eq!(line(&mut lines).await, Some(Line::Progress { done: page, total: 20 }));
            world.clock.advance(STALLED / 2);
        }
        world.pages.leave.add_permits(1);
        let mut last = line(&mut lines).await;
        if last == Some(Line::Progress { done: 20, total: 20 }) {
            last = line(&mut lines).await;
        }
        let Some(Line::Report(report)) = last else { panic!("{last:?}") };
        assert_eq!((report.revision, report.findings.len(), report.opened), (7, 20, true));
        assert_eq!(line(&mut lines).await, None);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_store_that_stops_answering_ends_the_audit() {
        let world = World::new(2);
        let mut lines = world.ask().await.expect("a stream");
        world.pages.leave.add_permits(1);
        assert_eq!(line(&mut lines).await, Some(Line::Progress { done: 1, total: 2 }));
        let stalled = tokio::spawn(async move { line(&mut lines).await });
        while !stalled.is_finished() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            world.clock.advance(STALLED / 4);
        }
        let text = "the store has not answered for 60 s".to_owned();
        assert_eq!(stalled.await.expect("no panic"), Some(Line::Failed(text)));
        free_again(&world).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn there_is_one_audit_at_a_time() {
        let world = World::new(3);
        let mut first = world.ask().await.expect("a stream");
        for _ in 0..3 {
            let busy = world.ask().await.err().expect("busy");
            assert_eq!((busy.code, &*busy.reason), (429, "TooManyRequests"));
            assert_eq!(busy.message, "an audit is running already, and there is one at a time");
            assert_eq!(busy.details.expect("details").retry_after_seconds, COME_AGAIN);
        }
        world.pages.leave.add_permits(3);
        while let Some(line) = line(&mut first).await {
            assert!(!matches!(line, Line::Failed(_)), "{line:?}");
        }
        free_again(&world).await;
    }

    /// Nobody hears what it would find: it stops reading, and the next one may begin.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_audit_whose_reader_is_gone_ends() {
        let world = World::new(1_000);
        let mut lines = world.ask().await.expect("a stream");
        world.pages.leave.add_permits(1);
        assert_eq!(line(&mut lines).await, Some(Line::Progress { done: 1, total: 1_000 }));
        drop(lines);
        free_again(&world).await;
        assert_eq!(world.pages.asked.load(Ordering::SeqCst), 1);
    }

    async fn free_again(world: &World) {
        let free = async {
            while world.ask().await.is_err() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, free).await.expect("the place is free");
    }
}
