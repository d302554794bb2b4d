//! Loops over lists and maps.

use super::evaluate::{Evaluator, Slot, VALUE_SIZE, absorb};
use super::node::{Fold, FoldKind, Node};
use crate::cel::error::Error;
use crate::cel::estimate::LIST_CREATE;
use crate::cel::value::{Entries, List, Map, Object, Value};

/// Whether to go round once more.
enum Next {
    Go,
    Stop,
}

impl<'v> Evaluator<'v, '_, '_> {
    pub(crate) fn fold(&mut self, fold: &'v Fold) -> Result<Value<'v>, Error> {
        match &fold.kind {
            FoldKind::Bind { accumulator, value, result } => {
                self.locals[*accumulator] = Slot::Lazy(value);
                self.evaluate(result)
            }
            FoldKind::All(predicate) => self.quantifier(fold, predicate, false),
            FoldKind::Exists(predicate) => self.quantifier(fold, predicate, true),
            FoldKind::ExistsOne(predicate) => self.exists_one(fold, predicate),
            FoldKind::Append { filter, element, constant } => {
                self.append(fold, filter.as_ref(), element, *constant)
            }
            FoldKind::Insert { filter, arguments } => self.insert(fold, filter.as_ref(), arguments),
        }
    }

    /// Goes through the range, with its elements in the loop's variables.
    fn each(
        &mut self,
        fold: &'v Fold,
        mut step: impl FnMut(&mut Self) -> Result<Next, Error>,
    ) -> Result<(), Error> {
        let range = self.evaluate(&fold.range)?;
        match range {
            Value::List(list) => {
                for index in 0..list.len() {
                    let item = match list.get(index) {
                        Ok(item) => Slot::Value(item),
                        Err(error) => Slot::Error(error),
                    };
                    if let Some(second) = fold.second {
                        self.locals[second] = item;
                        self.locals[fold.variable] = Slot::Value(Value::Int(index as i64));
                    } else {
                        self.locals[fold.variable] = item;
                    }
                    if matches!(step(self)?, Next::Stop) {
                        break;
                    }
                    self.iteration()?;
                }
                Ok(())
            }
            Value::Map(map) => self.each_entry(fold, &Source::Map(map), step),
            Value::Object(object @ Object::Tree { .. }) => {
                self.each_entry(fold, &Source::Object(object), step)
            }
            other => {
                let name = go_type(&other);
                Err(Error::new(if fold.second.is_some() {
                    format!("unsupported comprehension range type: {name}")
                } else {
                    format!("got '{name}', expected iterable type")
                }))
            }
        }
    }

    fn each_entry(
        &mut self,
        fold: &'v Fold,
        source: &Source<'v>,
        mut step: impl FnMut(&mut Self) -> Result<Next, Error>,
    ) -> Result<(), Error> {
        let keys = source.keys();
        self.memory.charge(keys.len() * VALUE_SIZE)?;
        for (position, key) in keys.into_iter().enumerate() {
            if let Some(second) = fold.second {
                self.locals[second] = match source.get(position, &key) {
                    Ok(Some(value)) => Slot::Value(value),
                    Ok(None) => Slot::Error(Error::no_such_key(&key)),
                    Err(error) => Slot::Error(error),
                };
            }
            self.locals[fold.variable] = Slot::Value(key);
            if matches!(step(self)?, Next::Stop) {
                break;
            }
            self.iteration()?;
        }
        Ok(())
    }

    /// `all` and `exists`: ends at the first element that decides.
    fn quantifier(
        &mut self,
        fold: &'v Fold,
        predicate: &'v Node,
        decisive: bool,
    ) -> Result<Value<'v>, Error> {
        let mut gathered: Result<bool, Error> = Ok(!decisive);
        let condition = if decisive { 3 } else { 2 };
        self.each(fold, |evaluator| {
            evaluator.spend_steps(condition)?;
            if matches!(gathered, Ok(flag) if flag == decisive) {
                return Ok(Next::Stop);
            }
            evaluator.spend(1)?;
            match absorb(evaluator.evaluate(predicate))? {
                Ok(Value::Bool(flag)) if flag == decisive => gathered = Ok(decisive),
                Ok(Value::Bool(_)) => {}
                Ok(_) if gathered.is_ok() => gathered = Err(Error::no_such_overload()),
                Err(error) if gathered.is_ok() => gathered = Err(error),
                _ => {}
            }
            Ok(Next::Go)
        })?;
        self.spend(1)?;
        gathered.map(Value::Bool)
    }

