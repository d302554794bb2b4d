//! The roles and bindings that every cluster has, and how they are brought up to date at start.
//!
//! The table is `bootstrap_roles.txt`; its first lines explain it.
//! Absent on purpose: writing. The controller in `controllers::bootstrap_policy` does that.

use coffer_types::meta::Meta as _;
use coffer_types::{Map, Value};

use super::rule::{Rule, uncovered};

/// API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// `apiVersion` of roles and bindings.
pub const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

const TABLE: &str = include_str!("bootstrap_roles.txt");
const LABEL_PREFIX: &str = "rbac.authorization.k8s.io/";
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const BOOTSTRAPPING: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");

/// Every role and binding of the table, in its order.
///
/// # Errors
/// With the offending line, when the table is malformed; a test holds that it is not.
pub fn objects() -> Result<Vec<Value>, String> {
    parse(TABLE)
}

pub(super) fn parse(table: &str) -> Result<Vec<Value>, String> {
    let mut objects: Vec<Value> = Vec::new();
    for line in table.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(text) = line.strip_prefix("  ") {
            let rule = parse_rule(text).ok_or_else(|| line.to_owned())?;
            let role = objects.last_mut().ok_or_else(|| line.to_owned())?;
            match role.get_mut("rules").and_then(Value::as_array_mut) {
                Some(rules) => rules.push(rule.to_value()),
                None => role.set(&["rules"], vec![rule.to_value()]),
            }
        } else {
            objects.push(parse_header(line).ok_or_else(|| line.to_owned())?);
        }
    }
    Ok(objects)
}

/// One rule line of the table.
pub(super) fn parse_rule(line: &str) -> Option<Rule> {
    let mut words = line.split(' ');
    let list = |word: &str| word.split(',').map(str::to_owned).collect::<Vec<_>>();
    let verbs = list(words.next()?);
    let groups = words.next()?;
    let third = list(words.next()?);
    let names = words.next().map(list).unwrap_or_default();
    if groups == "url" {
        return Some(Rule { verbs, non_resource_urls: third, ..Rule::default() });
    }
    let api_groups =
        list(groups).into_iter().map(|group| if group == "core" { String::new() } else { group });
    Some(Rule {
        verbs,
        api_groups: api_groups.collect(),
        resources: third,
        resource_names: names,
        non_resource_urls: Vec::new(),
    })
}

fn parse_header(line: &str) -> Option<Value> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let name = words.next()?;
    let (namespace, name) = match kind {
        "Role" | "RoleBinding" => name.split_once('/')?,
        "ClusterRole" | "ClusterRoleBinding" => ("", name),
        _ => return None,
    };
    let mut object = Value::object();
    object.set_type(API_VERSION, kind);
    object.set(&["metadata", "name"], name);
    object.set_str(&["metadata", "namespace"], namespace);
    object.set(&["metadata", "labels"], Value::from([BOOTSTRAPPING]));
    object.set(&["metadata", "annotations"], Value::from([(AUTO_UPDATE, "true")]));
    if kind.ends_with("Role") {
        let mut selectors = Vec::new();
        for word in words {
            if let Some(label) = word.strip_prefix('+') {
                object
                    .object_at_mut(&["metadata", "labels"])
                    .insert(format!("{LABEL_PREFIX}{label}"), "true".into());
            } else {
                let label = format!("{LABEL_PREFIX}{}", word.strip_prefix('<')?);
                selectors.push(Value::from([("matchLabels", Value::from([(label, "true")]))]));
            }
        }
        if !selectors.is_empty() {
            object.set(&["aggregationRule", "clusterRoleSelectors"], selectors);
        }
    } else {
        let role_kind = words.next()?;
        let role = words.next()?;
        object.set(&["roleRef"], Value::from([("apiGroup", GROUP), ("kind", role_kind), ("name", role)]));
        let subjects = words.map(parse_subject).collect::<Option<Vec<_>>>()?;
        if !subjects.is_empty() {
            object.set(&["subjects"], subjects);
        }
    }
    Some(object)
}

fn parse_subject(word: &str) -> Option<Value> {
    let (kind, name) = word.split_once(':')?;
    Some(match kind {
        "ServiceAccount" => {
            let (namespace, name) = name.split_once('/')?;
            Value::from([("kind", kind), ("name", name), ("namespace", namespace)])
        }
        "User" | "Group" => Value::from([("apiGroup", GROUP), ("kind", kind), ("name", name)]),
        _ => return None,
    })
}

/// What to do with one object of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Reconciliation {
    /// It is as it should be, or it opted out (`autoupdate: "false"`).
    Keep,
    /// It must be created.
    Create(Value),
    /// It must be replaced.
    Update(Value),
    /// A binding to another role, which cannot be changed: delete the old one, then create this one.
    Recreate(Value),
}

