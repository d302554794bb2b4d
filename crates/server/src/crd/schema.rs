//! A version's schema, read once from the definition's tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_types::Value;

use super::pattern::{Pattern, Patterns};

/// One node of an OpenAPI v3 schema. Descriptions are left out: nothing here needs them,
/// and they are most of the bytes.
#[derive(Debug, Default)]
pub struct Schema {
    /// `type`; "" when there is none.
    pub kind: String,
    /// `null` is a value.
    pub nullable: bool,
    /// What an absent value becomes.
    pub default: Option<Value>,
    /// Fields of an object.
    pub properties: BTreeMap<String, Schema>,
    /// Every other field of an object.
    pub additional: Additional,
    /// Items of a list.
    pub items: Option<Box<Schema>>,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<String>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`.
    pub map_type: Option<String>,
    /// `x-kubernetes-validations`, as written.
    pub validations: Option<Value>,
    /// What few nodes have.
    pub(crate) rules: Option<Box<Rules>>,
    /// Has a title or a description, which is forbidden under `anyOf` and the like.
    pub(crate) titled: bool,
    pub(crate) described: bool,
    /// Keywords that are not supported.
    pub(crate) unsupported: Vec<&'static str>,
    /// `items` is a list of schemas, which is not supported.
    pub(crate) list_of_items: bool,
    /// `x-kubernetes-preserve-unknown-fields` is there and false.
    pub(crate) denies_unknown: bool,
}

/// `additionalProperties`.
#[derive(Debug, Default)]
pub enum Additional {
    /// Not there.
    #[default]
    Absent,
    /// `true` or `false`.
    Flag(bool),
    /// A schema.
    Schema(Box<Schema>),
}

/// Rules about values.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) values: Option<Vec<Value>>,
    pub(crate) pattern: Option<Arc<Pattern>>,
    pub(crate) format: String,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

const UNSUPPORTED: [&str; 7] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref", "uniqueItems"];

impl Schema {
    /// The schemas under `allOf`, `anyOf`, `oneOf` and `not`.
    pub(crate) fn nested(&self) -> impl Iterator<Item = &Self> {
        let rules = self.rules.iter();
        rules.flat_map(|rules| {
            rules.all_of.iter().chain(&rules.any_of).chain(&rules.one_of).chain(rules.not.as_deref())
        })
    }

    /// Reads `openAPIV3Schema`. Nothing is refused here; the rules of a definition tell
    /// what is wrong with it.
    pub fn parse(tree: &Value) -> Self {
        read(tree, &mut Patterns::default())
    }

    /// The field `name`, if it is one that the schema names.
    pub fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name)
    }

    /// The schema of a field that is in no `properties`; the outer `None` means that
    /// there may be no such field.
    pub(crate) fn additional_schema(&self) -> Option<Option<&Self>> {
        match &self.additional {
            Additional::Absent => None,
            Additional::Flag(_) => Some(None),
            Additional::Schema(schema) => Some(Some(schema)),
        }
    }
}

fn read(tree: &Value, patterns: &mut Patterns) -> Schema {
    let text = |name: &str| tree.str_at(&[name]).to_owned();
    let flag = |name: &str| tree.get(name).and_then(Value::as_bool).unwrap_or(false);
    let texts = |name: &str| {
        let items = tree.get(name).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let optional = |name: &str| tree.get(name).and_then(Value::as_str).map(str::to_owned);
    let present = |name: &str| tree.get(name).filter(|value| !is_empty(value));
    Schema {
        kind: text("type"),
        nullable: flag("nullable"),
        default: tree.get("default").filter(|value| !value.is_null()).cloned(),
        properties: tree
            .get("properties")
            .and_then(Value::as_object)
            .map(|members| members.iter().map(|(name, tree)| (name.clone(), read(tree, patterns))).collect())
            .unwrap_or_default(),
        additional: match tree.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Absent,
            Some(Value::Bool(flag)) => Additional::Flag(*flag),
            Some(schema) => Additional::Schema(Box::new(read(schema, patterns))),
        },
        items: tree
            .get("items")
            .filter(|items| items.as_object().is_some())
            .map(|items| Box::new(read(items, patterns))),
        required: texts("required"),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag("x-kubernetes-embedded-resource"),
        int_or_string: flag("x-kubernetes-int-or-string"),
        list_type: optional("x-kubernetes-list-type"),
        list_map_keys: texts("x-kubernetes-list-map-keys"),
        map_type: optional("x-kubernetes-map-type"),
        validations: present("x-kubernetes-validations").cloned(),
        rules: rules(tree, patterns),
        titled: !text("title").is_empty(),
        described: !text("description").is_empty(),
        unsupported: UNSUPPORTED.into_iter().filter(|name| present(name).is_some()).collect(),
        list_of_items: matches!(tree.get("items"), Some(Value::Array(_))),
        denies_unknown: matches!(tree.get("x-kubernetes-preserve-unknown-fields"), Some(Value::Bool(false))),
    }
}

fn rules(tree: &Value, patterns: &mut Patterns) -> Option<Box<Rules>> {
    const NAMES: [&str; 18] = [
        "enum",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "multipleOf",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
    ];
    NAMES.iter().find(|name| tree.get(name).is_some())?;
    let number = |name: &str| match tree.get(name) {
        Some(Value::Int(number)) => Some(*number as f64),
        Some(Value::Float(number)) => Some(*number),
        _ => None,
    };
    let count = |name: &str| tree.get(name).and_then(Value::as_i64);
    let flag = |name: &str| tree.get(name).and_then(Value::as_bool).unwrap_or(false);
    let mut list = |name: &str| -> Vec<Schema> {
        let items = tree.get(name).and_then(Value::as_array).unwrap_or_default();
        items.iter().map(|tree| read(tree, patterns)).collect()
    };
    let (all_of, any_of, one_of) = (list("allOf"), list("anyOf"), list("oneOf"));
    Some(Box::new(Rules {
        values: tree
            .get("enum")
            .and_then(Value::as_array)
            .filter(|values| !values.is_empty())
            .map(<[Value]>::to_vec),
        pattern: Some(tree.str_at(&["pattern"]))
            .filter(|text| !text.is_empty())
            .map(|text| patterns.intern(text)),
        format: tree.str_at(&["format"]).to_owned(),
        minimum: number("minimum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        all_of,
        any_of,
        one_of,
        not: tree.get("not").filter(|not| !not.is_null()).map(|not| Box::new(read(not, patterns))),
    }))
}

/// Whether Go would see the zero value.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
