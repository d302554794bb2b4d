//! Taking paths out of an object.

use crate::Value;
use crate::fields::element::PathElement;
use crate::fields::set::Set;
use crate::fields::shape::{Handled, Items, Node, Schema};

/// `object`, a valid tree in JSON form, without the items and fields of `paths`. A list or map
/// that becomes empty becomes null.
pub(crate) fn without(schema: Schema<'_>, object: Value, paths: &Set) -> Value {
    if paths.is_empty() {
        return object;
    }
    remove(Node::root(schema), object, paths)
}

fn remove(node: Node<'_>, value: Value, paths: &Set) -> Value {
    match (node.atom().deduced(Some(&value)).handled(), value) {
        (Handled::Scalar(_), value) => value,
        (Handled::List(list), Value::Array(items)) if !matches!(list.items, Items::Atomic) => {
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                let Ok(element) = list.identity(&item) else {
                    kept.push(item);
                    continue;
                };
                if paths.has(&element) {
                    continue;
                }
                kept.push(match paths.with_prefix(&element) {
                    Some(below) => remove(list.item, item, below),
                    None => item,
                });
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Handled::Map(map), Value::Object(members)) if !map.atomic => {
            let mut kept = crate::Map::new();
            for (name, member) in members {
                let element = PathElement::field(&name);
                if paths.has(&element) {
                    continue;
                }
                let member = match paths.with_prefix(&element) {
                    Some(below) => remove(map.member(&name), member, below),
                    None => member,
                };
                kept.insert(name, member);
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        // What is owned as a whole goes as a whole.
        (Handled::List(_) | Handled::Map(_), _) => Value::Null,
    }
}

/// The set with every declared field on the way to its paths: what is below goes with it.
pub(crate) fn with_named_fields(schema: Schema<'_>, set: &Set) -> Set {
    named(Some(Node::root(schema)), set)
}

fn named(node: Option<Node<'_>>, set: &Set) -> Set {
    let atom = node.map(Node::atom);
    let (map, list) = (atom.and_then(|atom| atom.map), atom.and_then(|atom| atom.list));
    let mut members = set.members().to_vec();
    let mut children = Vec::with_capacity(set.children().len());
    for (element, below) in set.children() {
        let inner = match (element, &map, &list) {
            (PathElement::Field(name), Some(map), _) => {
                let declared = map.field(name.as_str());
                if declared.is_some() {
                    members.push(element.clone());
                }
                declared.or_else(|| map.element())
            }
            (PathElement::Key(_), _, Some(list)) => Some(list.item),
            _ => None,
        };
        children.push((element.clone(), named(inner, below)));
    }
    Set::from_parts(members, children)
}
