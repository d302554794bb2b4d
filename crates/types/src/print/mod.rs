//! Tables as `kubectl get` shows them: columns and cells of each kind.
//!
//! No cell ever holds a value of a Secret or ConfigMap.

mod ages;
mod cells;
mod column;
mod columns;
mod duration;
mod kind_cells;
mod kind_columns;

pub use ages::{age, event_time};
pub use cells::table_row;
pub use column::Column;
pub use columns::columns;
pub use duration::human_duration;
