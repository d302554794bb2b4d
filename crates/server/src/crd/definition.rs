//! A CustomResourceDefinition itself: its defaults and its rules.
//!
//! `metadata` beyond the name is checked by the rules of all objects, not here.

use std::collections::BTreeSet;

use coffer_lang::cel::limits::PER_OBJECT;
use coffer_types::names::{is_dns1035_label, is_dns1123_subdomain};
use coffer_types::validation::field::{FieldError, FieldErrors, Path, Shown, go_json};
use coffer_types::{Map, Value};

use super::names::is_established;
use super::schema::{Additional, Schema};
use super::{formats, rule, rule_checks, schema_rules, selectable, structural};
use crate::webhook;

/// Annotation that definitions in Kubernetes' own groups must have.
const APPROVED: &str = "api-approved.kubernetes.io";
/// How many fields of a version may be selected by.
const SELECTABLE_FIELDS: usize = 8;
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Fills in what a definition leaves out.
pub fn apply_defaults(definition: &mut Value) {
    let kind = definition.str_at(&["spec", "names", "kind"]).to_owned();
    let names = definition.object_at_mut(&["spec", "names"]);
    let is_absent =
        |names: &Map, name: &str| names.get(name).and_then(Value::as_str).is_none_or(str::is_empty);
    if is_absent(names, "singular") && !kind.is_empty() {
        names.insert("singular".to_owned(), kind.to_lowercase().into());
    }
    if is_absent(names, "listKind") && !kind.is_empty() {
        names.insert("listKind".to_owned(), format!("{kind}List").into());
    }
    let spec = definition.object_at_mut(&["spec"]);
    let conversion = spec.entry("conversion".to_owned()).or_default();
    if conversion.is_null() {
        *conversion = Value::from([("strategy", "None")]);
    }
    let service = &["spec", "conversion", "webhook", "clientConfig", "service"];
    if definition
        .at(service)
        .is_some_and(|service| service.as_object().is_some() && service.get("port").is_none())
    {
        definition.set(&["spec", "conversion", "webhook", "clientConfig", "service", "port"], 443);
    }
    let has_stored = |definition: &Value| {
        let stored = definition.at(&["status", "storedVersions"]).and_then(Value::as_array);
        stored.is_some_and(|stored| !stored.is_empty())
    };
    if !has_stored(definition)
        && let Some(storage) = storage_version(definition).map(str::to_owned)
    {
        definition.set(&["status", "storedVersions"], Value::Array(vec![storage.into()]));
    }
}

/// Before a create: the first generation, and a status that says only what is stored.
pub fn prepare_create(definition: &mut Value) {
    definition.remove(&["status"]);
    definition.set(&["metadata", "generation"], 1);
    apply_defaults(definition);
}

/// Before an update: the status stays, a new storage version is added to the stored ones,
/// and the generation rises when the spec changed.
pub fn prepare_update(new: &mut Value, old: &Value) {
    match old.get("status") {
        Some(status) => new.set(&["status"], status.clone()),
        None => drop(new.remove(&["status"])),
    }
    apply_defaults(new);
    if let Some(storage) = storage_version(new).map(str::to_owned) {
        let status = new.object_at_mut(&["status"]);
        if let Some(stored) = status.get_mut("storedVersions").and_then(Value::as_array_mut)
            && !stored.iter().any(|version| version.as_str() == Some(&storage))
        {
            stored.push(storage.into());
        }
    }
    let generation = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
    let changed = new.get("spec") != old.get("spec");
    new.set(&["metadata", "generation"], generation.saturating_add(i64::from(changed)));
}

/// The version that objects are stored in.
pub fn storage_version(definition: &Value) -> Option<&str> {
    let storage = versions(definition).iter().find(|version| flag(version, "storage"))?;
    Some(storage.str_at(&["name"]))
}

