//! Nobody may grant through a role or a binding what they do not hold.

use coffer_types::meta::Meta as _;
use coffer_types::{Status, Value};

use super::bootstrap::GROUP;
use super::quote::{quote, quote_list};
use super::rbac::Rbac;
use super::rule::{Rule, compact, uncovered};
use super::{SUPERUSER_GROUP, parse_full_authority};
use crate::ports::{Attributes, Authorizer, Decision, UserInfo};

/// Refuses a write of a role or binding that grants more than the writer holds.
///
/// `old` is `None` on create. Resources of other kinds pass.
///
/// # Errors
/// 403 with the missing rules, or the 404 of the role that a binding names.
pub async fn check(
    rbac: &Rbac,
    authorizer: &dyn Authorizer,
    attributes: &Attributes,
    old: Option<&Value>,
    object: &Value,
) -> Result<(), Status> {
    if attributes.group != GROUP || !attributes.subresource.is_empty() {
        return Ok(());
    }
    if attributes.user.groups.iter().any(|group| group == SUPERUSER_GROUP) {
        return Ok(());
    }
    match attributes.resource.as_str() {
        "roles" | "clusterroles" => check_role(rbac, authorizer, attributes, old, object).await,
        "rolebindings" | "clusterrolebindings" => {
            check_binding(rbac, authorizer, attributes, old, object).await
        }
        _ => Ok(()),
    }
}

async fn check_role(
    rbac: &Rbac,
    authorizer: &dyn Authorizer,
    attributes: &Attributes,
    old: Option<&Value>,
    object: &Value,
) -> Result<(), Status> {
    // A role that does not exist yet has no name that a rule could be limited to.
    let name = if old.is_some() { attributes.name.clone() } else { String::new() };
    let escalate =
        Attributes { verb: "escalate".to_owned(), version: "*".to_owned(), name, ..attributes.clone() };
    if allowed(authorizer, &escalate).await || old.is_some_and(|old| only_deletion_fields_differ(old, object))
    {
        return Ok(());
    }
    let forbid = |why: String| Status::forbidden(GROUP, &attributes.resource, object.name(), why);
    confirm(rbac, &attributes.user, &attributes.namespace, &Rule::list_from(object)).map_err(forbid)?;
    let aggregated = |role: &Value| role.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    if attributes.resource == "clusterroles" && (aggregated(object) || old.is_some_and(aggregated)) {
        confirm(rbac, &attributes.user, &attributes.namespace, &parse_full_authority()).map_err(|_| {
            forbid("must have cluster-admin privileges to use the aggregationRule".to_owned())
        })?;
    }
    Ok(())
}

async fn check_binding(
    rbac: &Rbac,
    authorizer: &dyn Authorizer,
    attributes: &Attributes,
    old: Option<&Value>,
    object: &Value,
) -> Result<(), Status> {
    if old.is_some_and(|old| only_deletion_fields_differ(old, object)) {
        return Ok(());
    }
    let namespace = if attributes.resource == "rolebindings" { attributes.namespace.as_str() } else { "" };
    let kind = object.str_at(&["roleRef", "kind"]);
    let name = object.str_at(&["roleRef", "name"]);
    let resource = match kind {
        "ClusterRole" => Some("clusterroles"),
        "Role" => Some("roles"),
        _ => None,
    };
    if let Some(resource) = resource {
        let bind = Attributes {
            user: attributes.user.clone(),
            verb: "bind".to_owned(),
            group: object.str_at(&["roleRef", "apiGroup"]).to_owned(),
            version: "*".to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            resource_request: true,
            ..Attributes::default()
        };
        if allowed(authorizer, &bind).await {
            return Ok(());
        }
    }
    let rules = rbac.role_rules(kind, name, namespace)?;
    confirm(rbac, &attributes.user, namespace, &rules)
        .map_err(|why| Status::forbidden(GROUP, &attributes.resource, object.name(), why))
}

async fn allowed(authorizer: &dyn Authorizer, attributes: &Attributes) -> bool {
    matches!(authorizer.authorize(attributes).await.0, Decision::Allow(_))
}

/// Whether `user` holds every rule; the error is upstream's text.
fn confirm(rbac: &Rbac, user: &UserInfo, namespace: &str, wanted: &[Rule]) -> Result<(), String> {
    let (held, errors) = rbac.rules_for(user, namespace);
    let missing = uncovered(&held, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let mut texts: Vec<String> = compact(&missing).iter().map(Rule::compact_string).collect();
    texts.sort();
    texts.dedup();
    let mut message = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&user.name),
        quote_list(&user.groups),
        texts.join("\n")
    );
    if !errors.is_empty() {
        message.push_str(&format!("; resolution errors: [{}]", super::quote::aggregate(&errors)));
    }
    Err(message)
}

/// Whether an update touches only what garbage collection needs to touch: owner references and finalizers.
fn only_deletion_fields_differ(old: &Value, new: &Value) -> bool {
    let strip = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            object.remove(&["metadata", field]);
        }
        object
    };
    strip(old) == strip(new)
}

#[cfg(test)]
mod tests {
    use super::super::rbac::tests::{rbac, user};
    use super::*;

    const TABLE: &str = "\
ClusterRole reader
  get core secrets
ClusterRole admin
  * * *
  * url *
ClusterRole escalator
  escalate rbac.authorization.k8s.io clusterroles,roles
ClusterRole named-escalator
  escalate rbac.authorization.k8s.io clusterroles r
ClusterRole binder
  bind rbac.authorization.k8s.io clusterroles admin
ClusterRoleBinding a ClusterRole reader User:reader
ClusterRoleBinding b ClusterRole admin User:admin
ClusterRoleBinding c ClusterRole escalator User:escalator
ClusterRoleBinding f ClusterRole named-escalator User:named-escalator
ClusterRoleBinding d ClusterRole binder User:binder
ClusterRoleBinding e ClusterRole gone User:reader
";

