//! Authorization: may they.
//!
//! A request is shown to each authorizer in turn until one has an opinion; the group
//! `system:masters` may do anything before anyone else is asked.

pub mod bootstrap;
pub mod escalation;
pub mod impersonation;
pub mod node;
pub(crate) mod quote;
pub mod rbac;
pub mod rule;

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::Status;

pub use self::node::NodeAuthorizer;
use self::quote::{aggregate, quote};
pub use self::rbac::Rbac;
use self::rule::Rule;
use crate::ports::{Attributes, Authorizer, Decision, UserInfo};

/// The group that may do anything.
pub const SUPERUSER_GROUP: &str = "system:masters";

/// Lists the rules that apply to a user, for SelfSubjectRulesReview.
pub trait RuleResolver: Send + Sync + 'static {
    /// The rules and what could not be resolved.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Vec<String>);
}

/// An authorization mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything is allowed.
    AlwaysAllow,
    /// Nothing is allowed.
    AlwaysDeny,
    /// Roles and bindings decide.
    Rbac,
    /// Pods that are bound to a node decide what it reads.
    Node,
}

impl Mode {
    /// A mode of the flag `--authorization-mode`.
    ///
    /// # Errors
    /// Upstream's text for a mode that is not known.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "AlwaysAllow" => Ok(Self::AlwaysAllow),
            "AlwaysDeny" => Ok(Self::AlwaysDeny),
            "RBAC" => Ok(Self::Rbac),
            "Node" => Ok(Self::Node),
            other => Err(format!("authorization-mode {} is not a valid mode", quote(other))),
        }
    }
}

impl Mode {
    /// By which a refusal names who said what.
    fn name(self) -> &'static str {
        match self {
            Self::AlwaysAllow => "alwaysallow",
            Self::AlwaysDeny => "alwaysdeny",
            Self::Rbac => "rbac",
            Self::Node => "node",
        }
    }
}

/// The authorizers of the configured modes, in order.
pub struct Chain {
    modes: Vec<Mode>,
    rbac: Arc<Rbac>,
    node: Arc<NodeAuthorizer>,
}

impl Chain {
    /// A chain. `rbac` is used by [`Mode::Rbac`] only, `node` by [`Mode::Node`].
    pub fn new(modes: Vec<Mode>, rbac: Arc<Rbac>, node: Arc<NodeAuthorizer>) -> Self {
        Self { modes, rbac, node }
    }
}

#[async_trait]
impl Authorizer for Chain {
    async fn authorize(&self, attributes: &Attributes) -> (Decision, Option<String>) {
        if attributes.user.groups.iter().any(|group| group == SUPERUSER_GROUP) {
            return (Decision::Allow(String::new()), None);
        }
        let mut reasons = Vec::new();
        let mut errors = Vec::new();
        for mode in &self.modes {
            let (decision, error) = match mode {
                Mode::AlwaysAllow => (Decision::Allow(String::new()), None),
                Mode::AlwaysDeny => (Decision::NoOpinion("Everything is forbidden.".to_owned()), None),
                Mode::Rbac => self.rbac.authorize(attributes).await,
                Mode::Node => (self.node.authorize(attributes).await, None),
            };
            errors.extend(error.clone());
            match decision {
                Decision::NoOpinion(reason) if reason.is_empty() => {}
                Decision::NoOpinion(reason) => reasons.push(format!("{}: {reason}", mode.name())),
                opinion => return (opinion, error),
            }
        }
        let error = (!errors.is_empty()).then(|| aggregate(&errors));
        (Decision::NoOpinion(reasons.join("\n")), error)
    }
}

impl RuleResolver for Chain {
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        for mode in &self.modes {
            match mode {
                Mode::AlwaysAllow => rules.extend(parse_full_authority()),
                // What a node may read depends on the object: upstream lists no rules either.
                Mode::AlwaysDeny | Mode::Node => {}
                Mode::Rbac => {
                    let (more, more_errors) = self.rbac.rules_for(user, namespace);
                    rules.extend(more);
                    errors.extend(more_errors);
                }
            }
        }
        (rules, errors)
    }
}

/// `*` on everything: what cluster-admin holds.
pub(crate) fn parse_full_authority() -> Vec<Rule> {
    let star = || vec!["*".to_owned()];
    vec![
        Rule { verbs: star(), api_groups: star(), resources: star(), ..Rule::default() },
        Rule { verbs: star(), non_resource_urls: star(), ..Rule::default() },
    ]
}

/// The 403 of a refused request, with the authorizer's reason.
pub fn forbidden(attributes: &Attributes, reason: &str) -> Status {
    // Only what the client sent is escaped; the reason is ours.
    let mut why = html_escape(&refusal(attributes));
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    let (group, resource, name) = if attributes.resource_request {
        (attributes.group.as_str(), attributes.resource.as_str(), attributes.name.as_str())
    } else {
        ("", "", "")
    };
    Status::forbidden(group, resource, name, why)
}

