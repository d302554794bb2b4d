//! What a column of a table is.

use crate::Value;

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// OpenAPI type of the cells.
    pub kind: String,
    /// OpenAPI format of the cells; `name` marks the column with the object's name.
    pub format: String,
    /// What the column shows.
    pub description: String,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i64,
}

impl Column {
    /// As `metav1.TableColumnDefinition`, all five keys.
    pub fn to_value(&self) -> Value {
        let mut value = Value::from([
            ("name", self.name.as_str()),
            ("type", &self.kind),
            ("format", &self.format),
            ("description", &self.description),
        ]);
        value.set(&["priority"], self.priority);
        value
    }
}

/// Name, type, description, priority.
pub(super) type Text = (&'static str, &'static str, &'static str, i64);

pub(super) const NAME: Text =
    ("Name", "string", "Name of the object, unique among its kind in its namespace", 0);
pub(super) const AGE: Text = ("Age", "string", "Time since the object was created", 0);
