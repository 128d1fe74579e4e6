//! Which machines an address may lead to. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who names an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NamedBy {
    /// An index of the user's, or a page of one.
    Index,
    /// A repository, which the user's own network is no business of.
    Repository,
}

/// Whether a machine is on the same link, where machines serve secrets to whatever runs on them.
pub(super) fn is_link_local(number: IpAddr) -> bool {
    match number.to_canonical() {
        IpAddr::V4(number) => number.is_link_local(),
        IpAddr::V6(number) => number.is_unicast_link_local(),
    }
}

/// Whether a number belongs to a machine that anybody may reach: not this one, not one of its networks.
pub(super) fn is_public(number: IpAddr) -> bool {
    match number.to_canonical() {
        IpAddr::V4(number) => is_public_v4(number),
        IpAddr::V6(number) => is_public_v6(number),
    }
}

fn is_public_v4(number: Ipv4Addr) -> bool {
    let [first, second, third, _] = number.octets();
    let is_special = number.is_private()
        || number.is_loopback()
        || number.is_link_local()
        || number.is_multicast()
        || number.is_documentation()
        // "This network"; shared by a provider's customers; protocols; benchmarks; reserved, with the broadcast.
        || first == 0
        || (first == 100 && second & 0xc0 == 64)
        || (first, second, third) == (192, 0, 0)
        || (first == 198 && second & 0xfe == 18)
        || first >= 240;
    !is_special
}

fn is_public_v6(number: Ipv6Addr) -> bool {
    let parts = number.segments();
    let inner = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match parts {
        // Translated to, and tunnelled to, a number of version 4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => is_public_v4(inner(high, low)),
        [0x2001, 0, ..] => false,
        // All that is given out to the world; the rest is local, reserved or for groups.
        _ => parts[0] & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_machines_of_the_world_are_public() {
        for number in
            ["1.1.1.1", "100.63.0.1", "100.128.0.1", "172.32.0.1", "2606:4700::1", "64:ff9b::101:101"]
        {
            assert!(is_public(number.parse().expect("a number")), "{number}");
        }
        for number in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:0:1::",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(number.parse().expect("a number")), "{number}");
        }
    }
}