/// Compares a stored role or binding with the table's: adds what is missing, removes nothing.
pub fn reconcile(expected: &Value, existing: Option<&Value>) -> Reconciliation {
    let Some(existing) = existing else { return Reconciliation::Create(expected.clone()) };
    if existing.annotation(AUTO_UPDATE) == Some("false") {
        return Reconciliation::Keep;
    }
    if expected.get("roleRef").is_some() && expected.get("roleRef") != existing.get("roleRef") {
        return Reconciliation::Recreate(expected.clone());
    }
    let mut result = existing.clone();
    for field in ["annotations", "labels"] {
        let stored = existing.at(&["metadata", field]).and_then(Value::as_object);
        let mut merged =
            expected.at(&["metadata", field]).and_then(Value::as_object).cloned().unwrap_or_default();
        merged.extend(stored.cloned().unwrap_or_default());
        if stored.is_none_or(|stored| *stored != merged) && !merged.is_empty() {
            result.set(&["metadata", field], merged);
        }
    }
    reconcile_rules(expected, &mut result);
    reconcile_aggregation(expected, &mut result);
    reconcile_subjects(expected, &mut result);
    if result == *existing { Reconciliation::Keep } else { Reconciliation::Update(result) }
}

fn reconcile_rules(expected: &Value, result: &mut Value) {
    let missing = uncovered(&Rule::list_from(result), &Rule::list_from(expected));
    append(result, &["rules"], missing.iter().map(Rule::to_value).collect());
}

fn reconcile_aggregation(expected: &Value, result: &mut Value) {
    const PATH: [&str; 2] = ["aggregationRule", "clusterRoleSelectors"];
    if expected.get("roleRef").is_some() {
        return;
    }
    let Some(wanted) = expected.get("aggregationRule") else {
        if let Some(members) = result.as_object_mut() {
            members.remove("aggregationRule");
        }
        return;
    };
    let held = result.at(&PATH).and_then(Value::as_array).unwrap_or_default();
    let wanted = wanted.get(PATH[1]).and_then(Value::as_array).unwrap_or_default();
    let missing = wanted.iter().filter(|selector| !held.contains(selector)).cloned().collect();
    append(result, &PATH, missing);
}

fn reconcile_subjects(expected: &Value, result: &mut Value) {
    let identity = |subject: &Value| {
        (
            subject.str_at(&["kind"]).to_owned(),
            subject.str_at(&["namespace"]).to_owned(),
            subject.str_at(&["name"]).to_owned(),
        )
    };
    let list = |object: &Value| object.get("subjects").and_then(Value::as_array).unwrap_or_default().to_vec();
    let held: Vec<_> = list(result).iter().map(identity).collect();
    let missing = list(expected).into_iter().filter(|subject| !held.contains(&identity(subject))).collect();
    append(result, &["subjects"], missing);
}

fn append(object: &mut Value, path: &[&str], items: Vec<Value>) {
    if items.is_empty() {
        return;
    }
    let mut all = object.at(path).and_then(Value::as_array).unwrap_or_default().to_vec();
    all.extend(items);
    object.set(path, all);
}

