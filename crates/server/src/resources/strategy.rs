//! The rules of each kind, behind one trait. The rules themselves are pure and live in `coffer_types::validation`.

use std::sync::Arc;

use coffer_types::codec::autoscaling;
use coffer_types::meta::Meta as _;
use coffer_types::names;
use coffer_types::validation::field::{self, FieldErrors};
use coffer_types::validation::kinds::{self, KindRules};
use coffer_types::validation::meta::{self, MetaRules};
use coffer_types::validation::{node, plain, pod, rbac, secret};
use coffer_types::{SecretBytes, Value};

use crate::admission::policy_expressions;
use crate::admission::webhooks::conditions;
use crate::ports::UserInfo;

/// What is special about the objects of one resource.
pub(crate) trait Strategy: Send + Sync + 'static {
    /// Defaults and conversions right after an object was decoded.
    fn default(&self, object: &mut Value);

    /// Sets what a client may not choose.
    fn prepare_create(&self, object: &mut Value);

    /// What is wrong with a new object.
    fn validate_create(&self, object: &Value) -> FieldErrors;

    /// Takes over from `old` what this kind of update may not change.
    fn prepare_update(&self, subresource: &str, new: &mut Value, old: &Value);

    /// What is wrong with a changed object.
    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> FieldErrors;

    /// As [`Self::validate_update`]; tells as well what was wrong before and is let pass.
    fn validate_update_warning(
        &self,
        subresource: &str,
        new: &Value,
        old: &Value,
        _warnings: &mut Vec<String>,
    ) -> FieldErrors {
        self.validate_update(subresource, new, old)
    }

    /// Sets who wrote the object and when, where a kind says so: after it was prepared.
    fn stamp(&self, _subresource: &str, _new: &mut Value, _old: Option<&Value>, _stamp: &Stamp<'_>) {}

    /// What the client is told about an object that is accepted.
    fn warnings(&self, _new: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Fields that this kind of write ignores, so nobody comes to own them by it.
    fn reset_fields(&self, _subresource: &str) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Seconds between a deletion and its end, for kinds that end gracefully.
    fn grace_period(&self, _object: &Value, _wanted: Option<i64>) -> Option<i64> {
        None
    }

    /// Whether a first deletion sets the time only: no grace period, no new generation.
    fn marks_time_only(&self) -> bool {
        false
    }

    /// What a deletion changes besides the deletion time.
    fn prepare_deletion(&self, _object: &mut Value) {}

    /// Whether nothing holds an object that is being deleted.
    fn is_released(&self, object: &Value) -> bool {
        let grace = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
        object.finalizers().is_empty() && grace.unwrap_or(0) == 0
    }
}

/// Who writes, and when.
pub(crate) struct Stamp<'a> {
    /// The user.
    pub(crate) user: &'a UserInfo,
    /// The time, as it is stored.
    pub(crate) now: &'a str,
}

/// A built-in kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    Secret,
    ConfigMap,
    Namespace,
    ServiceAccount,
    Pod,
    Node,
    Event,
    Lease,
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
    /// Nothing is stored.
    Review,
}

impl BuiltIn {
    /// The kind of that name.
    pub(crate) fn of(kind: &str) -> Self {
        match kind {
            "Secret" => Self::Secret,
            "ConfigMap" => Self::ConfigMap,
            "Namespace" => Self::Namespace,
            "ServiceAccount" => Self::ServiceAccount,
            "Pod" => Self::Pod,
            "Node" => Self::Node,
            "Event" => Self::Event,
            "Lease" => Self::Lease,
            "Role" => Self::Role,
            "ClusterRole" => Self::ClusterRole,
            "RoleBinding" => Self::RoleBinding,
            "ClusterRoleBinding" => Self::ClusterRoleBinding,
            _ => Self::Review,
        }
    }

