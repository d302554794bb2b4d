//! A store that answers when a test lets it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coffer_store::kv::{
    KeyValue, Kv, KvError, LeaseId, RangeRequest, RangeResponse, Revision, Txn, TxnResponse, WatchRequest,
    WatchStream,
};
use tokio::sync::Semaphore;

/// Answers with pages of one Secret each, as many as it has been given leave for.
pub(crate) struct SlowStore {
    all: usize,
    /// How many more pages it may give.
    pub(crate) leave: Semaphore,
    /// How many it has given.
    pub(crate) asked: AtomicUsize,
}

impl SlowStore {
    /// Of so many pages. It has no leave yet.
    pub(crate) fn new(pages: usize) -> Self {
        Self { all: pages, leave: Semaphore::new(0), asked: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl Kv for SlowStore {
    async fn range(&self, _: RangeRequest) -> Result<RangeResponse, KvError> {
        self.leave.acquire().await.expect("open").forget();
        let page = self.asked.fetch_add(1, Ordering::SeqCst);
        let left = self.all - page - 1;
        let secret = KeyValue {
            key: Bytes::from(format!("/registry/secrets/ns/s{page}")),
            value: Bytes::from_static(b"k8s:enc:aesgcm:v1:gone:x"),
            create_revision: 7,
            mod_revision: 7,
            version: 1,
            lease: 0,
        };
        Ok(RangeResponse {
            items: vec![secret],
            more: 0 < left,
            count: i64::try_from(left + 1).expect("few"),
            revision: 7,
        })
    }

    async fn txn(&self, _: Txn) -> Result<TxnResponse, KvError> {
        unreachable!("it is only read")
    }

    async fn watch(&self, _: WatchRequest) -> Result<WatchStream, KvError> {
        unreachable!("it is only read")
    }

    async fn request_progress(&self, _: &Bytes) -> Result<(), KvError> {
        unreachable!("it is only read")
    }

    async fn lease_grant(&self, _: Duration) -> Result<LeaseId, KvError> {
        unreachable!("it is only read")
    }

    async fn lease_revoke(&self, _: LeaseId) -> Result<(), KvError> {
        unreachable!("it is only read")
    }

    async fn lease_keep_alive(&self, _: LeaseId) -> Result<Duration, KvError> {
        unreachable!("it is only read")
    }

    async fn compact(&self, _: Revision) -> Result<(), KvError> {
        unreachable!("it is only read")
    }

    async fn size(&self) -> Result<u64, KvError> {
        unreachable!("it is only read")
    }

    fn supports_progress(&self) -> bool {
        true
    }
}
