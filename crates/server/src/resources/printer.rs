//! The columns of a resource's table and the cells of a row.

use std::sync::Arc;

use coffer_types::Value;
use coffer_types::codec::autoscaling;
use coffer_types::meta::Meta as _;
use coffer_types::print::{self, Column};
use coffer_types::time::Timestamp;

use crate::crd::columns::Columns;

/// How one resource is printed.
#[derive(Debug, Clone)]
pub(crate) enum Printer {
    /// As upstream prints the kind of that group.
    BuiltIn(&'static str, &'static str),
    /// By the columns of a definition.
    Custom(Arc<Columns>),
}

impl Printer {
    pub(crate) fn columns(&self) -> Value {
        match self {
            Self::BuiltIn(group, kind) => {
                print::columns(group, kind).iter().map(Column::to_value).collect::<Vec<_>>().into()
            }
            Self::Custom(columns) => columns.definitions.clone(),
        }
    }

    pub(crate) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Self::BuiltIn("autoscaling", kind) if object.api_version() == "autoscaling/v1" => {
                print::table_row("autoscaling", kind, &autoscaling::to_v2(object), now)
            }
            Self::BuiltIn(group, kind) => print::table_row(group, kind, object, now),
            Self::Custom(columns) => columns.cells(object, now.as_second()),
        }
    }
}
