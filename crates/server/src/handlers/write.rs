//! What every write shares: who writes what, admission, and the steps around a strategy.

use std::borrow::Cow;
use std::time::Duration;

use coffer_types::meta::Meta as _;
use coffer_types::validation::field::{FieldErrors, to_status};
use coffer_types::validation::meta;
use coffer_types::{Status, Value, random};

use super::call::{Call, Output};
use super::forms::ResourceForms;
use super::options::{FieldValidation, WriteOptions};
use crate::ports::{Admission, Attributes, Context, Operation, Reinvocation};
use crate::resources::Resource;
use crate::state::Server;
use crate::wire::{Decoded, Writer};

/// Characters of a generated name's suffix, upstream's alphabet.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Length of a generated name's suffix.
const SUFFIX_LENGTH: usize = 5;

/// Longest base of a generated name.
const MAX_GENERATED_BASE: usize = 58;

/// One write, from HTTP or from inside the server.
pub(crate) struct Scope<'a> {
    pub(crate) server: &'a Server,
    pub(crate) resource: &'a Resource,
    /// Who and what; the verb is the request's.
    pub(crate) attributes: Attributes,
    /// Namespace as the store knows it.
    pub(crate) namespace: String,
    /// Name, "" on create.
    pub(crate) name: String,
    /// Subresource, or "".
    pub(crate) subresource: String,
    pub(crate) options: WriteOptions,
    /// Who is recorded in managedFields.
    pub(crate) manager: String,
    /// Whether managedFields are kept at all: an object that is too large for the store goes without.
    pub(crate) tracks_fields: bool,
    /// Whether admission is asked; the server's own writes are always allowed.
    pub(crate) admission: bool,
    /// When the request must have been answered, on the monotonic clock.
    pub(crate) deadline: Option<Duration>,
    /// What a deletion was asked with.
    pub(crate) deletion: Option<Value>,
    /// Whether the object is one of a collection that is deleted.
    pub(crate) of_collection: bool,
    pub(crate) warnings: Vec<String>,
}

impl<'a> Scope<'a> {
    /// The write that a request asks for.
    pub(crate) fn of_call(call: &'a Call, resource: &'a Resource, options: WriteOptions) -> Self {
        Self {
            server: &call.server,
            resource,
            attributes: call.attributes.clone(),
            namespace: call.storage_namespace(resource),
            name: call.info.name.clone(),
            subresource: call.info.subresource.clone(),
            manager: call.manager(&options),
            tracks_fields: true,
            options,
            admission: true,
            deadline: call.deadline,
            deletion: None,
            of_collection: false,
            warnings: Vec::new(),
        }
    }

    /// What a decoder found beyond the schema: an error, warnings or nothing, as the client wants.
    pub(crate) fn take_strict(&mut self, decoded: Decoded) -> Result<Value, Status> {
        if !decoded.strict.is_empty() {
            match self.options.validation {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => {
                    let texts = decoded.strict.iter().flat_map(|text| warnings_of(text));
                    self.warnings.extend(texts);
                }
                FieldValidation::Strict => {
                    let info = &self.resource.info;
                    return Err(crate::wire::undecodable(
                        info,
                        &format!("strict decoding error: {}", decoded.strict.join(", ")),
                    ));
                }
            }
        }
        Ok(decoded.object)
    }