/// What a client is told about a definition that is accepted: what is new in it and has no effect.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let collect = |definition: &Value| {
        let (mut formats, mut sets) = (Vec::new(), BTreeSet::new());
        let top = Top::of(versions(definition)).schema;
        let own = versions(definition).iter().filter_map(|version| version.get("schema"));
        let schemas: Vec<&Value> = top.map_or_else(|| own.collect(), |top| vec![top]);
        for schema in schemas.into_iter().filter_map(|schema| schema.get("openAPIV3Schema")) {
            remarks(&Schema::parse(schema), &mut formats, &mut sets);
        }
        (formats, sets)
    };
    let (formats, sets) = collect(new);
    let (old_formats, old_sets) = old.map(collect).unwrap_or_default();
    let formats = formats.into_iter().filter(|format| !old_formats.contains(format));
    let formats = formats.map(|format| format!("unrecognized format {}", crate::quote(&format)));
    let sets = sets.difference(&old_sets).map(|kind| {
        format!(
            "x-kubernetes-list-type: set for items of type {} is not supported by server-side apply or CEL \
             validation rules",
            crate::quote(kind)
        )
    });
    formats.chain(sets).collect()
}

fn remarks(schema: &Schema, formats: &mut Vec<String>, sets: &mut BTreeSet<String>) {
    if let Some(rules) = &schema.rules
        && !rules.format.is_empty()
        && !formats::is_known(&rules.format, &schema.kind)
        && !formats.contains(&rules.format)
    {
        formats.push(rules.format.clone());
    }
    if let (Some("set"), Some(items)) = (schema.list_type.as_deref(), &schema.items)
        && matches!(items.kind.as_str(), "object" | "array")
    {
        sets.insert(items.kind.clone());
    }
    let additional = match &schema.additional {
        Additional::Schema(schema) => Some(&**schema),
        Additional::Absent | Additional::Flag(_) => None,
    };
    let below = schema.items.as_deref().into_iter().chain(schema.nested());
    for schema in below.chain(schema.properties.values()).chain(additional) {
        remarks(schema, formats, sets);
    }
}

/// `spec.versions`.
pub fn versions(definition: &Value) -> &[Value] {
    definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default()
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// The name must be that of the resource. Upstream says so among the rules of names, before those of the rest.
pub fn validate_name(definition: &Value) -> FieldErrors {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let wanted = format!("{}.{}", spec.str_at(&["names", "plural"]), spec.str_at(&["group"]));
    let mut errors = FieldErrors::new();
    for field in ["generateName", "name"] {
        let found = definition.str_at(&["metadata", field]);
        if !found.is_empty() && found != wanted {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            errors.push(FieldError::invalid(&Path::of(&["metadata", field]), found, detail));
        }
    }
    errors
}

/// Every rule that a new definition breaks.
pub fn validate(definition: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    check_spec(definition, spec, ConversionRules::NEW, &Before::default(), &mut errors);
    check_status(definition, &mut errors);
    check_approval(definition, None, &mut errors);
    check_preserve(spec, &mut errors);
    errors
}

/// Every rule that a changed definition breaks.
pub fn validate_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let spec = new.get("spec").unwrap_or(&Value::Null);
    check_spec(new, spec, ConversionRules::of_update(old), &Before::of(new, old), &mut errors);
    let always: [&[&str]; 2] = [&["spec", "group"], &["spec", "names", "plural"]];
    let established: &[&[&str]] =
        if is_established(old) { &[&["spec", "scope"], &["spec", "names", "kind"]] } else { &[] };
    for path in established.iter().chain(&always) {
        if new.str_at(path) != old.str_at(path) {
            errors.push(FieldError::invalid(&Path::of(path), new.str_at(path), "field is immutable"));
        }
    }
    check_status(new, &mut errors);
    check_approval(new, Some(old), &mut errors);
    if !old.get("spec").is_some_and(|spec| flag(spec, "preserveUnknownFields")) {
        check_preserve(spec, &mut errors);
    }
    errors
}

/// What an update leaves of the definition that it changes.
#[derive(Default)]
struct Before<'a> {
    expressions: rule::Stored,
    /// Versions whose schemas are what they were.
    unchanged: BTreeSet<&'a str>,
}

