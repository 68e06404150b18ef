use super::*;

const TOKEN: &str = "0123456789abcdef";

fn guard(address: &str) -> Guard {
    Guard::new(TOKEN, address.parse().unwrap())
}

fn reading() -> RequestFacts<'static> {
    RequestFacts {
        is_reading: true,
        host: Some("127.0.0.1:4000"),
        cookies: Some("stillwell-ui-4000=0123456789abcdef"),
        ..RequestFacts::default()
    }
}

#[test]
fn only_addresses_of_this_host_are_served() {
    for (host, local, remote) in [
        ("127.0.0.1:4000", true, true),
        ("127.0.0.1", true, true),
        ("localhost:4000", true, true),
        ("LOCALHOST", true, true),
        ("[::1]:4000", true, true),
        ("127.9.9.9:80", true, true),
        ("10.0.0.7:4000", false, true),
        ("[2001:db8::1]:4000", false, true),
        ("rebound.example:4000", false, false),
        ("127.0.0.1.example:4000", false, false),
        ("localhost.example", false, false),
        ("::1", false, false),
        ("user@127.0.0.1", false, false),
        ("127.0.0.1:port", false, false),
        ("", false, false),
    ] {
        let facts = RequestFacts {
            host: Some(host),
            ..reading()
        };
        for (address, expected) in [("127.0.0.1:4000", local), ("0.0.0.0:4000", remote)] {
            let admission = guard(address).judge(&facts);
            let is_served = admission != Admission::Refused(Reason::Host);
            assert_eq!(is_served, expected, "{host} at {address}");
        }
    }
    let facts = RequestFacts {
        host: None,
        ..reading()
    };
    let admission = guard("127.0.0.1:4000").judge(&facts);
    assert_eq!(admission, Admission::Refused(Reason::Host));
}

#[test]
fn a_request_of_another_site_is_refused() {
    let refused = Admission::Refused(Reason::Origin);
    for (is_reading, origin, fetch_site, expected) in [
        (true, None, None, Admission::Admitted),
        (true, None, Some("none"), Admission::Admitted),
        (true, None, Some("same-origin"), Admission::Admitted),
        (true, None, Some("cross-site"), refused),
        (true, None, Some("same-site"), refused),
        (
            true,
            Some("http://127.0.0.1:4000"),
            None,
            Admission::Admitted,
        ),
        (true, Some("http://127.0.0.1:5000"), None, refused),
        (
            false,
            Some("http://127.0.0.1:4000"),
            None,
            Admission::Admitted,
        ),
        (false, Some("https://127.0.0.1:4000"), None, refused),
        (false, Some("http://localhost:4000"), None, refused),
        (false, Some("http://evil.example"), None, refused),
        (false, Some("null"), None, refused),
        (false, None, None, refused),
        (false, None, Some("same-origin"), refused),
    ] {
        let facts = RequestFacts {
            is_reading,
            origin,
            fetch_site,
            ..reading()
        };
        let admission = guard("127.0.0.1:4000").judge(&facts);
        assert_eq!(admission, expected, "{origin:?} {fetch_site:?}");
    }
    for (token, expected) in [("x", refused), (TOKEN, Admission::Greeted)] {
        let facts = RequestFacts {
            fetch_site: Some("same-site"),
            token: Some(token),
            ..reading()
        };
        let admission = guard("127.0.0.1:4000").judge(&facts);
        assert_eq!(admission, expected, "{token}");
    }
}

#[test]
fn a_request_needs_the_token_of_this_server() {
    let guard = guard("127.0.0.1:4000");
    let refused = Admission::Refused(Reason::Token);
    for (cookies, token, expected) in [
        (None, None, refused),
        (
            Some("stillwell-ui-4000=0123456789abcdef"),
            None,
            Admission::Admitted,
        ),
        (
            Some("a=b; stillwell-ui-4000=0123456789abcdef"),
            None,
            Admission::Admitted,
        ),
        (Some("stillwell-ui-5000=0123456789abcdef"), None, refused),
        (Some("stillwell-ui-4000=0123456789abcde"), None, refused),
        (Some("stillwell-ui-4000="), None, refused),
        (None, Some(TOKEN), Admission::Greeted),
        (None, Some(""), refused),
        (None, Some("0123456789ABCDEF"), refused),
    ] {
        let facts = RequestFacts {
            cookies,
            token,
            ..reading()
        };
        assert_eq!(guard.judge(&facts), expected, "{cookies:?} {token:?}");
    }
    // A token in the address is for the first visit, not for forms.
    let facts = RequestFacts {
        is_reading: false,
        origin: Some("http://127.0.0.1:4000"),
        cookies: None,
        token: Some(TOKEN),
        ..reading()
    };
    assert_eq!(guard.judge(&facts), refused);
}

#[test]
fn the_cookie_belongs_to_one_port_and_is_hidden_from_scripts() {
    let cookie = guard("127.0.0.1:4000").set_cookie();
    assert_eq!(
        cookie,
        "stillwell-ui-4000=0123456789abcdef; Path=/; HttpOnly; SameSite=Strict"
    );
}
