//! Addresses of requests.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

const ACCEPTED: &str = "write `http://HOST[:PORT][/PATH]`, such as `http://127.0.0.1:8080/in` or \
                        `http://[::1]:8080/`";

/// An address that load or a probe is sent to, from a URL: what to dial and what
/// to request. A fragment (`#…`) is never sent and so is left out.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Target {
    scheme: Scheme,
    host: String,
    port: u16,
    path_and_query: String,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Scheme {
    /// Without encryption.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// Returns the scheme as in a URL, such as `http`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of URLs that give none.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A URL that is not accepted. The message says what is accepted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TargetError {
    /// A URL with TLS, which is not supported here.
    #[error("`{input}` needs TLS, which is not supported here: write `http://…`")]
    HttpsUnsupported {
        /// The typed text.
        input: String,
    },
    /// No scheme, or an unknown one.
    #[error("`{input}` does not start with `http://`: {ACCEPTED}")]
    Scheme {
        /// The typed text.
        input: String,
    },
    /// A user name or password, which would end up in results.
    #[error("`{input}` holds a user name: give credentials as a header instead")]
    UserInfo {
        /// The typed text.
        input: String,
    },
    /// A host that is missing or is neither a name nor an address.
    #[error("`{input}` has no host that is a name or an address: {ACCEPTED}")]
    Host {
        /// The typed text.
        input: String,
    },
    /// A port that is not a number from 1 to 65535.
    #[error("the port in `{input}` is not a number from 1 to 65535: {ACCEPTED}")]
    Port {
        /// The typed text.
        input: String,
    },
    /// A path with characters that cannot be sent.
    #[error("the path in `{input}` holds spaces or characters beyond ASCII: write them as `%20`")]
    Path {
        /// The typed text.
        input: String,
    },
}

impl Target {
    /// As from text, but takes `https://` too: for those who can speak TLS.
    ///
    /// # Errors
    /// [`TargetError`] where it is no such URL.
    pub fn from_url(text: &str) -> Result<Self, TargetError> {
        let input = || without_user(text);
        let (scheme, rest) = text
            .trim()
            .split_once("://")
            .ok_or_else(|| TargetError::Scheme { input: input() })?;
        let scheme = [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|known| scheme.eq_ignore_ascii_case(known.as_str()))
            .ok_or_else(|| TargetError::Scheme { input: input() })?;
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(TargetError::UserInfo { input: input() });
        }
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TargetError::Path { input: input() });
        }
        let (host, port) =
            split_authority(authority).ok_or_else(|| TargetError::Host { input: input() })?;
        let port = match port {
            None => scheme.port(),
            Some(digits) => {
                parse_port(digits).ok_or_else(|| TargetError::Port { input: input() })?
            }
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            scheme,
            host: host.to_owned(),
            port,
            path_and_query: format!("{slash}{path}"),
        })
    }

    /// Returns the scheme.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The name or address to dial; an IPv6 address without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port to dial: the scheme's where none was given.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path with the query; starts with `/`.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    /// Returns the value of `Host`: the port only where it is not the scheme's default.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.scheme.port() {
            self.bracketed_host()
        } else {
            self.dial_address()
        }
    }

    /// Returns host and port, always both, for a resolver.
    #[must_use]
    pub fn dial_address(&self) -> String {
        format!("{}:{}", self.bracketed_host(), self.port)
    }

    /// Returns the loopback address that it names, `localhost` included; `None` for other hosts.
    #[must_use]
    pub fn loopback(&self) -> Option<SocketAddr> {
        let ip = match self.host.as_str() {
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            host => host.parse().ok().filter(IpAddr::is_loopback)?,
        };
        Some(SocketAddr::new(ip, self.port))
    }

    /// An IPv6 address in the brackets that it needs before a port.
    fn bracketed_host(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme.as_str();
        write!(f, "{scheme}://{}{}", self.authority(), self.path_and_query)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let target = Self::from_url(text)?;
        match target.scheme {
            Scheme::Http => Ok(target),
            Scheme::Https => Err(TargetError::HttpsUnsupported {
                input: text.to_owned(),
            }),
        }
    }
}

/// Host without brackets, and what follows the colon.
fn split_authority(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return match after.strip_prefix(':') {
            None if !after.is_empty() => None,
            port => Some((host, port)),
        };
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (!host.is_empty() && host.bytes().all(is_host_byte)).then_some((host, port))
}

