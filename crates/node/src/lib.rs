//! The kubelet's Secret side: managers, volumes, environment, pull credentials.