/// The rules that an aggregated ClusterRole must have, or `None` when it is not one or has them already.
pub fn aggregate<'a>(role: &Value, roles: impl Iterator<Item = &'a Value> + Clone) -> Option<Vec<Value>> {
    let selectors = role.at(&["aggregationRule", "clusterRoleSelectors"])?.as_array()?;
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        let mut selected: Vec<&Value> = roles
            .clone()
            .filter(|other| other.name() != role.name() && selects(selector, other.labels()))
            .collect();
        selected.sort_by(|left, right| left.name().cmp(right.name()));
        for other in selected {
            for rule in other.get("rules").and_then(Value::as_array).unwrap_or_default() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    let held = role.get("rules").and_then(Value::as_array).unwrap_or_default();
    (held != rules.as_slice()).then_some(rules)
}

/// `metav1.LabelSelector`. A malformed requirement selects nothing.
fn selects(selector: &Value, labels: &Map) -> bool {
    let by_label = selector.get("matchLabels").and_then(Value::as_object);
    let all_labels =
        by_label.is_none_or(|wanted| wanted.iter().all(|(key, text)| labels.get(key) == Some(text)));
    let by_expression = selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default();
    all_labels
        && by_expression.iter().all(|requirement| {
            let label = labels.get(requirement.str_at(&["key"]));
            let values = requirement.get("values").and_then(Value::as_array).unwrap_or_default();
            match requirement.str_at(&["operator"]) {
                "In" => label.is_some_and(|label| values.contains(label)),
                "NotIn" => label.is_none_or(|label| !values.contains(label)),
                "Exists" => label.is_some(),
                "DoesNotExist" => label.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
        objects.iter().find(|object| object.kind() == kind && object.name() == name).expect("in the table")
    }

    #[test]
    fn the_table_is_well_formed_and_complete() {
        let objects = objects().expect("well-formed");
        let count = |kind: &str| objects.iter().filter(|object| object.kind() == kind).count();
        // What upstream's golden files hold, and one of each cluster kind of our own.
        for (kind, expected) in
            [("ClusterRole", 73 + 1), ("ClusterRoleBinding", 54 + 1), ("Role", 7), ("RoleBinding", 7)]
        {
            assert_eq!(count(kind), expected, "{kind}");
        }
        for binding in objects.iter().filter(|object| object.get("roleRef").is_some()) {
            let role_kind = binding.str_at(&["roleRef", "kind"]);
            let name = binding.str_at(&["roleRef", "name"]);
            let namespace = if role_kind == "ClusterRole" { "" } else { binding.namespace() };
            let role = objects
                .iter()
                .find(|role| (role.kind(), role.name(), role.namespace()) == (role_kind, name, namespace));
            assert!(role.is_some(), "{}", binding.name());
        }
    }

    #[test]
    fn malformed_lines_are_named() {
        for line in [
            "  get core pods",
            "Pod x",
            "ClusterRole x oops",
            "Role x",
            "ClusterRoleBinding x ClusterRole",
            "ClusterRoleBinding x ClusterRole y Robot:z",
        ] {
            assert_eq!(parse(line), Err(line.to_owned()));
        }
        assert_eq!(parse("ClusterRole x\n  get core"), Err("  get core".to_owned()));
    }

    #[test]
    fn view_reads_no_secrets_and_edit_does() {
        let objects = objects().expect("well-formed");
        let aggregated = |name: &str| {
            let roles = objects.iter().filter(|object| object.kind() == "ClusterRole");
            let rules = aggregate(find(&objects, "ClusterRole", name), roles).expect("rules");
            rules.iter().map(Rule::from_value).collect::<Vec<_>>()
        };
        let reads_secrets =
            |rules: &[Rule]| rules.iter().any(|rule| rule.resources.contains(&"secrets".to_owned()));
        assert!(!reads_secrets(&aggregated("view")));
        assert!(reads_secrets(&aggregated("edit")));
    }

    fn role(rules: &[&str]) -> Value {
        let mut role = parse_header("ClusterRole r").expect("a role");
        let rules: Vec<Value> =
            rules.iter().map(|line| parse_rule(line).expect("a rule").to_value()).collect();
        if !rules.is_empty() {
            role.set(&["rules"], rules);
        }
        role
    }

    #[test]
    fn reconciling_a_role() {
        let expected = role(&["get,list core pods"]);
        assert_eq!(reconcile(&expected, None), Reconciliation::Create(expected.clone()));
        for (existing, rules) in [
            (role(&["get,list core pods"]), None),
            (role(&["* * *"]), None),
            (role(&["get,list core pods", "get core secrets"]), None),
            (role(&["get core pods"]), Some(role(&["get core pods", "list core pods"]))),
            (role(&[]), Some(role(&["get core pods", "list core pods"]))),
        ] {
            let expected_result = rules.map_or(Reconciliation::Keep, Reconciliation::Update);
            assert_eq!(reconcile(&expected, Some(&existing)), expected_result);
        }
        let mut protected = role(&[]);
        protected.set(&["metadata", "annotations"], Value::from([(AUTO_UPDATE, "false")]));
        assert_eq!(reconcile(&expected, Some(&protected)), Reconciliation::Keep);
        let mut unlabelled = role(&["get,list core pods"]);
        unlabelled.remove(&["metadata", "labels"]);
        assert_eq!(reconcile(&expected, Some(&unlabelled)), Reconciliation::Update(expected));
    }

    #[test]
    fn reconciling_a_binding() {
        let binding = |text: &str| {
            parse_header(&format!("ClusterRoleBinding b ClusterRole {text}")).expect("a binding")
        };
        let expected = binding("r User:a ServiceAccount:n/s");
        for (existing, result) in [
            (binding("r User:a ServiceAccount:n/s"), Reconciliation::Keep),
            (binding("r User:z User:a ServiceAccount:n/s"), Reconciliation::Keep),
            (binding("r User:a"), Reconciliation::Update(expected.clone())),
            (binding("other User:a"), Reconciliation::Recreate(expected.clone())),
        ] {
            assert_eq!(reconcile(&expected, Some(&existing)), result);
        }
    }

    #[test]
    fn aggregation_selects_by_expressions_too() {
        let labels: Map = [("a".to_owned(), Value::from("1"))].into();
        for (selector, expected) in [
            (Value::object(), true),
            (Value::from([("matchLabels", Value::from([("a", "1")]))]), true),
            (Value::from([("matchLabels", Value::from([("a", "2")]))]), false),
            (expression("a", "In", &["1", "2"]), true),
            (expression("a", "NotIn", &["1"]), false),
            (expression("b", "NotIn", &["1"]), true),
            (expression("a", "Exists", &[]), true),
            (expression("a", "DoesNotExist", &[]), false),
            (expression("a", "Gt", &["0"]), false),
        ] {
            assert_eq!(selects(&selector, &labels), expected, "{selector:?}");
        }
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
        let values: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
        let requirement = Value::from([
            ("key", key.into()),
            ("operator", operator.into()),
            ("values", Value::from(values)),
        ]);
        Value::from([("matchExpressions", Value::from(vec![requirement]))])
    }
}
