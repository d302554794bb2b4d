//! What an error of the API means for a migration: a table.

use std::time::Duration;

use coffer_runtime::api::ApiError;

/// Why a call failed, with what the server says about going on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct CallError {
    /// What the server answered.
    #[source]
    pub error: ApiError,
    /// How long it wants to be left alone; zero when it does not say.
    pub retry_after: Duration,
    /// Where a list whose token is too old can go on, as of now instead of then.
    pub token: String,
}

impl From<ApiError> for CallError {
    fn from(error: ApiError) -> Self {
        Self { error, retry_after: Duration::ZERO, token: String::new() }
    }
}

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The object is gone, or was replaced by another: nothing is left to rewrite.
    Gone,
    /// Try again later.
    Retry,
    /// The list's token is too old: go on with the one in the error.
    Expired,
    /// This object cannot be rewritten; the others can.
    Refused,
    /// Nothing can be done without rights.
    Forbidden,
}

/// What an error means. The status code decides, as upstream's clients do it; the reasons stand
/// beside it where one code has several.
pub fn meaning(error: &ApiError) -> Meaning {
    match (error.code, error.reason.as_str()) {
        (404, _) => Meaning::Gone,
        // The UID is all that the patch asks for, so that the object is another one; or two writers met.
        (409, _) if error.message.contains("uid") || error.message.contains("UID") => Meaning::Gone,
        (409, _) => Meaning::Retry,
        (410, _) => Meaning::Expired,
        // No answer, too many requests, timeouts, a server that is starting or stopping.
        (0 | 408 | 429 | 502 | 503 | 504, _) | (500, "ServerTimeout" | "Timeout") => Meaning::Retry,
        (401 | 403, _) => Meaning::Forbidden,
        _ => Meaning::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: u16, reason: &str, message: &str, expected: Meaning) {
        let error = ApiError { code, reason: reason.to_owned(), message: message.to_owned() };
        assert_eq!(meaning(&error), expected, "{code} {reason} {message}");
    }

    #[test]
    fn every_error_has_a_meaning() {
        check(404, "NotFound", "", Meaning::Gone);
        check(
            409,
            "Conflict",
            "Precondition failed: UID in precondition: a, UID in object meta: b",
            Meaning::Gone,
        );
        check(409, "Conflict", "the object has been modified", Meaning::Retry);
        check(410, "Expired", "", Meaning::Expired);
        for code in [0, 408, 429, 502, 503, 504] {
            check(code, "", "", Meaning::Retry);
        }
        check(500, "ServerTimeout", "", Meaning::Retry);
        check(500, "InternalError", "failed calling webhook", Meaning::Refused);
        check(401, "Unauthorized", "", Meaning::Forbidden);
        check(403, "Forbidden", "", Meaning::Forbidden);
        for code in [400, 413, 422, 500, 501] {
            check(code, "", "", Meaning::Refused);
        }
    }
}
