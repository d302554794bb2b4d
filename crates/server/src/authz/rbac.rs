//! Role-based access control: a decision over an indexed snapshot of roles and bindings.
//!
//! A decision looks only at bindings that name the user, one of its groups or its service
//! account, so its cost does not grow with the number of bindings of others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::Meta as _;
use coffer_types::{Status, Value};
use parking_lot::RwLock;

use super::RuleResolver;
use super::quote::{aggregate, quote};
use super::rule::Rule;
use crate::ports::{Attributes, Authorizer, Change, Decision, UserInfo};

/// The authorizer and the rule resolver, over a policy that [`Rbac::apply`] keeps up to date.
#[derive(Debug, Default)]
pub struct Rbac {
    policy: RwLock<Policy>,
}

/// Roles and bindings, indexed by subject.
#[derive(Debug, Default)]
struct Policy {
    cluster_roles: HashMap<String, Arc<[Rule]>>,
    /// By namespace and name.
    roles: HashMap<(String, String), Arc<[Rule]>>,
    cluster_bindings: Scope,
    /// By namespace.
    bindings: HashMap<String, Scope>,
}

/// The bindings of one namespace, or those of the cluster.
#[derive(Debug, Default)]
struct Scope {
    /// Ordered, so that the reason of a decision is always the same.
    bindings: BTreeMap<String, Arc<Binding>>,
    by_subject: HashMap<Holder, BTreeSet<String>>,
}

#[derive(Debug)]
struct Binding {
    /// `ClusterRoleBinding "b"` or `RoleBinding "b/ns"`.
    description: String,
    role_kind: String,
    role_name: String,
    subjects: Vec<Subject>,
}

#[derive(Debug)]
struct Subject {
    /// `User "u"`, `Group "g"` or `ServiceAccount "name/namespace"`.
    description: String,
    holder: Option<Holder>,
}

/// Who holds a binding: a service account is a user of a special name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Holder {
    User(String),
    Group(String),
}

/// One of the four kinds that make up the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// ClusterRoles.
    ClusterRole,
    /// Roles.
    Role,
    /// ClusterRoleBindings.
    ClusterRoleBinding,
    /// RoleBindings.
    RoleBinding,
}

impl PolicyKind {
    /// All four.
    pub const ALL: [Self; 4] = [Self::ClusterRole, Self::Role, Self::ClusterRoleBinding, Self::RoleBinding];

    /// The `kind` of one object.
    pub fn kind(self) -> &'static str {
        match self {
            Self::ClusterRole => "ClusterRole",
            Self::Role => "Role",
            Self::ClusterRoleBinding => "ClusterRoleBinding",
            Self::RoleBinding => "RoleBinding",
        }
    }

    /// The plural.
    pub fn resource(self) -> &'static str {
        match self {
            Self::ClusterRole => "clusterroles",
            Self::Role => "roles",
            Self::ClusterRoleBinding => "clusterrolebindings",
            Self::RoleBinding => "rolebindings",
        }
    }
}

impl Rbac {
    /// Takes one change of the stored roles and bindings.
    pub fn apply(&self, kind: PolicyKind, change: &Change) {
        let mut policy = self.policy.write();
        match change {
            Change::Reset(objects) => {
                policy.clear(kind);
                for object in objects {
                    policy.put(kind, object);
                }
            }
            Change::Applied(object) => policy.put(kind, object),
            Change::Deleted(object) => policy.remove(kind, object.namespace(), object.name()),
        }
    }

