//! Header blocks, laid out once and sent often.

use std::net::Ipv6Addr;

use super::frame::{FRAME_HEAD_BYTES, flag, write_headers};
use super::hpack::write_literal;
use crate::decimal::write_decimal;
use crate::h1::{check_authority, check_headers, check_request_line};
use crate::{HeadError, Scheme};

/// Default path of a proxy for UDP endpoints (RFC 9298, 2).
const UDP_PATH: &str = "/.well-known/masque/udp";

/// Header by which capsules follow a head (RFC 9297, 3.4).
const CAPSULE_PROTOCOL: (&str, &str) = ("capsule-protocol", "?1");

/// The head of requests that differ in their bodies alone. It refers to nothing
/// that was sent before, so it means the same on every connection.
#[derive(Clone, Debug)]
pub struct H2RequestBlock {
    block: Block,
    is_head: bool,
    is_connect: bool,
}

/// The head of responses that differ in their bodies alone.
#[derive(Clone, Debug)]
pub struct H2ResponseBlock {
    block: Block,
}

/// Fields that follow a body.
#[derive(Clone, Debug)]
pub struct TrailerBlock {
    block: Block,
}

/// Length of the body, as its head gives it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyLength {
    /// There is none, and nothing is said.
    None,
    /// So many bytes; `content-length` says so. None follow 0.
    Bytes(u64),
    /// A body whose end will show.
    Unknown,
    /// None follow, but `content-length` says how many would: what answers
    /// `HEAD`.
    Withheld(u64),
}

impl H2RequestBlock {
    /// `method` is any but `CONNECT`; `headers` are sent as given, in order, in
    /// lower case, and may not set lengths or speak of the connection.
    ///
    /// # Errors
    /// [`HeadError`] where any part would not arrive as what it was given as.
    pub fn new(
        method: &str,
        scheme: Scheme,
        authority: &str,
        path_and_query: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, HeadError> {
        check_request_line(method, path_and_query, authority)?;
        let pseudo = [
            (":method", method),
            (":scheme", scheme.as_str()),
            (":authority", authority),
            (":path", path_and_query),
        ];
        Ok(Self {
            block: Block::new(&pseudo, headers)?,
            is_head: method == "HEAD",
            is_connect: false,
        })
    }

    /// A `CONNECT` request to a proxy for `authority`, which is a host with its port;
    /// `headers` as with [`Self::new`]. It goes with [`BodyLength::Unknown`]: after a status
    /// from 200 to 299, the bodies carry the bytes of the two ends.
    ///
    /// # Errors
    /// [`HeadError`] where any part would not arrive as what it was given as.
    pub fn connect(authority: &str, headers: &[(&str, &str)]) -> Result<Self, HeadError> {
        check_authority(authority)?;
        let pseudo = [(":method", "CONNECT"), (":authority", authority)];
        Ok(Self {
            block: Block::new(&pseudo, headers)?,
            is_head: false,
            is_connect: true,
        })
    }

    /// A request to the proxy at `scheme` and `authority` to send datagrams to the host and
    /// port of `endpoint` (RFC 9298): a name or an address, of IPv6 without its brackets.
    /// `headers` as with [`Self::new`], and without `capsule-protocol`, which is added here.
    ///
    /// It is for servers of which [`Client::peer_connect_protocol`] is true: others
    /// refuse it. It goes with [`BodyLength::Unknown`]: where the answer is from 200
    /// to 299, the bodies of both are capsules ([`crate::capsule`]).
    ///
    /// ```
    /// use stillwell_http::{Scheme, h2::H2RequestBlock};
    ///
    /// // `:path` is `/.well-known/masque/udp/2001%3Adb8%3A%3A42/53/`.
    /// let proxy = "proxy.example:4433";
    /// H2RequestBlock::connect_udp(Scheme::Https, proxy, ("2001:db8::42", 53), &[])?;
    /// # Ok::<(), stillwell_http::HeadError>(())
    /// ```
    ///
    /// # Errors
    /// [`HeadError`] where any part would not arrive as what it was given as, and for
    /// port 0.
    ///
    /// [`Client::peer_connect_protocol`]: super::Client::peer_connect_protocol
    pub fn connect_udp(
        scheme: Scheme,
        authority: &str,
        endpoint: (&str, u16),
        headers: &[(&str, &str)],
    ) -> Result<Self, HeadError> {
        check_authority(authority)?;
        let (name, _) = CAPSULE_PROTOCOL;
        if headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            let name = name.to_owned();
            return Err(HeadError::HeaderReserved { name });
        }
        let path = udp_path(endpoint)?;
        let pseudo = [
            (":method", "CONNECT"),
            (":protocol", "connect-udp"),
            (":scheme", scheme.as_str()),
            (":authority", authority),
            (":path", &path),
        ];
        let headers = [&[CAPSULE_PROTOCOL], headers].concat();
        Ok(Self {
            block: Block::new(&pseudo, &headers)?,
            is_head: false,
            is_connect: true,
        })
    }

