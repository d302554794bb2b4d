//! Tables as `kubectl get` shows them: columns and cells of each kind.
//!
//! No cell ever holds a value of a Secret or ConfigMap.

mod cells;
mod duration;
mod kind_cells;
mod kind_columns;

pub use cells::{age, event_time, table_row};
pub use columns::{Column, columns};
pub use duration::human_duration;

mod columns;
