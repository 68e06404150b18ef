//! Cookies of one user, each for requests below its path (RFC 6265).

/// A cookie of a user.
#[derive(Debug)]
pub(super) struct Cookie {
    name: String,
    value: String,
    path: Vec<u8>,
}

impl Cookie {
    /// Returns true if a request for `path` has this cookie (RFC 6265, 5.1.4).
    fn is_for(&self, path: &[u8]) -> bool {
        let below = path.strip_prefix(self.path.as_slice());
        below.is_some_and(|below| {
            below.is_empty() || below.starts_with(b"/") || self.path.ends_with(b"/")
        })
    }
}

/// Keeps the cookie of a `set-cookie` header in the response to a request for `path`; an empty
/// value or `max-age=0` removes it. Cookies with other paths stay. Longer paths come first.
pub(super) fn keep_cookie(cookies: &mut Vec<Cookie>, header: &[u8], path: &[u8]) {
    let Ok(text) = str::from_utf8(header) else {
        return;
    };
    let mut fields = text.split(';').map(str::trim);
    let Some((name, value)) = fields.next().and_then(|pair| pair.split_once('=')) else {
        return;
    };
    let folder = default_path(path);
    let mut path = folder;
    let mut is_removed = value.is_empty();
    for field in fields {
        is_removed |= field.eq_ignore_ascii_case("max-age=0");
        let (attribute, value) = field.split_once('=').unwrap_or((field, ""));
        if attribute.trim_end().eq_ignore_ascii_case("path") {
            let value = value.trim_start();
            path = match value.starts_with('/') {
                true => value.as_bytes(),
                false => folder,
            };
        }
    }
    cookies.retain(|known| known.name != name || known.path != path);
    if !is_removed {
        let place = cookies.partition_point(|known| known.path.len() >= path.len());
        let cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            path: path.to_vec(),
        };
        cookies.insert(place, cookie);
    }
}

/// Appends `before` and the cookies for a request for `path`, if there are any.
pub(super) fn write_cookies(cookies: &[Cookie], path: &[u8], before: &[u8], output: &mut Vec<u8>) {
    let sent = cookies.iter().filter(|cookie| cookie.is_for(path));
    for (index, Cookie { name, value, .. }) in sent.enumerate() {
        output.extend_from_slice(if index == 0 { before } else { b"; " });
        output.extend_from_slice(name.as_bytes());
        output.push(b'=');
        output.extend_from_slice(value.as_bytes());
    }
}

/// Returns the path of a cookie that has none: the folder of the request (RFC 6265, 5.1.4).
fn default_path(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(last) if last > 0 && path.starts_with(b"/") => &path[..last],
        Some(_) | None => b"/",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cookies after responses, each a path and a header.
    fn after(responses: &[(&str, &str)]) -> Vec<Cookie> {
        let mut cookies = Vec::new();
        for (path, header) in responses {
            keep_cookie(&mut cookies, header.as_bytes(), path.as_bytes());
        }
        cookies
    }

    fn sent(cookies: &[Cookie], path: &str) -> String {
        let mut output = Vec::new();
        write_cookies(cookies, path.as_bytes(), b"", &mut output);
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn cookies_are_kept_replaced_and_removed() {
        let mut responses = vec![("/", "a=1; Path=/; Secure"), ("/", "b=2"), ("/c", "a=3")];
        assert_eq!(sent(&after(&responses), "/"), "b=2; a=3");
        responses.extend([("/", "b=2; Max-Age=0"), ("/", "none")]);
        assert_eq!(sent(&after(&responses), "/"), "a=3");
    }

    #[test]
    fn cookies_of_two_applications_are_sent_below_their_paths() {
        let cookies = after(&[
            ("/", "all=3"),
            ("/login", "JSESSIONID=1; path=/auth"),
            ("/shop/cart", "JSESSIONID=2; Path"),
        ]);
        for (path, expected) in [
            ("/auth", "JSESSIONID=1; all=3"),
            ("/auth/", "JSESSIONID=1; all=3"),
            ("/auth/a/b", "JSESSIONID=1; all=3"),
            ("/authors", "all=3"),
            ("/shop", "JSESSIONID=2; all=3"),
            ("/shop/items", "JSESSIONID=2; all=3"),
            ("/a/shop/", "all=3"),
            ("/", "all=3"),
        ] {
            assert_eq!(sent(&cookies, path), expected, "{path}");
        }
    }

    #[test]
    fn a_cookie_is_replaced_and_removed_only_at_its_path() {
        let both = [("/", "a=new; Path=/"), ("/", "a=old; Path=/old/")];
        for (header, expected) in [
            ("a=", "a=old"),
            ("a=; Path=/old/", "a=new"),
            ("a=0; Path=/old/; Max-Age=0", "a=new"),
            ("a=; Path=/old", "a=old; a=new"),
            ("a=2; Path=/old/", "a=2; a=new"),
            ("a=2", "a=old; a=2"),
        ] {
            let cookies = after(&[both[0], both[1], ("/", header)]);
            assert_eq!(sent(&cookies, "/old/x"), expected, "{header}");
        }
    }

    #[test]
    fn the_default_path_is_the_folder_of_the_request() {
        for (path, expected) in [
            ("", "/"),
            ("/", "/"),
            ("/a", "/"),
            ("/a/", "/a"),
            ("/a/b", "/a"),
            ("a/b", "/"),
        ] {
            assert_eq!(default_path(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }
}
