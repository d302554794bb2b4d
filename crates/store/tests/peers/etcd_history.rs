//! Histories of concurrent clients on etcd, which is killed and started again under their load.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use coffer_sim::SeededRandom;

use crate::etcd::Etcd;
use crate::linearizability::{Length, Run, objects, seed};
use crate::registry::world::{Engine, World};

/// How often etcd is killed in a test run.
const KILLS: usize = 4;

mod linearizability {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn etcd_killed_under_load() {
        let (seed, length) = (seed(), Length::new(KILLS));
        let random = SeededRandom::new(seed);
        let mut server = Etcd::start().await;
        let run = Run::start(Arc::new(server.client().await), seed).await;
        let mut kills = 0;
        while length.goes_on(kills) {
            run.more_calls(&random).await;
            server.stop();
            tokio::time::sleep(Duration::from_millis(random.below(50))).await;
            server.restart().await;
            kills += 1;
        }
        run.more_calls(&random).await;
        run.check(&format!("etcd killed {kills} times")).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn objects_over_etcd_killed_under_load() {
        let (seed, length) = (seed(), Length::new(KILLS));
        let random = SeededRandom::new(seed);
        let mut server = Etcd::start().await;
        let engine = Engine { kv: Arc::new(server.client().await), clock: None, server: Box::new(()) };
        let world = World::new(engine).await;
        objects::run(world, "objects over etcd, which is killed", |calls: Arc<AtomicUsize>| async move {
            let more = async || {
                let wanted = calls.load(Ordering::SeqCst) + 100 + random.below(300) as usize;
                while calls.load(Ordering::SeqCst) < wanted {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let mut kills = 0;
            while length.goes_on(kills) {
                more().await;
                server.stop();
                tokio::time::sleep(Duration::from_millis(random.below(50))).await;
                server.restart().await;
                kills += 1;
            }
            more().await;
            server
        })
        .await;
    }
}
