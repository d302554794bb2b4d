//! Finds the resource and the verb's handler. One verb per file; the same code serves every resource.

pub(crate) mod bind;
pub(crate) mod create;
mod create_only;
pub(crate) mod delete;
mod delete_collection;
mod finalizers;
mod get;
mod list;
pub(crate) mod options;
pub(crate) mod patch;
mod selection;
mod table;
pub(crate) mod update;
mod watch;
pub(crate) mod write;

use std::sync::Arc;

use bytes::Bytes;
use coffer_store::registry::Stored;
use coffer_types::{Status, Value};
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Response, StatusCode};
use parking_lot::Mutex;

use crate::api::Server;
use crate::negotiate::{self, Accepted, Shape};
use crate::ports::Attributes;
use crate::query::Query;
use crate::resources::{Resource, ResourceInfo};
use crate::respond;
use crate::route::RequestInfo;
use crate::serve::body::{self, Body};
use crate::{discovery, wire};

/// One authorized request as a handler sees it.
pub(crate) struct Call {
    pub(crate) server: Arc<Server>,
    pub(crate) method: Method,
    pub(crate) info: RequestInfo,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) attributes: Attributes,
    /// Not yet read; behind a lock only so that handlers can share the call across threads.
    pub(crate) body: Mutex<Option<Body>>,
    pub(crate) warnings: Vec<String>,
}

impl Call {
    /// The whole body.
    pub(crate) async fn read_body(&mut self) -> Result<Bytes, Status> {
        let body = self.body.get_mut().take();
        match body {
            Some(body) => body::read(body).await,
            None => Ok(Bytes::new()),
        }
    }

    /// Who is recorded as the manager of fields.
    pub(crate) fn manager(&self, options: &options::WriteOptions) -> String {
        if options.field_manager.is_empty() {
            let agent = self.headers.get(http::header::USER_AGENT);
            manager_of_agent(agent.and_then(|value| value.to_str().ok()).unwrap_or_default())
        } else {
            options.field_manager.clone()
        }
    }
}

/// What is written as the answer to a write.
pub(crate) enum Output {
    /// As it is in the store now.
    Stored(Arc<Stored>),
    /// What would be in the store, or what never is.
    Value(Value),
}

/// Longest name of a field manager.
const MAX_MANAGER: usize = 128;

/// The user agent up to the first slash, printable characters only.
fn manager_of_agent(agent: &str) -> String {
    let mut manager = String::new();
    let name = agent.split('/').next().unwrap_or_default();
    for character in name.chars().filter(|character| !character.is_control()) {
        if manager.len() + character.len_utf8() > MAX_MANAGER {
            break;
        }
        manager.push(character);
    }
    manager
}

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
    check_scope(&call.info, &resource.info)?;
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
        (_, "get") => Box::pin(get::handle(call, &resource)),
        ("", "list") => Box::pin(list::handle(call, &resource)),
        ("", "watch") => Box::pin(watch::handle(call, &resource)),
        (_, "update") => Box::pin(update::handle(call, &resource)),
        (_, "patch") => Box::pin(patch::handle(call, &resource)),
        ("", "delete") => Box::pin(delete::handle(call, &resource)),
        ("", "deletecollection") => Box::pin(delete_collection::handle(call, &resource)),
        _ => return Err(respond::no_such_method()),
    };
    handler.await
}

/// The path must have a namespace exactly when the resource has one.
fn check_scope(info: &RequestInfo, resource: &ResourceInfo) -> Result<(), Status> {
    if info.parts.len() > 3 {
        return Err(respond::no_such_resource());
    }
    if resource.namespaced && matches!(info.namespace.as_str(), "." | "..") {
        // No object has such a key, and none is looked for.
        let group = if crate::resources::is_extension(resource) {
            format!("/{}", resource.group)
        } else {
            String::new()
        };
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
    } else if !info.namespace.is_empty() && !is_namespace {
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
            let verb = if info.verb.is_empty() { call.method.as_str() } else { info.verb.as_str() };
            Status::method_not_allowed(&resource.info.group, &resource.info.plural, verb)
        } else {
            respond::no_such_method()
        }
    };
    if call.method == Method::HEAD || (info.verb == "watch" && call.method != Method::GET) {
        return Err(refused());
    }
    let verbs = subresource.map_or(&resource.info.verbs, |subresource| &subresource.verbs);
    let verb = verbs.iter().copied().find(|verb| *verb == info.verb).ok_or_else(refused)?;
    // A name or its absence decides which of two routes a path is.
    let named = info.parts.len() > 1;
    let fits = match verb {
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

/// Negotiates the answer of a single object.
pub(crate) fn accept_object(call: &Call, resource: &ResourceInfo) -> Result<Accepted, Status> {
    let accepted = negotiate::accept(&call.headers, resource.behaviour.offers)?;
    match accepted.shape {
        Shape::PartialList(_) => Err(Status::new(
            406,
            "NotAcceptable",
            format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                go_type(resource, "")
            ),
        )),
        _ => Ok(accepted),
    }
}

/// Negotiates the answer of a list.
pub(crate) fn accept_list(call: &Call, resource: &ResourceInfo) -> Result<Accepted, Status> {
    let accepted = negotiate::accept(&call.headers, resource.behaviour.offers)?;
    match accepted.shape {
        Shape::Partial(_) => Err(Status::new(
            406,
            "NotAcceptable",
            format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                go_type(resource, "List")
            ),
        )),
        _ => Ok(accepted),
    }
}

fn go_type(resource: &ResourceInfo, suffix: &str) -> String {
    match resource.behaviour.go_type {
        "" => format!("*unstructured.Unstructured{suffix}"),
        name => format!("*{name}{suffix}"),
    }
}

/// Writes one object in the negotiated form.
pub(crate) fn answer_object(
    call: &Call,
    resource: &Resource,
    accepted: &Accepted,
    code: StatusCode,
    output: &Output,
) -> Result<Response<Body>, Status> {
    let bytes = match accepted.shape {
        Shape::Object | Shape::PartialList(_) => match output {
            Output::Stored(stored) => resource.wire.object(stored, accepted.media)?,
            Output::Value(value) => resource.wire.value(value, accepted.media)?,
        },
        Shape::Partial(version) => match output {
            Output::Stored(stored) => resource.wire.partial(stored, version, accepted.media)?,
            Output::Value(value) => wire::partial_value(value, version, accepted.media)?,
        },
        Shape::Table(version) => {
            let include = table::Include::parse(&call.query)?;
            table::of_one(call, resource, output, version, include, accepted.media)?
        }
    };
    Ok(respond::encoded(code, accepted, bytes, &call.headers, &call.query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_comes_from_the_user_agent() {
        for (agent, expected) in
            [("kubectl/v1.37.1 (linux/amd64)", "kubectl"), ("curl", "curl"), ("", ""), ("a\u{1}b/c", "ab")]
        {
            assert_eq!(manager_of_agent(agent), expected);
        }
        assert_eq!(manager_of_agent(&"x".repeat(300)).len(), MAX_MANAGER);
    }
}
