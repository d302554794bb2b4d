//! Field selectors: upstream's grammar and texts, and which fields each kind can be selected by.

use coffer_types::Value;
use coffer_types::meta::Meta;

/// Conditions that must all hold. None at all selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

/// One condition on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The field, such as `metadata.name`.
    pub field: String,
    /// Whether the field must equal the value (`=`, `==`) or must not (`!=`).
    pub equal: bool,
    /// The value, unescaped.
    pub value: String,
}

/// The text is no field selector, or names a field that the kind cannot be selected by. Upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldSelectorError(String);

impl FieldSelector {
    /// Parses the text of a `fieldSelector` query parameter.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let mut parts = split(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, equal, value)) = term(part) else {
                let fault = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(FieldSelectorError(fault));
            };
            let value = unescape(value).map_err(FieldSelectorError)?;
            terms.push(Term { field: field.to_owned(), equal, value });
        }
        Ok(Self { terms })
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The conditions, ordered by their texts.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The one value that `field` must have, if there is one: with `metadata.name`,
    /// a single object is read, watched and authorized.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }

    /// Checks that the kind can be selected by every field, and replaces aliases.
    /// `selectable` are all fields of a custom resource.
    pub fn for_kind(
        mut self,
        group: &str,
        kind: &str,
        selectable: Option<&[&str]>,
    ) -> Result<Self, FieldSelectorError> {
        for term in &mut self.terms {
            let field = term.field.as_str();
            if let Some(selectable) = selectable {
                if !selectable.contains(&field) {
                    return Err(FieldSelectorError(format!("field label not supported: {field}")));
                }
                continue;
            }
            match fields_of(group, kind) {
                Some(fields) if fields.contains(&field) => {
                    if group == "events.k8s.io" {
                        // They are selected as the core Events that they are stored as.
                        term.field = match field.strip_prefix("regarding.") {
                            Some(rest) => format!("involvedObject.{rest}"),
                            None => field.replace("reportingController", "reportingComponent"),
                        };
                    }
                }
                Some(_) if kind == "Pod" && field == "spec.host" => term.field = "spec.nodeName".to_owned(),
                Some(_) => return Err(FieldSelectorError(format!("field label not supported: {field}"))),
                None if ["metadata.name", "metadata.namespace"].contains(&field) => {}
                None => {
                    let field = coffer_types::validation::field::go_quote(field);
                    return Err(FieldSelectorError(format!(
                        "{field} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )));
                }
            }
        }
        Ok(self)
    }

    /// Whether the object is selected.
    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| (field_value(object, &term.field) == term.value) == term.equal)
    }

    /// Whether an object of that name and namespace may be selected, when nothing else of it is known.
    pub fn may_match(&self, namespace: &str, name: &str) -> bool {
        self.terms.iter().all(|term| match term.field.as_str() {
            "metadata.name" => (term.value == name) == term.equal,
            "metadata.namespace" => (term.value == namespace) == term.equal,
            _ => true,
        })
    }
}

