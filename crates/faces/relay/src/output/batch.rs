//! Events that are sent together.

use crate::core::Core;

/// Whole lines with their ends.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// End of each event in `bytes`, which may hold ends of lines itself.
    ends: Vec<usize>,
    /// Number of events that are counted as handed over: the first ones.
    counted: usize,
}

impl Batch {
    /// Waits for events and takes as many as there are, at most `events_max` in
    /// `bytes_max`, but at least one; false once no more will come.
    pub(super) async fn fill(&mut self, core: &Core, events_max: u64, bytes_max: usize) -> bool {
        self.bytes.clear();
        self.ends.clear();
        self.counted = 0;
        if !core.buffer.wait().await {
            return false;
        }
        core.gate.pass().await;
        core.buffer.take_while(|event| {
            let end = self.bytes.len() + event.len() + 1;
            let fits = end <= bytes_max && self.events() < events_max;
            let wanted = self.ends.is_empty() || fits;
            if wanted {
                self.push(event);
            }
            wanted
        });
        true
    }

    fn push(&mut self, event: &[u8]) {
        self.bytes.extend_from_slice(event);
        self.bytes.push(b'\n');
        self.ends.push(self.bytes.len());
    }

    /// Returns the number of events.
    pub(super) const fn events(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Returns the number of events that are not counted as handed over.
    pub(super) const fn uncounted(&self) -> u64 {
        (self.ends.len() - self.counted) as u64
    }

    /// Counts the whole events in the first `written` bytes as handed over, each once.
    pub(super) fn count(&mut self, core: &Core, written: usize) {
        let whole = self.whole_events(written);
        if whole > self.counted {
            let bytes = self.end_of(whole) - self.end_of(self.counted);
            core.handed_over((whole - self.counted) as u64, bytes as u64);
            self.counted = whole;
        }
    }

    /// Returns the beginning of the event that has the byte at `written`: a new connection
    /// must begin with a whole event.
    pub(super) fn begun_event(&self, written: usize) -> usize {
        self.end_of(self.whole_events(written))
    }

    /// Returns the number of whole events in the first `written` bytes.
    fn whole_events(&self, written: usize) -> usize {
        self.ends.partition_point(|end| *end <= written)
    }

    /// Returns the end of the first `events`.
    fn end_of(&self, events: usize) -> usize {
        events.checked_sub(1).map_or(0, |last| self.ends[last])
    }
}

#[cfg(test)]
mod tests {
    use stillwell_scope::Token;

    use super::*;
    use crate::endpoint::Endpoint;
    use crate::options::RelayOptions;

    fn batch(events: &[&str]) -> Batch {
        let mut batch = Batch::default();
        for event in events {
            batch.push(event.as_bytes());
        }
        batch
    }

    #[test]
    fn a_broken_write_resumes_with_a_whole_event() {
        let lines = batch(&["one", "two", "three"]);
        for (written, begun) in [(0, 0), (2, 0), (3, 0), (4, 4), (9, 8), (14, 14)] {
            assert_eq!(lines.begun_event(written), begun, "{written}");
        }
        assert_eq!(batch(&["a\nb", "c"]).begun_event(3), 0);
    }

    #[test]
    fn whole_events_count_as_handed_over_after_each_partial_write_and_once() {
        let options = RelayOptions::new(Endpoint::Discard, Endpoint::Discard);
        let core = Core::new(&options, None, Token::new());
        // The second event is of two lines.
        let mut batch = batch(&["one", "two\n2", "three"]);
        for (written, events, bytes) in [
            (3, 0, 0),
            (4, 1, 4),
            (8, 1, 4),
            (11, 2, 10),
            (4, 2, 10),
            (16, 3, 16),
            (16, 3, 16),
        ] {
            batch.count(&core, written);
            let counters = &core.counters;
            let counted = (counters.events_out.get(), counters.bytes_out.get());
            assert_eq!(counted, (events, bytes), "{written}");
            assert_eq!(batch.uncounted(), 3 - events, "{written}");
        }
    }
}
