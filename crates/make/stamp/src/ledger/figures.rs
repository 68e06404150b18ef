//! Figures and losses of a stream.

use super::received::Received;
use super::store::Words;
use super::window::WINDOW;

/// A count, exact if both are the same.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Bounds {
    /// It is no less than this.
    pub least: u64,
    /// It is no more than this.
    pub most: u64,
}

impl Bounds {
    /// A count that is known.
    #[must_use]
    pub const fn exact(count: u64) -> Self {
        Self {
            least: count,
            most: count,
        }
    }

    /// The count, if it is known exactly.
    #[must_use]
    pub fn exactly(&self) -> Option<u64> {
        (self.least == self.most).then_some(self.least)
    }

    /// Returns true if `count` is within the bounds.
    #[must_use]
    pub const fn contains(&self, count: u64) -> bool {
        self.least <= count && count <= self.most
    }

    pub(super) const fn plus(self, bounds: Self) -> Self {
        Self {
            least: self.least.saturating_add(bounds.least),
            most: self.most.saturating_add(bounds.most),
        }
    }

    /// The difference, 0 where it would be less.
    pub(super) const fn minus(self, bounds: Self) -> Self {
        Self {
            least: self.least.saturating_sub(bounds.most),
            most: self.most.saturating_sub(bounds.least),
        }
    }
}

/// The figures of one stream, in events.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamFigures {
    /// Stamped events that were sent, or up to the latest that arrived.
    pub sent: u64,
    /// Of these, how many arrived.
    pub received: Bounds,
    /// Of these, how many did not.
    pub lost: Bounds,
    /// Of these, how many arrived in fewer copies than expected.
    pub incomplete: Bounds,
    /// Arrivals beyond the expected copies.
    pub duplicated: Bounds,
    /// Events that arrived although their sequence number was never sent.
    pub unsent: Bounds,
    /// All arrivals.
    pub arrivals: u64,
    /// First arrivals after one that is later in sequence.
    pub reordered: u64,
    /// Largest distance to the latest sequence number at such an arrival.
    pub displacement_max: u64,
    /// First arrivals later than allowed.
    pub late: u64,
    /// Arrivals in windows that are only bounded: whether first, reordered or
    /// late is unknown.
    pub unclear: u64,
    /// Arrivals whose span is as it was sent.
    pub intact: u64,
    /// Arrivals whose span came in full length with other bytes.
    pub damaged: u64,
    /// Arrivals whose span did not come in one piece or not in its form.
    pub unverifiable: u64,
    /// Arrivals that declare no span.
    pub undeclared: u64,
    /// Arrivals whose span has not been settled.
    pub pending: u64,
    /// The first sequence numbers that arrived damaged, at most 64.
    pub damaged_sequences: Vec<u64>,
    /// Windows of 65,536 sequence numbers that keep counts only.
    pub bounded_windows: u64,
}

/// Neighbouring events that are missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Loss {
    /// The first sequence number of the range.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// Number of missing events of the range: all of them, or bounds where only counts were kept.
    pub lost: Bounds,
}

/// Missing events of a stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Losses {
    /// The first ranges, in rising order.
    pub ranges: Vec<Loss>,
    /// Number of ranges.
    pub count: u64,
}

/// Gathers what is missing, and joins neighbours.
pub(super) struct Walk {
    losses: Losses,
    most: usize,
    /// Nothing from here on was sent.
    sent: u64,
    open: Option<Loss>,
}

impl Walk {
    /// Collects the ranges of `received` below `sent` that are missing.
    pub(super) fn over(received: &Received, sent: u64, most: usize) -> Losses {
        let mut walk = Self {
            losses: Losses::default(),
            most,
            sent,
            open: None,
        };
        let prefix = received.prefix();
        let mut next = prefix.end.saturating_mul(WINDOW);
        if !prefix.is_complete() {
            walk.bounded(0, next, prefix.known, prefix.unclear);
        }
        for entry in received.windows() {
            let start = entry.index * WINDOW;
            if start >= sent {
                break;
            }
            walk.missing(next, start);
            next = start + WINDOW;
            if entry.window.is_exact() {
                let mut words = Words([0; 1024]);
                entry.window.add_to(&mut words);
                walk.exact(start, &words);
            } else {
                let known = u64::from(entry.window.known());
                walk.bounded(start, next, known, entry.window.unclear());
            }
        }
        walk.missing(next, sent);
        walk.flush();
        walk.losses
    }

    fn exact(&mut self, start: u64, words: &Words) {
        for (base, word) in (start..).step_by(64).zip(&words.0) {
            let mut missing = !word;
            while missing != 0 {
                let skip = missing.trailing_zeros();
                let length = (missing >> skip).trailing_ones();
                let first = base + u64::from(skip);
                self.missing(first, first + u64::from(length));
                let beyond = skip + length;
                missing = missing.checked_shr(beyond).unwrap_or(0);
                missing = missing.checked_shl(beyond).unwrap_or(0);
            }
        }
    }

    /// Everything from `first` to before `end` is missing.
    fn missing(&mut self, first: u64, end: u64) {
        let end = end.min(self.sent);
        if first >= end {
            return;
        }
        match &mut self.open {
            Some(open) if open.last + 1 == first => {
                open.last = end - 1;
                open.lost = Bounds::exact(end - open.first);
            }
            _ => {
                self.flush();
                self.open = Some(Loss {
                    first,
                    last: end - 1,
                    lost: Bounds::exact(end - first),
                });
            }
        }
    }

    /// Of what lies from `first` to before `end`, `known` arrived, and up to
    /// `unclear` more.
    fn bounded(&mut self, first: u64, end: u64, known: u64, unclear: u64) {
        self.flush();
        let sent = end.min(self.sent).saturating_sub(first);
        let beyond = (end - first) - sent;
        let arrived = Bounds {
            least: known.saturating_sub(beyond),
            most: known.saturating_add(unclear).min(sent),
        };
        let lost = Bounds::exact(sent).minus(arrived);
        if lost.most > 0 {
            self.push(Loss {
                first,
                last: first + sent - 1,
                lost,
            });
        }
    }

    fn flush(&mut self) {
        if let Some(open) = self.open.take() {
            self.push(open);
        }
    }

    fn push(&mut self, loss: Loss) {
        self.losses.count += 1;
        if self.losses.ranges.len() < self.most {
            self.losses.ranges.push(loss);
        }
    }
}
