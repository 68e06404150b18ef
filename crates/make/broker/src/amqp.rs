//! AMQP 0-9-1, as far as a producer with publisher confirms needs it.
//!
//! One channel, number 1, carries everything. A frame is a type, a channel, a length,
//! so many bytes and an end byte: `01 0001 00000005 003C 0050 … CE` is a method.

mod publisher;
#[cfg(test)]
mod tests;

use crate::Malformed;
use crate::bytes::Cursor;

pub use publisher::Publisher;

/// The largest frame that we ask for, and that servers offer.
pub const FRAME_BYTES_MAX: u32 = 128 << 10;

/// A frame is at least so large, says the specification.
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

/// What a server says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerFrame<'a> {
    /// Its greeting: names of mechanisms, apart by blanks.
    Start {
        /// Among them should be `PLAIN`.
        mechanisms: &'a [u8],
    },
    /// The largest frame that it takes; 0 for any.
    Tune {
        /// In bytes, head and end included.
        frame_max: u32,
    },
    /// The virtual host is open.
    Opened,
    /// The channel is open.
    ChannelOpened,
    /// Messages will be confirmed from here on.
    Confirming,
    /// It has messages.
    Ack {
        /// This one, by its number from 1.
        number: u64,
        /// And all before it that it has not named.
        and_before: bool,
    },
    /// It refuses messages.
    Nack {
        /// This one.
        number: u64,
        /// And all before it that it has not named.
        and_before: bool,
    },
    /// A message found no queue; what it was follows: see [`ServerFrame::Properties`].
    Returned {
        /// Such as 312.
        code: u16,
    },
    /// How a returned message begins: its own number, if it bore one.
    Properties {
        /// What [`Publisher::write`] was given.
        number: Option<u64>,
    },
    /// Wants the channel closed, and says why.
    ChannelClosed {
        /// Such as 404.
        code: u16,
        /// The reason.
        text: &'a [u8],
    },
    /// Wants the connection closed, and says why.
    ConnectionClosed {
        /// Such as 403.
        code: u16,
        /// The reason.
        text: &'a [u8],
    },
    /// All that was wanted before the connection ends is done.
    Goodbye,
    /// It lives, or says what a producer need not know.
    Other,
}

/// The first frame in `input`, and its length.
///
/// # Errors
/// [`Malformed`] where this is no AMQP 0-9-1.
pub fn read(input: &[u8]) -> Result<Option<(ServerFrame<'_>, usize)>, Malformed> {
    if input.starts_with(b"AMQP") {
        return Err(Malformed("AMQP 0-9-1: the server wants another version"));
    }
    let Some((head, rest)) = input.split_at_checked(HEAD_BYTES) else {
        return Ok(None);
    };
    let mut head = Cursor::new(head, "a frame of AMQP");
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
    let mut cursor = Cursor::new(payload, "a method of AMQP");
    let method = (cursor.u16()?, cursor.u16()?);
    Ok(match method {
        (CONNECTION, 10) => {
            // The version, and what the server says of itself.
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
    let mut cursor = Cursor::new(payload, "the properties of a message of AMQP");
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
    // Correlation, whom to answer, and when it ends.
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

/// Appends the answer to [`ServerFrame::Start`]: who we are, by `PLAIN`.
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
        let mut able = Vec::new();
        for name in [
            "publisher_confirms",
            "basic.nack",
            "authentication_failure_close",
        ] {
            entry(name, b't', &[1], &mut able);
        }
        entry("capabilities", b'F', &able, &mut table);
        put_long(&table, out);
        put_short(b"PLAIN", out);
        put_long(format!("\0{user}\0{password}").as_bytes(), out);
        put_short(b"en_US", out);
    });
}

/// Appends the answer to [`ServerFrame::Tune`], without heartbeats, and the wish to
/// open `virtual_host`. Gives the largest frame from here on.
pub fn write_tune_ok(frame_max: u32, virtual_host: &str, out: &mut Vec<u8>) -> u32 {
    let frame_max = match frame_max {
        0 => FRAME_BYTES_MAX,
        most => most.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX),
    };
    method(0, CONNECTION, 31, out, |out| {
        out.extend_from_slice(&CHANNEL.to_be_bytes());
        out.extend_from_slice(&frame_max.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
    });
    method(0, CONNECTION, 40, out, |out| {
        put_short(virtual_host.as_bytes(), out);
        out.extend_from_slice(&[0, 0]);
    });
    frame_max
}

/// Appends the wish to open the channel.
pub fn write_channel_open(out: &mut Vec<u8>) {
    method(CHANNEL, CHANNEL_CLASS, 10, out, |out| out.push(0));
}

/// Appends the wish for confirms.
pub fn write_confirm(out: &mut Vec<u8>) {
    method(CHANNEL, CONFIRM, 10, out, |out| out.push(0));
}

/// Appends the answer to [`ServerFrame::ConnectionClosed`].
pub fn write_close_ok(out: &mut Vec<u8>) {
    method(0, CONNECTION, 51, out, |_| {});
}

/// Appends the wish to end the connection; all before it is taken in first.
pub fn write_close(out: &mut Vec<u8>) {
    method(0, CONNECTION, 50, out, |out| {
        out.extend_from_slice(&200_u16.to_be_bytes());
        put_short(b"", out);
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
    let length = u32::try_from(out.len() - begin).unwrap_or(u32::MAX);
    out[begin - 4..begin].copy_from_slice(&length.to_be_bytes());
    out.push(FRAME_END);
}

/// A text of at most 255 bytes; what is longer is cut, so that a frame stays one.
fn put_short(text: &[u8], out: &mut Vec<u8>) {
    let text = &text[..text.len().min(255)];
    out.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(text);
}

fn put_long(text: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text);
}

/// An entry of a table.
fn entry(name: &str, kind: u8, value: &[u8], out: &mut Vec<u8>) {
    put_short(name.as_bytes(), out);
    out.push(kind);
    match kind {
        b't' => out.extend_from_slice(value),
        _ => put_long(value, out),
    }
}