    fn rules(self) -> MetaRules {
        let namespaced = !matches!(
            self,
            Self::Namespace | Self::Node | Self::ClusterRole | Self::ClusterRoleBinding | Self::Review
        );
        let name = match self {
            Self::Namespace => names::dns_label,
            Self::Role | Self::ClusterRole | Self::RoleBinding | Self::ClusterRoleBinding => {
                names::path_segment
            }
            _ => names::dns_subdomain,
        };
        let core = !matches!(self, Self::Lease | Self::Review);
        MetaRules { namespaced, name, qualified_finalizers: core }
    }
}

impl Strategy for BuiltIn {
    fn default(&self, object: &mut Value) {
        match self {
            Self::Secret => secret::default(object),
            Self::ConfigMap => plain::default_config_map(object),
            Self::Namespace => plain::default_namespace(object),
            Self::Pod => pod::default(object),
            Self::Node => node::default(object),
            Self::RoleBinding | Self::ClusterRoleBinding => rbac::default_binding(object),
            _ => {}
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        match self {
            Self::Namespace => plain::prepare_namespace_create(object),
            Self::Pod => pod::prepare_create(object),
            Self::Lease => plain::drop_lease_election(object, None),
            _ => {}
        }
    }

    fn validate_create(&self, object: &Value) -> FieldErrors {
        let rules = self.rules();
        let mut errors = match self {
            Self::Secret => secret::validate(object, rules),
            Self::ConfigMap => plain::validate_config_map(object, rules),
            Self::Namespace => plain::validate_namespace(object, rules),
            Self::Pod => pod::validate(object, rules),
            Self::Node => node::validate(object, rules),
            Self::Event => plain::validate_event(
                &crate::wire::events::core_event(object),
                crate::wire::events::is_core(object),
                rules,
            ),
            Self::Lease => plain::validate_lease(object, rules),
            Self::Role | Self::ClusterRole => rbac::validate_role(object, rules),
            Self::RoleBinding | Self::ClusterRoleBinding => rbac::validate_binding(object, rules),
            Self::ServiceAccount => meta::validate(object, rules),
            Self::Review => return FieldErrors::new(),
        };
        if errors.is_empty() {
            errors = meta::validate(object, rules.generic());
        }
        field::without_repetitions(errors)
    }

    fn prepare_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        match (self, subresource) {
            (Self::Secret, _) => secret::prepare_update(new, old),
            (Self::Namespace, "") => plain::prepare_namespace_update(new, old),
            (Self::Namespace, "status") => keep(new, old, &["spec"]),
            (Self::Namespace, _) => keep(new, old, &["status"]),
            (Self::Pod, "") => pod::prepare_update(new, old),
            (Self::Pod, _) => pod::prepare_status_update(new, old),
            (Self::Node, "") => node::prepare_update(new, old),
            (Self::Node, _) => node::prepare_status_update(new, old),
            (Self::Lease, _) => plain::drop_lease_election(new, Some(old)),
            _ => {}
        }
    }

    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> FieldErrors {
        let rules = self.rules();
        // What holds by the rules of Secrets holds by the generic ones.
        if *self == Self::Secret && secret::validate_update(new, old, rules).is_empty() {
            return FieldErrors::new();
        }
        let mut errors = meta::validate(new, rules.generic());
        errors.extend(meta::validate_update(new, old, rules.generic()));
        errors.extend(match (self, subresource) {
            (Self::Secret, _) => secret::validate_update(new, old, rules),
            (Self::ConfigMap, _) => plain::validate_config_map_update(new, old, rules),
            (Self::Namespace, "") => plain::validate_namespace_update(new, old, rules),
            (Self::Namespace, "status") => plain::validate_namespace_status(new, old, rules),
            (Self::Namespace, _) => plain::validate_namespace_finalize(new, old, rules),
            (Self::Pod, "") => pod::validate_update(new, old, rules),
            (Self::Pod, _) => pod::validate_status_update(new, old, rules),
            (Self::Node, _) => node::validate_update(new, old, rules),
            (Self::Event, _) => plain::validate_event_update(
                &crate::wire::events::core_event(new),
                &crate::wire::events::core_event(old),
                crate::wire::events::is_core(new),
                rules,
            ),
            (Self::Lease, _) => plain::validate_lease_update(new, old, rules),
            (Self::Role | Self::ClusterRole, _) => rbac::validate_role_update(new, old, rules),
            (Self::RoleBinding | Self::ClusterRoleBinding, _) => {
                rbac::validate_binding_update(new, old, rules)
            }
            (Self::ServiceAccount, _) => {
                let mut errors = meta::validate(new, rules);
                errors.extend(meta::validate_update(new, old, rules));
                errors
            }
            (Self::Review, _) => return FieldErrors::new(),
        });
        field::without_repetitions(errors)
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        match self {
            Self::Secret => secret::warnings(new, &KeyPair),
            _ => Vec::new(),
        }
    }

