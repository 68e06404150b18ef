//! Events that are sent together.

use crate::core::Core;

/// Whole lines with their ends.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) events: u64,
}

impl Batch {
    /// Waits for events and takes as many as there are, at most `events_max` in
    /// `bytes_max`, but at least one; false once no more will come.
    pub(super) async fn fill(&mut self, core: &Core, events_max: u64, bytes_max: usize) -> bool {
        self.bytes.clear();
        self.events = 0;
        if !core.buffer.wait().await {
            return false;
        }
        core.gate.pass().await;
        core.buffer.take_while(|event| {
            let bytes = self.bytes.len() + event.len() + 1;
            let fits = bytes <= bytes_max && self.events < events_max;
            let wanted = self.events == 0 || fits;
            if wanted {
                self.bytes.extend_from_slice(event);
                self.bytes.push(b'\n');
                self.events += 1;
            }
            wanted
        });
        true
    }

    /// Counts all of it as handed over.
    pub(super) fn count(&self, core: &Core) {
        core.handed_over(self.events, self.bytes.len() as u64);
    }
}
