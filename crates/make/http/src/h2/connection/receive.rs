//! Frames from the peer.

use super::{H2Connection, StreamEvent};
use crate::h2::error::{H2ConnectionError, H2ErrorCode, H2StreamFailure};
use crate::h2::fields::Fields;
use crate::h2::frame::{Frame, write_ping, write_window_update};
use crate::h2::head::check_trailers;
use crate::h2::limits::WINDOW_BYTES_MAX;
use crate::h2::streams::Stream;

impl H2Connection {
    /// A frame that means the same to both sides.
    pub(in crate::h2) fn receive<'i>(
        &mut self,
        frame: Frame<'i>,
    ) -> Result<Option<StreamEvent<'i>>, H2ConnectionError> {
        match frame {
            Frame::Data { .. } => return self.receive_data(frame),
            Frame::Reset { stream, code } => return self.receive_reset(stream, code),
            Frame::WindowUpdate {
                stream,
                increment_bytes,
            } => return self.receive_window(stream, increment_bytes),
            Frame::Settings(settings) => self.receive_settings(&settings)?,
            Frame::SettingsAck => self.receive_acknowledgement()?,
            Frame::Ping { payload, ack } => {
                if ack {
                    self.flood.nuisance("acknowledgements of pings")?;
                } else {
                    // Peers measure round trips by them while data flows: only unread answers are limited.
                    self.flood.reply()?;
                    write_ping(payload, true, self.output.bytes());
                }
            }
            Frame::Priority { .. } | Frame::Ignored { .. } => {
                self.flood.nuisance("frames without effect")?;
            }
            // These are for the sides.
            Frame::Headers { .. } | Frame::PushPromise { .. } | Frame::GoAway { .. } => {}
        }
        Ok(None)
    }

    /// The head of `stream`, which is checked.
    pub(in crate::h2) fn receive_head(
        &mut self,
        stream: Stream,
        content_length: Option<u64>,
        has_no_body: bool,
        end_stream: bool,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        let Some(state) = self.streams.state(stream) else {
            return Ok(None);
        };
        state.has_head = true;
        state.is_bodiless |= has_no_body;
        state.body_left = if state.is_bodiless {
            Some(0)
        } else {
            content_length
        };
        if end_stream {
            if let Some(note) = self.check_length(stream)? {
                return Ok(Some(note));
            }
            self.end_next(stream, false);
        }
        Ok(Some(StreamEvent::Head(stream)))
    }

    /// Headers on a stream whose head was there before.
    pub(in crate::h2) fn receive_trailers(
        &mut self,
        stream: Stream,
        fields: Fields<'_>,
        end_stream: bool,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        let is_done = self
            .streams
            .state(stream)
            .is_none_or(|state| state.remote_done);
        if is_done {
            let cause = H2StreamFailure::Malformed {
                what: "headers after the end",
            };
            return self.fail_stream(stream, H2ErrorCode::STREAM_CLOSED, cause);
        }
        if !end_stream {
            return self.malformed(stream, "trailers that do not end the stream");
        }
        if let Err(what) = check_trailers(fields) {
            return self.malformed(stream, what);
        }
        if let Some(note) = self.check_length(stream)? {
            return Ok(Some(note));
        }
        self.end_next(stream, true);
        Ok(None)
    }

    pub(in crate::h2) fn headers_too_large(
        &mut self,
        stream: Stream,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        let code = H2ErrorCode::ENHANCE_YOUR_CALM;
        self.fail_stream(stream, code, H2StreamFailure::HeadersTooLarge)
    }

    fn receive_data<'i>(
        &mut self,
        frame: Frame<'i>,
    ) -> Result<Option<StreamEvent<'i>>, H2ConnectionError> {
        let Frame::Data {
            stream: number,
            bytes,
            charged_bytes,
            data_bytes,
            end_frame,
            end_stream,
        } = frame
        else {
            return Ok(None);
        };
        self.charge_connection(charged_bytes)?;
        if end_frame && bytes.is_empty() && !end_stream {
            self.flood.nuisance("data frames without data")?;
        }
        let Some(stream) = self.streams.find(number) else {
            self.pass_over(number)?;
            if end_frame {
                self.count_late()?;
            }
            return Ok(None);
        };
        if !self.charge_stream(stream, charged_bytes, end_stream) {
            let cause = H2StreamFailure::Malformed {
                what: "more data than the window allowed",
            };
            return self.fail_stream(stream, H2ErrorCode::FLOW_CONTROL_ERROR, cause);
        }
        let Some(state) = self.streams.state(stream) else {
            return Ok(None);
        };
        if state.remote_done {
            let cause = H2StreamFailure::Malformed {
                what: "data after the end",
            };
            return self.fail_stream(stream, H2ErrorCode::STREAM_CLOSED, cause);
        }
        if !state.has_head {
            return self.malformed(stream, "data before the head");
        }
        if let Some(left) = &mut state.body_left {
            let Some(still_left) = left.checked_sub(data_bytes.into()) else {
                return self.malformed(stream, "more data than its content-length");
            };
            *left = still_left;
        }
        if end_stream {
            if let Some(note) = self.check_length(stream)? {
                return Ok(Some(note));
            }
            self.end_next(stream, false);
        }
        Ok((!bytes.is_empty()).then_some(StreamEvent::Body(stream, bytes)))
    }

    /// Fails `stream`, whose end has come, where some of its body is missing.
    fn check_length(
        &mut self,
        stream: Stream,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        let state = self.streams.state(stream);
        let is_short = state
            .is_some_and(|state| !state.is_bodiless && !matches!(state.body_left, None | Some(0)));
        if is_short {
            return self.malformed(stream, "less data than its content-length");
        }
        Ok(None)
    }

    fn charge_connection(&mut self, bytes: u32) -> Result<(), H2ConnectionError> {
        let increment = self.receive_window.charge(bytes);
        let increment_bytes = increment.ok_or(H2ConnectionError::Protocol {
            what: "more data than the connection's window allowed",
            code: H2ErrorCode::FLOW_CONTROL_ERROR,
        })?;
        if increment_bytes > 0 {
            write_window_update(0, increment_bytes, self.output.bytes());
        }
        Ok(())
    }

    /// The peer gets no more room on `stream`.
    pub(in crate::h2) fn hold(&mut self, stream: Stream) {
        if let Some(state) = self.streams.state(stream) {
            state.receive_window.hold();
        }
    }

    /// It gets room again.
    pub(in crate::h2) fn release(&mut self, stream: Stream) {
        if let Some(state) = self.streams.state(stream) {
            let increment_bytes = state.receive_window.release();
            if increment_bytes > 0 && !state.remote_done {
                write_window_update(stream.number(), increment_bytes, self.output.bytes());
            }
        }
    }

    /// False where it was more than allowed.
    fn charge_stream(&mut self, stream: Stream, bytes: u32, end_stream: bool) -> bool {
        let Some(state) = self.streams.state(stream) else {
            return true;
        };
        let Some(increment_bytes) = state.receive_window.charge(bytes) else {
            return false;
        };
        if increment_bytes > 0 && !end_stream && !state.remote_done {
            write_window_update(stream.number(), increment_bytes, self.output.bytes());
        }
        true
    }

    fn receive_reset(
        &mut self,
        number: u32,
        code: H2ErrorCode,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        if self.is_idle(number) {
            return Err(H2ConnectionError::protocol(
                "a reset of a stream that is idle",
            ));
        }
        let Some(stream) = self.streams.find(number) else {
            self.count_late()?;
            return Ok(None);
        };
        self.count_reset()?;
        self.forget(stream);
        let cause = match code {
            H2ErrorCode::REFUSED_STREAM => H2StreamFailure::Refused,
            code => H2StreamFailure::Reset(code),
        };
        Ok(Some(StreamEvent::Failed(stream, cause)))
    }

    fn receive_window(
        &mut self,
        number: u32,
        increment_bytes: u32,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        let increment = i64::from(increment_bytes);
        if number == 0 {
            self.send_window += increment;
            if increment == 0 {
                return Err(H2ConnectionError::protocol("a window update of zero"));
            }
            if self.send_window > i64::from(WINDOW_BYTES_MAX) {
                return Err(H2ConnectionError::Protocol {
                    what: "a window above 2³¹ − 1",
                    code: H2ErrorCode::FLOW_CONTROL_ERROR,
                });
            }
            return Ok(None);
        }
        if self.is_idle(number) {
            let what = "a window update for a stream that is idle";
            return Err(H2ConnectionError::protocol(what));
        }
        let Some(stream) = self.streams.find(number) else {
            // It may have crossed the end of the stream.
            return Ok(None);
        };
        if increment == 0 {
            return self.malformed(stream, "a window update of zero");
        }
        let Some(state) = self.streams.state(stream) else {
            return Ok(None);
        };
        state.send_window += increment;
        if state.send_window > i64::from(WINDOW_BYTES_MAX) {
            let cause = H2StreamFailure::Malformed {
                what: "a window above 2³¹ − 1",
            };
            return self.fail_stream(stream, H2ErrorCode::FLOW_CONTROL_ERROR, cause);
        }
        self.queue_if_room(stream);
        Ok(None)
    }
}
