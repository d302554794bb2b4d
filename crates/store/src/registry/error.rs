//! Upstream's storage errors, and the one place where they become API errors.

use std::fmt;
use std::time::Duration;

use coffer_types::Status;
use coffer_types::status::{Cause, qualified};

use crate::kv::{KvError, Revision};

/// How many unreadable objects a list names before it gives up.
pub const MAX_UNREADABLE_NAMED: usize = 100;

/// The resource that errors are about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) name: String,
}

/// What upstream calls a `StorageError`.
pub(crate) struct StorageError {
    pub(crate) code: StorageErrorCode,
    pub(crate) key: String,
    pub(crate) message: String,
}

/// Codes of the storage errors that reach a client as text.
#[derive(Clone, Copy)]
pub(crate) enum StorageErrorCode {
    InvalidObject = 4,
    CorruptObject = 7,
}

impl fmt::Display for StorageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.code {
            StorageErrorCode::InvalidObject => "invalid object",
            StorageErrorCode::CorruptObject => "corrupt object",
        };
        // The revision of these errors is never known upstream.
        write!(
            formatter,
            "StorageError: {text}, Code: {}, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: {}",
            self.code as u8, self.key, self.message
        )
    }
}

/// Why a stored value is no object. The texts hold no bytes of the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// It cannot be decrypted. Why is for the log: whoever can write to the store and ask the server
    /// would learn from it, byte by byte, what a value under aescbc holds.
    #[error("data from the storage is not transformable revision=0: the value cannot be decrypted")]
    Transform(String),
    /// It can be decrypted, and is no object of this resource.
    #[error("object not decodable revision={revision}: {why}")]
    Decode {
        /// Revision of the value.
        revision: Revision,
        /// In the codec's words.
        why: String,
    },
}

/// What can be done about a value that cannot be read.
const WAY_OUT: &str = "give the server the key that it was written under, or delete it unread with the \
                       delete option ignoreStoreReadErrorWithClusterBreakingPotential=true, for which the \
                       verb unsafe-delete-ignore-read-errors is needed";

impl ReadError {
    /// What a GET answers; `key` is relative to the etcd prefix.
    pub(crate) fn on_get(&self, key: &str) -> Status {
        Status::internal(format!("{}; {WAY_OUT}", corrupt(key, self))).with_internal(self.cause())
    }

    /// What an update or a deletion answers.
    pub(crate) fn on_write(&self) -> Status {
        let status = match self {
            Self::Transform(_) => Status::internal(format!("{self}; {WAY_OUT}")),
            Self::Decode { .. } => Status::plain(format!("{self}; {WAY_OUT}")),
        };
        status.with_internal(self.cause())
    }

    /// All that is known, for the log.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Transform(why) => why.clone(),
            Self::Decode { .. } => self.to_string(),
        }
    }

    /// What a watch answers when the object came or changed.
    pub(crate) fn on_watch(&self) -> Status {
        Status::internal(self)
    }

    /// What a watch answers when the object was deleted.
    pub(crate) fn on_watch_of_deletion(&self) -> Status {
        match self {
            Self::Transform(_) => Status::new(
                500,
                "StoreReadError",
                format!("saw a DELETED event, but object data is corrupt - {self}"),
            ),
            Self::Decode { .. } => Status::internal(self),
        }
    }
}

/// Collects what a list could not read, so that it fails naming all of it and not just the first.
#[derive(Default)]
pub(crate) struct UnreadableList {
    found: Vec<(String, ReadError)>,
}

impl UnreadableList {
    /// Whether the list should give up. `key` is the full key.
    pub(crate) fn push(&mut self, key: String, error: ReadError) -> bool {
        self.found.push((key, error));
        MAX_UNREADABLE_NAMED <= self.found.len()
    }

    /// The error, if anything was found.
    pub(crate) fn finish(self, resource: &Resource) -> Result<(), Status> {
        let Some((first_key, first)) = self.found.first() else { return Ok(()) };
        let what = qualified(&resource.group, &resource.name);
        let cause = first.cause();
        let first = corrupt(first_key, first);
        let mut message = format!("failed to read one or more {what} from the storage: {first}");
        if 1 < self.found.len() {
            message.push_str(&format!(" (and {} more)", self.found.len() - 1));
        }
        let mut status =
            Status::new(500, "StoreReadError", message).about(&resource.group, &resource.name, "list");
        status = status.with_internal(cause);
        for (key, error) in &self.found {
            status = status.with_cause("UnexpectedServerResponse", corrupt(key, error).to_string(), key);
        }
        if MAX_UNREADABLE_NAMED <= self.found.len() {
            status = status.with_cause("FieldValueTooMany", "too many errors, the list is truncated", "");
        }
        Err(status)
    }
}

fn corrupt(key: &str, error: &ReadError) -> StorageError {
    StorageError { code: StorageErrorCode::CorruptObject, key: key.to_owned(), message: error.to_string() }
}

impl Resource {
    /// 404.
    pub(crate) fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.group, &self.name, name)
    }

    /// 409 of a create.
    pub(crate) fn already_exists(&self, name: &str) -> Status {
        Status::already_exists(&self.group, &self.name, name)
    }

    /// 409 with the storage error's text, which shows the full key.
    pub(crate) fn invalid_object(&self, name: &str, key: &impl fmt::Display, message: String) -> Status {
        let error = StorageError { code: StorageErrorCode::InvalidObject, key: key.to_string(), message };
        Status::conflict(&self.group, &self.name, name, error)
    }
}

