//! Server-side apply: what one manager wants of an object, and what comes of it.

use coffer_types::fields::{ApplyError, Conflicts};
use coffer_types::status::{Cause, Details};
use coffer_types::{Status, Value};

use super::options::FieldValidation;
use super::write::{Scope, warnings_of};

/// Applies a configuration to the stored object, or to nothing.
pub(super) async fn run(
    scope: &mut Scope<'_>,
    live: Option<&Value>,
    applied: &Value,
    strict: &[String],
) -> Result<Value, Status> {
    let info = &scope.resource.info;
    let wire = &scope.resource.wire;
    let api_version = info.api_version();
    let mut outcome = scope
        .writer(&api_version)
        .apply(wire, &info.kind, live, applied, scope.options.force)
        .await
        .map_err(refused)?;
    let mut object = match outcome.object.take() {
        Some(tree) => wire.applied(tree).map_err(Status::plain)?,
        None => live.cloned().unwrap_or_else(Value::object),
    };
    outcome.finish(&mut object);
    if !strict.is_empty() {
        let text = format!("error converting YAML to JSON: {}", strict.join(", "));
        match scope.options.validation {
            FieldValidation::Ignore => {}
            // Each retry finds the same: a warning is given once.
            FieldValidation::Warn => {
                for line in strict.iter().flat_map(|text| warnings_of(text)) {
                    if !scope.warnings.contains(&line) {
                        scope.warnings.push(line);
                    }
                }
            }
            FieldValidation::Strict => {
                return Err(Status::bad_request(format!("error strict decoding patch: {text}")));
            }
        }
    }
    Ok(object)
}

fn refused(error: ApplyError) -> Status {
    match error {
        ApplyError::BadRequest(text) => Status::bad_request(text),
        ApplyError::Conflicts(conflicts) => conflict(&conflicts),
        ApplyError::Failed(text) => Status::plain(text),
    }
}

fn conflict(conflicts: &Conflicts) -> Status {
    let mut status = Status::new(409, "Conflict", conflicts.to_string());
    let causes = conflicts.0.iter().map(|conflict| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: conflict.message(),
        field: conflict.field(),
    });
    status.details = Some(Box::new(Details { causes: causes.collect(), ..Details::default() }));
    status
}
