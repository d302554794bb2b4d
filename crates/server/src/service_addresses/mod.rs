//! Addresses of Services: each is held by an IPAddress object, so that two servers on one store
//! never give out the same. Absent: two families at once, and ports for health checks.

pub(crate) mod range;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use async_trait::async_trait;
use coffer_store::registry::{DeleteCheck, ListRequest, Preconditions, ReadAt};
use coffer_types::meta::Meta as _;
use coffer_types::validation::field::{FieldError, Path, Shown, to_status};
use coffer_types::{Status, Value, random};

pub use self::range::Range;
use crate::handlers::write::Scope;
use crate::ports::{GroupResource, Interest};
use crate::state::Server;

/// How often an address is tried before the range counts as full.
const ATTEMPTS: usize = 64;
/// Ports of nodes, upstream's default range.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Addresses that one write has claimed, until it is known how it ended.
#[derive(Debug, Default)]
pub(crate) struct Claims(Vec<String>);

pub(crate) fn is_service(scope: &Scope<'_>) -> bool {
    let info = &scope.resource.info;
    info.group.is_empty() && info.plural == "services" && scope.subresource.is_empty()
}

/// Gives a Service that is created or changed what it has not chosen: before it is checked.
pub(crate) async fn settle(
    scope: &Scope<'_>,
    new: &mut Value,
    old: Option<&Value>,
) -> Result<Claims, Status> {
    let mut claims = Claims::default();
    if !is_service(scope) {
        return Ok(claims);
    }
    if let Some(old) = old {
        keep_given(new, old);
    }
    normalize(new, old);
    let kind = new.str_at(&["spec", "type"]).to_owned();
    if kind != "ExternalName" && !new.str_at(&["spec", "clusterIP"]).eq("None") {
        let before = old.map(|old| old.str_at(&["spec", "clusterIP"]).to_owned()).unwrap_or_default();
        let wanted = new.str_at(&["spec", "clusterIP"]).to_owned();
        if wanted.is_empty() || (wanted != before && wanted.parse::<Ipv4Addr>().is_ok()) {
            let address = claim(scope, new, &wanted, &mut claims).await?;
            new.set(&["spec", "clusterIP"], address.as_str());
            new.set(&["spec", "clusterIPs"], vec![Value::from(address.as_str())]);
        }
    }
    if kind != "ExternalName" {
        set_families(new);
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        && new.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool) != Some(false)
    {
        let outcome = give_ports(scope, new).await;
        if let Err(status) = outcome {
            claims.release(scope.server).await;
            return Err(status);
        }
    }
    Ok(claims)
}

impl Claims {
    /// The write failed: nobody has the addresses.
    pub(crate) async fn release(self, server: &Server) {
        for address in self.0 {
            release_address(server, &address).await;
        }
    }
}

/// Whether an update leaves an address behind.
pub(crate) fn lets_go(scope: &Scope<'_>, old: &Value, new: &Value) -> bool {
    let path = ["spec", "clusterIPs"];
    is_service(scope) && old.at(&path) != new.at(&path)
}

/// Lets a deletion go ahead.
struct Anything;

#[async_trait]
impl DeleteCheck for Anything {
    async fn check(&mut self, _object: &Value) -> Result<(), Status> {
        Ok(())
    }
}

/// The addresses of a Service that is gone or has let go of them.
pub(crate) async fn release(server: &Server, old: &Value, new: Option<&Value>) {
    let of = |service: &Value| -> Vec<String> {
        let all = service.at(&["spec", "clusterIPs"]).and_then(Value::as_array).unwrap_or_default();
        all.iter().filter_map(Value::as_str).filter(|text| *text != "None").map(str::to_owned).collect()
    };
    let kept = new.map(of).unwrap_or_default();
    for address in of(old).into_iter().filter(|address| !kept.contains(address)) {
        release_address(server, &address).await;
    }
}

fn addresses() -> GroupResource {
    GroupResource::new("networking.k8s.io", "ipaddresses")
}

async fn release_address(server: &Server, address: &str) {
    let Some(resource) = server.resources.preferred(&addresses()) else { return };
    let Ok(registry) = resource.registry() else { return };
    match registry.delete("", address, &Preconditions::default(), &mut Anything).await {
        Ok(_) => {}
        Err(status) if status.code == 404 => {}
        Err(error) => tracing::warn!(address, %error, "the address of a service cannot be released"),
    }
}

