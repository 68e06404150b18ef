//! Frames to the peer.

use super::H2Connection;
use crate::h2::block::{Block, BodyLength, write_content_length};
use crate::h2::error::StreamEnded;
use crate::h2::frame::{write_data, write_headers};
use crate::h2::hpack::{EMPTY_TABLE, write_literal};
use crate::h2::streams::{Stream, StreamState};
use stillwell_units::as_usize;

/// A head that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::h2) struct Head<'h> {
    pub(in crate::h2) block: &'h Block,
    /// Fields of this one time: names in lower case.
    pub(in crate::h2) extra: &'h [(&'h str, &'h [u8])],
    pub(in crate::h2) body: BodyLength,
}

impl H2Connection {
    pub(in crate::h2) fn new_stream(&mut self, number: u32) -> Stream {
        let send_window = i64::from(self.peer.initial_window_bytes);
        let state = StreamState::new(send_window, self.new_receive_window());
        self.highest_stream = number;
        self.streams.insert(number, state)
    }

    /// Lays out the head of `stream`. Copies what was prebuilt as it is where
    /// nothing is to be added.
    pub(in crate::h2) fn send_head(
        &mut self,
        stream: Stream,
        head: &Head<'_>,
    ) -> Result<(), StreamEnded> {
        let state = self.streams.state(stream).ok_or(StreamEnded)?;
        if state.sent_head {
            return Err(StreamEnded);
        }
        state.sent_head = true;
        let ends = match head.body {
            BodyLength::None | BodyLength::Bytes(0) | BodyLength::Withheld(_) => true,
            BodyLength::Bytes(_) | BodyLength::Unknown => false,
        };
        state.local_done = ends;
        let fits = head.block.bytes().len() <= self.peer.frame_bytes_max as usize;
        let has_no_length = matches!(head.body, BodyLength::None | BodyLength::Unknown);
        let is_plain = has_no_length && head.extra.is_empty();
        if is_plain && fits && !self.peer.is_table_reset_pending {
            let out = self.output.bytes();
            head.block.write(stream.number(), ends, out);
        } else {
            self.write_block(stream, head, ends);
        }
        if ends {
            self.end_local(stream);
        }
        Ok(())
    }

    /// Lays out as much of `bytes` as the windows and the output allow, and says
    /// how much that was. Where it is not all, the rest is to be given again
    /// once there is room.
    pub(in crate::h2) fn send_data(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<usize, StreamEnded> {
        let frame_bytes_max = self.peer.frame_bytes_max as usize;
        let state = self.streams.state(stream).ok_or(StreamEnded)?;
        if state.local_done || !state.sent_head {
            return Err(StreamEnded);
        }
        let room = self
            .limits
            .output_bytes_max
            .saturating_sub(self.output.pending_bytes());
        let window = state.send_window.min(self.send_window).max(0);
        let window = as_usize(window.unsigned_abs());
        let taken = bytes.len().min(window).min(room);
        let now = &bytes[..taken];
        let is_whole = taken == bytes.len();
        let ends = is_last && is_whole;
        state.send_window -= taken as i64;
        self.send_window -= taken as i64;
        state.is_blocked = !is_whole;
        state.local_done = ends;
        let out = self.output.bytes();
        let mut chunks = now.chunks(frame_bytes_max).peekable();
        if ends && chunks.peek().is_none() {
            write_data(stream.number(), &[], true, out);
        }
        while let Some(chunk) = chunks.next() {
            let ends = ends && chunks.peek().is_none();
            write_data(stream.number(), chunk, ends, out);
        }
        if ends {
            self.end_local(stream);
        } else if !is_whole {
            self.queue_if_room(stream);
        }
        Ok(taken)
    }

    /// Ends `stream` with trailers.
    pub(in crate::h2) fn send_trailers(
        &mut self,
        stream: Stream,
        block: &Block,
    ) -> Result<(), StreamEnded> {
        let state = self.streams.state(stream).ok_or(StreamEnded)?;
        if state.local_done || !state.sent_head {
            return Err(StreamEnded);
        }
        state.local_done = true;
        state.is_blocked = false;
        let head = Head {
            block,
            extra: &[],
            body: BodyLength::None,
        };
        self.write_block(stream, &head, true);
        self.end_local(stream);
        Ok(())
    }

    /// Lays out a head that is not final.
    pub(in crate::h2) fn send_interim(
        &mut self,
        stream: Stream,
        status: &[u8],
    ) -> Result<(), StreamEnded> {
        let state = self.streams.state(stream).ok_or(StreamEnded)?;
        if state.sent_head {
            return Err(StreamEnded);
        }
        let mut block = self.begin_block();
        write_literal(b":status", status, &mut block);
        self.finish_block(stream, block, false);
        Ok(())
    }

    /// Returns true if a stream may have got room and has had no event for it.
    pub(in crate::h2) fn has_room(&self) -> bool {
        !self.queue.is_empty()
            && self.send_window > 0
            && self.output.pending_bytes() < self.limits.output_bytes_max
    }

    /// The stream that has got room and has had no event for it.
    pub(super) fn next_room(&mut self) -> Option<Stream> {
        if !self.has_room() {
            return None;
        }
        while let Some(stream) = self.queue.pop_front() {
            let Some(state) = self.streams.state(stream) else {
                continue;
            };
            state.is_queued = false;
            if state.is_blocked && state.send_window > 0 {
                state.is_blocked = false;
                return Some(stream);
            }
        }
        None
    }

    fn write_block(&mut self, stream: Stream, head: &Head<'_>, ends: bool) {
        let mut block = self.begin_block();
        block.extend_from_slice(head.block.bytes());
        if let BodyLength::Bytes(length) | BodyLength::Withheld(length) = head.body {
            write_content_length(length, &mut block);
        }
        for (name, value) in head.extra {
            write_literal(name.as_bytes(), value, &mut block);
        }
        self.finish_block(stream, block, ends);
    }

    fn begin_block(&mut self) -> Vec<u8> {
        let mut block = std::mem::take(&mut self.scratch);
        if std::mem::take(&mut self.peer.is_table_reset_pending) {
            self.peer.has_empty_table = true;
            block.push(EMPTY_TABLE);
        }
        block
    }

    fn finish_block(&mut self, stream: Stream, mut block: Vec<u8>, ends: bool) {
        let frame_bytes_max = self.peer.frame_bytes_max;
        let out = self.output.bytes();
        write_headers(stream.number(), &block, ends, frame_bytes_max, out);
        block.clear();
        self.scratch = block;
    }

    /// We have sent all of `stream`.
    fn end_local(&mut self, stream: Stream) {
        let is_done = self
            .streams
            .state(stream)
            .is_some_and(|state| state.remote_done);
        // Where its last event is due, that event ends it.
        let is_due = self.ending.is_some_and(|(ending, _)| ending == stream);
        if self.is_server && is_done && !is_due {
            self.complete(stream);
        }
    }
}