impl<'a> Before<'a> {
    fn of(new: &'a Value, old: &Value) -> Self {
        let mut expressions = rule::Stored::default();
        for schema in versions(old).iter().filter_map(|version| version.at(&["schema", "openAPIV3Schema"])) {
            expressions.add(&Schema::parse(schema));
        }
        let is_unchanged = |version: &&Value| {
            let name = version.str_at(&["name"]);
            let old = versions(old).iter().find(|version| version.str_at(&["name"]) == name);
            old.is_some_and(|old| {
                old.at(&["schema", "openAPIV3Schema"]) == version.at(&["schema", "openAPIV3Schema"])
            })
        };
        let unchanged = versions(new).iter().filter(is_unchanged).map(|version| version.str_at(&["name"]));
        Self { expressions, unchanged: unchanged.collect() }
    }

    fn rules(&self, version: Option<&Value>) -> rule_checks::Stored<'_> {
        rule_checks::Stored {
            expressions: &self.expressions,
            unchanged: version.is_some_and(|version| self.unchanged.contains(version.str_at(&["name"]))),
        }
    }
}

fn check_spec(
    definition: &Value,
    spec: &Value,
    rules: ConversionRules,
    before: &Before<'_>,
    errors: &mut FieldErrors,
) {
    let path = Path::new("spec");
    check_group(spec.str_at(&["group"]), &path.child("group"), errors);
    match spec.str_at(&["scope"]) {
        "" => errors.push(FieldError::required(&path.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => {
            errors.push(FieldError::not_supported(&path.child("scope"), other, &["Cluster", "Namespaced"]));
        }
    }
    let versions = versions(definition);
    let schemas: Vec<_> = versions.iter().map(|version| version.at(&["schema", "openAPIV3Schema"])).collect();
    let versions_path = path.child("versions");
    for (index, _) in schemas.iter().enumerate().filter(|(_, schema)| schema.is_none_or(Value::is_null)) {
        let at = versions_path.index(index).child("schema").child("openAPIV3Schema");
        errors.push(FieldError::required(&at, ""));
    }
    let top = Top::of(versions);
    let mut names = BTreeSet::new();
    let (mut unique, mut storage) = (true, 0);
    for (index, version) in versions.iter().enumerate() {
        let at = versions_path.index(index);
        let name = version.str_at(&["name"]);
        storage += usize::from(flag(version, "storage"));
        unique &= names.insert(name);
        check_label(name, "", &at.child("name"), errors);
        check_version(version, &top, before, &at, errors);
    }
    let shown = || {
        if versions.is_empty() {
            return Shown::verbatim("null".to_owned());
        }
        let versions: Vec<_> = versions.iter().map(summary).collect();
        Shown::verbatim(format!("[{}]", versions.join(",")))
    };
    if !unique {
        errors.push(FieldError::invalid(&versions_path, shown(), "must contain unique version names"));
    }
    if storage != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(&versions_path, shown(), detail));
    }
    for name in ["plural", "singular", "kind", "listKind"] {
        if spec.str_at(&["names", name]).is_empty() {
            errors.push(FieldError::required(&path.child("names").child(name), ""));
        }
    }
    check_names(spec.get("names").unwrap_or(&Value::Null), &path.child("names"), errors);
    top.check(versions, before, &path, errors);
    let conversion = spec.get("conversion").unwrap_or(&Value::Null);
    if flag(spec, "preserveUnknownFields")
        && !conversion.is_null()
        && conversion.str_at(&["strategy"]) != "None"
    {
        let at = path.child("conversion").child("strategy");
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&at, conversion.str_at(&["strategy"]), detail));
    }
    check_conversion(conversion, rules, &path.child("conversion"), errors);
}

/// A version as Go prints it, without what is too long for an error's text.
fn summary(version: &Value) -> String {
    let text = |name: &str| go_json(version.get(name).unwrap_or(&Value::Null));
    format!(
        r#"{{"Name":{},"Served":{},"Storage":{},"Deprecated":{},"DeprecationWarning":{},"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}}"#,
        text("name"),
        flag(version, "served"),
        flag(version, "storage"),
        flag(version, "deprecated"),
        text("deprecationWarning"),
    )
}

/// What all versions have in common: upstream moves it to the top before it checks, so that
/// errors about it name no version.
struct Top<'a> {
    schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: Option<&'a Value>,
    selectable: Option<&'a Value>,
}