    fn reset_fields(&self, subresource: &str) -> &'static [&'static [&'static str]] {
        const STATUS: &[&[&str]] = &[&["status"]];
        const SPEC: &[&[&str]] = &[&["spec"]];
        const POD: &[&[&str]] =
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]];
        match (self, subresource) {
            (Self::Namespace | Self::Pod | Self::Node, "") => STATUS,
            (Self::Namespace, "finalize") => STATUS,
            (Self::Pod, _) => POD,
            (Self::Namespace | Self::Node, _) => SPEC,
            _ => &[],
        }
    }

    fn grace_period(&self, object: &Value, wanted: Option<i64>) -> Option<i64> {
        if *self != Self::Pod {
            return None;
        }
        let own = object.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
        let grace = wanted.or(own).unwrap_or(0);
        let unscheduled = object.str_at(&["spec", "nodeName"]).is_empty();
        let ended = matches!(object.str_at(&["status", "phase"]), "Failed" | "Succeeded");
        Some(match () {
            () if unscheduled || ended => 0,
            () if grace < 0 => 1,
            () => grace,
        })
    }

    fn marks_time_only(&self) -> bool {
        *self == Self::Namespace
    }

    fn prepare_deletion(&self, object: &mut Value) {
        if *self == Self::Namespace {
            object.set(&["status", "phase"], "Terminating");
        }
    }

    fn is_released(&self, object: &Value) -> bool {
        if *self == Self::Namespace {
            let own = object.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
            return object.finalizers().is_empty() && own.is_empty();
        }
        let grace = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
        object.finalizers().is_empty() && grace.unwrap_or(0) == 0
    }
}

/// The rules of a built-in kind.
pub(crate) fn of(group: &str, version: &str, kind: &str) -> Arc<dyn Strategy> {
    match kinds::of(group, kind) {
        Some(rules) if (group, version) == ("autoscaling", "v1") => Arc::new(OlderAutoscaler(rules)),
        Some(rules) => Arc::new(Stored(rules)),
        None => Arc::new(BuiltIn::of(kind)),
    }
}

/// A kind that is stored for others.
struct Stored(&'static KindRules);

impl Stored {
    /// What is wrong with the expressions of a kind that has some.
    fn validate_expressions(&self, object: &Value) -> FieldErrors {
        match self.0.kind {
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                conditions::check_all(object)
            }
            "ValidatingAdmissionPolicy" => policy_expressions::check_validating(object),
            _ => FieldErrors::new(),
        }
    }
}

impl Strategy for Stored {
    fn default(&self, object: &mut Value) {
        self.0.default(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        self.0.prepare_create(object);
    }

    fn validate_create(&self, object: &Value) -> FieldErrors {
        let mut errors = self.0.validate(object);
        errors.extend(self.validate_expressions(object));
        errors
    }

    fn prepare_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        self.0.prepare_update(subresource, new, old);
    }

    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> FieldErrors {
        let mut errors = self.0.validate_update(subresource, new, old);
        if subresource.is_empty() {
            errors.extend(self.validate_expressions(new));
        }
        errors
    }

    fn reset_fields(&self, subresource: &str) -> &'static [&'static [&'static str]] {
        self.0.reset_fields(subresource)
    }

