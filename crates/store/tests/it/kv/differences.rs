//! Where the embedded engine answers otherwise than etcd, on purpose.

use std::time::Duration;

use coffer_store::kv::RangeRequest;

use super::crash::seen;
use super::embedded::fixture;
use super::helpers::{prefix, put_with_lease, read, run, single, watch};

/// How long the engine has to do what it should not.
const QUIET: Duration = Duration::from_millis(50);

/// etcd makes two seconds of it.
#[tokio::test]
async fn a_lease_of_one_second_ends_after_one() {
    for asked in [Duration::ZERO, Duration::from_millis(400), Duration::from_secs(1)] {
        let kv = fixture().await;
        let lease = kv.lease_grant(asked).await.expect("granted");
        assert_eq!(kv.lease_keep_alive(lease).await.expect("alive"), Duration::from_secs(1), "{asked:?}");
        run(kv.as_kv(), vec![put_with_lease("/short", "1", lease)]).await.expect("attached"); // 2
        let mut watch = watch(kv.as_kv(), "/short", 3).await;
        kv.pass(Duration::from_millis(999)).await;
        tokio::time::sleep(QUIET).await;
        assert_eq!(read(kv.as_kv(), single("/short")).await.count, 1, "{asked:?}");
        kv.pass(Duration::from_millis(1)).await;
        let events = seen(&mut watch, 3, "the lease is over").await;
        assert!(events[0].deleted, "{asked:?}");
    }
}

/// etcd 3.7 has lost it (etcd-io/etcd#22209).
#[tokio::test]
async fn a_read_of_keys_alone_tells_their_leases() {
    let kv = fixture().await;
    let lease = kv.lease_grant(Duration::from_secs(60)).await.expect("granted");
    run(kv.as_kv(), vec![put_with_lease("/p/a", "1", lease), put_with_lease("/p/b", "1", 0)])
        .await
        .expect("put");
    for keys_only in [false, true] {
        for request in [prefix("/p/"), single("/p/a")] {
            let found = read(kv.as_kv(), RangeRequest { keys_only, ..request }).await;
            assert_eq!(found.items[0].lease, lease, "keys_only {keys_only}");
            assert_eq!(found.items[0].value.is_empty(), keys_only);
            assert!(found.items[1..].iter().all(|item| item.lease == 0));
        }
    }
}
