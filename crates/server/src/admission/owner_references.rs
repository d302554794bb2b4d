//! OwnerReferencesPermissionEnforcement: who gives an object an owner may delete the object, and who lets it
//! block the owner's deletion may set finalizers on the owner. Off unless it is switched on, as upstream.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::split_api_version;
use coffer_types::{Status, Value};

use super::forbid;
use crate::ports::{Admission, Admit, Attributes, Authorizer, Decision, Objects, Operation};
use crate::quote;

/// Resources whose strategies look after their owners themselves.
const ELSEWHERE: [(&str, &str, &str); 1] = [("", "pods", "status")];

/// The plugin.
pub struct OwnerReferences {
    objects: Arc<dyn Objects>,
    authorizer: Arc<dyn Authorizer>,
}

impl OwnerReferences {
    /// Over what is served, for the resources of owners.
    pub fn new(objects: Arc<dyn Objects>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { objects, authorizer }
    }

    /// Why the user may not; `None` when they may.
    async fn refused(&self, attributes: &Attributes) -> Option<String> {
        match self.authorizer.authorize(attributes).await {
            (Decision::Allow(_), _) => None,
            (Decision::Deny(reason) | Decision::NoOpinion(reason), error) => {
                Some(format!("{reason}, {}", error.as_deref().unwrap_or("<nil>")))
            }
        }
    }

    /// What the user must be allowed to do to the owner of a reference.
    fn finalizing(&self, reference: &Value, attributes: &Attributes) -> Result<Vec<Attributes>, String> {
        let (api_version, kind) = (reference.str_at(&["apiVersion"]), reference.str_at(&["kind"]));
        let (group, _) = split_api_version(api_version);
        let served = self.objects.served();
        let owners = served.iter().filter(|one| one.kind == kind && one.name.group == group);
        let records: Vec<Attributes> = owners
            .map(|one| Attributes {
                user: attributes.user.clone(),
                verb: "update".to_owned(),
                group: group.to_owned(),
                version: one.version.clone(),
                resource: one.name.resource.clone(),
                subresource: "finalizers".to_owned(),
                name: reference.str_at(&["name"]).to_owned(),
                namespace: if one.namespaced { attributes.namespace.clone() } else { String::new() },
                resource_request: true,
                ..Attributes::default()
            })
            .collect();
        if records.is_empty() {
            return Err(format!("no matches for kind {} in version {}", quote(kind), quote(api_version)));
        }
        Ok(records)
    }
}

#[async_trait]
impl Admit for OwnerReferences {
    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let attributes = request.attributes;
        let written =
            (attributes.group.as_str(), attributes.resource.as_str(), attributes.subresource.as_str());
        let Some(new) = object else { return Ok(()) };
        if ELSEWHERE.contains(&written) || owners(Some(new)) == owners(request.old) {
            return Ok(());
        }
        if request.operation != Operation::Create {
            let deleting = Attributes { verb: "delete".to_owned(), ..attributes.clone() };
            if let Some(why) = self.refused(&deleting).await {
                let why = format!("cannot set an ownerRef on a resource you can't delete: {why}");
                return Err(forbid(request, object, why));
            }
        }
        let blocking = newly_blocking(owners(Some(new)), owners(request.old));
        if blocking.is_empty() {
            return Ok(());
        }
        let any = Attributes {
            user: attributes.user.clone(),
            verb: "update".to_owned(),
            group: "*".to_owned(),
            version: "*".to_owned(),
            resource: "*".to_owned(),
            subresource: "finalizers".to_owned(),
            name: "*".to_owned(),
            resource_request: true,
            ..Attributes::default()
        };
        if self.refused(&any).await.is_none() {
            return Ok(());
        }
        for reference in blocking {
            let records = self.finalizing(reference, attributes).map_err(|why| {
                let (api_version, kind) = (reference.str_at(&["apiVersion"]), reference.str_at(&["kind"]));
                let why = format!(
                    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}: {why}"
                );
                forbid(request, object, why)
            })?;
            for record in records {
                if let Some(why) = self.refused(&record).await {
                    let why = format!(
                        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {why}"
                    );
                    return Err(forbid(request, object, why));
                }
            }
        }
        Ok(())
    }
}

fn owners(object: Option<&Value>) -> &[Value] {
    object
        .and_then(|object| object.at(&["metadata", "ownerReferences"]))
        .and_then(Value::as_array)
        .unwrap_or_default()
}

