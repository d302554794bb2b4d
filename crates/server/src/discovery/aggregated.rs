//! `/api` and `/apis` with everything in one document (`apidiscovery.k8s.io/v2`).

use http::HeaderMap;
use serde_json::{Value, json};

use super::classic::without_empty;
use crate::negotiate::Offers;
use crate::resources::{Resource, Served};

/// Content type of the document: clients look at its parameters.
pub(super) const CONTENT_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Which form a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Aggregated,
    Classic,
}

/// The first clause that can be served decides. An older version of the aggregated form is no longer served.
pub(super) fn wish(headers: &HeaderMap) -> Wish {
    let clauses = headers
        .get_all(http::header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    for clause in clauses {
        let mut pieces = clause.split(';').map(str::trim);
        let media = pieces.next().unwrap_or_default();
        let parameters: Vec<&str> = pieces.collect();
        let has = |parameter: &str| parameters.contains(&parameter);
        let asks_for_kind = parameters.iter().any(|parameter| parameter.starts_with("as="));
        if media == "application/json"
            && has("g=apidiscovery.k8s.io")
            && has("v=v2")
            && has("as=APIGroupDiscoveryList")
        {
            return Wish::Aggregated;
        }
        if !asks_for_kind && matches!(media, "application/json" | "*/*") {
            return Wish::Classic;
        }
    }
    Wish::Classic
}

/// The document for the core group or for all others.
pub(super) fn document(served: &Served, core: bool) -> Vec<u8> {
    let items: Vec<Value> = served
        .groups()
        .iter()
        .filter(|group| group.name.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        served.of_version(&group.name, version).map(|resource| entry(resource)).collect();
                    json!({ "version": version, "resources": resources, "freshness": "Current" })
                })
                .collect();
            let metadata = if group.name.is_empty() { json!({}) } else { json!({ "name": group.name }) };
            json!({ "metadata": metadata, "versions": versions })
        })
        .collect();
    let document = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let mut bytes = document.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

fn entry(resource: &Resource) -> Value {
    let info = &resource.info;
    let custom = info.behaviour.offers == Offers::Custom;
    let own = if custom { (info.group.as_str(), info.version.as_str()) } else { ("", "") };
    let subresources: Vec<Value> = info
        .subresources
        .iter()
        .map(|subresource| {
            json!({
                "subresource": subresource.name,
                "responseKind": match subresource.group.as_str() {
                    "" => kind(own.0, own.1, &subresource.kind),
                    group => kind(group, &subresource.version, &subresource.kind),
                },
                "verbs": subresource.verbs,
            })
        })
        .collect();
    Value::Object(without_empty(vec![
        ("resource", json!(info.plural)),
        ("responseKind", kind(own.0, own.1, &info.kind)),
        ("scope", json!(if info.namespaced { "Namespaced" } else { "Cluster" })),
        ("singularResource", json!(info.singular)),
        ("verbs", json!(resource.told_verbs())),
        ("shortNames", json!(info.short_names)),
        ("categories", json!(info.categories)),
        ("subresources", json!(subresources)),
    ]))
}

/// Group and version stay empty where they are a built-in resource's own, as upstream leaves them.
fn kind(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_clause_that_is_served_decides() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let v2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        for (accept, expected) in [
            (format!("{v2},{v2beta1},application/json"), Wish::Aggregated),
            (format!("{v2};profile=nopeer,{v2},application/json"), Wish::Aggregated),
            (format!("{v2beta1},application/json"), Wish::Classic),
            ("application/json".to_owned(), Wish::Classic),
            ("*/*".to_owned(), Wish::Classic),
            (format!("application/json,{v2}"), Wish::Classic),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(http::header::ACCEPT, accept.parse().expect("header"));
            assert_eq!(wish(&headers), expected, "{accept}");
        }
    }
}
