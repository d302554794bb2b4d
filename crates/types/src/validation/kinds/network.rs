//! Services, their endpoints, and what lets traffic through.

use core::net::IpAddr;
use std::collections::BTreeSet;

use super::check::{is_set, list, number, required, selector, unchanged, unchanged_null};
use super::service::{self, BAD_ADDRESS};
use super::{Generation, KindRules, PLAIN, SPEC, Status};
use crate::Value;
use crate::names;
use crate::validation::field::{FieldError, FieldErrors, Path};
use crate::validation::meta::invalid_each;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const LOOPBACK: &str = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
const NETWORKING: KindRules = KindRules { group: "networking.k8s.io", ..PLAIN };

pub(super) const KINDS: &[KindRules] = &[
    KindRules {
        kind: "Service",
        name: names::dns_label,
        status: Status::Own,
        prepare_update: service::prepare_update,
        validate: service::validate,
        validate_update: service::validate_update,
        validate_status: service::validate_status,
        ..PLAIN
    },
    KindRules {
        kind: "Endpoints",
        validate: endpoints,
        validate_update: |new, _, errors| endpoints(new, errors),
        ..PLAIN
    },
    KindRules {
        group: "discovery.k8s.io",
        kind: "EndpointSlice",
        generation: Generation::Of(&[&["endpoints"], &["ports"], &["addressType"], &["metadata", "labels"]]),
        validate: slice,
        validate_update: |new, old, errors| {
            slice(new, errors);
            unchanged_null(new, old, &["addressType"], errors);
        },
        ..PLAIN
    },
    KindRules {
        kind: "Ingress",
        status: Status::Own,
        generation: SPEC,
        validate: ingress,
        validate_update: |new, _, errors| ingress(new, errors),
        ..NETWORKING
    },
    KindRules {
        kind: "IngressClass",
        namespaced: false,
        generation: SPEC,
        validate: |object, errors| {
            let controller = object.str_at(&["spec", "controller"]);
            if !controller.contains('/') {
                let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
                errors.push(FieldError::invalid(&Path::of(&["spec", "controller"]), controller, detail));
            }
        },
        validate_update: |new, old, errors| unchanged(new, old, &["spec", "controller"], errors),
        ..NETWORKING
    },
    KindRules {
        kind: "NetworkPolicy",
        generation: SPEC,
        validate: network_policy,
        validate_update: |new, _, errors| network_policy(new, errors),
        ..NETWORKING
    },
    KindRules {
        kind: "IPAddress",
        namespaced: false,
        name: address_name,
        validate: |object, errors| {
            if !is_set(object, &["spec", "parentRef"]) {
                return errors.push(FieldError::required(&Path::of(&["spec", "parentRef"]), ""));
            }
            required(object, &["spec", "parentRef", "resource"], errors);
            required(object, &["spec", "parentRef", "name"], errors);
        },
        validate_update: |new, old, errors| unchanged_null(new, old, &["spec", "parentRef"], errors),
        ..NETWORKING
    },
    KindRules {
        kind: "ServiceCIDR",
        namespaced: false,
        status: Status::Apart,
        validate: |object, errors| {
            let ranges = list(object, &["spec", "cidrs"]);
            if ranges.is_empty() {
                let detail = "at least one CIDR required";
                errors.push(FieldError::required(&Path::of(&["spec", "cidrs"]), detail));
            }
            for (index, range) in ranges.iter().enumerate() {
                let text = range.as_str().unwrap_or_default();
                if !is_range(text) {
                    let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
                    let path = Path::of(&["spec", "cidrs"]).index(index);
                    errors.push(FieldError::invalid(&path, text, detail));
                }
            }
        },
        validate_update: |new, old, errors| {
            let (now, before) = (list(new, &["spec", "cidrs"]), list(old, &["spec", "cidrs"]));
            for (index, range) in now.iter().enumerate() {
                if before.get(index).is_some_and(|before| before != range) {
                    let path = Path::of(&["spec", "cidrs"]).index(index);
                    errors.push(FieldError::invalid(&path, range, "field is immutable"));
                }
            }
            if now.len() < before.len() {
                unchanged(new, old, &["spec", "cidrs"], errors);
            }
        },
        ..NETWORKING
    },
];

/// The name of an IPAddress is the address in its canonical form.
fn address_name(name: &str, _prefix: bool) -> Vec<String> {
    match name.parse::<IpAddr>() {
        Ok(address) if address.to_string() == name => Vec::new(),
        Ok(_) => vec!["must be in canonical form".to_owned()],
        Err(_) if name.split('.').any(|part| part.len() > 1 && part.starts_with('0')) => {
            vec!["must not have leading 0s".to_owned()]
        }
        Err(_) => vec![BAD_ADDRESS.to_owned()],
    }
}

fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    match (address.parse::<IpAddr>(), bits.parse::<u8>()) {
        (Ok(IpAddr::V4(_)), Ok(bits)) => bits <= 32,
        (Ok(IpAddr::V6(_)), Ok(bits)) => bits <= 128,
        _ => false,
    }
}

