//! Progress: a view on a terminal, plain lines elsewhere.

mod capacity;
mod figure;
mod live;
mod load;
mod look;
mod record;
mod run;
mod suite;
mod times;

use anstyle::{AnsiColor, Style};
use stillwell_experiment::{PairsWanted, Problem, SuiteProgress, TimeLeft};
use stillwell_plan::stopping::DesignPlan;
use stillwell_run::{Interrupt, Progress};
use stillwell_scope::clock;
use stillwell_units::Secrets;
use stillwell_verdict::{ExperimentVerdict, NextStep, RunStage};

pub(crate) use self::capacity::SearchDisplay;
use self::live::Live;
pub(crate) use self::load::LoadDisplay;
use self::look::{described, folded, light_load, so_far, span, waiting};
use self::record::ProgressRecords;
use self::suite::SuiteView;
use crate::paint::Paint;
use crate::secrets;

/// Prints progress on standard error.
#[derive(Debug)]
pub(crate) struct ProgressDisplay<'a> {
    paint: &'a Paint,
    quiet: bool,
    interrupt: Interrupt,
    /// Name of a single run.
    name: String,
    live: Option<Live<SuiteView>>,
    records: Option<ProgressRecords>,
    /// True where the terminal has refused a view.
    is_plain: bool,
    /// True where this experiment's light load has been mentioned.
    light_load_noted: bool,
}

impl<'a> ProgressDisplay<'a> {
    /// Shows the progress of what `interrupt` ends.
    pub(crate) fn new(paint: &'a Paint, quiet: bool, interrupt: &Interrupt) -> Self {
        Self {
            paint,
            quiet,
            interrupt: interrupt.clone(),
            name: String::new(),
            live: None,
            records: ProgressRecords::requested("run"),
            is_plain: false,
            light_load_noted: false,
        }
    }

    /// Names a single run.
    pub(crate) fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Shows that a suite is about to begin: its programs are read, which takes a moment if they are large.
    pub(crate) fn begin(&mut self) {
        if self.open(SuiteView::default)
            && let Some(live) = &self.live
        {
            live.update(|view| view.waits_for("reading the programs of the targets"));
        }
    }

    /// Prints a line above the view.
    pub(crate) fn print_message(&self, text: &str) {
        self.always(text);
    }

    /// Shows progress of a suite.
    pub(crate) fn suite(&mut self, progress: SuiteProgress<'_>) {
        self.show(&progress);
        match (&mut self.records, &progress) {
            (Some(records), SuiteProgress::RunStarted { identity, .. }) => {
                records.begin(&identity.variant);
            }
            (Some(records), SuiteProgress::Run(run)) => records.run(run),
            (Some(records), SuiteProgress::RunAtOnce { variant, progress }) => {
                records.run_of(variant, progress);
            }
            (
                Some(records),
                SuiteProgress::SoFar { standing, .. } | SuiteProgress::Look { standing, .. },
            ) => records.estimate(&standing.verdict),
            _ => {}
        }
        let is_between_pairs = match &progress {
            SuiteProgress::SoFar { .. } => true,
            SuiteProgress::Look { standing, .. } => matches!(standing.next, NextStep::Run { .. }),
            _ => false,
        };
        self.print(progress);
        if is_between_pairs {
            self.pause();
        }
    }

    /// Shows progress in the view, if there is one.
    fn show(&mut self, progress: &SuiteProgress<'_>) {
        if !self.open(SuiteView::default) {
            return;
        }
        let now = clock::now();
        let Some(live) = &self.live else { return };
        live.update(|view| match progress {
            SuiteProgress::ExperimentStarted {
                experiment,
                number,
                of,
            } => view.experiment(experiment, (*number, *of)),
            SuiteProgress::Building { source, cached, .. } => {
                view.waits_for(format!("{} {}", building(*cached), source.revision));
            }
            SuiteProgress::Built { .. } => view.waits_for("the build is ready"),
            SuiteProgress::Waiting { host, up_to, .. } => view.waits_for(waiting(*host, *up_to)),
            SuiteProgress::Probing { .. } => view.step = "probe".to_owned(),
            SuiteProgress::PairStarted {
                stage,
                pair,
                wanted,
                order,
                design,
                ..
            } => {
                let step = format!("{} {pair} of {}", noun(*stage), of(*wanted));
                view.pair(step, order, *design);
            }
            SuiteProgress::BlockStarted {
                block,
                of,
                order,
                left,
                ..
            } => {
                view.left = Some((*left, now));
                view.pair(format!("block {block} of {of}"), order, DesignPlan::Paired);
            }
            SuiteProgress::RunStarted { identity, left } => {
                view.left = Some((*left, now));
                view.run_started(&identity.variant);
            }
            SuiteProgress::Run(run) => view.run_progress(run, now),
            SuiteProgress::RunAtOnce { variant, progress } => {
                view.run_progress_of(variant, progress, now);
            }
            SuiteProgress::RunEnded { summary } => view.run_ended(summary),
            SuiteProgress::PairEnded { left, .. } => view.left = Some((*left, now)),
            SuiteProgress::Look { standing, .. } | SuiteProgress::SoFar { standing, .. } => {
                view.estimate(&standing.verdict);
            }
            SuiteProgress::ExperimentEnded { verdict } => view.experiment_ended(verdict),
            _ => {}
        });
    }

