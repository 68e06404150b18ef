//! Meaning of fields, and the rules of messages (RFC 9113, 8; RFC 8441, 4).

use super::fields::Fields;
use crate::INTERIM_MAX;
use crate::decimal::parse_decimal;

/// Parts of a response, from its fields.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResponseParts {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
}

/// Parts of a request, from its fields. Texts are places in the list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestParts {
    method: usize,
    protocol: Option<usize>,
    scheme: Option<usize>,
    authority: Option<usize>,
    path: Option<usize>,
    pub(crate) content_length: Option<u64>,
}

/// The head of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseHead<'a> {
    /// The status code, such as 200.
    pub status: u16,
    /// The body's length in bytes, where the head says it.
    pub content_length: Option<u64>,
    /// All fields, `:status` among them.
    pub fields: Fields<'a>,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestHead<'a> {
    /// The method, such as `POST`; case matters.
    pub method: &'a str,
    /// The protocol that `CONNECT` is to carry, such as `connect-udp`; only where the server
    /// takes it (RFC 8441).
    pub protocol: Option<&'a str>,
    /// `http` or `https`; empty for `CONNECT` without a protocol.
    pub scheme: &'a str,
    /// Host with or without port, from `:authority` or else `host`; may be empty.
    pub authority: &'a str,
    /// Path and query; empty for `CONNECT` without a protocol.
    pub path: &'a str,
    /// The body's length in bytes, where the head says it.
    pub content_length: Option<u64>,
    /// All fields, pseudo-fields among them.
    pub fields: Fields<'a>,
}

impl ResponseParts {
    pub(crate) fn parse(fields: Fields<'_>) -> Result<Self, &'static str> {
        let mut status = None;
        let content_length = parse(fields, |_, name, value| {
            let is_again = name != b":status" || status.is_some();
            status = parse_status(value);
            !is_again && status.is_some()
        })?;
        Ok(Self {
            status: status.ok_or("a response without `:status`")?,
            content_length,
        })
    }

    /// Returns true for an interim response, and counts it in `interim`, the number of those to
    /// the same request.
    ///
    /// # Errors
    /// It switches protocols, or there are too many of them.
    pub(crate) const fn count_interim(&self, interim: &mut u8) -> Result<bool, &'static str> {
        match self.status {
            101 => Err("a switch of protocols"),
            ..200 if *interim == INTERIM_MAX => Err("more than 100 interim responses"),
            ..200 => {
                *interim += 1;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(crate) const fn head<'a>(&self, fields: Fields<'a>) -> ResponseHead<'a> {
        ResponseHead {
            status: self.status,
            content_length: self.content_length,
            fields,
        }
    }
}

impl RequestParts {
    /// `:protocol` is a pseudo-field like others where `connect_protocol`, and one that
    /// is not known elsewhere.
    pub(crate) fn parse(fields: Fields<'_>, connect_protocol: bool) -> Result<Self, &'static str> {
        let (mut method, mut scheme, mut authority, mut path) = (None, None, None, None);
        let mut protocol = None;
        let content_length = parse(fields, |place, name, value| {
            let slot = match name {
                b":method" => &mut method,
                b":scheme" => &mut scheme,
                b":authority" => &mut authority,
                b":path" => &mut path,
                b":protocol" if connect_protocol => &mut protocol,
                _ => return false,
            };
            let is_text = value.iter().all(u8::is_ascii_graphic);
            slot.replace(place).is_none() && is_text
        })?;
        let method = method.ok_or("a request without `:method`")?;
        let mut values = fields.iter().map(|(_, value)| value);
        let is_connect = values.nth(method) == Some(b"CONNECT");
        let has_path = path.is_some_and(|place| {
            let value = fields.iter().nth(place);
            value.is_some_and(|(_, value)| value.starts_with(b"/") || value == b"*")
        });
        if protocol.is_some() && !is_connect {
            return Err("a `:protocol` with a method other than `CONNECT`");
        }
        let fits = if is_connect && protocol.is_none() {
            scheme.is_none() && path.is_none()
        } else {
            scheme.is_some() && has_path
        };
        if !fits {
            return Err("a request with a missing, misplaced or malformed `:scheme` or `:path`");
        }
        Ok(Self {
            method,
            protocol,
            scheme,
            authority: authority.or_else(|| place_of_host(fields)),
            path,
            content_length,
        })
    }

    pub(crate) fn head<'a>(&self, fields: Fields<'a>) -> RequestHead<'a> {
        let text = |place: Option<usize>| {
            let field = place.and_then(|place| fields.iter().nth(place));
            // Checked to be printable before.
            field.map_or("", |(_, value)| str::from_utf8(value).unwrap_or(""))
        };
        RequestHead {
            method: text(Some(self.method)),
            protocol: self.protocol.map(|place| text(Some(place))),
            scheme: text(self.scheme),
            authority: text(self.authority),
            path: text(self.path),
            content_length: self.content_length,
            fields,
        }
    }
}

/// Refuses trailers that are none.
pub(crate) fn check_trailers(fields: Fields<'_>) -> Result<(), &'static str> {
    parse(fields, |_, _, _| false).map(|_| ())
}

/// Checks all fields, hands pseudo-fields with their places to `pseudo`, which returns true
/// for a valid one, and gives the length of the body.
fn parse(
    fields: Fields<'_>,
    mut pseudo: impl FnMut(usize, &[u8], &[u8]) -> bool,
) -> Result<Option<u64>, &'static str> {
    let mut content_length = None;
    let mut in_front = true;
    for (place, (name, value)) in fields.iter().enumerate() {
        check_value(value)?;
        if name.starts_with(b":") {
            if !in_front || !pseudo(place, name, value) {
                return Err("a pseudo-field that is unknown, repeated, malformed or misplaced");
            }
            continue;
        }
        in_front = false;
        check_name(name)?;
        match name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => return Err("a field that is specific to a connection"),
            b"te" if value != b"trailers" => return Err("`te` other than `trailers`"),
            b"content-length" => {
                let length = parse_decimal(value).ok_or("`content-length` is not a number")?;
                if content_length
                    .replace(length)
                    .is_some_and(|earlier| earlier != length)
                {
                    return Err("two `content-length` fields that differ");
                }
            }
            _ => {}
        }
    }
    Ok(content_length)
}

fn check_name(name: &[u8]) -> Result<(), &'static str> {
    let is_name_byte =
        |byte: &u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && *byte != b':';
    if name.is_empty() || !name.iter().all(is_name_byte) {
        return Err("a field with an invalid name");
    }
    Ok(())
}

fn check_value(value: &[u8]) -> Result<(), &'static str> {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_space(value.first()) || is_space(value.last()) {
        return Err("a field whose value begins or ends with space");
    }
    if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        return Err("a field whose value holds a line end");
    }
    Ok(())
}

fn parse_status(value: &[u8]) -> Option<u16> {
    let digits: &[u8; 3] = value.try_into().ok()?;
    let status = digits.iter().try_fold(0, |status, digit| {
        digit
            .is_ascii_digit()
            .then(|| 10 * status + u16::from(digit - b'0'))
    })?;
    (status >= 100).then_some(status)
}

fn place_of_host(fields: Fields<'_>) -> Option<usize> {
    fields
        .iter()
        .position(|(name, value)| name == b"host" && value.iter().all(u8::is_ascii_graphic))
}
