//! The discovery documents that every client can read: APIVersions, APIGroupList, APIGroup, APIResourceList.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::resources::{Group, Resource, Served};

/// `/api`.
pub(super) fn versions(headers: &HeaderMap) -> Vec<u8> {
    let address = super::document::host(headers);
    // Written by hand, as are all documents here: the order of the members is upstream's.
    line(format!(
        r#"{{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{{"clientCIDR":"0.0.0.0/0","serverAddress":{}}}]}}"#,
        json!(address)
    ))
}

/// `/apis`.
pub(super) fn groups(served: &Served) -> Vec<u8> {
    let groups: Vec<String> =
        served.groups().iter().filter(|group| !group.name.is_empty()).map(group_body).collect();
    line(format!(r#"{{"kind":"APIGroupList","apiVersion":"v1","groups":[{}]}}"#, groups.join(",")))
}

/// `/apis/GROUP`.
pub(super) fn group(served: &Served, name: &str) -> Option<Vec<u8>> {
    if name.is_empty() {
        return None;
    }
    let groups = served.groups();
    let group = groups.iter().find(|group| group.name == name)?;
    let body = group_body(group);
    Some(line(format!(r#"{{"kind":"APIGroup","apiVersion":"v1",{}"#, &body[1..])))
}

fn group_body(group: &Group) -> String {
    let version = |version: &String| {
        format!(
            r#"{{"groupVersion":{},"version":{}}}"#,
            json!(format!("{}/{version}", group.name)),
            json!(version)
        )
    };
    let versions: Vec<String> = group.versions.iter().map(version).collect();
    let preferred = group.versions.first().map(version).unwrap_or_default();
    format!(
        r#"{{"name":{},"versions":[{}],"preferredVersion":{preferred}}}"#,
        json!(group.name),
        versions.join(",")
    )
}

/// `/api/v1` and `/apis/GROUP/VERSION`.
pub(super) fn resources(served: &Served, group: &str, version: &str) -> Vec<u8> {
    let mut entries: Vec<(String, String)> = Vec::new();
    for resource in served.of_version(group, version) {
        let info = &resource.info;
        entries.push((info.plural.clone(), entry(resource)));
        for subresource in &info.subresources {
            let name = format!("{}/{}", info.plural, subresource.name);
            let mut fields = vec![
                format!(r#""name":{}"#, json!(name)),
                r#""singularName":"""#.to_owned(),
                format!(r#""namespaced":{}"#, info.namespaced),
            ];
            if !subresource.version.is_empty() {
                if !subresource.group.is_empty() {
                    fields.push(format!(r#""group":{}"#, json!(subresource.group)));
                }
                fields.push(format!(r#""version":{}"#, json!(subresource.version)));
            }
            fields.push(format!(r#""kind":{}"#, json!(subresource.kind)));
            fields.push(format!(r#""verbs":{}"#, json!(subresource.verbs)));
            entries.push((name, format!("{{{}}}", fields.join(","))));
        }
    }
    // Those of custom resources come as their definitions have them.
    if !served.is_custom_group(group) {
        entries.sort();
    }
    let entries: Vec<String> = entries.into_iter().map(|(_, entry)| entry).collect();
    let group_version = coffer_types::meta::api_version(group, version);
    let head = if group.is_empty() { "" } else { r#""apiVersion":"v1","# };
    line(format!(
        r#"{{"kind":"APIResourceList",{head}"groupVersion":{},"resources":[{}]}}"#,
        json!(group_version),
        entries.join(",")
    ))
}

fn entry(resource: &Resource) -> String {
    let info = &resource.info;
    let mut fields = vec![
        format!(r#""name":{}"#, json!(info.plural)),
        format!(r#""singularName":{}"#, json!(info.singular)),
        format!(r#""namespaced":{}"#, info.namespaced),
        format!(r#""kind":{}"#, json!(info.kind)),
        format!(r#""verbs":{}"#, json!(resource.told_verbs())),
    ];
    if !info.short_names.is_empty() {
        fields.push(format!(r#""shortNames":{}"#, json!(info.short_names)));
    }
    if !info.categories.is_empty() {
        fields.push(format!(r#""categories":{}"#, json!(info.categories)));
    }
    if !info.storage_version.is_empty() {
        fields
            .push(format!(r#""storageVersionHash":{}"#, json!(storage_version_hash(&info.storage_version))));
    }
    format!("{{{}}}", fields.join(","))
}

/// Base64 of the first eight bytes of SHA-256.
fn storage_version_hash(storage_version: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, storage_version.as_bytes());
    STANDARD.encode(&digest.as_ref()[..8])
}

fn line(mut document: String) -> Vec<u8> {
    document.push('\n');
    document.into_bytes()
}

/// Members of a document that are left out when they are empty.
pub(super) fn without_empty(members: Vec<(&str, Value)>) -> Map<String, Value> {
    members
        .into_iter()
        .filter(|(_, value)| value.as_array().is_none_or(|items| !items.is_empty()))
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_versions_hash_as_upstream() {
        // Observed on kube-apiserver 1.37.2.
        for (version, expected) in [
            ("/v1/Secret", "S6u1pOWzb84="),
            ("/v1/ConfigMap", "qFsyl6wFWjQ="),
            ("/v1/ServiceAccount", "pbx9ZvyFpBE="),
            ("/v1/Namespace", "Q3oi5N2YM8M="),
            ("/v1/Event", "r2yiGXH7wu8="),
            ("coordination.k8s.io/v1/Lease", "gqkMMb/YqFM="),
            ("rbac.authorization.k8s.io/v1/Role", "7FuwZcIIItM="),
            ("apiextensions.k8s.io/v1beta1/CustomResourceDefinition", "jfWCUB31mvA="),
        ] {
            assert_eq!(storage_version_hash(version), expected, "{version}");
        }
    }
}