impl<'a> Top<'a> {
    fn of(versions: &'a [Value]) -> Self {
        let common = |name: &str| {
            let first = versions.first()?.get(name).filter(|value| !value.is_null())?;
            versions.iter().all(|version| version.get(name) == Some(first)).then_some(first)
        };
        Self {
            schema: common("schema"),
            subresources: common("subresources"),
            columns: common("additionalPrinterColumns"),
            selectable: common("selectableFields"),
        }
    }

    fn check(&self, versions: &[Value], before: &Before<'_>, path: &Path, errors: &mut FieldErrors) {
        let schema = self.schema.and_then(|schema| schema.get("openAPIV3Schema"));
        if let Some(schema) = schema {
            let stored = before.rules(versions.first());
            let has_status = versions.iter().any(has_status);
            check_schema(schema, has_status, stored, &path.child("validation"), errors);
        }
        if let Some(subresources) = self.subresources {
            check_scale(subresources, path, errors);
        }
        if let Some(columns) = self.columns {
            check_columns(columns, path, errors);
        }
        if let Some(fields) = self.selectable {
            let at = path.child("selectableFields");
            match schema {
                Some(schema) => check_selectable(fields, &Schema::parse(schema), &at, errors),
                None => {
                    let detail = "may only be set when validations.schema is included";
                    errors.push(FieldError::invalid(&at, "", detail));
                }
            }
        }
    }
}

fn check_group(group: &str, path: &Path, errors: &mut FieldErrors) {
    if group.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let broken = is_dns1123_subdomain(group);
    if !broken.is_empty() {
        errors.push(FieldError::invalid(path, group, broken.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(path, group, "should be a domain with at least one dot"));
    }
}

fn check_label(name: &str, lead: &str, path: &Path, errors: &mut FieldErrors) {
    let lowered = if lead.is_empty() { name.to_owned() } else { name.to_lowercase() };
    let broken = is_dns1035_label(&lowered);
    if !broken.is_empty() {
        errors.push(FieldError::invalid(path, name, format!("{lead}{}", broken.join(","))));
    }
}

fn check_names(names: &Value, path: &Path, errors: &mut FieldErrors) {
    const MIXED: &str = "may have mixed case, but should otherwise match: ";
    for (name, lead) in [("plural", ""), ("singular", ""), ("kind", MIXED), ("listKind", MIXED)] {
        let value = names.str_at(&[name]);
        if !value.is_empty() {
            check_label(value, lead, &path.child(name), errors);
        }
    }
    let list = |name| names.get(name).and_then(Value::as_array).unwrap_or_default().iter().enumerate();
    for (index, name) in list("shortNames") {
        check_label(name.as_str().unwrap_or_default(), "", &path.child("shortNames").index(index), errors);
    }
    let (kind, list_kind) = (names.str_at(&["kind"]), names.str_at(&["listKind"]));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), list_kind, detail));
    }
    for (index, name) in list("categories") {
        check_label(name.as_str().unwrap_or_default(), "", &path.child("categories").index(index), errors);
    }
}

fn has_status(version: &Value) -> bool {
    version.at(&["subresources", "status"]).is_some_and(|status| !status.is_null())
}

fn check_version(version: &Value, top: &Top<'_>, before: &Before<'_>, path: &Path, errors: &mut FieldErrors) {
    let warning = version.get("deprecationWarning").and_then(Value::as_str);
    if let Some(warning) = warning {
        let at = path.child("deprecationWarning");
        let detail = if !flag(version, "deprecated") {
            Some("can only be set for deprecated versions")
        } else if warning.len() > 256 {
            Some("must be <= 256 characters long")
        } else if warning.is_empty() {
            Some("must not be an empty string")
        } else {
            None
        };
        errors.extend(detail.map(|detail| FieldError::invalid(&at, warning, detail)));
    }
    let schema = version.at(&["schema", "openAPIV3Schema"]).filter(|schema| !schema.is_null());
    if let (Some(schema), None) = (schema, top.schema) {
        let stored = before.rules(Some(version));
        check_schema(schema, has_status(version), stored, &path.child("schema"), errors);
    }
    if let (Some(subresources), None) = (version.get("subresources"), top.subresources) {
        check_scale(subresources, path, errors);
    }
    if let (Some(columns), None) = (version.get("additionalPrinterColumns"), top.columns) {
        check_columns(columns, path, errors);
    }
    let fields = version.get("selectableFields").filter(|_| top.selectable.is_none());
    if let Some(fields) = fields.filter(|fields| fields.as_array().is_some_and(|all| !all.is_empty())) {
        let at = path.child("selectableFields");
        // A schema that all versions share stands at the top, and this version has none.
        match schema.filter(|_| top.schema.is_none()) {
            Some(schema) => check_selectable(fields, &Schema::parse(schema), &at, errors),
            None => {
                let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
                errors.push(FieldError::invalid(&at, "", detail));
            }
        }
    }
}

