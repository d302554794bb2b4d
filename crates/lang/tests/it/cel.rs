//! Requests and answers of `peers/go/cel`, and our answers to them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::estimate::{Range, SizeEstimator};
use coffer_lang::cel::functions::{CallCosts, Library};
use coffer_lang::cel::libraries::authorizer::{
    Asked, Authorizer, Resource, User, Verdict, authorizer_type, authorizer_value, resource_check_type,
};
use coffer_lang::cel::libraries::quantity::Quantity;
use coffer_lang::cel::libraries::semver::Semver;
use coffer_lang::cel::libraries::url::Url;
use coffer_lang::cel::libraries::{Cidr, Format, Ip};
use coffer_lang::cel::program::Budget;
use coffer_lang::cel::times;
use coffer_lang::cel::types::Type;
use coffer_lang::cel::value::{Entries, Map, Value};
use coffer_lang::field_selector::FieldSelector;
use coffer_lang::label_selector::LabelSelector;
use coffer_types::codec::quantity;
use serde_json::Value as Json;

/// A request, with the original's answer.
pub(crate) struct Case {
    pub(crate) request: Json,
}

#[allow(dead_code, reason = "generated expressions are in no golden file")]
impl Case {
    /// The lines of a golden file. A line that is marked so has the surroundings of the one before.
    pub(crate) fn read(golden: &str) -> Vec<Self> {
        let mut cases: Vec<Self> = Vec::new();
        for line in golden.lines().filter(|line| !line.starts_with("//")) {
            let mut request: Json = serde_json::from_str(line).expect("a line of JSON");
            if request.get("same").is_some() {
                let before = &cases.last().expect("a line before").request;
                for name in ["types", "sizes", "activation", "schema", "authorizer"] {
                    if let Some(value) = before.get(name) {
                        request[name] = value.clone();
                    }
                }
            }
            cases.push(Self { request });
        }
        cases
    }

    pub(crate) fn expression(&self) -> &str {
        self.request["expression"].as_str().expect("an expression")
    }

    pub(crate) fn environment(&self) -> Option<&str> {
        self.request.get("environment").and_then(Json::as_str)
    }

    pub(crate) fn version(&self) -> Option<&str> {
        self.request.get("version").and_then(Json::as_str)
    }
}

/// What was said of a case, in the order in which it is compared.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) refused: Option<String>,
    pub(crate) declared: Option<String>,
    pub(crate) estimate: Option<Range>,
    pub(crate) actual: Option<u64>,
    pub(crate) result: Option<String>,
    pub(crate) error: Option<String>,
}

/// Our answer in an environment of these libraries.
pub(crate) fn answer(case: &Case, libraries: Vec<Library>, costs: CallCosts) -> Given {
    let request = &case.request;
    let mut environment = Environment::new(libraries, costs);
    let mut names: Vec<String> = Vec::new();
    for (name, declared) in request.get("types").and_then(Json::as_object).into_iter().flatten() {
        environment.declare_type(name, parse_type(declared.as_str().expect("a type")));
        names.push(name.clone());
    }
    let expression = match environment.check(case.expression()) {
        Ok(expression) => expression,
        Err(issues) => return Given { refused: Some(issues.to_string()), ..Given::default() },
    };
    let sizes = Sizes(request.get("sizes"));
    let mut given = Given {
        declared: Some(expression.result_type().evaluated()),
        estimate: Some(expression.estimate(&sizes)),
        ..Given::default()
    };
    let program = match expression.program() {
        Ok(program) => program,
        Err(error) => {
            given.error = Some(format!("program instantiation failed: {error}"));
            return given;
        }
    };
    let mut variables = Vec::new();
    for name in &names {
        variables.push(match request.get("authorizer") {
            Some(table) if name == "authorizer" => Some(authorizer_value(Table::new(table), user(table))),
            _ => request.get("activation").and_then(|activation| activation.get(name)).map(decode),
        });
    }
    let cost = request.get("budget").and_then(Json::as_u64).unwrap_or(1_000_000);
    let evaluation = program.evaluate(&variables, Budget { cost, ..Budget::default() });
    given.actual = Some(evaluation.cost);
    match evaluation.result {
        Ok(value) => given.result = Some(canonical(&value)),
        Err(error) => given.error = Some(error.to_string()),
    }
    given
}

/// Where answers differ.
#[derive(Default)]
pub(crate) struct Failures {
    text: String,
    failed: usize,
    compared: usize,
}

#[allow(dead_code, reason = "generated expressions have no answers of their own")]
impl Failures {
    /// Compares our answer with the case's.
    pub(crate) fn compare(&mut self, case: &Case, given: &Given) {
        self.compare_with(case, &case.request["answer"], given);
    }

    /// Holds that our answer still is another one than the case's.
    pub(crate) fn differs(&mut self, case: &Case, given: &Given) {
        let mut apart = Self::default();
        apart.compare(case, given);
        self.compared += 1;
        if apart.failed == 0 {
            self.failed += 1;
            let _ = writeln!(self.text, "{}\n  does not differ any more", case.expression());
        }
    }