/// The fields of the kinds that have more than the generic two; `None` for the others.
fn fields_of(group: &str, kind: &str) -> Option<&'static [&'static str]> {
    Some(match (group, kind) {
        ("", "Secret") => &["type", "metadata.name", "metadata.namespace"],
        ("", "Namespace") => &["status.phase", "metadata.name"],
        ("", "Node") => &["metadata.name", "spec.unschedulable"],
        ("", "Pod") => &[
            "metadata.name",
            "metadata.namespace",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
            "metadata.namespace",
            "metadata.name",
        ],
        ("", "Service") => &["metadata.namespace", "metadata.name", "spec.clusterIP", "spec.type"],
        ("", "ReplicationController") => &["metadata.name", "metadata.namespace", "status.replicas"],
        ("batch", "Job") => &["metadata.name", "metadata.namespace", "status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["metadata.name", "spec.signerName"],
        ("resource.k8s.io", "ResourceSlice") => {
            &["metadata.name", "spec.nodeName", "spec.driver", "spec.pool.name"]
        }
        ("events.k8s.io", "Event") => &[
            "reason",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reportingController",
            "type",
            "metadata.namespace",
            "metadata.name",
        ],
        _ => return None,
    })
}

/// The text of a field; "" where it is absent. Two fields of Events and one of Nodes are not where they are named.
fn field_value(object: &Value, field: &str) -> String {
    match field {
        "source" if object.kind() == "Event" || object.get("involvedObject").is_some() => {
            let component = object.str_at(&["source", "component"]);
            let component =
                if component.is_empty() { object.str_at(&["reportingComponent"]) } else { component };
            return component.to_owned();
        }
        "spec.unschedulable" | "spec.hostNetwork" => {
            let path: Vec<_> = field.split('.').collect();
            return object.at(&path).and_then(Value::as_bool).unwrap_or(false).to_string();
        }
        "status.podIPs" => {
            let ips = object.at(&["status", "podIPs"]).and_then(Value::as_array).unwrap_or_default();
            return ips.iter().map(|ip| ip.str_at(&["ip"])).collect::<Vec<_>>().join(",");
        }
        _ => {}
    }
    let path: Vec<_> = field.split('.').collect();
    match object.at(&path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Int(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Splits at commas that no backslash precedes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (position, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn term(part: &str) -> Option<(&str, bool, &str)> {
    part.char_indices().find_map(|(position, _)| {
        let rest = &part[position..];
        [("!=", false), ("==", true), ("=", true)]
            .iter()
            .find_map(|(operator, equal)| Some((&part[..position], *equal, rest.strip_prefix(operator)?)))
    })
}

fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut escaped = false;
    for character in value.chars() {
        match character {
            '\\' | ',' | '=' if escaped => {
                plain.push(character);
                escaped = false;
            }
            other if escaped => {
                return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
            }
            '\\' => escaped = true,
            ',' | '=' => {
                let code = u32::from(character);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            other => plain.push(other),
        }
    }
    if escaped {
        return Err("invalid field selector: invalid escape sequence: \\".to_owned());
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_parsed() {
        let check = |text: &str, expected: &[(&str, bool, &str)]| {
            let parsed = FieldSelector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let terms: Vec<_> = parsed
                .terms()
                .iter()
                .map(|term| (term.field.as_str(), term.equal, term.value.as_str()))
                .collect();
            assert_eq!(terms, expected, "{text}");
        };
        check("", &[]);
        check(",", &[]);
        check("a=b", &[("a", true, "b")]);
        check("a==b", &[("a", true, "b")]);
        check("a!=b", &[("a", false, "b")]);
        check("b=1,a=2", &[("a", true, "2"), ("b", true, "1")]);
        check("a=", &[("a", true, "")]);
        check("a=b\\,c\\=d\\\\", &[("a", true, "b,c=d\\")]);
        check("=b", &[("", true, "b")]);
    }

    #[test]
    fn faults_are_worded_as_upstream() {
        let check = |text: &str, expected: &str| {
            let error = FieldSelector::parse(text).expect_err("a fault").to_string();
            assert_eq!(error, expected);
        };
        check("a", "invalid selector: 'a'; can't understand 'a'");
        check("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'");
        check("a=b=c", "invalid field selector: unescaped character in value: 61");
        check("a=b\\x", "invalid field selector: invalid escape sequence: \\x");
        check("a=b\\", "invalid field selector: invalid escape sequence: \\");
    }

    #[test]
    fn kinds_have_their_fields() {
        let check = |group: &str, kind: &str, text: &str, expected: Result<&str, &str>| {
            let parsed = FieldSelector::parse(text).expect("well-formed").for_kind(group, kind, None);
            match (parsed, expected) {
                (Ok(selector), Ok(field)) => assert_eq!(selector.terms()[0].field, field),
                (Err(error), Err(text)) => assert_eq!(error.to_string(), text),
                (actual, _) => panic!("{kind} {text}: {actual:?}"),
            }
        };
        check("", "Secret", "type=Opaque", Ok("type"));
        check("", "Secret", "data.a=b", Err("field label not supported: data.a"));
        check("", "Namespace", "name=x", Err("field label not supported: name"));
        check("events.k8s.io", "Event", "regarding.kind=x", Ok("involvedObject.kind"));
        check(
            "events.k8s.io",
            "Event",
            "involvedObject.kind=x",
            Err("field label not supported: involvedObject.kind"),
        );
        check("", "Pod", "spec.nodeName=x", Ok("spec.nodeName"));
        check("", "ConfigMap", "metadata.name=x", Ok("metadata.name"));
        check(
            "",
            "ConfigMap",
            "x=y",
            Err("\"x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
        );
        let selectable = ["metadata.name", "spec.color"];
        let custom = |text: &str| {
            FieldSelector::parse(text).expect("well-formed").for_kind("g.io", "X", Some(&selectable))
        };
        assert!(custom("spec.color=red").is_ok() && custom("metadata.name=a").is_ok());
        for field in ["spec.size", "metadata.namespace"] {
            let error = custom(&format!("{field}=1")).expect_err("not selectable").to_string();
            assert_eq!(error, format!("field label not supported: {field}"));
        }
    }

    #[test]
    fn objects_are_selected() {
        let mut secret = Value::from([("type", "Opaque")]);
        secret.set(&["metadata", "name"], "s");
        secret.set(&["metadata", "namespace"], "n");
        let check = |text: &str, expected: bool| {
            let selector = FieldSelector::parse(text).expect("well-formed");
            assert_eq!(selector.matches(&secret), expected, "{text}");
        };
        check("", true);
        check("type=Opaque", true);
        check("type!=Opaque", false);
        check("metadata.name=s,metadata.namespace=n", true);
        check("metadata.name=s,type=x", false);
        let selector = FieldSelector::parse("metadata.name=s,type=x").expect("well-formed");
        assert_eq!(selector.exact("metadata.name"), Some("s"));
        assert_eq!(selector.exact("metadata.namespace"), None);
        assert!(selector.may_match("n", "s") && !selector.may_match("n", "t"));
        let node = Value::from([("spec", Value::from([("unschedulable", true)]))]);
        assert!(FieldSelector::parse("spec.unschedulable=true").expect("well-formed").matches(&node));
        assert!(
            FieldSelector::parse("spec.unschedulable=false").expect("well-formed").matches(&Value::object())
        );
    }
}
