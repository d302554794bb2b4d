//! The steps of a write, one table each. Texts are those of kube-apiserver.

mod definitions;
mod objects;
mod rules;
mod schemas;
mod values;
