//! Limits of a connection.

use super::frame::{FRAME_BYTES_DEFAULT, SettingsFrame};
use stillwell_units::as_usize;

/// The window that every connection and stream begins with, in bytes.
pub(super) const WINDOW_BYTES_DEFAULT: u32 = 65_535;

/// The largest window, in bytes.
pub(super) const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

/// Limits that one side of a connection sets. Values that the protocol does not allow become
/// the nearest that it does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Requests under way at once: those a client makes, those a server takes.
    pub concurrent_streams_max: u32,
    /// Flow-control window of one stream, in bytes.
    pub stream_window_bytes: u32,
    /// Flow-control window of the connection, in bytes; at least 65,535.
    pub connection_window_bytes: u32,
    /// The longest payload that is taken, in bytes: 2¹⁴ to 2²⁴ − 1.
    pub frame_bytes_max: u32,
    /// The longest list of headers that is taken: names, values and 32 for each.
    pub header_list_bytes_max: u32,
    /// Size of the table for decoding the peer's headers, in bytes.
    pub header_table_bytes: u32,
    /// True if a server takes `CONNECT` with a `:protocol`, and announces it (RFC 8441).
    /// Without meaning for clients.
    pub connect_protocol: bool,
    /// Size of the output buffer that makes bodies wait, in bytes.
    pub output_bytes_max: usize,
    /// Frames without use (pings, settings, empty data, unknown ones) beyond
    /// the exchanges that were completed.
    pub nuisances_max: u32,
    /// Streams that the peer resets, or makes us reset, beyond the exchanges
    /// that were completed.
    pub resets_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrent_streams_max: 128,
            stream_window_bytes: 1 << 20,
            connection_window_bytes: 16 << 20,
            frame_bytes_max: FRAME_BYTES_DEFAULT,
            header_list_bytes_max: 64 << 10,
            header_table_bytes: 4096,
            connect_protocol: false,
            output_bytes_max: 256 << 10,
            nuisances_max: 10_000,
            resets_max: 1_000,
        }
    }
}

impl Limits {
    pub(super) fn clamped(self) -> Self {
        Self {
            concurrent_streams_max: self.concurrent_streams_max.max(1),
            stream_window_bytes: self.stream_window_bytes.clamp(1, WINDOW_BYTES_MAX),
            connection_window_bytes: self
                .connection_window_bytes
                .clamp(WINDOW_BYTES_DEFAULT, WINDOW_BYTES_MAX),
            frame_bytes_max: self
                .frame_bytes_max
                .clamp(FRAME_BYTES_DEFAULT, (1 << 24) - 1),
            output_bytes_max: self.output_bytes_max.max(1),
            ..self
        }
    }

    /// Returns the settings for the peer.
    pub(super) const fn settings(&self) -> SettingsFrame {
        SettingsFrame {
            header_table_bytes: Some(self.header_table_bytes),
            push: None,
            concurrent_streams_max: None,
            initial_window_bytes: Some(self.stream_window_bytes),
            frame_bytes_max: Some(self.frame_bytes_max),
            header_list_bytes_max: Some(self.header_list_bytes_max),
            connect_protocol: None,
        }
    }

    /// Maximum size of a header block before it is decoded.
    pub(super) fn block_bytes_max(&self) -> usize {
        as_usize(self.header_list_bytes_max)
    }
}