    /// Every rule that applies to `user` in `namespace`, and what could not be resolved.
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let policy = self.policy.read();
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        policy.visit(user, namespace, |_, found| {
            match found {
                Ok(found) => rules.extend(found.iter().cloned()),
                Err(error) => errors.push(error),
            }
            true
        });
        (rules, errors)
    }

    /// The rules of the role that a binding in `namespace` ("" for a ClusterRoleBinding) refers to.
    ///
    /// # Errors
    /// The 404 of a missing role.
    pub fn role_rules(&self, kind: &str, name: &str, namespace: &str) -> Result<Arc<[Rule]>, Status> {
        let policy = self.policy.read();
        let (resource, rules) = match kind {
            "Role" => ("role", policy.roles.get(&(namespace.to_owned(), name.to_owned()))),
            "ClusterRole" => ("clusterrole", policy.cluster_roles.get(name)),
            _ => return Err(Status::plain(format!("unsupported role reference kind: {}", quote(kind)))),
        };
        rules.cloned().ok_or_else(|| Status::not_found(super::bootstrap::GROUP, resource, name))
    }

    fn decide(&self, attributes: &Attributes) -> Decision {
        let policy = self.policy.read();
        let mut reason = None;
        let mut errors = Vec::new();
        policy.visit(&attributes.user, &attributes.namespace, |source, found| {
            match found {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    reason = Some(format!("RBAC: allowed by {}", source()));
                    return false;
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
            true
        });
        match reason {
            Some(reason) => Decision::Allow(reason),
            None if errors.is_empty() => Decision::NoOpinion(String::new()),
            None => Decision::NoOpinion(format!("RBAC: {}", aggregate(&errors))),
        }
    }
}

#[async_trait]
impl Authorizer for Rbac {
    async fn authorize(&self, attributes: &Attributes) -> (Decision, Option<String>) {
        (self.decide(attributes), None)
    }
}

impl RuleResolver for Rbac {
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        Self::rules_for(self, user, namespace)
    }
}

impl Policy {
    fn clear(&mut self, kind: PolicyKind) {
        match kind {
            PolicyKind::ClusterRole => self.cluster_roles.clear(),
            PolicyKind::Role => self.roles.clear(),
            PolicyKind::ClusterRoleBinding => self.cluster_bindings = Scope::default(),
            PolicyKind::RoleBinding => self.bindings.clear(),
        }
    }

    fn put(&mut self, kind: PolicyKind, object: &Value) {
        let (namespace, name) = (object.namespace(), object.name());
        match kind {
            PolicyKind::ClusterRole => {
                self.cluster_roles.insert(name.to_owned(), Rule::list_from(object).into());
            }
            PolicyKind::Role => {
                self.roles.insert((namespace.to_owned(), name.to_owned()), Rule::list_from(object).into());
            }
            PolicyKind::ClusterRoleBinding => {
                let description = format!("ClusterRoleBinding {}", quote(name));
                self.cluster_bindings.put(name, Binding::new(object, description, ""));
            }
            PolicyKind::RoleBinding => {
                let description = format!("RoleBinding {}", quote(&format!("{name}/{namespace}")));
                let scope = self.bindings.entry(namespace.to_owned()).or_default();
                scope.put(name, Binding::new(object, description, namespace));
            }
        }
    }

    fn remove(&mut self, kind: PolicyKind, namespace: &str, name: &str) {
        match kind {
            PolicyKind::ClusterRole => {
                self.cluster_roles.remove(name);
            }
            PolicyKind::Role => {
                self.roles.remove(&(namespace.to_owned(), name.to_owned()));
            }
            PolicyKind::ClusterRoleBinding => self.cluster_bindings.remove(name),
            PolicyKind::RoleBinding => {
                if let Some(scope) = self.bindings.get_mut(namespace) {
                    scope.remove(name);
                    if scope.bindings.is_empty() {
                        self.bindings.remove(namespace);
                    }
                }
            }
        }
    }

    /// Shows the rules of every binding that applies, cluster first, until `visitor` says no.
    fn visit(
        &self,
        user: &UserInfo,
        namespace: &str,
        mut visitor: impl FnMut(&dyn Fn() -> String, Result<&[Rule], String>) -> bool,
    ) {
        let scopes = [
            Some((&self.cluster_bindings, "")),
            self.bindings.get(namespace).map(|scope| (scope, namespace)),
        ];
        for (scope, namespace) in scopes.into_iter().flatten() {
            for (binding, subject) in scope.of(user) {
                let source = || {
                    let Binding { description, role_kind, role_name, .. } = binding;
                    format!("{description} of {role_kind} {} to {}", quote(role_name), subject.description)
                };
                if !visitor(&source, self.resolve(binding, namespace)) {
                    return;
                }
            }
        }
    }

