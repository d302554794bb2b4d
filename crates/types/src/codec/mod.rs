//! Between bytes and [`crate::Value`]: JSON, YAML and protobuf, driven by the tables.