fn endpoints(object: &Value, errors: &mut FieldErrors) {
    for (index, subset) in list(object, &["subsets"]).iter().enumerate() {
        let path = Path::new("subsets").index(index);
        let (ready, waiting) = (list(subset, &["addresses"]), list(subset, &["notReadyAddresses"]));
        if ready.is_empty() && waiting.is_empty() {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(&path, detail));
        }
        for (field, addresses) in [("addresses", ready), ("notReadyAddresses", waiting)] {
            for (index, address) in addresses.iter().enumerate() {
                let path = path.child(field).index(index).child("ip");
                endpoint_address(address.str_at(&["ip"]), &path, errors);
            }
        }
        let ports = list(subset, &["ports"]);
        for (index, port) in ports.iter().enumerate() {
            endpoint_port(port, ports.len() > 1, &path.child("ports").index(index), errors);
        }
    }
}

fn endpoint_address(text: &str, path: &Path, errors: &mut FieldErrors) {
    match text.parse::<IpAddr>() {
        Err(_) => {
            errors.push(FieldError::invalid(path, text, BAD_ADDRESS));
            errors.push(FieldError::invalid(path, text, "must be a valid IP address"));
        }
        Ok(address) => special_address(address, text, path, errors),
    }
}

fn special_address(address: IpAddr, text: &str, path: &Path, errors: &mut FieldErrors) {
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path, text, detail));
    if address.is_unspecified() {
        refuse(format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        refuse(LOOPBACK.to_owned());
    }
    let local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    if local {
        refuse("may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned());
    }
}

fn endpoint_port(port: &Value, named: bool, path: &Path, errors: &mut FieldErrors) {
    let name = port.str_at(&["name"]);
    if !name.is_empty() {
        errors.extend(invalid_each(names::is_dns1123_label(name), &path.child("name"), name));
    } else if named {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let count = number(port, &["port"]).unwrap_or_default();
    for fault in names::is_port_number(count) {
        errors.push(FieldError::invalid(&path.child("port"), count, fault));
    }
    let protocol = port.str_at(&["protocol"]);
    if !PROTOCOLS.contains(&protocol) {
        errors.push(FieldError::not_supported(&path.child("protocol"), protocol, &PROTOCOLS));
    }
}

fn slice(object: &Value, errors: &mut FieldErrors) {
    let kind = object.str_at(&["addressType"]);
    let kinds = ["FQDN", "IPv4", "IPv6"];
    if kind.is_empty() {
        return errors.push(FieldError::required(&Path::new("addressType"), ""));
    }
    if !kinds.contains(&kind) {
        return errors.push(FieldError::not_supported(&Path::new("addressType"), kind, &kinds));
    }
    for (index, endpoint) in list(object, &["endpoints"]).iter().enumerate() {
        let path = Path::new("endpoints").index(index).child("addresses");
        let addresses = list(endpoint, &["addresses"]);
        if addresses.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        for (index, address) in addresses.iter().enumerate() {
            let text = address.as_str().unwrap_or_default();
            slice_address(kind, text, &path, index, errors);
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in list(object, &["ports"]).iter().enumerate() {
        let path = Path::new("ports").index(index);
        let name = port.str_at(&["name"]);
        if !name.is_empty() {
            errors.extend(invalid_each(names::is_dns1123_label(name), &path.child("name"), name));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if let Some(protocol) = port.get("protocol").and_then(Value::as_str)
            && !PROTOCOLS.contains(&protocol)
        {
            errors.push(FieldError::not_supported(&path.child("protocol"), protocol, &PROTOCOLS));
        }
    }
}

fn slice_address(kind: &str, text: &str, path: &Path, index: usize, errors: &mut FieldErrors) {
    if kind == "FQDN" {
        errors.extend(invalid_each(names::is_dns1123_subdomain(text), &path.index(index), text));
        return;
    }
    let address = text.parse::<IpAddr>();
    let fits = address.as_ref().is_ok_and(|address| address.is_ipv4() == (kind == "IPv4"));
    if !fits {
        let detail = format!("must be an {kind} address");
        errors.push(FieldError::invalid(path, text, detail));
    }
    if let Ok(address) = address {
        special_address(address, text, &path.index(index), errors);
    }
}

fn ingress(object: &Value, errors: &mut FieldErrors) {
    if list(object, &["spec", "rules"]).is_empty() && !is_set(object, &["spec", "defaultBackend"]) {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&Path::new("spec"), &Value::Null, detail));
    }
}

fn network_policy(object: &Value, errors: &mut FieldErrors) {
    selector(object, &["spec", "podSelector"], errors);
    let types = list(object, &["spec", "policyTypes"]);
    let allowed = ["Ingress", "Egress"];
    if types.len() > allowed.len() {
        let shown = object.at(&["spec", "policyTypes"]).unwrap_or(&Value::Null);
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(&Path::of(&["spec", "policyTypes"]), shown, detail));
        return;
    }
    for (index, one) in types.iter().enumerate() {
        let one = one.as_str().unwrap_or_default();
        if !allowed.contains(&one) {
            let path = Path::of(&["spec", "policyTypes"]).index(index);
            errors.push(FieldError::not_supported(&path, one, &allowed));
        }
    }
}