fn check_columns(columns: &Value, path: &Path, errors: &mut FieldErrors) {
    for (index, column) in columns.as_array().unwrap_or_default().iter().enumerate() {
        check_column(column, &path.child("additionalPrinterColumns").index(index), errors);
    }
}

fn check_schema(
    tree: &Value,
    has_status: bool,
    stored: rule_checks::Stored<'_>,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let at = path.child("openAPIV3Schema");
    let schema = Schema::parse(tree);
    if has_status && schema.kind != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is \
                      enabled";
        errors.push(FieldError::invalid(&at.child("type"), &schema.kind, detail));
    } else if has_status && !may_stand_at_root(&schema) {
        let detail = format!(
            "only [{ROOT_FIELDS}] fields are allowed at the root of the schema if the status subresource is enabled"
        );
        errors.push(FieldError::invalid(&at, Shown::verbatim("{}"), detail));
    }
    if schema.nullable {
        errors.push(FieldError::forbidden(&at.child("nullable"), "nullable cannot be true at the root"));
    }
    let mut found = structural::validate(&schema, &at);
    if found.is_empty() {
        let mut budget = PER_OBJECT as i64;
        schema_rules::check_defaults(tree, &schema, &at, &mut budget, &mut found);
    }
    let is_structural = found.is_empty();
    errors.extend(found);
    let broken = schema_rules::check(&schema, &at);
    let rules = is_structural.then(|| rule_checks::check(tree, &schema, &at, &broken, stored));
    errors.extend(broken);
    errors.extend(rules.into_iter().flatten());
}

const ROOT_FIELDS: &str = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
                           MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties \
                           ExternalDocs Example XPreserveUnknownFields XValidations";

fn may_stand_at_root(schema: &Schema) -> bool {
    let plain = schema.rules.as_ref().is_none_or(|rules| {
        rules.values.is_none() && rules.min_properties.is_none() && rules.max_properties.is_none()
    });
    plain
        && schema.nested().next().is_none()
        && matches!(schema.additional, Additional::Absent)
        && schema.default.is_none()
        && !schema.nullable
        && !schema.embedded_resource
        && !schema.int_or_string
        && schema.list_type.is_none()
        && schema.map_type.is_none()
        && schema.list_map_keys.is_empty()
}

fn check_scale(subresources: &Value, path: &Path, errors: &mut FieldErrors) {
    let Some(scale) = subresources.get("scale").filter(|scale| !scale.is_null()) else { return };
    let path = path.child("subresources");
    for (name, root, required) in [
        ("specReplicasPath", "spec", true),
        ("statusReplicasPath", "status", true),
        ("labelSelectorPath", "status", false),
    ] {
        let at = path.child(&format!("scale.{name}"));
        let value = scale.str_at(&[name]);
        if value.is_empty() {
            errors.extend(required.then(|| FieldError::required(&at, "")));
        } else if !value.starts_with('.') {
            errors.push(FieldError::invalid(&at, value, "must be a simple json path starting with ."));
        } else if !value.starts_with(&format!(".{root}.")) && (required || !value.starts_with(".spec.")) {
            let detail = if required {
                format!("should be a json path under .{root}")
            } else {
                "should be a json path under either .spec or .status".to_owned()
            };
            errors.push(FieldError::invalid(&at, value, detail));
        }
    }
}

