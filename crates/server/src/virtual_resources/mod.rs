//! Resources that store nothing: reviews of tokens, subjects and access.
