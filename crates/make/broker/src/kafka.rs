//! Kafka's protocol for a producer: metadata of a topic, record batches, and PLAIN:
//! <https://kafka.apache.org/protocol>.
//!
//! Each request and response is a length of four bytes and a payload. Versions are those that Kafka has
//! supported since 2.1 and supports in 4.0: metadata 4, produce 7.

mod batch;
mod compression;
#[cfg(test)]
mod tests;

use stillwell_units::ShortText;

use crate::Malformed;
use crate::bytes::Cursor;

pub use batch::BatchWriter;
pub use compression::{Compression, CompressionFailed};

/// Largest response; one with thousands of partitions has several hundred KiB.
const RESPONSE_BYTES_MAX: i32 = 16 << 20;

const PRODUCE: (i16, i16) = (0, 7);
const METADATA: (i16, i16) = (3, 4);
const SASL_HANDSHAKE: (i16, i16) = (17, 1);
const SASL_AUTHENTICATE: (i16, i16) = (36, 0);

const CLIENT: &str = "stillwell";

/// A complete response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Response<'a> {
    /// Correlation id of the request.
    pub number: i32,
    /// Its body.
    pub body: &'a [u8],
}

/// Reads the first response in `input`. Returns it with its length.
///
/// # Errors
/// [`Malformed`] if the bytes are not Kafka.
pub fn read(input: &[u8]) -> Result<Option<(Response<'_>, usize)>, Malformed> {
    let Some((length, rest)) = input.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*length);
    if !(4..=RESPONSE_BYTES_MAX).contains(&length) {
        return Err(Malformed("a Kafka response"));
    }
    let mut cursor = Cursor::new(rest, "a Kafka response");
    let length = cursor.length(length)?;
    if rest.len() < length {
        return Ok(None);
    }
    let number = cursor.i32()?;
    let body = &rest[4..length];
    Ok(Some((Response { number, body }, 4 + length)))
}

/// An error that a broker answered with: its code, above or below zero.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Refusal(pub i16);

impl Refusal {
    /// Returns the error for a response's code; `None` for code 0, no error.
    #[must_use]
    pub const fn of(code: i16) -> Option<Self> {
        match code {
            0 => None,
            code => Some(Self(code)),
        }
    }

    /// The request is at fault, not the state of the broker.
    #[must_use]
    pub const fn is_client_error(self) -> bool {
        // Corrupt, unknown topic, message or batch too large, invalid topic, acks or timestamp, no permission,
        // unknown mechanism or version, wrong password, and policy violation.
        matches!(
            self.0,
            2 | 3 | 10 | 17 | 18 | 21 | 29 | 31..=35 | 42 | 43 | 44 | 53 | 58 | 76 | 87
        )
    }

    /// Another broker may now lead the partition.
    #[must_use]
    pub const fn needs_metadata(self) -> bool {
        matches!(self.0, 3 | 5 | 6)
    }
}

/// A topic's partitions, and who leads them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Metadata {
    /// Brokers: their numbers, and `host:port`.
    pub brokers: Vec<(i32, String)>,
    /// Error of the topic, if it is not available.
    pub refusal: Option<Refusal>,
    /// Partitions with a leader, and who that is, in order of partitions.
    pub partitions: Vec<(i32, i32)>,
}

impl Metadata {
    /// Parses the response to [`write_metadata`], of several topics the first.
    ///
    /// # Errors
    /// [`Malformed`] if `body` is not such a response.
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(body, "metadata of Kafka");
        let mut metadata = Self::default();
        cursor.i32()?;
        for _ in 0..cursor.i32()?.max(0) {
            let (number, host) = (cursor.i32()?, text(&mut cursor)?);
            let port = cursor.i32()?;
            text(&mut cursor)?;
            let is_v6 = host.contains(':');
            metadata.brokers.push(match is_v6 {
                true => (number, format!("[{host}]:{port}")),
                false => (number, format!("{host}:{port}")),
            });
        }
        // The cluster, and its controller.
        text(&mut cursor)?;
        cursor.i32()?;
        if cursor.i32()? < 1 {
            return Err(cursor.malformed());
        }
        metadata.refusal = Refusal::of(cursor.i16()?);
        text(&mut cursor)?;
        cursor.u8()?;
        for _ in 0..cursor.i32()?.max(0) {
            let (code, partition) = (cursor.i16()?, cursor.i32()?);
            let leader = cursor.i32()?;
            for _ in 0..2 {
                let replicas = cursor.i32()?.max(0);
                let bytes = cursor.length(replicas)?.saturating_mul(4);
                cursor.take(bytes)?;
            }
            if leader >= 0 && code != 5 {
                metadata.partitions.push((partition, leader));
            }
        }
        metadata.partitions.sort_unstable();
        Ok(metadata)
    }
}

