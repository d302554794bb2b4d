//! Random lives of objects, applied to and updated by several managers, beside the original.
//!
//! After each write the object with its managed fields, or the error, must be the same. The fixed seeds
//! run every time; `COFFER_SEED` names another first one, `COFFER_SEQUENCES` how many.

use std::collections::BTreeMap;

use coffer_types::codec::json;
use coffer_types::fields::{
    Apply, ApplyError, OneVersion, Schema, Set, VersionError, Versions, Write, numbers, update,
};
use coffer_types::meta::Meta as _;
use coffer_types::{Value, schema};
use serde_json::{Value as Json, json};

use crate::definition::{Kind, definition, kinds, metadata};
use crate::generate::{Random, Shape, double, mixed, spoil};
use crate::original::Original;

/// How many sequences are the same in every run.
const FIXED: u64 = 500;
/// How many new ones each run tries.
const FRESH: u64 = 40;

#[test]
fn structured_merge_diff_random_sequences_are_as_by_the_original() {
    let mut original = Original::start("apply");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut counts = Counts::default();
    if let Some(seed) = number("COFFER_SEED") {
        for seed in seed..seed + number("COFFER_SEQUENCES").unwrap_or(1) {
            play(seed, &mut original, &mut counts);
        }
    } else {
        let fresh = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let fresh = fresh.map_or(1, |now| now.as_secs());
        let fresh = 1_000_000 + fresh % 1_000_000_000;
        for seed in (0..FIXED).chain(fresh..fresh + FRESH) {
            play(seed, &mut original, &mut counts);
        }
        // Sequences that never conflict or fail would show nothing.
        assert!(counts.conflicts > 200 && counts.failures > 100 && counts.applied > 800, "{counts:?}");
    }
}

#[derive(Debug, Default)]
struct Counts {
    applied: usize,
    updated: usize,
    conflicts: usize,
    failures: usize,
}

/// One write of a sequence.
struct Step {
    api_version: &'static str,
    subresource: &'static str,
    manager: String,
    apply: bool,
    force: bool,
    time: String,
    object: Json,
}

fn play(seed: u64, original: &mut Original, counts: &mut Counts) {
    let mut random = Random(seed);
    let kinds = kinds();
    let kind = random.pick(&kinds);
    let is_custom = kind.kind == "Widget";
    let mut turned = false;
    if is_custom {
        original.ask(&json!({"definition": definition(turned)}));
    }
    let mut live: Option<Value> = None;
    let many = random.percent(15);
    let steps = if many { 18 } else { 4 + random.below(7) };
    for number in 0..steps {
        if is_custom && random.percent(8) {
            turned = !turned;
            original.ask(&json!({"definition": definition(turned)}));
        }
        let step = step(kind, live.as_ref(), number, many, &mut random);
        if let Some(live) = &mut live {
            live.set_type(step.api_version, kind.kind);
            if random.percent(4) {
                live.remove(&["metadata", "managedFields"]);
            }
        }
        let definition = is_custom.then(|| Definition::new(turned, &step));
        let before = live.as_ref().map_or(Json::Null, |live| to_json(kind, live));
        let request = json!({"apiVersion": step.api_version, "kind": kind.kind, "subresource": step.subresource,
            "manager": step.manager, "apply": step.apply, "force": step.force, "time": step.time,
            "live": before, "object": step.object});
        let expected = original.ask(&request);
        let outcome = write(kind, definition.as_ref(), live.as_ref(), &step);
        let answer = match &outcome {
            Ok(object) => json!({"object": to_json(kind, object)}),
            Err(error) => refusal(error),
        };
        let expected = without_values(expected);
        let answer = without_values(answer);
        assert!(
            answer == expected,
            "step {number} of COFFER_SEED={seed}: {}\nthe original: {}\nhere: {}",
            pretty(&request),
            pretty(&expected),
            pretty(&answer)
        );
        match (outcome, step.apply) {
            (Ok(mut object), apply) => {
                object.set_meta_str("uid", "stored");
                object.set_meta_str("name", "o");
                live = Some(object);
                if apply { counts.applied += 1 } else { counts.updated += 1 }
            }
            (Err(ApplyError::Conflicts(_)), _) => counts.conflicts += 1,
            (Err(_), _) => counts.failures += 1,
        }
    }
}

