//! Which objects a list, watch or collection deletion is about.

use std::sync::Arc;

use coffer_lang::field_selector::FieldSelector;
use coffer_lang::label_selector::LabelSelector;
use coffer_store::registry::{Attributes, Predicate};
use coffer_types::Status;

use super::options::ListOptions;
use crate::resources::Resource;

/// Parsed selectors.
pub(super) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Parses the selectors and refuses fields that the resource does not select by.
    pub(super) fn parse(options: &ListOptions, resource: &Resource) -> Result<Self, Status> {
        let labels = LabelSelector::parse(&options.label_selector)
            .map_err(|error| Status::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(&options.field_selector)
            .and_then(|fields| resource.wire.check_fields(fields))
            .map_err(|error| Status::bad_request(error.to_string()))?;
        Ok(Self { labels, fields })
    }

    /// The one name that is wanted, if any.
    pub(super) fn name(&self) -> Option<String> {
        self.fields.exact("metadata.name").filter(|name| !name.is_empty()).map(str::to_owned)
    }

    pub(super) fn into_predicate(self) -> Arc<dyn Predicate> {
        Arc::new(self)
    }
}

impl Predicate for Selection {
    fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    fn matches(&self, attributes: &Attributes) -> bool {
        let label = |key: &str| {
            attributes.labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
        };
        let field = |key: &str| {
            attributes.fields.iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value.as_str())
        };
        self.labels.matches_with(label)
            && self.fields.terms().iter().all(|term| (field(&term.field) == term.value) == term.equal)
    }
}
