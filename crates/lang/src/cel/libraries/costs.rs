//! What Kubernetes says that calls cost, by the function's name.

use crate::cel::estimate::{
    CallEstimate, CallSite, LIST_CREATE, REGEX_LENGTH, Range, STRING_TRAVERSAL, STRUCT_CREATE, multiply_by,
};
use crate::cel::functions::{CallCosts, Estimate, NamedCost};
use crate::cel::libraries::authorizer;
use crate::cel::libraries::formats::Format;
use crate::cel::libraries::quantity::Quantity;
use crate::cel::libraries::semver::Semver;
use crate::cel::libraries::url::Url;
use crate::cel::libraries::{Cidr, Ip};
use crate::cel::types::Type;
use crate::cel::value::Value;

/// Kubernetes' table.
pub const KUBERNETES: CallCosts = CallCosts { estimate, cost };

/// No more than two checks of an authorizer in an expression.
const CHECK: u64 = 350_000;
/// Longest regular expression of a named format.
const FORMAT_REGEX: f64 = 128.0;
/// Longest name of a format.
const FORMAT_NAME: u64 = 64;

fn estimate(function: &str) -> Option<Estimate> {
    Some(match function {
        "check" => |_| Some(CallEstimate::of(Range::fixed(CHECK))),
        "serviceAccount"
        | "path"
        | "group"
        | "resource"
        | "subresource"
        | "namespace"
        | "name"
        | "allowed"
        | "reason"
        | "error"
        | "errored"
        | "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "format.named"
        | "sign"
        | "asInteger"
        | "isInteger"
        | "asApproximateFloat"
        | "isGreaterThan"
        | "isLessThan"
        | "compareTo"
        | "add"
        | "sub"
        | "major"
        | "minor"
        | "patch"
        | "getScheme"
        | "getHostname"
        | "getHost"
        | "getPort"
        | "getEscapedPath"
        | "getQuery" => |_| Some(CallEstimate::of(Range::fixed(1))),
        "fieldSelector" | "labelSelector" => |site| {
            let [selector] = site.arguments else { return None };
            Some(CallEstimate::of(selector_range(site.size(selector))))
        },
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            |site| estimate_elements(site, false)
        }
        "includes" => |site| estimate_elements(site, true),
        "url" | "jsonpatch.escapeKey" => |site| {
            let [text] = site.arguments else { return None };
            let size = site.size(text);
            Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), size))
        },
        "lowerAscii" | "upperAscii" | "substring" | "trim" => |site| {
            let size = site.size(site.target?);
            Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), size))
        },
        "replace" => estimate_replace,
        "split" => estimate_split,
        "join" => estimate_join,
        "find" | "findAll" => estimate_find,
        "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            |site| estimate_argument(site, STRING_TRAVERSAL)
        }
        "ip" => |site| {
            if site.overload == "cidr_ip" {
                return Some(CallEstimate::of(Range::fixed(1)));
            }
            estimate_argument(site, STRING_TRAVERSAL)
        },
        "ip.isCanonical" => |site| estimate_argument(site, 2.0 * STRING_TRAVERSAL),
        "containsIP" => |site| estimate_contains(site, "cidr_contains_ip_string", Range::fixed(0)),
        "containsCIDR" => |site| {
            let masking = ADDRESS.times_factor(STRING_TRAVERSAL).plus(Range::fixed(1));
            estimate_contains(site, "cidr_contains_cidr_string", masking)
        },
        "validate" => |site| {
            let traversed = site.size(site.arguments.first()?).times_factor(STRING_TRAVERSAL);
            Some(CallEstimate::of(traversed.times_factor(FORMAT_REGEX * REGEX_LENGTH)))
        },
        "_==_" => estimate_equality,
        _ => return None,
    })
}

/// Bytes of an address.
const ADDRESS: Range = Range::new(4, 16);

fn selector_range(length: Range) -> Range {
    // A requirement is at least two characters, and makes an object and a list.
    let requirements = length.times_factor(0.5).times_factor((LIST_CREATE + STRUCT_CREATE) as f64);
    Range::fixed(LIST_CREATE).plus(length.times_factor(STRING_TRAVERSAL)).plus(requirements)
}

fn estimate_argument(site: &CallSite<'_>, factor: f64) -> Option<CallEstimate> {
    let size = site.size(site.arguments.first()?);
    Some(CallEstimate::of(size.times_factor(factor)))
}

