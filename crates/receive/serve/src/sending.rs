//! The unsent part of a QUIC stream, and the end of the stream after it.

use bytes::Bytes;
use stillwell_metric::Cell;
use stillwell_wire::quic::{Line, QuicStream};

/// The unsent part of one stream.
#[derive(Debug)]
pub(crate) struct Sending {
    rest: Bytes,
    end: StreamEnd,
}

#[derive(Clone, Copy, Debug)]
enum StreamEnd {
    Finish,
    /// It does not.
    Open,
}

impl Sending {
    /// The last part, behind which the stream ends.
    pub(crate) const fn whole(rest: Bytes) -> Self {
        Self {
            rest,
            end: StreamEnd::Finish,
        }
    }

    /// A part, behind which the stream stays open.
    pub(crate) fn open(bytes: Vec<u8>) -> Self {
        Self {
            rest: bytes.into(),
            end: StreamEnd::Open,
        }
    }

    /// Sends as much as there is room for, and counts it. Whether the stream has
    /// ended.
    pub(crate) fn send(&mut self, line: &mut Line, stream: QuicStream, sent: &Cell) -> bool {
        let before = self.rest.len();
        let is_taken = line.write(stream, &mut self.rest);
        sent.add((before - self.rest.len()) as u64);
        if is_taken && !self.rest.is_empty() {
            return false;
        }
        match self.end {
            StreamEnd::Finish => line.finish(stream),
            StreamEnd::Open => return false,
        }
        true
    }
}
