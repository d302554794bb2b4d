//! etcd's messages, as far as they are used here: hand-written, so that no build needs protoc.
//!
//! Field numbers are those of etcd's `rpc.proto` and `kv.proto`. Fields that are never set or read
//! are left out; a protobuf reader skips what it does not know. Messages that hold values have no
//! `Debug`, because a value may be plaintext.

use bytes::Bytes;

use crate::kv::{self, Compare as Condition, Op};

/// `etcdserverpb.ResponseHeader`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct ResponseHeader {
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
}

/// `mvccpb.KeyValue`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(int64, tag = "4")]
    pub(crate) version: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) value: Bytes,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

/// `etcdserverpb.RangeRequest`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) limit: i64,
    #[prost(int64, tag = "4")]
    pub(crate) revision: i64,
    #[prost(bool, tag = "7")]
    pub(crate) serializable: bool,
    #[prost(bool, tag = "8")]
    pub(crate) keys_only: bool,
    #[prost(bool, tag = "9")]
    pub(crate) count_only: bool,
}

/// `etcdserverpb.RangeResponse`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(crate) more: bool,
    #[prost(int64, tag = "4")]
    pub(crate) count: i64,
}

/// `etcdserverpb.PutRequest`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
}

/// `etcdserverpb.PutResponse`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct PutResponse {}

/// `etcdserverpb.DeleteRangeRequest`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
}

/// `etcdserverpb.DeleteRangeResponse`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct DeleteRangeResponse {
    #[prost(int64, tag = "2")]
    pub(crate) deleted: i64,
}

/// `etcdserverpb.Compare`, always for equality.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Compare {
    /// 0 is equality.
    #[prost(int32, tag = "1")]
    pub(crate) result: i32,
    /// One of the `TARGET_` numbers.
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) key: Bytes,
    #[prost(oneof = "CompareTarget", tags = "4, 6")]
    pub(crate) value: Option<CompareTarget>,
}

const TARGET_VERSION: i32 = 0;
const TARGET_MOD: i32 = 2;

/// The oneof of [`Compare`].
#[derive(Clone, Copy, PartialEq, Eq, prost::Oneof)]
pub(crate) enum CompareTarget {
    /// Field 4.
    #[prost(int64, tag = "4")]
    Version(i64),
    /// Field 6.
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

/// `etcdserverpb.RequestOp`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct RequestOp {
    #[prost(oneof = "RequestKind", tags = "1, 2, 3")]
    pub(crate) request: Option<RequestKind>,
}

/// The oneof of [`RequestOp`].
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
#[prost(skip_debug)]
pub(crate) enum RequestKind {
    /// Field 1.
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    /// Field 2.
    #[prost(message, tag = "2")]
    Put(PutRequest),
    /// Field 3.
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
}

/// `etcdserverpb.ResponseOp`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct ResponseOp {
    #[prost(oneof = "ResponseKind", tags = "1, 2, 3")]
    pub(crate) response: Option<ResponseKind>,
}

/// The oneof of [`ResponseOp`].
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
#[prost(skip_debug)]
pub(crate) enum ResponseKind {
    /// Field 1.
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    /// Field 2.
    #[prost(message, tag = "2")]
    Put(PutResponse),
    /// Field 3.
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeResponse),
}

/// `etcdserverpb.TxnRequest`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

/// `etcdserverpb.TxnResponse`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

/// `etcdserverpb.CompactionRequest`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub(crate) revision: i64,
}

/// `etcdserverpb.CompactionResponse`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct CompactionResponse {}

/// `etcdserverpb.WatchRequest`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct WatchRequest {
    #[prost(oneof = "WatchKind", tags = "1, 3")]
    pub(crate) request: Option<WatchKind>,
}

/// The oneof of [`WatchRequest`].
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub(crate) enum WatchKind {
    /// Field 1.
    #[prost(message, tag = "1")]
    Create(WatchCreateRequest),
    /// Field 3.
    #[prost(message, tag = "3")]
    Progress(WatchProgressRequest),
}

/// `etcdserverpb.WatchCreateRequest`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct WatchCreateRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) start_revision: i64,
    #[prost(bool, tag = "4")]
    pub(crate) progress_notify: bool,
    #[prost(bool, tag = "6")]
    pub(crate) prev_kv: bool,
}

/// `etcdserverpb.WatchProgressRequest`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct WatchProgressRequest {}

