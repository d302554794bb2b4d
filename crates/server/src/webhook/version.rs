//! The version in which a webhook is spoken to.

/// The versions of reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReviewVersion {
    /// `v1`.
    V1,
    /// `v1beta1`: neither the type nor the identity of an answer is looked at.
    V1Beta1,
}

impl ReviewVersion {
    /// The first of the versions that a webhook understands which this server speaks.
    pub(crate) fn choose<'a>(versions: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        versions.into_iter().find_map(|version| match version {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of upstream's TestCreateConversionReviewObjects.
    #[test]
    fn the_first_version_that_is_known_is_spoken() {
        for (versions, expected) in [
            (&[][..], None),
            (&["v1alpha1", "v2"], None),
            (&["v1"], Some(ReviewVersion::V1)),
            (&["v1beta1"], Some(ReviewVersion::V1Beta1)),
            (&["v1", "v1beta1"], Some(ReviewVersion::V1)),
            (&["v1beta1", "v1"], Some(ReviewVersion::V1Beta1)),
            (&["v1alpha1", "v1beta1", "v1"], Some(ReviewVersion::V1Beta1)),
        ] {
            assert_eq!(ReviewVersion::choose(versions.iter().copied()), expected, "{versions:?}");
        }
    }
}
