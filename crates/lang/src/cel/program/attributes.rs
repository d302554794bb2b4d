//! Variables, and fields and elements of values.

use super::evaluate::{Evaluator, Slot, absorb};
use super::node::{Attribute, Base, Key, Node, Qualifier};
use crate::cel::error::Error;
use crate::cel::patches::JSON_PATCH;
use crate::cel::value::{Object, Text, Value};

impl Attribute {
    pub(crate) fn is_conditional(&self) -> bool {
        matches!(self.base, Base::Conditional(_))
    }
}

impl<'v> Evaluator<'v, '_, '_> {
    /// The value of an attribute, without the cost of its beginning.
    pub(crate) fn attribute(&mut self, attribute: &'v Attribute) -> Result<Value<'v>, Error> {
        let base = self.base(&attribute.base)?;
        if attribute.qualifiers.is_empty() {
            return Ok(base);
        }
        self.qualify(base, &attribute.qualifiers)
    }

    fn base(&mut self, base: &'v Base) -> Result<Value<'v>, Error> {
        match base {
            Base::Variable(slot, name) => match self.variables.get(*slot)? {
                Some(value) => Ok(value),
                None => Err(Error::new(format!("no such attribute(s): {name}"))),
            },
            Base::Local(place) => self.local(*place),
            Base::Operand(node) => self.evaluate(node),
            Base::Conditional(nodes) => {
                let [condition, yes, no] = &**nodes;
                match self.evaluate(condition)? {
                    Value::Bool(true) => self.unobserved(yes),
                    Value::Bool(false) => self.unobserved(no),
                    _ => Err(Error::no_such_overload()),
                }
            }
        }
    }

    /// The value of a node; an attribute's beginning costs nothing here.
    fn unobserved(&mut self, node: &'v Node) -> Result<Value<'v>, Error> {
        match node {
            Node::Attribute(attribute) => self.attribute(attribute),
            other => self.evaluate(other),
        }
    }

    fn local(&mut self, place: usize) -> Result<Value<'v>, Error> {
        match &self.locals[place] {
            Slot::Value(value) => return Ok(value.clone()),
            Slot::Error(error) => return Err(error.clone()),
            Slot::Empty => return Err(Error::new("no such attribute(s)")),
            Slot::Lazy(_) => {}
        }
        let Slot::Lazy(node) = std::mem::replace(&mut self.locals[place], Slot::Empty) else {
            return Err(Error::new("no such attribute(s)"));
        };
        let result = absorb(self.evaluate(node))?;
        self.locals[place] = match &result {
            Ok(value) => Slot::Value(value.clone()),
            Err(error) => Slot::Error(error.clone()),
        };
        result
    }

    fn qualify(&mut self, base: Value<'v>, qualifiers: &'v [Qualifier]) -> Result<Value<'v>, Error> {
        let mut optional = false;
        let mut value = match base {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => {
                optional = true;
                (*inner).clone()
            }
            other => other,
        };
        for qualifier in qualifiers {
            optional |= qualifier.optional;
            let found = self.look_up(&value, &qualifier.key, optional);
            match found {
                Ok(Some(found)) => {
                    self.spend(1)?;
                    value = found;
                }
                Ok(None) => return Ok(Value::Optional(None)),
                Err(error) => {
                    if !optional && !error.ends_evaluation() {
                        self.spend(1)?;
                    }
                    return Err(error);
                }
            }
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// The field or element `key` of `value`; none only if `optional`.
    fn look_up(
        &mut self,
        value: &Value<'v>,
        key: &'v Key,
        optional: bool,
    ) -> Result<Option<Value<'v>>, Error> {
        match key {
            Key::Constant(key) => find(value, key, optional),
            Key::Dynamic(node) => {
                let key = self.unobserved(node)?;
                match key {
                    Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => {
                    }
                    Value::Bytes(_) => return Err(Error::new("invalid qualifier type: types.Bytes")),
                    Value::Null => return Err(Error::new("invalid qualifier type: types.Null")),
                    Value::Duration(_) => return Err(Error::new("invalid qualifier type: types.Duration")),
                    Value::Timestamp(_) => return Err(Error::new("invalid qualifier type: types.Timestamp")),
                    Value::List(_) => return Err(Error::new("invalid qualifier type: *types.baseList")),
                    Value::Map(_) => return Err(Error::new("invalid qualifier type: *types.baseMap")),
                    _ => return Err(Error::new("invalid qualifier type: ref.Val")),
                }
                find(value, &key, optional)
            }
        }
    }

    /// Whether the last field of an attribute is there.
    pub(crate) fn has(&mut self, attribute: &'v Attribute) -> Result<bool, Error> {
        let Some((last, before)) = attribute.qualifiers.split_last() else { return Ok(false) };
        let mut value = self.base(&attribute.base)?;
        // Only what begins the attribute, or `.?` before, makes the rest optional.
        let mut optional = false;
        let unwrap = matches!(value, Value::Optional(_)) || before.iter().any(|qualifier| qualifier.optional);
        if !before.is_empty() {
            value = self.qualify(value, before)?;
        }
        if unwrap && let Value::Optional(inner) = &value {
            match inner.clone() {
                None => return Ok(false),
                Some(inner) => {
                    optional = true;
                    value = (*inner).clone();
                }
            }
        }
        let Key::Constant(key) = &last.key else { return Ok(false) };
        let present = has_member(&value, key);
        if !optional || present.as_ref().is_ok_and(|present| *present) || present.is_err() {
            self.spend(1)?;
        }
        present
    }
}

fn has_member(value: &Value<'_>, key: &Value<'_>) -> Result<bool, Error> {
    match (value, key) {
        (Value::Map(map), key) => Ok(map.contains(key)),
        (Value::Object(object), Value::String(name)) => Ok(object.has(name)),
        (Value::List(_), Value::String(_)) => Err(Error::new("unsupported index type 'string' in list")),
        _ => Ok(false),
    }
}

/// The field or element `key` of `value`. Where it is missing: none if `optional`, else an error.
fn find<'v>(value: &Value<'v>, key: &Value<'_>, optional: bool) -> Result<Option<Value<'v>>, Error> {
    let found = match value {
        Value::Map(map) => map.get(key)?,
        Value::Object(Object::Tree { members, schema }) => match key {
            Value::String(name) => Object::Tree { members, schema }.field(name)?,
            _ => return Err(Error::no_such_overload()),
        },
        Value::Object(Object::Made(made)) => match key {
            Value::String(name) => {
                let found = made.fields.iter().find(|(field, _)| **field == **name);
                match found {
                    Some((_, value)) => Some(value.clone()),
                    None if optional => None,
                    // Fields that were not set have the values of unset fields in Go.
                    None if *made.type_name == *JSON_PATCH && **name != *"value" => {
                        Some(Value::String(Text::Borrowed("")))
                    }
                    None => Some(Value::Null),
                }
            }
            _ => return Err(Error::no_such_overload()),
        },
        Value::List(list) => {
            let index = list_index(key)?;
            match usize::try_from(index).ok().filter(|index| *index < list.len()) {
                Some(index) => Some(list.get(index)?),
                None if optional => None,
                None => return Err(Error::new(format!("index out of bounds: {}", key.in_messages()))),
            }
        }
        _ => None,
    };
    match found {
        None if !optional => Err(Error::no_such_key(key)),
        found => Ok(found),
    }
}

fn list_index(key: &Value<'_>) -> Result<i64, Error> {
    match key {
        Value::Int(index) => Ok(*index),
        Value::Uint(index) => {
            i64::try_from(*index).map_err(|_| Error::new(format!("unsupported index value {index} in list")))
        }
        Value::Double(index) if index.fract() == 0.0 && index.abs() < 9_223_372_036_854_775_808.0 => {
            Ok(*index as i64)
        }
        Value::Double(_) => Err(Error::new(format!("unsupported index value {} in list", key.in_messages()))),
        other => Err(Error::new(format!("unsupported index type '{}' in list", other.type_of().name()))),
    }
}