/// Parses the response to one batch.
///
/// # Errors
/// [`Malformed`] if `body` is not such a response.
pub fn read_produced(body: &[u8]) -> Result<Option<Refusal>, Malformed> {
    let mut cursor = Cursor::new(body, "a Kafka produce response");
    if cursor.i32()? != 1 {
        return Err(cursor.malformed());
    }
    text(&mut cursor)?;
    if cursor.i32()? != 1 {
        return Err(cursor.malformed());
    }
    cursor.i32()?;
    Ok(Refusal::of(cursor.i16()?))
}

/// Parses the response to a mechanism or a password.
///
/// # Errors
/// [`Malformed`] if `body` is not such a response.
pub fn read_sasl(body: &[u8]) -> Result<Option<Refusal>, Malformed> {
    let mut cursor = Cursor::new(body, "a Kafka authentication response");
    Ok(Refusal::of(cursor.i16()?))
}

/// Reads a text; empty if it is null.
fn text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, Malformed> {
    let length = cursor.i16()?;
    if length < 0 {
        return Ok("");
    }
    let bytes = cursor.take(cursor.length(length)?)?;
    std::str::from_utf8(bytes).map_err(|_| cursor.malformed())
}

/// Appends the request for the metadata of `topic`. With `create` the broker makes the topic if its
/// configuration permits it.
pub fn write_metadata(topic: &ShortText, create: bool, number: i32, out: &mut Vec<u8>) {
    request(METADATA, number, out, |out| {
        out.extend_from_slice(&1_i32.to_be_bytes());
        put_text(topic, out);
        out.push(u8::from(create));
    });
}

/// Appends the request to authenticate by PLAIN.
pub fn write_sasl_handshake(number: i32, out: &mut Vec<u8>) {
    request(SASL_HANDSHAKE, number, out, |out| put_name("PLAIN", out));
}

/// Appends the credentials.
pub fn write_sasl_plain(user: &str, password: &str, number: i32, out: &mut Vec<u8>) {
    let plain = format!("\0{user}\0{password}");
    request(SASL_AUTHENTICATE, number, out, |out| {
        let length = length_of(plain.len());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(plain.as_bytes());
    });
}

/// Acknowledgement that a batch requires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Acks {
    /// No response.
    None,
    /// Its leader has it.
    Leader,
    /// All replicas in sync have it.
    All,
}

impl Acks {
    const fn number(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

/// Appends requests that hold one batch of records each.
#[derive(Clone, Debug)]
pub struct Producer {
    acks: Acks,
    /// Longest wait of the broker for replicas, in milliseconds.
    timeout_ms: i32,
    topic: ShortText,
}

impl Producer {
    /// To `topic`.
    #[must_use]
    pub fn new(topic: &ShortText, acks: Acks, timeout_ms: i32) -> Self {
        Self {
            acks,
            timeout_ms,
            topic: topic.clone(),
        }
    }

    /// Appends a request for `partition` whose records `write` appends. Returns the value that `write`
    /// returned. After an error `out` is unchanged.
    ///
    /// # Errors
    /// The error of `write`.
    pub fn write<E>(
        &self,
        partition: i32,
        number: i32,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = out.len();
        let mut result = Ok(());
        request(PRODUCE, number, out, |out| {
            // No transaction.
            out.extend_from_slice(&(-1_i16).to_be_bytes());
            out.extend_from_slice(&self.acks.number().to_be_bytes());
            out.extend_from_slice(&self.timeout_ms.to_be_bytes());
            out.extend_from_slice(&1_i32.to_be_bytes());
            put_text(&self.topic, out);
            out.extend_from_slice(&1_i32.to_be_bytes());
            out.extend_from_slice(&partition.to_be_bytes());
            with_length(out, |out| result = write(out));
        });
        if result.is_err() {
            out.truncate(before);
        }
        result
    }
}

fn request(
    (key, version): (i16, i16),
    number: i32,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    with_length(out, |out| {
        out.extend_from_slice(&key.to_be_bytes());
        out.extend_from_slice(&version.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        put_name(CLIENT, out);
        write(out);
    });
}

/// Appends what `write` appends, behind its length.
fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = length_of(out.len() - begin - 4);
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
}

/// Returns the length of a request or of a part of it.
///
/// # Panics
/// From 2 GiB on. No cache of blocks has a block that large.
fn length_of(bytes: usize) -> i32 {
    i32::try_from(bytes).expect("a request has fewer than 2 GiB")
}

fn put_text(text: &ShortText, out: &mut Vec<u8>) {
    out.extend_from_slice(&i16::from(text.length()).to_be_bytes());
    out.extend_from_slice(text.as_str().as_bytes());
}

/// Appends a text that this module names.
fn put_name(name: &'static str, out: &mut Vec<u8>) {
    let length = i16::try_from(name.len()).expect("names of the protocol are short");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(name.as_bytes());
}
