//! Authentication: who asks.