/// Digits alone: `+80` is not a port.
fn parse_port(digits: &str) -> Option<u16> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|port| *port != 0)
}

/// Returns `text` with the user name and password of a URL replaced: messages end up in logs.
fn without_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(place) => format!("{scheme}://***{}", &rest[place..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn targets_read_as_written() {
        for (text, host, port, path, authority) in [
            ("http://localhost", "localhost", 80, "/", "localhost"),
            ("HTTP://a.b:80/x", "a.b", 80, "/x", "a.b"),
            (
                "http://127.0.0.1:8080/in?a=b#c",
                "127.0.0.1",
                8080,
                "/in?a=b",
                "127.0.0.1:8080",
            ),
            ("http://h?q=/", "h", 80, "/?q=/", "h"),
            ("http://[::1]:9/", "::1", 9, "/", "[::1]:9"),
            ("http://[fe80::1]", "fe80::1", 80, "/", "[fe80::1]"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!((target.host(), target.port()), (host, port), "{text}");
            assert_eq!(target.path_and_query(), path, "{text}");
            assert_eq!(target.authority(), authority, "{text}");
            let dialled = target.dial_address();
            match target.host().parse::<Ipv6Addr>() {
                Ok(host) => assert_eq!(dialled.parse(), Ok(SocketAddr::from((host, port)))),
                Err(_) => assert_eq!(dialled, format!("{host}:{port}")),
            }
            assert_eq!(target.to_string().parse(), Ok(target));
        }
    }

    #[test]
    fn urls_over_tls_need_their_option() {
        for (text, port, authority) in [
            ("HTTPS://h/x", 443, "h"),
            ("https://h:443/x", 443, "h"),
            ("https://[::1]:80/x", 80, "[::1]:80"),
        ] {
            let target = Target::from_url(text).unwrap();
            assert_eq!(
                (target.scheme(), target.port()),
                (Scheme::Https, port),
                "{text}"
            );
            assert_eq!(target.authority(), authority, "{text}");
            assert_eq!(Target::from_url(&target.to_string()), Ok(target));
        }
        assert_eq!(
            Target::from_url("http://h:443").unwrap().authority(),
            "h:443"
        );
    }

    #[test]
    fn what_is_not_a_target_is_named() {
        fn kind(text: &str) -> &'static str {
            match text.parse::<Target>().unwrap_err() {
                TargetError::HttpsUnsupported { .. } => "https",
                TargetError::Scheme { .. } => "scheme",
                TargetError::UserInfo { .. } => "user",
                TargetError::Host { .. } => "host",
                TargetError::Port { .. } => "port",
                TargetError::Path { .. } => "path",
            }
        }
        for (text, expected) in [
            ("https://a/", "https"),
            ("localhost:80", "scheme"),
            ("ftp://a", "scheme"),
            ("", "scheme"),
            ("http://user:word@a/", "user"),
            ("http://", "host"),
            ("http://:80", "host"),
            ("http://a b/", "host"),
            ("http://::1/", "host"),
            ("http://[::1", "host"),
            ("http://[::1]80", "host"),
            ("http://[fe80::1%25eth0]/", "host"),
            ("http://a\r\nx/", "host"),
            ("http://a:", "port"),
            ("http://a:0", "port"),
            ("http://a:+80", "port"),
            ("http://a:65536", "port"),
            ("http://a/ä", "path"),
            ("http://a/x y", "path"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
        assert_eq!(
            "localhost".parse::<Target>().unwrap_err().to_string(),
            "`localhost` does not start with `http://`: write `http://HOST[:PORT][/PATH]`, such \
             as `http://127.0.0.1:8080/in` or `http://[::1]:8080/`"
        );
    }

    proptest! {
        #[test]
        fn for_all_texts_nothing_panics_and_what_parses_reads_back(text in "(http://)?\\PC{0,40}") {
            if let Ok(target) = text.parse::<Target>() {
                prop_assert_eq!(target.to_string().parse::<Target>(), Ok(target));
            }
        }
    }

    #[test]
    fn messages_do_not_repeat_a_password() {
        for text in [
            "http://user:s3cret@a/",
            "https://s3cret@a:0/",
            "ftp://u:s3cret@a",
        ] {
            let error = Target::from_url(text).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
            assert!(error.contains("***@a"), "{error}");
        }
    }
}
