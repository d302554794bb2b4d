//! The `scale` subresource: which fields of a custom resource a Scale stands for.

use coffer_types::Value;
use coffer_types::meta::Meta as _;
use coffer_types::validation::field::{FieldError, FieldErrors, Path};

use super::go_value::{self, go_type};

/// The fields of one version of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// `specReplicasPath` as the definition has it.
    pub spec: String,
    status: String,
    selector: Option<String>,
}

impl ScalePaths {
    /// Those of one entry of `spec.versions`, if it has the subresource.
    pub fn of_version(version: &Value) -> Option<Self> {
        let scale = version.at(&["subresources", "scale"]).filter(|scale| !scale.is_null())?;
        let selector = scale.get("labelSelectorPath").and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            spec: scale.str_at(&["specReplicasPath"]).to_owned(),
            status: scale.str_at(&["statusReplicasPath"]).to_owned(),
            selector,
        })
    }

    /// The names on the way to the wanted number.
    pub fn names(&self) -> Vec<String> {
        split(&self.spec).map(str::to_owned).collect()
    }

    /// The Scale of an object, and whether the object says how many are wanted.
    pub fn scale(&self, object: &Value) -> Result<(Value, bool), String> {
        let wanted = integer(object, &self.spec)?;
        let present = integer(object, &self.status)?;
        let selector = match self.selector.as_deref() {
            None | Some("") => None,
            Some(path) => text(object, path)?,
        };
        let mut scale = Value::object();
        scale.set_type("autoscaling/v1", "Scale");
        for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            scale.set_str(&["metadata", name], object.meta_str(name));
        }
        scale.set(&["spec", "replicas"], narrow(wanted.unwrap_or(0)));
        scale.set(&["status", "replicas"], narrow(present.unwrap_or(0)));
        scale.set_str(&["status", "selector"], selector.unwrap_or_default());
        Ok((scale, wanted.is_some()))
    }

    /// Writes into an object how many are wanted.
    pub fn set(&self, object: &mut Value, replicas: i64) -> Result<(), String> {
        let names: Vec<&str> = split(&self.spec).collect();
        for depth in 1..names.len() {
            if object.at(&names[..depth]).is_some_and(|found| found.as_object().is_none()) {
                let path = names[..depth].join(".");
                return Err(format!("value cannot be set because .{path} is not a map[string]interface{{}}"));
            }
        }
        object.set(&names, replicas);
        Ok(())
    }

    /// What is wrong with the fields of an object; with those of its status alone, if asked.
    pub fn validate(&self, object: &Value, status_only: bool) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let numbers = [(&self.spec, !status_only), (&self.status, true)];
        for (path, _) in numbers.into_iter().filter(|(_, checked)| *checked) {
            let at = Path::new(path);
            match integer(object, path) {
                Err(error) => errors.push(FieldError::invalid(&at, 0, error)),
                Ok(Some(number)) if number < 0 => {
                    errors.push(FieldError::invalid(&at, number, "should be a non-negative integer"));
                }
                Ok(Some(number)) if i64::from(i32::MAX) < number => {
                    let detail = format!("should be less than or equal to {}", i32::MAX);
                    errors.push(FieldError::invalid(&at, number, detail));
                }
                Ok(_) => {}
            }
        }
        if let Some(path) = &self.selector
            && let Err(error) = text(object, path)
        {
            errors.push(FieldError::invalid(&Path::new(path), "", error));
        }
        errors
    }

    /// The columns of a table of Scales, as a definition would have them.
    pub fn columns(&self) -> Value {
        let column = |name: &str, kind: &str, description: &str, path: &str| {
            Value::from([("name", name), ("type", kind), ("description", description), ("jsonPath", path)])
        };
        let mut columns = Vec::new();
        if !self.spec.is_empty() {
            columns.push(column("Desired", "integer", "Number of desired replicas", ".spec.replicas"));
        }
        if !self.status.is_empty() {
            columns.push(column("Available", "integer", "Number of actual replicas", ".status.replicas"));
        }
        columns.push(column("Age", "date", super::columns::AGE, ".metadata.creationTimestamp"));
        Value::from([("additionalPrinterColumns", Value::Array(columns))])
    }
}

/// As Go narrows a number to 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "as upstream does")]
fn narrow(number: i64) -> i64 {
    i64::from(number as i32)
}

fn split(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

/// The value at a path, in upstream's words when something on the way is no object.
fn find<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let mut found = object;
    let mut walked = String::new();
    for name in split(path) {
        walked.push('.');
        walked.push_str(name);
        match found {
            Value::Null => return Ok(None),
            Value::Object(members) => match members.get(name) {
                Some(member) => found = member,
                None => return Ok(None),
            },
            other => return Err(accessor_error(&walked, other, "map[string]interface {}")),
        }
    }
    Ok(Some(found))
}

fn accessor_error(path: &str, value: &Value, expected: &str) -> String {
    let expected = expected.replace("interface {}", "interface{}");
    format!(
        "{path} accessor error: {} is of the type {}, expected {expected}",
        go_value::printed(value),
        go_type(value)
    )
}

fn integer(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match find(object, path)? {
        None => Ok(None),
        Some(Value::Int(number)) => Ok(Some(*number)),
        Some(other) => Err(accessor_error(&format!(".{}", path.trim_start_matches('.')), other, "int64")),
    }
}

fn text<'v>(object: &'v Value, path: &str) -> Result<Option<&'v str>, String> {
    match find(object, path)? {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(accessor_error(&format!(".{}", path.trim_start_matches('.')), other, "string")),
    }
}
