//! External-Secrets-compatible controllers.
