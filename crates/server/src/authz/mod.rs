//! Authorization: may they.
