//! Progress: one line that is rewritten on a terminal, plain lines elsewhere.

mod load;
mod look;

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use stillwell_experiment::{PairsWanted, Problem, SuiteProgress, TimeLeft};
use stillwell_plan::Phase;
use stillwell_plan::stopping::DesignPlan;
use stillwell_run::Progress;
use stillwell_units::{ByteSize, EventRate, Moment, float_from_u64};
use stillwell_verdict::{RunIdentity, RunStage};

pub(crate) use self::load::LoadDisplay;
use self::look::{described, so_far, span, waiting};
use crate::paint::{Paint, visible};

/// Shortest time over which a rate is printed.
const RATE_OVER_SECONDS_MIN: f64 = 0.5;
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Prints progress on standard error.
#[derive(Debug)]
pub(crate) struct ProgressDisplay<'a> {
    paint: &'a Paint,
    quiet: bool,
    /// The beginning of the live line.
    head: String,
    phase: Option<Phase>,
    last: Option<(Moment, u64)>,
    /// True where runs are in blocks and not in pairs.
    of_block: bool,
}

impl<'a> ProgressDisplay<'a> {
    pub(crate) const fn new(paint: &'a Paint, quiet: bool) -> Self {
        Self {
            paint,
            quiet,
            head: String::new(),
            phase: None,
            last: None,
            of_block: false,
        }
    }

    /// Prints progress of a suite.
    pub(crate) fn suite(&mut self, progress: SuiteProgress<'_>) {
        match progress {
            SuiteProgress::Run(run) => self.run(&run),
            SuiteProgress::Building {
                source,
                revision,
                cached,
            } => {
                let verb = if cached {
                    "cached build of"
                } else {
                    "building"
                };
                self.line(&format!("{verb} {} ({revision})", source.revision));
            }
            SuiteProgress::Built { .. } | SuiteProgress::RunEnded { .. } => {}
            SuiteProgress::ExperimentStarted {
                experiment,
                number,
                of,
            } => self.experiment(experiment, number, of),
            SuiteProgress::TakenOver { stage, pairs, .. } => self.taken_over(stage, pairs),
            SuiteProgress::Probing { length, .. } => {
                self.line(&format!("  probe: at full speed for {length}"));
                self.head = "  probe".to_owned();
            }
            SuiteProgress::OperatingPoint { result, .. } => {
                self.line(&format!("  rate: {}", result.reason));
            }
            SuiteProgress::BlockStarted {
                block,
                of,
                order,
                left,
                ..
            } => self.block(block, of, order, left),
            SuiteProgress::RunStarted { identity, left } => {
                let called = match self.of_block {
                    true => format!("block {} {}", identity.pair, identity.variant),
                    false => called(identity),
                };
                self.head = format!("  {called:<20} {} left", span(left));
            }
            pair @ (SuiteProgress::PairStarted { .. }
            | SuiteProgress::PairEnded { .. }
            | SuiteProgress::PairDiscarded { .. }) => {
                let text = pair_line(&pair, self.paint.live);
                text.into_iter().for_each(|text| self.line(&text));
            }
            SuiteProgress::Waiting { host, up_to, .. } => {
                self.line(&format!("  {}", waiting(host, up_to)));
            }
            SuiteProgress::SoFar { standing, left } => {
                let text = so_far(&standing.verdict, left);
                text.into_iter()
                    .for_each(|text| self.line(&format!("  {text}")));
            }
            SuiteProgress::WarmupFound { result, .. } => {
                let (measured, stated) = (result.measured, result.stated);
                self.line(&format!(
                    "  steady after {measured} of load instead of {stated}: measuring begins there"
                ));
            }
            SuiteProgress::Look {
                standing,
                left,
                left_in_all,
            } => self.line(&format!("  {}", described(standing, left, left_in_all))),
            SuiteProgress::ExperimentEnded { .. } => self.clear(),
            SuiteProgress::Problem(problem) => self.problem(problem),
            SuiteProgress::Note(note) => self.line(&format!("  {note}")),
        }
    }

