//! Roles and bindings.

use crate::Value;
use crate::names::{dns_subdomain, is_path_segment};
use crate::validation::field::{FieldError, FieldErrors, Path, Shown};
use crate::validation::meta::{self, MetaRules, immutable, invalid_each};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Role and ClusterRole.
pub fn validate_role(role: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate(role, rules);
    for (index, rule) in list(role, "rules").iter().enumerate() {
        errors.extend(policy_rule(rule, rules.namespaced, &Path::new("rules").index(index)));
    }
    if rules.namespaced {
        return errors;
    }
    let Some(aggregation) = role.get("aggregationRule").filter(|rule| !rule.is_null()) else {
        return errors;
    };
    let path = Path::of(&["aggregationRule", "clusterRoleSelectors"]);
    let selectors = list(aggregation, "clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, detail));
    }
    for (index, selector) in selectors.iter().enumerate() {
        let path = path.index(index);
        let found = meta::label_selector(selector, &path);
        if !found.is_empty() {
            errors.extend(found);
            errors.push(FieldError::invalid(&path, &Value::Null, "invalid label selector."));
        }
    }
    errors
}

/// Role and ClusterRole, at update.
pub fn validate_role_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = validate_role(new, rules);
    errors.extend(meta::validate_update(new, old, rules));
    errors
}

/// RoleBinding and ClusterRoleBinding.
pub fn validate_binding(binding: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate(binding, rules);
    let path = Path::new("roleRef");
    let group = binding.str_at(&["roleRef", "apiGroup"]);
    if group != GROUP {
        errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[GROUP]));
    }
    let kinds: &[&str] = if rules.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = binding.str_at(&["roleRef", "kind"]);
    if !kinds.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("kind"), kind, kinds));
    }
    let name = binding.str_at(&["roleRef", "name"]);
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else {
        errors.extend(invalid_each(is_path_segment(name), &path.child("name"), name));
    }
    for (index, subject) in list(binding, "subjects").iter().enumerate() {
        errors.extend(validate_subject(subject, rules.namespaced, &Path::new("subjects").index(index)));
    }
    errors
}

/// RoleBinding and ClusterRoleBinding, at update: the role stays.
pub fn validate_binding_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = validate_binding(new, rules);
    errors.extend(meta::validate_update(new, old, rules));
    let field = |object: &Value, field: &str| object.str_at(&["roleRef", field]).to_owned();
    let equal = ["apiGroup", "kind", "name"].iter().all(|name| field(new, name) == field(old, name));
    // The original prints its internal struct, whose fields carry Go's names.
    let shown = Value::from([
        ("APIGroup", field(new, "apiGroup")),
        ("Kind", field(new, "kind")),
        ("Name", field(new, "name")),
    ]);
    errors.extend(immutable(equal, &Path::new("roleRef"), &shown));
    errors
}

/// The defaults of a role reference and of subjects: their API group.
pub fn default_binding(binding: &mut Value) {
    if binding.str_at(&["roleRef", "apiGroup"]).is_empty() && binding.get("roleRef").is_some() {
        binding.set(&["roleRef", "apiGroup"], GROUP);
    }
    for subject in binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        let named = matches!(subject.str_at(&["kind"]), "User" | "Group");
        if named && subject.str_at(&["apiGroup"]).is_empty() {
            subject.set(&["apiGroup"], GROUP);
        }
    }
}

fn policy_rule(rule: &Value, namespaced: bool, path: &Path) -> FieldErrors {
    let empty = |field: &str| list(rule, field).is_empty();
    let mut errors = FieldErrors::new();
    // Upstream's declarative validation, which knows of the verbs, comes last and says no more.
    let verbs = empty("verbs").then(|| FieldError::required(&path.child("verbs"), ""));
    if !empty("nonResourceURLs") {
        let path = path.child("nonResourceURLs");
        let shown = || rule.get("nonResourceURLs").map_or_else(Shown::omitted, Shown::from);
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(&path, shown(), detail));
        }
        if !(empty("apiGroups") && empty("resources") && empty("resourceNames")) {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(&path, shown(), detail));
        }
        errors.extend(verbs);
        return errors;
    }
    if empty("apiGroups") {
        let detail = "resource rules must supply at least one api group";
        errors.push(FieldError::required(&path.child("apiGroups"), detail));
    }
    if empty("resources") {
        let detail = "resource rules must supply at least one resource";
        errors.push(FieldError::required(&path.child("resources"), detail));
    }
    errors.extend(verbs);
    errors
}

