//! The operations of each resource: paths, parameters, bodies and answers.

use serde_json::{Map, Value, json};

use super::schemas::{Components, add_kind, reference};
use crate::negotiate::Offers;
use crate::resources::Resource;
use crate::resources::info::ResourceInfo;

/// Parameters by name, in path or query, and their type.
type Parameter = (&'static str, &'static str, &'static str);

const NAME: Parameter = ("name", "path", "string");
const NAMESPACE: Parameter = ("namespace", "path", "string");
const PRETTY: Parameter = ("pretty", "query", "string");

const WRITE: &[Parameter] = &[
    ("dryRun", "query", "string"),
    ("fieldManager", "query", "string"),
    ("fieldValidation", "query", "string"),
];
const FORCE: Parameter = ("force", "query", "boolean");

const DELETE: &[Parameter] = &[
    ("dryRun", "query", "string"),
    ("gracePeriodSeconds", "query", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "query", "boolean"),
    ("orphanDependents", "query", "boolean"),
    ("propagationPolicy", "query", "string"),
];

const RESOURCE_VERSION: Parameter = ("resourceVersion", "query", "string");

/// What a list takes, and the deletion of a collection too.
const SELECT: &[Parameter] = &[
    ("continue", "query", "string"),
    ("fieldSelector", "query", "string"),
    ("labelSelector", "query", "string"),
    ("limit", "query", "integer"),
    RESOURCE_VERSION,
    ("resourceVersionMatch", "query", "string"),
    ("sendInitialEvents", "query", "boolean"),
    ("timeoutSeconds", "query", "integer"),
];
const WATCH: &[Parameter] = &[("allowWatchBookmarks", "query", "boolean"), ("watch", "query", "boolean")];

/// The kinds of meta.k8s.io that operations speak.
#[derive(Clone)]
struct Spoken {
    object: String,
    list: String,
    status: String,
    options: String,
    patch: String,
}

/// Every path of a resource, with its subresources.
pub(super) fn add(
    resource: &Resource,
    (object, list): (String, String),
    components: &mut Components,
    paths: &mut Map<String, Value>,
) {
    let info = &resource.info;
    let meta =
        |kind: &str, components: &mut Components| add_kind("", "v1", kind, components).unwrap_or_default();
    const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
    if info.verbs.contains(&"patch") {
        components.entry(PATCH.to_owned()).or_insert_with(|| json!({ "type": "object" }));
    }
    let (mut status, mut options) = (String::new(), String::new());
    if info.verbs.contains(&"delete") {
        status = meta("Status", components);
        options = meta("DeleteOptions", components);
    }
    let spoken = Spoken { object, list, status, options, patch: PATCH.to_owned() };
    let root = match info.group.as_str() {
        "" => format!("/api/{}", info.version),
        group => format!("/apis/{group}/{}", info.version),
    };
    let plural = &info.plural;
    let collection = match info.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{plural}"),
        false => format!("{root}/{plural}"),
    };
    let operations =
        |target: &Target<'_>, spoken: &Spoken, verbs: &[&str], paths: &mut Map<String, Value>| {
            let found: Vec<(&str, Operation)> = VERBS
                .iter()
                .filter(|(verb, _, of)| *of == target.of && verbs.contains(verb))
                .map(|(verb, method, _)| (*method, operation(info, target, spoken, verb)))
                .collect();
            if !found.is_empty() {
                paths.insert(target.path.clone(), hoisted(found));
            }
        };
    let verbs: Vec<&str> = info.verbs.clone();
    let target =
        |path: String, of, subresource| Target { path, of, subresource, everywhere: false, body: None };
    operations(&target(collection.clone(), Of::Collection, ""), &spoken, &verbs, paths);
    operations(&target(format!("{collection}/{{name}}"), Of::Object, ""), &spoken, &verbs, paths);
    if info.namespaced && verbs.contains(&"list") {
        let everywhere =
            Target { everywhere: true, ..target(format!("{root}/{plural}"), Of::Collection, "") };
        operations(&everywhere, &spoken, &["list"], paths);
    }
    for subresource in &info.subresources {
        let group = if subresource.version.is_empty() { &info.group } else { &subresource.group };
        let version = if subresource.version.is_empty() { &info.version } else { &subresource.version };
        let own = subresource.kind == info.kind && subresource.version.is_empty();
        let object = match own {
            true => spoken.object.clone(),
            false => add_kind(group, version, &subresource.kind, components).unwrap_or_default(),
        };
        let of = if subresource.verbs.contains(&"create") { Of::Collection } else { Of::Object };
        let path = format!("{collection}/{{name}}/{}", subresource.name);
        let body = (!own).then(|| (group.clone(), version.clone(), subresource.kind.clone()));
        let target = Target { path, of, subresource: &subresource.name, everywhere: false, body };
        operations(&target, &Spoken { object, ..spoken.clone() }, &subresource.verbs, paths);
    }
}