    fn stamp(&self, subresource: &str, new: &mut Value, old: Option<&Value>, stamp: &Stamp<'_>) {
        match (self.0.kind, old) {
            ("PersistentVolume", old) => stamp_phase(subresource, new, old, stamp.now),
            ("APIService", None) => {
                let conditions = new.get_mut("status").and_then(|status| status.get_mut("conditions"));
                for condition in conditions.and_then(Value::as_array_mut).into_iter().flatten() {
                    condition.set(&["lastTransitionTime"], stamp.now);
                }
            }
            ("DeviceTaintRule", old) => stamp_taint(subresource, new, old, stamp.now),
            ("CertificateSigningRequest", None) => stamp_requester(new, stamp.user),
            ("CertificateSigningRequest", Some(old)) if !subresource.is_empty() => {
                stamp_conditions(new, old, stamp.now);
            }
            _ => {}
        }
    }
}

/// A HorizontalPodAutoscaler of the older version: the rules are about what it is in the newer one.
struct OlderAutoscaler(&'static KindRules);

impl Strategy for OlderAutoscaler {
    fn default(&self, object: &mut Value) {
        if let Some(kind) = coffer_types::schema::lookup("autoscaling", "v1", "HorizontalPodAutoscaler") {
            coffer_types::defaults::apply(kind.message, object);
        }
        // The percentage that is meant where nothing else is said.
        *object = autoscaling::to_v1(&autoscaling::to_v2(object));
    }

    fn prepare_create(&self, object: &mut Value) {
        let mut newer = autoscaling::to_v2(object);
        self.0.prepare_create(&mut newer);
        *object = autoscaling::to_v1(&newer);
    }

    fn validate_create(&self, object: &Value) -> FieldErrors {
        self.0.validate(&autoscaling::to_v2(object))
    }

    fn prepare_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        let mut newer = autoscaling::to_v2(new);
        self.0.prepare_update(subresource, &mut newer, &autoscaling::to_v2(old));
        *new = autoscaling::to_v1(&newer);
    }

    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> FieldErrors {
        self.0.validate_update(subresource, &autoscaling::to_v2(new), &autoscaling::to_v2(old))
    }

    fn reset_fields(&self, subresource: &str) -> &'static [&'static [&'static str]] {
        self.0.reset_fields(subresource)
    }
}

/// When a volume came into its phase.
fn stamp_phase(subresource: &str, new: &mut Value, old: Option<&Value>, now: &str) {
    const TIME: [&str; 2] = ["status", "lastPhaseTransitionTime"];
    let Some(old) = old else { return new.set(&TIME, now) };
    if subresource != "status" {
        return;
    }
    let same = new.str_at(&["status", "phase"]) == old.str_at(&["status", "phase"]);
    match (same, new.at(&TIME).cloned()) {
        (true, None) => keep(new, old, &TIME),
        (false, own) if own.is_none() || own.as_ref() == old.at(&TIME) => new.set(&TIME, now),
        _ => {}
    }
}

/// When a taint of devices came to have its effect.
fn stamp_taint(subresource: &str, new: &mut Value, old: Option<&Value>, now: &str) {
    const TIME: [&str; 3] = ["spec", "taint", "timeAdded"];
    const EFFECT: [&str; 3] = ["spec", "taint", "effect"];
    if subresource == "status" {
        return;
    }
    let absent = new.at(&TIME).is_none_or(Value::is_null);
    let Some(old) = old else {
        if absent {
            new.set(&TIME, now);
        }
        return;
    };
    let same_time = new.at(&TIME) == old.at(&TIME);
    if absent || same_time && new.at(&EFFECT) != old.at(&EFFECT) {
        let unchanged = new.at(&["metadata", "generation"]) == old.at(&["metadata", "generation"]);
        let before = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
        new.set(&TIME, now);
        if unchanged && new.at(&TIME) != old.at(&TIME) {
            new.set(&["metadata", "generation"], before + 1);
        }
    }
}

