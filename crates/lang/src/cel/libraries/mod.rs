//! The libraries of functions that Kubernetes adds to the standard one: a file each.
