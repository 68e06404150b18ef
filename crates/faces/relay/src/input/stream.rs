//! Lines over a stream.

use std::rc::Rc;

use stillwell_wire::Stream;

use super::InputReader;
use crate::core::Core;
use crate::counters::add;
use crate::split::Splitter;

/// Takes in the lines of one connection; does not read while the buffer is full.
pub(super) async fn serve(core: Rc<Core>, mut stream: Stream) {
    let mut reader = InputReader::new(&core);
    let mut splitter = Splitter::default();
    while let Some(input) = reader.read(&mut stream).await {
        add(&core.counters.bytes_in, input.len() as u64);
        let lines = splitter.take(input);
        core.take_in(lines.bytes, false).await;
        core.drop_events(lines.dropped);
    }
    if reader.is_closed()
        && let Some(last) = splitter.finish()
    {
        core.take_in(last, false).await;
    }
}
