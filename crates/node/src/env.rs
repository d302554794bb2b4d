//! The environment of a container: what each variable is when the container starts.
//!
//! Order and texts are the kubelet's. Values that come from Secrets stay [`SecretBytes`]
//! to the end and are in no error.

use std::collections::BTreeMap;

use coffer_types::SecretBytes;
use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};

/// Variables in a stable order: as declared, a later one of the same name in the earlier one's place.
#[derive(Default, Clone, PartialEq, Eq)]
pub struct Environment(Vec<(String, SecretBytes)>);

impl Environment {
    /// The variables.
    pub fn variables(&self) -> &[(String, SecretBytes)] {
        &self.0
    }

    /// The value of one variable.
    pub fn get(&self, name: &str) -> Option<&SecretBytes> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The names that no shell can use, since they are no C identifiers (field case N23).
    pub fn odd_names(&self) -> Vec<&str> {
        let plain = |name: &str| {
            let mut bytes = name.bytes();
            bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
                && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        };
        self.0.iter().map(|(name, _)| name.as_str()).filter(|name| !plain(name)).collect()
    }

    fn set(&mut self, name: &str, value: SecretBytes) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }
}

/// Where keys come from. Both give `Ok(None)` when the object does not exist.
pub trait Sources {
    /// The data of a Secret in the pod's namespace.
    fn secret(&self, name: &str) -> Result<Option<BTreeMap<String, SecretBytes>>, String>;
    /// The `data` of a ConfigMap in the pod's namespace.
    fn config_map(&self, name: &str) -> Result<Option<BTreeMap<String, SecretBytes>>, String>;
}

/// Why a container cannot start; the text becomes its waiting message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EnvError(pub String);

/// Resolves the environment of `container`.
pub fn resolve(pod: &Pod, container: &Container, sources: &dyn Sources) -> Result<Environment, EnvError> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let mut environment = Environment::default();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        if let Some(reference) = &source.config_map_ref {
            let found = sources.config_map(&reference.name).map_err(EnvError)?;
            match found {
                Some(data) => {
                    for (key, value) in data {
                        environment.set(&format!("{prefix}{key}"), value);
                    }
                }
                None if reference.optional == Some(true) => {}
                None => return Err(EnvError(format!("configmap {:?} not found", reference.name))),
            }
        }
        if let Some(reference) = &source.secret_ref {
            match sources.secret(&reference.name).map_err(EnvError)? {
                Some(data) => {
                    for (key, value) in data {
                        environment.set(&format!("{prefix}{key}"), value);
                    }
                }
                None if reference.optional == Some(true) => {}
                None => return Err(EnvError(format!("secret {:?} not found", reference.name))),
            }
        }
    }
    for variable in container.env.iter().flatten() {
        let literal = variable.value.as_deref().unwrap_or_default();
        if !literal.is_empty() {
            let value = expand(literal, |name| environment.get(name));
            environment.set(&variable.name, value);
        } else if let Some(from) = &variable.value_from {
            if let Some(value) = from_source(pod, namespace, from, sources)? {
                environment.set(&variable.name, value);
            }
        } else {
            environment.set(&variable.name, SecretBytes::default());
        }
    }
    Ok(environment)
}

/// `None` means that the variable is left out: what it refers to is optional and absent.
fn from_source(
    pod: &Pod,
    namespace: &str,
    from: &EnvVarSource,
    sources: &dyn Sources,
) -> Result<Option<SecretBytes>, EnvError> {
    if let Some(field) = &from.field_ref {
        return Ok(Some(SecretBytes::from(pod_field(pod, &field.field_path)?)));
    }
    if let Some(reference) = &from.config_map_key_ref {
        let optional = reference.optional == Some(true);
        let found = sources.config_map(&reference.name).map_err(EnvError)?;
        let key = &reference.key;
        return match found.map(|mut data| data.remove(key)) {
            Some(Some(value)) => Ok(Some(value)),
            Some(None) | None if optional => Ok(None),
            Some(None) => {
                Err(EnvError(format!("couldn't find key {key} in ConfigMap {namespace}/{}", reference.name)))
            }
            None => Err(EnvError(format!("configmap {:?} not found", reference.name))),
        };
    }
    if let Some(reference) = &from.secret_key_ref {
        let optional = reference.optional == Some(true);
        let found = sources.secret(&reference.name).map_err(EnvError)?;
        let key = &reference.key;
        return match found.map(|mut data| data.remove(key)) {
            Some(Some(value)) => Ok(Some(value)),
            Some(None) | None if optional => Ok(None),
            Some(None) => {
                Err(EnvError(format!("couldn't find key {key} in Secret {namespace}/{}", reference.name)))
            }
            None => Err(EnvError(format!("secret {:?} not found", reference.name))),
        };
    }
    Err(EnvError(
        "resourceFieldRef and fileKeyRef need a container runtime, which this node lacks".to_owned(),
    ))
}