    /// Mentions a light load once, not after each pair.
    fn note_light_load(&mut self, verdict: &ExperimentVerdict) {
        if let Some(note) = light_load(verdict).filter(|_| !self.light_load_noted) {
            self.light_load_noted = true;
            self.line(&format!("  note: {note}"));
        }
    }

    /// Prints the lines of progress.
    fn print(&mut self, progress: SuiteProgress<'_>) {
        match progress {
            SuiteProgress::Run(run) | SuiteProgress::RunAtOnce { progress: run, .. } => {
                self.note(&run);
            }
            SuiteProgress::Building {
                source,
                revision,
                seed,
                cached,
            } => {
                let seed = seed.map(|seed| format!("seed {seed}"));
                let facts = build_facts(&source.revision, revision, seed);
                self.line(&format!("{} {}{facts}", building(cached), source.revision));
            }
            SuiteProgress::ExperimentStarted {
                experiment,
                number,
                of,
            } => {
                self.light_load_noted = false;
                self.experiment(experiment, number, of);
            }
            SuiteProgress::TakenOver { stage, pairs, .. } => self.taken_over(stage, pairs),
            SuiteProgress::Probing { length, .. } => {
                self.line(&format!("  probe: at full speed for {length}"));
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
            pair @ (SuiteProgress::PairStarted { .. }
            | SuiteProgress::PairEnded { .. }
            | SuiteProgress::PairDiscarded { .. }) => {
                let text = pair_line(&pair, self.live.is_some());
                text.into_iter().for_each(|text| self.line(&text));
            }
            SuiteProgress::Waiting { host, up_to, .. } => {
                self.line(&format!("  {}", waiting(host, up_to)));
            }
            // The view shows all estimates.
            SuiteProgress::SoFar { standing, left } if self.live.is_none() => {
                let text = so_far(&standing.verdict, left);
                text.into_iter()
                    .for_each(|text| self.line(&format!("  {text}")));
                self.note_light_load(&standing.verdict);
            }
            SuiteProgress::WarmupFound { result, .. } => {
                let (measured, stated) = (result.measured, result.stated);
                self.line(&format!(
                    "  warm-up: {measured} instead of {stated}, because rates were not steady before"
                ));
            }
            SuiteProgress::Look {
                standing,
                left,
                left_in_all,
            } => self.line(&format!("  {}", described(standing, left, left_in_all))),
            SuiteProgress::Problem(problem) => self.problem(problem),
            SuiteProgress::Note(note) => self.line(&format!("  {note}")),
            SuiteProgress::Built { .. }
            | SuiteProgress::RunStarted { .. }
            | SuiteProgress::RunEnded { .. }
            | SuiteProgress::SoFar { .. }
            | SuiteProgress::ExperimentEnded { .. } => {}
        }
    }

    /// Waits between two pairs while the user has paused.
    fn pause(&self) {
        let Some(live) = &self.live else { return };
        let is_paused = || live.read(|view| view.paused.is_some());
        if !is_paused() {
            return;
        }
        live.update(|view| view.waiting_since = Some(clock::now()));
        while is_paused() && self.interrupt.signal().is_none() {
            live.wait_for_key();
        }
        live.update(|view| view.resume(clock::now()));
    }

    /// Opens the view if there is none and the terminal takes it.
    fn open(&mut self, view: impl FnOnce() -> SuiteView) -> bool {
        if self.live.is_none() && !self.quiet && !self.is_plain {
            match Live::start(view(), self.paint) {
                Ok(live) => self.live = Some(live),
                Err(_) => self.is_plain = true,
            }
        }
        self.live.is_some()
    }

    fn experiment(&self, name: &str, number: usize, of: usize) {
        // The head of the view says so.
        if self.live.is_some() {
            return;
        }
        let name = self.paint.styled(Style::new().bold(), name);
        self.line(&format!("{name}  experiment {number} of {of}"));
    }

    fn problem(&self, problem: &Problem) {
        let red = AnsiColor::Red.on_default();
        let line = problem_line(problem, secrets::handling());
        self.print_masked(&self.paint.styled(red, &line));
    }

    fn block(&self, block: u32, of: u32, order: &[&str], left: TimeLeft) {
        if self.live.is_none() {
            let (order, left) = (order.join(", then "), span(left));
            self.line(&format!("  block {block} of {of}: {order} ({left} left)"));
        }
    }

    /// Shows progress of a single run.
    pub(crate) fn run(&mut self, progress: &Progress) {
        let name = self.name.clone();
        if self.open(|| SuiteView::single(&name))
            && let Some(live) = &self.live
        {
            live.update(|view| view.run_progress(progress, clock::now()));
        }
        if let Some(records) = &mut self.records {
            records.run(progress);
        }
        self.note(progress);
    }

    fn note(&self, progress: &Progress) {
        if let Progress::Note(note) = progress {
            self.line(&format!("  {note}"));
        }
    }

    /// Takes the view away.
    pub(crate) fn clear(&mut self) {
        self.live = None;
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

    fn line(&self, text: &str) {
        if !self.quiet {
            self.always(text);
        }
    }

    fn always(&self, text: &str) {
        self.print_masked(&secrets::handling().text(text));
    }

    /// Prints a text whose secrets are masked already.
    fn print_masked(&self, text: &str) {
        match &self.live {
            Some(live) => live.print_masked(&folded(text, usize::from(Paint::message_columns()))),
            None => Paint::print_masked(text),
        }
    }
}

/// The line of a problem. Only its reason may have secrets: an experiment can be named like one.
fn problem_line(problem: &Problem, secrets: Secrets) -> String {
    let reason = secrets.text(&problem.reason);
    format!("  {}: {reason}", problem.experiment)
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
        } => Some(format!("  {} {pair} discarded: {why}", noun(*stage))),
        // From the second pair on, the estimate has the time left.
        SuiteProgress::PairEnded {
            stage, pair, left, ..
        } if !live && *pair < 2 => Some(format!(
            "  {} {pair} done, {} left",
            noun(*stage),
            span(*left)
        )),
        SuiteProgress::PairDiscarded {
            stage, pair, why, ..
        } => Some(format!("  {} {pair} discarded: {why}", noun(*stage))),
        _ => None,
    }
}