fn check_column(column: &Value, path: &Path, errors: &mut FieldErrors) {
    let text = |name: &str| column.str_at(&[name]);
    if text("name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    match text("type") {
        "" => errors.push(FieldError::required(&path.child("type"), types)),
        kind if COLUMN_TYPES.contains(&kind) => {}
        kind => errors.push(FieldError::invalid(&path.child("type"), kind, types)),
    }
    let format = text("format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(&path.child("format"), format, detail));
    }
    let at = path.child("JSONPath");
    match text("jsonPath") {
        "" => errors.push(FieldError::required(&at, "")),
        path if path.starts_with('.') => {}
        path => errors.push(FieldError::invalid(&at, path, "must be a simple json path starting with .")),
    }
}

fn check_selectable(fields: &Value, schema: &Schema, path: &Path, errors: &mut FieldErrors) {
    let fields = fields.as_array().unwrap_or_default();
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = path.index(index).child("jsonPath");
        let json_path = field.str_at(&["jsonPath"]);
        if json_path.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let (names, found) = match selectable::resolve(json_path, schema) {
            Ok(resolved) => resolved,
            Err(why) => {
                errors.push(FieldError::invalid(&at, json_path, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if names.first().is_some_and(|name| name == "metadata") {
            errors.push(FieldError::invalid(&at, json_path, "must not point to fields in metadata"));
        }
        let kind = found.map_or("", |found| found.kind.as_str());
        if !matches!(kind, "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                          with formats are allowed.";
            errors.push(FieldError::invalid(&at, json_path, detail));
        }
        if !seen.insert(names) {
            errors.push(FieldError::duplicate(&at, json_path));
        }
    }
    if SELECTABLE_FIELDS < seen.len() {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_FIELDS));
    }
}

/// Rules of a conversion that an older definition may have broken.
#[derive(Clone, Copy)]
struct ConversionRules {
    /// The authorities must be readable.
    bundle: bool,
    /// One of the versions of reviews must be known.
    review_version: bool,
}

impl ConversionRules {
    /// What a new definition must keep to: it is not established while its authorities cannot be read.
    const NEW: Self = Self { bundle: false, review_version: true };

    fn of_update(old: &Value) -> Self {
        let conversion = old.at(&["spec", "conversion"]).unwrap_or(&Value::Null);
        let bundle = conversion.at(&["webhook", "clientConfig", "caBundle"]);
        let readable =
            bundle.is_none_or(|bundle| webhook::check_bundle(&Path::new("caBundle"), bundle).is_empty());
        let reviews = conversion.at(&["webhook", "conversionReviewVersions"]).and_then(Value::as_array);
        let reviews = reviews.unwrap_or_default();
        Self {
            bundle: is_established(old) && readable,
            review_version: reviews.is_empty() || reviews.iter().any(is_review_version),
        }
    }
}

fn is_review_version(version: &Value) -> bool {
    matches!(version.as_str(), Some("v1" | "v1beta1"))
}

fn check_review_versions(versions: &[Value], known: bool, path: &Path, errors: &mut FieldErrors) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let (at, name) = (path.index(index), version.as_str().unwrap_or_default());
        if !seen.insert(name) {
            errors.push(FieldError::invalid(&at, name, "duplicate version"));
            continue;
        }
        errors.extend(is_dns1035_label(name).into_iter().map(|fault| FieldError::invalid(&at, name, fault)));
    }
    if known && !versions.iter().any(is_review_version) {
        let shown = Value::Array(versions.to_vec());
        errors.push(FieldError::invalid(path, &shown, "must include at least one of v1, v1beta1"));
    }
}

