//! What a producer needs of Kafka's protocol: metadata of a topic, record batches, and
//! PLAIN: <https://kafka.apache.org/protocol>.
//!
//! Each request and answer is a length of four bytes and so many bytes. Versions are
//! those that Kafka knows since 2.1 and 4.0 still does: metadata 4, produce 7.

mod batch;
mod compression;
mod crc;
#[cfg(test)]
mod tests;

use crate::Malformed;
use crate::bytes::Cursor;

pub use batch::BatchWriter;
pub use compression::{Compression, CompressionFailed};

/// No answer is larger; one about thousands of partitions has some hundred KiB.
const ANSWER_BYTES_MAX: i32 = 16 << 20;

const PRODUCE: (i16, i16) = (0, 7);
const METADATA: (i16, i16) = (3, 4);
const SASL_HANDSHAKE: (i16, i16) = (17, 1);
const SASL_AUTHENTICATE: (i16, i16) = (36, 0);

const CLIENT: &str = "stillwell";

/// A whole answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer<'a> {
    /// The number of the request that it answers.
    pub number: i32,
    /// What it says.
    pub body: &'a [u8],
}

/// The first answer in `input`, and its length.
///
/// # Errors
/// [`Malformed`] where this is no Kafka.
pub fn read(input: &[u8]) -> Result<Option<(Answer<'_>, usize)>, Malformed> {
    let Some((length, rest)) = input.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*length);
    if !(4..=ANSWER_BYTES_MAX).contains(&length) {
        return Err(Malformed("an answer of Kafka"));
    }
    let mut cursor = Cursor::new(rest, "an answer of Kafka");
    let length = cursor.length(length)?;
    if rest.len() < length {
        return Ok(None);
    }
    let number = cursor.i32()?;
    let body = &rest[4..length];
    Ok(Some((Answer { number, body }, 4 + length)))
}

/// An error that a broker answered with: its code, above or below zero.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Refusal(pub i16);

impl Refusal {
    /// Of an answer's code; `None` for 0, which is none.
    #[must_use]
    pub const fn of(code: i16) -> Option<Self> {
        match code {
            0 => None,
            code => Some(Self(code)),
        }
    }

    /// Whether what was asked for is to blame, and not the state of the broker.
    #[must_use]
    pub const fn is_ours(self) -> bool {
        // Corrupt, unknown topic, too large (a message, a batch), invalid topic, acks or
        // timestamp, no permission, no such mechanism or version, wrong password, and
        // what a topic's rules refuse.
        matches!(
            self.0,
            2 | 3 | 10 | 17 | 18 | 21 | 29 | 31..=35 | 42 | 43 | 44 | 53 | 58 | 76 | 87
        )
    }

    /// Whether the broker may not be the one to ask any more.
    #[must_use]
    pub const fn wants_metadata(self) -> bool {
        matches!(self.0, 3 | 5 | 6)
    }
}

/// A topic's partitions, and who leads them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Metadata {
    /// Brokers: their numbers, and `host:port`.
    pub brokers: Vec<(i32, String)>,
    /// Why there is no such topic.
    pub refusal: Option<Refusal>,
    /// Partitions with a leader, and who that is, in order of partitions.
    pub partitions: Vec<(i32, i32)>,
}

impl Metadata {
    /// Reads the answer to [`write_metadata`]; of several topics the first.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
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

/// What became of one batch.
///
/// # Errors
/// [`Malformed`] where `body` is no answer to a batch.
pub fn read_produced(body: &[u8]) -> Result<Option<Refusal>, Malformed> {
    let mut cursor = Cursor::new(body, "the answer to a batch of Kafka");
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

/// What the broker says to a mechanism or a password.
///
/// # Errors
/// [`Malformed`] where `body` is no such answer.
pub fn read_sasl(body: &[u8]) -> Result<Option<Refusal>, Malformed> {
    let mut cursor = Cursor::new(body, "an answer about who we are, of Kafka");
    Ok(Refusal::of(cursor.i16()?))
}

/// A text, or nothing where there is none.
fn text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, Malformed> {
    let length = cursor.i16()?;
    if length < 0 {
        return Ok("");
    }
    let bytes = cursor.take(cursor.length(length)?)?;
    std::str::from_utf8(bytes).map_err(|_| cursor.malformed())
}

/// Appends the wish to know about `topic`, which the broker makes where `create` says
/// so and it is set up to.
pub fn write_metadata(topic: &str, create: bool, number: i32, out: &mut Vec<u8>) {
    request(METADATA, number, out, |out| {
        out.extend_from_slice(&1_i32.to_be_bytes());
        put_text(topic, out);
        out.push(u8::from(create));
    });
}

/// Appends the wish to say by PLAIN who we are.
pub fn write_sasl_handshake(number: i32, out: &mut Vec<u8>) {
    request(SASL_HANDSHAKE, number, out, |out| put_text("PLAIN", out));
}

/// Appends who we are.
pub fn write_sasl_plain(user: &str, password: &str, number: i32, out: &mut Vec<u8>) {
    let plain = format!("\0{user}\0{password}");
    request(SASL_AUTHENTICATE, number, out, |out| {
        let length = i32::try_from(plain.len()).unwrap_or(i32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(plain.as_bytes());
    });
}

/// How far a batch must have come before it is answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Acks {
    /// It is not answered at all.
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
    /// How long the broker may wait for replicas, in milliseconds.
    timeout_ms: i32,
    topic: String,
}

impl Producer {
    /// To `topic`.
    #[must_use]
    pub fn new(topic: &str, acks: Acks, timeout_ms: i32) -> Self {
        Self {
            acks,
            timeout_ms,
            topic: topic.to_owned(),
        }
    }

    /// Appends a request for `partition` whose records `write` appends, and gives what
    /// that gave. Where it fails `out` is as it was.
    ///
    /// # Errors
    /// What `write` failed with.
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
        put_text(CLIENT, out);
        write(out);
    });
}

/// Appends what `write` appends, behind its length.
fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = i32::try_from(out.len() - begin - 4).unwrap_or(i32::MAX);
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    let length = i16::try_from(text.len()).unwrap_or(i16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}