fn step(kind: &Kind, live: Option<&Value>, number: usize, many: bool, random: &mut Random) -> Step {
    let status = kind.status.is_some() && live.is_some() && random.percent(20);
    let apply = random.percent(if many { 25 } else { 60 });
    let custom_version = if random.percent(15) { "example.com/v2" } else { kind.api_version };
    let api_version = if kind.kind == "Widget" { custom_version } else { kind.api_version };
    let manager = match (many, apply) {
        (true, false) => format!("u{}", random.below(16)),
        _ => (*random.pick(&["a", "b", "kubectl"])).to_owned(),
    };
    let mut object = match (&kind.status, status) {
        (Some(shape), true) => json!({"status": shape.generate(random)}),
        _ => kind.body.generate(random),
    };
    let mut meta = if status { json!({}) } else { Shape::generate(&metadata(), random) };
    meta["name"] = json!("o");
    object["metadata"] = meta;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind.kind);
    let object = if apply {
        applied(kind, object, live, random)
    } else {
        updated(kind, object, live, api_version, random)
    };
    Step {
        api_version,
        subresource: if status { "status" } else { "" },
        manager,
        apply,
        force: apply && random.percent(30),
        time: format!("2001-01-01T00:{:02}:{:02}Z", number / 60, number % 60),
        object,
    }
}

/// What a manager applies, as text.
fn applied(kind: &Kind, mut object: Json, live: Option<&Value>, random: &mut Random) -> Json {
    if let Some(live) = live
        && random.percent(20)
    {
        // What kubectl has said before, in part still true.
        let mut said = mixed(&object, &to_json(kind, live), random);
        for gone in ["managedFields", "uid", "annotations"] {
            said["metadata"].as_object_mut().expect("one").remove(gone);
        }
        said["apiVersion"] = object["apiVersion"].clone();
        object = said.clone();
        if random.percent(30) {
            object["metadata"]["annotations"] = json!({ANNOTATION: format!("{said}\n")});
        }
    }
    if random.percent(14) {
        spoil(&mut object, random);
    } else if random.percent(2) {
        object["metadata"]["managedFields"] = json!([]);
    } else if random.percent(2) {
        object["apiVersion"] = json!("v7");
    }
    Json::String(object.to_string())
}

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What a manager puts in the place of the live object.
fn updated(kind: &Kind, object: Json, live: Option<&Value>, api_version: &str, random: &mut Random) -> Json {
    let Some(live) = live else { return object };
    let live = to_json(kind, live);
    let mut new = if random.percent(8) { live.clone() } else { mixed(&live, &object, random) };
    for (name, value) in [("apiVersion", json!(api_version)), ("kind", json!(kind.kind))] {
        new[name] = value;
    }
    // What is stored may have come in before a list was keyed, or by another schema.
    match random.below(16) {
        0 => double(&mut new, random),
        1 if kind.kind == "Widget" => spoil(&mut new["spec"], random),
        _ => {}
    }
    if !new["metadata"].is_object() {
        new["metadata"] = json!({});
    }
    new["metadata"]["uid"] = json!("stored");
    new["metadata"]["name"] = json!("o");
    if random.percent(15) {
        let mut said = new.clone();
        for gone in ["managedFields", "uid", "annotations"] {
            said["metadata"].as_object_mut().expect("one").remove(gone);
        }
        if !new["metadata"]["annotations"].is_object() {
            new["metadata"]["annotations"] = json!({});
        }
        new["metadata"]["annotations"][ANNOTATION] = json!(said.to_string());
    }
    let fields = live["metadata"]["managedFields"].clone();
    let fields = match random.below(40) {
        0 => json!([]),
        1 => json!([{}]),
        2 => json!([{"manager": "bad", "operation": "None", "apiVersion": "v1"}]),
        3 => json!([{"manager": "bad", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"bad": {}}}]),
        4 | 5 => Json::Null,
        _ => fields,
    };
    let metadata = new["metadata"].as_object_mut().expect("one");
    if fields.is_null() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), fields);
    }
    new
}

/// The versions of Widgets.
struct Definition {
    schemas: BTreeMap<String, Value>,
    api_version: &'static str,
    reset: Set,
}

impl Definition {
    fn new(turned: bool, step: &Step) -> Self {
        let definition = tree(&definition(turned));
        let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
        let schemas = versions.iter().map(|version| {
            let schema = version.at(&["schema", "openAPIV3Schema"]).expect("has one");
            (format!("example.com/{}", version.str_at(&["name"])), schema.clone())
        });
        let reset = match step.subresource {
            "" => Set::of_fields(&[&["status"]]),
            _ => Set::of_fields(&[&["metadata"], &["spec"]]),
        };
        Self { schemas: schemas.collect(), api_version: step.api_version, reset }
    }
}

