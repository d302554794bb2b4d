//! What the evaluators do beside what upstream's do.

mod cel_functions;
