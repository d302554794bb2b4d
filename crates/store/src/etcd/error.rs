//! What a failed call means.

use tonic::{Code, ConnectError, Status};

use crate::kv::KvError;

/// The deadline passed. Whether the call took effect is unknown.
#[derive(Debug)]
pub(super) enum CallError {
    /// The server, or the way to it, said so.
    Status(Status),
    /// Nothing was heard in time.
    Deadline,
}

impl CallError {
    /// Whether the request cannot have reached a server.
    pub(super) fn not_sent(&self) -> bool {
        let Self::Status(status) = self else { return false };
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(status);
        while let Some(error) = source {
            if error.is::<ConnectError>() {
                return true;
            }
            source = error.source();
        }
        false
    }

    /// Whether another endpoint may do better.
    pub(super) fn of_endpoint(&self) -> bool {
        matches!(self.meaning(""), KvError::Unavailable(_) | KvError::Timeout)
    }

    /// The error for the caller; `endpoint` is named where it is to blame.
    pub(super) fn meaning(&self, endpoint: &str) -> KvError {
        let status = match self {
            Self::Deadline => return KvError::Timeout,
            Self::Status(status) => status,
        };
        let text = status.message();
        match status.code() {
            _ if text.starts_with("etcdserver: mvcc: required revision has been compacted") => {
                KvError::Compacted(0)
            }
            _ if text.starts_with("etcdserver: mvcc: required revision is a future revision") => {
                KvError::FutureRevision
            }
            _ if text.starts_with("etcdserver: requested lease not found") => KvError::LeaseNotFound,
            _ if text.starts_with("etcdserver: request is too large") => KvError::TooLarge,
            _ if text.starts_with("etcdserver: request timed out") => KvError::Timeout,
            // From the server's transport, before etcd measures the request.
            Code::ResourceExhausted if text.contains("larger than max") => KvError::TooLarge,
            Code::ResourceExhausted => KvError::Refused(text.to_owned()),
            Code::DeadlineExceeded => KvError::Timeout,
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated => KvError::Other(text.to_owned()),
            // Anything else leaves open what happened.
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => KvError::Unavailable(format!("{endpoint}: {}", with_causes(status))),
        }
    }
}

/// The text with all that led to it, since the reason is often at the bottom ("connection refused").
fn with_causes(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcds_errors_get_their_meaning() {
        let cases = [
            (
                Code::OutOfRange,
                "etcdserver: mvcc: required revision has been compacted",
                KvError::Compacted(0),
            ),
            (
                Code::OutOfRange,
                "etcdserver: mvcc: required revision is a future revision",
                KvError::FutureRevision,
            ),
            (Code::NotFound, "etcdserver: requested lease not found", KvError::LeaseNotFound),
            (Code::InvalidArgument, "etcdserver: request is too large", KvError::TooLarge),
            (
                Code::ResourceExhausted,
                "grpc: received message larger than max (3145728 vs. 2097152)",
                KvError::TooLarge,
            ),
            (
                Code::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
                KvError::Refused("etcdserver: mvcc: database space exceeded".into()),
            ),
            (Code::Unavailable, "etcdserver: request timed out", KvError::Timeout),
            (
                Code::Unavailable,
                "etcdserver: request timed out, possibly due to previous leader failure",
                KvError::Timeout,
            ),
            (Code::DeadlineExceeded, "context deadline exceeded", KvError::Timeout),
            (
                Code::Unavailable,
                "etcdserver: no leader",
                KvError::Unavailable("http://one: etcdserver: no leader".into()),
            ),
            (
                Code::Unknown,
                "h2 protocol error",
                KvError::Unavailable("http://one: h2 protocol error".into()),
            ),
            (
                Code::InvalidArgument,
                "etcdserver: duplicate key given in txn request",
                KvError::Other("etcdserver: duplicate key given in txn request".into()),
            ),
            (
                Code::PermissionDenied,
                "etcdserver: permission denied",
                KvError::Other("etcdserver: permission denied".into()),
            ),
        ];
        for (code, text, expected) in cases {
            let error = CallError::Status(Status::new(code, text));
            assert_eq!(error.meaning("http://one"), expected, "{code:?} {text}");
            assert!(!error.not_sent(), "{text}");
        }
        assert_eq!(CallError::Deadline.meaning("http://one"), KvError::Timeout);
    }

    #[test]
    fn only_a_failed_connection_was_certainly_not_sent() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = CallError::Status(Status::from_error(Box::new(ConnectError(Box::new(refused)))));
        assert!(error.not_sent());
        assert_eq!(
            error.meaning("http://one"),
            KvError::Unavailable("http://one: connection refused".into())
        );
        let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(!CallError::Status(Status::from_error(Box::new(broken))).not_sent());
    }
}
