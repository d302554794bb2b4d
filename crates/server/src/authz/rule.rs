//! One RBAC rule: what it allows, what it covers, how it reads.

use coffer_types::Value;

use super::quote::quote_list;
use crate::ports::Attributes;

/// `rbac.authorization.k8s.io/v1` PolicyRule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Rule {
    /// `verbs`; `*` is all.
    pub verbs: Vec<String>,
    /// `apiGroups`; `*` is all, "" is core.
    pub api_groups: Vec<String>,
    /// `resources`: `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// `resourceNames`; empty is all.
    pub resource_names: Vec<String>,
    /// `nonResourceURLs`: a path, a prefix that ends in `*`, or `*`.
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// From a decoded rule. What is not a list of strings counts as empty.
    pub fn from_value(value: &Value) -> Self {
        Self {
            verbs: strings(value, "verbs"),
            api_groups: strings(value, "apiGroups"),
            resources: strings(value, "resources"),
            resource_names: strings(value, "resourceNames"),
            non_resource_urls: strings(value, "nonResourceURLs"),
        }
    }

    /// The decoded form; empty lists are left out, except `verbs`, which is always there.
    pub fn to_value(&self) -> Value {
        let list = |items: &[String]| items.iter().map(|item| Value::from(item.as_str())).collect::<Vec<_>>();
        let mut value = Value::from([("verbs", Value::from(list(&self.verbs)))]);
        for (field, items) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !items.is_empty() {
                value.set(&[field], list(items));
            }
        }
        value
    }

    /// The rules of a decoded Role or ClusterRole.
    pub fn list_from(role: &Value) -> Vec<Self> {
        let rules = role.get("rules").and_then(Value::as_array).unwrap_or_default();
        rules.iter().map(Self::from_value).collect()
    }

    /// Whether this rule allows the request.
    pub fn allows(&self, request: &Attributes) -> bool {
        if !has_or_star(&self.verbs, &request.verb) {
            return false;
        }
        if !request.resource_request {
            return self.non_resource_urls.iter().any(|url| url == "*" || url_covers(url, &request.path));
        }
        has_or_star(&self.api_groups, &request.group)
            && self.resource_matches(&request.resource, &request.subresource)
            && (self.resource_names.is_empty() || self.resource_names.contains(&request.name))
    }

    fn resource_matches(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|rule| {
            if rule == "*" {
                return true;
            }
            if subresource.is_empty() {
                return rule == resource;
            }
            match rule.split_once('/') {
                Some((base, sub)) => sub == subresource && (base == resource || base == "*"),
                None => false,
            }
        })
    }

    /// Splits into rules of one verb, one group, one resource and at most one name, or one verb and one path.
    pub fn breakdown(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let mut parts = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        parts.push(part);
                    } else {
                        let named = self
                            .resource_names
                            .iter()
                            .map(|name| Self { resource_names: one(name), ..part.clone() });
                        parts.extend(named);
                    }
                }
            }
        }
        for url in &self.non_resource_urls {
            let urls = self.verbs.iter().map(|verb| Self {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..Self::default()
            });
            parts.extend(urls);
        }
        parts
    }

    /// Whether everything that `part` (from [`Rule::breakdown`]) allows is allowed by this rule.
    fn covers_part(&self, part: &Self) -> bool {
        let all = |own: &[String], wanted: &[String]| wanted.iter().all(|item| own.contains(item));
        let star_or_all =
            |own: &[String], wanted: &[String]| own.iter().any(|item| item == "*") || all(own, wanted);
        star_or_all(&self.verbs, &part.verbs)
            && star_or_all(&self.api_groups, &part.api_groups)
            && (star_or_all(&self.resources, &part.resources)
                || part.resources.iter().all(|wanted| self.covers_resource(wanted)))
            && part
                .non_resource_urls
                .iter()
                .all(|url| self.non_resource_urls.iter().any(|own| url_covers(own, url)))
            && (self.resource_names.is_empty()
                || (!part.resource_names.is_empty() && all(&self.resource_names, &part.resource_names)))
    }

    fn covers_resource(&self, wanted: &str) -> bool {
        self.resources.iter().any(|own| own == wanted)
            || wanted.split_once('/').is_some_and(|(_, sub)| {
                self.resources.iter().any(|own| own.strip_prefix("*/").is_some_and(|rest| rest == sub))
            })
    }

    /// As escalation errors print a rule.
    pub fn compact_string(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, items)| !items.is_empty())
        // Go prints a list of quoted strings with spaces between.
        .map(|(name, items)| format!("{name}:{}", quote_list(items)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }

    /// Whether it has one group, one resource, at most one name and no path.
    fn simple(&self) -> bool {
        self.api_groups.len() == 1
            && self.resources.len() == 1
            && self.resource_names.len() <= 1
            && self.non_resource_urls.is_empty()
    }
}