/// Who asks for a certificate is for the server to say.
fn stamp_requester(request: &mut Value, user: &UserInfo) {
    for field in ["username", "uid", "groups", "extra"] {
        request.remove(&["spec", field]);
    }
    request.set_str(&["spec", "username"], &user.name);
    request.set_str(&["spec", "uid"], &user.uid);
    if !user.groups.is_empty() {
        let groups: Vec<Value> = user.groups.iter().map(|group| group.as_str().into()).collect();
        request.set(&["spec", "groups"], groups);
    }
    for (key, values) in &user.extra {
        let values: Vec<Value> = values.iter().map(|value| value.as_str().into()).collect();
        request.set(&["spec", "extra", key], values);
    }
}

/// When each condition was written, and when it came to be what it is.
fn stamp_conditions(new: &mut Value, old: &Value, now: &str) {
    let before = old.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let conditions = new.get_mut("status").and_then(|status| status.get_mut("conditions"));
    for condition in conditions.and_then(Value::as_array_mut).into_iter().flatten() {
        if condition.str_at(&["lastUpdateTime"]).is_empty() {
            condition.set(&["lastUpdateTime"], now);
        }
        if condition.str_at(&["lastTransitionTime"]).is_empty() {
            let same = |one: &&Value| {
                one.get("type") == condition.get("type") && one.get("status") == condition.get("status")
            };
            let time = before.iter().find(same).map(|one| one.str_at(&["lastTransitionTime"]).to_owned());
            let time = time.filter(|time| !time.is_empty()).unwrap_or_else(|| now.to_owned());
            condition.set(&["lastTransitionTime"], time);
        }
    }
}

/// `new[path]` becomes what it was.
fn keep(new: &mut Value, old: &Value, path: &[&str]) {
    match old.at(path) {
        Some(value) => new.set(path, value.clone()),
        None => {
            new.remove(path);
        }
    }
}

/// Whether a TLS Secret's key belongs to its certificate.
struct KeyPair;

impl secret::PairCheck for KeyPair {
    fn check(&self, chain: &[Vec<u8>], key: &SecretBytes) -> Result<(), String> {
        let unparsable = || "tls: failed to parse private key".to_owned();
        let key = rustls::pki_types::PrivateKeyDer::try_from(key.expose()).map_err(|_| unparsable())?;
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).map_err(|_| unparsable())?;
        let Some(leaf) = chain.first() else { return Ok(()) };
        let (_, leaf) = x509_parser::parse_x509_certificate(leaf)
            .map_err(|_| "x509: malformed certificate".to_owned())?;
        let public = leaf.public_key();
        let Some(own) = key.public_key() else { return Ok(()) };
        if own.as_ref() == public.raw {
            return Ok(());
        }
        let same_type = x509_parser::x509::SubjectPublicKeyInfo::from_der(own.as_ref())
            .is_ok_and(|(_, own)| own.algorithm.algorithm == public.algorithm.algorithm);
        Err(if same_type {
            "tls: private key does not match public key".to_owned()
        } else {
            "tls: private key type does not match public key type".to_owned()
        })
    }
}

use x509_parser::prelude::FromDer as _;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_ends_at_once_where_nobody_runs_it() {
        let pod = |node: &str, phase: &str, own: i64| {
            let mut pod = Value::object();
            pod.set_str(&["spec", "nodeName"], node);
            pod.set(&["spec", "terminationGracePeriodSeconds"], own);
            pod.set_str(&["status", "phase"], phase);
            pod
        };
        for (pod, wanted, expected) in [
            (pod("", "Pending", 30), None, 0),
            (pod("n", "Running", 30), None, 30),
            (pod("n", "Running", 30), Some(5), 5),
            (pod("n", "Running", 30), Some(0), 0),
            (pod("n", "Running", 30), Some(-1), 1),
            (pod("n", "Succeeded", 30), None, 0),
        ] {
            assert_eq!(BuiltIn::Pod.grace_period(&pod, wanted), Some(expected), "{wanted:?}");
        }
        assert_eq!(BuiltIn::Secret.grace_period(&Value::object(), None), None);
    }
}
