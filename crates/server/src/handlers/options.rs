//! The options of each verb, decoded from the query (or a body) and checked.

use std::time::Duration;

use coffer_store::registry::ReadAt;
use coffer_types::validation::field::{FieldError, Path, go_quote, to_status};
use coffer_types::validation::{field::FieldErrors, meta};
use coffer_types::{Status, Value};

use crate::query::Query;

/// What happens to unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    /// Dropped.
    Ignore,
    /// Dropped with a warning.
    #[default]
    Warn,
    /// Refused.
    Strict,
}

/// Options of create, update and patch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_manager: String,
    pub(crate) validation: FieldValidation,
    /// `fieldValidation` as it was asked for.
    pub(crate) asked_validation: String,
    /// Server-side apply takes over fields of others.
    pub(crate) force: bool,
}

/// Which verb's options, for the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteVerb {
    Create,
    Update,
    Patch { apply: bool },
}

impl WriteVerb {
    fn kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch { .. } => "PatchOptions",
        }
    }
}

impl WriteOptions {
    /// Decodes and checks.
    pub(crate) fn parse(query: &Query, verb: WriteVerb) -> Result<Self, Status> {
        let mut errors = FieldErrors::new();
        let field_manager = query.text("fieldManager");
        let force = query.flag("force");
        if let WriteVerb::Patch { apply } = verb {
            if apply && field_manager.is_empty() {
                errors.push(FieldError::required(&Path::new("fieldManager"), "is required for apply patch"));
            }
            if !apply && force.is_some() {
                errors.push(FieldError::forbidden(
                    &Path::new("force"),
                    "may not be specified for non-apply patch",
                ));
            }
        }
        errors.extend(meta::field_manager(field_manager, &Path::new("fieldManager")));
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&Path::new("fieldValidation"), other, &supported));
                FieldValidation::Warn
            }
        };
        refuse(verb.kind(), &errors)?;
        Ok(Self {
            dry_run,
            field_manager: field_manager.to_owned(),
            validation,
            asked_validation: query.text("fieldValidation").to_owned(),
            force: force.unwrap_or(false),
        })
    }
}

impl WriteOptions {
    /// As reviews carry them; a patch is told as an update, or as the creation that it is.
    pub(crate) fn to_value(&self, kind: &str) -> Value {
        super::forms::options(
            kind,
            &[
                ("dryRun", dry_run_list(self.dry_run)),
                ("fieldManager", self.field_manager.as_str().into()),
                ("fieldValidation", self.asked_validation.as_str().into()),
            ],
        )
    }
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut FieldErrors) -> bool {
    let values: Vec<&str> = values.collect();
    if values.is_empty() {
        return false;
    }
    if values.iter().any(|value| *value != "All") {
        let shown = Value::from(values.iter().map(|value| Value::from(*value)).collect::<Vec<_>>());
        errors.push(FieldError::not_supported(&Path::new("dryRun"), &shown, &["All"]));
    }
    true
}

fn dry_run_list(dry_run: bool) -> Value {
    if dry_run { Value::from(vec![Value::from("All")]) } else { Value::Null }
}

fn refuse(kind: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(to_status("meta.k8s.io", kind, "", errors)) }
}

/// Options of a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) dry_run: bool,
    pub(crate) ignore_read_error: bool,
    /// Whether `preconditions` was there at all.
    pub(crate) has_preconditions: bool,
}

impl DeleteOptions {
    /// From the query, which counts only when there is no body.
    pub(crate) fn from_query(query: &Query) -> Result<Self, Status> {
        let mut errors = FieldErrors::new();
        let options = Self {
            grace_period_seconds: integer(query, "gracePeriodSeconds")?,
            uid: query.first("uid").map(str::to_owned),
            resource_version: query.first("resourceVersion").map(str::to_owned),
            orphan_dependents: query.flag("orphanDependents"),
            propagation_policy: query.first("propagationPolicy").map(str::to_owned),
            dry_run: dry_run(query.all("dryRun"), &mut errors),
            ignore_read_error: query.flag(IGNORE_READ_ERROR).unwrap_or(false),
            has_preconditions: false,
        };
        options.check(errors)
    }

