//! The object that comes of applying another to it. Nothing is removed by that.

use std::collections::BTreeMap;

use crate::fields::element::PathElement;
use crate::fields::shape::{Handled, Items, ListShape, MapShape, Node, Schema};
use crate::fields::typed::TypeErrors;
use crate::{Map, Value};

/// Merges `applied` into `live`; both are valid trees in JSON form.
pub(crate) fn merge(schema: Schema<'_>, live: Value, applied: &Value) -> Result<Value, TypeErrors> {
    let mut merger = Merger { path: Vec::new() };
    merger.merge(Node::root(schema), live, applied)
}

/// Whether merging `applied` into `live` leaves it as it is. Lists with items of their own count as changed.
pub(crate) fn holds(schema: Schema<'_>, live: &Value, applied: &Value) -> bool {
    holds_at(Node::root(schema), live, applied)
}

fn holds_at(node: Node<'_>, live: &Value, applied: &Value) -> bool {
    match (node.atom().deduced(Some(applied)).handled(), live, applied) {
        (Handled::Map(map), Value::Object(live), Value::Object(changes))
            if !map.atomic && !live.is_empty() =>
        {
            changes.iter().all(|(name, change)| {
                live.get(name).is_some_and(|value| holds_at(map.member(name), value, change))
            })
        }
        (Handled::Scalar(_), ..) => live == applied,
        (Handled::Map(map), ..) if map.atomic => live == applied,
        (Handled::List(list), ..) if matches!(list.items, Items::Atomic) => live == applied,
        _ => false,
    }
}

struct Merger {
    path: Vec<PathElement>,
}

impl Merger {
    fn merge(&mut self, node: Node<'_>, live: Value, applied: &Value) -> Result<Value, TypeErrors> {
        // Values of two kinds do not merge: the applied one stands.
        match node.atom().deduced(Some(applied)).handled() {
            Handled::Scalar(_) => Ok(applied.clone()),
            Handled::Map(map) => self.members(&map, live, applied),
            Handled::List(list) => self.items(&list, live, applied),
        }
    }

    fn members(&mut self, map: &MapShape<'_>, live: Value, applied: &Value) -> Result<Value, TypeErrors> {
        let live = match live {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let changes = applied.as_object().filter(|members| !members.is_empty());
        if map.atomic || (live.is_empty() && changes.is_none()) {
            // A leaf, which keeps empty and null apart.
            return Ok(applied.clone());
        }
        let mut merged = live;
        for (name, change) in changes.into_iter().flatten() {
            let value = match merged.remove(name) {
                Some(value) => {
                    self.path.push(PathElement::field(name));
                    let value = self.merge(map.member(name), value, change)?;
                    self.path.pop();
                    value
                }
                None => change.clone(),
            };
            merged.insert(name.clone(), value);
        }
        Ok(Value::Object(merged))
    }

    fn items(&mut self, list: &ListShape<'_>, live: Value, applied: &Value) -> Result<Value, TypeErrors> {
        let live = match live {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        let changes = applied.as_array().unwrap_or_default();
        if matches!(list.items, Items::Atomic) || (live.is_empty() && changes.is_empty()) {
            return Ok(applied.clone());
        }
        let right = self.identify(list, changes.iter())?;
        let left = self.identify(list, live.iter())?;
        let by_key: BTreeMap<&PathElement, &Value> = right.iter().zip(changes).collect();
        if by_key.len() < right.len() {
            return Err(TypeErrors::one(&self.path, "duplicate entries"));
        }
        Interleaving { merger: self, list, left: &left, right: &right, by_key }.run(live)
    }

    fn identify<'v>(
        &self,
        list: &ListShape<'_>,
        items: impl Iterator<Item = &'v Value>,
    ) -> Result<Vec<PathElement>, TypeErrors> {
        items
            .enumerate()
            .map(|(index, item)| {
                let element = list.identity(item);
                element.map_err(|text| TypeErrors::one(&self.path, format!("element {index}: {text}")))
            })
            .collect()
    }
}

/// Puts the items of two lists in order: as in the applied one, and those that only the live one
/// has where they stood between their neighbours.
struct Interleaving<'m, 'a> {
    merger: &'m mut Merger,
    list: &'m ListShape<'a>,
    left: &'m [PathElement],
    right: &'m [PathElement],
    by_key: BTreeMap<&'m PathElement, &'m Value>,
}

impl Interleaving<'_, '_> {
    fn run(mut self, live: Vec<Value>) -> Result<Value, TypeErrors> {
        // An item that is there more than once is not merged with the applied one.
        let mut count: BTreeMap<&PathElement, usize> = BTreeMap::new();
        for element in self.left {
            *count.entry(element).or_default() += 1;
        }
        let mut items: Vec<Option<Value>> = live.into_iter().map(Some).collect();
        let position: BTreeMap<&PathElement, usize> =
            self.left.iter().enumerate().map(|(index, element)| (element, index)).collect();
        let mut shared = self.right.iter().filter(|element| position.contains_key(element));
        let mut next_shared = shared.next();
        let mut done: std::collections::BTreeSet<&PathElement> = std::collections::BTreeSet::new();
        let mut out = Vec::with_capacity(self.left.len().max(self.right.len()));
        let (mut l, mut r) = (0, 0);
        let partner = |items: &mut Vec<Option<Value>>, element: &PathElement| match count.get(element) {
            Some(1) => position.get(element).and_then(|index| items[*index].take()),
            _ => None,
        };
        while l < self.left.len() || r < self.right.len() {
            if let (Some(left), Some(right)) = (self.left.get(l), self.right.get(r)) {
                if left == right {
                    done.insert(right);
                    let live = partner(&mut items, right);
                    out.push(self.one(right, live)?);
                    l += 1;
                    r += 1;
                    next_shared = shared.next();
                    continue;
                }
                if self.by_key.contains_key(left) && next_shared.is_some_and(|next| next != left) {
                    // Shared, but not the one whose turn it is.
                    l += 1;
                    continue;
                }
            }
            if let Some(left) = self.left.get(l) {
                if !self.by_key.contains_key(left) {
                    out.extend(items[l].take());
                    l += 1;
                    continue;
                } else if done.contains(left) {
                    l += 1;
                }
            }
            if let Some(right) = self.right.get(r) {
                done.insert(right);
                let live = partner(&mut items, right);
                out.push(self.one(right, live)?);
                r += 1;
                if next_shared == Some(right) {
                    next_shared = shared.next();
                }
            }
        }
        Ok(Value::Array(out))
    }

    fn one(&mut self, element: &PathElement, live: Option<Value>) -> Result<Value, TypeErrors> {
        let Some(applied) = self.by_key.get(element) else { return Ok(Value::Null) };
        let Some(live) = live else { return Ok((*applied).clone()) };
        self.merger.path.push(element.clone());
        let merged = self.merger.merge(self.list.item, live, applied);
        self.merger.path.pop();
        merged
    }
}
