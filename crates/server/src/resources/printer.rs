//! The columns of a resource's table and the cells of a row.

use coffer_lang::jsonpath::JsonPath;
use coffer_types::meta::Meta as _;
use coffer_types::print::{self, Column};
use coffer_types::time::Timestamp;
use coffer_types::{Value, codec};

/// How one resource is printed.
#[derive(Debug, Clone)]
pub(crate) enum Printer {
    /// As upstream prints the kind of that group.
    BuiltIn(&'static str, &'static str),
    /// By the columns of a definition.
    Custom(Vec<(Column, Option<JsonPath>)>),
}

impl Printer {
    /// The printer of one version of a custom resource: its name, then its columns, or its age.
    pub(crate) fn of_version(version: &Value) -> Self {
        let named = |name: &str, kind: &str, format: &str, description: &str| Column {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: format.to_owned(),
            description: description.to_owned(),
            priority: 0,
        };
        let built_in = print::columns("", "ConfigMap");
        let described = |name: &str| {
            let column = built_in.iter().find(|column| column.name == name);
            column.map(|column| column.description.clone()).unwrap_or_default()
        };
        let mut columns = vec![(named("Name", "string", "name", &described("Name")), None)];
        let own = version.get("additionalPrinterColumns").and_then(Value::as_array).unwrap_or_default();
        for column in own {
            let described = Column {
                name: column.str_at(&["name"]).to_owned(),
                kind: column.str_at(&["type"]).to_owned(),
                format: column.str_at(&["format"]).to_owned(),
                description: match column.str_at(&["description"]) {
                    "" => {
                        "Custom resource definition column (in JSONPath format): ".to_owned()
                            + column.str_at(&["jsonPath"])
                    }
                    text => text.to_owned(),
                },
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            };
            columns.push((described, JsonPath::parse(column.str_at(&["jsonPath"])).ok()));
        }
        if own.is_empty() {
            let age = named("Age", "date", "", &described("Age"));
            columns.push((age, JsonPath::parse(".metadata.creationTimestamp").ok()));
        }
        Self::Custom(columns)
    }

    pub(crate) fn columns(&self) -> Value {
        let columns: Vec<Value> = match self {
            Self::BuiltIn(group, kind) => print::columns(group, kind).iter().map(Column::to_value).collect(),
            Self::Custom(columns) => columns.iter().map(|(column, _)| column.to_value()).collect(),
        };
        columns.into()
    }

    pub(crate) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Self::BuiltIn(group, kind) => print::table_row(group, kind, object, now),
            Self::Custom(columns) => columns
                .iter()
                .enumerate()
                .map(|(index, (column, path))| {
                    if index == 0 {
                        Value::from(object.name())
                    } else {
                        cell(column, path.as_ref(), object, now)
                    }
                })
                .collect(),
        }
    }
}

/// The first thing that a column's path finds; nothing where there is none of the right type.
fn cell(column: &Column, path: Option<&JsonPath>, object: &Value, now: Timestamp) -> Value {
    let found = path.and_then(|path| path.find(object).ok()).and_then(|found| found.into_iter().next());
    let Some(found) = found else { return Value::Null };
    match (column.kind.as_str(), found) {
        (_, Value::Null) => Value::Null,
        ("integer", Value::Int(number)) => Value::Int(*number),
        ("number", Value::Int(_) | Value::Float(_)) | ("boolean", Value::Bool(_)) => found.clone(),
        ("date", Value::String(time)) => match time.parse::<Timestamp>() {
            Ok(time) => Value::from(print::human_duration(now.as_second() - time.as_second())),
            Err(_) => Value::from("<invalid>"),
        },
        ("string", Value::String(text)) => Value::from(text.as_str()),
        ("string", other) => {
            let mut text = Vec::new();
            codec::json::encode_untyped(other, &mut text);
            Value::from(String::from_utf8_lossy(&text).into_owned())
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_columns_show_the_first_find_of_the_right_type() {
        let column = |name: &str, kind: &str, path: &str| {
            Value::from([("name", name), ("type", kind), ("jsonPath", path)])
        };
        let mut version = Value::object();
        version.set(
            &["additionalPrinterColumns"],
            vec![
                column("Size", "integer", ".spec.size"),
                column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
                column("Since", "date", ".status.since"),
                column("None", "string", ".spec.none"),
            ],
        );
        let mut object = Value::object();
        object.set(&["metadata", "name"], "w");
        object.set(&["spec", "size"], 3);
        object.set(&["status", "since"], "2026-01-01T00:00:00Z");
        object.set(&["status", "conditions"], vec![Value::from([("type", "Ready"), ("status", "True")])]);
        let now: Timestamp = "2026-01-01T00:05:00Z".parse().expect("a time");
        let cells = Printer::of_version(&version).cells(&object, now);
        let expected =
            vec![Value::from("w"), Value::Int(3), Value::from("True"), Value::from("5m"), Value::Null];
        assert_eq!(cells, expected);
    }
}