    fn role(rules: &[&str], aggregated: bool) -> Value {
        let rules: Vec<Value> = rules
            .iter()
            .map(|line| super::super::bootstrap::parse_rule(line).expect("a rule").to_value())
            .collect();
        let mut role = Value::from([("rules", Value::from(rules))]);
        role.set(&["metadata", "name"], "r");
        if aggregated {
            role.set(&["aggregationRule"], Value::object());
        }
        role
    }

    fn binding(kind: &str, name: &str) -> Value {
        let mut binding =
            Value::from([("roleRef", Value::from([("apiGroup", GROUP), ("kind", kind), ("name", name)]))]);
        binding.set(&["metadata", "name"], "b");
        binding
    }

    fn run(who: &UserInfo, resource: &str, old: Option<&Value>, object: &Value) -> Result<(), String> {
        let rbac = rbac(TABLE);
        let attributes = Attributes {
            user: who.clone(),
            verb: "create".to_owned(),
            group: GROUP.to_owned(),
            resource: resource.to_owned(),
            name: object.name().to_owned(),
            namespace: if resource.starts_with("cluster") { "" } else { "n" }.to_owned(),
            resource_request: true,
            ..Attributes::default()
        };
        crate::testing::block_on(check(&rbac, &rbac, &attributes, old, object))
            .map_err(|status| status.message)
    }

    #[test]
    fn roles_grant_only_what_is_held() {
        let secrets = role(&["get core secrets"], false);
        let more = role(&["get,list core secrets", "get url /x"], false);
        let everything = role(&["* * *", "* url *"], true);
        let refused = |resource: &str, name: &str, groups: &str, missing: &str| {
            Err(format!(
                "{resource}.rbac.authorization.k8s.io \"r\" is forbidden: user \"{name}\" (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{missing}"
            ))
        };
        let broken = "; resolution errors: [clusterrole.rbac.authorization.k8s.io \"gone\" not found]";
        for (who, resource, object, expected) in [
            (user("reader", &["g"]), "clusterroles", &secrets, Ok(())),
            (user("reader", &["g"]), "clusterroles", &more, refused("clusterroles", "reader", "[\"g\"]", &format!("{{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"list\"]}}\n{{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}}{broken}"))),
            (user("nobody", &[]), "roles", &secrets, refused("roles", "nobody", "[]", "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}")),
            (user("nobody", &["system:masters"]), "roles", &secrets, Ok(())),
            (user("escalator", &[]), "clusterroles", &more, Ok(())),
            (user("escalator", &[]), "roles", &more, Ok(())),
            (user("admin", &[]), "clusterroles", &everything, Ok(())),
            (user("reader", &[]), "clusterroles", &role(&["get core secrets"], true), Err("clusterroles.rbac.authorization.k8s.io \"r\" is forbidden: must have cluster-admin privileges to use the aggregationRule".to_owned())),
        ] {
            assert_eq!(run(&who, resource, None, object), expected, "{} {resource}", who.name);
        }
    }

    #[test]
    fn updates_that_only_free_the_object_pass() {
        let old = role(&["* * *"], false);
        let mut new = old.clone();
        new.set(&["metadata", "finalizers"], vec![Value::from("x/y")]);
        assert_eq!(run(&user("nobody", &[]), "clusterroles", Some(&old), &new), Ok(()));
        new.set(&["metadata", "labels", "a"], "b");
        assert!(run(&user("nobody", &[]), "clusterroles", Some(&old), &new).is_err());
    }

    #[test]
    fn escalation_by_name_needs_a_role_that_is_there() {
        let (old, new) = (role(&["get core pods"], false), role(&["* * *"], false));
        let who = user("named-escalator", &[]);
        assert_eq!(run(&who, "clusterroles", Some(&old), &new), Ok(()));
        assert!(run(&who, "clusterroles", None, &new).is_err());
        assert!(run(&who, "roles", Some(&old), &new).is_err());
    }

    #[test]
    fn bindings_grant_only_what_is_held_or_may_be_bound() {
        for (who, resource, object, expected) in [
            ("reader", "clusterrolebindings", binding("ClusterRole", "reader"), None),
            ("reader", "rolebindings", binding("ClusterRole", "reader"), None),
            ("binder", "clusterrolebindings", binding("ClusterRole", "admin"), None),
            ("binder", "rolebindings", binding("ClusterRole", "admin"), None),
            (
                "binder",
                "clusterrolebindings",
                binding("ClusterRole", "reader"),
                Some(
                    "clusterrolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \"binder\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}",
                ),
            ),
            ("admin", "clusterrolebindings", binding("ClusterRole", "binder"), None),
            (
                "binder",
                "clusterrolebindings",
                binding("ClusterRole", "gone"),
                Some("clusterrole.rbac.authorization.k8s.io \"gone\" not found"),
            ),
            (
                "binder",
                "rolebindings",
                binding("Role", "gone"),
                Some("role.rbac.authorization.k8s.io \"gone\" not found"),
            ),
            (
                "binder",
                "rolebindings",
                binding("Robot", "gone"),
                Some("unsupported role reference kind: \"Robot\""),
            ),
        ] {
            let expected = expected.map_or(Ok(()), |text: &str| Err(text.to_owned()));
            assert_eq!(run(&user(who, &[]), resource, None, &object), expected, "{who} {resource}");
        }
    }
}
