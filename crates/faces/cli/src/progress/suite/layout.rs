//! Layout of a running suite on a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Row as TableRow, Table};
use stillwell_plan::Phase;
use stillwell_report::forest_lines;
use stillwell_units::{Moment, human};
use stillwell_verdict::{Change, Verdict};

use super::{EstimateRow, Panel, SuiteView, VariantRow};
use crate::progress::figure;
use crate::progress::live::{LiveView, Look, Row, Tone};
use crate::progress::look::{at_least, remaining, span};
use crate::progress::times::LatencyClasses;
use stillwell_report::change_with_interval;

/// Below this width or height one row has to do.
const COLUMNS_MIN: u16 = 60;
const ROWS_MIN: u16 = 12;
/// Width from which the panels are beside each other.
const WIDE_FROM: u16 = 150;
/// Head, phase, head of the table.
const TOP_ROWS: u16 = 3;
/// Rows of a panel on a terminal of 24 rows.
const PANEL_ROWS: u16 = 8;
/// Rows of a panel on a taller one.
const PANEL_ROWS_TALL: u16 = 16;
const TALL_FROM: u16 = 40;
const BAR_COLUMNS: usize = 30;
const VARIANT_ROWS_MAX: u16 = 6;
/// Name, rate, two latencies, CPU, memory.
const COLUMNS: usize = 6;
/// Widths of their usual content, so they do not move.
const COLUMN_WIDTHS: [u16; COLUMNS] = [12, 18, 7, 7, 9, 8];
const COLUMN_SPACE: u16 = 2;
const NAME_MAX: usize = 24;

impl LiveView for SuiteView {
    fn height(&self, look: Look) -> u16 {
        if is_compact(look) {
            return 1;
        }
        let panel = match self.is_single {
            true => LatencyClasses::height(look),
            false => panel_rows(look),
        };
        let rows = TOP_ROWS + self.variant_rows() + panel + 1;
        rows.min(look.rows)
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, now: Moment, look: Look) {
        if is_compact(look) {
            frame.render_widget(self.compact(now, look).into_line(), area);
            return;
        }
        let [head, phase, table, panel, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(1 + self.variant_rows()),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        self.draw_head(frame, head, (now, look));
        frame.render_widget(self.phase(now, look).into_line(), phase);
        frame.render_widget(self.table(look), table);
        if self.is_single {
            let rows = self.run.times.rows("  latency so far", look);
            frame.render_widget(Text::from_iter(rows.into_iter().map(Row::into_line)), panel);
        } else {
            self.draw_panels(frame, panel, look);
        }
        frame.render_widget(self.keys(look).into_line(), keys);
    }

    fn show_next_panel(&mut self) {
        self.panel = match self.panel {
            Panel::Estimate => Panel::Goals,
            Panel::Goals => Panel::Experiments,
            Panel::Experiments => Panel::Estimate,
        };
    }

    fn toggle_pause(&mut self, now: Moment) {
        self.paused = match self.paused {
            None if !self.is_single => Some(now),
            _ => None,
        };
    }

    fn end(&mut self) {
        self.is_ending = true;
    }
}

fn is_compact(look: Look) -> bool {
    look.columns < COLUMNS_MIN || look.rows < ROWS_MIN
}

const fn panel_rows(look: Look) -> u16 {
    if look.rows >= TALL_FROM {
        PANEL_ROWS_TALL
    } else {
        PANEL_ROWS
    }
}

impl SuiteView {
    fn variant_rows(&self) -> u16 {
        let rows = u16::try_from(self.variants.len()).unwrap_or(VARIANT_ROWS_MAX);
        // Two are nearly always there in the end.
        let least = if self.is_single { 1 } else { 2 };
        rows.clamp(least, VARIANT_ROWS_MAX)
    }

