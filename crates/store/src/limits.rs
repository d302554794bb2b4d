//! What a request may be, the same for both engines and with etcd's texts.

use crate::kv::{KvError, Op, RangeRequest, Txn};

/// The largest request, as etcd's `--max-request-bytes` has it by default.
pub const MAX_REQUEST_BYTES: usize = 1536 * 1024;

/// The most conditions or steps of one transaction, as etcd's `--max-txn-ops` has it by default.
pub const MAX_TXN_OPS: usize = 128;

/// What etcd adds around a request before it measures it: its kind, its length, and an identity.
pub(crate) const REQUEST_OVERHEAD: usize = 24;

fn error(text: &str) -> KvError {
    KvError::Other(text.to_owned())
}

/// Checks a read as etcd does.
pub(crate) fn check_range(request: &RangeRequest) -> Result<(), KvError> {
    if request.start.is_empty() {
        return Err(error("etcdserver: key is not provided"));
    }
    Ok(())
}

/// Checks a transaction as etcd does, except for its size.
pub(crate) fn check_txn(txn: &Txn) -> Result<(), KvError> {
    let most = txn.compare.len().max(txn.success.len()).max(txn.failure.len());
    if MAX_TXN_OPS < most {
        return Err(error("etcdserver: too many operations in txn request"));
    }
    for compare in &txn.compare {
        let (crate::kv::Compare::ModRevision(key, _) | crate::kv::Compare::Version(key, _)) = compare;
        if key.is_empty() {
            return Err(error("etcdserver: key is not provided"));
        }
    }
    for ops in [&txn.success, &txn.failure] {
        check_ops(ops)?;
    }
    Ok(())
}

fn check_ops(ops: &[Op]) -> Result<(), KvError> {
    for op in ops {
        match op {
            Op::Put { key, .. } | Op::Delete { key } | Op::DeleteRange { start: key, .. }
                if key.is_empty() =>
            {
                return Err(error("etcdserver: key is not provided"));
            }
            Op::Range(request) => check_range(request)?,
            Op::Put { .. } | Op::Delete { .. } | Op::DeleteRange { .. } => {}
        }
    }
    // A key may be written once, and not be both written and deleted.
    let mut written = std::collections::BTreeSet::new();
    for op in ops {
        if let Op::Put { key, .. } = op
            && !written.insert(&**key)
        {
            return Err(error("etcdserver: duplicate key given in txn request"));
        }
    }
    let deleted = ops.iter().any(|op| match op {
        Op::Delete { key } => written.contains(&**key),
        Op::DeleteRange { start, end } => match &**end {
            [] => written.contains(&**start),
            // etcd takes the zero byte that means no end for a key here, and so finds nothing.
            end => written.iter().any(|key| **start <= **key && *key < end),
        },
        Op::Put { .. } | Op::Range(_) => false,
    });
    if deleted { Err(error("etcdserver: duplicate key given in txn request")) } else { Ok(()) }
}
