//! The memory of a ledger: how much is used, and what is used again.

/// One bit for each sequence number of a window.
#[derive(Clone, Debug)]
pub(super) struct Words(pub(super) [u64; 1024]);

/// Windows are closed and others opened in their place: these few are kept.
const SPARES: usize = 4;

/// Accounts for the memory of all windows.
#[derive(Clone, Debug)]
pub(super) struct Store {
    /// Bytes in windows, without the spares.
    pub(super) used: usize,
    spares: Vec<Box<Words>>,
}

impl Store {
    /// Maximum memory of the spare windows.
    pub(super) const SPARE_BYTES: u64 = 4 * 8192;

    pub(super) fn new() -> Self {
        Self {
            used: 0,
            spares: Vec::with_capacity(SPARES),
        }
    }

    /// Bits, all clear.
    pub(super) fn words(&mut self) -> Box<Words> {
        match self.spares.pop() {
            Some(mut words) => {
                words.0.fill(0);
                words
            }
            None => Box::new(Words([0; 1024])),
        }
    }

    /// Takes bits back that are needed no longer.
    pub(super) fn give_back(&mut self, words: Box<Words>) {
        if self.spares.len() < SPARES {
            self.spares.push(words);
        }
    }

    /// Something that took `before` bytes takes `after` now.
    pub(super) fn account(&mut self, before: usize, after: usize) {
        self.used = (self.used + after).saturating_sub(before);
    }
}