    fn resolve(&self, binding: &Binding, namespace: &str) -> Result<&[Rule], String> {
        let (resource, rules) = match binding.role_kind.as_str() {
            "Role" => ("role", self.roles.get(&(namespace.to_owned(), binding.role_name.clone()))),
            "ClusterRole" => ("clusterrole", self.cluster_roles.get(&binding.role_name)),
            other => return Err(format!("unsupported role reference kind: {}", quote(other))),
        };
        rules.map(|rules| &**rules).ok_or_else(|| {
            format!("{resource}.{} {} not found", super::bootstrap::GROUP, quote(&binding.role_name))
        })
    }
}

impl Scope {
    fn put(&mut self, name: &str, binding: Binding) {
        self.remove(name);
        for holder in binding.subjects.iter().filter_map(|subject| subject.holder.clone()) {
            self.by_subject.entry(holder).or_default().insert(name.to_owned());
        }
        self.bindings.insert(name.to_owned(), Arc::new(binding));
    }

    fn remove(&mut self, name: &str) {
        let Some(old) = self.bindings.remove(name) else { return };
        for holder in old.subjects.iter().filter_map(|subject| subject.holder.as_ref()) {
            if let Some(names) = self.by_subject.get_mut(holder) {
                names.remove(name);
                if names.is_empty() {
                    self.by_subject.remove(holder);
                }
            }
        }
    }

    /// The bindings that apply to `user` in the order of their names, each with its first subject that does.
    fn of<'a>(&'a self, user: &UserInfo) -> Vec<(&'a Binding, &'a Subject)> {
        let holders: Vec<Holder> = std::iter::once(Holder::User(user.name.clone()))
            .chain(user.groups.iter().cloned().map(Holder::Group))
            .collect();
        let names: BTreeSet<&String> =
            holders.iter().filter_map(|holder| self.by_subject.get(holder)).flatten().collect();
        names
            .into_iter()
            .filter_map(|name| {
                let binding = self.bindings.get(name)?;
                let applies = |subject: &&Subject| {
                    subject.holder.as_ref().is_some_and(|holder| holders.contains(holder))
                };
                Some((&**binding, binding.subjects.iter().find(applies)?))
            })
            .collect()
    }
}

impl Binding {
    fn new(object: &Value, description: String, namespace: &str) -> Self {
        let subjects = object.get("subjects").and_then(Value::as_array).unwrap_or_default();
        Self {
            description,
            role_kind: object.str_at(&["roleRef", "kind"]).to_owned(),
            role_name: object.str_at(&["roleRef", "name"]).to_owned(),
            subjects: subjects.iter().map(|subject| Subject::new(subject, namespace)).collect(),
        }
    }
}

