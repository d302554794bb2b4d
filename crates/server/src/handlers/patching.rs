//! What a patch makes of an object. Server-side apply is in [`super::applying`].

use coffer_types::fields::numbers;
use coffer_types::meta::Meta as _;
use coffer_types::patch::json::JsonPatchError;
use coffer_types::patch::strategic::StrategicError;
use coffer_types::patch::{self as patches};
use coffer_types::validation::field::{FieldError, Path, Shown, to_status};
use coffer_types::{Status, Value};

use super::applying;
use super::options::FieldValidation;
use super::write::Scope;
use crate::negotiate::Offers;
use crate::wire;

/// Which form of patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Merge,
    Strategic,
    /// Server-side apply.
    Apply,
}

impl Kind {
    pub(super) fn parse(content_type: &str, offers: Offers) -> Result<Self, Status> {
        let name = content_type.split(';').next().unwrap_or_default().trim();
        match name {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if offers != Offers::Custom => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ => Err(unsupported(offers)),
        }
    }
}

fn unsupported(offers: Offers) -> Status {
    if offers == Offers::Custom {
        return Status::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        );
    }
    let mut status = Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
    status.details = Some(Box::default());
    status
}

/// A decoded patch.
pub(crate) struct Patch {
    pub(crate) kind: Kind,
    body: Value,
    /// Keys that an applied configuration has twice.
    strict: Vec<String>,
}

impl Patch {
    pub(super) fn parse(kind: Kind, bytes: &[u8], scope: &mut Scope<'_>) -> Result<Self, Status> {
        if kind == Kind::Apply {
            return Self::parse_applied(bytes);
        }
        let decoded = match wire::decode_untyped(bytes) {
            Ok(decoded) => decoded,
            Err(error) => {
                return Err(match kind {
                    // Upstream parses a merge patch late, and drops the library's words.
                    Kind::Merge | Kind::Strategic | Kind::Json => Status::bad_request("invalid JSON patch"),
                    Kind::Apply => Status::bad_request(format!("error decoding patch: {error}")),
                });
            }
        };
        if kind == Kind::Json && !matches!(decoded.object, Value::Array(_) | Value::Null) {
            return Err(Status::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
                decoded.object.json_kind()
            )));
        }
        if let (Kind::Json, Value::Array(operations)) = (kind, &decoded.object)
            && let Some(other) =
                operations.iter().find(|operation| operation.as_object().is_none() && !operation.is_null())
        {
            return Err(Status::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type handlers.jsonPatchOp",
                other.json_kind()
            )));
        }
        if kind == Kind::Merge && decoded.object.is_null() {
            return Err(Status::bad_request("Invalid JSON Patch"));
        }
        if kind == Kind::Merge && decoded.object.as_object().is_none() {
            return Err(Status::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                decoded.object.json_kind()
            )));
        }
        if kind == Kind::Strategic && !matches!(decoded.object, Value::Object(_) | Value::Null) {
            return Err(Status::bad_request(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                decoded.object.json_kind()
            )));
        }
        if !decoded.strict_errors.is_empty() {
            match scope.options.validation {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => scope.warnings.extend(decoded.strict_errors),
                FieldValidation::Strict => {
                    return Err(invalid(&format!(
                        "strict decoding error: {}",
                        decoded.strict_errors.join(", ")
                    )));
                }
            }
        }
        Ok(Self { kind, body: decoded.object, strict: Vec::new() })
    }

    /// An applied configuration. What is wrong with its keys is told after it was merged, as upstream does.
    fn parse_applied(bytes: &[u8]) -> Result<Self, Status> {
        let decoded = wire::decode_yaml(bytes)
            .map_err(|error| Status::bad_request(format!("error encoding patch: {error}")))?;
        let mut body = decoded.object;
        numbers::read_numbers(&mut body);
        Ok(Self { kind: Kind::Apply, body, strict: decoded.strict_errors })
    }

    /// The object that the patch makes of nothing; only apply can.
    pub(super) async fn new_object(&self, scope: &mut Scope<'_>) -> Result<Value, Status> {
        let info = &scope.resource.info;
        if self.kind != Kind::Apply {
            return Err(Status::not_found(&info.group, &info.plural, &scope.name));
        }
        let mut new = applying::run(scope, None, &self.body, &self.strict).await?;
        if !new.uid().is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                new.uid()
            );
            return Err(Status::conflict(&info.group, &info.plural, &scope.name, why));
        }
        check_identity(scope, &mut new)?;
        Ok(new)
    }

    /// The object that the patch makes of `old`.
    pub(super) async fn apply(&self, scope: &mut Scope<'_>, old: &Value) -> Result<Value, Status> {
        if self.kind == Kind::Apply {
            let mut new = applying::run(scope, Some(old), &self.body, &self.strict).await?;
            check_identity(scope, &mut new)?;
            return Ok(new);
        }
        let mut document = patches::to_json_form(old);
        let patched = match self.kind {
            Kind::Json => {
                patches::json::apply(&mut document, &self.body).map_err(json_failure)?;
                document
            }
            Kind::Merge => patches::merge::apply(document, self.body.clone()),
            Kind::Strategic => {
                let body = if self.body.is_null() { Value::object() } else { self.body.clone() };
                scope.resource.wire.strategic(document, body).map_err(strategic_failure)?
            }
            Kind::Apply => document,
        };
        scope.resource.wire.check_patched(&patched)?;
        let decoded = scope.resource.wire.retype(&patched).map_err(|error| invalid(&error))?;
        if !decoded.strict.is_empty() {
            match scope.options.validation {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => {
                    // Each retry finds the same: a warning is given once.
                    for text in decoded.strict {
                        if !scope.warnings.contains(&text) {
                            scope.warnings.push(text);
                        }
                    }
                }
                FieldValidation::Strict => {
                    return Err(invalid(&format!("strict decoding error: {}", decoded.strict.join(", "))));
                }
            }
        }
        let mut new = decoded.object;
        check_identity(scope, &mut new)?;
        Ok(new)
    }
}

