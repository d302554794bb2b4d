//! TaintNodesByCondition: a new node takes no pods until something has seen it ready.

use async_trait::async_trait;
use coffer_types::{Status, Value};

use crate::ports::{Admission, Admit, Operation};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Taints new nodes.
pub struct NodeTaint;

#[async_trait]
impl Admit for NodeTaint {
    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let attributes = request.attributes;
        let new_node = request.operation == Operation::Create
            && attributes.group.is_empty()
            && attributes.resource == "nodes"
            && attributes.subresource.is_empty();
        if let Some(node) = object.filter(|_| new_node) {
            let taint = Value::from([("key", NOT_READY), ("effect", "NoSchedule")]);
            let taints = node.object_at_mut(&["spec"]).entry("taints".to_owned()).or_default();
            match taints {
                Value::Array(taints) if taints.iter().any(|one| is_same(one, &taint)) => {}
                Value::Array(taints) => taints.push(taint),
                other => *other = Value::Array(vec![taint]),
            }
        }
        Ok(())
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    ["key", "effect"].iter().all(|field| one.str_at(&[field]) == other.str_at(&[field]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Attributes;
    use crate::testing::block_on;

    #[test]
    fn new_nodes_are_tainted_once() {
        let admit = |operation, resource: &str, mut node: Value| {
            let attributes = Attributes { resource: resource.to_owned(), ..Attributes::default() };
            let forms = crate::testing::OneForm::default();
            let parts = crate::testing::ContextParts::default();
            let context = parts.context(&forms);
            let request = Admission {
                attributes: &attributes,
                operation,
                kind: "Node",
                old: None,
                dry_run: false,
                context: &context,
            };
            block_on(NodeTaint.mutate(&request, Some(&mut node), &mut Vec::new())).expect("allowed");
            node
        };
        let tainted = admit(Operation::Create, "nodes", Value::object());
        let taint = Value::from([("key", NOT_READY), ("effect", "NoSchedule")]);
        let mut expected = Value::object();
        expected.set(&["spec", "taints"], Value::Array(vec![taint]));
        assert_eq!(tainted, expected);
        assert_eq!(admit(Operation::Create, "nodes", tainted.clone()), tainted);
        assert_eq!(admit(Operation::Update, "nodes", Value::object()), Value::object());
        assert_eq!(admit(Operation::Create, "pods", Value::object()), Value::object());
    }
}