/// A client that sends an older form back keeps what was given out.
fn keep_given(new: &mut Value, old: &Value) {
    let kind = |service: &Value| service.str_at(&["spec", "type"]).to_owned();
    if kind(new) != "ExternalName" && kind(old) != "ExternalName" {
        if new.str_at(&["spec", "clusterIP"]).is_empty() {
            new.set_str(&["spec", "clusterIP"], old.str_at(&["spec", "clusterIP"]));
        }
        let same = new.str_at(&["spec", "clusterIP"]) == old.str_at(&["spec", "clusterIP"]);
        if same
            && new.at(&["spec", "clusterIPs"]).is_none()
            && let Some(all) = old.at(&["spec", "clusterIPs"])
        {
            new.set(&["spec", "clusterIPs"], all.clone());
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if let (None, Some(before)) = (new.at(&["spec", field]), old.at(&["spec", field])) {
                new.set(&["spec", field], before.clone());
            }
        }
    }
    let has_ports = |kind: String| matches!(kind.as_str(), "NodePort" | "LoadBalancer");
    if !has_ports(kind(new)) || !has_ports(kind(old)) {
        return;
    }
    let before = old.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
    let ports = new.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() != 0 {
            continue;
        }
        let same =
            |one: &&Value| one.get("port") == port.get("port") && one.get("protocol") == port.get("protocol");
        if let Some(given) = before.iter().find(same).and_then(|one| one.get("nodePort")).cloned() {
            port.set(&["nodePort"], given);
        }
    }
}

