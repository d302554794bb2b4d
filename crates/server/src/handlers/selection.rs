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
        let field = |key: &str, stored: &Option<Arc<str>>| {
            let found = match stored {
                None => attributes.fields.iter().find(|(name, _)| *name == key).map(|(_, value)| value),
                Some(key) => attributes.custom.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            };
            found.map_or("", String::as_str)
        };
        let mut terms = self.fields.terms().iter().zip(&self.stored);
        self.labels.matches_with(label)
            && terms.all(|(term, stored)| (field(&term.field, stored) == term.value) == term.equal)
    }
}
