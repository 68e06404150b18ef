//! Addresses and URLs as people write them.

/// `text` as `host:port`, with a host and a port from 1 to 65535.
///
/// # Errors
/// What is wrong with it, as a fragment.
pub fn check_address(text: &str) -> Result<(&str, u16), &'static str> {
    let (host, port) = text
        .rsplit_once(':')
        .ok_or("it has no port: write `host:port`")?;
    if host.is_empty() {
        return Err("it has no host: write `host:port`");
    }
    if host.contains('%') {
        return Err("an address with a zone (`%eth0`) is not supported");
    }
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains(['/', ' ', '@']) || (host.contains(':') && !bracketed) {
        return Err("it is not `host:port`; an IPv6 address needs brackets");
    }
    let port = port
        .parse()
        .map_err(|_| "its port is not a number from 0 to 65535")?;
    Ok((host, port))
}

/// The `host:port` of an `http://` URL; the port is 80 if none is given.
///
/// # Errors
/// What is wrong with it, as a fragment.
pub fn check_url(text: &str) -> Result<String, &'static str> {
    if text.starts_with("https://") {
        return Err("TLS is not supported here: write an `http://` URL");
    }
    if !text.starts_with("http://") {
        return Err("it does not begin with `http://`");
    }
    check_any_url(text)
}

/// The `host:port` of an `http://` or `https://` URL; the port is 80 or 443 if none
/// is given.
///
/// # Errors
/// What is wrong with it, as a fragment.
pub fn check_any_url(text: &str) -> Result<String, &'static str> {
    let plain = text.strip_prefix("http://").map(|rest| (rest, 80));
    let secure = || text.strip_prefix("https://").map(|rest| (rest, 443));
    let (rest, port) = plain
        .or_else(secure)
        .ok_or("it does not begin with `http://` or `https://`")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("it contains a space");
    }
    if authority.contains('@') {
        return Err("it holds a user name, which is not supported");
    }
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.contains(']'));
    let address = if has_port {
        authority.to_owned()
    } else {
        format!("{authority}:{port}")
    };
    check_address(&address)?;
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_host_and_port() {
        for text in [
            "127.0.0.1:80",
            "localhost:8080",
            "[::1]:9",
            "host.example:1",
        ] {
            assert!(check_address(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "9100",
            ":9100",
            "a:b",
            "a:70000",
            "::1:9",
            "http://a:1",
            "[fe80::1%eth0]:9",
        ] {
            assert!(check_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn urls_become_addresses() {
        for (text, address) in [
            ("http://localhost:8282/v1/input", "localhost:8282"),
            ("http://a/b:c", "a:80"),
            ("http://[::1]/x", "[::1]:80"),
            ("http://[::1]:9/x", "[::1]:9"),
        ] {
            assert_eq!(check_url(text).unwrap(), address);
            assert_eq!(check_any_url(text).unwrap(), address);
        }
        assert_eq!(check_any_url("https://a/b").unwrap(), "a:443");
        assert_eq!(check_any_url("https://a:1/b").unwrap(), "a:1");
        assert!(check_any_url("ftp://a/b").is_err());
        for text in [
            "",
            "a:1",
            "https://a",
            "http://",
            "http://a b/",
            "http://u@h/",
        ] {
            assert!(check_url(text).is_err(), "{text}");
        }
    }
}
