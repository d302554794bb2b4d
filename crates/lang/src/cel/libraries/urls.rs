//! Functions of URLs.

use super::url::{Url, is_request_uri};
use super::{made, made_list};
use crate::cel::error::Error;
use crate::cel::functions::{Context, Evaluate, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::{Entries, Map, Value};

pub(super) fn library() -> Library {
    let part = |name: &'static str, id: &'static str, evaluate: Evaluate| {
        Function::new(name, vec![Overload::member(id, [Url::declared()], Type::String, evaluate)])
    };
    Library {
        name: "kubernetes.urls",
        functions: vec![
            Function::new(
                "url",
                vec![Overload::global("string_to_url", [Type::String], Url::declared(), parse)],
            ),
            part("getScheme", "url_get_scheme", |context, arguments| {
                made(context, url(arguments)?.scheme.clone())
            }),
            part("getHost", "url_get_host", |context, arguments| made(context, url(arguments)?.host.clone())),
            part("getHostname", "url_get_hostname", |context, arguments| {
                made(context, url(arguments)?.host_and_port().0.to_owned())
            }),
            part("getPort", "url_get_port", |context, arguments| {
                made(context, url(arguments)?.host_and_port().1.to_owned())
            }),
            part("getEscapedPath", "url_get_escaped_path", |context, arguments| {
                made(context, url(arguments)?.escaped_path())
            }),
            Function::new(
                "getQuery",
                vec![Overload::member(
                    "url_get_query",
                    [Url::declared()],
                    Type::map(Type::String, Type::list(Type::String)),
                    query,
                )],
            ),
            Function::new(
                "isURL",
                vec![Overload::global("is_url_string", [Type::String], Type::Bool, |_, arguments| {
                    Ok(Value::Bool(is_request_uri(arguments[0].as_text()?).is_ok()))
                })],
            ),
        ],
        ..Library::default()
    }
}

fn url<'a>(arguments: &'a [Value<'_>]) -> Result<&'a Url, Error> {
    arguments[0].downcast::<Url>().ok_or_else(Error::no_such_overload)
}

fn parse<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let text = arguments[0].as_text()?;
    context.charge(text.len().saturating_mul(2))?;
    let parsed = is_request_uri(text).and_then(|()| Url::parse(text));
    parsed
        .map(Value::opaque)
        .map_err(|why| Error::new(format!("URL parse error during conversion from string: {why}")))
}

fn query<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let mut entries = Entries::default();
    for (key, values) in url(arguments)?.query() {
        let values = values.into_iter().map(|value| made(context, value)).collect::<Result<Vec<_>, _>>()?;
        let values = made_list(context, values)?;
        entries.insert(made(context, key)?, values)?;
    }
    Ok(Value::Map(Map::new(entries)))
}
