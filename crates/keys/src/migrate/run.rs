//! Goes through the pages.

use std::future::Future;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::Clock;
use futures::StreamExt;

use super::progress::{Failed, Progress, ResourceProgress};
use super::{CallError, Listed, Meaning, Objects, Page, Rewritten, meaning};

/// Objects in one page.
const PAGE: u32 = 500;

/// Rewrites that are under way at once. More would only wait at the server.
const AT_ONCE: usize = 8;

/// A call is tried so often.
const ATTEMPTS: u32 = 8;

/// The first pause between two attempts; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// No pause is longer, whatever the server wants.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How a migration goes about it.
#[derive(Clone)]
pub struct Options {
    /// Rewrites in a second.
    pub rate: NonZeroU32,
    /// Times are the clock's.
    pub clock: Arc<dyn Clock>,
}

/// Why a migration stopped before its end. What was done is in the progress.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// The server does not answer, or refuses to list.
    #[error("cannot list {resource}: {error}")]
    List {
        /// The resource.
        resource: String,
        /// Its last answer.
        #[source]
        error: CallError,
    },
    /// The user may not do this.
    #[error("not allowed to rewrite {resource}: {error}")]
    Forbidden {
        /// The resource.
        resource: String,
        /// The server's words.
        #[source]
        error: CallError,
    },
    /// The progress could not be kept.
    #[error("cannot keep the progress: {0}")]
    Keep(#[from] io::Error),
}

/// Rewrites all objects of the resources of `progress`, from where it is. `keep` gets the progress
/// after each page.
///
/// # Errors
/// When listing fails for good, rights are missing, or `keep` fails. Objects that cannot be
/// rewritten are no error of the run: they are in the progress.
pub async fn run(
    objects: &dyn Objects,
    progress: &mut Progress,
    options: &Options,
    keep: &mut (dyn FnMut(&Progress) -> io::Result<()> + Send),
) -> Result<(), Stopped> {
    let mut pace = Pace::new(options);
    for index in 0..progress.resources.len() {
        while !progress.resources[index].finished {
            let dry_run = progress.dry_run;
            let at = &mut progress.resources[index];
            let page = next_page(objects, at, &*options.clock).await?;
            rewrite_page(objects, &page, at, dry_run, &mut pace).await?;
            at.finished = page.token.is_empty();
            at.token = page.token;
            at.remaining = if at.finished { Some(0) } else { page.remaining };
            keep(progress)?;
        }
    }
    Ok(())
}

async fn next_page(
    objects: &dyn Objects,
    at: &mut ResourceProgress,
    clock: &dyn Clock,
) -> Result<Page, Stopped> {
    loop {
        match patient(clock, || objects.page(&at.resource, PAGE, &at.token)).await {
            Ok(page) => return Ok(page),
            // Kubernetes' own words for it: the rest of the list, as it is now.
            Err(expired) if meaning(&expired.error) == Meaning::Expired && expired.token != at.token => {
                at.token = expired.token;
            }
            Err(error) => return Err(Stopped::List { resource: at.resource.clone(), error }),
        }
    }
}

async fn rewrite_page(
    objects: &dyn Objects,
    page: &Page,
    at: &mut ResourceProgress,
    dry_run: bool,
    pace: &mut Pace,
) -> Result<(), Stopped> {
    let resource = at.resource.clone();
    let clock = Arc::clone(&pace.clock);
    let calls = page.objects.iter().map(|object| {
        let (turn, clock, resource) = (pace.turn(), &clock, &resource);
        async move {
            clock.sleep(turn.saturating_sub(clock.monotonic())).await;
            (object, patient(&**clock, || objects.rewrite(resource, object, dry_run)).await)
        }
    });
    // Turns are given out as the calls are taken up, so this is all that is in memory.
    let mut answers = futures::stream::iter(calls).buffer_unordered(AT_ONCE);
    let mut forbidden = None;
    while let Some((object, answer)) = answers.next().await {
        match answer {
            Ok(Rewritten::Yes) => at.rewritten += 1,
            Ok(Rewritten::NotNeeded) => {}
            Err(error) => match meaning(&error.error) {
                Meaning::Gone => at.gone += 1,
                Meaning::Forbidden => {
                    forbidden = Some(error);
                    break;
                }
                Meaning::Retry | Meaning::Expired | Meaning::Refused => {
                    at.failed.push(failed(object, &error))
                }
            },
        }
        at.done += 1;
    }
    match forbidden {
        None => Ok(()),
        Some(error) => Err(Stopped::Forbidden { resource: at.resource.clone(), error }),
    }
}

fn failed(object: &Listed, error: &CallError) -> Failed {
    Failed { name: object.key.to_string(), reason: error.error.message.clone() }
}

/// Tries again while that makes sense.
async fn patient<T, F: Future<Output = Result<T, CallError>>>(
    clock: &dyn Clock,
    mut call: impl FnMut() -> F,
) -> Result<T, CallError> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match call().await {
            Err(error) if meaning(&error.error) == Meaning::Retry => {
                clock.sleep(pause.max(error.retry_after).min(LONGEST_PAUSE)).await;
                pause *= 2;
            }
            done => return done,
        }
    }
    call().await
}

/// Gives out turns, evenly spaced.
struct Pace {
    clock: Arc<dyn Clock>,
    gap: Duration,
    next: Duration,
}

impl Pace {
    fn new(options: &Options) -> Self {
        let clock = Arc::clone(&options.clock);
        Self { gap: Duration::from_secs(1) / options.rate.get(), next: clock.monotonic(), clock }
    }

    /// When the next rewrite may begin. Time that was not used is not made up for.
    fn turn(&mut self) -> Duration {
        let turn = self.next.max(self.clock.monotonic());
        self.next = turn + self.gap;
        turn
    }
}
