//! Reads a tree as Go's strict decoder reads JSON into a struct.
//!
//! A value of the wrong type is remembered (the first one is reported) and reading
//! goes on with the zero value; fields that no struct has are all reported. `null`
//! is the zero value of everything.

use std::collections::BTreeMap;

use coffer_types::Value;

/// What was wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Strict {
    wrong_type: Option<String>,
    unknown: Vec<String>,
}

/// Where the reader is.
#[derive(Debug, Clone)]
pub(crate) struct At {
    /// Go's name of the struct that the field belongs to.
    structure: &'static str,
    /// The path with indices, as strict errors print it.
    path: String,
    /// The path without them, as type errors print it.
    fields: String,
}

impl At {
    /// Outside of everything.
    pub(crate) fn root() -> Self {
        Self { structure: "", path: String::new(), fields: String::new() }
    }

    /// The field `name` of what is here, which is a `structure`.
    pub(crate) fn field(&self, structure: &'static str, name: &str) -> Self {
        Self { structure, path: joined(&self.path, name), fields: joined(&self.fields, name) }
    }

    /// An item of the list that is here.
    pub(crate) fn item(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), ..self.clone() }
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

impl Strict {
    /// Everything that was wrong as one text, `duplicates` being what the parser found.
    pub(crate) fn finish(self, duplicates: Vec<String>) -> Result<(), String> {
        if let Some(text) = self.wrong_type {
            return Err(text);
        }
        let strict: Vec<_> = duplicates.into_iter().chain(self.unknown).collect();
        if strict.is_empty() { Ok(()) } else { Err(format!("strict decoding error: {}", strict.join(", "))) }
    }

    /// A field that no struct has.
    pub(crate) fn unknown(&mut self, at: &At, name: &str) {
        self.unknown.push(format!("unknown field \"{}\"", joined(&at.path, name)));
    }

    /// Any other error of reading; the first one counts.
    pub(crate) fn fail(&mut self, text: String) {
        self.wrong_type.get_or_insert(text);
    }

    /// The members of an object.
    pub(crate) fn object<'v>(
        &mut self,
        value: &'v Value,
        at: &At,
        go_type: &str,
    ) -> impl Iterator<Item = (&'v str, &'v Value)> + use<'v> {
        let members: Option<&BTreeMap<_, _>> = match value {
            Value::Object(members) => Some(members),
            Value::Null => None,
            other => self.mismatch(other, at, go_type),
        };
        members.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// The items of a list.
    pub(crate) fn list<'v>(&mut self, value: &'v Value, at: &At, go_type: &str) -> &'v [Value] {
        match value {
            Value::Array(items) => items,
            Value::Null => &[],
            other => self.mismatch(other, at, go_type).unwrap_or_default(),
        }
    }

    /// Text.
    pub(crate) fn text(&mut self, value: &Value, at: &At) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => self.mismatch(other, at, "string").unwrap_or_default(),
        }
    }

    /// A whole number of 32 bits.
    pub(crate) fn int32(&mut self, value: &Value, at: &At) -> Option<i32> {
        match value {
            Value::Null => None,
            Value::Int(number) => match i32::try_from(*number) {
                Ok(number) => Some(number),
                Err(_) => self.mismatched(&format!("number {number}"), at, "int32"),
            },
            Value::Float(number) => self.mismatched(&format!("number {number}"), at, "int32"),
            other => self.mismatch(other, at, "int32"),
        }
    }

    fn mismatch<T>(&mut self, value: &Value, at: &At, go_type: &str) -> Option<T> {
        self.mismatched(value.json_kind(), at, go_type)
    }

    fn mismatched<T>(&mut self, what: &str, at: &At, go_type: &str) -> Option<T> {
        let At { structure, fields, .. } = at;
        self.fail(format!(
            "json: cannot unmarshal {what} into Go struct field {structure}.{fields} of type {go_type}"
        ));
        None
    }
}
