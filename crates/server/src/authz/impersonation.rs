//! Acting as someone else: the headers, and whether the requestor may.
//!
//! Since v1.35 a constrained form is tried first: the requestor needs `impersonate:MODE` on the
//! identity and `impersonate-on:MODE:VERB` on what is done with it. The old form, one
//! `impersonate` on the identity, comes last. The first refusal is the one that is reported.

use std::collections::BTreeMap;

use coffer_types::Status;
use http::HeaderMap;

use super::quote::{quote, quote_list};
use super::{SUPERUSER_GROUP, forbidden};
use crate::authn::{
    ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, ANONYMOUS, NODE_PREFIX, NODES_GROUP, service_account_groups,
    split_service_account_username,
};
use crate::ports::{Attributes, Authorizer, Decision, UserInfo};

const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";
const NODE_NAME_EXTRA: &str = "authentication.kubernetes.io/node-name";
/// From so many groups or extra values on, one check of `*` is tried before one for each.
const MANY: usize = 4;

/// Whom the headers ask for, or `None` without them.
///
/// # Errors
/// 400 when there are groups, a UID or extras but no user.
pub fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, Status> {
    const EXTRA: &str = "impersonate-extra-";
    let text = |name: &str| {
        headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .unwrap_or_default()
    };
    let mut user =
        UserInfo { name: text("impersonate-user"), uid: text("impersonate-uid"), ..UserInfo::default() };
    for value in headers.get_all("impersonate-group") {
        user.groups.push(String::from_utf8_lossy(value.as_bytes()).into_owned());
    }
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            user.extra.entry(percent_decode(key)).or_default().push(value);
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    Err(Status::bad_request(format!(
        "requested {} without impersonating a user name",
        go_default_info(&user)
    )))
}