fn validate_subject(subject: &Value, namespaced: bool, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (name, group) = (subject.str_at(&["name"]), subject.str_at(&["apiGroup"]));
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let group_path = path.child("apiGroup");
    match subject.str_at(&["kind"]) {
        "ServiceAccount" => {
            if !name.is_empty() {
                errors.extend(invalid_each(dns_subdomain(name, false), &path.child("name"), name));
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(&group_path, group, &[""]));
            }
            if !namespaced && subject.str_at(&["namespace"]).is_empty() {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" if group == GROUP => {}
        "User" | "Group" => errors.push(FieldError::not_supported(&group_path, group, &[GROUP])),
        kind => {
            let supported = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&path.child("kind"), kind, &supported));
        }
    }
    errors
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use crate::validation::testing::{object, texts};

    const NAMESPACED: MetaRules =
        MetaRules { namespaced: true, name: names::path_segment, qualified_finalizers: false };
    const CLUSTER: MetaRules = MetaRules { namespaced: false, ..NAMESPACED };

    fn with(metadata: &str, rest: &str) -> Value {
        object(&format!(r#"{{"metadata":{{"name":"system:r","resourceVersion":"1"{metadata}}},{rest}}}"#))
    }

    #[test]
    fn roles() {
        let namespaced = |rest: &str, expected: &[&str]| {
            let role = with(r#","namespace":"n""#, rest);
            assert_eq!(texts(&validate_role(&role, NAMESPACED)), expected);
        };
        let cluster = |rest: &str, expected: &[&str]| {
            assert_eq!(texts(&validate_role(&with("", rest), CLUSTER)), expected);
        };
        namespaced(r#""rules":[{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}]"#, &[]);
        namespaced(
            r#""rules":[{}]"#,
            &[
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
                "rules[0].verbs: Required value",
            ],
        );
        let urls = r#""rules":[{"verbs":["get"],"nonResourceURLs":["/x"],"apiGroups":[""]}]"#;
        let both = "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular resources \
                    and non-resource URLs";
        cluster(urls, &[both]);
        namespaced(
            urls,
            &[
                "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
                both,
            ],
        );
        cluster(r#""aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}"#, &[]);
        cluster(
            r#""aggregationRule":{}"#,
            &[
                "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if \
               aggregationRule is non-nil",
            ],
        );
    }

    #[test]
    fn bindings() {
        let good = r#""roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}"#;
        let check = |rest: &str, rules: MetaRules, expected: &[&str]| {
            let namespace = if rules.namespaced { r#","namespace":"n""# } else { "" };
            assert_eq!(texts(&validate_binding(&with(namespace, rest), rules)), expected);
        };
        check(good, NAMESPACED, &[]);
        check(good, CLUSTER, &[]);
        check(
            r#""roleRef":{"kind":"Role","name":"a/b"}"#,
            CLUSTER,
            &[
                "roleRef.apiGroup: Unsupported value: \"\": supported values: \"rbac.authorization.k8s.io\"",
                "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
                "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
            ],
        );
        let subjects = |subjects: &str| format!(r#"{good},"subjects":[{subjects}]"#);
        check(&subjects(r#"{"kind":"ServiceAccount","name":"a"}"#), NAMESPACED, &[]);
        check(
            &subjects(r#"{"kind":"ServiceAccount","name":"a"}"#),
            CLUSTER,
            &["subjects[0].namespace: Required value"],
        );
        check(
            &subjects(
                r#"{"kind":"User"},{"kind":"X","name":"a"},{"kind":"ServiceAccount","name":"a","apiGroup":"g"}"#,
            ),
            NAMESPACED,
            &[
                "subjects[0].name: Required value",
                "subjects[0].apiGroup: Unsupported value: \"\": supported values: \"rbac.authorization.k8s.io\"",
                "subjects[1].kind: Unsupported value: \"X\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                "subjects[2].apiGroup: Unsupported value: \"g\": supported values: \"\"",
            ],
        );
        let mut defaulted = with(
            "",
            r#""roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"u"}]"#,
        );
        default_binding(&mut defaulted);
        assert!(validate_binding(&defaulted, CLUSTER).is_empty());
        let other = with("", &good.replace("\"r\"", "\"q\""));
        assert_eq!(
            texts(&validate_binding_update(&other, &with("", good), CLUSTER)),
            ["roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\",\
              \"Name\":\"q\"}: field is immutable"]
        );
    }
}
