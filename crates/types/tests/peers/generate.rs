//! Random objects: small pools of names and values, so that writers meet.

use serde_json::{Map, Value, json};

/// A small generator with a seed (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.next() % 100 < chance
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// What is to be generated.
pub(crate) enum Shape {
    /// One of these.
    One(Vec<Value>),
    /// These fields, each there in half of the cases.
    Struct(Vec<(&'static str, Shape)>),
    /// Some of these keys.
    Map(&'static [&'static str], Box<Shape>),
    /// A list, maybe with repetitions.
    List(Box<Shape>),
    /// A list of different values.
    Set(&'static [&'static str]),
    /// A list of objects that have these key fields, each with its values; null is a field that is
    /// left out, which means the first value.
    Keyed(Vec<(&'static str, Vec<Value>)>, Box<Shape>),
}

impl Shape {
    pub(crate) fn generate(&self, random: &mut Random) -> Value {
        match self {
            Self::One(values) => random.pick(values).clone(),
            Self::Struct(fields) => {
                let mut object = Map::new();
                for (name, shape) in fields {
                    if random.percent(50) {
                        object.insert((*name).to_owned(), shape.generate(random));
                    }
                }
                Value::Object(object)
            }
            Self::Map(keys, shape) => {
                let mut object = Map::new();
                for key in *keys {
                    if random.percent(45) {
                        object.insert((*key).to_owned(), shape.generate(random));
                    }
                }
                Value::Object(object)
            }
            Self::List(shape) => (0..random.below(3)).map(|_| shape.generate(random)).collect(),
            Self::Set(values) => {
                let mut chosen: Vec<Value> =
                    values.iter().filter(|_| random.percent(50)).map(|value| json!(value)).collect();
                shuffle(&mut chosen, random);
                Value::Array(chosen)
            }
            Self::Keyed(keys, shape) => {
                let mut items: Vec<Value> = Vec::new();
                let mut identities: Vec<Vec<Value>> = Vec::new();
                for _ in 0..random.below(4) {
                    let chosen: Vec<Value> =
                        keys.iter().map(|(_, values)| random.pick(values).clone()).collect();
                    let meant = keys.iter().zip(&chosen).map(|((_, values), value)| {
                        if value.is_null() { values[0].clone() } else { value.clone() }
                    });
                    let identity: Vec<Value> = meant.collect();
                    if identities.contains(&identity) {
                        continue;
                    }
                    let mut item = shape.generate(random);
                    for ((name, _), value) in keys.iter().zip(&chosen) {
                        if !value.is_null() {
                            item[*name] = value.clone();
                        }
                    }
                    identities.push(identity);
                    items.push(item);
                }
                Value::Array(items)
            }
        }
    }
}

fn shuffle(items: &mut [Value], random: &mut Random) {
    for end in (1..items.len()).rev() {
        items.swap(end, random.below(end + 1));
    }
}

/// Something between two objects: parts of one, parts of the other, neither.
pub(crate) fn mixed(left: &Value, right: &Value, random: &mut Random) -> Value {
    let (Value::Object(left), Value::Object(right)) = (left, right) else {
        return if random.percent(50) { left.clone() } else { right.clone() };
    };
    let mut object = Map::new();
    let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    for name in names {
        match (left.get(name), right.get(name)) {
            (Some(left), Some(right)) => {
                object.insert(name.clone(), mixed(left, right, random));
            }
            (Some(value), None) if random.percent(75) => {
                object.insert(name.clone(), value.clone());
            }
            (None, Some(value)) if random.percent(50) => {
                object.insert(name.clone(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(object)
}

/// Spoils one place of an object, or makes it null.
pub(crate) fn spoil(object: &mut Value, random: &mut Random) {
    let kind = random.below(6);
    spoil_by(kind, object, random);
}

/// Doubles the first item of a list.
pub(crate) fn double(object: &mut Value, random: &mut Random) {
    spoil_by(3, object, random);
}

fn spoil_by(kind: usize, object: &mut Value, random: &mut Random) {
    let mut places = Vec::new();
    collect(object, String::new(), &mut places);
    places.retain(|place| {
        let part = object.pointer(place).expect("was collected");
        match kind {
            0 | 1 => !part.is_object() && !part.is_array(),
            2 => part.is_object(),
            3 | 4 => part.as_array().is_some_and(|items| !items.is_empty()),
            _ => !place.is_empty(),
        }
    });
    if places.is_empty() {
        return;
    }
    let place = random.pick(&places).clone();
    let part = object.pointer_mut(&place).expect("was collected");
    match kind {
        0 => *part = json!({"x": 1}),
        1 => *part = random.pick(&[json!(7), json!("text"), json!(true), json!([1])]).clone(),
        2 => part["bogus"] = json!(1),
        3 => {
            let items = part.as_array_mut().expect("is one");
            items.push(items[0].clone());
        }
        4 => {
            let items = part.as_array_mut().expect("is one");
            items[0] = random.pick(&[json!({"other": "x"}), json!([]), json!(null), json!(1)]).clone();
        }
        _ => *part = Value::Null,
    }
}

fn collect(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(member, format!("{place}/{name}"), places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
    places.push(place);
}
