//! Patterns of targets, such as `*.internal:443` or `10.0.0.0/8`.

use std::net::IpAddr;
use std::str::FromStr;

/// A set of targets: `HOST[:PORT]`. A host is a name, `*.` and a domain, an address, a network
/// such as `10.0.0.0/8`, or `*`. Without a port, every port matches.
///
/// Names are compared as text. They are not resolved, so a name matches no network.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TargetPattern {
    host: HostPattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum HostPattern {
    Any,
    Name(String),
    /// With the dot before it.
    Below(String),
    Network(IpAddr, u8),
}

impl TargetPattern {
    /// Returns true if `address`, a `host:port`, is in the set.
    #[must_use]
    pub fn matches(&self, address: &str) -> bool {
        let Some((host, port)) = split(address) else {
            return false;
        };
        let is_port = self.port.is_none_or(|wanted| port == Some(wanted));
        is_port && self.host.matches(host)
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        match self {
            Self::Any => true,
            Self::Name(wanted) => *wanted == name,
            Self::Below(domain) => {
                name.ends_with(domain.as_str()) && name.parse::<IpAddr>().is_err()
            }
            Self::Network(network, bits) => name
                .parse::<IpAddr>()
                .is_ok_and(|address| is_in(address.to_canonical(), *network, *bits)),
        }
    }
}

impl FromStr for TargetPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not HOST[:PORT], such as *.internal:443, 10.0.0.0/8 or *");
        let (host, port) = split(text).ok_or_else(wrong)?;
        let is_any = host == "*";
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let host = if is_any {
            HostPattern::Any
        } else if let Ok(address) = host.parse::<IpAddr>() {
            let address = address.to_canonical();
            HostPattern::Network(address, bits_max(address))
        } else if let Some((network, bits)) = host.split_once('/') {
            let network: IpAddr = network.parse().map_err(|_| wrong())?;
            let bits: u8 = bits.parse().map_err(|_| wrong())?;
            if bits > bits_max(network) {
                return Err(wrong());
            }
            HostPattern::Network(network, bits)
        } else {
            let (name, is_domain) = match host.strip_prefix('*') {
                Some(rest) => (rest, true),
                None => (host.as_str(), false),
            };
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty()
                || !name.chars().all(is_of_name)
                || is_domain != name.starts_with('.')
            {
                return Err(wrong());
            }
            match is_domain {
                true => HostPattern::Below(name.to_owned()),
                false => HostPattern::Name(name.to_owned()),
            }
        };
        Ok(Self { host, port })
    }
}

/// Splits `HOST[:PORT]`; brackets around the host are removed.
fn split(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port.parse().ok()?),
            None if rest.is_empty() => None,
            None => return None,
        };
        return Some((host, port));
    }
    match text.rsplit_once(':') {
        // An address of version 6 without brackets.
        Some((host, _)) if host.contains(':') => Some((text, None)),
        Some((host, port)) if !host.is_empty() => Some((host, Some(port.parse().ok()?))),
        None if !text.is_empty() => Some((text, None)),
        _ => None,
    }
}

const fn bits_max(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let same = |address: u128, network: u128, length: u32| {
        let free = length - u32::from(bits);
        address.checked_shr(free).unwrap_or(0) == network.checked_shr(free).unwrap_or(0)
    };
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            same(address.to_bits().into(), network.to_bits().into(), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            same(address.to_bits(), network.to_bits(), 128)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_domains_networks_and_ports() {
        for (pattern, address, expected) in [
            ("*", "anything:1", true),
            ("*:80", "anything:81", false),
            ("example.org", "EXAMPLE.org.:80", true),
            ("example.org:443", "example.org:80", false),
            ("example.org", "an.example.org:80", false),
            ("*.example.org", "an.example.org:80", true),
            ("*.example.org", "example.org:80", false),
            ("*.example.org", "evilexample.org:80", false),
            ("10.0.0.0/8", "10.255.0.1:9", true),
            ("10.0.0.0/8:80", "10.255.0.1:9", false),
            ("10.0.0.0/8", "11.0.0.1:9", false),
            ("10.0.0.0/8", "10.example.org:9", false),
            ("0.0.0.0/0", "8.8.8.8:53", true),
            ("0.0.0.0/0", "[::1]:53", false),
            ("127.0.0.1", "127.0.0.1:9", true),
            ("127.0.0.1", "[::ffff:127.0.0.1]:9", true),
            // Resolvers take this for 127.0.0.1; here it is a name.
            ("127.0.0.0/8", "127.1:9", false),
            ("[fd00::/8]:80", "[fd12::1]:80", true),
            ("fd00::/8", "[fe80::1]:80", false),
            ("::1", "[::1]:80", true),
        ] {
            let parsed: TargetPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(address), expected, "{pattern} {address}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "",
            ":80",
            "a:b",
            "10.0.0.0/33",
            "a/8",
            "*a",
            "http://a",
            "a b",
            "[::1",
            "*.",
        ] {
            assert!(text.parse::<TargetPattern>().is_err(), "{text}");
        }
    }
}
