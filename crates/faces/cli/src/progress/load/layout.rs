//! Layout of a running load on a terminal. Pure: a view, a width and a look become lines.

mod strip;

#[cfg(test)]
mod tests;

use stillwell_metric::{Outcome, TimeState};
use stillwell_run::LoadPhase;
use stillwell_units::{Moment, Nanos, float_from_u64};

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Text;

use super::view::{Second, Strain, View, failed};
use crate::progress::figure;
use crate::progress::live::{LiveView, Look, Row, Tone};
use crate::progress::times::LatencyClasses;
use strip::{bars, levels_of_rates, levels_of_times};

/// Below this width one line has to do.
const COLUMNS_MIN: u16 = 40;
/// Below this height likewise.
const ROWS_MIN: u16 = 10;
/// Shorter strips say nothing.
const STRIP_MIN: usize = 8;
/// Longer ones are hard to read.
const STRIP_MAX: usize = 60;
const HEAD_COLUMNS: usize = 13;
/// Longer bars say no more.
const BAR_MAX: usize = 60;
/// Head, bar, rate, three latencies, outcomes, generator, keys.
const FIGURE_ROWS: u16 = 9;

/// The time of the view is that of its last second: it needs no clock.
impl LiveView for View {
    fn height(&self, look: Look) -> u16 {
        // Later rows are reserved from the start, so the view does not move.
        let rows = match is_compact(look) {
            true => 1,
            false => FIGURE_ROWS + LatencyClasses::height(look),
        };
        rows.min(look.rows)
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, _now: Moment, look: Look) {
        let rows = lines(self, look).into_iter().map(Row::into_line);
        frame.render_widget(Text::from_iter(rows), area);
    }

    fn end(&mut self) {
        self.is_ending = true;
    }
}

fn is_compact(look: Look) -> bool {
    look.columns < COLUMNS_MIN || look.rows < ROWS_MIN
}

/// The view in rows.
fn lines(view: &View, look: Look) -> Vec<Row> {
    let width = usize::from(look.columns);
    if is_compact(look) {
        return vec![compact(view, look)];
    }
    let mut rows = vec![head(view, width, look)];
    if view.phase.is_some() {
        rows.extend(bar(view, width, look));
        rows.extend(figures(view, width, look));
        rows.push(ended(view, width, look));
        rows.push(generator(view, width, look));
        rows.extend(view.times.rows("  latency of all requests so far", look));
    }
    rows.push(keys(view, look));
    rows
}

/// The part of the load that is over, where its end is known.
fn bar(view: &View, width: usize, look: Look) -> Option<Row> {
    let limits = &view.limits;
    let share = match (view.phase?, limits.measure, limits.requests) {
        (LoadPhase::Warmup, _, _) => share_of(view.elapsed, limits.warmup),
        (LoadPhase::Drain, _, _) => 1.0,
        (LoadPhase::Measure, Some(measure), _) => share_of(view.elapsed, measure),
        (LoadPhase::Measure, None, Some(requests)) => {
            float_from_u64(view.begun) / float_from_u64(requests.max(1))
        }
        (LoadPhase::Measure, None, None) => return None,
    };
    let mut row = Row::of(look, Tone::Plain, "  ");
    row.push_bar(share, width.saturating_sub(4).min(BAR_MAX));
    Some(row)
}

fn keys(view: &View, look: Look) -> Row {
    let text = match view.is_ending {
        true => "  ending: the report follows",
        false => "  q: end with a report",
    };
    Row::of(look, Tone::Faint, text)
}

/// Target on the left, time on the right.
fn head(view: &View, width: usize, look: Look) -> Row {
    let course = course(view);
    let room = width.saturating_sub(course.chars().count() + 2);
    let mut line = Row::new(look);
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
        None => "starting".to_owned(),
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
fn figures(view: &View, width: usize, look: Look) -> Vec<Row> {
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
        let mut line = labelled(name, look);
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
fn ended(view: &View, width: usize, look: Look) -> Row {
    let mut line = labelled("outcomes", look);
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
fn generator(view: &View, width: usize, look: Look) -> Row {
    let mut line = labelled("generator", look);
    let share = |state: TimeState| figure::percent(view.shares[state.index()]);
    let running = format!("running {}", share(TimeState::Running));
    line.push(Tone::Plain, &running);
    if view.warning == Some(Strain::Busy) {
        let part = [(Tone::Warning, ", the generator may be the limit")];
        line.push_within(width, &part);
    }
    let mut shown = vec![("blocked", TimeState::Blocked)];
    if view.limits.has_schedule {
        shown.extend([("idle", TimeState::Idle), ("late", TimeState::Late)]);
    }
    for (name, state) in shown {
        let part = format!(", {name} {}", share(state));
        line.push_within(width, &[(Tone::Plain, &*part)]);
    }
    if let Some(late) = view.generator_lateness {
        let tone = match view.warning {
            Some(Strain::Late) => Tone::Warning,
            _ => Tone::Plain,
        };
        let part = format!(
            "; generator lateness p99 {}",
            figure::time(late, look.unicode)
        );
        line.push_within(width, &[(tone, &*part)]);
    }
    line
}

/// The same in one line.
fn compact(view: &View, look: Look) -> Row {
    let mut line = Row::new(look);
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

fn labelled(name: &str, look: Look) -> Row {
    let mut line = Row::new(look);
    line.push(Tone::Plain, "  ");
    line.push(Tone::Faint, name);
    line.pad_to(HEAD_COLUMNS);
    line
}

/// `value` as a share of `most`.
fn share_of(value: Nanos, most: Nanos) -> f64 {
    float_from_u64(value.as_u64()) / float_from_u64(most.as_u64().max(1))
}
