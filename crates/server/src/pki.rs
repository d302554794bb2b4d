//! The generated CA, certificates and kubeconfigs.
