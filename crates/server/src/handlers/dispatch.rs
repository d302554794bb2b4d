//! Finds the resource and the verb's handler.

use coffer_types::Status;
use futures::future::BoxFuture;
use http::{Method, Response};

use super::call::Call;
use super::{
    bind, create, create_only, delete, delete_collection, get, list, patch, pod_log, scale, update, watch,
};
use crate::body::Body;
use crate::resources::Resource;
use crate::resources::info::{ResourceInfo, is_extension};
use crate::route::RequestInfo;
use crate::{discovery, negotiate, respond};

/// Answers an authorized request.
pub(crate) fn dispatch(call: &mut Call) -> BoxFuture<'_, Result<Response<Body>, Status>> {
    Box::pin(route(call))
}

async fn route(call: &mut Call) -> Result<Response<Body>, Status> {
    if !call.info.resource_request {
        return discovery::dispatch(call).await;
    }
    let resources = call.server.resources.load();
    let (group, version) = (call.info.group.clone(), call.info.version.clone());
    let Some(resource) = resources.find(&group, &version, &call.info.resource).cloned() else {
        let built_in = resources.groups().iter().any(|served| served.name == group)
            && !resources.is_custom_group(&group);
        return if built_in { Err(respond::no_such_resource()) } else { Ok(respond::page_not_found()) };
    };
    drop(resources);
    if call.info.prefix == "api" && !group.is_empty() {
        return Ok(respond::page_not_found());
    }
    call.warnings.extend(resource.deprecation.clone());
    check_scope(&call.info, &resource.info)?;
    let nothing_named = resource.create_only.is_some() && call.info.parts.len() > 1;
    if call.info.verb == "proxy" || nothing_named {
        return Err(respond::no_such_resource());
    }
    let custom = resource.info.behaviour.offers == negotiate::Offers::Custom;
    if custom
        && resource.info.namespaced
        && call.info.namespace.is_empty()
        && !matches!(call.info.verb.as_str(), "list" | "watch")
    {
        return Ok(respond::page_not_found());
    }
    let verb = route_verb(call, &resource)?;
    // Boxed one by one: what is awaited together lies in memory together.
    let handler: BoxFuture<'_, Result<Response<Body>, Status>> = match (call.info.subresource.as_str(), verb)
    {
        ("", "create") if resource.create_only.is_some() => Box::pin(create_only::handle(call, &resource)),
        ("", "create") => Box::pin(create::handle(call, &resource)),
        (subresource, "create") if resource.create_only_subresources.contains_key(subresource) => {
            Box::pin(create_only::handle(call, &resource))
        }
        ("binding", "create") => Box::pin(bind::handle(call, &resource)),
        ("scale", verb) if resource.scale.is_some() => Box::pin(scale_of(call, &resource, verb)),
        ("log", "get") => Box::pin(pod_log::handle(call, &resource)),
        (_, "get") => Box::pin(get::handle(call, &resource)),
        ("", "list") => Box::pin(list::handle(call, &resource)),
        ("", "watch") => Box::pin(watch::handle(call, &resource)),
        (_, "update") => Box::pin(update::handle(call, &resource)),
        (_, "patch") => Box::pin(patch::handle(call, &resource)),
        ("", "delete") => Box::pin(delete::handle(call, &resource)),
        ("", "deletecollection") => Box::pin(delete_collection::handle(call, &resource)),
        _ => return Err(respond::no_such_method()),
    };
    let answer = handler.await;
    if resource.info.group == ADMISSION && !matches!(verb, "get" | "list" | "watch") {
        let written = resource.info.name();
        for plugin in &call.server.admission {
            plugin.caught_up(&written).await;
        }
    }
    answer
}

/// Where the rules of admission are stored. They hold for the next request of whoever wrote them.
const ADMISSION: &str = "admissionregistration.k8s.io";

async fn scale_of(call: &mut Call, resource: &Resource, verb: &str) -> Result<Response<Body>, Status> {
    let scale = resource.scale.as_ref().ok_or_else(respond::no_such_method)?;
    scale::handle(call, resource, scale, verb).await
}

/// The path must have a namespace exactly when the resource has one.
fn check_scope(info: &RequestInfo, resource: &ResourceInfo) -> Result<(), Status> {
    if info.parts.len() > 3 {
        return Err(respond::no_such_resource());
    }
    if resource.namespaced && matches!(info.namespace.as_str(), "." | "..") {
        // No object has such a key, and none is looked for.
        let group = if is_extension(resource) { format!("/{}", resource.group) } else { String::new() };
        let name = if info.parts.len() > 1 { format!("/{}", info.name) } else { String::new() };
        let key = format!("{group}/{}/{}{name}", resource.plural, info.namespace);
        return Err(Status::plain(format!("invalid key: {}", crate::quote(&key))));
    }
    let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
    if resource.namespaced {
        if info.namespace.is_empty() && info.parts.len() > 1 {
            // An empty part stands for no namespace, which only lists may have.
            return Err(if info.path.contains("/namespaces//") {
                Status::bad_request("Namespace parameter required.")
            } else {
                respond::no_such_resource()
            });
        }
    } else if !info.namespace.is_empty() && (!is_namespace || info.name.is_empty()) {
        return Err(respond::no_such_resource());
    }
    Ok(())
}

/// The verb, when the path has a route for it.
fn route_verb(call: &Call, resource: &Resource) -> Result<&'static str, Status> {
    let info = &call.info;
    let subresource = match info.subresource.as_str() {
        "" => None,
        name => Some(resource.info.subresource(name).ok_or_else(|| {
            if resource.info.behaviour.offers == negotiate::Offers::Custom {
                Status::not_found(&resource.info.group, &resource.info.plural, &info.name)
            } else {
                respond::no_such_resource()
            }
        })?),
    };
    let refused = || {
        if resource.info.behaviour.offers == negotiate::Offers::Custom {
            // The verb of a method that has none is empty.
            Status::method_not_allowed(&resource.info.group, &resource.info.plural, &info.verb)
        } else {
            respond::no_such_method()
        }
    };
    let custom = resource.info.behaviour.offers == negotiate::Offers::Custom;
    if (call.method == Method::HEAD && !custom) || (info.verb == "watch" && call.method != Method::GET) {
        return Err(refused());
    }
    let verbs = subresource.map_or(&resource.info.verbs, |subresource| &subresource.verbs);
    let verb = verbs.iter().copied().find(|verb| *verb == info.verb).ok_or_else(refused)?;
    // A name or its absence decides which of two routes a path is.
    let named = info.parts.len() > 1;
    let fits = match verb {
        // Upstream's handler of custom resources looks at names later, or not at all.
        "update" | "patch" if custom && !named => {
            return Err(Status::bad_request("name must be provided"));
        }
        "create" if subresource.is_none() && custom => true,
        "create" if subresource.is_none() => !named,
        "get" | "update" | "patch" | "delete" => named,
        "create" => named,
        "list" | "deletecollection" => !named,
        _ => true,
    };
    // Creating or deleting across all namespaces has no route.
    let crosses = resource.info.namespaced
        && info.namespace.is_empty()
        && matches!(verb, "create" | "deletecollection");
    if fits && !crosses { Ok(verb) } else { Err(refused()) }
}
