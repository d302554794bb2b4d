//! GET pods/NAME/log: what a container printed, as its kubelet tells it.

use coffer_store::registry::ReadAt;
use coffer_types::meta::Meta as _;
use coffer_types::validation::field::{FieldError, FieldErrors, Path, to_status};
use coffer_types::{Status, Value};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use http_body_util::{BodyExt as _, Limited};

use super::call::Call;
use crate::body::{self, Body};
use crate::ports::GroupResource;
use crate::query::Query;
use crate::resources::Resource;
use crate::respond;

/// How much of a kubelet's refusal is told.
const REFUSAL_LIMIT: usize = 50_000;

pub(super) async fn handle(call: &Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let kubelets = call.server.kubelets.as_ref().ok_or_else(respond::no_such_resource)?;
    let name = &call.info.name;
    let errors = faults(&call.query)?;
    if !errors.is_empty() {
        return Err(to_status("", "PodLogOptions", name, &errors));
    }
    let registry = resource.registry()?;
    let stored = registry.get(&call.info.namespace, name, ReadAt::Latest).await?;
    let pod = resource.wire.read(&stored)?;
    let container = container_of(&pod, call.query.text("container"))?;
    let node = pod.str_at(&["spec", "nodeName"]);
    if node.is_empty() {
        return Ok(plain(body::full("")));
    }
    let nodes = call.server.resources.preferred(&GroupResource::new("", "nodes"));
    let nodes = nodes.ok_or_else(respond::no_such_resource)?;
    let stored = nodes.registry()?.get("", node, ReadAt::Any).await?;
    let node = nodes.wire.read(&stored)?;
    let address = kubelets.address(&node).map_err(Status::internal)?;
    let path = path_of(&pod, &container, &call.query);
    let answer = kubelets.get(&address, &path).await.map_err(Status::internal)?;
    let code = answer.status().as_u16();
    if !(200..=206).contains(&code) {
        let text = Limited::new(answer.into_body(), REFUSAL_LIMIT).collect().await;
        let text =
            text.map(|text| String::from_utf8_lossy(&text.to_bytes()).into_owned()).unwrap_or_default();
        return Err(refused(code, name, text));
    }
    Ok(plain(body::incoming(answer.into_body())))
}

fn plain(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn refused(code: u16, name: &str, text: String) -> Status {
    match code {
        400 => Status::bad_request(text),
        500 => Status::internal(text),
        404 => Status::new(
            404,
            "NotFound",
            format!("the server could not find the requested resource ( pods {name})"),
        ),
        code => Status::new(
            code,
            "InternalError",
            format!(
                "an error on the server ({}) has prevented the request from succeeding ( pods {name})",
                crate::quote(&text)
            ),
        ),
    }
}

/// The parameters that are numbers.
fn number(query: &Query, name: &str) -> Result<Option<i64>, Status> {
    match query.text(name) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", crate::quote(text)))
        }),
    }
}

fn faults(query: &Query) -> Result<FieldErrors, Status> {
    let mut errors = FieldErrors::new();
    let mut least = |name: &str, least: i64, detail: &str| -> Result<(), Status> {
        if let Some(number) = number(query, name)?.filter(|number| *number < least) {
            errors.push(FieldError::invalid(&Path::new(name), number, detail));
        }
        Ok(())
    };
    least("tailLines", 0, "must be greater than or equal to 0")?;
    least("limitBytes", 1, "must be greater than 0")?;
    let both = !query.text("sinceSeconds").is_empty() && !query.text("sinceTime").is_empty();
    if !both {
        least("sinceSeconds", 1, "must be greater than 0")?;
    }
    if both {
        let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(FieldError::forbidden(&Path::new(""), detail));
    }
    Ok(errors)
}

