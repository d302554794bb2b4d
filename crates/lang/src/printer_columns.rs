//! The table columns of a custom resource, from its definition.

use coffer_types::Value;
use coffer_types::meta::Meta;
use coffer_types::print::{Column, event_time};
use coffer_types::time::Timestamp;
use coffer_types::validation::field::go_json;

use crate::jsonpath::JsonPath;

/// The columns of one version, ready to make rows.
#[derive(Debug, Clone)]
pub struct PrinterColumns {
    columns: Vec<(Column, JsonPath)>,
}

impl PrinterColumns {
    /// From the `additionalPrinterColumns` of a version; none of them means `Age`.
    /// A column whose path cannot be read is left out.
    pub fn new(definitions: &[Value]) -> Self {
        let age = Value::from([
            ("name", "Age"),
            ("type", "date"),
            ("description", "Time since the object was created"),
            ("jsonPath", ".metadata.creationTimestamp"),
        ]);
        let definitions = if definitions.is_empty() { std::slice::from_ref(&age) } else { definitions };
        let columns = definitions.iter().filter_map(|definition| {
            let path = definition.str_at(&["jsonPath"]);
            let description = match definition.str_at(&["description"]) {
                "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                text => text.to_owned(),
            };
            let column = Column {
                name: definition.str_at(&["name"]).to_owned(),
                kind: definition.str_at(&["type"]).to_owned(),
                format: definition.str_at(&["format"]).to_owned(),
                description,
                priority: definition.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            };
            Some((column, JsonPath::parse(path).ok()?))
        });
        Self { columns: columns.collect() }
    }

    /// The headings, `Name` first.
    pub fn columns(&self) -> Vec<Column> {
        let name = Column {
            name: "Name".to_owned(),
            kind: "string".to_owned(),
            format: "name".to_owned(),
            description: "Name of the object, unique among its kind in its namespace".to_owned(),
            priority: 0,
        };
        std::iter::once(name).chain(self.columns.iter().map(|(column, _)| column.clone())).collect()
    }

    /// The cells of one object; `null` where the path finds nothing or something of another type.
    pub fn row(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let cells = self.columns.iter().map(|(column, path)| {
            let found = path.find(object).unwrap_or_default();
            found.first().map_or(Value::Null, |value| cell(&column.kind, value, now))
        });
        std::iter::once(Value::from(object.name())).chain(cells).collect()
    }
}

fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", Value::String(text)) => text.as_str().into(),
        // Upstream prints what is no text as JSON, too.
        ("string", Value::Null) => Value::Null,
        ("string", other) => go_json(other).into(),
        ("integer", Value::Int(number)) => Value::Int(*number),
        #[allow(clippy::cast_possible_truncation, reason = "as upstream converts it")]
        ("integer", Value::Float(number)) => Value::Int(*number as i64),
        #[allow(clippy::cast_precision_loss, reason = "as upstream converts it")]
        ("number", Value::Int(number)) => Value::Float(*number as f64),
        ("number", Value::Float(number)) => Value::Float(*number),
        ("boolean", Value::Bool(flag)) => Value::Bool(*flag),
        ("date", Value::String(text)) => event_time(text, now).into(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: &str, path: &str) -> Value {
        Value::from([("name", name), ("type", kind), ("jsonPath", path)])
    }

    #[test]
    fn rows_follow_the_definition() {
        let mut object = Value::from([("spec", Value::from([("n", Value::from(3)), ("s", "t".into())]))]);
        object.set(&["metadata", "name"], "x");
        object.set(&["metadata", "creationTimestamp"], "2023-11-14T22:08:20Z");
        let now = "2023-11-14T22:13:20Z".parse().expect("a time");
        let check = |definitions: &[Value], headings: &[&str], expected: &str| {
            let columns = PrinterColumns::new(definitions);
            let names: Vec<_> = columns.columns().into_iter().map(|column| column.name).collect();
            assert_eq!(names, headings);
            assert_eq!(go_json(&Value::Array(columns.row(&object, now))), expected);
        };
        check(&[], &["Name", "Age"], r#"["x","5m"]"#);
        check(
            &[
                column("N", "integer", ".spec.n"),
                column("S", "string", ".spec.s"),
                column("NS", "string", ".spec.n"),
                column("D", "date", ".spec.s"),
                column("B", "boolean", ".spec.n"),
                column("M", "string", ".spec.missing"),
            ],
            &["Name", "N", "S", "NS", "D", "B", "M"],
            r#"["x",3,"t","3","\u003cinvalid\u003e",null,null]"#,
        );
    }
}