    fn exists_one(&mut self, fold: &'v Fold, predicate: &'v Node) -> Result<Value<'v>, Error> {
        let mut count: Result<u64, Error> = Ok(0);
        self.each(fold, |evaluator| {
            match absorb(evaluator.evaluate(predicate))? {
                Ok(Value::Bool(true)) => {
                    evaluator.spend_steps(2)?;
                    if let Ok(count) = &mut count {
                        *count += 1;
                    }
                }
                Ok(Value::Bool(false)) => {}
                Ok(_) => count = Err(Error::no_such_overload()),
                Err(error) => count = Err(error),
            }
            Ok(Next::Go)
        })?;
        self.spend_steps(2)?;
        count.map(|count| Value::Bool(count == 1))
    }

    /// Whether the filter lets the element through; its error becomes that of the loop.
    fn filter<T>(
        &mut self,
        filter: Option<&'v Node>,
        gathered: &mut Result<T, Error>,
    ) -> Result<bool, Error> {
        let Some(filter) = filter else { return Ok(true) };
        match absorb(self.evaluate(filter))? {
            Ok(Value::Bool(flag)) => return Ok(flag),
            Ok(_) => *gathered = Err(Error::no_such_overload()),
            Err(error) => *gathered = Err(error),
        }
        Ok(false)
    }

    fn append(
        &mut self,
        fold: &'v Fold,
        filter: Option<&'v Node>,
        element: &'v Node,
        constant: bool,
    ) -> Result<Value<'v>, Error> {
        let mut gathered: Result<Vec<Value<'v>>, Error> = Ok(Vec::new());
        self.each(fold, |evaluator| {
            if !evaluator.filter(filter, &mut gathered)? {
                return Ok(Next::Go);
            }
            evaluator.spend(1)?;
            let value = absorb(evaluator.evaluate(element))?;
            evaluator.spend(if constant { 0 } else { LIST_CREATE })?;
            evaluator.spend(1)?;
            if let Ok(items) = &mut gathered {
                match value {
                    Ok(value) => {
                        evaluator.memory.charge(VALUE_SIZE)?;
                        items.push(value);
                    }
                    Err(error) => gathered = Err(error),
                }
            }
            Ok(Next::Go)
        })?;
        self.spend(1)?;
        gathered.map(Value::list)
    }

    fn insert(
        &mut self,
        fold: &'v Fold,
        filter: Option<&'v Node>,
        arguments: &'v [Node],
    ) -> Result<Value<'v>, Error> {
        let mut gathered: Result<Entries<'v>, Error> = Ok(Entries::default());
        self.each(fold, |evaluator| {
            if !evaluator.filter(filter, &mut gathered)? {
                return Ok(Next::Go);
            }
            evaluator.spend(1)?;
            if let [map] = arguments {
                let inserted = absorb(evaluator.evaluate(map))?;
                evaluator.spend(1)?;
                if let Ok(entries) = &mut gathered
                    && let Err(error) = absorb(inserted.and_then(|map| evaluator.insert_all(entries, &map)))?
                {
                    gathered = Err(error);
                }
                return Ok(Next::Go);
            }
            // As a call with three arguments: the first one without a value ends it.
            if gathered.is_err() {
                return Ok(Next::Go);
            }
            let mut values = Vec::with_capacity(2);
            for (index, argument) in arguments.iter().enumerate() {
                match absorb(evaluator.evaluate(argument))? {
                    Ok(value) => values.push(value),
                    Err(error) => {
                        gathered = Err(error);
                        // The call costs something when its last argument has no value.
                        evaluator.spend(u64::from(index + 1 == arguments.len()))?;
                        return Ok(Next::Go);
                    }
                }
            }
            evaluator.spend(1)?;
            if let (Ok(entries), Some(value), Some(key)) = (&mut gathered, values.pop(), values.pop())
                && let Err(error) = absorb(evaluator.insert_one(entries, key, value))?
            {
                gathered = Err(error);
            }
            Ok(Next::Go)
        })?;
        self.spend(1)?;
        gathered.map(|entries| Value::Map(Map::new(entries)))
    }

    fn insert_one(
        &mut self,
        entries: &mut Entries<'v>,
        key: Value<'v>,
        value: Value<'v>,
    ) -> Result<(), Error> {
        self.memory.charge(2 * VALUE_SIZE)?;
        if entries.find(&key).is_some() {
            return Err(Error::new(format!("insert failed: key {} already exists", key.in_messages())));
        }
        entries.set(key, value);
        Ok(())
    }

    fn insert_all(&mut self, entries: &mut Entries<'v>, map: &Value<'v>) -> Result<(), Error> {
        let Value::Map(map) = map else { return Err(Error::no_such_overload()) };
        for (key, value) in map.entries()? {
            self.insert_one(entries, key, value)?;
        }
        Ok(())
    }
}

/// What has keys.
enum Source<'v> {
    Map(Map<'v>),
    Object(Object<'v>),
}

impl<'v> Source<'v> {
    fn keys(&self) -> Vec<Value<'v>> {
        match self {
            Self::Map(map) => map.keys(),
            Self::Object(object) => object.names().into_iter().map(|name| Value::string(&*name)).collect(),
        }
    }

    fn get(&self, position: usize, key: &Value<'v>) -> Result<Option<Value<'v>>, Error> {
        match (self, key) {
            // A key may be of a kind that finds nothing.
            (Self::Map(Map::Entries(entries)), _) => {
                Ok(entries.items().get(position).map(|(_, value)| value.clone()))
            }
            (Self::Map(map), _) => map.get(key),
            (Self::Object(object), Value::String(name)) => object.field(name),
            _ => Ok(None),
        }
    }
}

/// The name of a value's type in upstream's implementation.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        Value::List(List::Items(_) | List::Borrowed(_)) => "*types.baseList",
        Value::List(_) => "*types.concatList",
        Value::Map(_) => "*types.baseMap",
        Value::Object(_) | Value::Opaque(_) => "ref.Val",
    }
}
