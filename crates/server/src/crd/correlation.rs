//! Which old value a value stands for, and whether it is still the same: what a rule says against
//! a value that has not changed does not stand in the way of other changes.

use std::cell::OnceCell;
use std::collections::HashMap;

use coffer_types::Value;

use super::schema::{Additional, Schema};

/// A value and what it was.
pub(super) struct Pair<'v> {
    new: &'v Value,
    old: &'v Value,
    schema: &'v Schema,
    old_items: OnceCell<KeyedItems<'v>>,
    same: OnceCell<bool>,
}

impl<'v> Pair<'v> {
    pub(super) fn new(new: &'v Value, old: &'v Value, schema: &'v Schema) -> Self {
        Self { new, old, schema, old_items: OnceCell::new(), same: OnceCell::new() }
    }

    fn member(&self, name: &str) -> Option<Pair<'v>> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        let schema = match (self.schema.property(name), &self.schema.additional) {
            (Some(property), _) => property,
            (None, Additional::Schema(additional)) => additional,
            (None, _) => return None,
        };
        Some(Pair::new(new, old, schema))
    }

    fn item(&self, index: usize) -> Option<Pair<'v>> {
        let (new, old) = (self.new.as_array()?.get(index)?, self.old.as_array()?);
        let items = self.schema.items.as_deref()?;
        let old = self.old_items.get_or_init(|| KeyedItems::new(self.schema, old)).get(new)?;
        Some(Pair::new(new, old, items))
    }

    /// Whether nothing has changed. As upstream: an object with a field that its schema does not
    /// name always has; the items of a map may stand in another order.
    fn is_same(&self) -> bool {
        *self.same.get_or_init(|| match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) if new.len() != old.len() => false,
            (Value::Array(new), Value::Array(old)) if self.schema.list_type.as_deref() != Some("map") => {
                new == old
            }
            (Value::Array(new), Value::Array(_)) => {
                (0..new.len()).all(|index| self.item(index).is_some_and(|item| item.is_same()))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|name| self.member(name).is_some_and(|member| member.is_same()))
            }
            (new, old) => new == old,
        })
    }
}

/// The pair at a place, and the nearest one above it.
#[derive(Clone, Copy, Default)]
pub(super) struct Correlation<'a, 'v> {
    here: Option<&'a Pair<'v>>,
    above: Option<&'a Pair<'v>>,
}

impl<'a, 'v> Correlation<'a, 'v> {
    /// That of a whole object.
    pub(super) fn root(pair: &'a Pair<'v>) -> Self {
        Self { here: Some(pair), above: None }
    }

    /// Whether the value here, or the nearest one above that is known again, has not changed.
    pub(super) fn is_same(&self) -> bool {
        self.here.or(self.above).is_some_and(Pair::is_same)
    }

    /// The pair of the member `name`, for [`Self::below`].
    pub(super) fn member(&self, name: &str) -> Option<Pair<'v>> {
        self.here?.member(name)
    }

    /// The pair of an item, for [`Self::below`].
    pub(super) fn item(&self, index: usize) -> Option<Pair<'v>> {
        self.here?.item(index)
    }

    /// The correlation one level below, where `pair` is the pair.
    pub(super) fn below<'b>(&self, pair: Option<&'b Pair<'v>>) -> Correlation<'b, 'v>
    where
        'a: 'b,
    {
        match self.here {
            None => *self,
            Some(here) => Correlation { here: pair, above: Some(here) },
        }
    }

    /// Whether this is a whole object.
    pub(super) fn is_root(&self) -> bool {
        self.here.is_some() && self.above.is_none()
    }
}

/// The items of a list that is a map, by their keys.
pub(super) struct KeyedItems<'v> {
    keys: &'v [String],
    items: HashMap<Vec<Key<'v>>, &'v Value>,
}

#[derive(PartialEq, Eq, Hash)]
enum Key<'v> {
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(&'v str),
}

impl<'v> KeyedItems<'v> {
    /// The items; none of a list that is no map.
    pub(super) fn new(schema: &'v Schema, items: &'v [Value]) -> Self {
        let keys: &[String] = match schema.list_type.as_deref() {
            Some("map") => &schema.list_map_keys,
            _ => &[],
        };
        let mut keyed = Self { keys, items: HashMap::new() };
        for item in items {
            if let Some(key) = keyed.key(item) {
                // Of two with the same key the first is found.
                keyed.items.entry(key).or_insert(item);
            }
        }
        keyed
    }

    fn key<'i>(&self, item: &'i Value) -> Option<Vec<Key<'i>>> {
        if self.keys.is_empty() {
            return None;
        }
        let part = |name: &String| match item.as_object()?.get(name)? {
            Value::Bool(flag) => Some(Key::Bool(*flag)),
            Value::Int(number) => Some(Key::Int(*number)),
            Value::Float(number) => Some(Key::Float(number.to_bits())),
            Value::String(text) => Some(Key::Text(text)),
            _ => None,
        };
        self.keys.iter().map(part).collect()
    }

    /// The item with the keys of `item`.
    pub(super) fn get(&self, item: &'v Value) -> Option<&'v Value> {
        self.items.get(&self.key(item)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::testing::{schema, tree};

    #[test]
    fn what_is_the_same_is_said_as_upstream() {
        let schema = schema(
            r#"{"type": "object", "properties": {
                "list": {"type": "array", "items": {"type": "integer"}},
                "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "values": {"type": "object", "additionalProperties": {"type": "integer"}}}}"#,
        );
        let cases = [
            (r#"{"list": [1, 2]}"#, r#"{"list": [1, 2]}"#, true),
            (r#"{"list": [1, 2]}"#, r#"{"list": [2, 1]}"#, false),
            (
                r#"{"map": [{"k": "a", "v": 1}, {"k": "b"}]}"#,
                r#"{"map": [{"k": "b"}, {"k": "a", "v": 1}]}"#,
                true,
            ),
            (r#"{"map": [{"k": "a", "v": 1}]}"#, r#"{"map": [{"k": "a", "v": 2}]}"#, false),
            (r#"{"map": [{"k": "a"}]}"#, r#"{"map": [{"k": "b"}]}"#, false),
            (r#"{"values": {"a": 1}}"#, r#"{"values": {"a": 1}}"#, true),
            (r#"{"values": {"a": 1}}"#, r#"{"values": {"a": 1, "b": 2}}"#, false),
            (r#"{"open": {"a": 1}}"#, r#"{"open": {"a": 1}}"#, false),
            (r#"{"open": {}}"#, r#"{"open": {}}"#, true),
            (r#"{"list": null}"#, r#"{"list": null}"#, true),
            (r#"{"list": null}"#, r#"{"list": []}"#, false),
        ];
        for (new, old, expected) in cases {
            let (new_tree, old_tree) = (tree(new), tree(old));
            assert_eq!(Pair::new(&new_tree, &old_tree, &schema).is_same(), expected, "{old} to {new}");
        }
    }
}