/// The container that is meant.
fn container_of(pod: &Value, wanted: &str) -> Result<String, Status> {
    let names = |field: &str| -> Vec<&str> {
        let all = pod.at(&["spec", field]).and_then(Value::as_array).unwrap_or_default();
        all.iter().map(|container| container.str_at(&["name"])).collect()
    };
    let (main, init, ephemeral) =
        (names("containers"), names("initContainers"), names("ephemeralContainers"));
    if !wanted.is_empty() {
        let known = main.iter().chain(&init).chain(&ephemeral).any(|name| *name == wanted);
        return if known {
            Ok(wanted.to_owned())
        } else {
            Err(Status::bad_request(format!("container {wanted} is not valid for pod {}", pod.name())))
        };
    }
    match (&main[..], &init[..], &ephemeral[..]) {
        ([one], [], []) => Ok((*one).to_owned()),
        ([], ..) => {
            Err(Status::bad_request(format!("a container name must be specified for pod {}", pod.name())))
        }
        _ => {
            let mut text = format!(
                "a container name must be specified for pod {}, choose one of: [{}]",
                pod.name(),
                main.join(" ")
            );
            if !init.is_empty() {
                text.push_str(&format!(" or one of the init containers: [{}]", init.join(" ")));
            }
            if !ephemeral.is_empty() {
                text.push_str(&format!(" or one of the ephemeral containers: [{}]", ephemeral.join(" ")));
            }
            Err(Status::bad_request(text))
        }
    }
}

/// What the kubelet is asked for.
fn path_of(pod: &Value, container: &str, query: &Query) -> String {
    let mut parameters = Vec::new();
    for name in ["follow", "previous", "timestamps"] {
        if query.flag(name) == Some(true) {
            parameters.push(format!("{name}=true"));
        }
    }
    for name in ["sinceSeconds", "sinceTime", "tailLines", "limitBytes", "stream"] {
        let value = query.text(name);
        if !value.is_empty() {
            let escaped: String = value
                .bytes()
                .map(|byte| match byte {
                    b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                        char::from(byte).to_string()
                    }
                    other => format!("%{other:02X}"),
                })
                .collect();
            parameters.push(format!("{name}={escaped}"));
        }
    }
    let query = if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) };
    format!("/containerLogs/{}/{}/{container}{query}", pod.namespace(), pod.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coffer_types::codec::json;

    fn pod(text: &str) -> Value {
        json::decode_untyped(text.as_bytes()).expect("JSON").object
    }

    /// The cases of TestCheckLogLocation of k8s.io/kubernetes v1.37.2.
    #[test]
    fn a_container_is_named_where_there_are_several() {
        let simple = |containers: &str, init: &str| {
            let list = |names: &str| -> String {
                let names = names.split_whitespace().map(|name| format!(r#"{{"name":"{name}"}}"#));
                names.collect::<Vec<_>>().join(",")
            };
            pod(&format!(
                r#"{{"metadata":{{"name":"test","namespace":"n"}},"spec":{{"containers":[{}],"initContainers":[{}]}}}}"#,
                list(containers),
                list(init)
            ))
        };
        for (containers, init, wanted, expected) in [
            ("", "", "", Err("a container name must be specified for pod test")),
            ("mycontainer", "", "", Ok("mycontainer")),
            (
                "container1 container2",
                "",
                "",
                Err(
                    "a container name must be specified for pod test, choose one of: [container1 container2]",
                ),
            ),
            (
                "container1 container2",
                "initcontainer1",
                "",
                Err(
                    "a container name must be specified for pod test, choose one of: [container1 container2] or one of the init containers: [initcontainer1]",
                ),
            ),
            ("container1 container2", "", "unknown", Err("container unknown is not valid for pod test")),
            ("container1 container2", "", "container2", Ok("container2")),
        ] {
            let found = container_of(&simple(containers, init), wanted);
            let found = found.as_deref().map_err(|status| status.message.as_str());
            assert_eq!(found, expected, "{containers}, {wanted}");
        }
    }

    #[test]
    fn parameters_are_checked_and_passed_on() {
        let query = Query::parse(
            "follow=true&previous=false&tailLines=5&sinceTime=2024-01-01T00:00:00%2B01:00&container=c",
        );
        let pod = pod(r#"{"metadata":{"name":"p","namespace":"n"}}"#);
        assert_eq!(
            path_of(&pod, "c", &query),
            "/containerLogs/n/p/c?follow=true&sinceTime=2024-01-01T00%3A00%3A00%2B01%3A00&tailLines=5"
        );
        for (query, expected) in [
            ("tailLines=0&limitBytes=1&sinceSeconds=1", ""),
            ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
            ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
            ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
            (
                "sinceSeconds=1&sinceTime=x",
                "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
            ),
        ] {
            let errors = faults(&Query::parse(query)).expect("numbers");
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join(", "), expected, "{query}");
        }
        assert_eq!(faults(&Query::parse("tailLines=x")).err().map(|status| status.code), Some(400));
    }
}
