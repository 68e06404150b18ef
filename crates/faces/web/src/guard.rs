//! Rules for requests: who may see pages and start loads.
//!
//! Pages of other sites run in the same browser and can send requests to any local port. So each request needs three
//! things: a `Host` that is an address and not a name, which another site may control (DNS rebinding), no other `Origin`,
//! and the token.

use std::net::{IpAddr, SocketAddr};

use sha2::{Digest as _, Sha256};

/// Rules of one server.
#[derive(Clone, Debug)]
pub struct Guard {
    token: String,
    cookie: String,
    is_remote: bool,
}

/// The facts about a request that decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts<'r> {
    /// True for methods that change nothing.
    pub is_reading: bool,
    /// The header `Host`.
    pub host: Option<&'r str>,
    /// The header `Origin`.
    pub origin: Option<&'r str>,
    /// The header `Sec-Fetch-Site`.
    pub fetch_site: Option<&'r str>,
    /// All headers `Cookie`, joined by `;`.
    pub cookies: Option<&'r str>,
    /// The value of `token` in the query.
    pub token: Option<&'r str>,
}

/// Decision about a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Admission {
    /// It is answered.
    Admitted,
    /// The token in the address is right: it becomes a cookie, and the address loses it.
    Greeted,
    /// It is refused with status 403.
    Refused(Reason),
}

/// Reason of a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// The `Host` is missing, or is a name or address that this server does not serve.
    Host,
    /// The request comes from a page of another site.
    Origin,
    /// The token is missing or wrong.
    Token,
}

impl Reason {
    /// Returns one sentence for the user.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Host => {
                "This server accepts requests only at its own address. Open the address that `stillwell ui` printed."
            }
            Self::Origin => "The request comes from a page of another site.",
            Self::Token => {
                "The token is missing. Open the address that `stillwell ui` printed, with its token."
            }
        }
    }
}

impl Guard {
    /// Rules of a server at `address`, which knows this token.
    #[must_use]
    pub fn new(token: &str, address: SocketAddr) -> Self {
        Self {
            token: token.to_owned(),
            // Cookies are shared by all ports of a host.
            cookie: format!("stillwell-ui-{}", address.port()),
            is_remote: !address.ip().is_loopback(),
        }
    }

    /// Decides about a request.
    #[must_use]
    pub fn judge(&self, facts: &RequestFacts<'_>) -> Admission {
        let Some(host) = facts.host.filter(|host| self.is_served(host)) else {
            return Admission::Refused(Reason::Host);
        };
        let is_link = facts.is_reading && facts.token.is_some_and(|token| self.is_token(token));
        if !is_same_site(facts, host, is_link) {
            return Admission::Refused(Reason::Origin);
        }
        if is_link {
            return Admission::Greeted;
        }
        let mut cookies = facts.cookies.unwrap_or_default().split(';');
        let has_token = cookies.any(|cookie| {
            let pair = cookie.trim().split_once('=');
            pair.is_some_and(|(name, value)| name == self.cookie && self.is_token(value))
        });
        match has_token {
            true => Admission::Admitted,
            false => Admission::Refused(Reason::Token),
        }
    }

    /// Returns the header `Set-Cookie` of a greeting.
    #[must_use]
    pub fn set_cookie(&self) -> String {
        let Self { token, cookie, .. } = self;
        format!("{cookie}={token}; Path=/; HttpOnly; SameSite=Strict")
    }

    /// Returns true if a `Host` is an address of this server. Names other than `localhost` may belong to another
    /// site that lets them point here. The port may differ: it may be forwarded.
    fn is_served(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            _ => host,
        };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let address = match name.strip_prefix('[') {
            Some(inside) => inside.strip_suffix(']'),
            None => Some(name).filter(|name| !name.contains(':')),
        };
        let address = address.and_then(|address| address.parse::<IpAddr>().ok());
        address.is_some_and(|address| self.is_remote || address.is_loopback())
    }

    /// Compares digests: the time says nothing about the token.
    fn is_token(&self, text: &str) -> bool {
        Sha256::digest(text.as_bytes()) == Sha256::digest(self.token.as_bytes())
    }
}

/// Returns true if a request comes from our pages, or from the user. Browsers send `Origin` with every form. `is_link`
/// is true for the address that the server printed.
fn is_same_site(facts: &RequestFacts<'_>, host: &str, is_link: bool) -> bool {
    let is_foreign = facts
        .fetch_site
        .is_some_and(|site| !matches!(site, "same-origin" | "none"));
    match facts.origin {
        Some(origin) => origin
            .strip_prefix("http://")
            .is_some_and(|origin| origin.eq_ignore_ascii_case(host)),
        // A link on another page has no `Origin`; it reads with the token alone.
        None => facts.is_reading && (is_link || !is_foreign),
    }
}

#[cfg(test)]
mod tests;