    /// The object must be in the request's namespace; an absent one is filled in.
    pub(crate) fn settle_namespace(&self, object: &mut Value) -> Result<(), Status> {
        let own = object.namespace();
        if own == self.namespace {
            return Ok(());
        }
        if own.is_empty() {
            object.set_meta_str("namespace", &self.namespace);
            return Ok(());
        }
        if self.namespace.is_empty() {
            // The kind has none.
            object.remove(&["metadata", "namespace"]);
            return Ok(());
        }
        Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ))
    }

    /// Mutating admission.
    pub(crate) async fn mutate(
        &mut self,
        operation: Operation,
        old: Option<&Value>,
        mut object: Option<&mut Value>,
    ) -> Result<(), Status> {
        if operation == Operation::Create && self.resource.terminating {
            let (info, name) = (&self.resource.info, object.as_deref().map_or("", Value::name));
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&info.group, &info.plural, name, why));
        }
        if !self.admission {
            return Ok(());
        }
        let attributes = self.admission_attributes(object.as_deref().or(old));
        let parts = self.admission_parts(&attributes, operation, object.as_deref());
        let mut warnings = Vec::new();
        let outcome = async {
            let context = parts.context(self);
            let request = self.admission_request(&attributes, operation, old, &context);
            let round = async |object: &mut Option<&mut Value>, warnings: &mut Vec<String>| {
                for plugin in self.server.admission.iter().filter(|plugin| !plugin.is_last()) {
                    plugin.mutate(&request, object.as_deref_mut(), warnings).await?;
                }
                Ok::<(), Status>(())
            };
            round(&mut object, &mut warnings).await?;
            if context.reinvocation.is_wanted() {
                context.reinvocation.begin_second();
                round(&mut object, &mut warnings).await?;
            }
            for plugin in self.server.admission.iter().filter(|plugin| plugin.is_last()) {
                plugin.mutate(&request, object.as_deref_mut(), &mut warnings).await?;
            }
            Ok(())
        };
        let outcome = outcome.await;
        self.warnings.append(&mut warnings);
        outcome
    }

    /// Validating admission.
    pub(crate) async fn validate(
        &mut self,
        operation: Operation,
        old: Option<&Value>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        if !self.admission {
            return Ok(());
        }
        let attributes = self.admission_attributes(object.or(old));
        let parts = self.admission_parts(&attributes, operation, object);
        let mut warnings = Vec::new();
        let outcome = async {
            let context = parts.context(self);
            let request = self.admission_request(&attributes, operation, old, &context);
            for plugin in &self.server.admission {
                plugin.validate(&request, object, &mut warnings).await?;
            }
            Ok(())
        };
        let outcome = outcome.await;
        self.warnings.append(&mut warnings);
        outcome
    }

    /// Both steps of admission, for a deletion: upstream runs them right before each write.
    pub(crate) async fn admit_deletion(&mut self, object: &Value) -> Result<(), Status> {
        self.mutate(Operation::Delete, Some(object), None).await?;
        self.validate(Operation::Delete, Some(object), None).await
    }

    fn admission_attributes(&self, object: Option<&Value>) -> Cow<'_, Attributes> {
        let mut attributes = Cow::Borrowed(&self.attributes);
        if attributes.name.is_empty()
            && let Some(object) = object
        {
            object.name().clone_into(&mut attributes.to_mut().name);
        }
        let of_namespace = attributes.group.is_empty() && attributes.resource == "namespaces";
        if of_namespace && attributes.namespace.is_empty() {
            let attributes = attributes.to_mut();
            attributes.namespace.clone_from(&attributes.name);
        }
        attributes
    }

    /// What the context of a plugin is made of.
    fn admission_parts<'r>(
        &'r self,
        attributes: &'r Attributes,
        operation: Operation,
        object: Option<&Value>,
    ) -> Parts<'r> {
        let name = match (self.of_collection, self.attributes.name.as_str()) {
            (true, _) => "",
            (false, "") => object.map(Value::name).unwrap_or_default(),
            (false, name) => name,
        };
        let options = match operation {
            Operation::Create => self.options.to_value("CreateOptions"),
            Operation::Update => self.options.to_value("UpdateOptions"),
            Operation::Delete => self.deletion.clone().unwrap_or_default(),
        };
        let forms = ResourceForms::new(self.server, self.resource, attributes, &self.subresource);
        Parts { forms, name: name.to_owned(), options, reinvocation: Reinvocation::default() }
    }

    fn admission_request<'r>(
        &'r self,
        attributes: &'r Attributes,
        operation: Operation,
        old: Option<&'r Value>,
        context: &'r Context<'r>,
    ) -> Admission<'r> {
        let info = &self.resource.info;
        let kind = info.subresource(&self.subresource).map_or(&info.kind, |subresource| &subresource.kind);
        Admission { attributes, operation, kind, old, dry_run: self.options.dry_run, context }
    }

    /// Records who wrote which fields, from `old` to `object`.
    pub(crate) async fn record_manager(&self, old: Option<&Value>, object: &mut Value) {
        if !self.tracks_fields {
            object.remove(&["metadata", "managedFields"]);
            return;
        }
        let api_version = self.resource.info.api_version();
        self.writer(&api_version).record(&self.resource.wire, old, object).await;
    }

    /// Who writes.
    pub(super) fn writer<'w>(&'w self, api_version: &'w str) -> Writer<'w> {
        Writer {
            manager: &self.manager,
            api_version,
            subresource: &self.subresource,
            reset: self.resource.strategy.reset_fields(&self.subresource),
            now: self.server.clock.now(),
        }
    }

    /// Owner references that name one owner twice are merged with a warning.
    pub(crate) fn merge_owners(&mut self, object: &mut Value, after_admission: bool) {
        self.warnings.extend(meta::deduplicate_owner_references(object, after_admission));
    }

    /// UID and creation time of a new object.
    pub(crate) fn fill_system_fields(&self, object: &mut Value) -> Result<(), Status> {
        let uid = random::uuid(&*self.server.random).map_err(Status::internal)?;
        object.set_meta_str("uid", &uid);
        let now = coffer_types::time::rfc3339(self.server.clock.now());
        object.set(&["metadata", "creationTimestamp"], now.as_str());
        Ok(())
    }

    /// A name for an object that has only a `generateName`.
    pub(crate) fn generate_name(&self, base: &str) -> Result<String, Status> {
        let mut end = base.len().min(MAX_GENERATED_BASE);
        while !base.is_char_boundary(end) {
            end -= 1;
        }
        let mut name = base[..end].to_owned();
        while name.len() < end + SUFFIX_LENGTH {
            let mut byte = [0_u8; 1];
            self.server.random.fill(&mut byte).map_err(Status::internal)?;
            // Bytes above the last whole multiple would favour the first letters.
            let index = usize::from(byte[0]);
            if index < 256 / SUFFIX_ALPHABET.len() * SUFFIX_ALPHABET.len() {
                name.push(char::from(SUFFIX_ALPHABET[index % SUFFIX_ALPHABET.len()]));
            }
        }
        Ok(name)
    }

    /// The 422, when there is something wrong with the object.
    pub(crate) fn refuse_invalid(&self, name: &str, errors: &FieldErrors) -> Result<(), Status> {
        let info = &self.resource.info;
        // Events of both groups are one kind inside.
        let group = if info.group == "events.k8s.io" { "" } else { &info.group };
        if errors.is_empty() { Ok(()) } else { Err(to_status(group, &info.kind, name, errors)) }
    }
}

/// What a plugin is told of a write beside the object.
struct Parts<'a> {
    forms: ResourceForms<'a>,
    name: String,
    options: Value,
    reinvocation: Reinvocation,
}

impl Parts<'_> {
    fn context(&self, scope: &Scope<'_>) -> Context<'_> {
        Context {
            forms: &self.forms,
            name: &self.name,
            options: &self.options,
            deadline: scope.deadline,
            reinvocation: &self.reinvocation,
        }
    }
}

/// A strict error as warnings: what a YAML parser says in one text of several lines is one for each.
pub(super) fn warnings_of(text: &str) -> impl Iterator<Item = String> {
    let text = text.strip_prefix("yaml: unmarshal errors:\n").unwrap_or(text);
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

/// Whether a write failed because the store takes no object that large. Upstream tries once more without
/// managed fields, which can be large, unless they are what the write is about.
pub(super) fn is_too_large(status: &Status) -> bool {
    status.code == 500 && status.message == "etcdserver: request is too large"
}

/// The object that a write answers with, decoded.
pub(crate) fn decoded(resource: &Resource, output: Output) -> Result<Value, Status> {
    match output {
        Output::Value(value) => Ok(value),
        Output::Stored(stored) => resource.wire.read(&stored),
    }
}
