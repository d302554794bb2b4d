//! Mutating webhooks: one after the other, each sees what the ones before it made of the object.

use std::sync::Arc;

use coffer_types::codec::json;
use coffer_types::meta::GroupVersionKind;
use coffer_types::patch::{self as patches};
use coffer_types::{Status, Value, fields};

use super::Webhooks;
use super::call::{Failure, encode};
use super::hook::Hook;
use super::matching::Chooser;
use super::review::{Answer, Encoded, JSON_PATCH};
use crate::admission::rule::Invocation;
use crate::ports::{Admission, Forms};
use crate::quote;

/// What upstream warns of when a patch has spoiled who owns which field.
const SPOILED: &str = ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: ";

/// The object on its way through the webhooks, in the version that the last one saw.
struct Current<'a> {
    forms: &'a dyn Forms,
    kind: GroupVersionKind,
    /// `None` on a deletion.
    object: Option<Value>,
    /// In the same version; `None` until a webhook has asked for another than the request's.
    old: Option<Value>,
    changed: bool,
    encoded: Option<Encoded>,
    encoded_old: Option<Encoded>,
}

impl Webhooks {
    /// Asks whoever is to be asked and changes the object as they say.
    pub(super) async fn mutate_with(
        &self,
        hooks: &[Arc<Hook>],
        request: &Admission<'_>,
        object: Option<&mut Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let reinvocation = request.context.reinvocation;
        reinvocation.begin(object.as_deref());
        let chooser = Chooser::new(self, request);
        let forms = request.context.forms;
        let mut current: Option<Current<'_>> = None;
        for hook in hooks {
            let now = current.as_ref().map_or(object.as_deref(), |current| current.object.as_ref());
            let Some(invocation) = chooser.choose(hook, now).await? else { continue };
            if !reinvocation.asks(&hook.uid) {
                continue;
            }
            let current = current.get_or_insert_with(|| Current::new(forms, object.as_deref()));
            current.become_kind(&invocation.kind, request.old).await?;
            let started = self.clock.monotonic();
            let outcome = self.ask(hook, &invocation, request, current, warnings).await;
            let elapsed = self.clock.monotonic().saturating_sub(started);
            reinvocation.answered(&hook.uid, hook.if_needed, matches!(outcome, Ok(true)));
            self.judge(hook, request, outcome.map(drop), elapsed)?;
        }
        let object = match (object, current) {
            (Some(object), Some(mut current)) if current.changed => {
                current.become_kind(forms.kind(), None).await.map_err(|status| {
                    // Upstream gives the converter's words bare.
                    let bare = status.details.and_then(|details| details.causes.into_iter().next());
                    Status::plain(bare.map_or(status.message, |cause| cause.message))
                })?;
                let changed = current.object.take().unwrap_or_default();
                let before = std::mem::replace(object, changed);
                restore_managers(before, object, warnings);
                Some(&*object)
            }
            (object, _) => object.map(|object| &*object),
        };
        reinvocation.end(object);
        Ok(())
    }

    /// Asks one; whether the object has changed.
    async fn ask(
        &self,
        hook: &Hook,
        invocation: &Invocation,
        request: &Admission<'_>,
        current: &mut Current<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<bool, Failure> {
        let encoded = current.encoded(request, invocation).map_err(Failure::Refused)?;
        let answer = self.call(hook, invocation, request, encoded, warnings).await?;
        current.patch(hook, &answer)
    }
}

impl<'a> Current<'a> {
    fn new(forms: &'a dyn Forms, object: Option<&Value>) -> Self {
        Self {
            forms,
            kind: forms.kind().clone(),
            object: object.cloned(),
            old: None,
            changed: false,
            encoded: None,
            encoded_old: None,
        }
    }

