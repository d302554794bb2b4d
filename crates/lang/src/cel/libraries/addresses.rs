//! IP addresses and networks, read by the rules and with the messages of Go's `netip`.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::any::Any;

use coffer_types::validation::field::go_quote;

use crate::cel::error::Error;
use crate::cel::types::Type;
use crate::cel::value::Opaque;

/// An IP address. No zone, no IPv4 address in the notation of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip(pub IpAddr);

/// An IP address with the length of a prefix. What is behind the prefix need not be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The address.
    pub address: IpAddr,
    /// The length of the prefix in bits.
    pub bits: u8,
}

impl Ip {
    /// The type of addresses.
    pub(super) fn declared() -> Type {
        Type::opaque("net.IP")
    }

    /// Reads an address.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let read = read_address(text).map_err(|why| {
            format!("IP Address {} parse error during conversion from string: {why}", go_quote(text))
        })?;
        if read.zone {
            return Err(format!("IP address {} with zone value is not allowed", go_quote(text)));
        }
        if is_mapped(read.address) {
            return Err(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text)));
        }
        Ok(Self(read.address))
    }
}

impl Cidr {
    /// The type of networks.
    pub(super) fn declared() -> Type {
        Type::opaque("net.CIDR")
    }

    /// Reads a network.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let prefix = read_prefix(text).map_err(|why| {
            format!(
                "network address parse error during conversion from string: netip.ParsePrefix({}): {why}",
                go_quote(text)
            )
        })?;
        if is_mapped(prefix.address) {
            return Err(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text)));
        }
        Ok(prefix)
    }

    /// The network's first address with the same prefix.
    pub(super) fn masked(self) -> Self {
        Self { address: masked(self.address, self.bits), ..self }
    }

    /// Whether the address is in the network.
    pub(super) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(self.address, self.bits) == masked(address, self.bits)
    }

    /// Whether the whole of the other network is in this one.
    pub(super) fn contains_network(self, other: Cidr) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

impl std::fmt::Display for Ip {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&shown(self.0))
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", shown(self.address), self.bits)
    }
}

impl Opaque for Ip {
    fn type_of(&self) -> Type {
        Self::declared()
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, Error> {
        let other = other.as_any().downcast_ref::<Self>().ok_or_else(Error::no_such_overload)?;
        Ok(self == other)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn size(&self) -> Option<u64> {
        Some(if self.0.is_ipv4() { 4 } else { 16 })
    }
}

impl Opaque for Cidr {
    fn type_of(&self) -> Type {
        Self::declared()
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, Error> {
        let other = other.as_any().downcast_ref::<Self>().ok_or_else(Error::no_such_overload)?;
        Ok(self == other)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn size(&self) -> Option<u64> {
        Some(u64::from(self.bits).div_ceil(8))
    }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// The canonical text: the first of the longest runs of zeros is `::`.
fn shown(address: IpAddr) -> String {
    let address = match address {
        IpAddr::V4(address) => return address.to_string(),
        IpAddr::V6(address) => address,
    };
    let groups = address.segments();
    let (mut start, mut end) = (8, 8);
    let mut index = 0;
    while index < 8 {
        let zeros = groups[index..].iter().take_while(|group| **group == 0).count();
        if 2 <= zeros && end - start < zeros {
            (start, end) = (index, index + zeros);
        }
        index += zeros.max(1);
    }
    let text = |groups: &[u16]| groups.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":");
    if start == end { text(&groups) } else { format!("{}::{}", text(&groups[..start]), text(&groups[end..])) }
}

/// An address and whether a zone follows it.
pub(super) struct Address {
    pub(super) address: IpAddr,
    pub(super) zone: bool,
}

/// `netip.ParseAddr`.
pub(super) fn read_address(text: &str) -> Result<Address, String> {
    let failed = |(why, place): (&str, Option<&str>)| {
        let place = place.map(|place| format!(" (at {})", go_quote(place))).unwrap_or_default();
        format!("ParseAddr({}): {why}{place}", go_quote(text))
    };
    match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => {
            let address = read_v4(text).map_err(failed)?;
            Ok(Address { address: IpAddr::V4(address), zone: false })
        }
        Some(b':') => {
            let (address, zone) = match text.split_once('%') {
                Some((_, "")) => return Err(failed(("zone must be a non-empty string", None))),
                Some((address, _)) => (address, true),
                None => (text, false),
            };
            Ok(Address { address: IpAddr::V6(read_v6(address).map_err(failed)?), zone })
        }
        Some(_) => Err(failed(("missing IPv6 address", None))),
        None => Err(failed(("unable to parse IP", None))),
    }
}

/// Why text is no address, and from where on.
type Fault<'t> = (&'static str, Option<&'t str>);

fn read_v4(text: &str) -> Result<Ipv4Addr, Fault<'_>> {
    let bytes = text.as_bytes();
    let mut octets = [0; 4];
    let (mut position, mut value, mut digits) = (0, 0u32, 0);
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", None));
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", None));
                }
            }
            b'.' => {
                if index == 0 || index == bytes.len() - 1 || bytes[index - 1] == b'.' {
                    return Err(("IPv4 field must have at least one digit", Some(&text[index..])));
                }
                if position == 3 {
                    return Err(("IPv4 address too long", None));
                }
                octets[position] = value as u8;
                position += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(("unexpected character", Some(&text[index..]))),
        }
    }
    if position < 3 {
        return Err(("IPv4 address too short", None));
    }
    octets[3] = value as u8;
    Ok(Ipv4Addr::from(octets))
}

