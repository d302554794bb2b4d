//! Strict loading of the apiserver.config.k8s.io kinds and of our own.
