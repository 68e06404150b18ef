//! Heads, laid out once and sent often.

use super::BodyLength;
use super::frame::{kind, write_head};
use super::message::H3MessageReader;
use super::qpack::{self, encode_field};
use crate::HeadError;
use crate::decimal::write_decimal;
use crate::h1::{check_authority, check_headers, check_request_line};
use crate::h2::block::{is_of_connection, of_streams};

/// The head of requests that differ in their bodies alone. It means the same on
/// every connection.
#[derive(Clone, Debug)]
pub struct H3RequestBlock {
    section: Vec<u8>,
    is_head: bool,
    is_connect: bool,
}

/// The head of responses that differ in their bodies alone.
#[derive(Clone, Debug)]
pub struct H3ResponseBlock {
    section: Vec<u8>,
}

impl H3RequestBlock {
    /// `method` is any but `CONNECT`; the scheme is `https`. `headers` are sent as
    /// given, in order, in lower case, and may not set lengths or speak of the
    /// connection.
    ///
    /// # Errors
    /// [`HeadError`] where any part would not arrive as what it was given as.
    pub fn new(
        method: &str,
        authority: &str,
        path_and_query: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, HeadError> {
        check_request_line(method, path_and_query, authority)?;
        let pseudo = [
            (":method", method),
            (":scheme", "https"),
            (":authority", authority),
            (":path", path_and_query),
        ];
        Ok(Self {
            section: section(&pseudo, headers)?,
            is_head: method == "HEAD",
            is_connect: false,
        })
    }

    /// A `CONNECT` request to a proxy for `authority`, which is a host with its port (RFC
    /// 9114, 4.4); `headers` as with [`Self::new`]. It goes with [`BodyLength::Unknown`]:
    /// after a status from 200 to 299, the bodies carry the bytes of the two ends.
    ///
    /// # Errors
    /// [`HeadError`] where any part would not arrive as what it was given as.
    pub fn connect(authority: &str, headers: &[(&str, &str)]) -> Result<Self, HeadError> {
        check_authority(authority)?;
        let pseudo = [(":method", "CONNECT"), (":authority", authority)];
        Ok(Self {
            section: section(&pseudo, headers)?,
            is_head: false,
            is_connect: true,
        })
    }

    /// Returns the reader of its answer.
    #[must_use]
    pub const fn answer_reader(&self) -> H3MessageReader {
        match self.is_connect {
            true => H3MessageReader::led(),
            false => H3MessageReader::response(self.is_head),
        }
    }

    /// Returns true if its method is `CONNECT`.
    #[must_use]
    pub const fn is_connect(&self) -> bool {
        self.is_connect
    }

    /// The room that it takes as a frame, with any length of a body, in bytes.
    #[must_use]
    pub const fn bytes_max(&self) -> usize {
        self.section.len() + 64
    }

    /// Appends it as a frame, with headers of this one time, whose names are in
    /// lower case and which are not checked, and with what `body` says.
    pub fn write(&self, extra: &[(&str, &[u8])], body: BodyLength, out: &mut Vec<u8>) {
        write_section(&self.section, extra, body, out);
    }
}

impl H3ResponseBlock {
    /// `headers` as with [`H3RequestBlock::new`]; those of a connection of HTTP/1.1 are left out.
    ///
    /// # Errors
    /// [`HeadError`] for a status outside 200 to 599, and for headers that would
    /// not arrive as given.
    pub fn new(status: u16, headers: &[(&str, &str)]) -> Result<Self, HeadError> {
        if !(200..600).contains(&status) {
            return Err(HeadError::Status { status });
        }
        let status = status.to_string();
        let section = section(&[(":status", &status)], &of_streams(headers))?;
        Ok(Self { section })
    }

    /// Appends it as [`H3RequestBlock::write`] does.
    pub fn write(&self, extra: &[(&str, &[u8])], body: BodyLength, out: &mut Vec<u8>) {
        write_section(&self.section, extra, body, out);
    }

    /// Appends the head that lets a client that waits with `expect: 100-continue` send its
    /// body.
    pub fn write_continue(out: &mut Vec<u8>) {
        let mut section = Vec::new();
        qpack::encode([(b":status".as_slice(), b"100".as_slice())], &mut section);
        write_section(&section, &[], BodyLength::None, out);
    }
}

/// Appends the head of `length` bytes of a body.
pub fn write_data_head(length: usize, out: &mut Vec<u8>) {
    write_head(kind::DATA, length, out);
}

fn section(pseudo: &[(&str, &str)], headers: &[(&str, &str)]) -> Result<Vec<u8>, HeadError> {
    check_headers(headers)?;
    let mut section = Vec::new();
    let fields = pseudo.iter();
    let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    qpack::encode(fields, &mut section);
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        let value = value.trim_ascii();
        if is_of_connection(&name, value) {
            return Err(HeadError::HeaderReserved { name });
        }
        encode_field(name.as_bytes(), value.as_bytes(), &mut section);
    }
    Ok(section)
}

fn write_section(section: &[u8], extra: &[(&str, &[u8])], body: BodyLength, out: &mut Vec<u8>) {
    let mut added = Vec::new();
    if let BodyLength::Bytes(length) | BodyLength::Withheld(length) = body {
        let mut digits = Vec::with_capacity(20);
        write_decimal(length, &mut digits);
        encode_field(b"content-length", &digits, &mut added);
    }
    for (name, value) in extra {
        encode_field(name.as_bytes(), value, &mut added);
    }
    write_head(kind::HEADERS, section.len() + added.len(), out);
    out.extend_from_slice(section);
    out.extend_from_slice(&added);
}
