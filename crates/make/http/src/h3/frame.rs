//! Frames (RFC 9114, 7).

use super::varint;

/// Kinds of frames.
pub(super) mod kind {
    pub(in crate::h3) const DATA: u64 = 0x0;
    pub(in crate::h3) const HEADERS: u64 = 0x1;
    pub(in crate::h3) const CANCEL_PUSH: u64 = 0x3;
    pub(in crate::h3) const SETTINGS: u64 = 0x4;
    pub(in crate::h3) const PUSH_PROMISE: u64 = 0x5;
    pub(in crate::h3) const GOAWAY: u64 = 0x7;
    pub(in crate::h3) const MAX_PUSH_ID: u64 = 0xd;
    /// Those of HTTP/2 that have no place here.
    pub(in crate::h3) const OF_HTTP2: [u64; 4] = [0x2, 0x6, 0x8, 0x9];
}

/// The longest head of a frame: two integers.
pub(super) const HEAD_BYTES_MAX: usize = 16;

/// Head of a frame, and of a capsule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct H3FrameHead {
    pub(crate) kind: u64,
    pub(crate) length: u64,
}

/// Integers that arrive in parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Partial {
    bytes: [u8; HEAD_BYTES_MAX],
    length: u8,
}

impl Partial {
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; HEAD_BYTES_MAX],
        length: 0,
    };

    /// Returns true if nothing has arrived.
    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The head of a frame, and how much of `input` was taken for it.
    pub(crate) fn head(&mut self, input: &[u8]) -> (usize, Option<H3FrameHead>) {
        self.read(input, |bytes| {
            let (kind, first) = varint::read(bytes)?;
            let (length, second) = varint::read(&bytes[first..])?;
            Some((H3FrameHead { kind, length }, first + second))
        })
    }

    /// One integer, and how much of `input` was taken for it.
    pub(crate) fn integer(&mut self, input: &[u8]) -> (usize, Option<u64>) {
        self.read(input, varint::read)
    }

    fn read<T>(
        &mut self,
        input: &[u8],
        parse: impl Fn(&[u8]) -> Option<(T, usize)>,
    ) -> (usize, Option<T>) {
        let before = usize::from(self.length);
        if before == 0
            && let Some((head, taken)) = parse(input)
        {
            return (taken, Some(head));
        }
        // No head is longer than there is room.
        let more = input.len().min(HEAD_BYTES_MAX - before);
        self.bytes[before..before + more].copy_from_slice(&input[..more]);
        let all = &self.bytes[..before + more];
        if let Some((head, length)) = parse(all) {
            self.length = 0;
            return (length - before, Some(head));
        }
        self.length = u8::try_from(before + more).unwrap_or(0);
        (more, None)
    }
}

/// Appends the head of a frame.
pub(crate) fn write_head(kind: u64, length: usize, out: &mut Vec<u8>) {
    varint::write(kind, out);
    varint::write(length as u64, out);
}

/// Appends word that requests from stream `number` on are not taken.
pub fn write_go_away(number: u64, out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(8);
    varint::write(number, &mut payload);
    write_head(kind::GOAWAY, payload.len(), out);
    out.extend_from_slice(&payload);
}
