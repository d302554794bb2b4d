//! One module and one feature per external store.
