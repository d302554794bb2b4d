//! `metav1.Status`: the one error that leaves the API server.

use std::borrow::Cow;
use std::fmt;

use crate::Value;
use crate::go_quote::go_quote;

/// A failure (or a success) as a client reads it.
///
/// `message` and `details` go to the client and never hold secret bytes;
/// `internal` goes to the log only and never holds them either.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason such as `NotFound`; "" where upstream sends none.
    pub reason: Cow<'static, str>,
    /// What a person reads.
    pub message: String,
    /// What the failure is about.
    pub details: Option<Box<Details>>,
    /// `metadata.continue` of an expired list (410), else "".
    pub continue_token: String,
    /// For the log, not for the client.
    pub internal: Option<String>,
}

/// `metav1.StatusDetails`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// API group.
    pub group: String,
    /// The resource (plural), or the kind for `Invalid`.
    pub kind: String,
    /// UID of the object.
    pub uid: String,
    /// One entry for each cause.
    pub causes: Vec<Cause>,
    /// Seconds after which a retry makes sense; 0 means unset.
    pub retry_after_seconds: i32,
}

/// `metav1.StatusCause`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cause {
    /// Machine-readable reason.
    pub reason: String,
    /// What a person reads.
    pub message: String,
    /// Field path.
    pub field: String,
}

impl Status {
    /// A failure without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason: Cow::Borrowed(reason), message: message.into(), ..Self::default() }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 `<resource> "<name>" is forbidden: <why>`; `resource` is `secrets` or `deployments.apps`.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: impl fmt::Display) -> Self {
        let qualified = qualified(group, resource);
        let message = match (qualified.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{qualified} is forbidden: {why}"),
            (false, false) => format!("{qualified} {} is forbidden: {why}", go_quote(name)),
        };
        Self::new(403, "Forbidden", message).about(group, resource, name)
    }

    /// 404 `<resource> "<name>" not found`.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {} not found", qualified(group, resource), go_quote(name)))
            .about(group, resource, name)
    }

    /// 405.
    pub fn method_not_allowed(group: &str, resource: &str, verb: &str) -> Self {
        let what = qualified(group, resource);
        Self::new(405, "MethodNotAllowed", format!("{verb} is not supported on resources of kind \"{what}\""))
            .about(group, resource, "")
    }

    /// 409 `<resource> "<name>" already exists`.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} {} already exists", qualified(group, resource), go_quote(name)),
        )
        .about(group, resource, name)
    }

    /// 409 `Operation cannot be fulfilled on <resource> "<name>": <why>`.
    pub fn conflict(group: &str, resource: &str, name: &str, why: impl fmt::Display) -> Self {
        let what = qualified(group, resource);
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {what} {}: {why}", go_quote(name)),
        )
        .about(group, resource, name)
    }

    /// 410.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 500 `Internal error occurred: <why>`.
    pub fn internal(why: impl fmt::Display) -> Self {
        let why = why.to_string();
        let mut status = Self::new(500, "InternalError", format!("Internal error occurred: {why}"));
        status.details = Some(Box::new(Details {
            causes: vec![Cause { message: why, ..Cause::default() }],
            ..Details::default()
        }));
        status
    }

    /// 500 with an empty reason: what upstream makes of an error that is no API error.
    pub fn plain(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// Sets what the failure is about.
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.group = group.to_owned();
        details.kind = kind.to_owned();
        details.name = name.to_owned();
        self
    }

    /// Adds a cause.
    pub fn with_cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: reason.to_owned(),
            message: message.into(),
            field: field.to_owned(),
        });
        self
    }

    /// Sets after how many seconds a retry makes sense.
    pub fn retry_after(mut self, seconds: i32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// Adds what only the log may show.
    pub fn with_internal(mut self, text: impl Into<String>) -> Self {
        self.internal = Some(text.into());
        self
    }

    /// The object, with `apiVersion` and `kind`, as any codec encodes it.
    pub fn to_value(&self) -> Value {
        let mut value = Value::from([("kind", "Status"), ("apiVersion", "v1")]);
        value.set(&["metadata"], Value::object());
        value.set_str(&["metadata", "continue"], &self.continue_token);
        value.set(&["status"], if self.code < 400 { "Success" } else { "Failure" });
        value.set_str(&["message"], &self.message);
        value.set_str(&["reason"], &self.reason);
        if let Some(details) = &self.details {
            value.set(&["details"], details.to_value());
        }
        value.set(&["code"], i64::from(self.code));
        value
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut value = Value::object();
        value.set_str(&["name"], &self.name);
        value.set_str(&["group"], &self.group);
        value.set_str(&["kind"], &self.kind);
        value.set_str(&["uid"], &self.uid);
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(|cause| {
                let mut value = Value::object();
                value.set_str(&["reason"], &cause.reason);
                value.set_str(&["message"], &cause.message);
                value.set_str(&["field"], &cause.field);
                value
            });
            value.set(&["causes"], causes.collect::<Vec<_>>());
        }
        if self.retry_after_seconds > 0 {
            value.set(&["retryAfterSeconds"], i64::from(self.retry_after_seconds));
        }
        value
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// `secrets` in the core group, else `deployments.apps`.
pub fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
