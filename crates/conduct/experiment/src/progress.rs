//! Progress of a suite.

use stillwell_capture::{RunIdentity, RunStage};
use stillwell_plan::experiment::GitSource;
use stillwell_plan::stopping::DesignPlan;
use stillwell_run::Progress;
use stillwell_units::Nanos;
use stillwell_verdict::{ExperimentVerdict, RunSummary, Standing};

use crate::{Built, HostUse, OperatingPointFound, Problem, TimeLeft, WarmupRecord};

/// Progress of a suite.
#[derive(Debug)]
pub enum SuiteProgress<'a> {
    /// An executable is built, or cached build of.
    Building {
        /// Source of the build.
        source: &'a GitSource,
        /// The commit, in full.
        revision: &'a str,
        /// The seed of its layout, if it has one.
        seed: Option<u32>,
        /// True if it was built before.
        cached: bool,
    },
    /// An executable is there.
    Built {
        /// Source of the build.
        source: &'a GitSource,
        /// Result of the build.
        built: &'a Built,
    },
    /// An experiment began.
    ExperimentStarted {
        /// Which.
        experiment: &'a str,
        /// Its number, from 1.
        number: usize,
        /// Total number.
        of: usize,
    },
    /// Finished pairs of an earlier session are taken over.
    TakenOver {
        /// The experiment.
        experiment: &'a str,
        /// Stage of the runs.
        stage: RunStage,
        /// The pairs, from 1.
        pairs: &'a [u32],
    },
    /// The rate is looked for.
    Probing {
        /// The experiment.
        experiment: &'a str,
        /// Length of the measured phase.
        length: Nanos,
    },
    /// The rate is known.
    OperatingPoint {
        /// The experiment.
        experiment: &'a str,
        /// The rate, and why.
        result: &'a OperatingPointFound,
        /// True if it was found in an earlier session.
        taken_over: bool,
    },
    /// The next pair waits until the machine is quiet.
    Waiting {
        /// The experiment.
        experiment: &'a str,
        /// Present use of the host by others.
        host: HostUse,
        /// Longest wait.
        up_to: Nanos,
    },
    /// A pair began.
    PairStarted {
        /// The experiment.
        experiment: &'a str,
        /// Stage of the pair.
        stage: RunStage,
        /// The pair, from 1.
        pair: u32,
        /// Number of pairs.
        wanted: PairsWanted,
        /// The names of the variants, in the order in which they run.
        order: &'a [&'a str],
        /// True if they run one after the other, or how at once.
        design: DesignPlan,
    },
    /// A block began, in which each of several targets runs once.
    BlockStarted {
        /// The experiment.
        experiment: &'a str,
        /// The block, from 1.
        block: u32,
        /// Total number.
        of: u32,
        /// The names of the targets, in the order in which they run.
        order: &'a [&'a str],
        /// Remaining time of everything that follows.
        left: TimeLeft,
    },
    /// A run began. Where both runs of a pair are made at once, both begin.
    RunStarted {
        /// Which.
        identity: &'a RunIdentity,
        /// Remaining time, this run included.
        left: TimeLeft,
    },
    /// A run goes on.
    Run(Progress),
    /// Progress of one of two runs that are made at the same time.
    RunAtOnce {
        /// Its variant.
        variant: &'a str,
        /// Its progress.
        progress: Progress,
    },
    /// A run ended.
    RunEnded {
        /// Result of the run.
        summary: &'a RunSummary,
    },
    /// A pair ended.
    PairEnded {
        /// The experiment.
        experiment: &'a str,
        /// Stage of the pair.
        stage: RunStage,
        /// The pair, from 1.
        pair: u32,
        /// The reason why it is lost, if it is. A finished pair may still turn out to be
        /// unreliable.
        lost: Option<&'a str>,
        /// Remaining time of everything that follows.
        left: TimeLeft,
    },
    /// A finished pair is unreliable, and is repeated.
    PairDiscarded {
        /// The experiment.
        experiment: &'a str,
        /// Stage of the pair.
        stage: RunStage,
        /// The pair, from 1.
        pair: u32,
        /// Why, of the first of its runs.
        why: &'a str,
    },
    /// The warm-up of all runs was found in the first of them.
    WarmupFound {
        /// The experiment.
        experiment: &'a str,
        /// The warm-up.
        result: &'a WarmupRecord,
    },
    /// A pair was finished, and the data were not looked at.
    SoFar {
        /// The present state, and the next step.
        standing: &'a Standing,
        /// Remaining time of this experiment.
        left: TimeLeft,
    },
    /// The data were looked at, or no more pairs are run.
    Look {
        /// The present state, and the next step.
        standing: &'a Standing,
        /// Remaining time of this experiment.
        left: TimeLeft,
        /// Remaining time of everything that follows.
        left_in_all: TimeLeft,
    },
    /// An experiment ended.
    ExperimentEnded {
        /// The verdict.
        verdict: &'a ExperimentVerdict,
    },
    /// Something went wrong.
    Problem(&'a Problem),
    /// Something that a reader should know now.
    Note(String),
}

/// The number of pairs of a stage there will be, as far as is known when one begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PairsWanted {
    /// Until the data are looked at next.
    pub next_look: u32,
    /// Until the last look.
    pub most: u32,
    /// Those among both that are there because pairs had to be repeated.
    pub repeated: u32,
}
