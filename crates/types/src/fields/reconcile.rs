//! What an owner has when the schema has since become coarser: the whole instead of its parts.

use crate::fields::element::PathElement;
use crate::fields::set::Set;
use crate::fields::shape::{Handled, Items, Node, Schema};

/// The set by today's schema.
pub(crate) fn reconcile(schema: Schema<'_>, set: Set) -> Set {
    let mut walker = Walker { path: Vec::new(), whole: Set::default() };
    walker.walk(Node::root(schema), Some(&set), false);
    if walker.whole.is_empty() {
        return set;
    }
    set.recursive_difference(&walker.whole).union(&walker.whole)
}

struct Walker {
    path: Vec<PathElement>,
    /// Paths that are owned as a whole now.
    whole: Set,
}

impl Walker {
    fn walk(&mut self, node: Node<'_>, set: Option<&Set>, owns_whole: bool) {
        match node.atom().handled() {
            Handled::Scalar(_) => {}
            Handled::List(list) => {
                if !owns_whole && matches!(list.items, Items::Atomic) {
                    self.whole.insert(&self.path);
                    return;
                }
                self.below(set, &mut |_| Some(list.item));
            }
            Handled::Map(map) if map.is_untyped() => {}
            Handled::Map(map) => {
                if !owns_whole && map.atomic {
                    if set.is_some_and(|set| !set.is_empty()) {
                        self.whole.insert(&self.path);
                    }
                    return;
                }
                self.below(set, &mut |element| match element {
                    PathElement::Field(name) => map.field(name.as_str()).or_else(|| map.element()),
                    _ => map.element(),
                });
            }
        }
    }

    fn below<'a>(&mut self, set: Option<&Set>, node_of: &mut dyn FnMut(&PathElement) -> Option<Node<'a>>) {
        let Some(set) = set else { return };
        let only_children =
            set.children().iter().map(|(element, _)| element).filter(|element| !set.has(element));
        let mut all: Vec<_> = only_children.chain(set.members()).collect();
        all.sort();
        for element in all {
            // Fields that the schema does not know are left alone.
            let Some(node) = node_of(element) else { continue };
            let below = set.below(element);
            let owns_whole = set.has(element) && below.is_none();
            self.path.push(element.clone());
            self.walk(node, below, owns_whole);
            self.path.pop();
        }
    }
}
