//! Lists of values: of the evaluation, of the program, or a view of an object's array.

use std::sync::Arc;

use coffer_types::Value as Tree;

use super::declared::DeclaredType;
use super::error::Error;
use super::value::Value;

/// A list.
#[derive(Clone)]
pub enum List<'v> {
    /// Elements made by the evaluation.
    Items(Arc<[Value<'v>]>),
    /// Elements of the program: a folded literal.
    Borrowed(&'v [Value<'v>]),
    /// An array of an object, as its schema sees it.
    Tree {
        /// The elements.
        items: &'v [Tree],
        /// The list's schema, which has that of the elements.
        schema: &'v DeclaredType,
    },
    /// Two lists one behind the other.
    Concatenated(Arc<Concatenated<'v>>),
}

/// Two lists one behind the other.
pub struct Concatenated<'v> {
    first: List<'v>,
    second: List<'v>,
    length: usize,
    depth: u32,
}

/// Deepest nesting of concatenations before they are copied into one list.
const MAXIMUM_DEPTH: u32 = 16;

impl<'v> List<'v> {
    /// A list of `items`.
    pub fn new(items: Vec<Value<'v>>) -> Self {
        Self::Items(items.into())
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Items(items) => items.len(),
            Self::Borrowed(items) => items.len(),
            Self::Tree { items, .. } => items.len(),
            Self::Concatenated(both) => both.length,
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`, which must be below [`List::len`].
    ///
    /// # Errors
    /// When an element of an object does not fit its schema.
    pub fn get(&self, index: usize) -> Result<Value<'v>, Error> {
        let mut list = self;
        let mut index = index;
        loop {
            let item = match list {
                Self::Items(items) => items.get(index).cloned(),
                Self::Borrowed(items) => items.get(index).cloned(),
                Self::Tree { items, schema } => match items.get(index) {
                    Some(item) => Some(Value::view(item, schema.element())?),
                    None => None,
                },
                Self::Concatenated(both) => {
                    let length = both.first.len();
                    if index < length {
                        list = &both.first;
                    } else {
                        index -= length;
                        list = &both.second;
                    }
                    continue;
                }
            };
            return item.ok_or_else(|| Error::new(format!("index out of bounds: {index}")));
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'v>, Error>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// This list and `other` behind it; nothing is copied, except when such lists nest deep.
    ///
    /// # Errors
    /// When an element of an object does not fit its schema.
    pub fn concatenate(self, other: List<'v>) -> Result<List<'v>, Error> {
        if other.is_empty() {
            return Ok(self);
        }
        if self.is_empty() {
            return Ok(other);
        }
        let depth = self.depth().max(other.depth()) + 1;
        if depth > MAXIMUM_DEPTH {
            let items = self.iter().chain(other.iter()).collect::<Result<Vec<_>, _>>()?;
            return Ok(Self::new(items));
        }
        let length = self.len() + other.len();
        Ok(Self::Concatenated(Arc::new(Concatenated { first: self, second: other, length, depth })))
    }

    fn depth(&self) -> u32 {
        match self {
            Self::Concatenated(both) => both.depth,
            _ => 0,
        }
    }

    /// The schema of a list that is part of an object.
    pub(crate) fn schema(&self) -> Option<&'v DeclaredType> {
        match self {
            Self::Tree { schema, .. } => Some(schema),
            _ => None,
        }
    }
}

impl<'v> FromIterator<Value<'v>> for List<'v> {
    fn from_iter<I: IntoIterator<Item = Value<'v>>>(items: I) -> Self {
        Self::Items(items.into_iter().collect())
    }
}
