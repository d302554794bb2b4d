//! What objects count against quotas: admission charges them, the quota controller counts them anew.

pub(crate) mod amounts;
pub(crate) mod usage;