fn read_v6(text: &str) -> Result<Ipv6Addr, Fault<'_>> {
    let mut groups: Vec<u16> = Vec::with_capacity(8);
    let mut ellipsis = None;
    let mut rest = text;
    if let Some(after) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok(Ipv6Addr::UNSPECIFIED);
        }
    }
    while groups.len() < 8 {
        let mut group = 0u32;
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        for digit in rest.bytes().take(digits.min(4)) {
            group = group * 16 + char::from(digit).to_digit(16).unwrap_or(0);
        }
        if digits > 4 {
            return Err(("each group must have 4 or less digits", Some(rest)));
        }
        if digits == 0 {
            return Err(("each colon-separated field must have at least one digit", Some(rest)));
        }
        let after = &rest[digits..];
        if after.starts_with('.') {
            if ellipsis.is_none() && groups.len() != 6 {
                let why = "embedded IPv4 address must replace the final 2 fields of the address";
                return Err((why, Some(rest)));
            }
            if groups.len() > 6 {
                let why = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err((why, Some(rest)));
            }
            let bits = read_v4(rest)?.to_bits();
            groups.extend([(bits >> 16) as u16, bits as u16]);
            rest = "";
            break;
        }
        groups.push(group as u16);
        rest = after;
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(("unexpected character, want colon", Some(rest)));
        };
        if after.is_empty() {
            return Err(("colon must be followed by more characters", Some(rest)));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(("multiple :: in address", Some(rest)));
            }
            ellipsis = Some(groups.len());
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", Some(rest)));
    }
    match ellipsis {
        None if groups.len() < 8 => return Err(("address string too short", None)),
        Some(_) if groups.len() == 8 => {
            return Err(("the :: must expand to at least one field of zeros", None));
        }
        Some(place) => {
            let missing = 8 - groups.len();
            groups.splice(place..place, std::iter::repeat_n(0, missing));
        }
        None => {}
    }
    let mut address = [0; 8];
    address.copy_from_slice(&groups);
    Ok(Ipv6Addr::from(address))
}

/// `netip.ParsePrefix`.
fn read_prefix(text: &str) -> Result<Cidr, String> {
    let (address, length) = text.rsplit_once('/').ok_or("no '/'")?;
    let read = read_address(address)?;
    if read.zone {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let refused = || format!("bad bits after slash: {}", go_quote(length));
    if length.len() > 1 && !matches!(length.as_bytes()[0], b'1'..=b'9') {
        return Err(refused());
    }
    if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused());
    }
    // As Go, whose number has 64 bits.
    let bits: i64 = length.parse().map_err(|_| refused())?;
    let most = if read.address.is_ipv4() { 32 } else { 128 };
    if most < bits {
        return Err("prefix length out of range".to_owned());
    }
    Ok(Cidr { address: read.address, bits: bits as u8 })
}
