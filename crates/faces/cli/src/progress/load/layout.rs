//! Layout of a running load on a terminal. Pure: a view, a width and a look become lines.

mod line;
mod strip;

#[cfg(test)]
mod tests;

use stillwell_metric::{Outcome, TimeState};
use stillwell_run::LoadPhase;
use stillwell_units::{Nanos, float_from_u64};

use super::figure;
use super::view::{Second, Strain, View, failed};
pub(super) use line::{Line, Tone};
use strip::{bars, levels_of_rates, levels_of_times};

/// Below this width one line has to do.
const COLUMNS_MIN: usize = 40;
/// Below this height likewise.
const ROWS_MIN: usize = 10;
/// Shorter strips say nothing.
const STRIP_MIN: usize = 8;
/// Longer ones are hard to read.
const STRIP_MAX: usize = 60;
const HEAD_COLUMNS: usize = 13;

/// Abilities of the terminal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Look {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// True where it shows colours, and they are wanted.
    pub(super) color: bool,
    /// True where it shows more than ASCII.
    pub(super) unicode: bool,
}

/// The view in lines, none wider than the terminal allows.
pub(super) fn lines(view: &View, look: Look) -> Vec<Line> {
    // The last column stays free: some terminals wrap when it is written.
    let width = look.columns.saturating_sub(1);
    let mut lines = if look.columns < COLUMNS_MIN || look.rows < ROWS_MIN {
        vec![compact(view, look)]
    } else if view.phase.is_none() {
        vec![head(view, width)]
    } else {
        let mut lines = vec![head(view, width)];
        lines.extend(figures(view, width, look));
        lines.push(ended(view, width));
        lines.push(generator(view, width, look));
        lines
    };
    for line in &mut lines {
        line.fit(width);
    }
    lines
}

/// Target on the left, time on the right.
fn head(view: &View, width: usize) -> Line {
    let course = course(view);
    let room = width.saturating_sub(course.chars().count() + 2);
    let mut line = Line::default();
    let target: String = view.target.chars().take(room).collect();
    if room >= STRIP_MIN {
        line.push(Tone::Strong, &target);
        line.pad_to(room + 2);
    }
    line.push(Tone::Plain, &course);
    line
}

/// The position in the phases of the load.
fn course(view: &View) -> String {
    let elapsed = figure::clock(view.elapsed);
    let limits = &view.limits;
    match view.phase {
        None => "connecting".to_owned(),
        Some(LoadPhase::Warmup) => {
            format!("warm-up {elapsed} of {}", figure::clock(limits.warmup))
        }
        Some(LoadPhase::Drain) => "waiting for the last responses".to_owned(),
        Some(LoadPhase::Measure) => {
            let left = view.left();
            let left = left.map_or_else(String::new, |left| {
                // Up, or the last second would say that nothing is left.
                let whole = left + Nanos::new(Nanos::SECOND.as_u64() - 1);
                format!(", {} left", figure::clock(whole))
            });
            match (limits.measure, limits.requests) {
                (Some(measure), _) => format!("{elapsed} of {}{left}", figure::clock(measure)),
                (None, Some(requests)) => format!(
                    "{} of {} requests{left}",
                    figure::count(view.begun),
                    figure::count(requests)
                ),
                (None, None) => elapsed,
            }
        }
    }
}

/// Rate and latencies of the last second, each with its strip.
fn figures(view: &View, width: usize, look: Look) -> Vec<Line> {
    let rate = view.strip.back().map_or(0.0, |second| second.rate);
    let rate = match view.requested_rate {
        Some(requested) => format!("{} of {}", figure::rate(rate), figure::rate(requested)),
        None => figure::rate(rate),
    };
    let latency = view.strip.back().and_then(|second| second.latency);
    let time = |index: usize| {
        latency.map_or_else(
            || "no answer".to_owned(),
            |times| figure::time(times[index], look.unicode),
        )
    };
    let mut rows = vec![("rate", rate)];
    // Of the warm-up there are no times.
    if view.phase != Some(LoadPhase::Warmup) {
        rows.extend([("p50", time(0)), ("p99", time(1)), ("max", time(2))]);
    }
    let values = rows.iter().map(|(_, value)| value.chars().count());
    let strip_at = HEAD_COLUMNS + values.max().unwrap_or(0) + 2;
    let room = width.saturating_sub(strip_at).min(STRIP_MAX);
    let shown = view.strip.len().min(room);
    let seconds: Vec<Second> = view
        .strip
        .iter()
        .skip(view.strip.len() - shown)
        .copied()
        .collect();
    let of_times = levels_of_times(&seconds);
    let row = |(index, (name, value)): (usize, (&str, String))| {
        let mut line = labelled(name);
        line.push(Tone::Plain, &value);
        if room >= STRIP_MIN {
            line.pad_to(strip_at);
            match index.checked_sub(1) {
                None => bars(&mut line, &levels_of_rates(&seconds), &seconds, look),
                Some(index) => bars(&mut line, &of_times[index], &[], look),
            }
        }
        line
    };
    rows.into_iter().enumerate().map(row).collect()
}

