//! Services. Addresses are given out by the server; here is what is right by itself.

use core::net::IpAddr;
use std::collections::BTreeSet;

use super::check::{is_set, list, number, one_of};
use super::same;
use crate::names;
use crate::validation::field::{FieldError, FieldErrors, Path, go_json};
use crate::validation::meta::invalid_each;
use crate::{Map, Value};

pub(super) const BAD_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Whether a Service has no address of its own: the client chooses one of its endpoints.
fn is_headless(service: &Value) -> bool {
    service.str_at(&["spec", "clusterIP"]) == "None"
}

pub(super) fn validate(service: &Value, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    let kind = service.str_at(&["spec", "type"]);
    let ports = list(service, &["spec", "ports"]);
    let addresses = list(service, &["spec", "clusterIPs"]);
    let headless = addresses.len() == 1 && addresses[0].as_str() == Some("None");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&spec.child("ports"), ""));
    }
    if is_headless(service) && matches!(kind, "NodePort" | "LoadBalancer") {
        let detail = format!("may not be set to 'None' for {kind} services");
        if addresses.is_empty() {
            errors.push(FieldError::required(&spec.child("clusterIPs"), ""));
        } else {
            errors.push(FieldError::invalid(&spec.child("clusterIPs").index(0), "None", detail));
        }
    } else if !service.str_at(&["spec", "clusterIP"]).is_empty() && addresses.is_empty() {
        errors.push(FieldError::required(&spec.child("clusterIPs"), ""));
    }
    if kind == "ExternalName" {
        for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if !same(service.at(&["spec", field]), None) {
                let detail = "may not be set for ExternalName services";
                errors.push(FieldError::forbidden(&spec.child(field), detail));
            }
        }
        let name = service.str_at(&["spec", "externalName"]);
        if name.is_empty() {
            errors.push(FieldError::required(&spec.child("externalName"), ""));
        } else {
            let host = name.strip_suffix('.').unwrap_or(name);
            errors.extend(invalid_each(names::is_dns1123_subdomain(host), &spec.child("externalName"), name));
        }
    }
    validate_ports(ports, kind, errors);
    if let Some(labels) = service.at(&["spec", "selector"]).and_then(Value::as_object) {
        errors.extend(crate::validation::meta::labels(labels, &spec.child("selector")));
    }
    one_of(service, &["spec", "sessionAffinity"], &["ClientIP", "None"], errors);
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    one_of(service, &["spec", "type"], &kinds, errors);
    for field in ["clusterIPs", "externalIPs"] {
        for (index, address) in list(service, &["spec", field]).iter().enumerate() {
            let text = address.as_str().unwrap_or_default();
            if text.parse::<IpAddr>().is_err() && !(field == "clusterIPs" && text == "None") {
                errors.push(FieldError::invalid(&spec.child(field).index(index), text, BAD_ADDRESS));
            }
        }
    }
    if kind != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if is_set(service, &["spec", field]) {
                let detail = "may only be used when `type` is 'LoadBalancer'";
                errors.push(FieldError::forbidden(&spec.child(field), detail));
            }
        }
    }
}

fn validate_ports(ports: &[Value], kind: &str, errors: &mut FieldErrors) {
    let base = Path::of(&["spec", "ports"]);
    let (mut names_seen, mut seen, mut node_ports) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let path = base.index(index);
        let name = port.str_at(&["name"]);
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(&path.child("name"), ""));
            }
        } else {
            errors.extend(invalid_each(names::is_dns1123_label(name), &path.child("name"), name));
            if !names_seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
        let count = number(port, &["port"]).unwrap_or_default();
        for fault in names::is_port_number(count) {
            errors.push(FieldError::invalid(&path.child("port"), count, fault));
        }
        let protocol = port.str_at(&["protocol"]);
        if protocol.is_empty() {
            errors.push(FieldError::required(&path.child("protocol"), ""));
        } else if !PROTOCOLS.contains(&protocol) {
            errors.push(FieldError::not_supported(&path.child("protocol"), protocol, &PROTOCOLS));
        }
        validate_target(port, &path.child("targetPort"), errors);
        if kind == "ClusterIP" || kind == "ExternalName" {
            if number(port, &["nodePort"]).unwrap_or_default() != 0 {
                let detail = format!("may not be used when `type` is '{kind}'");
                errors.push(FieldError::forbidden(&path.child("nodePort"), detail));
            }
        } else if let Some(node_port) = number(port, &["nodePort"]).filter(|port| *port != 0)
            && !node_ports.insert((protocol, node_port))
        {
            errors.push(FieldError::duplicate(
                &path.child("nodePort"),
                crate::validation::field::Shown::from(node_port),
            ));
        }
        if !seen.insert((protocol, count)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{count},\"TargetPort\":0,\"NodePort\":0}}",
                go_json(&Value::from(protocol))
            );
            errors.push(FieldError::duplicate(&path, crate::validation::field::Shown::verbatim(shown)));
        }
    }
}

