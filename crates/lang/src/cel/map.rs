//! Maps of values: of the evaluation, or a view of an object's members.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use coffer_types::Map as Members;

use super::declared::DeclaredType;
use super::error::Error;
use super::text::Text;
use super::value::Value;

/// A map.
#[derive(Clone)]
pub enum Map<'v> {
    /// Entries made by the evaluation or by the program.
    Entries(Arc<Entries<'v>>),
    /// Members of an object, as its schema sees them.
    Tree {
        /// The members.
        members: &'v Members,
        /// The map's schema, which has that of the values.
        schema: &'v DeclaredType,
    },
}

/// The entries of a map, in the order in which they were put in.
#[derive(Clone, Default)]
pub struct Entries<'v> {
    items: Vec<(Value<'v>, Value<'v>)>,
    index: Option<HashMap<u64, Vec<u32>>>,
}

/// Maps above this many entries have an index.
const LINEAR: usize = 8;

impl<'v> Entries<'v> {
    /// Puts an entry in.
    ///
    /// # Errors
    /// When the key is there already.
    pub fn insert(&mut self, key: Value<'v>, value: Value<'v>) -> Result<(), Error> {
        if self.find(&key).is_some() {
            return Err(Error::new(format!("Failed with repeated key: {}", key.in_messages())));
        }
        self.push(key, value);
        Ok(())
    }

    fn push(&mut self, key: Value<'v>, value: Value<'v>) {
        let position = self.items.len() as u32;
        if let Some(index) = &mut self.index {
            index.entry(hash(&key)).or_default().push(position);
        }
        self.items.push((key, value));
        if self.index.is_none() && self.items.len() > LINEAR {
            let mut index: HashMap<u64, Vec<u32>> = HashMap::with_capacity(self.items.len() * 2);
            for (position, (key, _)) in self.items.iter().enumerate() {
                index.entry(hash(key)).or_default().push(position as u32);
            }
            self.index = Some(index);
        }
    }

    /// Puts an entry in, over one with the same key.
    pub fn set(&mut self, key: Value<'v>, value: Value<'v>) {
        match self.position(&key) {
            Some(position) => self.items[position].1 = value,
            None => self.push(key, value),
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &Value<'_>) {
        if let Some(position) = self.position(key) {
            self.items.remove(position);
            let items = std::mem::take(&mut self.items);
            self.index = None;
            for (key, value) in items {
                self.push(key, value);
            }
        }
    }

    fn position(&self, key: &Value<'_>) -> Option<usize> {
        match &self.index {
            _ if !can_be_found(key) => None,
            None => self.items.iter().position(|(candidate, _)| same_key(candidate, key)),
            Some(index) => {
                let found = index.get(&hash(key))?.iter();
                found
                    .map(|position| *position as usize)
                    .find(|position| same_key(&self.items[*position].0, key))
            }
        }
    }

    /// The value of `key`, numbers compared by value across their types.
    pub fn find(&self, key: &Value<'_>) -> Option<&Value<'v>> {
        match &self.index {
            _ if !can_be_found(key) => None,
            None => self.items.iter().find(|(candidate, _)| same_key(candidate, key)).map(|(_, value)| value),
            Some(index) => index.get(&hash(key))?.iter().find_map(|position| {
                let (candidate, value) = &self.items[*position as usize];
                same_key(candidate, key).then_some(value)
            }),
        }
    }

    /// The entries in order.
    pub fn items(&self) -> &[(Value<'v>, Value<'v>)] {
        &self.items
    }
}

impl<'v> Map<'v> {
    /// A map of `entries`.
    pub fn new(entries: Entries<'v>) -> Self {
        Self::Entries(Arc::new(entries))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Entries(entries) => entries.items.len(),
            Self::Tree { members, .. } => members.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// When a member of an object does not fit its schema.
    pub fn get(&self, key: &Value<'_>) -> Result<Option<Value<'v>>, Error> {
        match (self, key) {
            (Self::Entries(entries), _) => Ok(entries.find(key).cloned()),
            (Self::Tree { .. }, Value::String(name)) => self.member(name),
            (Self::Tree { .. }, _) => Ok(None),
        }
    }

    /// The value of the key `name`.
    ///
    /// # Errors
    /// When a member of an object does not fit its schema.
    pub fn member(&self, name: &str) -> Result<Option<Value<'v>>, Error> {
        match self {
            Self::Entries(entries) => Ok(entries.find(&Value::String(Text::Borrowed(name))).cloned()),
            Self::Tree { members, schema } => {
                members.get(name).map(|value| Value::view(value, schema.element())).transpose()
            }
        }
    }

    /// Whether there is `key`.
    pub fn contains(&self, key: &Value<'_>) -> bool {
        match (self, key) {
            (Self::Entries(entries), _) => entries.find(key).is_some(),
            (Self::Tree { members, .. }, Value::String(name)) => members.contains_key(&**name),
            (Self::Tree { .. }, _) => false,
        }
    }

    /// The keys.
    pub fn keys(&self) -> Vec<Value<'v>> {
        match self {
            Self::Entries(entries) => entries.items.iter().map(|(key, _)| key.clone()).collect(),
            Self::Tree { members, .. } => {
                members.keys().map(|name| Value::String(Text::Borrowed(name.as_str()))).collect()
            }
        }
    }

    /// The entries.
    ///
    /// # Errors
    /// When a member of an object does not fit its schema.
    pub fn entries(&self) -> Result<Vec<(Value<'v>, Value<'v>)>, Error> {
        match self {
            Self::Entries(entries) => Ok(entries.items.clone()),
            Self::Tree { members, schema } => members
                .iter()
                .map(|(name, value)| {
                    Ok((Value::String(Text::Borrowed(name.as_str())), Value::view(value, schema.element())?))
                })
                .collect(),
        }
    }
}

/// Whether [`same_key`] can hold for a key of this kind.
fn can_be_found(key: &Value<'_>) -> bool {
    matches!(
        key,
        Value::String(_)
            | Value::Bool(_)
            | Value::Null
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
    )
}

fn same_key(one: &Value<'_>, other: &Value<'_>) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => **one == **other,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Null, Value::Null) => true,
        (Value::Duration(one), Value::Duration(other)) => one == other,
        // As Go compares keys: the same moment of another zone is another key.
        (Value::Timestamp(one), Value::Timestamp(other)) => {
            (one.seconds, one.nanoseconds, one.offset) == (other.seconds, other.nanoseconds, other.offset)
        }
        _ => one.numeric_cmp(other) == Some(std::cmp::Ordering::Equal),
    }
}

/// Equal numbers of different types have equal hashes.
fn hash(key: &Value<'_>) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    match key {
        Value::String(text) => text.hash(&mut hasher),
        Value::Bool(flag) => flag.hash(&mut hasher),
        Value::Int(number) => i128::from(*number).hash(&mut hasher),
        Value::Uint(number) => i128::from(*number).hash(&mut hasher),
        // Whole floats beyond 128 bits saturate: they equal no integer key anyway.
        Value::Double(number) if number.fract() == 0.0 => (*number as i128).hash(&mut hasher),
        Value::Double(number) => number.to_bits().hash(&mut hasher),
        Value::Duration(nanoseconds) => nanoseconds.hash(&mut hasher),
        Value::Timestamp(instant) => (instant.seconds, instant.nanoseconds).hash(&mut hasher),
        _ => {}
    }
    hasher.finish()
}
