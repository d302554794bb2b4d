//! The in-process controllers, each a pure table and a thin shell.