    /// Compares our answer with another one.
    pub(crate) fn compare_with(&mut self, case: &Case, wanted: &Json, given: &Given) {
        self.compared += 1;
        let text = |name: &str| wanted.get(name).and_then(Json::as_str).map(str::to_owned);
        let number = |name: &str| wanted.get(name).and_then(Json::as_u64);
        let estimate = number("max").map(|max| Range::new(number("min").unwrap_or(0), max));
        let mut differences = Vec::new();
        let mut differ = |what: &str, ours: String, theirs: String| {
            if ours != theirs {
                differences.push(format!("  {what}: {ours}\n     want: {theirs}"));
            }
        };
        differ("refused", shown(given.refused.as_ref()), shown(text("refused").as_ref()));
        differ("type", shown(given.declared.as_ref()), shown(text("type").as_ref()));
        differ("estimate", format!("{:?}", given.estimate), format!("{estimate:?}"));
        if wanted.get("varies").is_none() {
            differ("result", shown(given.result.as_ref()), shown(text("result").as_ref()));
            differ("error", shown(given.error.as_ref()), shown(text("error").as_ref()));
            if let Some(actual) = number("actual") {
                differ("cost", format!("{:?}", given.actual), format!("{:?}", Some(actual)));
            }
        }
        if !differences.is_empty() {
            self.failed += 1;
            let _ = writeln!(self.text, "{}\n{}", case.expression(), differences.join("\n"));
        }
    }

    /// What differs, if something does.
    pub(crate) fn first(self) -> Option<String> {
        (self.failed > 0).then_some(self.text)
    }

    /// Fails when there were any.
    pub(crate) fn report(self) {
        assert!(self.failed == 0, "{} of {} differ:\n{}", self.failed, self.compared, self.text);
        assert!(self.compared > 0, "nothing was compared");
    }
}

fn shown(text: Option<&String>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| format!("{text:?}"))
}

struct Sizes<'a>(Option<&'a Json>);

impl SizeEstimator for Sizes<'_> {
    fn size(&self, path: &[String], _: &Type) -> Option<Range> {
        let size = self.0?.get(path.join("."))?.as_u64()?;
        Some(Range::new(0, size))
    }
}

/// A type like `list(map(string, int))`.
fn parse_type(text: &str) -> Type {
    let text = text.trim();
    match text {
        "dyn" | "any" => return Type::Dyn,
        "bool" => return Type::Bool,
        "int" => return Type::Int,
        "uint" => return Type::Uint,
        "double" => return Type::Double,
        "string" => return Type::String,
        "bytes" => return Type::Bytes,
        "null" => return Type::Null,
        "timestamp" => return Type::Timestamp,
        "duration" => return Type::Duration,
        "type" => return Type::Type(None),
        "quantity" => return Type::object("kubernetes.Quantity"),
        "authorizer" => return authorizer_type(),
        "resourceCheck" => return resource_check_type(),
        _ => {}
    }
    let (name, rest) = text.split_once('(').unwrap_or_else(|| panic!("unknown type {text}"));
    let inner = rest.strip_suffix(')').expect("closed");
    let mut parameters = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (place, letter) in inner.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parameters.push(parse_type(&inner[start..place]));
                start = place + 1;
            }
            _ => {}
        }
    }
    parameters.push(parse_type(&inner[start..]));
    match (name, &parameters[..]) {
        ("list", [element]) => Type::list(element.clone()),
        ("map", [key, value]) => Type::map(key.clone(), value.clone()),
        ("optional", [inner]) => Type::optional(inner.clone()),
        _ => panic!("unknown type {text}"),
    }
}

/// A value of the request; see `decode` in `peers/go/cel/values.go`.
fn decode(json: &Json) -> Value<'static> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Double(number.as_f64().expect("a number")),
        },
        Json::String(text) => Value::string(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(decode).collect()),
        Json::Object(members) => {
            if let Some((tag, content)) = members.iter().next()
                && members.len() == 1
                && tag.starts_with('$')
            {
                return decode_tagged(tag, content);
            }
            let entries = members.iter().map(|(name, value)| (Value::string(name.as_str()), decode(value)));
            map_of(entries)
        }
    }
}

fn map_of(entries: impl Iterator<Item = (Value<'static>, Value<'static>)>) -> Value<'static> {
    let mut made = Entries::default();
    for (key, value) in entries {
        made.insert(key, value).expect("a new key");
    }
    Value::Map(Map::new(made))
}

