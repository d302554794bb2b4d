//! The encryption manager: key files, and where a stored copy's key is named.