/// The references that block now and did not before.
fn newly_blocking<'v>(new: &'v [Value], old: &[Value]) -> Vec<&'v Value> {
    let blocks =
        |reference: &&Value| reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
    let uid = |reference: &Value| reference.str_at(&["uid"]).to_owned();
    let blocked = |wanted: &Value| {
        // Of two with one identity the last counts.
        old.iter().rfind(|other| uid(other) == uid(wanted)).is_some_and(|other| blocks(&other))
    };
    new.iter().filter(blocks).filter(|reference| !blocked(reference)).collect()
}

#[cfg(test)]
mod tests {
    use coffer_types::meta::Meta as _;

    use super::*;
    use crate::ports::{GroupResource, ServedResource};
    use crate::testing::{ContextParts, MemoryObjects, OneForm, block_on};

    /// Verbs that the user has, by `verb resource/subresource`.
    struct Rights(&'static [&'static str]);

    #[async_trait]
    impl Authorizer for Rights {
        async fn authorize(&self, wanted: &Attributes) -> (Decision, Option<String>) {
            let wanted = format!("{} {}/{}", wanted.verb, wanted.resource, wanted.subresource);
            let known = self.0.contains(&wanted.as_str());
            (if known { Decision::Allow(String::new()) } else { Decision::NoOpinion(String::new()) }, None)
        }
    }

    fn owned(references: &[(&str, &str, Option<bool>)]) -> Value {
        let references: Vec<Value> = references
            .iter()
            .map(|(uid, kind, blocks)| {
                let mut reference =
                    Value::from([("apiVersion", "v1"), ("name", "o"), ("uid", *uid), ("kind", *kind)]);
                if let Some(blocks) = blocks {
                    reference.set(&["blockOwnerDeletion"], *blocks);
                }
                reference
            })
            .collect();
        let mut object = Value::object();
        object.set_meta_str("name", "a");
        if !references.is_empty() {
            object.set(&["metadata", "ownerReferences"], references);
        }
        object
    }

    fn check(
        rights: &'static [&'static str],
        subresource: &str,
        old: Option<Value>,
        new: Value,
        expected: Option<&str>,
    ) {
        let served = ServedResource {
            name: GroupResource::new("", "replicationcontrollers"),
            version: "v1".to_owned(),
            kind: "ReplicationController".to_owned(),
            namespaced: true,
        };
        let plugin =
            OwnerReferences::new(Arc::new(MemoryObjects::serving(vec![served])), Arc::new(Rights(rights)));
        let attributes = Attributes {
            resource: "pods".to_owned(),
            subresource: subresource.to_owned(),
            namespace: "ns".to_owned(),
            name: "a".to_owned(),
            ..Attributes::default()
        };
        let (forms, parts) = (OneForm::default(), ContextParts::default());
        let request = Admission {
            attributes: &attributes,
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            kind: "Pod",
            old: old.as_ref(),
            dry_run: false,
            context: &parts.context(&forms),
        };
        let found = block_on(plugin.validate(&request, Some(&new), &mut Vec::new()));
        let expected = expected.map(|why| format!("pods \"a\" is forbidden: {why}"));
        assert_eq!(found.err().map(|status| status.message), expected, "{rights:?}");
    }

    /// Cases of upstream's TestGCAdmission and TestBlockOwnerDeletionAdmission.
    #[test]
    fn owners_are_given_by_who_may() {
        const DELETE: &str = "delete pods/";
        const FINALIZE: &str = "update replicationcontrollers/finalizers";
        let rc = "ReplicationController";
        let none = || owned(&[]);
        let one = |blocks: Option<bool>| owned(&[("1", rc, blocks)]);
        let cannot_delete = Some("cannot set an ownerRef on a resource you can't delete: , <nil>");
        let cannot_block = Some(
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
        );
        check(&[], "", None, none(), None);
        check(&[], "", None, one(None), None);
        check(&[], "", Some(none()), none(), None);
        check(&[], "", Some(none()), one(None), cannot_delete);
        check(&[], "", Some(one(None)), none(), cannot_delete);
        check(&[], "status", Some(none()), one(Some(true)), None);
        check(&[DELETE], "", Some(none()), one(None), None);
        check(&[DELETE], "", Some(none()), one(Some(true)), cannot_block);
        check(&[DELETE], "", Some(one(Some(false))), one(Some(true)), cannot_block);
        check(&[DELETE], "", Some(one(Some(true))), one(None), None);
        check(&[], "", Some(one(Some(true))), one(Some(true)), None);
        check(&[DELETE, FINALIZE], "", Some(none()), one(Some(true)), None);
        check(&[DELETE, "update */finalizers"], "", Some(none()), one(Some(true)), None);
        check(&[FINALIZE], "", None, one(Some(true)), None);
        let unknown = "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 Kind Thing: no matches for kind \"Thing\" in version \"v1\"";
        check(&[], "", None, owned(&[("2", "Thing", Some(true))]), Some(unknown));
    }
}
