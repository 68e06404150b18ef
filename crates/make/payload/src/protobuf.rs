//! Protocol Buffers, written from the back: the length of a message, which precedes it, is then
//! known when it is written.

/// Bytes of a key and a length at most.
pub(crate) const HEAD_MAX: usize = 2 + VARINT_MAX;

/// Bytes of a number at most.
const VARINT_MAX: usize = 10;

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const BYTES: u32 = 2;

/// A message being written into a room from its end. Writing more than the room
/// holds panics; writers look at what is left before they begin an element.
#[derive(Debug)]
pub(crate) struct Reverse<'r> {
    room: &'r mut [u8],
    /// The beginning of the written bytes.
    at: usize,
}

impl<'r> Reverse<'r> {
    #[inline(always)]
    pub(crate) const fn new(room: &'r mut [u8]) -> Self {
        let at = room.len();
        Self { room, at }
    }

    /// Bytes written since.
    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.room.len() - self.at
    }

    /// Bytes that may still be written.
    #[inline(always)]
    pub(crate) const fn left(&self) -> usize {
        self.at
    }

    /// Returns the written bytes.
    #[inline(always)]
    pub(crate) fn finish(self) -> &'r [u8] {
        &self.room[self.at..]
    }

    /// `bytes` as they are.
    #[inline(always)]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.at -= bytes.len();
        self.room[self.at..][..bytes.len()].copy_from_slice(bytes);
    }

    #[inline(always)]
    fn fixed<const N: usize>(&mut self, bytes: [u8; N]) {
        self.at -= N;
        self.room[self.at..][..N].copy_from_slice(&bytes);
    }

    /// A number without its key.
    #[inline(always)]
    pub(crate) fn varint(&mut self, value: u64) {
        if value < 0x80 {
            return self.fixed([low_7(value)]);
        }
        if value < 0x4000 {
            return self.fixed([low_7(value) | 0x80, low_7(value >> 7)]);
        }
        let mut bytes = [0; VARINT_MAX];
        let len = encode(value, &mut bytes);
        self.raw(&bytes[..len]);
    }

    #[inline(always)]
    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    /// Makes what was written since `len` bytes were there the message or text
    /// in `field`.
    #[inline(always)]
    pub(crate) fn wrap(&mut self, field: u32, len: usize) {
        self.varint((self.len() - len) as u64);
        self.key(field, BYTES);
    }

    /// A text or bytes.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.raw(bytes);
        self.varint(bytes.len() as u64);
        self.key(field, BYTES);
    }

    /// A number.
    #[inline(always)]
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        self.varint(value);
        self.key(field, VARINT);
    }

    /// Eight bytes.
    #[inline(always)]
    pub(crate) fn fixed_64(&mut self, field: u32, value: u64) {
        self.fixed(value.to_le_bytes());
        self.key(field, FIXED_64);
    }

    /// Eight bytes without a key.
    #[inline(always)]
    pub(crate) fn raw_64(&mut self, value: u64) {
        self.fixed(value.to_le_bytes());
    }

    /// A double.
    #[inline(always)]
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed_64(field, value.to_bits());
    }
}

/// Writes a number and gives its length.
fn encode(mut value: u64, bytes: &mut [u8; VARINT_MAX]) -> usize {
    let mut len = 0;
    while value >= 0x80 {
        bytes[len] = low_7(value) | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = low_7(value);
    len + 1
}

#[inline(always)]
const fn low_7(value: u64) -> u8 {
    (value & 0x7f) as u8
}

/// Appends a text or bytes to `message`; for what is written once.
pub(crate) fn push_bytes(message: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    push_varint(message, u64::from(field << 3 | BYTES));
    push_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

/// Appends a number to `message`.
pub(crate) fn push_number(message: &mut Vec<u8>, field: u32, value: u64) {
    push_varint(message, u64::from(field << 3 | VARINT));
    push_varint(message, value);
}

fn push_varint(message: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; VARINT_MAX];
    let len = encode(value, &mut bytes);
    message.extend_from_slice(&bytes[..len]);
}

/// Appends an OpenTelemetry attribute with a text to `message`.
pub(crate) fn push_text_attribute(message: &mut Vec<u8>, field: u32, key: &[u8], value: &[u8]) {
    let mut any = Vec::new();
    push_bytes(&mut any, 1, value);
    push_attribute(message, field, key, &any);
}

/// Appends an OpenTelemetry attribute with a number to `message`.
pub(crate) fn push_number_attribute(message: &mut Vec<u8>, field: u32, key: &[u8], value: i64) {
    let mut any = Vec::new();
    push_number(&mut any, 3, value.cast_unsigned());
    push_attribute(message, field, key, &any);
}

fn push_attribute(message: &mut Vec<u8>, field: u32, key: &[u8], value: &[u8]) {
    let mut attribute = Vec::new();
    push_bytes(&mut attribute, 1, key);
    push_bytes(&mut attribute, 2, value);
    push_bytes(message, field, &attribute);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the published encoding guide.
    #[test]
    fn known_messages_have_their_known_bytes() {
        let mut room = [0; 64];
        let mut out = Reverse::new(&mut room);
        out.number(1, 150);
        assert_eq!(out.finish(), [0x08, 0x96, 0x01]);

        let mut out = Reverse::new(&mut room);
        out.number(1, 150);
        out.wrap(3, 0);
        out.bytes(2, b"testing");
        assert_eq!(out.finish(), b"\x12\x07testing\x1a\x03\x08\x96\x01");

        let mut message = Vec::new();
        push_number(&mut message, 1, 150);
        push_bytes(&mut message, 2, b"testing");
        assert_eq!(message, b"\x08\x96\x01\x12\x07testing");

        let mut out = Reverse::new(&mut room);
        out.double(1, 1.0);
        out.number(16, u64::MAX);
        let bytes = out.finish();
        assert_eq!(bytes.len(), 12 + 9);
        assert_eq!(bytes[..2], [0x80, 0x01]);
    }
}
