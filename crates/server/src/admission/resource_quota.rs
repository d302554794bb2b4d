//! ResourceQuota: what is written fits into the namespace's quotas, and is charged to them at once.
//!
//! What a deletion gives back is counted by the quota controller (`controllers/resource_quota.rs`), as upstream.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::meta::Meta as _;
use coffer_types::time::Clock;
use coffer_types::{Status, Value};
use tokio::sync::Mutex;

use super::forbid;
use crate::ports::{Admission, Admit, GroupResource, Objects, Operation};
use crate::quota::amounts::{Amounts, add, amounts};
use crate::quota::usage::Counted;

/// How often quotas that somebody else charged meanwhile are looked at again.
const ATTEMPTS: usize = 4;
/// Writes into namespaces that share a lock wait for each other.
const LOCKS: usize = 64;

/// The plugin.
pub struct Quotas {
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    /// One charge at a time for each namespace: charges that race would only have to be repeated.
    charging: [Mutex<()>; LOCKS],
}

impl Quotas {
    /// Over the stored quotas.
    pub fn new(objects: Arc<dyn Objects>, clock: Arc<dyn Clock>) -> Self {
        Self { objects, clock, charging: [const { Mutex::const_new(()) }; LOCKS] }
    }

    fn lock(&self, namespace: &str) -> &Mutex<()> {
        let mut hasher = DefaultHasher::new();
        namespace.hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or_default();
        &self.charging[index]
    }

    async fn charge(&self, request: &Admission<'_>, counted: &Counted, object: &Value) -> Result<(), Status> {
        let resource = GroupResource::new("", "resourcequotas");
        let namespace = &request.attributes.namespace;
        let known = self.objects.cached(&resource, namespace).await?;
        if known.is_empty() {
            return Ok(());
        }
        let _charging = self.lock(namespace).lock().await;
        let mut names: Vec<String> = known.iter().map(|quota| quota.name().to_owned()).collect();
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let mut failed = Vec::new();
            let mut quotas = Vec::new();
            for name in &names {
                quotas.extend(self.objects.get(&resource, namespace, name, true).await?);
            }
            let demand = Demand { request, counted, object, now: self.clock.now() };
            let charged = demand.charge(&quotas)?;
            if request.dry_run {
                return Ok(());
            }
            for (mut quota, used) in charged {
                let used = used.into_iter().map(|(name, quantity)| (name, quantity.to_string().into()));
                quota.set(&["status", "used"], Value::Object(used.collect()));
                let name = quota.name().to_owned();
                match self.objects.update(&resource, "status", quota).await {
                    Ok(_) => {}
                    Err(status) => {
                        failed.push(name);
                        last = Some(status);
                    }
                }
            }
            if failed.is_empty() {
                return Ok(());
            }
            names = failed;
        }
        Err(last.unwrap_or_else(|| Status::internal("the quotas could not be charged")))
    }
}

#[async_trait]
impl Admit for Quotas {
    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let attributes = request.attributes;
        let Some(object) = object.filter(|_| !attributes.namespace.is_empty()) else { return Ok(()) };
        let namespace = attributes.group.is_empty() && attributes.resource == "namespaces";
        if namespace || attributes.resource == "events" || !request_is_stored(&attributes.group) {
            return Ok(());
        }
        let counted = Counted::of(&attributes.group, &attributes.resource);
        if !counted.handles(request, object) {
            return Ok(());
        }
        self.charge(request, &counted, object).await
    }
}

/// Reviews are not.
fn request_is_stored(group: &str) -> bool {
    !matches!(group, "authentication.k8s.io" | "authorization.k8s.io")
}

/// A write, as quotas see it.
struct Demand<'a> {
    request: &'a Admission<'a>,
    counted: &'a Counted,
    object: &'a Value,
    now: coffer_types::time::Timestamp,
}

impl Demand<'_> {
    /// The quotas whose use changes, with what is used then.
    fn charge(&self, quotas: &[Value]) -> Result<Vec<(Value, Amounts)>, Status> {
        let refuse = |why: String| Err(forbid(self.request, Some(self.object), why));
        let mut matching = Vec::new();
        for quota in quotas {
            if !self.counted.matches(quota, self.object) {
                continue;
            }
            let (hard, used) = (amounts(quota, &["status", "hard"]), amounts(quota, &["status", "used"]));
            let restricted = self.counted.matching(hard.keys());
            if let Err(why) = self.counted.constraints(&restricted, self.object) {
                return refuse(format!("failed quota: {}: {why}", quota.name()));
            }
            if restricted.iter().any(|name| hard.contains_key(name) && !used.contains_key(name)) {
                let names = restricted.join(",");
                return refuse(format!("status unknown for quota: {}, resources: {names}", quota.name()));
            }
            matching.push((quota, hard, used));
        }
        if matching.is_empty() {
            return Ok(Vec::new());
        }
        let usage = self.counted.usage(self.object, self.now);
        let negative: Vec<&str> =
            usage.iter().filter(|(_, one)| one.is_negative()).map(|(name, _)| name.as_str()).collect();
        if !negative.is_empty() {
            return refuse(format!("quota usage is negative for resource(s): {}", negative.join(",")));
        }
        let before = match (self.request.operation, self.request.old) {
            (Operation::Update, Some(old)) => Some((old, self.counted.usage(old, self.now))),
            _ => None,
        };
        let mut charged = Vec::new();
        for (quota, hard, used) in matching {
            let mut delta = usage.clone();
            if let Some((old, before)) = &before
                && self.counted.matches(quota, old)
            {
                for (name, quantity) in &mut delta {
                    if let Some(before) = before.get(name) {
                        *quantity = quantity.minus(*before);
                    }
                }
            }
            delta.retain(|name, quantity| {
                hard.contains_key(name) && !quantity.is_zero() && !quantity.is_negative()
            });
            if delta.is_empty() {
                continue;
            }
            let mut now = used.clone();
            add(&mut now, &delta);
            if self.request.attributes.subresource != "status" {
                let exceeded: Vec<&String> = delta.keys().filter(|name| now[*name] > hard[*name]).collect();
                if !exceeded.is_empty() {
                    let shown = |amounts: &Amounts| {
                        let shown = exceeded.iter().filter_map(|name| {
                            amounts.get(*name).map(|quantity| format!("{name}={quantity}"))
                        });
                        shown.collect::<Vec<_>>().join(",")
                    };
                    return refuse(format!(
                        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                        quota.name(),
                        shown(&delta),
                        shown(&used),
                        shown(&hard)
                    ));
                }
            }
            charged.push((quota.clone(), now));
        }
        Ok(charged)
    }
}
