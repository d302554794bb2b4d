//! Defaulting and validation of the kinds that are spoken, with upstream's exact texts.
//!
//! [`rules`] finds what applies to a kind. Absent on purpose: admission,
//! authorization, and anything that looks at other objects.

pub mod field;
pub mod go_json;
pub mod kinds;
pub mod meta;
pub mod node;
pub mod pem;
pub mod plain;
pub mod pod;
pub mod rbac;
pub mod secret;
#[cfg(test)]
pub(crate) mod testing;

use crate::Value;
use crate::names;
use field::FieldErrors;
use meta::MetaRules;

/// What a write of one kind passes.
#[derive(Clone, Copy)]
pub struct Rules {
    /// How `metadata` is checked.
    pub meta: MetaRules,
    /// Sets what is left out; runs on every decoded object, request or stored.
    pub default: fn(&mut Value),
    /// Sets what a new object gets, before it is checked.
    pub prepare_create: fn(&mut Value),
    /// Restores what an update may not touch, before it is checked.
    pub prepare_update: fn(&mut Value, &Value),
    validate: fn(&Value, MetaRules) -> FieldErrors,
    validate_update: fn(&Value, &Value, MetaRules) -> FieldErrors,
}

impl Rules {
    /// What is wrong with a new object.
    pub fn validate(&self, object: &Value) -> FieldErrors {
        let errors = (self.validate)(object, self.meta);
        if errors.is_empty() { meta::validate(object, self.meta.generic()) } else { errors }
    }

    /// What is wrong with an object that replaces `old`.
    pub fn validate_update(&self, new: &Value, old: &Value) -> FieldErrors {
        let mut errors = meta::validate(new, self.meta.generic());
        errors.extend((self.validate_update)(new, old, self.meta));
        errors
    }
}

const CORE: Rules = Rules {
    meta: MetaRules { namespaced: true, name: names::dns_subdomain, qualified_finalizers: true },
    default: |_| (),
    prepare_create: |_| (),
    prepare_update: |_, _| (),
    validate: meta::validate,
    validate_update: |new, old, rules| {
        let mut errors = meta::validate_update(new, old, rules);
        errors.extend(meta::validate(new, rules));
        errors
    },
};
const CORE_CLUSTER: MetaRules = MetaRules { namespaced: false, ..CORE.meta };
const PLAIN: MetaRules = MetaRules { qualified_finalizers: false, ..CORE.meta };

/// The rules of a kind. A kind that has none of its own gets the generic ones, by its scope.
pub fn rules(group: &str, kind: &str, namespaced: bool) -> Rules {
    let rbac = |namespaced: bool| MetaRules { namespaced, name: names::path_segment, ..CORE.meta };
    match (group, kind) {
        ("", "Secret") => Rules {
            default: secret::default,
            prepare_update: secret::prepare_update,
            validate: secret::validate,
            validate_update: secret::validate_update,
            ..CORE
        },
        ("", "ConfigMap") => Rules {
            validate: plain::validate_config_map,
            validate_update: plain::validate_config_map_update,
            ..CORE
        },
        ("", "ServiceAccount") => CORE,
        ("", "Namespace") => Rules {
            meta: MetaRules { name: names::dns_label, ..CORE_CLUSTER },
            default: plain::default_namespace,
            prepare_create: plain::prepare_namespace_create,
            prepare_update: plain::prepare_namespace_update,
            validate: plain::validate_namespace,
            validate_update: plain::validate_namespace_update,
        },
        ("", "Pod") => Rules {
            default: pod::default,
            prepare_create: pod::prepare_create,
            prepare_update: pod::prepare_update,
            validate: pod::validate,
            validate_update: pod::validate_update,
            ..CORE
        },
        ("", "Node") => Rules {
            meta: CORE_CLUSTER,
            prepare_update: node::prepare_update,
            validate: node::validate,
            validate_update: node::validate_update,
            ..CORE
        },
        ("", "Event") => Rules {
            validate: |event, rules| plain::validate_event(event, true, rules),
            validate_update: |new, old, rules| plain::validate_event_update(new, old, true, rules),
            ..CORE
        },
        ("coordination.k8s.io", "Lease") => Rules {
            meta: PLAIN,
            validate: plain::validate_lease,
            validate_update: plain::validate_lease_update,
            ..CORE
        },
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => Rules {
            meta: rbac(kind == "Role"),
            validate: rbac::validate_role,
            validate_update: rbac::validate_role_update,
            ..CORE
        },
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => Rules {
            meta: rbac(kind == "RoleBinding"),
            default: rbac::default_binding,
            validate: rbac::validate_binding,
            validate_update: rbac::validate_binding_update,
            ..CORE
        },
        _ => Rules { meta: MetaRules { namespaced, ..PLAIN }, ..CORE },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::testing::{object, texts};

    #[test]
    fn every_kind_has_its_rules() {
        let check = |group: &str, kind: &str, json: &str, expected: &[&str]| {
            let rules = rules(group, kind, true);
            let mut object = object(json);
            (rules.default)(&mut object);
            (rules.prepare_create)(&mut object);
            assert_eq!(texts(&rules.validate(&object)), expected, "{kind}");
            let mut new = object.clone();
            new.set(&["metadata", "resourceVersion"], "1");
            (rules.prepare_update)(&mut new, &object);
            let update = rules.validate_update(&new, &object);
            if expected.is_empty() {
                assert_eq!(texts(&update), expected, "{kind}");
            }
        };
        let named = r#"{"metadata":{"name":"x","namespace":"n"}}"#;
        let cluster = r#"{"metadata":{"name":"x"}}"#;
        for kind in ["Secret", "ConfigMap", "ServiceAccount", "Other"] {
            check("", kind, named, &[]);
            check("", kind, cluster, &["metadata.namespace: Required value"]);
        }
        check("coordination.k8s.io", "Lease", named, &[]);
        check("rbac.authorization.k8s.io", "Role", r#"{"metadata":{"name":"a:b","namespace":"n"}}"#, &[]);
        check("rbac.authorization.k8s.io", "ClusterRole", r#"{"metadata":{"name":"a:b"}}"#, &[]);
        for kind in ["Namespace", "Node"] {
            check("", kind, cluster, &[]);
            check("", kind, named, &["metadata.namespace: Forbidden: not allowed on this type"]);
        }
        check(
            "",
            "Namespace",
            r#"{"metadata":{"name":"a.b"}}"#,
            &["metadata.name: Invalid value: \"a.b\": must not contain dots"],
        );
        check("", "Pod", named, &["spec.containers: Required value"]);
        check(
            "",
            "Event",
            r#"{"metadata":{"name":"a/b","namespace":"n"},"involvedObject":{"namespace":"n"}}"#,
            &["metadata.name: Invalid value: \"a/b\": may not contain '/'"],
        );
    }
}