    fn experiment(&self, name: &str, number: usize, of: usize) {
        let name = self.paint.styled(Style::new().bold(), name);
        self.line(&format!("{name}  experiment {number} of {of}"));
    }

    fn problem(&self, problem: &Problem) {
        let red = AnsiColor::Red.on_default();
        let text = format!("  {}: {}", problem.experiment, problem.reason);
        let text = self.paint.styled(red, &text);
        self.always(&text);
    }

    fn block(&mut self, block: u32, of: u32, order: &[&str], left: TimeLeft) {
        let (order, left) = (order.join(", then "), span(left));
        self.line(&format!("  block {block} of {of}: {order} ({left} left)"));
        self.of_block = true;
    }

    /// Prints progress of a run.
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
                    format!(", target {}", ByteSize::new(bytes))
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

    fn taken_over(&self, stage: RunStage, pairs: &[u32]) {
        let list: Vec<String> = pairs.iter().map(ToString::to_string).collect();
        let (plural, verb) = match list.len() {
            1 => ("", "is"),
            _ => ("s", "are"),
        };
        let (noun, list) = (noun(stage), list.join(", "));
        self.line(&format!("  {noun}{plural} {list} {verb} finished already"));
    }

    fn live(&self, text: &str) {
        if self.quiet || !self.paint.live {
            return;
        }
        let columns = usize::from(Paint::columns()).saturating_sub(1);
        let line = format!("{}  {text}", self.head);
        let line: String = visible(&line).chars().take(columns).collect();
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

/// The name of a run while it goes on.
fn called(identity: &RunIdentity) -> String {
    let variant = &identity.variant;
    match (identity.pair, identity.stage) {
        // A probe is no pair.
        (0, _) => "probe".to_owned(),
        (pair, RunStage::Search) => format!("pair {pair} {variant}"),
        (pair, RunStage::Confirm) => format!("confirm {pair} {variant}"),
    }
}

/// The line of a pair; where a line is `live`, only its failures.
fn pair_line(progress: &SuiteProgress<'_>, live: bool) -> Option<String> {
    match progress {
        SuiteProgress::PairStarted {
            stage,
            pair,
            wanted,
            order,
            design,
            ..
        } if !live => {
            let (noun, of, order) = (noun(*stage), of(*wanted), joined(order, *design));
            Some(format!("  {noun} {pair} of {of}: {order}"))
        }
        SuiteProgress::PairEnded {
            stage,
            pair,
            lost: Some(why),
            ..
        } => Some(format!("  {} {pair} is lost: {why}", noun(*stage))),
        SuiteProgress::PairEnded {
            stage, pair, left, ..
        } if !live => Some(format!(
            "  {} {pair} done, {} left",
            noun(*stage),
            span(*left)
        )),
        SuiteProgress::PairDiscarded {
            stage, pair, why, ..
        } => Some(format!("  {} {pair} cannot be used: {why}", noun(*stage))),
        _ => None,
    }
}

/// The name of a pair of a stage.
const fn noun(stage: RunStage) -> &'static str {
    match stage {
        RunStage::Search => "pair",
        RunStage::Confirm => "confirmation pair",
    }
}

/// The number of pairs: `6`, or `4 to 20` where looks decide.
fn of(wanted: PairsWanted) -> String {
    let PairsWanted {
        next_look,
        most,
        repeated,
    } = wanted;
    let count = if next_look == most {
        most.to_string()
    } else {
        format!("{next_look} to {most}")
    };
    match repeated {
        0 => count,
        _ => format!("{count}, {repeated} of them repeated"),
    }
}

/// The variants of a pair, in their order.
fn joined(order: &[&str], design: DesignPlan) -> String {
    match design {
        DesignPlan::Paired => order.join(", then "),
        DesignPlan::Duet => format!("{} at once", order.join(" and ")),
        DesignPlan::Sliced { .. } => format!("{} in turns", order.join(" and ")),
    }
}
