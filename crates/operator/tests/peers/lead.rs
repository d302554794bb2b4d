//! Two operators, one Lease.

use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_runtime::clock::SystemClock;
use coffer_runtime::lease::{Election, ElectionConfig, Ended};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o9_one_leads_and_the_other_follows() {
    let world = World::new("lead").await;
    let (sender, mut leading) = mpsc::unbounded_channel();
    let run = |identity: &'static str| {
        let config = ElectionConfig {
            lease: world.key("operator"),
            identity: identity.to_owned(),
            lease_duration: Duration::from_secs(30),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_millis(200),
        };
        let (stop, sender) = (CancellationToken::new(), sender.clone());
        let election = Election::new(config, world.api.clone(), Arc::new(SystemClock::new()));
        let work = move |stop: CancellationToken| async move {
            sender.send(identity).unwrap();
            stop.cancelled().await;
        };
        (tokio::spawn(election.run(stop.clone(), work)), stop)
    };
    let (first, stop_first) = run("one");
    assert_eq!(leading.recv().await, Some("one"));
    let (second, stop_second) = run("two");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(leading.try_recv().is_err(), "one leader at a time");
    let handed_over = Instant::now();
    stop_first.cancel();
    assert_eq!(first.await.unwrap(), Ended::Shutdown);
    assert_eq!(leading.recv().await, Some("two"));
    assert!(handed_over.elapsed() < Duration::from_secs(10), "a Lease that was given up is taken at once");
    stop_second.cancel();
    assert_eq!(second.await.unwrap(), Ended::Shutdown);
}
