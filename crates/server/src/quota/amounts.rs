//! Amounts of resources, and what a pod asks for in all.

use std::collections::BTreeMap;

use coffer_types::Value;
use coffer_types::codec::quantity::Fixed as Quantity;

/// Amounts by the name of the resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// The amounts in a field.
pub(crate) fn amounts(object: &Value, path: &[&str]) -> Amounts {
    let members = object.at(path).and_then(Value::as_object).into_iter().flatten();
    let parsed = members.filter_map(|(name, text)| {
        let quantity = Quantity::parse(text.as_str()?).ok()?;
        Some((name.clone(), quantity))
    });
    parsed.collect()
}

/// Adds each amount to that of its name.
pub(crate) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, quantity) in more {
        to.entry(name.clone()).and_modify(|sum| *sum = sum.plus(*quantity)).or_insert(*quantity);
    }
}

fn at_least(amounts: &mut Amounts, least: &Amounts) {
    for (name, quantity) in least {
        let own = amounts.entry(name.clone()).or_insert(*quantity);
        *own = (*own).max(*quantity);
    }
}

/// The containers of a kind.
pub(crate) fn containers<'a>(pod: &'a Value, field: &str) -> &'a [Value] {
    pod.at(&["spec", field]).and_then(Value::as_array).unwrap_or_default()
}

/// What all containers of a pod together have as `requests` or `limits`: init containers run one after the other
/// before the others, those that are restarted beside them.
pub(crate) fn of_pod(pod: &Value, field: &str) -> Amounts {
    let mut all = Amounts::new();
    for container in containers(pod, "containers") {
        add(&mut all, &amounts(container, &["resources", field]));
    }
    let (mut restarted, mut init) = (Amounts::new(), Amounts::new());
    for container in containers(pod, "initContainers") {
        let own = amounts(container, &["resources", field]);
        let now = if container.str_at(&["restartPolicy"]) == "Always" {
            add(&mut all, &own);
            add(&mut restarted, &own);
            restarted.clone()
        } else {
            let mut now = own;
            add(&mut now, &restarted);
            now
        };
        at_least(&mut init, &now);
    }
    at_least(&mut all, &init);
    for (name, quantity) in amounts(pod, &["spec", "resources", field]) {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            all.insert(name, quantity);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use coffer_types::codec::json;

    /// As the helpers of k8s.io/component-helpers v0.37.2 count.
    #[test]
    fn init_containers_run_before_and_sidecars_beside() {
        let pod = |text: &str| json::decode_untyped(text.as_bytes()).expect("JSON").object;
        for (text, expected) in [
            (
                r#"{"spec":{"containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}]}}"#,
                "cpu=1500m,memory=1Gi",
            ),
            (
                r#"{"spec":{"containers":[{"resources":{"requests":{"cpu":"1"}}}],"initContainers":[{"resources":{"requests":{"cpu":"3"}}},{"resources":{"requests":{"cpu":"2"}}}]}}"#,
                "cpu=3",
            ),
            (
                r#"{"spec":{"containers":[{"resources":{"requests":{"cpu":"1"}}}],"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},{"resources":{"requests":{"cpu":"2"}}}]}}"#,
                "cpu=4",
            ),
            (
                r#"{"spec":{"resources":{"requests":{"cpu":"7"}},"containers":[{"resources":{"requests":{"cpu":"1","x.io/y":"1"}}}]}}"#,
                "cpu=7,x.io/y=1",
            ),
        ] {
            let found = of_pod(&pod(text), "requests");
            let found: Vec<String> =
                found.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect();
            assert_eq!(found.join(","), expected, "{text}");
        }
    }
}
