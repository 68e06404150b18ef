//! Progress: one line that is rewritten on a terminal, plain lines elsewhere.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use stillwell_lab::LabProgress;
use stillwell_plan::Phase;
use stillwell_run::Progress;
use stillwell_units::{ByteSize, EventRate, Moment, Nanos, float_from_u64, floor_to_u64};
use stillwell_verdict::{ExperimentVerdict, GoalVerdict};

use crate::paint::Paint;

/// Shortest time over which a rate is told.
const RATE_OVER_SECONDS_MIN: f64 = 0.5;
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Tells how things go, on standard error.
#[derive(Debug)]
pub(crate) struct Teller<'a> {
    paint: &'a Paint,
    quiet: bool,
    /// What stands at the beginning of the live line.
    head: String,
    phase: Option<Phase>,
    last: Option<(Moment, u64)>,
}

impl<'a> Teller<'a> {
    pub(crate) const fn new(paint: &'a Paint, quiet: bool) -> Self {
        Self {
            paint,
            quiet,
            head: String::new(),
            phase: None,
            last: None,
        }
    }

    /// Tells of a lab.
    pub(crate) fn lab(&mut self, progress: LabProgress<'_>) {
        match progress {
            LabProgress::Run(run) => self.run(&run),
            LabProgress::Building {
                source,
                revision,
                cached,
            } => {
                let verb = if cached { "found built" } else { "building" };
                self.line(&format!("{verb} {} ({revision})", source.revision));
            }
            LabProgress::Built { .. } | LabProgress::RunEnded { .. } => {}
            LabProgress::ExperimentStarted {
                experiment,
                number,
                of,
            } => {
                let bold = Style::new().bold();
                let name = self.paint.styled(bold, experiment);
                self.line(&format!("{name}  experiment {number} of {of}"));
            }
            LabProgress::TakenOver { pairs, .. } => {
                let list: Vec<String> = pairs.iter().map(ToString::to_string).collect();
                let (noun, verb) = match list.len() {
                    1 => ("pair", "is"),
                    _ => ("pairs", "are"),
                };
                let list = list.join(", ");
                self.line(&format!("  {noun} {list} {verb} finished already"));
            }
            LabProgress::Probing { length, .. } => {
                self.line(&format!("  probe: at full speed for {length}"));
                self.head = "  probe".to_owned();
            }
            LabProgress::OperatingPoint { found, .. } => {
                self.line(&format!("  rate: {}", found.reason));
            }
            LabProgress::RunStarted { identity, left } => {
                let what = match identity.pair {
                    // A probe is no pair.
                    0 => "probe".to_owned(),
                    pair => format!("pair {pair} {}", identity.variant),
                };
                self.head = format!("  {what:<20} {} left", seconds(left));
            }
            LabProgress::PairStarted {
                pair, of, order, ..
            } => {
                if !self.paint.live {
                    self.line(&format!("  pair {pair} of {of}: {}", order.join(", then ")));
                }
            }
            LabProgress::PairEnded {
                pair, lost, left, ..
            } => match lost {
                Some(why) => self.line(&format!("  pair {pair} is lost: {why}")),
                None if !self.paint.live => {
                    self.line(&format!("  pair {pair} done, {} left", seconds(left)));
                }
                None => {}
            },
            LabProgress::Interim { verdict } => self.interim(verdict),
            LabProgress::ExperimentEnded { .. } => self.clear(),
            LabProgress::Problem(problem) => {
                let red = AnsiColor::Red.on_default();
                let text = format!("  {}: {}", problem.experiment, problem.reason);
                let text = self.paint.styled(red, &text);
                self.always(&text);
            }
            LabProgress::Note(note) => self.line(&format!("  {note}")),
        }
    }

    /// Tells of a run.
    pub(crate) fn run(&mut self, progress: &Progress) {
        match progress {
            Progress::Phase { phase, ends_in } => {
                self.phase = Some(*phase);
                self.last = None;
                let ends = ends_in.map_or_else(String::new, |left| match phase {
                    Phase::Warmup | Phase::Measure => format!(" for {left}"),
                    _ => String::new(),
                });
                self.live(&format!("{}{ends}", phase.name()));
            }
            Progress::Beat {
                events_sent,
                bytes_received,
                rss_bytes,
                ..
            } => {
                let phase = self.phase.map_or("", Phase::name);
                let memory = rss_bytes.map_or_else(String::new, |bytes| {
                    format!(", subject {}", ByteSize::new(bytes))
                });
                let rate = self.rate(*events_sent);
                self.live(&format!(
                    "{phase}: {events_sent} events sent{rate}, {} received{memory}",
                    ByteSize::new(*bytes_received)
                ));
            }
            Progress::Note(note) => self.line(&format!("  {note}")),
        }
    }

    /// Takes the live line away.
    pub(crate) fn clear(&self) {
        if self.paint.live && !self.quiet {
            let mut err = io::stderr().lock();
            write!(err, "{CLEAR_LINE}").and_then(|()| err.flush()).ok();
        }
    }

    /// Events each second since the last beat of the same phase.
    fn rate(&mut self, events_sent: u64) -> String {
        let now = stillwell_scope::clock::now();
        let before = self.last.replace((now, events_sent));
        let Some((then, events_then)) = before else {
            return String::new();
        };
        let elapsed = now.since(then).as_secs_f64();
        // Phase marks are beats too; between those, a rate means nothing.
        if elapsed < RATE_OVER_SECONDS_MIN {
            return String::new();
        }
        let events = float_from_u64(events_sent.saturating_sub(events_then));
        EventRate::try_new(events / elapsed).map_or_else(|_| String::new(), |r| format!(" ({r})"))
    }

    fn interim(&self, verdict: &ExperimentVerdict) {
        if self.paint.live {
            return;
        }
        if let Some(goal) = verdict.goals.first()
            && let Some(so_far) = describe_interim(goal)
        {
            self.line(&format!("  so far: {so_far}"));
        }
    }

    fn live(&self, text: &str) {
        if self.quiet || !self.paint.live {
            return;
        }
        let columns = usize::from(Paint::columns()).saturating_sub(1);
        let line: String = format!("{}  {text}", self.head)
            .chars()
            .take(columns)
            .collect();
        let mut err = io::stderr().lock();
        // Progress that cannot be shown is no reason to stop.
        write!(err, "{CLEAR_LINE}{line}")
            .and_then(|()| err.flush())
            .ok();
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            self.always(text);
        }
    }

    fn always(&self, text: &str) {
        self.clear();
        Paint::say(text);
    }
}

fn describe_interim(goal: &GoalVerdict) -> Option<String> {
    let change = goal.change.as_ref()?;
    Some(format!(
        "{} {:+.2} % [{:+.2}, {:+.2}]",
        goal.metric.name(),
        change.estimate * 100.0,
        change.lower * 100.0,
        change.upper * 100.0
    ))
}

/// A length of time for people: whole seconds.
fn seconds(length: Nanos) -> Nanos {
    Nanos::from_secs(floor_to_u64(length.as_secs_f64().ceil()))
}
