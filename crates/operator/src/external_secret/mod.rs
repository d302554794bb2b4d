//! ExternalSecret: from a store's values to a Secret.

pub(crate) mod assemble;
pub(crate) mod controller;
pub(crate) mod machine;
mod refresh;
pub(crate) mod rewrite;
pub(crate) mod spec;
pub(crate) mod status;
pub(crate) mod target;
mod template;
pub(crate) mod versions;
