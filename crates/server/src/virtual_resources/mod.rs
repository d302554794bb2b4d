//! Resources that store nothing: reviews of tokens, subjects and access.

mod access_review;
mod token_review;

#[cfg(test)]
mod tests;

pub use self::access_review::{
    LocalSubjectAccessReviews, SelfSubjectAccessReviews, SelfSubjectRulesReviews, SubjectAccessReviews,
};
pub use self::token_review::{SelfSubjectReviews, TokenReviews};
