//! Settings of both sides.

use super::H2Connection;
use crate::h2::error::{H2ConnectionError, H2ErrorCode};
use crate::h2::frame::{SettingsFrame, write_settings, write_settings_ack, write_window_update};
use crate::h2::hpack::TABLE_BYTES_DEFAULT;
use crate::h2::limits::{WINDOW_BYTES_DEFAULT, WINDOW_BYTES_MAX};
use crate::h2::streams::{ReceiveWindow, Stream};

impl H2Connection {
    /// Says our settings, and opens the connection's window.
    pub(in crate::h2) fn write_settings(&mut self, settings: &SettingsFrame) {
        let out = self.output.bytes();
        write_settings(settings, out);
        let more = self.limits.connection_window_bytes - WINDOW_BYTES_DEFAULT;
        if more > 0 {
            write_window_update(0, more, out);
        }
    }

    /// Returns the receive window of a stream that begins now: the peer may not know our
    /// settings yet.
    pub(in crate::h2) fn new_receive_window(&self) -> ReceiveWindow {
        let bytes = self.limits.stream_window_bytes;
        if self.peer.has_acknowledged {
            return ReceiveWindow::new(bytes);
        }
        ReceiveWindow::new(bytes.max(WINDOW_BYTES_DEFAULT))
    }

    pub(super) fn receive_acknowledgement(&mut self) -> Result<(), H2ConnectionError> {
        if self.peer.has_acknowledged {
            return self.flood.nuisance("acknowledgements");
        }
        self.peer.has_acknowledged = true;
        let bytes = self.limits.stream_window_bytes;
        let out = self.output.bytes();
        for (stream, state) in self.streams.iter_mut() {
            let increment_bytes = state.receive_window.resize(bytes);
            if increment_bytes > 0 && !state.remote_done {
                write_window_update(stream.number(), increment_bytes, out);
            }
        }
        Ok(())
    }

    pub(super) fn receive_settings(
        &mut self,
        settings: &SettingsFrame,
    ) -> Result<(), H2ConnectionError> {
        self.flood.nuisance("settings")?;
        self.flood.reply()?;
        write_settings_ack(self.output.bytes());
        self.peer.has_settings = true;
        if settings.push.is_some() && !self.is_server && settings.push == Some(true) {
            return Err(H2ConnectionError::protocol("a server that enables push"));
        }
        if let Some(connect_protocol) = settings.connect_protocol {
            if self.peer.connect_protocol && !connect_protocol {
                let what = "settings that withdraw `:protocol`";
                return Err(H2ConnectionError::protocol(what));
            }
            self.peer.connect_protocol = connect_protocol;
        }
        if let Some(bytes) = settings.frame_bytes_max {
            self.peer.frame_bytes_max = bytes;
        }
        if let Some(streams) = settings.concurrent_streams_max {
            self.peer.concurrent_streams_max = streams;
        }
        if let Some(bytes) = settings.header_table_bytes {
            let is_small = (bytes as usize) < TABLE_BYTES_DEFAULT;
            self.peer.is_table_reset_pending = is_small && !self.peer.has_empty_table;
        }
        if let Some(bytes) = settings.initial_window_bytes {
            self.resize_windows(bytes)?;
        }
        Ok(())
    }

    /// The peer's windows for all streams, present and to come, are `bytes`.
    fn resize_windows(&mut self, bytes: u32) -> Result<(), H2ConnectionError> {
        let more = i64::from(bytes) - i64::from(self.peer.initial_window_bytes);
        self.peer.initial_window_bytes = bytes;
        if more == 0 {
            return Ok(());
        }
        for (stream, state) in self.streams.iter_mut() {
            state.send_window += more;
            if state.send_window > i64::from(WINDOW_BYTES_MAX) {
                return Err(H2ConnectionError::Protocol {
                    what: "a window above 2³¹ − 1",
                    code: H2ErrorCode::FLOW_CONTROL_ERROR,
                });
            }
            if state.is_blocked && !state.is_queued && state.send_window > 0 {
                state.is_queued = true;
                self.queue.push_back(stream);
            }
        }
        Ok(())
    }

    /// Queues the event of a stream that may have got room.
    pub(super) fn queue_if_room(&mut self, stream: Stream) {
        let Some(state) = self.streams.state(stream) else {
            return;
        };
        if state.is_blocked && !state.is_queued && state.send_window > 0 {
            state.is_queued = true;
            self.queue.push_back(stream);
        }
    }
}
