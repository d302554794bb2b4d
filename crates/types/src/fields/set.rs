//! Sets of field paths and their `FieldsV1` form.

use std::cmp::Ordering;

use crate::fields::element::PathElement;
use crate::fields::error::SetError;
use crate::{Map, Value};

/// A set of paths: which elements are in it here, and what is in it below. Both in order, without doubles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set {
    members: Vec<PathElement>,
    children: Vec<(PathElement, Set)>,
}

impl Set {
    /// Of paths of plain fields.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<_> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds one path; many are cheap in their order only. The empty path (the whole object) is never a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut set = self;
        for parent in parents {
            set = set.below_mut(parent);
        }
        if let Err(index) = place(&set.members, last, |member| member) {
            set.members.insert(index, last.clone());
        }
    }

    /// Whether there is no path in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.iter().all(|(_, child)| child.is_empty())
    }

    /// Whether the path is in it.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|child| child.contains(rest)),
        }
    }

    /// Whether every path of it is in the other.
    pub fn is_within(&self, other: &Self) -> bool {
        self.members.iter().all(|element| other.has(element))
            && self.children.iter().all(|(element, child)| match other.below(element) {
                Some(other) => child.is_within(other),
                None => child.is_empty(),
            })
    }

    /// The paths in either.
    pub fn union(&self, other: &Self) -> Self {
        let members = merged(&self.members, &other.members, |member| member, |member, _| member.clone());
        let children = merged(
            &self.children,
            &other.children,
            |(element, _)| element,
            |(element, child), other| match other {
                Some((_, other)) => (element.clone(), child.union(other)),
                None => (element.clone(), child.clone()),
            },
        );
        Self { members, children }
    }

    /// The paths in both.
    pub fn intersection(&self, other: &Self) -> Self {
        let members = self.members.iter().filter(|element| other.has(element)).cloned().collect();
        let children = self
            .children
            .iter()
            .filter_map(|(element, child)| {
                let both = child.intersection(other.below(element)?);
                (!both.is_empty()).then(|| (element.clone(), both))
            })
            .collect();
        Self { members, children }
    }

    /// The paths in this one only. What lies below a path of the other stays.
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.remove_all(other);
        rest
    }

    /// Takes the paths of the other out of this one. What lies below a path of the other stays.
    pub fn remove_all(&mut self, other: &Self) {
        self.take_out(other, false);
    }

    /// The paths in this one only, and nothing that lies below a path of the other.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.take_out(other, true);
        rest
    }

    fn take_out(&mut self, other: &Self, recursive: bool) {
        self.members.retain(|element| !other.has(element));
        self.children.retain_mut(|(element, child)| {
            if recursive && other.has(element) {
                return false;
            }
            if let Some(other) = other.below(element) {
                child.take_out(other, recursive);
            }
            !child.is_empty()
        });
    }

    /// What is in the set below `element`, if anything is.
    pub fn with_prefix(&self, element: &PathElement) -> Option<&Self> {
        self.below(element).filter(|below| !below.is_empty())
    }

    /// The paths below which there is no other.
    pub fn leaves(&self) -> Self {
        let is_leaf = |element: &&PathElement| self.below(element).is_none();
        Self {
            members: self.members.iter().filter(is_leaf).cloned().collect(),
            children: self
                .children
                .iter()
                .map(|(element, below)| (element.clone(), below.leaves()))
                .collect(),
        }
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.iter().map(|(_, child)| child.len()).sum::<usize>()
    }

    /// Calls `visit` with each path: first those that end here, then what is below.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[PathElement])) {
        self.visit(&mut Vec::new(), visit);
    }

    fn visit(&self, path: &mut Vec<PathElement>, visit: &mut dyn FnMut(&[PathElement])) {
        for member in &self.members {
            path.push(member.clone());
            visit(path);
            path.pop();
        }
        for (element, below) in &self.children {
            path.push(element.clone());
            below.visit(path, visit);
            path.pop();
        }
    }

    /// The elements that are in the set here.
    pub(crate) fn members(&self) -> &[PathElement] {
        &self.members
    }

    /// What is below, by element.
    pub(crate) fn children(&self) -> &[(PathElement, Self)] {
        &self.children
    }

    /// Whether the element is in the set here.
    pub(crate) fn has(&self, element: &PathElement) -> bool {
        place(&self.members, element, |member| member).is_ok()
    }

    /// What is below `element`, even if that is nothing.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&Self> {
        let index = place(&self.children, element, |(element, _)| element).ok()?;
        Some(&self.children[index].1)
    }

    fn below_mut(&mut self, element: &PathElement) -> &mut Self {
        let index = place(&self.children, element, |(element, _)| element).unwrap_or_else(|index| {
            self.children.insert(index, (element.clone(), Self::default()));
            index
        });
        &mut self.children[index].1
    }

    /// Of elements in any order, of which the last of several alike counts.
    pub(crate) fn from_parts(mut members: Vec<PathElement>, mut children: Vec<(PathElement, Self)>) -> Self {
        members.sort();
        members.dedup();
        // Stable: the last one stands before those that it replaces.
        children.reverse();
        children.sort_by(|(left, _), (right, _)| left.cmp(right));
        children.dedup_by(|(later, _), (earlier, _)| later == earlier);
        Self { members, children }
    }

    /// Everything below the path of plain fields `path`, and whether each is a member: the keys of a map, say.
    pub fn fields_below(&self, path: &[&str]) -> Vec<&str> {
        let mut set = self;
        for name in path {
            match set.below(&PathElement::field(name)) {
                Some(child) => set = child,
                None => return Vec::new(),
            }
        }
        set.members
            .iter()
            .chain(set.children.iter().map(|(element, _)| element))
            .filter_map(|element| match element {
                PathElement::Field(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    /// As the tree of a `fieldsV1`; the codec prints it in Go's order.
    pub fn to_value(&self) -> Value {
        Value::Object(self.contents(false))
    }

    fn contents(&self, include_self: bool) -> Map {
        let mut contents = Map::new();
        if include_self && !(self.members.is_empty() && self.children.is_empty()) {
            contents.insert(".".to_owned(), Value::object());
        }
        for member in &self.members {
            contents.insert(member.serialize(), Value::object());
        }
        for (element, child) in &self.children {
            let is_member = self.has(element);
            contents.insert(element.serialize(), Value::Object(child.contents(is_member)));
        }
        contents
    }

    /// From the tree of a `fieldsV1`. Elements of unknown kinds are left out, as upstream does.
    pub fn from_value(value: &Value) -> Result<Self, SetError> {
        let members = value.as_object().ok_or_else(|| SetError::new("fieldsV1 must be an object"))?;
        Ok(Self::read(members)?.0)
    }

    /// The set, and whether the element above is itself a member.
    fn read(contents: &Map) -> Result<(Self, bool), SetError> {
        let (mut all, mut children) = (Vec::with_capacity(contents.len()), Vec::new());
        let mut is_member = false;
        for (key, below) in contents {
            if key == "." {
                is_member = true;
                continue;
            }
            let Some(element) = PathElement::deserialize(key)? else { continue };
            let (child, child_is_member) = match below {
                Value::Object(members) => Self::read(members)?,
                Value::Null => (Self::default(), true),
                _ => return Err(SetError::new(format!("what is below {key} must be an object"))),
            };
            let has_children = !(child.members.is_empty() && child.children.is_empty());
            if has_children {
                children.push((element.clone(), child));
            }
            if child_is_member || !has_children {
                all.push(element);
            }
        }
        Ok((Self::from_parts(all, children), is_member))
    }
}

/// Where `element` is among `items`, which are in order, or belongs. Walks come in that order too, so
/// the end is looked at first.
fn place<T>(items: &[T], element: &PathElement, of: impl Fn(&T) -> &PathElement) -> Result<usize, usize> {
    match items.last() {
        None => Err(0),
        Some(last) => match of(last).cmp(element) {
            Ordering::Less => Err(items.len()),
            Ordering::Equal => Ok(items.len() - 1),
            Ordering::Greater => items.binary_search_by(|item| of(item).cmp(element)),
        },
    }
}

/// What is in either of two lists in order; `join` makes one of two that are alike.
fn merged<T>(
    left: &[T],
    right: &[T],
    of: impl Fn(&T) -> &PathElement,
    join: impl Fn(&T, Option<&T>) -> T,
) -> Vec<T> {
    let mut all = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some(left), Some(right)) => of(left).cmp(of(right)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return all,
        };
        let one = if order.is_le() { left.next() } else { right.next() };
        let same = if order.is_eq() { right.next() } else { None };
        all.extend(one.map(|one| join(one, same)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::element::path_text;
    use crate::validation::testing::object;

    fn set(json: &str) -> Set {
        Set::from_value(&object(json)).expect("well-formed")
    }

    #[test]
    fn fields_v1_round_trips() {
        for json in [
            "{}",
            r#"{"f:a":{}}"#,
            r#"{"f:a":{".":{},"f:b":{}}}"#,
            r#"{"f:a":{"f:b":{}}}"#,
            r#"{"f:l":{"k:{\"uid\":\"x\"}":{".":{},"f:n":{}},"v:\"s\"":{},"i:3":{}}}"#,
        ] {
            assert!(set(json).to_value() == object(json), "{json}");
        }
        assert!(set(r#"{"f:a":{".":{}}}"#).to_value() == object(r#"{"f:a":{}}"#));
        assert!(set(r#"{"x:a":{},"f:b":{}}"#).to_value() == object(r#"{"f:b":{}}"#));
        for bad in [
            "[]",
            r#"{"a":{}}"#,
            r#"{"v:{":{}}"#,
            r#"{"k:1":{}}"#,
            r#"{"i:x":{}}"#,
            r#"{"f:a":1}"#,
            r#"{"f":{}}"#,
        ] {
            assert!(Set::from_value(&object(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn set_algebra() {
        let left = set(r#"{"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{}}"#);
        let right = set(r#"{"f:a":{"f:x":{}},"f:b":{},"f:c":{}}"#);
        let check = |actual: Set, expected: &str| assert!(actual == set(expected), "{actual:?}");
        check(left.union(&right), r#"{"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{},"f:c":{}}"#);
        check(left.intersection(&right), r#"{"f:a":{"f:x":{}},"f:b":{}}"#);
        check(left.difference(&right), r#"{"f:a":{".":{},"f:y":{}}}"#);
        check(left.difference(&set(r#"{"f:a":{}}"#)), r#"{"f:a":{"f:x":{},"f:y":{}},"f:b":{}}"#);
        check(left.recursive_difference(&set(r#"{"f:a":{}}"#)), r#"{"f:b":{}}"#);
        assert!(left.difference(&left).is_empty());
        for (small, large, expected) in [
            ("{}", "{}", true),
            (r#"{"f:a":{"f:x":{}}}"#, r#"{"f:a":{".":{},"f:x":{},"f:y":{}}}"#, true),
            (r#"{"f:a":{".":{},"f:x":{}}}"#, r#"{"f:a":{"f:x":{}}}"#, false),
            (r#"{"f:a":{"f:x":{}}}"#, r#"{"f:a":{}}"#, false),
            (r#"{"f:a":{"f:x":{}},"f:b":{}}"#, r#"{"f:a":{"f:x":{}}}"#, false),
        ] {
            assert_eq!(set(small).is_within(&set(large)), expected, "{small} {large}");
        }
        assert!(Set::default().is_empty());
        assert_eq!(left.fields_below(&["a"]), ["x", "y"]);
        check(left.leaves(), r#"{"f:a":{"f:x":{},"f:y":{}},"f:b":{}}"#);
        assert_eq!(left.len(), 4);
        let mut paths = Vec::new();
        left.for_each(&mut |path| paths.push(path_text(path)));
        assert_eq!(paths, [".a", ".b", ".a.x", ".a.y"]);
        assert_eq!(left.with_prefix(&PathElement::field("a")).map(Set::len), Some(2));
        assert_eq!(left.with_prefix(&PathElement::field("b")), None);
    }
}
