//! Axes: from values to coordinates.

/// An axis between two coordinates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    is_log: bool,
    /// Ticks are round numbers of this unit.
    unit: f64,
    /// Ticks are not nearer to each other.
    tick_step_min: f64,
}

impl Axis {
    /// Returns a linear axis from `low` at `start` to `high` at `end`; bounds that are no range become one; two zeros
    /// become 0 and 1.
    pub(super) fn linear(low: f64, high: f64, start: f64, end: f64) -> Self {
        let finite = |bound: f64| if bound.is_finite() { bound } else { 0.0 };
        let (low, high) = (finite(low).min(finite(high)), finite(low).max(finite(high)));
        let size = low.abs().max(high.abs());
        let least = (size * 1e-9).max(1e-12);
        let (low, high) = if size < 1e-12 {
            (0.0, 1.0)
        } else if high - low < least {
            (low - least, high + least)
        } else {
            (low, high)
        };
        Self {
            low,
            high,
            start,
            end,
            is_log: false,
            unit: 1.0,
            tick_step_min: 0.0,
        }
    }

    /// Returns this axis with ticks at whole numbers only.
    pub(super) fn in_whole_numbers(self) -> Self {
        Self {
            tick_step_min: 1.0,
            ..self
        }
    }

    /// Returns this axis with ticks at round numbers of the largest power of 1,024 that it reaches.
    pub(super) fn in_bytes(self) -> Self {
        let reach = self.low.abs().max(self.high.abs());
        let units = [1.0, 1024.0, 1_048_576.0, 1_073_741_824.0];
        let unit = units.into_iter().rev().find(|unit| *unit <= reach);
        Self {
            unit: if self.is_log {
                1.0
            } else {
                unit.unwrap_or(1.0)
            },
            ..self
        }
    }

    /// Returns a logarithmic axis from the 1, 2 or 5 of a decade below `low` to that above `high`.
    pub(super) fn log(low: f64, high: f64, start: f64, end: f64) -> Self {
        let exponent = |bound: f64| {
            let exponent = bound.max(1e-12).log10();
            if exponent.is_finite() { exponent } else { 0.0 }
        };
        let (low, high) = (exponent(low), exponent(high));
        let below = rounds(low.floor()).into_iter().rev();
        let low = below.into_iter().find(|round| *round <= low + 1e-9);
        let above = rounds(high.floor()).into_iter();
        let high = above.into_iter().find(|round| *round >= high - 1e-9);
        let (low, high) = (low.unwrap_or(0.0), high.unwrap_or(1.0));
        Self {
            is_log: true,
            ..Self::linear(low, high.max(low + 0.3), start, end)
        }
    }

    /// Returns the range, its coordinates and 1 for a logarithmic axis, for a script.
    pub(super) fn facts(&self) -> String {
        let is_log = if self.is_log { 1.0 } else { 0.0 };
        let facts = [self.low, self.high, self.start, self.end, is_log];
        let facts = facts.map(|fact| {
            let rounded = format!("{fact:.6e}").parse().unwrap_or(fact);
            rounded.to_string()
        });
        facts.join(",")
    }

    /// Returns the coordinate of a value; the nearer end for a value outside.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = if self.is_log {
            value.max(1e-12).log10()
        } else {
            value
        };
        let share = (value - self.low) / (self.high - self.low);
        let share = if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        };
        self.start + share * (self.end - self.start)
    }

    /// Returns true if the axis has the value.
    pub(super) fn has(&self, value: f64) -> bool {
        let value = if self.is_log { value.log10() } else { value };
        (self.low..=self.high).contains(&value)
    }

    /// Returns about `count` round values of the axis: decades of a logarithmic one, or 1, 2 and 5 of each if there are few.
    pub(super) fn ticks(&self, count: u32) -> Vec<f64> {
        if self.is_log && self.high - self.low < 2.0 {
            let decades = [0.0, 1.0, 2.0].map(|later| self.low.floor() + later);
            let ticks = decades.into_iter().flat_map(rounds);
            let ticks = ticks.filter(|tick| (self.low - 1e-9..=self.high + 1e-9).contains(tick));
            let mut ticks: Vec<f64> = ticks.map(|tick| 10.0_f64.powf(tick)).collect();
            ticks.dedup_by(|a, b| (*a - *b).abs() < 1e-9 * *a);
            return ticks;
        }
        let step = if self.is_log {
            ((self.high - self.low) / f64::from(count)).ceil().max(1.0)
        } else {
            let step = round_step((self.high - self.low) / self.unit / f64::from(count));
            (self.unit * step).max(self.tick_step_min)
        };
        let first = (self.low / step).ceil();
        (0..=2 * count)
            .map(|number| (first + f64::from(number)) * step)
            .take_while(|tick| *tick <= self.high + step * 1e-6)
            .map(|tick| {
                if self.is_log {
                    10.0_f64.powf(tick)
                } else {
                    tick
                }
            })
            .collect()
    }
}

/// Returns the exponents of 1, 2, 5 and 10 times a power of ten.
fn rounds(decade: f64) -> [f64; 4] {
    [1.0_f64, 2.0, 5.0, 10.0].map(|digit| decade + digit.log10())
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let decade = 10.0_f64.powf(step.log10().floor());
    let rounds = [1.0, 2.0, 5.0].map(|digit| digit * decade);
    let round = rounds
        .into_iter()
        .find(|round| *round >= step * (1.0 - 1e-9));
    round.unwrap_or(10.0 * decade)
}
