//! Frames to bytes. All of them append.

use super::{FRAME_HEAD_BYTES, H2ErrorCode, SettingsFrame, flag, kind};
use stillwell_units::{as_usize, count};

/// Any frame; `payload` is shorter than 2²⁴ bytes; the rest is cut.
pub fn write_frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let payload = &payload[..payload.len().min((1 << 24) - 1)];
    out.extend_from_slice(&head(kind, flags, stream, payload.len()));
    out.extend_from_slice(payload);
}

/// Part of a body.
pub fn write_data(stream: u32, bytes: &[u8], end_stream: bool, out: &mut Vec<u8>) {
    write_frame(kind::DATA, end_flag(end_stream), stream, bytes, out);
}

/// A header block, in as many frames as `frame_bytes_max` makes of it.
pub fn write_headers(
    stream: u32,
    block: &[u8],
    end_stream: bool,
    frame_bytes_max: u32,
    out: &mut Vec<u8>,
) {
    let frame_bytes = as_usize(frame_bytes_max).max(1);
    let (mut fragment, mut rest) = block.split_at(frame_bytes.min(block.len()));
    let (mut kind, mut flags) = (kind::HEADERS, end_flag(end_stream));
    while !rest.is_empty() {
        write_frame(kind, flags, stream, fragment, out);
        (fragment, rest) = rest.split_at(frame_bytes.min(rest.len()));
        (kind, flags) = (kind::CONTINUATION, 0);
    }
    write_frame(kind, flags | flag::END_HEADERS, stream, fragment, out);
}

/// The end of a stream before its time.
pub fn write_reset(stream: u32, code: H2ErrorCode, out: &mut Vec<u8>) {
    let payload = code.0.to_be_bytes();
    write_frame(kind::RST_STREAM, 0, stream, &payload, out);
}

/// Appends the frame of `settings`.
pub fn write_settings(settings: &SettingsFrame, out: &mut Vec<u8>) {
    let count = settings.settings().count();
    out.extend_from_slice(&head(kind::SETTINGS, 0, 0, 6 * count));
    for (identifier, value) in settings.settings() {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// The peer's settings are taken in.
pub fn write_settings_ack(out: &mut Vec<u8>) {
    write_frame(kind::SETTINGS, flag::ACK, 0, &[], out);
}

/// A question, or the answer to the peer's.
pub fn write_ping(payload: [u8; 8], ack: bool, out: &mut Vec<u8>) {
    let flags = if ack { flag::ACK } else { 0 };
    write_frame(kind::PING, flags, 0, &payload, out);
}

/// No new streams after `last_stream`.
pub fn write_go_away(last_stream: u32, code: H2ErrorCode, out: &mut Vec<u8>) {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&last_stream.to_be_bytes());
    payload[4..].copy_from_slice(&code.0.to_be_bytes());
    write_frame(kind::GOAWAY, 0, 0, &payload, out);
}

/// More may be sent; stream 0 is the connection.
pub fn write_window_update(stream: u32, increment_bytes: u32, out: &mut Vec<u8>) {
    let payload = increment_bytes.to_be_bytes();
    write_frame(kind::WINDOW_UPDATE, 0, stream, &payload, out);
}

const fn end_flag(end_stream: bool) -> u8 {
    if end_stream { flag::END_STREAM } else { 0 }
}

/// The bytes before a payload of less than 2²⁴ bytes.
fn head(kind: u8, flags: u8, stream: u32, payload_bytes: usize) -> [u8; FRAME_HEAD_BYTES] {
    let length = count(payload_bytes);
    let [_, a, b, c] = length.to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}
