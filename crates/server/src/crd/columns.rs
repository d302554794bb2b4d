//! The columns that `kubectl get` prints of custom resources.

use std::time::Duration;

use coffer_lang::jsonpath::JsonPath;
use coffer_types::Value;
use coffer_types::codec::times;
use coffer_types::validation::field::go_json;

/// The columns of one version of a definition.
#[derive(Debug)]
pub struct Columns {
    /// `columnDefinitions` of a Table.
    pub definitions: Value,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    kind: String,
    /// `None` when the expression cannot be read: the cells stay empty.
    path: Option<JsonPath>,
}

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
                    resources may allow a client to request the generation of an appropriate name automatically. Name \
                    is primarily intended for creation idempotence and configuration definition. Cannot be updated. \
                    More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
pub(super) const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is \
                   not guaranteed to be set in happens-before order across separate operations. Clients may not set \
                   this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. \
                   Read-only. Null for lists. More info: \
                   https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

impl Columns {
    /// Those of one entry of `spec.versions`: the name, then what it asks for, or else the age.
    pub fn of_version(version: &Value) -> Self {
        let asked = version.get("additionalPrinterColumns").and_then(Value::as_array).unwrap_or_default();
        let age = [Value::from([
            ("name", "Age"),
            ("type", "date"),
            ("description", AGE),
            ("jsonPath", ".metadata.creationTimestamp"),
        ])];
        let asked = if asked.is_empty() { &age } else { asked };
        let mut definitions = vec![definition("Name", "string", "name", NAME, 0)];
        let mut columns = Vec::with_capacity(asked.len());
        for column in asked {
            let text = |name: &str| column.str_at(&[name]);
            let path = text("jsonPath");
            let described = match text("description") {
                "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                described => described.to_owned(),
            };
            let priority = column.get("priority").and_then(Value::as_i64).unwrap_or(0);
            definitions.push(definition(text("name"), text("type"), text("format"), &described, priority));
            columns.push(Column {
                kind: text("type").to_owned(),
                path: JsonPath::parse(&format!("{{{path}}}")).ok(),
            });
        }
        Self { definitions: Value::Array(definitions), columns }
    }

    /// The cells of one object. `now` is the wall time in seconds since 1970.
    pub fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        let name = Value::from(object.str_at(&["metadata", "name"]));
        std::iter::once(name).chain(self.columns.iter().map(|column| column.cell(object, now))).collect()
    }
}

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    Value::from([
        ("name", Value::from(name)),
        ("type", Value::from(kind)),
        ("format", Value::from(format)),
        ("description", Value::from(description)),
        ("priority", Value::from(priority)),
    ])
}

impl Column {
    fn cell(&self, object: &Value, now: i64) -> Value {
        let found = self.path.as_ref().and_then(|path| path.find(object).ok()?.first().copied());
        let Some(value) = found else { return Value::Null };
        match (self.kind.as_str(), value) {
            ("string", Value::String(text)) => Value::from(text.as_str()),
            ("string", Value::Null) => Value::from(""),
            ("string", other) => Value::from(go_json(other)),
            ("integer", Value::Int(number)) => Value::Int(*number),
            ("integer", Value::Float(number)) => Value::Int(*number as i64),
            ("number", Value::Int(number)) => Value::Int(*number),
            ("number", Value::Float(number)) => Value::Float(*number),
            ("boolean", Value::Bool(flag)) => Value::Bool(*flag),
            ("date", Value::String(text)) => Value::from(age(text, now)),
            _ => Value::Null,
        }
    }
}

fn age(text: &str, now: i64) -> String {
    match times::parse_seconds(text) {
        Ok(time) if time.is_zero() => "<unknown>".to_owned(),
        Ok(time) => human(now - time.seconds),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// A span of time as kubectl prints it: two units at most, the coarser the longer.
fn human(seconds: i64) -> String {
    // Clocks differ a little: the future is now.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |large: u64, unit: char, small: u64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_as_kubectl_prints_them() {
        let check = |seconds, expected: &str| assert_eq!(human(seconds), expected, "{seconds}");
        check(-2, "<invalid>");
        check(-1, "0s");
        check(119, "119s");
        check(120, "2m");
        check(125, "2m5s");
        check(600, "10m");
        check(10_799, "179m");
        check(10_860, "3h1m");
        check(28_800, "8h");
        check(172_799, "47h");
        check(176_400, "2d1h");
        check(691_200, "8d");
        check(63_072_000, "2y");
        check(63_072_000 + 86_400, "2y1d");
        check(252_288_000, "8y");
    }

    #[test]
    fn cells_are_typed() {
        let version = Value::from([(
            "additionalPrinterColumns",
            Value::Array(
                [
                    ("S", "string", ".spec.s"),
                    ("M", "string", ".spec.m"),
                    ("I", "integer", ".spec.i"),
                    ("B", "boolean", ".spec.s"),
                    ("D", "date", ".spec.d"),
                    ("X", "date", ".spec.s"),
                    ("N", "string", ".spec.none"),
                ]
                .map(|(name, kind, path)| Value::from([("name", name), ("type", kind), ("jsonPath", path)]))
                .to_vec(),
            ),
        )]);
        let mut object = Value::object();
        object.set(&["metadata", "name"], "a");
        object.set(&["spec", "s"], "text");
        object.set(&["spec", "m"], Value::from([("k", 1)]));
        object.set(&["spec", "i"], 7);
        object.set(&["spec", "d"], "1970-01-01T00:00:10Z");
        let cells = Columns::of_version(&version).cells(&object, 70);
        let expected = [
            Value::from("a"),
            Value::from("text"),
            Value::from("{\"k\":1}"),
            Value::Int(7),
            Value::Null,
            Value::from("60s"),
            Value::from("<invalid>"),
            Value::Null,
        ];
        assert!(cells == expected, "{cells:?}");
    }

    #[test]
    fn no_columns_means_the_age() {
        let columns = Columns::of_version(&Value::object());
        let names: Vec<_> = columns
            .definitions
            .as_array()
            .expect("a list")
            .iter()
            .map(|column| column.str_at(&["name"]))
            .collect();
        assert_eq!(names, ["Name", "Age"]);
    }
}
