//! AMQP 0-9-1 for a producer with publisher confirms.
//!
//! Everything uses one channel, number 1. A frame is a type, a channel, a length, the payload and an end byte:
//! `01 0001 00000005 003C 0050 … CE` is a method.

mod publisher;
#[cfg(test)]
mod tests;

use stillwell_units::{ShortText, count};

use crate::Malformed;
use crate::bytes::Cursor;

pub use publisher::Publisher;

/// Largest frame that this client requests; servers offer the same.
pub const FRAME_BYTES_MAX: u32 = 128 << 10;

/// Smallest maximum of a frame, from the specification.
const FRAME_BYTES_MIN: u32 = 4096;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
const FRAME_END: u8 = 0xce;
/// Type, channel and length.
const HEAD_BYTES: usize = 7;

const CHANNEL: u16 = 1;

const CONNECTION: u16 = 10;
const CHANNEL_CLASS: u16 = 20;
const BASIC: u16 = 60;
const CONFIRM: u16 = 85;

/// A frame from a server, as far as a producer uses it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerFrame<'a> {
    /// The server's greeting with the names of its mechanisms, separated by blanks.
    Start {
        /// Among them should be `PLAIN`.
        mechanisms: &'a [u8],
    },
    /// The largest frame that the server accepts; 0 for no limit.
    Tune {
        /// In bytes, head and end included.
        frame_max: u32,
    },
    /// The virtual host is open.
    Opened,
    /// The channel is open.
    ChannelOpened,
    /// The server will confirm messages from now on.
    Confirming,
    /// Acknowledges messages.
    Ack {
        /// The message's number, from 1.
        number: u64,
        /// Also acknowledges all earlier unacknowledged messages.
        and_before: bool,
    },
    /// Refuses messages.
    Nack {
        /// The message's number.
        number: u64,
        /// Also refuses all earlier unacknowledged messages.
        and_before: bool,
    },
    /// A message reached no queue. Its [`ServerFrame::Properties`] follow.
    Returned {
        /// Such as 312.
        code: u16,
    },
    /// The properties of a returned message, with its number if it has one.
    Properties {
        /// The number given to [`Publisher::write`].
        number: Option<u64>,
    },
    /// The server closes the channel, with a reason.
    ChannelClosed {
        /// Such as 404.
        code: u16,
        /// The reason.
        text: &'a [u8],
    },
    /// The server closes the connection, with a reason.
    ConnectionClosed {
        /// Such as 403.
        code: u16,
        /// The reason.
        text: &'a [u8],
    },
    /// The server has processed everything and confirms the close.
    Goodbye,
    /// A heartbeat, or a frame that a producer ignores.
    Other,
}

/// Reads the first frame in `input`. Returns it with its length.
///
/// # Errors
/// [`Malformed`] if the bytes are not AMQP 0-9-1.
pub fn read(input: &[u8]) -> Result<Option<(ServerFrame<'_>, usize)>, Malformed> {
    if input.starts_with(b"AMQP") {
        return Err(Malformed("AMQP 0-9-1: the server requires another version"));
    }
    let Some((head, rest)) = input.split_at_checked(HEAD_BYTES) else {
        return Ok(None);
    };
    let mut head = Cursor::new(head, "an AMQP frame");
    let (kind, _channel, length) = (head.u8()?, head.u16()?, head.u32()?);
    if !matches!(kind, METHOD | HEADER | BODY | HEARTBEAT) || length > FRAME_BYTES_MAX {
        return Err(head.malformed());
    }
    let length = head.length(length)?;
    let Some(framed) = rest.get(..=length) else {
        return Ok(None);
    };
    let (payload, end) = framed.split_at(length);
    if end != [FRAME_END] {
        return Err(head.malformed());
    }
    let frame = match kind {
        METHOD => read_method(payload)?,
        HEADER => read_properties(payload)?,
        _ => ServerFrame::Other,
    };
    Ok(Some((frame, HEAD_BYTES + length + 1)))
}

fn read_method(payload: &[u8]) -> Result<ServerFrame<'_>, Malformed> {
    let mut cursor = Cursor::new(payload, "an AMQP method");
    let method = (cursor.u16()?, cursor.u16()?);
    Ok(match method {
        (CONNECTION, 10) => {
            // The version, and the server's properties.
            cursor.take(2)?;
            long_text(&mut cursor)?;
            let mechanisms = long_text(&mut cursor)?;
            ServerFrame::Start { mechanisms }
        }
        (CONNECTION, 30) => {
            cursor.u16()?;
            let frame_max = cursor.u32()?;
            ServerFrame::Tune { frame_max }
        }
        (CONNECTION, 41) => ServerFrame::Opened,
        (CONNECTION, 50) => {
            let (code, text) = (cursor.u16()?, short_text(&mut cursor)?);
            ServerFrame::ConnectionClosed { code, text }
        }
        (CONNECTION, 51) => ServerFrame::Goodbye,
        (CHANNEL_CLASS, 11) => ServerFrame::ChannelOpened,
        (CHANNEL_CLASS, 40) => {
            let (code, text) = (cursor.u16()?, short_text(&mut cursor)?);
            ServerFrame::ChannelClosed { code, text }
        }
        (CONFIRM, 11) => ServerFrame::Confirming,
        (BASIC, 50) => {
            let code = cursor.u16()?;
            ServerFrame::Returned { code }
        }
        (BASIC, 80 | 120) => {
            let (number, bits) = (cursor.u64()?, cursor.u8()?);
            let and_before = bits & 1 != 0;
            match method.1 {
                80 => ServerFrame::Ack { number, and_before },
                _ => ServerFrame::Nack { number, and_before },
            }
        }
        _ => ServerFrame::Other,
    })
}

