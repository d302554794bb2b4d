//! Priority: a pod has the number of its class, and how it treats others.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::Meta as _;
use coffer_types::{Status, Value};

use super::forbid;
use crate::ports::{Admission, Admit, GroupResource, Objects, Operation};

const PREEMPTS: &str = "PreemptLowerPriority";

/// The plugin.
pub struct PodPriority {
    objects: Arc<dyn Objects>,
}

impl PodPriority {
    /// Over the stored classes.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self { objects }
    }

    /// Name, number and policy of the class that a pod has.
    async fn class(&self, request: &Admission<'_>, pod: &Value) -> Result<(String, i64, String), Status> {
        let resource = GroupResource::new("scheduling.k8s.io", "priorityclasses");
        let parts = |class: &Value| {
            let value = class.get("value").and_then(Value::as_i64).unwrap_or_default();
            let policy = match class.str_at(&["preemptionPolicy"]) {
                "" => PREEMPTS,
                policy => policy,
            };
            (class.name().to_owned(), value, policy.to_owned())
        };
        let name = pod.str_at(&["spec", "priorityClassName"]);
        if !name.is_empty() {
            let found = self.objects.get(&resource, "", name, false).await?;
            return match found {
                Some(class) => Ok(parts(&class)),
                None => {
                    Err(forbid(request, Some(pod), format!("no PriorityClass with name {name} was found")))
                }
            };
        }
        // Of several defaults, which a race can leave behind, the lowest counts.
        let classes = self.objects.list(&resource, "").await?;
        let defaults = classes.iter().filter(|class| is_default(class)).map(parts);
        let lowest = defaults.min_by_key(|(_, value, _)| *value);
        Ok(lowest.unwrap_or_else(|| (String::new(), 0, PREEMPTS.to_owned())))
    }
}

fn is_default(class: &Value) -> bool {
    class.get("globalDefault").and_then(Value::as_bool) == Some(true)
}

fn is(request: &Admission<'_>, group: &str, resource: &str) -> bool {
    let attributes = request.attributes;
    attributes.group == group && attributes.resource == resource && attributes.subresource.is_empty()
}

#[async_trait]
impl Admit for PodPriority {
    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| is(request, "", "pods")) else { return Ok(()) };
        match request.operation {
            Operation::Create => {}
            Operation::Update => {
                // What a client leaves out stays as it was.
                for field in ["priority", "preemptionPolicy"] {
                    let path = ["spec", field];
                    if let (None, Some(before)) = (pod.at(&path), request.old.and_then(|old| old.at(&path))) {
                        pod.set(&path, before.clone());
                    }
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        let (name, value, policy) = self.class(request, pod).await?;
        if let Some(own) = pod.at(&["spec", "priority"]).and_then(Value::as_i64)
            && own != value
        {
            let why = format!(
                "the integer value of priority ({own}) must not be provided in pod spec; priority admission \
                 controller computed {value} from the given PriorityClass name"
            );
            return Err(forbid(request, Some(pod), why));
        }
        let own = pod.str_at(&["spec", "preemptionPolicy"]);
        if !own.is_empty() && own != policy {
            let why = format!(
                "the string value of PreemptionPolicy ({own}) must not be provided in pod spec; priority \
                 admission controller computed {policy} from the given PriorityClass name"
            );
            return Err(forbid(request, Some(pod), why));
        }
        if !name.is_empty() {
            pod.set(&["spec", "priorityClassName"], name);
        }
        pod.set(&["spec", "priority"], value);
        pod.set(&["spec", "preemptionPolicy"], policy);
        Ok(())
    }

    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let resource = GroupResource::new("scheduling.k8s.io", "priorityclasses");
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        let Some(class) = object.filter(|_| writes && is(request, &resource.group, &resource.resource))
        else {
            return Ok(());
        };
        if !is_default(class) || request.old.is_some_and(is_default) {
            return Ok(());
        }
        let others = self.objects.list(&resource, "").await?;
        match others.iter().find(|other| is_default(other) && other.name() != class.name()) {
            None => Ok(()),
            Some(other) => {
                let why = format!(
                    "PriorityClass {} is already marked as default. Only one default can exist",
                    other.name()
                );
                Err(forbid(request, Some(class), why))
            }
        }
    }
}