    pub(super) const fn block(&self) -> &Block {
        &self.block
    }

    pub(super) const fn is_head(&self) -> bool {
        self.is_head
    }

    pub(super) const fn is_connect(&self) -> bool {
        self.is_connect
    }
}

impl H2ResponseBlock {
    /// `headers` as with [`H2RequestBlock::new`]; those of a connection of HTTP/1.1 are left out.
    ///
    /// # Errors
    /// [`HeadError`] for a status outside 200 to 599, and for headers that would
    /// not arrive as given.
    pub fn new(status: u16, headers: &[(&str, &str)]) -> Result<Self, HeadError> {
        if !(200..600).contains(&status) {
            return Err(HeadError::Status { status });
        }
        let pseudo = [(":status", status.to_string())];
        let pseudo = pseudo
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        let block = Block::new(&pseudo, &of_streams(headers))?;
        Ok(Self { block })
    }

    /// The same with `content-length`. Goes with [`BodyLength::Unknown`] where a
    /// body of that length follows, and with [`BodyLength::None`] where it is
    /// withheld: then all of it is laid out beforehand.
    #[must_use]
    pub fn with_content_length(&self, content_length: u64) -> Self {
        let mut block = self.block.bytes().to_vec();
        write_content_length(content_length, &mut block);
        let block = Block::framed(&block);
        Self { block }
    }

    pub(super) const fn block(&self) -> &Block {
        &self.block
    }
}

impl TrailerBlock {
    /// `trailers` as the headers of [`H2RequestBlock::new`].
    ///
    /// # Errors
    /// [`HeadError`] for trailers that would not arrive as given.
    pub fn new(trailers: &[(&str, &str)]) -> Result<Self, HeadError> {
        let block = Block::new(&[], trailers)?;
        Ok(Self { block })
    }

    pub(super) const fn block(&self) -> &Block {
        &self.block
    }
}

/// A header block behind the head of a frame that ends stream 0 with it. Longer
/// than a frame may be where the headers are.
#[derive(Clone, Debug)]
pub(super) struct Block {
    framed: Vec<u8>,
}

impl Block {
    fn new(pseudo: &[(&str, &str)], headers: &[(&str, &str)]) -> Result<Self, HeadError> {
        check_headers(headers)?;
        let mut block = Vec::new();
        for (name, value) in pseudo {
            write_literal(name.as_bytes(), value.as_bytes(), &mut block);
        }
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            let value = value.trim_ascii();
            if is_of_connection(&name, value) {
                return Err(HeadError::HeaderReserved { name });
            }
            write_literal(name.as_bytes(), value.as_bytes(), &mut block);
        }
        Ok(Self::framed(&block))
    }

    fn framed(block: &[u8]) -> Self {
        let mut framed = Vec::with_capacity(FRAME_HEAD_BYTES + block.len());
        write_headers(0, block, true, u32::MAX, &mut framed);
        Self { framed }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.framed[FRAME_HEAD_BYTES..]
    }

    /// Appends it as it is, for `stream`, which it ends or not.
    pub(super) fn write(&self, stream: u32, ends: bool, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.framed);
        if !ends {
            out[start + 4] &= !flag::END_STREAM;
        }
        out[start + 5..start + FRAME_HEAD_BYTES].copy_from_slice(&stream.to_be_bytes());
    }
}

/// Path of a proxy for `endpoint`, in whose host only the colons of IPv6 need encoding (RFC
/// 9298, 3).
fn udp_path((host, port): (&str, u16)) -> Result<String, HeadError> {
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_name = !host.is_empty() && host.bytes().all(is_host_byte);
    let is_host = is_name || host.parse::<Ipv6Addr>().is_ok();
    if !is_host || port == 0 {
        let authority = format!("{host}:{port}");
        return Err(HeadError::Authority { authority });
    }
    let host = host.replace(':', "%3A");
    Ok(format!("{UDP_PATH}/{host}/{port}/"))
}

/// Returns the headers of a response without those that are of a connection of HTTP/1.1.
pub(crate) fn of_streams<'h>(headers: &[(&'h str, &'h str)]) -> Vec<(&'h str, &'h str)> {
    let is_kept = |(name, value): &&(&str, &str)| {
        !is_of_connection(&name.to_ascii_lowercase(), value.trim_ascii())
    };
    headers.iter().filter(is_kept).copied().collect()
}

pub(crate) fn is_of_connection(name: &str, value: &str) -> bool {
    match name {
        "connection" | "keep-alive" | "proxy-connection" | "upgrade" => true,
        "te" => value != "trailers",
        _ => false,
    }
}

/// Appends `content-length` to a header block.
pub(super) fn write_content_length(content_length: u64, out: &mut Vec<u8>) {
    // Static entry 28, literal, not indexed; then the length of at most 20
    // digits, which is written over once they are known.
    out.extend_from_slice(&[0x0f, 28 - 15, 0]);
    let start = out.len();
    write_decimal(content_length, out);
    let digits = u8::try_from(out.len() - start).unwrap_or(0);
    out[start - 1] = digits;
}
