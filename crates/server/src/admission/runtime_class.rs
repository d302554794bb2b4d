//! RuntimeClass: a pod's class exists, and the pod has its overhead, node selector and tolerations.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::{Status, Value};

use super::forbid;
use crate::ports::{Admission, Admit, GroupResource, Objects, Operation};
use crate::quota::amounts::amounts;

/// The plugin.
pub struct RuntimeClasses {
    objects: Arc<dyn Objects>,
}

impl RuntimeClasses {
    /// Over the stored classes.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self { objects }
    }

    async fn class(&self, request: &Admission<'_>, pod: &Value) -> Result<Option<Value>, Status> {
        let Some(name) = pod.at(&["spec", "runtimeClassName"]).and_then(Value::as_str) else {
            return Ok(None);
        };
        let resource = GroupResource::new("node.k8s.io", "runtimeclasses");
        let found = match self.objects.get(&resource, "", name, false).await? {
            Some(class) => Some(class),
            None => self.objects.get(&resource, "", name, true).await?,
        };
        if found.is_none() {
            let why = format!("pod rejected: RuntimeClass {} not found", crate::quote(name));
            return Err(forbid(request, Some(pod), why));
        }
        Ok(found)
    }
}

fn is_new_pod(request: &Admission<'_>) -> bool {
    let attributes = request.attributes;
    request.operation == Operation::Create
        && attributes.group.is_empty()
        && attributes.resource == "pods"
        && attributes.subresource.is_empty()
}

fn overhead(class: Option<&Value>) -> Option<&Value> {
    class?.at(&["overhead"]).filter(|overhead| !overhead.is_null())
}

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn same_overhead(pod: &Value, overhead: &Value) -> bool {
    amounts(pod, &["spec", "overhead"]) == amounts(overhead, &["podFixed"])
}

#[async_trait]
impl Admit for RuntimeClasses {
    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| is_new_pod(request)) else { return Ok(()) };
        let Some(class) = self.class(request, pod).await? else { return Ok(()) };
        if let Some(overhead) = overhead(Some(&class)) {
            if !amounts(pod, &["spec", "overhead"]).is_empty() && !same_overhead(pod, overhead) {
                return Err(forbid(request, Some(pod), MISMATCH));
            }
            match overhead.at(&["podFixed"]) {
                Some(fixed) => pod.set(&["spec", "overhead"], fixed.clone()),
                None => drop(pod.remove(&["spec", "overhead"])),
            }
        }
        let selector = class.at(&["scheduling", "nodeSelector"]).and_then(Value::as_object);
        for (key, wanted) in selector.into_iter().flatten() {
            let own = pod.at(&["spec", "nodeSelector", key]).and_then(Value::as_str);
            let wanted = wanted.as_str().unwrap_or_default();
            if let Some(own) = own.filter(|own| *own != wanted) {
                let why = format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {own}"
                );
                return Err(forbid(request, Some(pod), why));
            }
            pod.set(&["spec", "nodeSelector", key], wanted);
        }
        let more = class.at(&["scheduling", "tolerations"]).and_then(Value::as_array).unwrap_or_default();
        if !more.is_empty() {
            let own = pod.at(&["spec", "tolerations"]).and_then(Value::as_array).unwrap_or_default();
            let merged = merged(own.iter().chain(more));
            pod.set(&["spec", "tolerations"], merged);
        }
        Ok(())
    }

    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| is_new_pod(request)) else { return Ok(()) };
        let class = self.class(request, pod).await?;
        match overhead(class.as_ref()) {
            Some(overhead) if same_overhead(pod, overhead) => Ok(()),
            Some(_) => Err(forbid(request, Some(pod), MISMATCH)),
            None if pod.at(&["spec", "overhead"]).is_none_or(Value::is_null) => Ok(()),
            None => {
                let why =
                    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(forbid(request, Some(pod), why))
            }
        }
    }
}

/// Without those that another one covers; of two that are equal the first stays.
fn merged<'a>(all: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let all: Vec<&Value> = all.collect();
    let mut kept: Vec<&Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let later = all[index + 1..].iter().any(|other| one != other && covers(other, one));
        if !later && !kept.iter().any(|other| covers(other, one)) {
            kept.push(one);
        }
    }
    kept.into_iter().cloned().collect()
}

/// Whether whatever the second tolerates, the first does.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text = |one: &Value, field: &str| one.str_at(&[field]).to_owned();
    let seconds = |one: &Value| one.at(&["tolerationSeconds"]).and_then(Value::as_i64);
    let everything = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    if text(wide, "key") != text(narrow, "key") && !everything {
        return false;
    }
    let effect = text(wide, "effect");
    if text(narrow, "effect") != effect && !effect.is_empty() {
        return false;
    }
    if effect == "NoExecute"
        && let Some(longest) = seconds(wide)
        && seconds(narrow).is_none_or(|own| longest < own)
    {
        return false;
    }
    match text(wide, "operator").as_str() {
        "Equal" | "" => text(narrow, "operator") == "Equal" && text(wide, "value") == text(narrow, "value"),
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coffer_types::codec::json;

    /// Cases of TestMergeTolerations and TestIsSuperset of k8s.io/kubernetes v1.37.2.
    #[test]
    fn a_toleration_that_another_covers_goes() {
        let of = |text: &str| json::decode_untyped(text.as_bytes()).expect("JSON").object;
        let all = r#"{"operator":"Exists"}"#;
        let every_key = r#"{"operator":"Exists","effect":"NoExecute"}"#;
        let foo = r#"{"key":"foo","operator":"Exists","effect":"NoExecute"}"#;
        let foo_value = r#"{"key":"foo","operator":"Equal","value":"v","effect":"NoExecute"}"#;
        let foo_60 = r#"{"key":"foo","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}"#;
        let foo_5 = r#"{"key":"foo","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}"#;
        let bar = r#"{"key":"bar","operator":"Exists","effect":"NoSchedule"}"#;
        for (given, expected) in [
            (vec![foo, bar], vec![foo, bar]),
            (vec![foo, foo], vec![foo]),
            (vec![foo, all], vec![all]),
            (vec![all, bar, foo_5], vec![all]),
            (vec![foo_value, every_key, bar], vec![every_key, bar]),
            (vec![foo_5, foo_60], vec![foo_60]),
            (vec![foo_60, foo, foo_value], vec![foo]),
        ] {
            let given: Vec<Value> = given.into_iter().map(of).collect();
            let expected: Vec<Value> = expected.into_iter().map(of).collect();
            assert_eq!(merged(given.iter()), expected);
        }
    }
}