/// The patched object must still be the one of the URL.
fn check_identity(scope: &Scope<'_>, new: &mut Value) -> Result<(), Status> {
    let (own, wanted) = (new.name().to_owned(), scope.name.as_str());
    if own != wanted {
        return Err(Status::bad_request(if own.is_empty() {
            format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
            )
        } else {
            format!("the name of the object ({own}) does not match the name on the URL ({wanted})")
        }));
    }
    scope.settle_namespace(new)
}

/// 422 about the patched object. Upstream prints the whole object here, secrets included; it is redacted.
fn invalid(text: &str) -> Status {
    let error = FieldError::invalid(&Path::new("patch"), Shown::redacted(), text);
    to_status("", "", "", &[error])
}

fn json_failure(error: JsonPatchError) -> Status {
    match error {
        JsonPatchError::Malformed(text) => Status::bad_request(format!("error decoding patch: {text}")),
        JsonPatchError::TooManyOperations(_) => {
            Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: {error}"))
        }
        JsonPatchError::Failed(text) => {
            let mut status =
                Status::new(422, "Invalid", "the server rejected our request due to an error in our request");
            status.details = Some(Box::default());
            status.with_internal(text)
        }
    }
}

fn strategic_failure(error: StrategicError) -> Status {
    match error {
        StrategicError::BadRequest(text) => Status::bad_request(text),
        StrategicError::Unprocessable(text) => Status::new(422, "Invalid", text),
        StrategicError::Internal(text) => Status::plain(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_name_the_form() {
        for (text, offers, expected) in [
            ("application/json-patch+json", Offers::BuiltIn, Ok(Kind::Json)),
            ("application/merge-patch+json; charset=utf-8", Offers::Custom, Ok(Kind::Merge)),
            ("application/strategic-merge-patch+json", Offers::BuiltIn, Ok(Kind::Strategic)),
            ("application/strategic-merge-patch+json", Offers::Custom, Err(415)),
            ("application/apply-patch+yaml", Offers::BuiltIn, Ok(Kind::Apply)),
            ("application/apply-patch+yaml", Offers::Custom, Ok(Kind::Apply)),
            ("application/apply-patch+cbor", Offers::BuiltIn, Err(415)),
            ("application/json", Offers::BuiltIn, Err(415)),
            ("", Offers::BuiltIn, Err(415)),
        ] {
            assert_eq!(Kind::parse(text, offers).map_err(|status| status.code), expected, "{text}");
        }
    }
}
