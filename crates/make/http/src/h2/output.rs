//! Bytes on their way to the socket.

/// Partly sent output is moved to the front beyond so many bytes.
const SENT_BYTES_MAX: usize = 64 << 10;

/// Bytes to send.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    sent_bytes: usize,
    /// Bytes that were removed from the front.
    removed_bytes: u64,
}

impl Output {
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.sent_bytes..]
    }

    pub(super) const fn pending_bytes(&self) -> usize {
        self.bytes.len() - self.sent_bytes
    }

    /// Returns the buffer to which frames are appended.
    pub(super) const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns the number of bytes that were sent, and that of all bytes.
    pub(super) const fn totals(&self) -> (u64, u64) {
        let sent = self.removed_bytes + self.sent_bytes as u64;
        (sent, self.removed_bytes + self.bytes.len() as u64)
    }

    /// So many bytes were sent; at most what was pending.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent_bytes = (self.sent_bytes + bytes).min(self.bytes.len());
        if self.sent_bytes == self.bytes.len() {
            self.removed_bytes += self.sent_bytes as u64;
            self.bytes.clear();
            self.sent_bytes = 0;
        } else if self.sent_bytes > SENT_BYTES_MAX && self.sent_bytes > self.bytes.len() / 2 {
            self.removed_bytes += self.sent_bytes as u64;
            self.bytes.drain(..self.sent_bytes);
            self.sent_bytes = 0;
        }
    }
}