fn estimate_elements(site: &CallSite<'_>, counts_anything: bool) -> Option<CallEstimate> {
    let target = site.target?;
    let size = site.size(target);
    let cost = match site.element(target) {
        Some(element) => {
            let mut each = Range::fixed(1);
            if matches!(element.declared, Type::String | Type::Bytes) {
                each = each.plus(site.size(&element).times_factor(STRING_TRAVERSAL));
            }
            size.times(each)
        }
        None if counts_anything => size,
        // A text.
        None => size.times_factor(STRING_TRAVERSAL),
    };
    Some(CallEstimate::of(cost))
}

fn estimate_replace(site: &CallSite<'_>) -> Option<CallEstimate> {
    let size = site.size(site.target?);
    let [old, new, ..] = site.arguments else { return None };
    let (old, new) = (site.size(old), site.size(new));
    let (mut count, mut kept) = (Range::fixed(0), Range::fixed(0));
    if old.min == 0 {
        // Around all characters.
        count.max = size.max.saturating_add(1);
        kept.max = size.max;
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = quotient(size.max, old.min);
    }
    if old.max == 0 {
        count.min = size.min.saturating_add(1);
        kept.min = size.min;
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = quotient(size.min, old.max);
    }
    let result = count.times(new).plus(kept);
    Some(CallEstimate::sized(size.times_factor(2.0 * STRING_TRAVERSAL), result))
}

/// As upstream: in floating point, rounded up.
fn quotient(number: u64, by: u64) -> u64 {
    (number as f64 / by as f64).ceil() as u64
}

fn estimate_split(site: &CallSite<'_>) -> Option<CallEstimate> {
    let size = site.size(site.target?);
    let most = match site.arguments.get(1).and_then(|limit| limit.literal) {
        Some(Value::Int(limit)) => limit.cast_unsigned(),
        _ => size.max,
    };
    Some(CallEstimate::sized(size.times_factor(2.0 * STRING_TRAVERSAL), Range::new(0, most)))
}

fn estimate_join(site: &CallSite<'_>) -> Option<CallEstimate> {
    let target = site.target?;
    let length = site.size(target);
    let mut size = match site.element(target) {
        Some(element) => length.times(site.size(&element)),
        None => Range::fixed(0),
    };
    if let Some(separator) = site.arguments.first() {
        let separators = Range::new(length.min.saturating_sub(1), length.max.saturating_sub(1));
        size = size.plus(site.size(separator).times(separators));
    }
    Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), size))
}

fn estimate_find(site: &CallSite<'_>) -> Option<CallEstimate> {
    let size = site.size(site.target?);
    let text = size.plus(Range::fixed(1)).times_factor(STRING_TRAVERSAL);
    let regex = site.size(site.arguments.first()?).times_factor(REGEX_LENGTH);
    Some(CallEstimate::sized(text.times(regex), Range::new(0, size.max)))
}

fn estimate_contains(site: &CallSite<'_>, of_text: &str, more: Range) -> Option<CallEstimate> {
    let argument = site.arguments.first()?;
    let mut cost = ADDRESS.plus(ADDRESS).times_factor(STRING_TRAVERSAL).plus(more);
    if site.overload == of_text {
        cost = cost.plus(site.size(argument).times_factor(STRING_TRAVERSAL));
    }
    Some(CallEstimate::of(cost))
}

fn estimate_equality(site: &CallSite<'_>) -> Option<CallEstimate> {
    let [one, other] = site.arguments else { return None };
    if one.declared != other.declared {
        return None;
    }
    let cost = match &one.declared {
        Type::Opaque(name, _) if matches!(&**name, "net.IP" | "net.CIDR") => Range::fixed(1),
        Type::Object(name) => match &**name {
            "kubernetes.NamedFormat" => Range::new(1, FORMAT_NAME).times_factor(STRING_TRAVERSAL),
            "kubernetes.URL" => {
                let most = other.computed_size.map_or(1, |size| size.max);
                Range::new(1, most).times_factor(STRING_TRAVERSAL)
            }
            "kubernetes.Quantity" | "kubernetes.Semver" => Range::fixed(1),
            name if authorizer::TYPES.contains(&name) => Range::fixed(1),
            _ => return None,
        },
        _ => return None,
    };
    Some(CallEstimate::of(cost))
}