    /// From a decoded body.
    pub(crate) fn from_body(body: &Value) -> Result<Self, Status> {
        let mut errors = FieldErrors::new();
        let text = |path: &[&str]| body.at(path).and_then(Value::as_str).map(str::to_owned);
        let dry_run_values = body.get("dryRun").and_then(Value::as_array).unwrap_or_default();
        let options = Self {
            grace_period_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: text(&["preconditions", "uid"]),
            resource_version: text(&["preconditions", "resourceVersion"]),
            orphan_dependents: body.get("orphanDependents").and_then(Value::as_bool),
            propagation_policy: text(&["propagationPolicy"]),
            dry_run: dry_run(dry_run_values.iter().filter_map(Value::as_str), &mut errors),
            ignore_read_error: body.get(IGNORE_READ_ERROR).and_then(Value::as_bool).unwrap_or(false),
            has_preconditions: body.get("preconditions").is_some_and(|found| !found.is_null()),
        };
        options.check(errors)
    }

    /// As reviews carry them.
    pub(crate) fn to_value(&self) -> Value {
        let text = |text: &Option<String>| text.clone().map(Value::from).unwrap_or_default();
        let mut preconditions = Value::Null;
        if self.has_preconditions || self.uid.is_some() || self.resource_version.is_some() {
            preconditions = Value::object();
            for (name, value) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
                if let Some(value) = value {
                    preconditions.set(&[name], value.as_str());
                }
            }
        }
        super::forms::options(
            "DeleteOptions",
            &[
                ("gracePeriodSeconds", self.grace_period_seconds.map(Value::from).unwrap_or_default()),
                ("preconditions", preconditions),
                ("orphanDependents", self.orphan_dependents.map(Value::from).unwrap_or_default()),
                ("propagationPolicy", text(&self.propagation_policy)),
                ("dryRun", dry_run_list(self.dry_run)),
                (IGNORE_READ_ERROR, if self.ignore_read_error { true.into() } else { Value::Null }),
            ],
        )
    }

    fn check(mut self, mut errors: FieldErrors) -> Result<Self, Status> {
        // Upstream takes less than no time for a second.
        self.grace_period_seconds =
            self.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
        let path = Path::new("propagationPolicy");
        if let Some(policy) = &self.propagation_policy {
            if self.orphan_dependents.is_some() {
                let text = "orphanDependents and deletionPropagation cannot be both set";
                errors.insert(0, FieldError::invalid(&path, policy, text));
            } else if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.insert(0, FieldError::not_supported(&path, policy, &supported));
            }
        }
        if self.ignore_read_error {
            let others = [
                (self.propagation_policy.is_some(), "propagationPolicy"),
                (self.orphan_dependents.is_some(), "orphanDependents"),
                (self.grace_period_seconds.is_some(), "gracePeriodSeconds"),
                (self.has_preconditions, "preconditions"),
            ];
            for (_, other) in others.iter().filter(|(set, _)| *set) {
                errors.push(Self::unread(&format!("cannot be set together with .{other}")));
            }
        }
        refuse("DeleteOptions", &errors)?;
        Ok(self)
    }

    /// What a collection is deleted with: never unread.
    pub(crate) fn for_collection(self) -> Result<Self, Status> {
        if self.ignore_read_error {
            let text = "is not allowed with DELETECOLLECTION, try again after removing the option";
            refuse("DeleteOptions", &FieldErrors::from([Self::unread(text)]))?;
        }
        Ok(self)
    }

    fn unread(text: &str) -> FieldError {
        FieldError::invalid(&Path::new(IGNORE_READ_ERROR), true, text)
    }
}