/// The user to continue as, when the requestor of `attributes` may act as `wanted`.
///
/// # Errors
/// The first 403.
pub async fn authorize(
    authorizer: &dyn Authorizer,
    wanted: &UserInfo,
    attributes: &Attributes,
) -> Result<UserInfo, Status> {
    let requestor = &attributes.user;
    let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    let node = wanted.name.strip_prefix(NODE_PREFIX).filter(|name| !name.is_empty());
    let account = split_service_account_username(&wanted.name);
    let on_its_node = split_service_account_username(&requestor.name).is_some()
        && node
            .is_some_and(|node| requestor.extra.get(NODE_NAME_EXTRA).is_some_and(|names| names == &[node]));
    let mut first_error = None;
    for (mode, applies) in [
        ("associated-node", only_name && on_its_node),
        ("arbitrary-node", only_name && node.is_some()),
        ("serviceaccount", only_name && account.is_some()),
        ("user-info", node.is_none() && account.is_none()),
    ] {
        if !applies {
            continue;
        }
        match constrained(authorizer, mode, wanted, attributes).await {
            Ok(user) => return Ok(user),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let legacy =
        Check { authorizer, requestor, verb: "impersonate".to_owned(), constrained: false, any_node: false };
    legacy.run(wanted).await.map_err(|error| first_error.unwrap_or(error))
}

async fn constrained(
    authorizer: &dyn Authorizer,
    mode: &str,
    wanted: &UserInfo,
    attributes: &Attributes,
) -> Result<UserInfo, Status> {
    let mut on = attributes.clone();
    on.verb = format!("impersonate-on:{mode}:{}", attributes.verb);
    let any_node = mode == "associated-node";
    let mut requestor = attributes.user.clone();
    if any_node {
        // One permission serves the service account on every node, so what names the node is dropped.
        let keys = requestor.extra.keys().cloned().collect();
        requestor.extra =
            BTreeMap::from([("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)]);
        on.user = requestor.clone();
    }
    require(authorizer, &on).await?;
    let check = Check {
        authorizer,
        requestor: &requestor,
        verb: format!("impersonate:{mode}"),
        constrained: true,
        any_node,
    };
    check.run(wanted).await
}

struct Check<'a> {
    authorizer: &'a dyn Authorizer,
    requestor: &'a UserInfo,
    verb: String,
    constrained: bool,
    any_node: bool,
}

impl Check<'_> {
    async fn run(&self, wanted: &UserInfo) -> Result<UserInfo, Status> {
        let mut user = wanted.clone();
        self.username(wanted, &mut user).await?;
        if !wanted.uid.is_empty() {
            require(self.authorizer, &self.attributes(AUTHENTICATION_GROUP, "uids", &wanted.uid)).await?;
        }
        self.groups(&wanted.groups).await?;
        self.extra(&wanted.extra).await?;
        let has = |group: &str| user.groups.iter().any(|own| own == group);
        if user.name == ANONYMOUS {
            if !has(ALL_UNAUTHENTICATED) {
                user.groups.push(ALL_UNAUTHENTICATED.to_owned());
            }
        } else if !has(ALL_UNAUTHENTICATED) && !has(ALL_AUTHENTICATED) {
            user.groups.push(ALL_AUTHENTICATED.to_owned());
        }
        Ok(user)
    }

    async fn username(&self, wanted: &UserInfo, user: &mut UserInfo) -> Result<(), Status> {
        let mut attributes = self.attributes(self.identity_group(), "users", &wanted.name);
        if self.constrained
            && let Some(node) = wanted.name.strip_prefix(NODE_PREFIX).filter(|name| !name.is_empty())
        {
            attributes.resource = "nodes".to_owned();
            attributes.name = if self.any_node { "*" } else { node }.to_owned();
            user.groups = vec![NODES_GROUP.to_owned()];
        }
        if let Some((namespace, name)) = split_service_account_username(&wanted.name) {
            attributes.resource = "serviceaccounts".to_owned();
            attributes.namespace = namespace.to_owned();
            attributes.name = name.to_owned();
            if wanted.groups.is_empty() {
                user.groups = service_account_groups(namespace);
            }
        }
        require(self.authorizer, &attributes).await
    }

    async fn groups(&self, groups: &[String]) -> Result<(), Status> {
        let about = |name: &str| self.attributes(self.identity_group(), "groups", name);
        if self.constrained {
            if groups.iter().any(String::is_empty) {
                return Err(forbidden(&about(""), "impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == SUPERUSER_GROUP) {
                return Err(forbidden(
                    &about(SUPERUSER_GROUP),
                    "impersonating the system:masters group is not allowed",
                ));
            }
            if MANY <= groups.len() && require(self.authorizer, &about("*")).await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            require(self.authorizer, &about(group)).await?;
        }
        Ok(())
    }

    async fn extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), Status> {
        let about = |key: &str, value: &str| {
            let mut attributes = self.attributes(AUTHENTICATION_GROUP, "userextras", value);
            attributes.subresource = key.to_owned();
            attributes
        };
        if self.constrained && !extra.is_empty() {
            if extra.contains_key("") {
                return Err(forbidden(
                    &about("", ""),
                    "impersonating the empty string key in extra is not allowed",
                ));
            }
            if extra.values().any(|values| values.iter().any(String::is_empty)) {
                return Err(forbidden(
                    &about("", ""),
                    "impersonating the empty string value in extra is not allowed",
                ));
            }
            let many = MANY <= extra.len() || MANY <= extra.values().map(Vec::len).sum::<usize>();
            if many && require(self.authorizer, &about("*", "*")).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                require(self.authorizer, &about(key, value)).await?;
            }
        }
        Ok(())
    }

    /// Users and groups stood in the core group before the constrained form.
    fn identity_group(&self) -> &'static str {
        if self.constrained { AUTHENTICATION_GROUP } else { "" }
    }

    fn attributes(&self, group: &str, resource: &str, name: &str) -> Attributes {
        Attributes {
            user: self.requestor.clone(),
            verb: self.verb.clone(),
            group: group.to_owned(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            resource_request: true,
            ..Attributes::default()
        }
    }
}

async fn require(authorizer: &dyn Authorizer, attributes: &Attributes) -> Result<(), Status> {
    let (decision, error) = authorizer.authorize(attributes).await;
    let reason = match decision {
        Decision::Allow(_) => return Ok(()),
        Decision::Deny(reason) | Decision::NoOpinion(reason) => reason,
    };
    let reason = match error {
        Some(error) if reason.is_empty() => error,
        Some(error) => format!("{error}: {reason}"),
        None => reason,
    };
    Err(forbidden(attributes, &reason))
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = (bytes[index] == b'%').then(|| text.get(index + 1..index + 3)).flatten();
        match hex.map(|hex| u8::from_str_radix(hex, 16)) {
            Some(Ok(byte)) => {
                decoded.push(byte);
                index += 3;
            }
            // Go keeps the whole key as it was when any escape is broken.
            Some(Err(_)) => return text.to_owned(),
            None if bytes[index] == b'%' => return text.to_owned(),
            None => {
                decoded.push(bytes[index]);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Go's `%#v` of the wanted user, which upstream's 400 shows.
fn go_default_info(user: &UserInfo) -> String {
    let list = |items: &[String]| {
        let items: Vec<String> = items.iter().map(|item| quote(item)).collect();
        format!("{{{}}}", items.join(", "))
    };
    let groups = if user.groups.is_empty() {
        "[]string(nil)".to_owned()
    } else {
        format!("[]string{}", list(&user.groups))
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let entries: Vec<String> = user
            .extra
            .iter()
            .map(|(key, values)| format!("{}:[]string{}", quote(key), list(values)))
            .collect();
        format!("map[string][]string{{{}}}", entries.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
        quote(&user.name),
        quote(&user.uid)
    )
}

/// The text of an audit or log line: who acts as whom.
pub fn describe(requestor: &UserInfo, impersonated: &UserInfo) -> String {
    format!(
        "{} is impersonating {} {}",
        quote(&requestor.name),
        quote(&impersonated.name),
        quote_list(&impersonated.groups)
    )
}

#[cfg(test)]
mod tests {
    use super::super::rbac::tests::{rbac, user};
    use super::*;

    const TABLE: &str = "\
ClusterRole legacy
  impersonate core users,groups,serviceaccounts
  impersonate authentication.k8s.io uids,userextras/scopes
ClusterRole some
  impersonate:user-info authentication.k8s.io users bob
  impersonate-on:user-info:list core secrets
  impersonate:serviceaccount authentication.k8s.io serviceaccounts
  impersonate-on:serviceaccount:list core secrets
  impersonate:arbitrary-node authentication.k8s.io nodes n1
  impersonate-on:arbitrary-node:list core secrets
ClusterRoleBinding a ClusterRole legacy User:old
ClusterRoleBinding b ClusterRole some User:new
";

    fn run(who: &str, wanted: &UserInfo) -> Result<Vec<String>, String> {
        let attributes = Attributes {
            user: user(who, &[]),
            verb: "list".into(),
            resource: "secrets".into(),
            namespace: "ns".into(),
            resource_request: true,
            ..Attributes::default()
        };
        crate::testing::block_on(authorize(&rbac(TABLE), wanted, &attributes))
            .map(|user| user.groups)
            .map_err(|status| status.message)
    }

    #[test]
    fn who_may_act_as_whom() {
        let groups = |items: &[&str]| Ok(items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        let refused = |text: &str| Err(text.to_owned());
        let with_extra = {
            let mut user = user("bob", &["g"]);
            user.extra.insert("scopes".into(), vec!["a".into()]);
            user
        };
        for (who, wanted, expected) in [
            ("old", user("bob", &[]), groups(&["system:authenticated"])),
            ("old", with_extra, groups(&["g", "system:authenticated"])),
            ("old", user("bob", &["system:masters"]), groups(&["system:masters", "system:authenticated"])),
            ("old", user("system:anonymous", &[]), groups(&["system:unauthenticated"])),
            (
                "old",
                user("system:serviceaccount:a:b", &[]),
                groups(&["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]),
            ),
            ("new", user("bob", &[]), groups(&["system:authenticated"])),
            ("new", user("system:node:n1", &[]), groups(&["system:nodes", "system:authenticated"])),
            (
                "new",
                user("system:serviceaccount:a:b", &[]),
                groups(&["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]),
            ),
            (
                "new",
                user("carl", &[]),
                refused(
                    r#"users.authentication.k8s.io "carl" is forbidden: User "new" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope"#,
                ),
            ),
            (
                "new",
                user("bob", &["system:masters"]),
                refused(
                    r#"groups.authentication.k8s.io "system:masters" is forbidden: User "new" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed"#,
                ),
            ),
            (
                "nobody",
                user("bob", &[]),
                refused(
                    r#"secrets is forbidden: User "nobody" cannot impersonate-on:user-info:list resource "secrets" in API group "" in the namespace "ns""#,
                ),
            ),
        ] {
            assert_eq!(run(who, &wanted), expected, "{who} as {}", wanted.name);
        }
    }

    #[test]
    fn the_headers() {
        let parse = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, http::HeaderValue::from_static(value));
            }
            wanted(&headers).map_err(|status| status.message)
        };
        assert_eq!(parse(&[]), Ok(None));
        let mut expected = user("bob", &["g1", "g2"]);
        expected.extra.insert("a/b".into(), vec!["x".into(), "y".into()]);
        let headers = [
            ("impersonate-user", "bob"),
            ("impersonate-group", "g1"),
            ("impersonate-group", "g2"),
            ("impersonate-extra-a%2fb", "x"),
            ("impersonate-extra-a%2Fb", "y"),
        ];
        assert_eq!(parse(&headers), Ok(Some(expected)));
        assert_eq!(
            parse(&[("impersonate-group", "g1")]),
            Err(r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g1"}, Extra:map[string][]string(nil)} without impersonating a user name"#.to_owned())
        );
        assert_eq!(percent_decode("a%zz"), "a%zz");
        assert_eq!(percent_decode("a%4"), "a%4");
    }
}