    async fn become_kind(&mut self, kind: &GroupVersionKind, old: Option<&Value>) -> Result<(), Status> {
        let own = self.object.as_ref().is_none_or(|object| is_of(object, kind));
        if self.kind == *kind && own {
            return Ok(());
        }
        let convert = async |object: Option<&Value>| match object {
            Some(object) => self.forms.convert(object, kind).await.map(Some).map_err(Status::internal),
            None => Ok(None),
        };
        let object = convert(self.object.as_ref()).await?;
        let old = convert(old).await?;
        (self.object, self.old) = (object, old);
        self.kind = kind.clone();
        (self.encoded, self.encoded_old) = (None, None);
        Ok(())
    }

    /// Both objects as they are sent now.
    fn encoded(&mut self, request: &Admission<'_>, invocation: &Invocation) -> Result<[Encoded; 2], Status> {
        let object = match &self.encoded {
            Some(encoded) => encoded.clone(),
            None => encode(request, self.object.as_ref(), invocation)?,
        };
        let old = match &self.encoded_old {
            Some(encoded) => encoded.clone(),
            None => encode(request, self.old.as_ref().or(request.old), invocation)?,
        };
        (self.encoded, self.encoded_old) = (Some(object.clone()), Some(old.clone()));
        Ok([object, old])
    }

    /// Applies the patch of an answer; whether the object has changed.
    fn patch(&mut self, hook: &Hook, answer: &Answer) -> Result<bool, Failure> {
        if answer.patch.is_empty() {
            return Ok(false);
        }
        let undecodable = |why: String| {
            Failure::calling(format!("received undecodable patch in webhook response: {why}"), 503)
        };
        let patch = json::decode_untyped(&answer.patch).map_err(|error| undecodable(error.0))?.object;
        match &patch {
            Value::Array(operations) if operations.is_empty() => return Ok(false),
            Value::Null => return Ok(false),
            Value::Array(operations) => {
                let wrong = operations.iter().find(|one| one.as_object().is_none() && !one.is_null());
                if let Some(wrong) = wrong {
                    return Err(undecodable(unmarshal(wrong, "Operation")));
                }
            }
            other => return Err(undecodable(unmarshal(other, "Patch"))),
        }
        let Some(object) = &self.object else {
            return Err(Failure::internal(format!(
                "admission webhook {} attempted to modify the object, which is not supported for this operation",
                quote(&hook.name)
            )));
        };
        if answer.patch_type != JSON_PATCH {
            let why = format!("unsupported patch type {}", quote(&answer.patch_type));
            return Err(Failure::calling(why, 400));
        }
        let mut document = patches::to_json_form(object);
        patches::json::apply(&mut document, &patch).map_err(Failure::internal)?;
        let mut patched = self.forms.decode(&document, &self.kind).map_err(|why| {
            // Upstream finds out late that a patch has made another kind of the object, and says it bare.
            let other_kind = why.starts_with("converting ");
            if other_kind { Failure::Refused(Status::plain(why)) } else { Failure::internal(why) }
        })?;
        let changed = patched != *object;
        self.forms.default(&mut patched, &self.kind);
        self.object = Some(patched);
        self.changed = true;
        self.encoded = None;
        Ok(changed)
    }
}

fn is_of(object: &Value, kind: &GroupVersionKind) -> bool {
    use coffer_types::meta::Meta as _;
    object.api_version() == kind.api_version() && object.kind() == kind.kind
}

fn unmarshal(found: &Value, into: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type jsonpatch.{into}", found.json_kind())
}

/// Entries of managers that cannot be read any more are those from before.
fn restore_managers(before: Value, object: &mut Value, warnings: &mut Vec<String>) {
    const PATH: [&str; 2] = ["metadata", "managedFields"];
    if before.at(&PATH) == object.at(&PATH) {
        return;
    }
    let Err(error) = fields::check(object) else { return };
    warnings.push(format!("{SPOILED}{error}"));
    match before.at(&PATH) {
        Some(managers) => object.set(&PATH, managers.clone()),
        None => {
            object.remove(&PATH);
        }
    }
}