/// The header of a message; its number is its `message-id`.
fn read_properties(payload: &[u8]) -> Result<ServerFrame<'_>, Malformed> {
    let mut cursor = Cursor::new(payload, "the properties of an AMQP message");
    // Its class, a weight, and the length of the message.
    cursor.take(12)?;
    let flags = cursor.u16()?;
    let has = |bit: u16| flags & (1 << bit) != 0;
    // Content type and encoding.
    for bit in [15, 14] {
        if has(bit) {
            short_text(&mut cursor)?;
        }
    }
    if has(13) {
        long_text(&mut cursor)?;
    }
    // Delivery mode and priority.
    for bit in [12, 11] {
        if has(bit) {
            cursor.u8()?;
        }
    }
    // Correlation id, reply-to, and expiration.
    for bit in [10, 9, 8] {
        if has(bit) {
            short_text(&mut cursor)?;
        }
    }
    let id = match has(publisher::MESSAGE_ID_BIT) {
        true => short_text(&mut cursor)?,
        false => b"",
    };
    let number = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
    Ok(ServerFrame::Properties { number })
}

fn short_text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let length = cursor.u8()?;
    cursor.take(length.into())
}

fn long_text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let length = cursor.u32()?;
    cursor.take(cursor.length(length)?)
}

/// Appends what a connection begins with.
pub fn write_greeting(out: &mut Vec<u8>) {
    out.extend_from_slice(b"AMQP\0\0\x09\x01");
}

/// Appends the reply to [`ServerFrame::Start`]: the credentials, by `PLAIN`.
pub fn write_start_ok(user: &str, password: &str, out: &mut Vec<u8>) {
    method(0, CONNECTION, 11, out, |out| {
        let mut table = Vec::new();
        entry("product", b'S', b"stillwell", &mut table);
        entry(
            "version",
            b'S',
            env!("CARGO_PKG_VERSION").as_bytes(),
            &mut table,
        );
        let mut capabilities = Vec::new();
        for name in [
            "publisher_confirms",
            "basic.nack",
            "authentication_failure_close",
        ] {
            entry(name, b't', &[1], &mut capabilities);
        }
        entry("capabilities", b'F', &capabilities, &mut table);
        put_long(&table, out);
        put_name("PLAIN", out);
        put_long(format!("\0{user}\0{password}").as_bytes(), out);
        put_name("en_US", out);
    });
}

/// Appends the reply to [`ServerFrame::Tune`], without heartbeats, and the request to open `virtual_host`.
/// Returns the largest frame from now on.
pub fn write_tune_ok(frame_max: u32, virtual_host: &ShortText, out: &mut Vec<u8>) -> u32 {
    let frame_max = match frame_max {
        0 => FRAME_BYTES_MAX,
        requested => requested.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX),
    };
    method(0, CONNECTION, 31, out, |out| {
        out.extend_from_slice(&CHANNEL.to_be_bytes());
        out.extend_from_slice(&frame_max.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
    });
    method(0, CONNECTION, 40, out, |out| {
        put_short(virtual_host, out);
        out.extend_from_slice(&[0, 0]);
    });
    frame_max
}

/// Appends the request to open the channel.
pub fn write_channel_open(out: &mut Vec<u8>) {
    method(CHANNEL, CHANNEL_CLASS, 10, out, |out| out.push(0));
}

/// Appends the request for publisher confirms.
pub fn write_confirm(out: &mut Vec<u8>) {
    method(CHANNEL, CONFIRM, 10, out, |out| out.push(0));
}

/// Appends the reply to [`ServerFrame::ConnectionClosed`].
pub fn write_close_ok(out: &mut Vec<u8>) {
    method(0, CONNECTION, 51, out, |_| {});
}

/// Appends the request to close the connection. The server processes all earlier frames first.
pub fn write_close(out: &mut Vec<u8>) {
    method(0, CONNECTION, 50, out, |out| {
        out.extend_from_slice(&200_u16.to_be_bytes());
        put_name("", out);
        out.extend_from_slice(&[0; 4]);
    });
}

/// Appends a method's frame, whose arguments `write` appends.
fn method(channel: u16, class: u16, id: u16, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = begin_frame(METHOD, channel, out);
    out.extend_from_slice(&class.to_be_bytes());
    out.extend_from_slice(&id.to_be_bytes());
    write(out);
    end_frame(begin, out);
}

fn begin_frame(kind: u8, channel: u16, out: &mut Vec<u8>) -> usize {
    out.push(kind);
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.len()
}

fn end_frame(begin: usize, out: &mut Vec<u8>) {
    let length = count(out.len() - begin);
    out[begin - 4..begin].copy_from_slice(&length.to_be_bytes());
    out.push(FRAME_END);
}

fn put_short(text: &ShortText, out: &mut Vec<u8>) {
    out.push(text.length());
    out.extend_from_slice(text.as_str().as_bytes());
}

/// Appends a short text that this module names.
fn put_name(name: &'static str, out: &mut Vec<u8>) {
    out.push(u8::try_from(name.len()).expect("names of the protocol are short"));
    out.extend_from_slice(name.as_bytes());
}

fn put_long(text: &[u8], out: &mut Vec<u8>) {
    let length = count(text.len());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text);
}

/// An entry of a table.
fn entry(name: &'static str, kind: u8, value: &[u8], out: &mut Vec<u8>) {
    put_name(name, out);
    out.push(kind);
    match kind {
        b't' => out.extend_from_slice(value),
        _ => put_long(value, out),
    }
}
