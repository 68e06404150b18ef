//! Limits of both sides.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{IdleTimeout, TransportConfig, VarInt};

/// Maximum time without a packet from the peer before a connection counts as lost.
const IDLE_MS: u32 = 30_000;

/// Streams of one direction that the peer may have open: three are of use.
const UNI_STREAMS_MAX: u32 = 16;

/// Flow-control windows for the peer: of one stream, and of the connection.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Maximum number of sent bytes that are not acknowledged.
const SEND_WINDOW_BYTES: u64 = 16 << 20;

/// The first guess at a round trip: a packet that is lost before anything is known
/// is sent again after three of them.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(100);

/// Interval of keep-alives: two fit into an idle timeout of five seconds, so one may be lost.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// The settings of a server whose peer may have `bidi_streams_max` requests under way.
pub(super) fn server_settings(bidi_streams_max: u32) -> Arc<TransportConfig> {
    Arc::new(settings_for(bidi_streams_max))
}

/// Settings of a client: the connection stays open while the server takes its time (RFC 9114, 5.1).
pub(super) fn client_settings() -> Arc<TransportConfig> {
    let mut settings = settings_for(0);
    settings.keep_alive_interval(Some(KEEP_ALIVE));
    Arc::new(settings)
}

fn settings_for(bidi_streams_max: u32) -> TransportConfig {
    let mut settings = TransportConfig::default();
    settings
        .max_concurrent_bidi_streams(VarInt::from_u32(bidi_streams_max))
        .max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS_MAX))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES))
        .send_window(SEND_WINDOW_BYTES)
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_MS))))
        .initial_rtt(FIRST_ROUND_TRIP)
        .datagram_receive_buffer_size(None);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keep_alives_fit_into_an_idle_timeout_of_five_seconds() {
        assert!(2 * KEEP_ALIVE < Duration::from_secs(5));
    }
}
