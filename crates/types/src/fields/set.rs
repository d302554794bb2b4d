//! Sets of field paths and their `FieldsV1` form.

use std::collections::{BTreeMap, BTreeSet};

use crate::fields::element::PathElement;
use crate::fields::error::SetError;
use crate::{Map, Value};

/// A set of paths: which elements are in it here, and what is in it below.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set {
    members: BTreeSet<PathElement>,
    children: BTreeMap<PathElement, Set>,
}

impl Set {
    /// Of paths of plain fields.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<_> = path.iter().map(|name| PathElement::Field((*name).to_owned())).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds one path. The empty path (the whole object) is never a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut set = self;
        for parent in parents {
            set = set.children.entry(parent.clone()).or_default();
        }
        set.members.insert(last.clone());
    }

    /// Whether there is no path in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Whether the path is in it.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|child| child.contains(rest)),
        }
    }

    /// Whether every path of it is in the other.
    pub fn is_within(&self, other: &Self) -> bool {
        self.members.is_subset(&other.members)
            && self.children.iter().all(|(element, child)| match other.children.get(element) {
                Some(other) => child.is_within(other),
                None => child.is_empty(),
            })
    }

    /// The paths in either.
    pub fn union(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.members.extend(other.members.iter().cloned());
        for (element, child) in &other.children {
            let merged = match both.children.get(element) {
                Some(known) => known.union(child),
                None => child.clone(),
            };
            both.children.insert(element.clone(), merged);
        }
        both
    }

    /// The paths in both.
    pub fn intersection(&self, other: &Self) -> Self {
        let members = self.members.intersection(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter_map(|(element, child)| {
                let both = child.intersection(other.children.get(element)?);
                (!both.is_empty()).then(|| (element.clone(), both))
            })
            .collect();
        Self { members, children }
    }

    /// The paths in this one only. What lies below a path of the other stays.
    pub fn difference(&self, other: &Self) -> Self {
        self.without(other, false)
    }

    /// The paths in this one only, and nothing that lies below a path of the other.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.without(other, true)
    }

    fn without(&self, other: &Self, recursive: bool) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter_map(|(element, child)| {
                if recursive && other.members.contains(element) {
                    return None;
                }
                let rest = match other.children.get(element) {
                    Some(other) => child.without(other, recursive),
                    None => child.clone(),
                };
                (!rest.is_empty()).then(|| (element.clone(), rest))
            })
            .collect();
        Self { members, children }
    }

    /// What is in the set below `element`, if anything is.
    pub fn with_prefix(&self, element: &PathElement) -> Option<&Self> {
        self.children.get(element).filter(|below| !below.is_empty())
    }

    /// The paths below which there is no other.
    pub fn leaves(&self) -> Self {
        let is_leaf = |element: &&PathElement| !self.children.contains_key(*element);
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
        self.members.len() + self.children.values().map(Self::len).sum::<usize>()
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
    pub(crate) fn members(&self) -> &BTreeSet<PathElement> {
        &self.members
    }

    /// What is below, by element.
    pub(crate) fn children(&self) -> &BTreeMap<PathElement, Self> {
        &self.children
    }

    pub(crate) fn from_parts(members: BTreeSet<PathElement>, children: BTreeMap<PathElement, Self>) -> Self {
        Self { members, children }
    }

    /// Everything below the path of plain fields `path`, and whether each is a member: the keys of a map, say.
    pub fn fields_below(&self, path: &[&str]) -> Vec<&str> {
        let mut set = self;
        for name in path {
            match set.children.get(&PathElement::Field((*name).to_owned())) {
                Some(child) => set = child,
                None => return Vec::new(),
            }
        }
        set.members
            .iter()
            .chain(set.children.keys())
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
            let is_member = self.members.contains(element);
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
        let mut set = Self::default();
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
                set.children.insert(element.clone(), child);
            }
            if child_is_member || !has_children {
                set.members.insert(element);
            }
        }
        Ok((set, is_member))
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
