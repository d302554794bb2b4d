//! The embedded engine on a disk that fails and works again.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use coffer_sim::{Fault, FaultyDisk, SeededRandom, SimClock};
use coffer_store::embedded::{Embedded, EmbeddedOptions};

use super::{Length, Run, seed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_in_memory_while_the_disk_fails() {
    let (seed, length) = (seed(), Length::new(20));
    let random = SeededRandom::new(seed);
    let (disk, clock) = (FaultyDisk::default(), SimClock::default());
    disk.set_seed(seed);
    let options = EmbeddedOptions::new(Arc::new(clock.clone()));
    let kv = Embedded::open_disk(Arc::new(disk.clone()), options).await.expect("opens");
    let run = Run::start(Arc::new(kv), seed).await;
    let mut faults = 0;
    while length.goes_on(faults) {
        run.more_calls(&random).await;
        let kind = if random.one_in(3) { ErrorKind::StorageFull } else { ErrorKind::Other };
        let fault = if random.one_in(2) { Fault::Once(kind) } else { Fault::FromNowOn(kind) };
        disk.fail_at(disk.steps() + random.below(40), fault);
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            clock.advance(Duration::from_millis(100));
        }
        disk.repair();
        clock.advance(Duration::from_secs(2));
        faults += 1;
    }
    run.more_calls(&random).await;
    run.check(&format!("embedded, {faults} faults of the disk")).await;
}