/// What the store said, where the operation has no better words for it.
pub(crate) fn from_kv(error: KvError) -> Status {
    match error {
        KvError::Compacted(_)
        | KvError::FutureRevision
        | KvError::LeaseNotFound
        | KvError::TooLarge
        | KvError::Refused(_)
        | KvError::Unavailable(_)
        | KvError::Timeout
        | KvError::Other(_) => Status::plain(error.to_string()),
    }
}

/// 504: the client has seen a revision that this server has not.
pub(crate) fn too_large_resource_version(requested: Revision, current: Revision, retry_after: i32) -> Status {
    let message = format!("Timeout: Too large resource version: {requested}, current: {current}");
    Status::new(504, "Timeout", message)
        .with_cause("ResourceVersionTooLarge", "Too large resource version", "")
        .retry_after(retry_after)
}

/// Whether a status is a [`too_large_resource_version`].
pub(crate) fn is_too_large_resource_version(status: &Status) -> bool {
    status.code == 504
        && status.details.as_ref().is_some_and(|details| {
            details.causes.iter().any(|Cause { reason, .. }| reason == "ResourceVersionTooLarge")
        })
}

/// 410 of a list at a compacted revision.
pub(crate) fn list_expired() -> Status {
    Status::expired("The resourceVersion for the provided list is too old.")
}

/// 410 of a page at a compacted revision, with a token for the rest as it is now.
pub(crate) fn continue_expired(token: Option<String>) -> Status {
    let alone = "The provided continue parameter is too old to display a consistent list result. You can \
                 start a new list without the continue parameter";
    let Some(token) = token else { return Status::expired(format!("{alone}.")) };
    let mut status = Status::expired(format!(
        "{alone}, or use the continue token in this response to retrieve the remainder of the results. \
         Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list."
    ));
    status.continue_token = token;
    status
}

/// 410 of a watch whose start is no longer in the history.
pub(crate) fn watch_too_old(requested: Revision, oldest: Revision) -> Status {
    Status::expired(format!("too old resource version: {requested} ({oldest})"))
}

/// 429: the cache is not filled.
pub(crate) fn not_ready(down_for: Duration, last_error: Option<&str>) -> Status {
    let mut message = "storage is (re)initializing".to_owned();
    if let Some(error) = last_error {
        message.push_str(": ");
        message.push_str(error);
    }
    Status::new(429, "TooManyRequests", message).retry_after(retry_after_unready(down_for))
}

/// Grows with the time that the cache has been down: TestCalculateRetryAfterForUnreadyCache.
#[allow(clippy::cast_possible_truncation, reason = "clamped to 1..=30 before")]
fn retry_after_unready(down_for: Duration) -> i32 {
    (0.06 * down_for.as_secs_f64()).exp().clamp(1.0, 30.0) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    // TestCalculateRetryAfterForUnreadyCache
    #[test]
    fn retry_after_grows_with_the_downtime() {
        for (seconds, expected) in
            [(0, 1), (1, 1), (10, 1), (20, 3), (30, 6), (40, 11), (50, 20), (60, 30), (180, 30)]
        {
            assert_eq!(retry_after_unready(Duration::from_secs(seconds)), expected, "{seconds} s");
        }
    }

    // TestAggregatedStorageErrorMessage
    #[test]
    fn a_list_names_what_it_could_not_read() {
        let resource = Resource { group: String::new(), name: "secrets".to_owned() };
        let mut list = UnreadableList::default();
        for name in ["a", "b"] {
            let error = ReadError::Transform("no matching key".to_owned());
            assert!(!list.push(format!("/registry/secrets/ns/{name}"), error));
        }
        let status = list.finish(&resource).expect_err("unreadable");
        assert_eq!((status.code, &*status.reason), (500, "StoreReadError"));
        assert_eq!(
            status.message,
            "failed to read one or more secrets from the storage: StorageError: corrupt object, Code: 7, \
             Key: /registry/secrets/ns/a, ResourceVersion: 0, AdditionalErrorMsg: data from the storage is \
             not transformable revision=0: the value cannot be decrypted (and 1 more)"
        );
        assert_eq!(status.internal.as_deref(), Some("no matching key"));
        let details = status.details.expect("details");
        assert_eq!(details.causes.len(), 2);
        assert_eq!(details.causes[1].field, "/registry/secrets/ns/b");
    }

    #[test]
    fn a_list_gives_up_after_a_hundred() {
        let resource = Resource { group: "apps".to_owned(), name: "deployments".to_owned() };
        let mut list = UnreadableList::default();
        for index in 0..MAX_UNREADABLE_NAMED {
            let error = ReadError::Decode { revision: 7, why: "no object".to_owned() };
            assert_eq!(list.push(format!("/k{index}"), error), index + 1 == MAX_UNREADABLE_NAMED);
        }
        let status = list.finish(&resource).expect_err("unreadable");
        let causes = &status.details.as_ref().expect("details").causes;
        assert_eq!(causes.len(), MAX_UNREADABLE_NAMED + 1);
        assert_eq!(causes[MAX_UNREADABLE_NAMED].message, "too many errors, the list is truncated");
        assert!(status.message.starts_with("failed to read one or more deployments.apps from the storage: "));
    }
}
