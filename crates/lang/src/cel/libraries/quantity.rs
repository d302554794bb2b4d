//! Functions of quantities.

use std::any::Any;
use std::cmp::Ordering;

use coffer_types::codec::quantity;

use crate::cel::error::Error;
use crate::cel::functions::{Evaluate, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::{Opaque, Value};

/// A quantity.
#[derive(Debug, Clone)]
pub struct Quantity {
    number: quantity::Quantity,
    /// Whether this is a sum or a difference. Upstream cannot compare anything with those by `==`,
    /// though it can compare them with others.
    calculated: bool,
}

pub(super) fn library() -> Library {
    let declared = Quantity::declared;
    let telling = |name: &'static str, id: &'static str, result: Type, evaluate: Evaluate| {
        Function::new(name, vec![Overload::member(id, [declared()], result, evaluate)])
    };
    let comparing = |name: &'static str, id: &'static str, result: Type, evaluate: Evaluate| {
        Function::new(name, vec![Overload::member(id, [declared(), declared()], result, evaluate)])
    };
    let calculating = |name: &'static str, id: &'static str, whole: Evaluate, integer: Evaluate| {
        Function::new(
            name,
            vec![
                Overload::member(id, [declared(), declared()], declared(), whole),
                Overload::member(format!("{id}_int"), [declared(), Type::Int], declared(), integer),
            ],
        )
    };
    Library {
        name: "kubernetes.quantity",
        functions: vec![
            Function::new(
                "quantity",
                vec![Overload::global("string_to_quantity", [Type::String], declared(), |_, arguments| {
                    let read = quantity::Quantity::parse(arguments[0].as_text()?);
                    read.map(|read| Value::opaque(Quantity::new(read)))
                        .map_err(|error| Error::new(error.text()))
                })],
            ),
            Function::new(
                "isQuantity",
                vec![Overload::global("is_quantity_string", [Type::String], Type::Bool, |_, arguments| {
                    Ok(Value::Bool(quantity::Quantity::parse(arguments[0].as_text()?).is_ok()))
                })],
            ),
            // Not a member, as its declaration upstream has it: `sign(quantity("1"))`.
            Function::new(
                "sign",
                vec![Overload::global("quantity_sign", [declared()], Type::Int, |_, arguments| {
                    Ok(Value::Int(number(&arguments[0])?.sign()))
                })],
            ),
            comparing("isGreaterThan", "quantity_is_greater_than", Type::Bool, |_, arguments| {
                Ok(Value::Bool(compare(arguments)? == Ordering::Greater))
            }),
            comparing("isLessThan", "quantity_is_less_than", Type::Bool, |_, arguments| {
                Ok(Value::Bool(compare(arguments)? == Ordering::Less))
            }),
            comparing("compareTo", "quantity_compare_to", Type::Int, |_, arguments| {
                Ok(Value::Int(compare(arguments)? as i64))
            }),
            telling("asApproximateFloat", "quantity_get_float", Type::Double, |_, arguments| {
                Ok(Value::Double(number(&arguments[0])?.as_float()))
            }),
            telling("asInteger", "quantity_get_int", Type::Int, |_, arguments| {
                let whole = number(&arguments[0])?.as_integer();
                whole.map(Value::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
            }),
            telling("isInteger", "quantity_is_integer", Type::Bool, |_, arguments| {
                Ok(Value::Bool(number(&arguments[0])?.as_integer().is_some()))
            }),
            calculating(
                "add",
                "quantity_add",
                |_, arguments| made(number(&arguments[0])?.add(number(&arguments[1])?)),
                |_, arguments| {
                    let other = quantity::Quantity::from_integer(arguments[1].as_int()?);
                    made(number(&arguments[0])?.add(&other))
                },
            ),
            calculating(
                "sub",
                "quantity_sub",
                |_, arguments| made(number(&arguments[0])?.sub(number(&arguments[1])?)),
                |_, arguments| {
                    let other = quantity::Quantity::from_integer(arguments[1].as_int()?);
                    made(number(&arguments[0])?.sub(&other))
                },
            ),
        ],
        ..Library::default()
    }
}

fn number<'a>(value: &'a Value<'_>) -> Result<&'a quantity::Quantity, Error> {
    value.downcast::<Quantity>().map(Quantity::number).ok_or_else(Error::no_such_overload)
}

fn compare(arguments: &[Value<'_>]) -> Result<Ordering, Error> {
    Ok(number(&arguments[0])?.cmp(number(&arguments[1])?))
}

fn made<'v>(result: Option<quantity::Quantity>) -> Result<Value<'v>, Error> {
    let result = result.ok_or_else(|| Error::new("quantities are too far apart"))?;
    Ok(Value::opaque(Quantity { number: result, calculated: true }))
}

impl Quantity {
    /// A quantity that was read.
    pub fn new(number: quantity::Quantity) -> Self {
        Self { number, calculated: false }
    }

    /// The number.
    pub fn number(&self) -> &quantity::Quantity {
        &self.number
    }

    /// The type of quantities.
    pub(super) fn declared() -> Type {
        Type::object("kubernetes.Quantity")
    }
}

impl Opaque for Quantity {
    fn type_of(&self) -> Type {
        Self::declared()
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, Error> {
        let other = other.as_any().downcast_ref::<Self>().ok_or_else(Error::no_such_overload)?;
        if other.calculated {
            return Err(Error::no_such_overload());
        }
        Ok(self.number == other.number)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