impl Subject {
    fn new(subject: &Value, binding_namespace: &str) -> Self {
        let kind = subject.str_at(&["kind"]);
        let name = subject.str_at(&["name"]);
        let namespace = match subject.str_at(&["namespace"]) {
            "" => binding_namespace,
            own => own,
        };
        let holder = match kind {
            "User" => Some(Holder::User(name.to_owned())),
            "Group" => Some(Holder::Group(name.to_owned())),
            "ServiceAccount" if !namespace.is_empty() => {
                Some(Holder::User(crate::authn::service_account_username(namespace, name)))
            }
            _ => None,
        };
        let shown = if kind == "ServiceAccount" { format!("{name}/{namespace}") } else { name.to_owned() };
        Self { description: format!("{kind} {}", quote(&shown)), holder }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A policy from lines of the bootstrap table.
    pub(crate) fn rbac(table: &str) -> Rbac {
        let rbac = Rbac::default();
        for object in super::super::bootstrap::parse(table).expect("a table") {
            let kind = PolicyKind::ALL
                .into_iter()
                .find(|kind| kind.kind() == object.kind())
                .expect("one of the four kinds");
            rbac.apply(kind, &Change::Applied(Box::new(object)));
        }
        rbac
    }

    pub(crate) fn user(name: &str, groups: &[&str]) -> UserInfo {
        UserInfo {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..UserInfo::default()
        }
    }

    fn request(who: &str, verb: &str, resource: &str, namespace: &str, name: &str) -> Attributes {
        let mut words = who.split('+');
        let user = user(words.next().unwrap_or_default(), &words.collect::<Vec<_>>());
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes {
            user,
            verb: verb.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: namespace.into(),
            name: name.into(),
            resource_request: true,
            ..Attributes::default()
        }
    }

    const TABLE: &str = "\
ClusterRole reader
  get,list core secrets
ClusterRole one
  get core secrets db
Role n1/writer
  create,update core secrets
ClusterRoleBinding all-readers ClusterRole reader User:ann Group:ops ServiceAccount:n1/robot
ClusterRoleBinding broken ClusterRole gone User:bob
ClusterRoleBinding broken2 ClusterRole gone2 User:bob
RoleBinding n1/one-reader ClusterRole one User:bob
RoleBinding n1/writers Role writer ServiceAccount:n1/robot User:cleo
RoleBinding n2/writers Role writer User:cleo
";

    /// In whatever order the bindings came to be, the reason names the first by name.
    #[test]
    fn the_reason_names_the_first_binding_by_name() {
        const ROLE: &str = "ClusterRole reader\n  get core secrets\n";
        let bindings = |kind: &str, place: &str| {
            ["c", "a", "b"]
                .map(|name| format!("{kind} {place}{name} ClusterRole reader Group:ops User:ann\n"))
        };
        for (kind, place, shown) in [("ClusterRoleBinding", "", "a"), ("RoleBinding", "n1/", "a/n1")] {
            let [c, a, b] = bindings(kind, place);
            for order in [[&a, &b, &c], [&a, &c, &b], [&b, &a, &c], [&b, &c, &a], [&c, &a, &b], [&c, &b, &a]]
            {
                let rbac = rbac(&format!("{ROLE}{}", order.map(String::as_str).concat()));
                for _ in 0..3 {
                    let decision = rbac.decide(&request("ann+ops", "get", "secrets", "n1", "x"));
                    let expected = format!(
                        "RBAC: allowed by {kind} {shown:?} of ClusterRole \"reader\" to Group \"ops\""
                    );
                    assert_eq!(decision, Decision::Allow(expected));
                }
            }
        }
    }

    #[test]
    fn the_matrix_of_decisions_and_reasons() {
        let rbac = rbac(TABLE);
        let missing = "RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, clusterrole.rbac.authorization.k8s.io \"gone2\" not found]";
        for (who, verb, resource, namespace, name, expected) in [
            (
                "ann",
                "get",
                "secrets",
                "n9",
                "x",
                Ok(
                    "RBAC: allowed by ClusterRoleBinding \"all-readers\" of ClusterRole \"reader\" to User \"ann\"",
                ),
            ),
            (
                "zoe+ops",
                "list",
                "secrets",
                "",
                "",
                Ok(
                    "RBAC: allowed by ClusterRoleBinding \"all-readers\" of ClusterRole \"reader\" to Group \"ops\"",
                ),
            ),
            (
                "system:serviceaccount:n1:robot",
                "get",
                "secrets",
                "n3",
                "x",
                Ok(
                    "RBAC: allowed by ClusterRoleBinding \"all-readers\" of ClusterRole \"reader\" to ServiceAccount \"robot/n1\"",
                ),
            ),
            ("system:serviceaccount:n2:robot", "get", "secrets", "n3", "x", Err("")),
            ("ann", "delete", "secrets", "n1", "x", Err("")),
            ("ann", "get", "secrets/status", "n1", "x", Err("")),
            (
                "bob",
                "get",
                "secrets",
                "n1",
                "db",
                Ok("RBAC: allowed by RoleBinding \"one-reader/n1\" of ClusterRole \"one\" to User \"bob\""),
            ),
            ("bob", "get", "secrets", "n1", "other", Err(missing)),
            ("bob", "get", "secrets", "n2", "db", Err(missing)),
            (
                "system:serviceaccount:n1:robot",
                "create",
                "secrets",
                "n1",
                "",
                Ok(
                    "RBAC: allowed by RoleBinding \"writers/n1\" of Role \"writer\" to ServiceAccount \"robot/n1\"",
                ),
            ),
            (
                "cleo",
                "create",
                "secrets",
                "n1",
                "",
                Ok("RBAC: allowed by RoleBinding \"writers/n1\" of Role \"writer\" to User \"cleo\""),
            ),
            (
                "cleo",
                "create",
                "secrets",
                "n2",
                "",
                Err("RBAC: role.rbac.authorization.k8s.io \"writer\" not found"),
            ),
            ("cleo", "create", "secrets", "", "", Err("")),
            ("", "get", "secrets", "n1", "x", Err("")),
        ] {
            let expected = match expected {
                Ok(reason) => Decision::Allow(reason.to_owned()),
                Err(reason) => Decision::NoOpinion(reason.to_owned()),
            };
            let attributes = request(who, verb, resource, namespace, name);
            assert_eq!(rbac.decide(&attributes), expected, "{who} {verb} {resource} {namespace}/{name}");
        }
    }

    #[test]
    fn changes_move_the_index() {
        let rbac = rbac(TABLE);
        let ann = request("ann", "get", "secrets", "n1", "x");
        let allowed = |rbac: &Rbac| matches!(rbac.decide(&ann), Decision::Allow(_));
        assert!(allowed(&rbac));
        let objects = super::super::bootstrap::parse(TABLE).expect("a table");
        let binding = objects.iter().find(|object| object.name() == "all-readers").expect("in the table");

        let mut others = binding.clone();
        others.set(&["subjects"], Vec::new());
        rbac.apply(PolicyKind::ClusterRoleBinding, &Change::Applied(Box::new(others)));
        assert!(!allowed(&rbac));
        rbac.apply(PolicyKind::ClusterRoleBinding, &Change::Applied(Box::new(binding.clone())));
        assert!(allowed(&rbac));
        rbac.apply(PolicyKind::ClusterRoleBinding, &Change::Deleted(Box::new(binding.clone())));
        assert!(!allowed(&rbac));
        rbac.apply(PolicyKind::ClusterRoleBinding, &Change::Reset(vec![binding.clone()]));
        assert!(allowed(&rbac));
        rbac.apply(PolicyKind::ClusterRole, &Change::Reset(Vec::new()));
        assert!(!allowed(&rbac));
    }

    #[test]
    fn a_decision_looks_only_at_bindings_of_the_user() {
        let rbac = rbac(TABLE);
        let mut table = String::new();
        for number in 0..2_000 {
            table.push_str(&format!(
                "ClusterRoleBinding x{number} ClusterRole reader User:u{number} Group:g{number}\n"
            ));
        }
        for object in super::super::bootstrap::parse(&table).expect("a table") {
            rbac.apply(PolicyKind::ClusterRoleBinding, &Change::Applied(Box::new(object)));
        }
        let mut user = user("ann", &["ops"]);
        let policy = rbac.policy.read();
        assert_eq!(policy.cluster_bindings.of(&user).len(), 1);
        user.groups.push("g7".to_owned());
        assert_eq!(policy.cluster_bindings.of(&user).len(), 2);
    }

    #[test]
    fn the_bootstrap_policy_decides_as_upstream() {
        let table = include_str!("bootstrap_roles.txt");
        let rbac = rbac(table);
        let path = |who: &str, verb: &str, path: &str| {
            let mut attributes = request(who, verb, "", "", "");
            attributes.resource_request = false;
            attributes.path = path.to_owned();
            attributes
        };
        let allowed = |attributes: Attributes| matches!(rbac.decide(&attributes), Decision::Allow(_));
        let anonymous = "system:anonymous+system:unauthenticated";
        let someone = "ann+system:authenticated";
        assert!(allowed(path(anonymous, "get", "/version")));
        assert!(allowed(path(anonymous, "get", "/healthz")));
        assert!(!allowed(path(anonymous, "get", "/api")));
        assert!(allowed(path(someone, "get", "/api")));
        assert!(allowed(path(someone, "get", "/openapi/v3/api/v1")));
        assert!(!allowed(path(someone, "get", "/metrics")));
        assert!(!allowed(request(someone, "get", "secrets", "default", "x")));
        assert!(allowed(path("x+system:masters", "get", "/metrics")));
        assert!(allowed(path("system:serviceaccount:a:b+system:serviceaccounts", "get", "/openid/v1/jwks")));
    }
}
