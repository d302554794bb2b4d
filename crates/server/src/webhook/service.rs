//! From a service to the address of one of its endpoints: there is no service network here.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::Value;
use coffer_types::meta::Meta as _;

use crate::ports::{GroupResource, Objects};
use crate::quote;

/// Finds where a port of a service is served.
#[async_trait]
pub(crate) trait Resolve: Send + Sync + 'static {
    /// Host and port, or why there is none.
    async fn endpoint(&self, namespace: &str, name: &str, port: u16) -> Result<(String, u16), String>;
}

/// Services and their endpoints as they are stored.
pub(crate) struct Services(pub(crate) Arc<dyn Objects>);

#[async_trait]
impl Resolve for Services {
    async fn endpoint(&self, namespace: &str, name: &str, port: u16) -> Result<(String, u16), String> {
        let found = self.0.get(&GroupResource::new("", "services"), namespace, name, false).await;
        let service = found
            .map_err(|status| status.message)?
            .ok_or_else(|| format!("service {} not found", quote(name)))?;
        let port_name = port_name(&service, port)?;
        let slices = GroupResource::new("discovery.k8s.io", "endpointslices");
        // Slices count where they are served at all, and somebody makes them.
        if let Ok(slices) = self.0.list(&slices, namespace).await {
            let own = slices
                .iter()
                .filter(|slice| slice.str_at(&["metadata", "labels", "kubernetes.io/service-name"]) == name);
            if let Some(found) = own.filter_map(|slice| in_slice(slice, &port_name)).next() {
                return Ok(found);
            }
        }
        let endpoints = self.0.get(&GroupResource::new("", "endpoints"), namespace, name, false).await;
        let endpoints = endpoints.map_err(|status| status.message)?;
        endpoints
            .as_ref()
            .and_then(|endpoints| in_endpoints(endpoints, &port_name))
            .ok_or_else(|| format!("no endpoints available for service {}", quote(name)))
    }
}

/// The name of a service's port, "" when it has none.
fn port_name(service: &Value, port: u16) -> Result<String, String> {
    let kind = service.str_at(&["spec", "type"]);
    if !matches!(kind, "" | "ClusterIP" | "LoadBalancer" | "NodePort") {
        return Err(format!("unsupported service type {}", quote(kind)));
    }
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
    let found = ports.iter().find(|one| one.get("port").and_then(Value::as_i64) == Some(i64::from(port)));
    found
        .map(|one| one.str_at(&["name"]).to_owned())
        .ok_or_else(|| format!("no service port {port} found for service {}", quote(service.name())))
}

fn number(port: &Value) -> Option<u16> {
    port.get("port").and_then(Value::as_i64).and_then(|port| u16::try_from(port).ok())
}

fn named<'v>(ports: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    ports.and_then(Value::as_array)?.iter().find(|port| port.str_at(&["name"]) == name)
}

fn in_slice(slice: &Value, port_name: &str) -> Option<(String, u16)> {
    let port = named(slice.get("ports"), port_name).and_then(number)?;
    let endpoints = slice.get("endpoints").and_then(Value::as_array)?;
    let ready =
        |endpoint: &&Value| endpoint.at(&["conditions", "ready"]).and_then(Value::as_bool).unwrap_or(true);
    let address = |endpoint: &Value| {
        endpoint.get("addresses").and_then(Value::as_array)?.first()?.as_str().map(str::to_owned)
    };
    endpoints.iter().filter(ready).find_map(address).map(|address| (address, port))
}

fn in_endpoints(endpoints: &Value, port_name: &str) -> Option<(String, u16)> {
    let subsets = endpoints.get("subsets").and_then(Value::as_array)?;
    subsets.iter().find_map(|subset| {
        let port = named(subset.get("ports"), port_name).and_then(number)?;
        let addresses = subset.get("addresses").and_then(Value::as_array)?;
        let address = addresses.iter().map(|address| address.str_at(&["ip"])).find(|ip| !ip.is_empty())?;
        Some((address.to_owned(), port))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(text: &str) -> Value {
        coffer_types::codec::yaml::decode_untyped(text.as_bytes()).expect("YAML").object
    }

    #[test]
    fn a_port_is_named() {
        let service = |kind: &str| {
            yaml(&format!(
                "{{metadata: {{name: s}}, spec: {{type: {kind}, ports: [{{port: 443}}, {{port: 80, name: web}}]}}}}"
            ))
        };
        for (kind, port, expected) in [
            ("ClusterIP", 443, Ok("")),
            ("NodePort", 80, Ok("web")),
            ("ClusterIP", 81, Err("no service port 81 found for service \"s\"")),
            ("ExternalName", 443, Err("unsupported service type \"ExternalName\"")),
        ] {
            let found = port_name(&service(kind), port);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{kind} {port}");
        }
    }

    #[test]
    fn the_first_ready_address_is_taken() {
        let slice = yaml(
            "{ports: [{name: web, port: 8080}], endpoints: [{addresses: [10.0.0.1], conditions: {ready: false}}, \
             {addresses: [10.0.0.2, 10.0.0.3]}]}",
        );
        assert_eq!(in_slice(&slice, "web"), Some(("10.0.0.2".to_owned(), 8080)));
        assert_eq!(in_slice(&slice, ""), None);
        let endpoints = yaml(
            "{subsets: [{notReadyAddresses: [{ip: 10.0.0.1}], ports: [{port: 1}]}, \
             {addresses: [{ip: 10.0.0.2}], ports: [{port: 9443}]}]}",
        );
        assert_eq!(in_endpoints(&endpoints, ""), Some(("10.0.0.2".to_owned(), 9443)));
        assert_eq!(in_endpoints(&endpoints, "web"), None);
    }
}
