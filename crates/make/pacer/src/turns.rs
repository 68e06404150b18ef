//! Two workloads that take turns.
//!
//! Two targets that are measured at once see the same host, the same neighbours
//! and the same clock speed if load is switched between them often. Each side
//! gets the same time: it comes in blocks of two turns of one random length, one
//! for each side, in random order.
//!
//! ```text
//! stretch │gap│ one   │gap│ other │gap│ other      │gap│ one        │gap│ stretch
//!         │   └────── block ──────────┘└──────────── block ───────────┘
//! ```
//!
//! Between two turns neither side sends, so events held by one target are not
//! processed in the other's turn. The edges of a stretch, such as the measured
//! phase, lie in such a gap too: a counter that is read there cuts no turn.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use stillwell_units::{Moment, Nanos, Seed};

/// Minimum length of a turn and its gap together: below this
/// wake-ups dominate, and the list of turns grows long.
const TURN_MIN: Nanos = Nanos::from_millis(10);
/// No turn is longer than centuries, so sums of a few of them fit.
const TURN_MAX: u64 = u64::MAX / 8;
/// No gap is shorter, so no two turns touch.
const GAP_MIN: Nanos = Nanos::from_millis(1);

/// Lengths of the turns of two sides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TurnPlan {
    /// The shortest turn with the gap behind it, at least 10 ms.
    pub turn_min: Nanos,
    /// The longest, but the last block of a stretch takes what is left over: its
    /// turns may be longer by less than `turn_min`.
    pub turn_max: Nanos,
    /// Pause after each turn and at the start of a stretch; at
    /// least 1 ms and at most half of the shortest turn.
    pub gap: Nanos,
}

/// Times at which one of two sides may send, from a start on; and its *active time*, which
/// is stopped while it may not.
///
/// Both sides' active time runs at the clock's pace while they send, and is the
/// clock's before the start. A schedule in active time therefore has
/// no burst at the start of a turn, and a turn that is awaited is not lateness.
///
/// After the last stretch neither side sends. Clones share the list of turns.
#[derive(Clone, Debug)]
pub struct Turns {
    start: Moment,
    turns: Arc<[Turn]>,
}

/// One turn: nanoseconds since the start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Turn {
    begin: u64,
    end: u64,
    /// Active time before it.
    before: u64,
}

impl Turns {
    /// The turns of both sides in `stretches` that follow one another from
    /// `start`, and are balanced each for itself. The same seed gives the same
    /// turns.
    #[must_use]
    pub fn pair(plan: TurnPlan, seed: &Seed, start: Moment, stretches: &[Nanos]) -> [Self; 2] {
        let shortest = plan.turn_min.max(TURN_MIN).as_u64().min(TURN_MAX);
        let mut draw = TurnDraw {
            seed: *seed,
            blocks: 0,
            shortest,
            longest: plan.turn_max.as_u64().clamp(shortest, TURN_MAX),
        };
        let gap = plan.gap.as_u64().clamp(GAP_MIN.as_u64(), shortest / 2);
        let mut sides = [Vec::new(), Vec::new()];
        let mut begin = 0_u64;
        for stretch in stretches {
            let end = begin.saturating_add(stretch.as_u64());
            fill(&mut sides, begin.saturating_add(gap), end, gap, &mut draw);
            begin = end;
        }
        sides.map(|turns| Self {
            start,
            turns: turns.into(),
        })
    }

    /// Returns true if this side may send at `now`.
    #[must_use]
    pub fn is_on(&self, now: Moment) -> bool {
        let elapsed = now.since(self.start).as_u64();
        self.latest(elapsed)
            .is_some_and(|turn| now >= self.start && elapsed < turn.end)
    }

    /// When that changes next; `u64::MAX` for never.
    #[must_use]
    pub fn next_change(&self, now: Moment) -> Moment {
        if now < self.start {
            return self.moment(self.turns.first().map(|turn| turn.begin));
        }
        let elapsed = now.since(self.start).as_u64();
        match self.latest(elapsed) {
            Some(turn) if elapsed < turn.end => self.moment(Some(turn.end)),
            _ => {
                let next = self.turns.partition_point(|turn| turn.begin <= elapsed);
                self.moment(self.turns.get(next).map(|turn| turn.begin))
            }
        }
    }

    /// Time for which this side could send until `now`.
    #[must_use]
    pub fn active(&self, now: Moment) -> Nanos {
        let elapsed = now.since(self.start).as_u64();
        Nanos::new(
            self.latest(elapsed)
                .map_or(0, |turn| turn.before + elapsed.min(turn.end) - turn.begin),
        )
    }

    /// Active time at `now`.
    #[must_use]
    pub fn active_time(&self, now: Moment) -> Moment {
        now.min(self.start) + self.active(now)
    }

    /// The first moment within a turn at which active time has reached `active`;
    /// `u64::MAX` for never. Before the start that is `active` itself.
    #[must_use]
    pub fn clock_time(&self, active: Moment) -> Moment {
        if active < self.start {
            return active;
        }
        let active = active.since(self.start).as_u64();
        let next = self
            .turns
            .partition_point(|turn| turn.before + (turn.end - turn.begin) <= active);
        let turn = self.turns.get(next);
        self.moment(turn.map(|turn| turn.begin + (active - turn.before)))
    }

    /// The turn that began last.
    fn latest(&self, elapsed: u64) -> Option<Turn> {
        let begun = self.turns.partition_point(|turn| turn.begin <= elapsed);
        self.turns.get(begun.checked_sub(1)?).copied()
    }

    fn moment(&self, elapsed: Option<u64>) -> Moment {
        elapsed.map_or(Moment::new(u64::MAX), |elapsed| {
            self.start + Nanos::new(elapsed)
        })
    }
}

/// Fills the time from `at` to `end` with blocks.
fn fill(sides: &mut [Vec<Turn>; 2], mut at: u64, end: u64, gap: u64, draw: &mut TurnDraw) {
    loop {
        let rest = end.saturating_sub(at);
        let (drawn, other_first) = draw.block();
        let is_last = rest < 2 * (drawn + draw.shortest);
        let length = if is_last { rest / 2 } else { drawn };
        if length > gap {
            for index in 0..2 {
                let turns = &mut sides[usize::from((index == 1) != other_first)];
                let before = turns
                    .last()
                    .map_or(0, |last| last.before + (last.end - last.begin));
                turns.push(Turn {
                    begin: at,
                    end: at + length - gap,
                    before,
                });
                at += length;
            }
        }
        if is_last {
            return;
        }
    }
}

/// Draws block after block from a seed.
struct TurnDraw {
    seed: Seed,
    blocks: u64,
    shortest: u64,
    longest: u64,
}

impl TurnDraw {
    /// The length of a turn and its gap, and whether the other side is first.
    fn block(&mut self) -> (u64, bool) {
        let seed = self.seed.derive("turn", self.blocks);
        self.blocks += 1;
        let [first, second, ..] = seed.bytes().as_chunks::<8>().0 else {
            unreachable!("a seed has 32 bytes");
        };
        let span = self.longest - self.shortest + 1;
        let length = self.shortest + u64::from_le_bytes(*first) % span;
        (length, second[0] & 1 == 1)
    }
}
