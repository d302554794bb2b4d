//! Functions of IP addresses.

use core::net::IpAddr;

use super::addresses::Ip;
use super::made;
use crate::cel::error::Error;
use crate::cel::functions::{Context, Evaluate, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::Value;

pub(super) fn library() -> Library {
    let of_text = |name: &'static str, id: &'static str, result: Type, evaluate: Evaluate| {
        Function::new(name, vec![Overload::global(id, [Type::String], result, evaluate)])
    };
    let member = |name: &'static str, id: &'static str, result: Type, evaluate: Evaluate| {
        Function::new(name, vec![Overload::member(id, [Ip::declared()], result, evaluate)])
    };
    Library {
        name: "kubernetes.net.ip",
        functions: vec![
            of_text("ip", "string_to_ip", Ip::declared(), |_, arguments| {
                Ip::parse(arguments[0].as_text()?).map(Value::opaque).map_err(Error::new)
            }),
            member("family", "ip_family", Type::Int, |_, arguments| {
                Ok(Value::Int(if address(arguments)?.is_ipv4() { 4 } else { 6 }))
            }),
            of_text("ip.isCanonical", "ip_is_canonical", Type::Bool, |_, arguments| {
                let text = arguments[0].as_text()?;
                let read = Ip::parse(text).map_err(Error::new)?;
                Ok(Value::Bool(read.to_string() == **text))
            }),
            member("isUnspecified", "ip_is_unspecified", Type::Bool, |_, arguments| {
                Ok(Value::Bool(address(arguments)?.is_unspecified()))
            }),
            member("isLoopback", "ip_is_loopback", Type::Bool, |_, arguments| {
                Ok(Value::Bool(address(arguments)?.is_loopback()))
            }),
            member("isLinkLocalMulticast", "ip_is_link_local_multicast", Type::Bool, |_, arguments| {
                Ok(Value::Bool(match address(arguments)? {
                    IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
                    IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
                }))
            }),
            member("isLinkLocalUnicast", "ip_is_link_local_unicast", Type::Bool, |_, arguments| {
                Ok(Value::Bool(is_link_local(address(arguments)?)))
            }),
            member("isGlobalUnicast", "ip_is_global_unicast", Type::Bool, |_, arguments| {
                let address = address(arguments)?;
                let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
                let special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
                Ok(Value::Bool(!broadcast && !special && !is_link_local(address)))
            }),
            of_text("isIP", "is_ip", Type::Bool, |_, arguments| {
                Ok(Value::Bool(Ip::parse(arguments[0].as_text()?).is_ok()))
            }),
            Function::new(
                "string",
                vec![Overload::global("ip_to_string", [Ip::declared()], Type::String, to_string)],
            ),
        ],
        types: vec![Ip::declared()],
        ..Library::default()
    }
}

fn to_string<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    made(context, Ip(address(arguments)?).to_string())
}

fn address(arguments: &[Value<'_>]) -> Result<IpAddr, Error> {
    arguments[0].downcast::<Ip>().map(|ip| ip.0).ok_or_else(Error::no_such_overload)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}