/// The downward API's fields.
fn pod_field(pod: &Pod, path: &str) -> Result<String, EnvError> {
    let keyed = |map: &Option<BTreeMap<String, String>>, key: &str| {
        map.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default()
    };
    if let Some((field, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        match field {
            "metadata.labels" => return Ok(keyed(&pod.metadata.labels, key)),
            "metadata.annotations" => return Ok(keyed(&pod.metadata.annotations, key)),
            _ => {}
        }
    }
    let spec = pod.spec.as_ref();
    let status = pod.status.as_ref();
    let value = match path {
        "metadata.name" => pod.metadata.name.clone(),
        "metadata.namespace" => pod.metadata.namespace.clone(),
        "metadata.uid" => pod.metadata.uid.clone(),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.hostIP" => status.and_then(|status| status.host_ip.clone()),
        "status.podIP" => status.and_then(|status| status.pod_ip.clone()),
        "status.podIPs" => status
            .and_then(|status| status.pod_ips.as_ref())
            .map(|ips| ips.iter().map(|ip| ip.ip.as_str()).collect::<Vec<_>>().join(",")),
        "status.hostIPs" => status
            .and_then(|status| status.host_ips.as_ref())
            .map(|ips| ips.iter().map(|ip| ip.ip.as_str()).collect::<Vec<_>>().join(",")),
        _ => return Err(EnvError(format!("unsupported fieldPath: {path}"))),
    };
    Ok(value.unwrap_or_default())
}

/// A field as a file of a volume shows it: labels and annotations whole as well.
pub(crate) fn volume_field(pod: &Pod, path: &str) -> Result<String, EnvError> {
    let lines = |map: &Option<BTreeMap<String, String>>| {
        let lines = map.iter().flatten().map(|(key, value)| format!("{key}={}", go_quoted(value)));
        lines.collect::<Vec<_>>().join("\n")
    };
    match path {
        "metadata.labels" => Ok(lines(&pod.metadata.labels)),
        "metadata.annotations" => Ok(lines(&pod.metadata.annotations)),
        path => pod_field(pod, path),
    }
}

/// Text in double quotes as Go's `%q` writes it.
fn go_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            control if (control as u32) < 0x20 || control as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", control as u32));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Expands `$(NAME)`; `$$` is `$`; what is unknown stays as it is; the result is not scanned again.
pub fn expand<'a>(text: &str, lookup: impl Fn(&str) -> Option<&'a SecretBytes>) -> SecretBytes {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        if bytes[index] != b'$' || index + 1 == bytes.len() {
            out.push(bytes[index]);
            index += 1;
            continue;
        }
        match bytes[index + 1] {
            b'$' => {
                out.push(b'$');
                index += 2;
            }
            b'(' => match bytes[index + 2..].iter().position(|byte| *byte == b')') {
                Some(length) => {
                    let end = index + 2 + length;
                    match lookup(&text[index + 2..end]) {
                        Some(value) => out.extend_from_slice(value.expose()),
                        None => out.extend_from_slice(&bytes[index..=end]),
                    }
                    index = end + 1;
                }
                None => {
                    out.extend_from_slice(b"$(");
                    index += 2;
                }
            },
            // `$x` stays, x included.
            other => {
                out.extend_from_slice(&[b'$', other]);
                index += 2;
            }
        }
    }
    SecretBytes::new(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Fixed;

    impl Sources for Fixed {
        fn secret(&self, name: &str) -> Result<Option<BTreeMap<String, SecretBytes>>, String> {
            match name {
                "db" => Ok(Some(
                    [("password", "s3cr3t"), ("1-odd.name", "odd"), ("user", "$(HOST)")]
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), SecretBytes::from(value.to_owned())))
                        .collect(),
                )),
                "slow" => Err("failed to sync secret cache: timed out waiting for the condition".to_owned()),
                _ => Ok(None),
            }
        }

        fn config_map(&self, name: &str) -> Result<Option<BTreeMap<String, SecretBytes>>, String> {
            let data = BTreeMap::from([("host".to_owned(), SecretBytes::from("h".to_owned()))]);
            Ok((name == "cm").then_some(data))
        }
    }

    fn check(container: serde_json::Value, expected: Result<&[(&str, &str)], &str>) {
        let mut container = container;
        container["name"] = json!("c");
        let container: Container = serde_json::from_value(container).expect("a container");
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "web"}},
            "spec": {"nodeName": "n1", "containers": []},
        }))
        .expect("a pod");
        match (resolve(&pod, &container, &Fixed), expected) {
            (Ok(environment), Ok(variables)) => {
                let found: Vec<_> = environment
                    .variables()
                    .iter()
                    .map(|(name, value)| (name.as_str(), std::str::from_utf8(value.expose()).expect("text")))
                    .collect();
                assert_eq!(found, variables);
            }
            (Err(error), Err(text)) => {
                assert_eq!(error.to_string(), text);
                assert!(!text.contains("s3cr3t"));
            }
            (Ok(_), Err(text)) => panic!("expected {text}"),
            (Err(error), Ok(_)) => panic!("unexpected {error}"),
        }
    }

    fn key_ref(name: &str, key: &str, optional: bool) -> serde_json::Value {
        json!({"valueFrom": {"secretKeyRef": {"name": name, "key": key, "optional": optional}}, "name": "A"})
    }

    #[test]
    fn variables_resolve_in_the_kubelets_order() {
        check(json!({}), Ok(&[]));
        check(json!({"env": [key_ref("db", "password", false)]}), Ok(&[("A", "s3cr3t")]));
        check(json!({"env": [key_ref("db", "no", true)]}), Ok(&[]));
        check(json!({"env": [key_ref("no", "k", true)]}), Ok(&[]));
        check(json!({"env": [key_ref("db", "no", false)]}), Err("couldn't find key no in Secret ns/db"));
        check(json!({"env": [key_ref("no", "k", false)]}), Err("secret \"no\" not found"));
        check(
            json!({"env": [key_ref("slow", "k", true)]}),
            Err("failed to sync secret cache: timed out waiting for the condition"),
        );
        check(json!({"env": [{"name": "E"}]}), Ok(&[("E", "")]));
        check(
            json!({"env": [{"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                           {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]}),
            Ok(&[("E", "web"), ("N", "n1")]),
        );
    }

    #[test]
    fn n23_names_that_no_shell_can_use_are_known() {
        let mut environment = Environment::default();
        for name in ["PLAIN", "_x1", "1-odd.name", "a-b", "a.b", "", "é"] {
            environment.set(name, SecretBytes::default());
        }
        assert_eq!(environment.odd_names(), ["1-odd.name", "a-b", "a.b", "", "é"]);
    }

    /// Field case N23: odd keys of `envFrom` are passed on, as since 1.34.
    #[test]
    fn n23_env_from_passes_every_key() {
        check(
            json!({"envFrom": [{"prefix": "P_", "secretRef": {"name": "db"}}]}),
            Ok(&[("P_1-odd.name", "odd"), ("P_password", "s3cr3t"), ("P_user", "$(HOST)")]),
        );
        check(json!({"envFrom": [{"secretRef": {"name": "no", "optional": true}}]}), Ok(&[]));
        check(json!({"envFrom": [{"secretRef": {"name": "no"}}]}), Err("secret \"no\" not found"));
        check(json!({"envFrom": [{"configMapRef": {"name": "no"}}]}), Err("configmap \"no\" not found"));
    }

    #[test]
    fn references_see_what_came_before_and_secret_values_are_not_expanded() {
        check(
            json!({
                "envFrom": [{"configMapRef": {"name": "cm"}}],
                "env": [
                    {"name": "HOST", "value": "db.$(host)"},
                    {"name": "USER", "valueFrom": {"secretKeyRef": {"name": "db", "key": "user"}}},
                    {"name": "URL", "value": "$(USER):$(HOST)$(LATER)"},
                    {"name": "LATER", "value": "x"},
                    {"name": "host", "value": "again"},
                ],
            }),
            Ok(&[
                ("host", "again"),
                ("HOST", "db.h"),
                ("USER", "$(HOST)"),
                ("URL", "$(HOST):db.h$(LATER)"),
                ("LATER", "x"),
            ]),
        );
    }

    #[test]
    fn the_grammar_of_references() {
        let value = SecretBytes::from("v".to_owned());
        let cases = [
            ("$", "$"),
            ("$$", "$"),
            ("$$(A)", "$(A)"),
            ("$(A)", "v"),
            ("$(B)", "$(B)"),
            ("$()", "$()"),
            ("$(A", "$(A"),
            ("$(A$(A)", "$(A$(A)"),
            ("$x$(A)", "$xv"),
            ("a$(A)b$(A)", "avbv"),
            ("$(A)$", "v$"),
        ];
        for (text, expected) in cases {
            let found = expand(text, |name| (name == "A").then_some(&value));
            assert_eq!(std::str::from_utf8(found.expose()).expect("text"), expected, "{text}");
        }
    }
}
