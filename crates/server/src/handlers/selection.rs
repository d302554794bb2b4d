//! Which objects a list, watch or collection deletion is about.

use std::sync::Arc;

use coffer_lang::field_selector::FieldSelector;
use coffer_lang::label_selector::LabelSelector;
use coffer_store::registry::{Predicate, Stored};
use coffer_types::Status;

use super::options::ListOptions;
use crate::resources::Resource;
use crate::route::path_segment_error;

/// Parsed selectors.
pub(super) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    /// The names under which what is stored tells the fields, where they are not the fields' own.
    stored: Vec<Option<Arc<str>>>,
}

impl Selection {
    /// Parses the selectors and refuses fields that the resource does not select by.
    pub(super) fn parse(options: &ListOptions, resource: &Resource) -> Result<Self, Status> {
        let labels = LabelSelector::parse(&options.label_selector)
            .map_err(|error| Status::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(&options.field_selector)
            .and_then(|fields| resource.wire.check_fields(fields))
            .map_err(|error| Status::bad_request(error.to_string()))?;
        let stored = fields.terms().iter().map(|term| resource.wire.stored_field(&term.field)).collect();
        Ok(Self { labels, fields, stored })
    }

    /// The one name that is wanted, if any.
    pub(super) fn name(&self) -> Option<String> {
        let possible = |name: &&str| !name.is_empty() && path_segment_error(name).is_none();
        self.fields.exact("metadata.name").filter(possible).map(str::to_owned)
    }

    /// Whether it can find one object at most.
    pub(super) fn is_of_one_key(&self, namespace: &str, resource: &Resource) -> bool {
        self.name().is_some() && !(resource.info.namespaced && namespace.is_empty())
    }

    pub(super) fn into_predicate(self) -> Arc<dyn Predicate> {
        Arc::new(self)
    }
}

impl Predicate for Selection {
    fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    fn matches(&self, object: &Stored) -> bool {
        let attributes = &object.attributes;
        let label = |key: &str| {
            attributes.labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
        };
        let field = |key: &str, stored: &Option<Arc<str>>| {
            let found = match stored {
                None => object.field(key),
                Some(key) => {
                    attributes.custom.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
                }
            };
            found.unwrap_or_default()
        };
        let mut terms = self.fields.terms().iter().zip(&self.stored);
        self.labels.matches_with(label)
            && terms.all(|(term, stored)| (field(&term.field, stored) == term.value) == term.equal)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use coffer_store::registry::{Attributes, Findings};

    use super::*;

    fn selection(labels: &str, fields: &str) -> Selection {
        let fields = FieldSelector::parse(fields).expect("fields");
        Selection {
            labels: LabelSelector::parse(labels).expect("labels"),
            stored: vec![None; fields.terms().len()],
            fields,
        }
    }

    // TestSelectionPredicate, and TestSelectionPredicateEmpty without what a feature gate adds.
    #[test]
    fn selection_predicate() {
        for (case, labels, fields, its_labels, its_fields, matches, name) in [
            ("A", "name=foo", "uid=12345", &[("name", "foo")][..], &[("uid", "12345")][..], true, None),
            ("B", "name=foo", "uid=12345", &[("name", "foo")], &[], false, None),
            ("C", "name=foo", "uid=12345", &[], &[("uid", "12345")], false, None),
            ("D", "", "metadata.name=12345", &[], &[], true, Some("12345")),
            ("another name", "", "metadata.name=1234", &[], &[], false, Some("1234")),
            ("its namespace", "", "metadata.namespace=ns", &[], &[], true, None),
            ("label alone", "name=foo", "", &[("name", "foo")], &[], true, None),
            ("none", "", "", &[("name", "foo")], &[("uid", "12345")], true, None),
        ] {
            let selection = selection(labels, fields);
            let attributes = Attributes {
                labels: its_labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
                fields: its_fields.iter().map(|(k, v)| (*k, (*v).to_owned())).collect(),
                custom: Box::default(),
            };
            let stored = Stored {
                namespace: "ns".to_owned(),
                name: "12345".to_owned(),
                revision: 1,
                bytes: Bytes::new(),
                attributes,
                findings: Findings::default(),
            };
            assert_eq!(selection.matches(&stored), matches, "{case}");
            assert_eq!(selection.is_everything(), labels.is_empty() && fields.is_empty(), "{case}");
            assert_eq!(selection.name().as_deref(), name, "{case}");
        }
    }
}