fn refusal(attributes: &Attributes) -> String {
    let Attributes { user, verb, group, resource, subresource, namespace, path, .. } = attributes;
    let user = quote(&user.name);
    if !attributes.resource_request {
        return format!("User {user} cannot {verb} path {}", quote(path));
    }
    let resource =
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
    let what =
        format!("User {user} cannot {verb} resource {} in API group {}", quote(&resource), quote(group));
    if namespace.is_empty() {
        format!("{what} at the cluster scope")
    } else {
        format!("{what} in the namespace {}", quote(namespace))
    }
}

/// `&`, `<` and `>` never reach a browser bare.
fn html_escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(text: &str) -> Attributes {
        let words: Vec<&str> = text.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
        let user = UserInfo { name: words[0].to_owned(), ..UserInfo::default() };
        if words[2].starts_with('/') {
            return Attributes {
                user,
                verb: words[1].into(),
                path: words[2].into(),
                ..Attributes::default()
            };
        }
        let (resource, subresource) = words[3].split_once('/').unwrap_or((words[3], ""));
        Attributes {
            user,
            verb: words[1].into(),
            group: words[2].into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: words[4].into(),
            name: words[5].into(),
            resource_request: true,
            ..Attributes::default()
        }
    }

    #[test]
    fn refusals_read_as_upstream() {
        for (request, reason, expected) in [
            (
                "u get - secrets ns x",
                "",
                r#"secrets "x" is forbidden: User "u" cannot get resource "secrets" in API group "" in the namespace "ns""#,
            ),
            (
                "u list - secrets ns -",
                "",
                r#"secrets is forbidden: User "u" cannot list resource "secrets" in API group "" in the namespace "ns""#,
            ),
            (
                "u list - secrets - -",
                "",
                r#"secrets is forbidden: User "u" cannot list resource "secrets" in API group "" at the cluster scope"#,
            ),
            (
                "u get apps deployments ns x",
                "",
                r#"deployments.apps "x" is forbidden: User "u" cannot get resource "deployments" in API group "apps" in the namespace "ns""#,
            ),
            (
                "u create - serviceaccounts/token ns x",
                "",
                r#"serviceaccounts "x" is forbidden: User "u" cannot create resource "serviceaccounts/token" in API group "" in the namespace "ns""#,
            ),
            (
                "<u> get - secrets ns x",
                "a > b",
                r#"secrets "x" is forbidden: User "&lt;u&gt;" cannot get resource "secrets" in API group "" in the namespace "ns": a > b"#,
            ),
            ("u get /x", "", r#"forbidden: User "u" cannot get path "/x""#),
        ] {
            assert_eq!(forbidden(&attributes(request), reason).message, expected);
        }
    }

    #[test]
    fn modes_in_order() {
        let rbac = Arc::new(rbac::tests::rbac(
            "ClusterRole r\n  get core secrets\nClusterRoleBinding b ClusterRole r User:u\nClusterRoleBinding c ClusterRole gone User:x\n",
        ));
        let allowed_by = r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "u""#;
        for (modes, groups, request, expected) in [
            (vec![Mode::AlwaysAllow], vec![], "x get - secrets ns x", Decision::Allow(String::new())),
            (vec![Mode::Rbac], vec![], "u get - secrets ns x", Decision::Allow(allowed_by.to_owned())),
            (vec![Mode::Rbac], vec![], "z get - secrets ns x", Decision::NoOpinion(String::new())),
            (vec![], vec![SUPERUSER_GROUP], "z get - secrets ns x", Decision::Allow(String::new())),
            (vec![], vec![], "z get - secrets ns x", Decision::NoOpinion(String::new())),
            (vec![Mode::AlwaysDeny, Mode::Rbac], vec![], "x get - secrets ns x", Decision::NoOpinion("alwaysdeny: Everything is forbidden.\nrbac: RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found".to_owned())),
            (vec![Mode::AlwaysDeny, Mode::AlwaysAllow], vec![], "x get /x", Decision::Allow(String::new())),
        ] {
            let mut attributes = attributes(request);
            attributes.user.groups = groups.into_iter().map(str::to_owned).collect();
            let objects = Arc::new(crate::testing::MemoryObjects::default());
            let node = Arc::new(NodeAuthorizer::new(objects).expect("a table"));
            let chain = Chain::new(modes, rbac.clone(), node);
            assert_eq!(crate::testing::block_on(chain.authorize(&attributes)), (expected, None));
        }
        assert_eq!(Mode::parse("RBAC"), Ok(Mode::Rbac));
        assert_eq!(Mode::parse("rbac"), Err("authorization-mode \"rbac\" is not a valid mode".to_owned()));
    }
}
