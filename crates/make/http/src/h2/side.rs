//! Reading and writing that both sides share.

use super::Limits;
use super::connection::{H2Connection, StreamEvent};
use super::error::{H2ConnectionError, H2ErrorCode};
use super::frame::{Frame, FrameReader};
use super::sections::HeaderBlocks;
use super::streams::Stream;

/// One side of a connection, without what only that side knows.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) frames: FrameReader,
    pub(super) sections: HeaderBlocks,
    pub(super) connection: H2Connection,
}

/// The result of some input.
#[derive(Debug)]
pub(super) enum Step<'i> {
    Note(StreamEvent<'i>),
    Next,
    Starved,
}

impl Side {
    /// `limits` are clamped.
    pub(super) fn new(limits: &Limits, is_server: bool) -> Self {
        Self {
            frames: FrameReader::new(limits.frame_bytes_max, limits.block_bytes_max()),
            sections: HeaderBlocks::new(limits),
            connection: H2Connection::new(limits, is_server),
        }
    }

    /// Takes `input` by `step` until there is something to note: how much was
    /// taken, and that.
    pub(super) fn advance<'i>(
        &mut self,
        input: &'i [u8],
        mut step: impl FnMut(&mut Self, &'i [u8]) -> Result<(usize, Step<'i>), H2ConnectionError>,
    ) -> Result<(usize, Option<StreamEvent<'i>>), H2ConnectionError> {
        let mut consumed = 0;
        loop {
            if let Some(note) = self.connection.due() {
                return Ok((consumed, Some(note)));
            }
            if let Some(error) = self.connection.failure() {
                return Err(error);
            }
            match step(self, &input[consumed..]) {
                Ok((taken, step)) => {
                    consumed += taken;
                    match step {
                        Step::Note(note) => return Ok((consumed, Some(note))),
                        Step::Next => {}
                        Step::Starved => return Ok((consumed, None)),
                    }
                }
                Err(error) => self.connection.fail(error),
            }
        }
    }

    /// The next frame and how much of `input` was taken; settings come first.
    pub(super) fn read_frame<'i>(
        &mut self,
        input: &'i [u8],
    ) -> Result<(usize, Option<Frame<'i>>), H2ConnectionError> {
        let (taken, frame) = self
            .frames
            .advance(input)
            .map_err(H2ConnectionError::Frame)?;
        if let Some(frame) = &frame
            && !self.connection.peer.has_settings
            && !matches!(frame, Frame::Settings(_))
        {
            return Err(H2ConnectionError::protocol("a frame before its settings"));
        }
        Ok((taken, frame))
    }

    /// A frame that means the same to both sides.
    pub(super) fn receive<'i>(
        &mut self,
        frame: Frame<'i>,
    ) -> Result<Option<StreamEvent<'i>>, H2ConnectionError> {
        if frame == Frame::SettingsAck {
            self.sections.acknowledged(&self.connection.limits);
        }
        self.connection.receive(frame)
    }

    /// The peer has ended the connection, in the middle of something where
    /// `is_cut`: what is due, until there is nothing.
    pub(super) fn finish(
        &mut self,
        is_cut: bool,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        if let Some(note) = self.connection.due_end() {
            return Ok(Some(note));
        }
        if is_cut || self.connection.streams.len() > 0 || !self.frames.is_idle() {
            self.connection.fail(H2ConnectionError::Truncated);
        }
        let Some(error) = self.connection.failure() else {
            return Ok(None);
        };
        self.connection
            .due()
            .map_or(Err(error), |note| Ok(Some(note)))
    }

    /// Gives `stream` up, unless it is over.
    pub(super) fn reset(&mut self, stream: Stream, code: H2ErrorCode) {
        if self.connection.streams.state(stream).is_some() {
            self.connection.reset(stream, code);
        }
    }
}