/// The verb of a build.
const fn building(cached: bool) -> &'static str {
    if cached {
        "cached build of"
    } else {
        "building"
    }
}

/// Facts about a build besides the typed revision: its commit, unless that was typed, and its seed.
fn build_facts(typed: &str, commit: &str, seed: Option<String>) -> String {
    let commit = (typed != commit).then(|| commit.to_owned());
    let facts: Vec<String> = [commit, seed].into_iter().flatten().collect();
    match facts.as_slice() {
        [] => String::new(),
        facts => format!(" ({})", facts.join(", ")),
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
        1 => format!("{count} (1 replaces a discarded pair)"),
        _ => format!("{count} ({repeated} replace discarded pairs)"),
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

#[cfg(test)]
mod tests {
    use stillwell_experiment::{Problem, ProblemKind};
    use stillwell_units::Secrets;

    use super::{build_facts, problem_line};

    /// `bisect` names commits, and each was printed twice.
    #[test]
    fn a_build_names_its_commit_once() {
        let seed = || Some("seed 3".to_owned());
        for (typed, seed, expected) in [
            ("v1", None, " (0a1b)"),
            ("0a1b", None, ""),
            ("v1", seed(), " (0a1b, seed 3)"),
            ("0a1b", seed(), " (seed 3)"),
        ] {
            assert_eq!(build_facts(typed, "0a1b", seed), expected, "{typed}");
        }
    }

    #[test]
    fn a_problem_of_an_experiment_named_like_a_secret_loses_only_secrets() {
        let problem = Problem {
            experiment: "auth-service".to_owned(),
            kind: ProblemKind::GivenUp,
            reason: "the target printed DB_PASSWORD=abc and ended".to_owned(),
        };
        assert_eq!(
            problem_line(&problem, Secrets::Masked),
            "  auth-service: the target printed DB_PASSWORD=*** and ended"
        );
    }
}