impl Versions for Definition {
    fn schema(&self, api_version: &str) -> Result<Schema<'_>, VersionError> {
        let unknown = || format!("request to convert CR to an invalid group/version: {api_version}");
        let schema = self.schemas.get(api_version);
        schema.map(Schema::CustomResource).ok_or_else(|| VersionError::Failed(unknown()))
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let mut object = object.clone();
        object.set(&["apiVersion"], api_version);
        Ok(object)
    }

    fn reset(&self, api_version: &str) -> Option<&Set> {
        (api_version == self.api_version).then_some(&self.reset)
    }
}

fn write(
    kind: &Kind,
    definition: Option<&Definition>,
    live: Option<&Value>,
    step: &Step,
) -> Result<Value, ApplyError> {
    let message = schema::lookup("", "v1", kind.kind).map(|kind| kind.message);
    let built_in = message.map(|message| OneVersion {
        api_version: "v1",
        schema: Schema::Message(message),
        reset: match (kind.kind, step.subresource) {
            ("Pod", "") => Set::of_fields(&[&["status"]]),
            ("Pod", _) => Set::of_fields(&[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ]),
            _ => Set::default(),
        },
    });
    let versions: &dyn Versions = match (&built_in, definition) {
        (Some(one), _) => one,
        (None, Some(definition)) => definition,
        (None, None) => panic!("no schema of {}", kind.kind),
    };
    let write = Write {
        versions,
        api_version: step.api_version,
        subresource: step.subresource,
        manager: &step.manager,
        time: &step.time,
    };
    if !step.apply {
        let mut object = decoded(kind, &step.object);
        update(live.unwrap_or(&Value::object()), &mut object, &write);
        return Ok(object);
    }
    let text = step.object.as_str().expect("text");
    let mut applied = coffer_types::codec::yaml::decode_untyped(text.as_bytes()).expect("YAML").object;
    numbers::read_numbers(&mut applied);
    let request = Apply { write, kind: kind.kind, force: step.force };
    let mut outcome = request.run(live, &applied)?;
    let mut object = match outcome.object.take() {
        Some(tree) => match message {
            Some(message) => json::retype(message, &tree).map(|decoded| decoded.object).map_err(|error| {
                ApplyError::Failed(format!("failed to convert new object (here): {error}"))
            })?,
            None => tree,
        },
        None => live.cloned().unwrap_or_default(),
    };
    outcome.finish(&mut object);
    Ok(object)
}

fn tree(value: &Json) -> Value {
    json::decode_untyped(value.to_string().as_bytes()).expect("JSON").object
}

fn decoded(kind: &Kind, object: &Json) -> Value {
    let Some(found) = schema::lookup("", "v1", kind.kind) else { return tree(object) };
    let text = object.to_string();
    json::decode(found.message, text.as_bytes()).expect("well-formed").object
}

fn to_json(kind: &Kind, object: &Value) -> Json {
    let mut bytes = Vec::new();
    match schema::lookup("", "v1", kind.kind) {
        Some(kind) => json::encode(kind.message, object, &mut bytes),
        None => json::encode_untyped(object, &mut bytes),
    }
    serde_json::from_slice(&bytes).expect("JSON")
}

fn refusal(error: &ApplyError) -> Json {
    match error {
        ApplyError::BadRequest(text) => json!({"error": text, "code": 400}),
        ApplyError::Failed(text) => json!({"error": text}),
        ApplyError::Conflicts(conflicts) => {
            let mut causes: Vec<(String, String)> =
                conflicts.0.iter().map(|conflict| (conflict.message(), conflict.field())).collect();
            causes.sort_by(|left, right| left.0.cmp(&right.0));
            let causes: Vec<Json> = causes
                .into_iter()
                .map(|(message, field)| json!({"reason": "FieldManagerConflict", "message": message, "field": field}))
                .collect();
            json!({"error": error.to_string(), "code": 409, "causes": causes})
        }
    }
}

/// An answer without the values that the original puts into its errors, and its lines in order.
fn without_values(mut answer: Json) -> Json {
    let Some(text) = answer["error"].as_str() else { return answer };
    // What does not decode is told in the decoder's words, which are the codec's business.
    if text.contains("failed to convert new object (") && !text.contains("to smd typed") {
        return json!({"error": "failed to convert new object"});
    }
    let cut = |line: &str| line.split(", got ").next().unwrap_or_default().to_owned();
    let mut known: Vec<String> = text.lines().map(cut).collect();
    if known.first().is_some_and(|first| first.ends_with("errors:")) {
        // Upstream walks maps.
        known[1..].sort();
    }
    answer["error"] = json!(known.join("\n"));
    answer
}

fn pretty(value: &Json) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}