/// `clusterIP` and `clusterIPs` say the same.
fn normalize(new: &mut Value, old: Option<&Value>) {
    let single = new.str_at(&["spec", "clusterIP"]).to_owned();
    let before = old.map(|old| old.str_at(&["spec", "clusterIP"]).to_owned());
    let listed = new.at(&["spec", "clusterIPs"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    if !single.is_empty() && listed.is_empty() {
        new.set(&["spec", "clusterIPs"], vec![Value::from(single)]);
    } else if before.is_some_and(|before| before != single)
        && old.and_then(|old| old.at(&["spec", "clusterIPs"])) == new.at(&["spec", "clusterIPs"])
    {
        // Only the single one was changed.
        if single.is_empty() {
            new.remove(&["spec", "clusterIPs"]);
        } else {
            new.set(&["spec", "clusterIPs"], vec![Value::from(single)]);
        }
    }
}

/// One family, unless the Service says otherwise; without a selector and an address, none is chosen for it.
fn set_families(service: &mut Value) {
    if service.at(&["spec", "ipFamilies"]).is_none() {
        service.set(&["spec", "ipFamilies"], vec![Value::from("IPv4")]);
    }
    if service.at(&["spec", "ipFamilyPolicy"]).is_none() {
        service.set(&["spec", "ipFamilyPolicy"], "SingleStack");
    }
}

/// Claims one address by creating the object that holds it.
async fn claim(
    scope: &Scope<'_>,
    service: &Value,
    wanted: &str,
    claims: &mut Claims,
) -> Result<String, Status> {
    let range = scope.server.service_range;
    let refuse = |why: String| {
        let path = Path::of(&["spec", "clusterIPs"]);
        let shown = Shown::verbatim(format!("[{}]", crate::quote(wanted)));
        to_status("", "Service", service.name(), &[FieldError::invalid(&path, shown, why)])
    };
    if let Ok(address) = wanted.parse::<Ipv4Addr>()
        && !range.contains(address)
    {
        let why = format!(
            "failed to allocate IP {wanted}: the provided IP ({wanted}) is not in the valid range. The range of valid \
             IPs is {range}"
        );
        return Err(refuse(why));
    }
    for _ in 0..ATTEMPTS {
        let address = if wanted.is_empty() {
            let mut bytes = [0_u8; 4];
            scope.server.random.fill(&mut bytes).map_err(Status::internal)?;
            range.any(u32::from_le_bytes(bytes)).to_string()
        } else {
            wanted.to_owned()
        };
        if scope.options.dry_run {
            return Ok(address);
        }
        match hold(scope, service, &address).await {
            Ok(new) => {
                if new {
                    claims.0.push(address.clone());
                }
                return Ok(address);
            }
            Err(status) if status.reason != "AlreadyExists" => return Err(status),
            Err(_) if !wanted.is_empty() => {
                return Err(refuse(format!(
                    "failed to allocate IP {wanted}: provided IP is already allocated"
                )));
            }
            Err(_) => {}
        }
    }
    Err(Status::internal("failed to allocate a serviceIP: range is full"))
}

/// Creates the object that holds an address; false where the Service has it already.
async fn hold(scope: &Scope<'_>, service: &Value, address: &str) -> Result<bool, Status> {
    let resource = scope
        .server
        .resources
        .preferred(&addresses())
        .ok_or_else(|| Status::internal("no resource of addresses"))?;
    let mut object = Value::object();
    object.set_type("networking.k8s.io/v1", "IPAddress");
    object.set_meta_str("name", address);
    object.set_meta_str("uid", &random::uuid(&*scope.server.random).map_err(Status::internal)?);
    let now = coffer_types::time::rfc3339(scope.server.clock.now());
    object.set(&["metadata", "creationTimestamp"], now.as_str());
    object.set(&["metadata", "labels", "ipaddress.kubernetes.io/ip-family"], "IPv4");
    object.set(&["metadata", "labels", "ipaddress.kubernetes.io/managed-by"], "ipallocator.k8s.io");
    for (field, value) in [
        ("group", ""),
        ("resource", "services"),
        ("namespace", scope.namespace.as_str()),
        ("name", service.name()),
    ] {
        object.set_str(&["spec", "parentRef", field], value);
    }
    let registry = resource.registry()?;
    match registry.create("", address, &object, 0).await {
        Err(status) if status.reason == "AlreadyExists" => {
            // What a server that stopped half-way has claimed for this very Service is its own.
            let Ok(stored) = registry.get("", address, ReadAt::Latest).await else { return Err(status) };
            let held = registry.decode(&stored)?;
            let parent = |field: &str| held.str_at(&["spec", "parentRef", field]).to_owned();
            let own = parent("namespace") == scope.namespace && parent("name") == service.name();
            if own { Ok(false) } else { Err(status) }
        }
        outcome => outcome.map(|_| true),
    }
}

/// Gives ports of nodes to those that have none.
async fn give_ports(scope: &Scope<'_>, service: &mut Value) -> Result<(), Status> {
    let of = |service: &Value| -> Vec<i64> {
        let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
        ports.iter().filter_map(|port| port.get("nodePort")?.as_i64()).filter(|port| *port != 0).collect()
    };
    let all = ListRequest {
        namespace: String::new(),
        name: None,
        at: ReadAt::Latest,
        limit: 0,
        continue_token: String::new(),
        predicate: std::sync::Arc::new(Interest::Whole),
    };
    let registry = scope.resource.registry()?;
    let mut used: BTreeSet<i64> = BTreeSet::new();
    for stored in &registry.list(all).await?.items {
        let other = registry.decode(stored)?;
        let is_self = other.name() == service.name() && other.namespace() == scope.namespace;
        if !is_self {
            used.extend(of(&other));
        }
    }
    let path = Path::of(&["spec", "ports"]);
    for (index, port) in of(service).into_iter().enumerate() {
        let fault = match () {
            () if used.contains(&port) => "provided port is already allocated",
            () if !NODE_PORTS.contains(&port) => {
                "provided port is not in the valid range. The range of valid ports is 30000-32767"
            }
            () => continue,
        };
        let path = path.index(index).child("nodePort");
        return Err(to_status("", "Service", service.name(), &[FieldError::invalid(&path, port, fault)]));
    }
    used.extend(of(service));
    let ports = service.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() != 0 {
            continue;
        }
        let mut bytes = [0_u8; 4];
        scope.server.random.fill(&mut bytes).map_err(Status::internal)?;
        let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
        let start = i64::from(u32::from_le_bytes(bytes)) % count;
        let free = (0..count)
            .map(|offset| NODE_PORTS.start() + (start + offset) % count)
            .find(|candidate| !used.contains(candidate))
            .ok_or_else(|| Status::internal("failed to allocate a nodePort: range is full"))?;
        used.insert(free);
        port.set(&["nodePort"], free);
    }
    Ok(())
}