/// What of `wanted` no rule of `held` covers, in parts.
pub fn uncovered(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    wanted
        .iter()
        .flat_map(Rule::breakdown)
        .filter(|part| !held.iter().any(|rule| rule.covers_part(part)))
        .collect()
}

/// Joins rules that differ only in their verbs, for shorter error texts.
pub fn compact(rules: &[Rule]) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::new();
    for rule in rules {
        let same = compacted.iter_mut().find(|other| {
            rule.simple()
                && other.simple()
                && other.api_groups == rule.api_groups
                && other.resources == rule.resources
                && other.resource_names == rule.resource_names
        });
        match same {
            Some(other) => other.verbs.extend(rule.verbs.iter().cloned()),
            None => compacted.push(rule.clone()),
        }
    }
    compacted
}

fn has_or_star(items: &[String], wanted: &str) -> bool {
    items.iter().any(|item| item == "*" || item == wanted)
}

fn url_covers(own: &str, path: &str) -> bool {
    own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}

fn strings(value: &Value, field: &str) -> Vec<String> {
    let items = value.get(field).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `VERBS GROUPS RESOURCES [NAMES]` or `VERBS url PATHS`, as in the bootstrap table.
    fn rule(line: &str) -> Rule {
        super::super::bootstrap::parse_rule(line).expect("a rule")
    }

    /// `VERB GROUP RESOURCE[/SUB] NAME` or `VERB url PATH`; `-` is empty.
    fn request(line: &str) -> Attributes {
        let words: Vec<&str> = line.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
        if words[1] == "url" {
            return Attributes { verb: words[0].into(), path: words[2].into(), ..Attributes::default() };
        }
        let (resource, subresource) = words[2].split_once('/').unwrap_or((words[2], ""));
        Attributes {
            verb: words[0].into(),
            group: words[1].into(),
            resource: resource.into(),
            subresource: subresource.into(),
            name: words[3].into(),
            resource_request: true,
            ..Attributes::default()
        }
    }

    #[test]
    fn rule_matches() {
        for (a_rule, a_request, expected) in [
            ("* * *", "get - pods x", true),
            ("* * *", "get url /apis", false),
            ("* url *", "get url /apis", true),
            ("* url *", "get - pods x", false),
            ("get core pods", "get - pods x", true),
            ("get core pods", "list - pods x", false),
            ("get core pods", "get apps pods x", false),
            ("get * pods", "get apps pods x", true),
            ("get core pods", "get - pods/log x", false),
            ("get core pods/log", "get - pods/log x", true),
            ("get core pods/log", "get - pods x", false),
            ("get core */log", "get - pods/log x", true),
            ("get core */log", "get - pods/logs x", false),
            ("get core */log", "get - pods x", false),
            ("get core *", "get - pods/log x", true),
            ("get core secrets a,b", "get - secrets a", true),
            ("get core secrets a,b", "get - secrets c", false),
            ("get core secrets a,b", "get - secrets -", false),
            ("get url /apis/*", "get url /apis/x/y", true),
            ("get url /apis/*", "get url /apis", false),
            ("get url /apis", "get url /apis", true),
            ("get url /apis", "post url /apis", false),
            ("get url /healthz*", "get url /healthz", true),
        ] {
            assert_eq!(rule(a_rule).allows(&request(a_request)), expected, "{a_rule} / {a_request}");
        }
    }

    #[test]
    fn rule_covers() {
        for (held, wanted, missing) in [
            ("get,list core secrets", "get core secrets", vec![]),
            (
                "get core secrets",
                "get,list core secrets",
                vec![r#"{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}"#],
            ),
            ("* * *", "get,list core,apps secrets,pods/log", vec![]),
            ("* * *", "get url /x", vec![r#"{NonResourceURLs:["/x"], Verbs:["get"]}"#]),
            (
                "get core secrets a",
                "get core secrets",
                vec![r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#],
            ),
            ("get core secrets", "get core secrets a", vec![]),
            (
                "get core secrets a",
                "get core secrets a,b",
                vec![r#"{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}"#],
            ),
            ("get core */log", "get core pods/log", vec![]),
            (
                "get core */log",
                "get core pods",
                vec![r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#],
            ),
            ("get url /a/*", "get url /a/b", vec![]),
            ("get url /a/b", "get url /a/*", vec![r#"{NonResourceURLs:["/a/*"], Verbs:["get"]}"#]),
            (
                "get core pods",
                "get,list,watch core pods,secrets",
                vec![
                    r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
                    r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "watch"]}"#,
                ],
            ),
        ] {
            let texts: Vec<String> = compact(&uncovered(&[rule(held)], &[rule(wanted)]))
                .iter()
                .map(Rule::compact_string)
                .collect();
            assert_eq!(texts, missing, "{held} / {wanted}");
        }
    }

    #[test]
    fn a_rule_survives_its_decoded_form() {
        for line in ["get,list core secrets a", "* url /x,/y*", "get apps,core */scale"] {
            assert_eq!(Rule::from_value(&rule(line).to_value()), rule(line));
        }
    }
}
