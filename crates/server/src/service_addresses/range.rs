//! The addresses that Services may have.

use std::fmt;
use std::net::Ipv4Addr;

/// A range of addresses, such as `10.0.0.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    base: u32,
    bits: u8,
}

impl Default for Range {
    /// `10.0.0.0/24`, upstream's.
    fn default() -> Self {
        Self { base: u32::from(Ipv4Addr::new(10, 0, 0, 0)), bits: 24 }
    }
}

impl std::str::FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault =
            || format!("{text:?} is not a range of IPv4 addresses with 8 to 30 bits, such as 10.0.0.0/24");
        let (address, bits) = text.split_once('/').ok_or_else(fault)?;
        let address: Ipv4Addr = address.parse().map_err(|_| fault())?;
        let bits: u8 = bits.parse().map_err(|_| fault())?;
        if !(8..=30).contains(&bits) {
            return Err(fault());
        }
        let mask = u32::MAX << (32 - bits);
        Ok(Self { base: u32::from(address) & mask, bits })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", Ipv4Addr::from(self.base), self.bits)
    }
}

impl Range {
    /// The address of the server itself.
    pub fn first(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 1)
    }

    fn size(&self) -> u32 {
        1 << (32 - self.bits)
    }

    pub(super) fn contains(&self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.base);
        0 < offset && offset < self.size() - 1
    }

    /// Any of the addresses but the first, which is the server's.
    pub(super) fn any(&self, random: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 2 + random % (self.size() - 3))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ranges_are_read_and_kept_to() {
        let range: Range = "10.96.3.4/16".parse().expect("a range");
        assert_eq!(
            (range.to_string().as_str(), range.first().to_string().as_str()),
            ("10.96.0.0/16", "10.96.0.1")
        );
        for text in ["10.0.0.0", "10.0.0.0/31", "x/24", "10.0.0.0/4", "::/64"] {
            assert!(text.parse::<Range>().is_err(), "{text}");
        }
        let small: Range = "10.0.0.0/29".parse().expect("a range");
        let all: BTreeSet<Ipv4Addr> = (0..100).map(|random| small.any(random)).collect();
        assert_eq!(all.len(), 5, "all but the network, the server and the broadcast");
        assert!(all.iter().all(|address| small.contains(*address) && *address != small.first()));
        assert!(!small.contains(Ipv4Addr::new(10, 0, 0, 0)) && !small.contains(Ipv4Addr::new(10, 0, 0, 7)));
        assert!(
            !small.contains(Ipv4Addr::new(10, 0, 0, 8)) && !small.contains(Ipv4Addr::new(9, 255, 255, 255))
        );
    }
}