/// The option that deletes what cannot be read.
pub(crate) const IGNORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// Options of get, list and watch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ListOptions {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) resource_version: String,
    pub(crate) resource_version_match: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Decodes and checks.
    pub(crate) fn parse(query: &Query, watch: bool) -> Result<Self, Status> {
        let limit = integer(query, "limit")?.unwrap_or(0);
        let timeout = integer(query, "timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let options = Self {
            label_selector: query.text("labelSelector").to_owned(),
            field_selector: query.text("fieldSelector").to_owned(),
            watch,
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            resource_version: query.text("resourceVersion").to_owned(),
            resource_version_match: query.text("resourceVersionMatch").to_owned(),
            timeout: timeout.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs),
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.text("continue").to_owned(),
            send_initial_events: query.flag("sendInitialEvents"),
        };
        options.check()
    }

    fn check(self) -> Result<Self, Status> {
        let mut errors = FieldErrors::new();
        let path = Path::new("resourceVersionMatch");
        let matching = self.resource_version_match.as_str();
        let forbidden = |text: &str| FieldError::forbidden(&path, text);
        if self.watch {
            if self.send_initial_events.is_some() {
                if matching != "NotOlderThan" {
                    errors.push(forbidden(
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                    ));
                }
            } else if !matching.is_empty() {
                errors.push(forbidden(
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if !matches!(matching, "" | "NotOlderThan") {
                errors.push(FieldError::not_supported(&path, matching, &["NotOlderThan"]));
            }
            if !matching.is_empty() && !self.continue_token.is_empty() {
                errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
            }
        } else {
            if !matching.is_empty() {
                if self.resource_version.is_empty() {
                    errors.push(forbidden(
                        "resourceVersionMatch is forbidden unless resourceVersion is provided",
                    ));
                }
                if !self.continue_token.is_empty() {
                    errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
                }
                if !matches!(matching, "Exact" | "NotOlderThan") {
                    errors.push(FieldError::not_supported(&path, matching, &["Exact", "NotOlderThan", ""]));
                }
                if matching == "Exact" && self.resource_version == "0" {
                    errors.push(forbidden(
                        "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                    ));
                }
            }
            if self.send_initial_events.is_some() {
                errors.push(FieldError::forbidden(
                    &Path::new("sendInitialEvents"),
                    "sendInitialEvents is forbidden for list",
                ));
            }
        }
        refuse("ListOptions", &errors)?;
        Ok(self)
    }

    /// Which state a list reads; `one_key` when it can find one object at most.
    pub(crate) fn list_at(&self, one_key: bool) -> Result<ReadAt, Status> {
        let revision = revision(&self.resource_version)
            .map_err(|text| Status::bad_request(format!("invalid resource version: {text}")))?;
        Ok(match (revision, self.resource_version_match.as_str()) {
            (None, _) => ReadAt::Latest,
            (Some(0), _) => ReadAt::Any,
            (Some(revision), "Exact") => ReadAt::Exact(revision),
            (Some(revision), "") if self.limit > 0 && !one_key && self.continue_token.is_empty() => {
                ReadAt::Exact(revision)
            }
            (Some(revision), _) => ReadAt::NotOlderThan(revision),
        })
    }
}

/// Which state a get reads. Garbage is a 500 without a reason, as upstream.
pub(crate) fn get_at(resource_version: &str) -> Result<ReadAt, Status> {
    Ok(match revision(resource_version).map_err(Status::plain)? {
        None => ReadAt::Latest,
        Some(0) => ReadAt::Any,
        Some(revision) => ReadAt::NotOlderThan(revision),
    })
}

/// A revision, `None` when it is unset; the error is the text of upstream's field error.
pub(crate) fn revision(text: &str) -> Result<Option<i64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    parse_unsigned(text)
        .map(Some)
        .map_err(|error| format!("resourceVersion: Invalid value: {}: {error}", go_quote(text)))
}

/// Go's `strconv.ParseUint`, within what a revision can be.
pub(crate) fn parse_unsigned(text: &str) -> Result<i64, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let failed = |why: &str| format!("strconv.ParseUint: parsing {}: {why}", go_quote(text));
    if !digits {
        return Err(failed("invalid syntax"));
    }
    let value: u64 = text.parse().map_err(|_| failed("value out of range"))?;
    // Upstream keeps 64 bits; no store ever gets so far, so the largest revision stands for them.
    Ok(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Go's `strconv.ParseInt` of an optional parameter.
fn integer(query: &Query, key: &str) -> Result<Option<i64>, Status> {
    match query.first(key) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|error: std::num::ParseIntError| {
            let why = match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    "value out of range"
                }
                _ => "invalid syntax",
            };
            Status::bad_request(format!("strconv.ParseInt: parsing {}: {why}", go_quote(text)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_options_are_checked_as_upstream() {
        for (query, watch, expected) in [
            ("", false, ""),
            ("limit=-1", false, ""),
            ("limit=abc", false, "strconv.ParseInt: parsing \"abc\": invalid syntax"),
            (
                "resourceVersionMatch=Exact",
                false,
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (
                "resourceVersionMatch=Exact&resourceVersion=0",
                false,
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ),
            (
                "resourceVersionMatch=x&resourceVersion=1",
                false,
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"x\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
            ),
            (
                "resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x",
                false,
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
            ),
            (
                "sendInitialEvents=true",
                false,
                "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            ),
            (
                "sendInitialEvents=true",
                true,
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ),
            (
                "resourceVersionMatch=NotOlderThan",
                true,
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ),
            ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", true, ""),
        ] {
            let got = ListOptions::parse(&Query::parse(query), watch)
                .map_or_else(|status| status.message, |_| String::new());
            assert_eq!(got, expected, "{query}");
        }
    }

    #[test]
    fn a_list_reads_the_state_that_was_asked_for() {
        for (query, expected) in [
            ("", Ok(ReadAt::Latest)),
            ("resourceVersion=0", Ok(ReadAt::Any)),
            ("resourceVersion=7", Ok(ReadAt::NotOlderThan(7))),
            ("resourceVersion=7&limit=2", Ok(ReadAt::Exact(7))),
            ("resourceVersion=7&limit=2&resourceVersionMatch=NotOlderThan", Ok(ReadAt::NotOlderThan(7))),
            ("resourceVersion=7&resourceVersionMatch=Exact", Ok(ReadAt::Exact(7))),
            (
                "resourceVersion=abc",
                Err(
                    "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
                ),
            ),
        ] {
            let options = ListOptions::parse(&Query::parse(query), false).expect("valid");
            assert_eq!(
                options.list_at(false).map_err(|status| status.message),
                expected.map_err(str::to_owned),
                "{query}"
            );
        }
    }

    /// The case of TestValidateListOptions that is called "rev resolve to 0 if not recursive".
    #[test]
    fn a_limit_does_not_make_a_list_of_one_object_exact() {
        for (query, expected) in [
            ("resourceVersion=200&limit=1", ReadAt::NotOlderThan(200)),
            ("resourceVersion=200&limit=1&resourceVersionMatch=Exact", ReadAt::Exact(200)),
        ] {
            let options = ListOptions::parse(&Query::parse(query), false).expect("valid");
            assert_eq!(options.list_at(true).expect("a revision"), expected, "{query}");
        }
    }

    // TestEtcdParseResourceVersion
    #[test]
    fn revisions_are_read_as_upstream() {
        for (text, expected) in [
            ("", Ok(None)),
            (
                "a",
                Err(r#"resourceVersion: Invalid value: "a": strconv.ParseUint: parsing "a": invalid syntax"#),
            ),
            (
                " ",
                Err(r#"resourceVersion: Invalid value: " ": strconv.ParseUint: parsing " ": invalid syntax"#),
            ),
            ("1", Ok(Some(1))),
            ("10", Ok(Some(10))),
            (
                "-1",
                Err(
                    r#"resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax"#,
                ),
            ),
            (
                "18446744073709551616",
                Err(
                    r#"resourceVersion: Invalid value: "18446744073709551616": strconv.ParseUint: parsing "18446744073709551616": value out of range"#,
                ),
            ),
        ] {
            assert_eq!(revision(text), expected.map_err(str::to_owned), "{text:?}");
        }
    }

    #[test]
    fn write_options_are_checked_as_upstream() {
        for (query, verb, expected) in [
            ("dryRun=All&fieldValidation=Strict&fieldManager=m", WriteVerb::Create, ""),
            (
                "dryRun=x",
                WriteVerb::Create,
                "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\"]: supported values: \"All\"",
            ),
            (
                "fieldValidation=Foo",
                WriteVerb::Update,
                "UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Foo\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
            ),
            (
                "fieldManager=%01",
                WriteVerb::Create,
                "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"\\x01\": invalid character U+0001 (at position 0)",
            ),
            (
                "force=true",
                WriteVerb::Patch { apply: false },
                "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
            ),
            (
                "",
                WriteVerb::Patch { apply: true },
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            ),
        ] {
            let got = WriteOptions::parse(&Query::parse(query), verb)
                .map_or_else(|status| status.message, |_| String::new());
            assert_eq!(got, expected, "{query}");
        }
    }

    #[test]
    fn delete_options_are_checked_as_upstream() {
        for (query, expected) in [
            ("propagationPolicy=Background&gracePeriodSeconds=0", ""),
            (
                "propagationPolicy=x",
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"x\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
            ),
            (
                "propagationPolicy=Orphan&orphanDependents=true",
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set",
            ),
        ] {
            let got = DeleteOptions::from_query(&Query::parse(query))
                .map_or_else(|status| status.message, |_| String::new());
            assert_eq!(got, expected, "{query}");
        }
    }
}