fn validate_target(port: &Value, path: &Path, errors: &mut FieldErrors) {
    match port.get("targetPort") {
        Some(Value::Int(number)) => {
            for fault in names::is_port_number(*number) {
                errors.push(FieldError::invalid(path, *number, fault));
            }
        }
        Some(Value::String(name)) => errors.extend(invalid_each(names::is_port_name(name), path, name)),
        _ => {}
    }
}

/// What an update may not change: an address that was given out.
pub(super) fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(new, errors);
    let has_address = |service: &Value| service.str_at(&["spec", "type"]) != "ExternalName";
    if !has_address(new) || !has_address(old) {
        return;
    }
    let path = Path::of(&["spec", "clusterIPs"]).index(0);
    let (now, before) = (list(new, &["spec", "clusterIPs"]), list(old, &["spec", "clusterIPs"]));
    if let Some(first) = before.first().filter(|first| first.as_str().is_some_and(|text| !text.is_empty()))
        && now.first() != Some(first)
    {
        let shown = Value::Array(now.to_vec());
        errors.push(FieldError::invalid(&path, &shown, "may not change once set"));
    }
}

pub(super) fn validate_status(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let path = Path::of(&["status", "loadBalancer", "ingress"]);
    let ingress = list(new, &["status", "loadBalancer", "ingress"]);
    let changed = ingress != list(old, &["status", "loadBalancer", "ingress"]);
    if changed && !ingress.is_empty() && new.str_at(&["spec", "type"]) != "LoadBalancer" {
        errors.push(FieldError::forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'"));
        return;
    }
    for (index, one) in ingress.iter().enumerate() {
        let has_address = !one.str_at(&["ip"]).is_empty();
        if has_address && !is_set(one, &["ipMode"]) {
            let detail = "must be specified when `ip` is set";
            errors.push(FieldError::required(&path.index(index).child("ipMode"), detail));
        }
    }
}

/// Lets go of what a Service of another type has no use for, unless it was asked for anew.
pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    let kind = |service: &Value| service.str_at(&["spec", "type"]).to_owned();
    let (now, before) = (kind(new), kind(old));
    let drop_same = |new: &mut Value, field: &str| {
        if same(new.at(&["spec", field]), old.at(&["spec", field])) {
            new.remove(&["spec", field]);
        }
    };
    if before != "ExternalName" && now == "ExternalName" {
        if same(new.at(&["spec", "clusterIP"]), old.at(&["spec", "clusterIP"]))
            && same(new.at(&["spec", "clusterIPs"]), old.at(&["spec", "clusterIPs"]))
        {
            new.remove(&["spec", "clusterIP"]);
            new.remove(&["spec", "clusterIPs"]);
        }
        drop_same(new, "ipFamilies");
        drop_same(new, "ipFamilyPolicy");
    }
    let has_node_ports = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    if has_node_ports(&before) && !has_node_ports(&now) {
        let of = |service: &Value| -> BTreeSet<i64> {
            let ports = list(service, &["spec", "ports"]).iter();
            ports.filter_map(|port| number(port, &["nodePort"])).filter(|port| *port != 0).collect()
        };
        if of(old).is_superset(&of(new)) {
            for port in ports_mut(new) {
                port.remove("nodePort");
            }
        }
    }
    if before == "LoadBalancer" && now != "LoadBalancer" {
        drop_same(new, "healthCheckNodePort");
        drop_same(new, "allocateLoadBalancerNodePorts");
        drop_same(new, "loadBalancerClass");
    }
    if has_node_ports(&before) && !has_node_ports(&now) {
        drop_same(new, "externalTrafficPolicy");
    }
    if now != "LoadBalancer" {
        new.remove(&["status", "loadBalancer"]);
    }
}

fn ports_mut(service: &mut Value) -> impl Iterator<Item = &mut Map> {
    let ports = service.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
    ports.into_iter().flatten().filter_map(Value::as_object_mut)
}
