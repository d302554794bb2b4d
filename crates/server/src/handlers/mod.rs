//! Answers authorized requests. One verb per file; the same code serves every resource.

mod answer;
mod applying;
pub(crate) mod bind;
pub(crate) mod call;
pub(crate) mod create;
mod create_only;
pub(crate) mod delete;
mod delete_collection;
pub(crate) mod dispatch;
mod finalizers;
mod forms;
mod get;
mod list;
pub(crate) mod list_body;
pub(crate) mod options;
mod patch;
mod patching;
mod pod_log;
mod scale;
mod selection;
mod table;
pub(crate) mod update;
mod watch;
pub(crate) mod write;