/// What a path stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Collection,
    Object,
}

struct Target<'r> {
    path: String,
    of: Of,
    subresource: &'r str,
    /// The collection of all namespaces.
    everywhere: bool,
    /// Group, version and kind of the body when they are not the resource's.
    body: Option<(String, String, String)>,
}

/// Verb, method, and what it is done to.
const VERBS: &[(&str, &str, Of)] = &[
    ("list", "get", Of::Collection),
    ("create", "post", Of::Collection),
    ("deletecollection", "delete", Of::Collection),
    ("get", "get", Of::Object),
    ("update", "put", Of::Object),
    ("patch", "patch", Of::Object),
    ("delete", "delete", Of::Object),
];

struct Operation {
    parameters: Vec<Parameter>,
    rest: Map<String, Value>,
}

/// A path: parameters that all its operations take stand beside them.
fn hoisted(operations: Vec<(&str, Operation)>) -> Value {
    let mut common: Vec<Parameter> = operations
        .first()
        .map(|(_, first)| first.parameters.iter())
        .into_iter()
        .flatten()
        .filter(|parameter| operations.iter().all(|(_, other)| other.parameters.contains(parameter)))
        .copied()
        .collect();
    common.sort_unstable();
    let mut path = Map::new();
    for (method, Operation { parameters, mut rest }) in operations {
        let mut own: Vec<Parameter> =
            parameters.into_iter().filter(|parameter| !common.contains(parameter)).collect();
        own.sort_unstable();
        if !own.is_empty() {
            rest.insert("parameters".into(), described(&own));
        }
        path.insert(method.to_owned(), rest.into());
    }
    path.insert("parameters".into(), described(&common));
    path.into()
}

fn described(parameters: &[Parameter]) -> Value {
    let one = |(name, place, kind): &Parameter| {
        let mut parameter =
            json!({ "name": name, "in": place, "schema": { "type": kind, "uniqueItems": true } });
        if *place == "path"
            && let Value::Object(members) = &mut parameter
        {
            members.insert("required".into(), true.into());
        }
        parameter
    };
    parameters.iter().map(one).collect()
}

