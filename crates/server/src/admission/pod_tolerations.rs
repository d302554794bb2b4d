//! DefaultTolerationSeconds: a pod stays for five minutes on a node that is not heard of.

use async_trait::async_trait;
use coffer_types::{Status, Value};

use crate::ports::{Admission, Admit, Operation};

const SECONDS: i64 = 300;
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The plugin.
#[derive(Default)]
pub struct PodTolerations;

#[async_trait]
impl Admit for PodTolerations {
    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let attributes = request.attributes;
        let is_pod = attributes.group.is_empty()
            && attributes.resource == "pods"
            && attributes.subresource.is_empty()
            && matches!(request.operation, Operation::Create | Operation::Update);
        if let Some(pod) = object.filter(|_| is_pod) {
            tolerate(pod);
        }
        Ok(())
    }
}

fn tolerate(pod: &mut Value) {
    let own = pod.at(&["spec", "tolerations"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    let tolerates = |taint: &str| {
        own.iter().any(|one| {
            let key = one.str_at(&["key"]);
            (key.is_empty() || key == taint) && matches!(one.str_at(&["effect"]), "" | "NoExecute")
        })
    };
    let missing: Vec<Value> = TAINTS
        .into_iter()
        .filter(|taint| !tolerates(taint))
        .map(|taint| {
            Value::from([
                ("key", Value::from(taint)),
                ("operator", "Exists".into()),
                ("effect", "NoExecute".into()),
                ("tolerationSeconds", SECONDS.into()),
            ])
        })
        .collect();
    if !missing.is_empty() {
        let all: Vec<Value> = own.into_iter().chain(missing).collect();
        pod.set(&["spec", "tolerations"], all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_tolerated_is_added() {
        let keys = |own: &[(&str, &str)]| -> Vec<String> {
            let mut pod = Value::object();
            let own = own.iter().map(|(key, effect)| Value::from([("key", *key), ("effect", *effect)]));
            pod.set(&["spec", "tolerations"], own.collect::<Vec<_>>());
            tolerate(&mut pod);
            let all = pod.at(&["spec", "tolerations"]).and_then(Value::as_array).unwrap_or_default();
            all.iter().map(|one| one.str_at(&["key"]).to_owned()).collect()
        };
        assert_eq!(keys(&[]), TAINTS);
        assert_eq!(keys(&[("", "")]), [""]);
        assert_eq!(keys(&[("a", "")]), ["a", TAINTS[0], TAINTS[1]]);
        assert_eq!(keys(&[(TAINTS[0], "NoExecute")]), TAINTS);
        assert_eq!(keys(&[(TAINTS[0], "NoSchedule")]), [TAINTS[0], TAINTS[0], TAINTS[1]]);
    }
}