/// Outcomes of requests so far, and the number of recent failures; as much as fits.
fn ended(view: &View, width: usize) -> Line {
    let mut line = labelled("ended");
    let good = view.ended[Outcome::Ok.index()];
    line.push(Tone::Plain, &format!("{} ok", figure::count(good)));
    for outcome in Outcome::ALL
        .into_iter()
        .filter(|outcome| *outcome != Outcome::Ok)
    {
        let index = outcome.index();
        let (all, last) = (view.ended[index], view.ended_last[index]);
        if all > 0 {
            let part = format!("{} {}", figure::count(all), outcome.name());
            let just_now = match last {
                0 => String::new(),
                _ => format!(" (+{})", figure::count(last)),
            };
            let parts = [
                (Tone::Plain, ", "),
                (Tone::Bad, &*part),
                (Tone::Plain, &*just_now),
            ];
            line.push_within(width, &parts);
        }
    }
    if view.in_flight > 0 {
        let part = format!("; {} in flight", figure::count(view.in_flight));
        line.push_within(width, &[(Tone::Plain, &*part)]);
    }
    let (received, sent) = (figure::bytes(view.received), figure::bytes(view.sent));
    let traffic = format!("; {received} in, {sent} out");
    line.push_within(width, &[(Tone::Faint, &*traffic)]);
    line
}

/// The use of the workers' time; as much as fits.
fn generator(view: &View, width: usize, look: Look) -> Line {
    let mut line = labelled("generator");
    let share = |state: TimeState| figure::percent(view.shares[state.index()]);
    let running = format!("running {}", share(TimeState::Running));
    line.push(Tone::Plain, &running);
    if view.warning == Some(Strain::Busy) {
        let part = [(Tone::Warning, ", the generator may be the limit")];
        line.push_within(width, &part);
    }
    let mut shown = vec![("blocked", TimeState::Blocked)];
    if view.limits.has_schedule {
        shown.extend([("ahead", TimeState::Ahead), ("late", TimeState::Late)]);
    }
    for (name, state) in shown {
        let part = format!(", {name} {}", share(state));
        line.push_within(width, &[(Tone::Plain, &*part)]);
    }
    if let Some(late) = view.own_lateness {
        let tone = match view.warning {
            Some(Strain::Late) => Tone::Warning,
            _ => Tone::Plain,
        };
        let part = format!("; own lateness p99 {}", figure::time(late, look.unicode));
        line.push_within(width, &[(tone, &*part)]);
    }
    line
}

/// The same in one line.
fn compact(view: &View, look: Look) -> Line {
    let mut line = Line::default();
    line.push(Tone::Plain, &course(view));
    let Some(last) = view.strip.back() else {
        return line;
    };
    let bad = failed(&view.ended);
    if bad > 0 {
        line.push(Tone::Plain, "  ");
        line.push(Tone::Bad, &format!("{} failed", figure::count(bad)));
    }
    line.push(Tone::Plain, &format!("  {}", figure::rate(last.rate)));
    if let Some([_, p99, _]) = last.latency {
        let part = format!("  p99 {}", figure::time(p99, look.unicode));
        line.push(Tone::Plain, &part);
    }
    line
}

fn labelled(name: &str) -> Line {
    let mut line = Line::default();
    line.push(Tone::Plain, "  ");
    line.push(Tone::Faint, name);
    line.pad_to(HEAD_COLUMNS);
    line
}

/// `value` as a share of `most`.
fn share_of(value: Nanos, most: Nanos) -> f64 {
    float_from_u64(value.as_u64()) / float_from_u64(most.as_u64().max(1))
}