fn cost(function: &str) -> Option<NamedCost> {
    Some(match function {
        "check" => |_, _, _| Some(CHECK),
        "serviceAccount"
        | "path"
        | "group"
        | "resource"
        | "subresource"
        | "namespace"
        | "name"
        | "allowed"
        | "reason"
        | "error"
        | "errored"
        | "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "format.named"
        | "sign"
        | "asInteger"
        | "isInteger"
        | "asApproximateFloat"
        | "isGreaterThan"
        | "isLessThan"
        | "compareTo"
        | "add"
        | "sub"
        | "major"
        | "minor"
        | "patch"
        | "getScheme"
        | "getHostname"
        | "getHost"
        | "getPort"
        | "getEscapedPath"
        | "getQuery" => |_, _, _| Some(1),
        "fieldSelector" | "labelSelector" => |_, arguments, _| {
            let length = arguments.get(1)?.cost_size();
            Some(selector_range(Range::fixed(length)).max)
        },
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
            |_, arguments, _| Some(arguments.first().map_or(0, traversal))
        }
        "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => |_, arguments, _| of_size(arguments.first(), STRING_TRAVERSAL),
        "replace" | "split" | "ip.isCanonical" => {
            |_, arguments, _| of_size(arguments.first(), 2.0 * STRING_TRAVERSAL)
        }
        "join" => |_, arguments, result| {
            arguments.first()?;
            of_size(Some(result), 2.0 * STRING_TRAVERSAL)
        },
        "find" | "findAll" => |_, arguments, _| {
            let [text, regex, ..] = arguments else { return None };
            Some(matching(text.cost_size(), regex.cost_size()))
        },
        "ip" => |_, arguments, _| match arguments.first()? {
            Value::Opaque(_) => Some(1),
            text => of_size(Some(text), STRING_TRAVERSAL),
        },
        "containsIP" => |overload, arguments, _| {
            let [network, other, ..] = arguments else { return None };
            Some(comparing(network).saturating_add(reading(overload, other)))
        },
        "containsCIDR" => |overload, arguments, _| {
            let [network, other, ..] = arguments else { return None };
            let masking = multiply_by(network.cost_size(), STRING_TRAVERSAL) + 1;
            Some(comparing(network).saturating_add(masking).saturating_add(reading(overload, other)))
        },
        "validate" => |_, arguments, _| {
            let [format, text, ..] = arguments else { return None };
            let format = format.downcast::<Format>()?;
            Some(matching(text.cost_size(), format.regex_size))
        },
        "_==_" => |_, arguments, _| {
            let known = arguments.first().is_some_and(has_unit_equality);
            known.then_some(1)
        },
        _ => return None,
    })
}

fn of_size(value: Option<&Value<'_>>, factor: f64) -> Option<u64> {
    Some(multiply_by(value?.cost_size(), factor))
}

fn matching(text: u64, regex: u64) -> u64 {
    let text = multiply_by(text.saturating_add(1), STRING_TRAVERSAL);
    text.saturating_mul(multiply_by(regex, REGEX_LENGTH))
}

fn comparing(network: &Value<'_>) -> u64 {
    multiply_by(network.cost_size().saturating_mul(2), STRING_TRAVERSAL)
}

/// What it takes to read an argument that is a text, or should be.
fn reading(overload: Option<&str>, argument: &Value<'_>) -> u64 {
    let text = overload.map_or(matches!(argument, Value::String(_)), |id| id.ends_with("_string"));
    if text { multiply_by(argument.cost_size(), STRING_TRAVERSAL) } else { 0 }
}

fn has_unit_equality(value: &Value<'_>) -> bool {
    value.downcast::<Quantity>().is_some()
        || value.downcast::<Ip>().is_some()
        || value.downcast::<Cidr>().is_some()
        || value.downcast::<Format>().is_some()
        || value.downcast::<Url>().is_some()
        || value.downcast::<Semver>().is_some()
        || matches!(value, Value::Opaque(inner) if authorizer::TYPES.contains(&inner.type_of().name()))
}

/// The cost of looking at all of a value.
fn traversal(value: &Value<'_>) -> u64 {
    match value {
        // Upstream counts bytes here and rounds down.
        Value::String(text) => (text.len() as f64 * STRING_TRAVERSAL) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * STRING_TRAVERSAL) as u64,
        Value::List(list) => {
            list.iter().flatten().fold(0, |total: u64, item| total.saturating_add(traversal(&item)))
        }
        Value::Map(map) => map.entries().unwrap_or_default().iter().fold(0, |total: u64, (key, value)| {
            total.saturating_add(traversal(key)).saturating_add(traversal(value))
        }),
        _ => 1,
    }
}