fn operation(info: &ResourceInfo, target: &Target<'_>, spoken: &Spoken, verb: &str) -> Operation {
    let custom = info.behaviour.offers == Offers::Custom;
    let mut parameters = vec![PRETTY];
    if info.namespaced && !target.everywhere {
        parameters.push(NAMESPACE);
    }
    if target.of == Of::Object || !target.subresource.is_empty() {
        parameters.push(NAME);
    }
    match verb {
        "create" | "update" => parameters.extend(WRITE),
        "patch" => parameters.extend(WRITE.iter().chain([&FORCE])),
        "delete" => parameters.extend(DELETE),
        "list" => parameters.extend(SELECT.iter().chain(WATCH)),
        "deletecollection" if custom => parameters.extend(SELECT.iter().chain(WATCH)),
        "deletecollection" => parameters.extend(SELECT.iter().chain(DELETE)),
        "get" if custom => parameters.push(RESOURCE_VERSION),
        _ => {}
    }
    let answers: &[&str] = match verb {
        "create" => &["200", "201", "202"],
        "update" => &["200", "201"],
        "patch" if custom => &["200"],
        "patch" => &["200", "201"],
        "delete" => &["200", "202"],
        _ => &["200"],
    };
    let answer = match verb {
        "list" => &spoken.list,
        "delete" if info.behaviour.returns_deleted => &spoken.object,
        "delete" | "deletecollection" => &spoken.status,
        _ => &spoken.object,
    };
    let mut media = vec!["application/json", "application/yaml"];
    if !custom {
        media.push("application/vnd.kubernetes.protobuf");
        if verb == "list" {
            media.extend([
                "application/json;stream=watch",
                "application/vnd.kubernetes.protobuf;stream=watch",
            ]);
        }
    }
    let mut responses = Map::new();
    for code in answers {
        let description = match *code {
            "201" => "Created",
            "202" => "Accepted",
            _ => "OK",
        };
        responses.insert(
            (*code).to_owned(),
            json!({ "description": description, "content": content(&media, answer) }),
        );
    }
    responses.insert("401".into(), json!({ "description": "Unauthorized" }));
    let action = match verb {
        "create" => "post",
        "update" => "put",
        other => other,
    };
    let (group, version, kind) = match &target.body {
        // Those of custom resources are named by the resource's kind, whatever they speak.
        Some((group, version, kind)) if !custom => (group, version, kind),
        _ => (&info.group, &info.version, &info.kind),
    };
    let mut rest = Map::new();
    rest.insert("tags".into(), json!([format!("{}_{}", camel(&info.group, false), info.version)]));
    rest.insert("operationId".into(), operation_id(info, target, verb).into());
    rest.insert("responses".into(), responses.into());
    rest.insert("x-kubernetes-action".into(), action.into());
    rest.insert(
        "x-kubernetes-group-version-kind".into(),
        json!({ "group": group, "version": version, "kind": kind }),
    );
    let any: &[&str] = if custom { &["application/json", "application/yaml"] } else { &["*/*"] };
    let body = match verb {
        "create" | "update" => Some(json!({ "content": content(any, &spoken.object), "required": true })),
        "delete" | "deletecollection" if !(custom && verb == "deletecollection") => {
            Some(json!({ "content": content(any, &spoken.options) }))
        }
        "patch" => {
            let mut media = vec![
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ];
            if !custom {
                media.push("application/strategic-merge-patch+json");
            }
            Some(json!({ "content": content(&media, &spoken.patch), "required": true }))
        }
        _ => None,
    };
    if let Some(body) = body {
        rest.insert("requestBody".into(), body);
    }
    Operation { parameters, rest }
}

fn content(media: &[&str], schema: &str) -> Value {
    let one = |media: &&str| ((*media).to_owned(), json!({ "schema": reference(schema) }));
    media.iter().map(one).collect::<Map<_, _>>().into()
}

/// `readCoreV1NamespacedSecretStatus`.
fn operation_id(info: &ResourceInfo, target: &Target<'_>, verb: &str) -> String {
    let (action, collection) = match verb {
        "get" => ("read", ""),
        "update" => ("replace", ""),
        "deletecollection" => ("delete", "Collection"),
        other => (other, ""),
    };
    let group = camel(&info.group, true);
    let version = capital(&info.version);
    let namespaced = if info.namespaced && !target.everywhere { "Namespaced" } else { "" };
    let everywhere = if target.everywhere { "ForAllNamespaces" } else { "" };
    let subresource = capital(target.subresource);
    format!("{action}{group}{version}{collection}{namespaced}{}{subresource}{everywhere}", info.kind)
}

/// `RbacAuthorization` for `rbac.authorization.k8s.io`, `ExternalSecretsIo` for `external-secrets.io`.
fn camel(group: &str, first: bool) -> String {
    let name = match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    };
    let mut parts = name.split(['.', '-']);
    let head = parts.next().unwrap_or_default();
    let head = if first { capital(head) } else { head.to_owned() };
    parts.map(capital).fold(head, |text, part| text + &part)
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + rest.as_str())
}
