//! Lines over a stream.

use std::rc::Rc;

use stillwell_wire::Stream;
use stillwell_wire::server::{Activity, busy};

use super::InputReader;
use crate::core::Core;
use crate::counters::add;
use crate::split::Splitter;

/// Takes in the lines of one connection; does not read while the buffer is full.
pub(super) async fn serve(core: Rc<Core>, mut stream: Stream, activity: Activity) {
    let mut reader = InputReader::new(&core);
    let mut splitter = Splitter::default();
    while let Some(input) = reader.read(&mut stream).await {
        add(&core.counters.bytes_in, input.len() as u64);
        let lines = splitter.take(input);
        busy(&activity, core.take_in(lines.bytes, None)).await;
        core.drop_events(lines.dropped);
    }
    if reader.is_closed()
        && let Some(last) = splitter.finish()
    {
        busy(&activity, core.take_in(last, None)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stillwell_scope::{Token, clock};
    use stillwell_wire::server::watched;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    use super::*;
    use crate::endpoint::Endpoint;
    use crate::options::RelayOptions;

    /// Such a connection was closed for a new one, and its lines were lost without a count.
    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_lines_wait_for_room_is_not_idle() {
        let mut options = RelayOptions::new(Endpoint::Discard, Endpoint::Discard);
        options.buffer_events = 1;
        let core = Rc::new(Core::new(&options, None, Token::new()));
        let (mut client, stream) = UnixStream::pair().unwrap();
        client.write_all(b"first\nsecond\n").await.unwrap();
        let activity = Activity::default();
        let served = serve(Rc::clone(&core), stream.into(), Rc::clone(&activity));
        let served = watched(Rc::clone(&activity), served);
        tokio::pin!(served);
        let a_while = Duration::from_secs(1);
        assert!(timeout(a_while, served.as_mut()).await.is_err());
        assert_eq!(core.counters.events_in.get(), 1);
        assert!(activity.get() > clock::now());
        core.buffer.take_while(|_| true);
        assert!(timeout(a_while, served.as_mut()).await.is_err());
        assert_eq!(core.counters.events_in.get(), 2);
        assert!(activity.get() <= clock::now());
    }
}