    /// Name and step on the left, the remaining time on the right.
    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect, (now, look): (Moment, Look)) {
        let mut row = Row::of(look, Tone::Strong, &self.name);
        if let Some((number, of)) = self.number.filter(|(_, of)| *of > 1) {
            row.push(Tone::Plain, &format!("  experiment {number} of {of}"));
        }
        if !self.step.is_empty() {
            row.push(Tone::Plain, &format!("  {}", self.step));
        }
        // The shortest text of the remaining time stays whole.
        let room = usize::from(area.width).saturating_sub(row.width() + 2);
        let texts = self.left(now).map(|left| {
            let least = left.least;
            [
                remaining(left),
                format!("{} left", span(left)),
                at_least(least),
            ]
        });
        let texts = texts.unwrap_or_default();
        let fits = |text: &&String| text.chars().count() <= room;
        let left = texts.iter().find(fits).unwrap_or(&texts[2]);
        let width = u16::try_from(left.chars().count()).unwrap_or(0);
        let [name_area, left_area] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)])
                .spacing(COLUMN_SPACE)
                .areas(area);
        frame.render_widget(row.into_line(), name_area);
        frame.render_widget(Row::of(look, Tone::Plain, left).into_line(), left_area);
    }

    /// The running variant, its phase, and the elapsed part of that.
    fn phase(&self, now: Moment, look: Look) -> Row {
        if self.waiting_since.is_some() {
            return Row::of(look, Tone::Warning, "  paused: p continues");
        }
        let mut row = Row::of(look, Tone::Plain, "  ");
        match (&self.running, self.is_at_once) {
            (Some(_), true) => row.push(Tone::Plain, "both at once: "),
            (Some(name), false) if !self.is_single => row.push(Tone::Plain, &format!("{name}: ")),
            _ => {}
        }
        row.push(Tone::Plain, self.activity());
        if let Some((elapsed, length)) = self.run.elapsed(now) {
            row.push(Tone::Plain, "  ");
            let share = elapsed.as_secs_f64() / length.as_secs_f64().max(1e-9);
            row.push_bar(share, BAR_COLUMNS);
            let (elapsed, length) = (figure::clock(elapsed), figure::clock(length));
            row.push(Tone::Plain, &format!("  {elapsed} of {length}"));
        }
        row
    }

    /// Returns the present activity: the phase of the run, or the reason why there is none.
    fn activity(&self) -> &str {
        match self.run.phase {
            _ if self.running.is_none() && !self.status.is_empty() => &self.status,
            None => "preparing",
            Some(Phase::Prepare) => "preparing payloads and sinks",
            Some(Phase::Start) => "starting the target",
            Some(Phase::Ready) => "waiting until the target is ready",
            Some(Phase::Warmup) => "warming up",
            Some(Phase::Measure) => "measuring",
            Some(Phase::Drain) => "draining",
            Some(Phase::Stop) => "stopping the target",
            Some(Phase::Close) => "closing the capture",
        }
    }

    /// Figures of each variant, one row each; the first columns that fit.
    fn table(&self, look: Look) -> Table<'static> {
        let skipped = self
            .variants
            .len()
            .saturating_sub(usize::from(VARIANT_ROWS_MAX));
        let rows: Vec<[Row; COLUMNS]> = self.variants[skipped..]
            .iter()
            .map(|variant| self.cells(variant, look))
            .collect();
        let heads = ["", "rate", "p50", "p99", "CPU", "memory"];
        let heads = heads.map(|head| Row::of(look, Tone::Faint, head));
        let mut room = look.columns;
        let mut widths = Vec::new();
        for (column, (head, least)) in heads.iter().zip(COLUMN_WIDTHS).enumerate() {
            let cells = rows.iter().map(|row| row[column].width());
            let width = cells.chain([head.width()]).max().unwrap_or(0);
            let width = u16::try_from(width).unwrap_or(u16::MAX).max(least);
            let Some(left) = room.checked_sub(width + COLUMN_SPACE) else {
                break;
            };
            room = left;
            widths.push(Constraint::Length(width));
        }
        let row = |cells: [Row; COLUMNS]| TableRow::new(cells.map(Row::into_line));
        Table::new(rows.into_iter().map(row), widths)
            .header(row(heads))
            .column_spacing(COLUMN_SPACE)
    }

    fn cells(&self, variant: &VariantRow, look: Look) -> [Row; COLUMNS] {
        let figures = &variant.figures;
        let runs = match self.is_at_once {
            true => self.running.is_some(),
            false => self.running.as_ref() == Some(&variant.name),
        };
        let mark = match (runs && !self.is_single, look.unicode) {
            (true, true) => "▶ ",
            (true, false) => "> ",
            (false, _) => "  ",
        };
        let missing = || "-".to_owned();
        let rate = figures
            .rate
            .map_or_else(missing, |rate| match figures.requested {
                Some(requested) => {
                    format!("{} of {}", figure::rate(rate), figure::rate(requested))
                }
                None => figure::rate(rate),
            });
        let time = |at: usize| {
            let times = figures
                .latency
                .map(|times| figure::time(times[at], look.unicode));
            times.unwrap_or_else(missing)
        };
        let cpu = figures
            .cpu
            .map(|cpu| format!("{} CPU", human::significant(cpu)));
        let memory = figures.memory.map(human::bytes);
        let name: String = variant.name.chars().take(NAME_MAX).collect();
        let texts = [
            format!("{mark}{name}"),
            rate,
            time(0),
            time(1),
            cpu.unwrap_or_else(missing),
            memory.unwrap_or_else(missing),
        ];
        let tone = if runs || self.is_single {
            Tone::Strong
        } else {
            Tone::Plain
        };
        texts.map(|text| Row::of(look, tone, &text))
    }

    /// One panel, or all of them where there is room.
    fn draw_panels(&self, frame: &mut Frame<'_>, area: Rect, look: Look) {
        if look.columns < WIDE_FROM {
            self.draw_panel(frame, area, (self.panel, look));
            return;
        }
        let [left, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
        self.draw_panel(frame, left, (Panel::Estimate, look));
        let second = match self.panel {
            Panel::Experiments => Panel::Experiments,
            Panel::Estimate | Panel::Goals => Panel::Goals,
        };
        self.draw_panel(frame, right, (second, look));
    }

    fn draw_panel(&self, frame: &mut Frame<'_>, area: Rect, (panel, look): (Panel, Look)) {
        let rows = usize::from(area.height.saturating_sub(1));
        let width = usize::from(area.width);
        let mut lines = vec![Line::default()];
        match panel {
            Panel::Estimate => {
                let metric = self.estimates.last().map(|row| row.metric.as_str());
                let title = match metric {
                    Some(metric) => format!("  {metric} after each pair, 95 % interval"),
                    None => "  no estimate yet: it needs two pairs".to_owned(),
                };
                lines.push(Row::of(look, Tone::Faint, &title).into_line());
                let shown = rows.saturating_sub(2);
                let skipped = self.estimates.len().saturating_sub(shown);
                lines.extend(forest(&self.estimates[skipped..], width, look));
            }
            Panel::Goals => {
                let title = match self.goals.is_empty() {
                    true => "  goals: no estimate yet",
                    false => "  goals so far, 95 % interval",
                };
                lines.push(Row::of(look, Tone::Faint, title).into_line());
                let shown = self.goals.len().min(rows.saturating_sub(2));
                lines.extend(forest(&self.goals[..shown], width, look));
            }
            Panel::Experiments => {
                let title = match self.ended.is_empty() {
                    true => "  no experiment has ended",
                    false => "  ended experiments",
                };
                lines.push(Row::of(look, Tone::Faint, title).into_line());
                let skipped = self.ended.len().saturating_sub(rows.saturating_sub(1));
                lines.extend(self.ended[skipped..].iter().map(|ended| {
                    let change = ended.change.as_ref().map(|(metric, change, scale)| {
                        format!("  {metric} {}", change_with_interval(*scale, *change))
                    });
                    Row::of(look, Tone::Plain, &format!("  {}: ", ended.name))
                        .and(tone_of(ended.verdict), ended.verdict.name())
                        .and(Tone::Plain, &change.unwrap_or_default())
                        .into_line()
                }));
            }
        }
        frame.render_widget(Text::from_iter(lines), area);
    }

    fn keys(&self, look: Look) -> Row {
        if self.paused.is_some() && !self.is_ending {
            return Row::of(look, Tone::Warning, "  pauses after this pair; p: continue");
        }
        let text = match (self.is_ending, self.is_single) {
            (true, _) => "  ending: the report follows",
            (false, true) => "  q: end with a report",
            (false, false) => "  q: end with a report   p: pause after this pair   tab: next panel",
        };
        Row::of(look, Tone::Faint, text)
    }

    /// The same in one row.
    fn compact(&self, now: Moment, look: Look) -> Row {
        let mut row = Row::new(look);
        row.push(Tone::Plain, &self.step);
        if let Some(name) = self.running.as_ref().filter(|_| !self.is_single) {
            row.push(Tone::Plain, &format!(" {name}"));
        }
        row.push(Tone::Plain, &format!(" {}", self.activity()));
        let width = usize::from(look.columns);
        if let Some(left) = self.left(now) {
            row.push_within(width, &[(Tone::Plain, &format!(" {}", remaining(left)))]);
        }
        if let Some(last) = self.estimates.last() {
            let change = change_with_interval(last.scale, last.change);
            row.push_within(
                width,
                &[(Tone::Plain, &format!(" {} {change}", last.metric))],
            );
        }
        row
    }
}