fn decode_tagged(tag: &str, content: &Json) -> Value<'static> {
    let text = content.as_str().unwrap_or_default();
    match tag {
        "$uint" => Value::Uint(text.parse().expect("a number")),
        "$double" => Value::Double(text.replace("Inf", "inf").parse().expect("a number")),
        "$bytes" => Value::bytes(base64::engine::general_purpose::STANDARD.decode(text).expect("base64")),
        "$timestamp" => Value::Timestamp(times::parse_rfc3339(text).expect("a time")),
        "$duration" => Value::Duration(times::parse_duration(text).expect("a duration")),
        "$quantity" => {
            Value::opaque(Quantity::new(quantity::Quantity::parse(text).map_err(|_| ()).expect("a quantity")))
        }
        "$map" => map_of(
            content.as_array().expect("entries").iter().map(|entry| (decode(&entry[0]), decode(&entry[1]))),
        ),
        _ => panic!("unknown tag {tag}"),
    }
}

/// The text that `canonical` in `peers/go/cel/values.go` makes of a value.
pub(crate) fn canonical(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => format!("{number}u"),
        Value::Double(number) if number.is_nan() => "NaN".to_owned(),
        Value::Double(number) if number.is_infinite() => {
            if *number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        }
        Value::Double(number) => format!("{number:e}"),
        Value::String(text) => serde_json::to_string(&**text).expect("text"),
        Value::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("b\"{digits}\"")
        }
        Value::Timestamp(instant) => {
            let mut instant = *instant;
            instant.offset = 0;
            format!("timestamp({})", instant.rfc3339())
        }
        Value::Duration(nanoseconds) => format!("duration({nanoseconds}ns)"),
        Value::Type(named) => format!("type({})", named.name()),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(inner)) => format!("optional.of({})", canonical(inner)),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(|item| canonical(&item.expect("fits"))).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entries = map.entries().expect("fits");
            let mut entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", canonical(key), canonical(value)))
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Object(object) => format!("<{}>", object.type_of().name()),
        Value::Opaque(inner) => {
            let name = inner.type_of().name().to_owned();
            None.or_else(|| {
                value.downcast::<Quantity>().map(|quantity| format!("quantity({})", quantity.number()))
            })
            .or_else(|| value.downcast::<Url>().map(|url| format!("url({url})")))
            .or_else(|| value.downcast::<Ip>().map(|ip| format!("ip({ip})")))
            .or_else(|| value.downcast::<Cidr>().map(|cidr| format!("cidr({cidr})")))
            .or_else(|| value.downcast::<Semver>().map(|version| format!("semver({version})")))
            .or_else(|| value.downcast::<Format>().map(|format| format!("format({})", format.name())))
            .unwrap_or_else(|| format!("<{name}>"))
        }
    }
}

/// The request's authorizer: the first row that has nothing else than what is asked.
pub(crate) struct Table {
    rows: Vec<Json>,
}

impl Table {
    pub(crate) fn new(table: &Json) -> Arc<Self> {
        Arc::new(Self { rows: table["rows"].as_array().cloned().unwrap_or_default() })
    }
}

pub(crate) fn user(table: &Json) -> User {
    let groups = table["groups"].as_array().into_iter().flatten();
    User {
        name: table["user"].as_str().expect("a user").to_owned(),
        groups: groups.map(|group| group.as_str().expect("a group").to_owned()).collect(),
        ..User::default()
    }
}

impl Authorizer for Table {
    fn authorize(&self, user: &User, asked: &Asked) -> Verdict {
        let has = attributes(user, asked);
        let row = self.rows.iter().find(|row| {
            let wanted = row["when"].as_object().into_iter().flatten();
            let empty = String::new();
            wanted
                .into_iter()
                .all(|(name, value)| has.get(&**name).unwrap_or(&empty) == value.as_str().expect("text"))
        });
        let Some(row) = row else { return Verdict::default() };
        Verdict {
            allowed: row["decision"] == "allow",
            reason: row["reason"].as_str().unwrap_or_default().to_owned(),
            error: row["error"].as_str().map(str::to_owned),
        }
    }
}

fn attributes(user: &User, asked: &Asked) -> BTreeMap<&'static str, String> {
    let mut has = BTreeMap::from([("user", user.name.clone()), ("groups", user.groups.join(","))]);
    match asked {
        Asked::Path { path, verb } => has.extend([("path", path.clone()), ("verb", verb.clone())]),
        Asked::Resource(
            Resource { group, resource, subresource, namespace, name, field_selector, label_selector },
            verb,
        ) => {
            has.extend([
                ("verb", verb.clone()),
                ("version", "*".to_owned()),
                ("group", group.clone()),
                ("resource", resource.clone()),
                ("subresource", subresource.clone()),
                ("namespace", namespace.clone()),
                ("name", name.clone()),
                ("fieldSelector", fields(field_selector)),
                ("labelSelector", labels(label_selector)),
            ]);
        }
    }
    has
}

/// The table's forms of the few selectors that the cases have.
fn fields(selector: &str) -> String {
    match FieldSelector::parse(selector) {
        Err(error) => format!("error: {error}"),
        Ok(_) => selector.replace('=', " = "),
    }
}

fn labels(selector: &str) -> String {
    match LabelSelector::parse(selector) {
        Err(error) => format!("error: {error}"),
        Ok(_) => selector.to_owned(),
    }
}