fn check_conversion(conversion: &Value, rules: ConversionRules, path: &Path, errors: &mut FieldErrors) {
    let client = conversion.at(&["webhook", "clientConfig"]).filter(|client| !client.is_null());
    let reviews =
        conversion.at(&["webhook", "conversionReviewVersions"]).and_then(Value::as_array).unwrap_or_default();
    let client_path = path.child("webhookClientConfig");
    match conversion.str_at(&["strategy"]) {
        "" => errors.push(FieldError::required(&path.child("strategy"), "")),
        "Webhook" => {
            match client {
                None => errors
                    .push(FieldError::required(&client_path, "required when strategy is set to Webhook")),
                Some(client) => {
                    let found = |name| client.get(name).filter(|value| !value.is_null());
                    match (found("url"), found("service")) {
                        (Some(url), None) => {
                            let url = url.as_str().unwrap_or_default();
                            errors.extend(webhook::check_url(&client_path.child("url"), url));
                        }
                        (None, Some(service)) => {
                            errors.extend(webhook::check_service(&client_path.child("service"), service));
                        }
                        _ => {
                            let detail = "exactly one of url or service is required";
                            errors.push(FieldError::required(&client_path, detail));
                        }
                    }
                    if let Some(bundle) = found("caBundle").filter(|_| rules.bundle) {
                        errors.extend(webhook::check_bundle(&client_path.child("caBundle"), bundle));
                    }
                }
            }
            check_review_versions(
                reviews,
                rules.review_version,
                &path.child("conversionReviewVersions"),
                errors,
            );
            return;
        }
        "None" => {}
        other => {
            errors.push(FieldError::not_supported(&path.child("strategy"), other, &["None", "Webhook"]));
        }
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(FieldError::forbidden(&client_path, detail));
    }
    if !reviews.is_empty() {
        errors.push(FieldError::forbidden(&path.child("conversionReviewVersions"), detail));
    }
}

fn check_status(definition: &Value, errors: &mut FieldErrors) {
    let path = Path::new("status");
    if let Some(names) = definition.at(&["status", "acceptedNames"]) {
        check_names(names, &path.child("acceptedNames"), errors);
    }
    let at = path.child("storedVersions");
    let stored = definition.at(&["status", "storedVersions"]).cloned().unwrap_or_default();
    let Some(stored_versions) = stored.as_array().filter(|stored| !stored.is_empty()) else {
        errors.push(FieldError::invalid(&at, &stored, "must have at least one stored version"));
        return;
    };
    let names: Vec<_> = versions(definition).iter().map(|version| version.str_at(&["name"])).collect();
    for version in versions(definition).iter().filter(|version| flag(version, "storage")) {
        let name = version.str_at(&["name"]);
        if !stored_versions.iter().any(|stored| stored.as_str() == Some(name)) {
            errors.push(FieldError::invalid(&at, &stored, format!("must have the storage version {name}")));
        }
    }
    for (index, version) in stored_versions.iter().enumerate() {
        let version = version.as_str().unwrap_or_default();
        if !names.contains(&version) {
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {version} and removes \
                 {version} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&at.index(index), version, detail));
        }
    }
}

#[derive(PartialEq)]
enum Approval<'a> {
    Missing,
    Invalid(&'a str),
    Given,
}

fn approval(definition: &Value) -> Approval<'_> {
    match definition.str_at(&["metadata", "annotations", APPROVED]) {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Given,
        text => match text.split_once("://") {
            Some((scheme, rest)) if !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/') => {
                Approval::Given
            }
            _ => Approval::Invalid(text),
        },
    }
}

fn check_approval(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let group = new.str_at(&["spec", "group"]);
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|own| group == *own || group.strip_suffix(own).is_some_and(|rest| rest.ends_with('.')));
    let approval = approval(new);
    let unchanged = old
        .is_some_and(|old| std::mem::discriminant(&self::approval(old)) == std::mem::discriminant(&approval));
    if !protected || unchanged {
        return;
    }
    let at = Path::of(&["metadata", "annotations"]).key(APPROVED);
    let lead = format!("protected groups must have approval annotation \"{APPROVED}\"");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match approval {
        Approval::Missing => errors.push(FieldError::required(&at, format!("{lead}, {see}"))),
        Approval::Invalid(text) => {
            let detail = format!("{lead} with either a URL or a reason starting with \"unapproved\", {see}");
            errors.push(FieldError::invalid(&at, text, detail));
        }
        Approval::Given => {}
    }
}

fn check_preserve(spec: &Value, errors: &mut FieldErrors) {
    if flag(spec, "preserveUnknownFields") {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&Path::of(&["spec", "preserveUnknownFields"]), true, detail));
    }
}
