//! Functions of networks.

use super::addresses::{Cidr, Ip};
use super::made;
use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::Value;

pub(super) fn library() -> Library {
    let one = |name: &'static str, overload: Overload| Function::new(name, vec![overload]);
    let (cidr, ip) = (Cidr::declared, Ip::declared);
    Library {
        name: "kubernetes.net.cidr",
        functions: vec![
            one(
                "cidr",
                Overload::global("string_to_cidr", [Type::String], cidr(), |_, arguments| {
                    read(&arguments[0]).map(Value::opaque)
                }),
            ),
            Function::new(
                "containsIP",
                vec![
                    Overload::member(
                        "cidr_contains_ip_string",
                        [cidr(), Type::String],
                        Type::Bool,
                        |_, arguments| {
                            // Upstream drops why the text is no address.
                            let ip = Ip::parse(arguments[1].as_text()?);
                            let ip = ip.map_err(|_| Error::no_such_overload())?;
                            Ok(Value::Bool(network(&arguments[0])?.contains(ip.0)))
                        },
                    ),
                    Overload::member("cidr_contains_ip_ip", [cidr(), ip()], Type::Bool, |_, arguments| {
                        let ip = arguments[1].downcast::<Ip>().ok_or_else(Error::no_such_overload)?;
                        Ok(Value::Bool(network(&arguments[0])?.contains(ip.0)))
                    }),
                ],
            ),
            Function::new(
                "containsCIDR",
                vec![
                    Overload::member(
                        "cidr_contains_cidr_string",
                        [cidr(), Type::String],
                        Type::Bool,
                        |_, arguments| {
                            let other = read(&arguments[1])?;
                            Ok(Value::Bool(network(&arguments[0])?.contains_network(other)))
                        },
                    ),
                    Overload::member("cidr_contains_cidr", [cidr(), cidr()], Type::Bool, |_, arguments| {
                        let other = network(&arguments[1])?;
                        Ok(Value::Bool(network(&arguments[0])?.contains_network(other)))
                    }),
                ],
            ),
            one(
                "ip",
                Overload::member("cidr_ip", [cidr()], ip(), |_, arguments| {
                    Ok(Value::opaque(Ip(network(&arguments[0])?.address)))
                }),
            ),
            one(
                "prefixLength",
                Overload::member("cidr_prefix_length", [cidr()], Type::Int, |_, arguments| {
                    Ok(Value::Int(i64::from(network(&arguments[0])?.bits)))
                }),
            ),
            one(
                "masked",
                Overload::member("cidr_masked", [cidr()], cidr(), |_, arguments| {
                    Ok(Value::opaque(network(&arguments[0])?.masked()))
                }),
            ),
            one(
                "isCIDR",
                Overload::global("is_cidr", [Type::String], Type::Bool, |_, arguments| {
                    Ok(Value::Bool(Cidr::parse(arguments[0].as_text()?).is_ok()))
                }),
            ),
            one("string", Overload::global("cidr_to_string", [cidr()], Type::String, to_string)),
        ],
        types: vec![cidr()],
        ..Library::default()
    }
}

fn to_string<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    made(context, network(&arguments[0])?.to_string())
}

fn read(text: &Value<'_>) -> Result<Cidr, Error> {
    Cidr::parse(text.as_text()?).map_err(|why| {
        Error::new(format!("network address parse error during conversion from string: {why}"))
    })
}

fn network(value: &Value<'_>) -> Result<Cidr, Error> {
    value.downcast::<Cidr>().copied().ok_or_else(Error::no_such_overload)
}
