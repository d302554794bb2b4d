//! What the evaluators do beside what upstream's do.

mod cel;
mod cel_admission;
mod cel_functions;
mod cel_hostile;
mod cel_rules;
mod cel_vectors;
mod hostile_rules;