/// Intervals on one axis; the head of each is its name, its end the number.
fn forest(rows: &[EstimateRow], width: usize, look: Look) -> Vec<Line<'static>> {
    if rows.is_empty() {
        return Vec::new();
    }
    let names = rows.iter().map(|row| row.name.chars().count());
    let name_width = names.max().unwrap_or(0).min(width / 3);
    let numbers: Vec<String> = rows
        .iter()
        .map(|row| change_with_interval(row.scale, row.change))
        .collect();
    let number_width = numbers
        .iter()
        .map(|text| text.chars().count())
        .max()
        .unwrap_or(0);
    let room = width.saturating_sub(name_width + number_width + 6);
    let intervals: Vec<(Change, f64)> =
        rows.iter().map(|row| (row.change, row.tolerance)).collect();
    let mut axis = forest_lines(&intervals, room).into_iter();
    let names = rows.iter().map(|row| row.name.as_str());
    let scale = axis.next().unwrap_or_default();
    let mut head = Row::new(look);
    head.pad_to(name_width + 4);
    let head = head.and(Tone::Faint, &scale).into_line();
    let lines = names.zip(axis).zip(numbers).map(|((name, line), number)| {
        let name: String = name.chars().take(name_width).collect();
        let mut row = Row::of(look, Tone::Plain, &format!("  {name}"));
        row.pad_to(name_width + 4);
        row.push(Tone::Strip, &line);
        row.push_within(width, &[(Tone::Plain, "  "), (Tone::Plain, &number)]);
        row.into_line()
    });
    [head].into_iter().chain(lines).collect()
}

const fn tone_of(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Regressed | Verdict::Invalid => Tone::Bad,
        Verdict::Improved => Tone::Good,
        Verdict::Equivalent | Verdict::Different | Verdict::Inconclusive => Tone::Plain,
    }
}