/// `etcdserverpb.WatchResponse`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "3")]
    pub(crate) created: bool,
    #[prost(bool, tag = "4")]
    pub(crate) canceled: bool,
    #[prost(int64, tag = "5")]
    pub(crate) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(crate) cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub(crate) events: Vec<Event>,
}

/// `mvccpb.Event`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct Event {
    /// 0 is a write and 1 a deletion.
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    pub(crate) prev_kv: Option<KeyValue>,
}

/// `etcdserverpb.LeaseGrantRequest`. The server picks the identity.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct LeaseGrantRequest {
    #[prost(int64, tag = "1")]
    pub(crate) ttl: i64,
}

/// `etcdserverpb.LeaseGrantResponse`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub(crate) id: i64,
    #[prost(string, tag = "4")]
    pub(crate) error: String,
}

/// `etcdserverpb.LeaseRevokeRequest`, and `LeaseKeepAliveRequest`, which looks the same.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct LeaseRequest {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

/// `etcdserverpb.LeaseRevokeResponse`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct LeaseRevokeResponse {}

/// `etcdserverpb.LeaseKeepAliveResponse`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct LeaseKeepAliveResponse {
    /// 0 or less when there is no such lease.
    #[prost(int64, tag = "3")]
    pub(crate) ttl: i64,
}

/// `etcdserverpb.StatusRequest`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct StatusRequest {}

/// `etcdserverpb.StatusResponse`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct StatusResponse {
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(int64, tag = "3")]
    pub(crate) db_size: i64,
}

impl From<&kv::RangeRequest> for RangeRequest {
    fn from(request: &kv::RangeRequest) -> Self {
        Self {
            key: request.start.clone(),
            range_end: request.end.clone(),
            limit: request.limit,
            revision: request.revision,
            serializable: request.serializable,
            keys_only: request.keys_only,
            count_only: request.count_only,
        }
    }
}

impl From<&Op> for RequestOp {
    fn from(op: &Op) -> Self {
        let request = match op {
            Op::Put { key, value, lease } => {
                RequestKind::Put(PutRequest { key: key.clone(), value: value.0.clone(), lease: *lease })
            }
            Op::Delete { key } => {
                RequestKind::DeleteRange(DeleteRangeRequest { key: key.clone(), range_end: Bytes::new() })
            }
            Op::DeleteRange { start, end } => {
                RequestKind::DeleteRange(DeleteRangeRequest { key: start.clone(), range_end: end.clone() })
            }
            Op::Range(request) => RequestKind::Range(request.into()),
        };
        Self { request: Some(request) }
    }
}

impl From<&Condition> for Compare {
    fn from(condition: &Condition) -> Self {
        let (target, key, value) = match condition {
            Condition::ModRevision(key, revision) => (TARGET_MOD, key, CompareTarget::ModRevision(*revision)),
            Condition::Version(key, version) => (TARGET_VERSION, key, CompareTarget::Version(*version)),
        };
        Self { result: 0, target, key: key.clone(), value: Some(value) }
    }
}

impl From<&kv::Txn> for TxnRequest {
    fn from(txn: &kv::Txn) -> Self {
        Self {
            compare: txn.compare.iter().map(Into::into).collect(),
            success: txn.success.iter().map(Into::into).collect(),
            failure: txn.failure.iter().map(Into::into).collect(),
        }
    }
}

impl From<KeyValue> for kv::KeyValue {
    fn from(kv: KeyValue) -> Self {
        Self {
            key: kv.key,
            value: kv.value,
            create_revision: kv.create_revision,
            mod_revision: kv.mod_revision,
            version: kv.version,
            lease: kv.lease,
        }
    }
}

impl From<RangeResponse> for kv::RangeResponse {
    fn from(response: RangeResponse) -> Self {
        Self {
            revision: revision(response.header),
            items: response.kvs.into_iter().map(Into::into).collect(),
            count: response.count,
            more: response.more,
        }
    }
}

impl From<Event> for kv::KvEvent {
    fn from(event: Event) -> Self {
        Self {
            kv: event.kv.unwrap_or_default().into(),
            previous: event.prev_kv.map(Into::into),
            deleted: event.kind == 1,
        }
    }
}

/// The store's revision when it answered.
pub(crate) fn revision(header: Option<ResponseHeader>) -> i64 {
    header.unwrap_or_default().revision
}
