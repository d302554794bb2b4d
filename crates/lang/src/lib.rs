//! Pure evaluators with step and size limits: selectors and JSONPath.
