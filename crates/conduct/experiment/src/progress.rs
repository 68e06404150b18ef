//! What a lab tells while it goes on.

use stillwell_capture::{RunIdentity, RunStage};
use stillwell_plan::{DesignPlan, GitSource};
use stillwell_run::Progress;
use stillwell_units::Nanos;
use stillwell_verdict::{ExperimentVerdict, RunSummary, Standing};

use crate::{Built, OperatingPointFound, Problem, TimeLeft, WarmupRecord};

/// What a lab tells while it goes on.
#[derive(Debug)]
pub enum SuiteProgress<'a> {
    /// An executable is built, or found built.
    Building {
        /// What is built.
        source: &'a GitSource,
        /// The commit, in full.
        revision: &'a str,
        /// Whether it was built before.
        cached: bool,
    },
    /// An executable is there.
    Built {
        /// What was built.
        source: &'a GitSource,
        /// What it became.
        built: &'a Built,
    },
    /// An experiment began.
    ExperimentStarted {
        /// Which.
        experiment: &'a str,
        /// Its number, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// Finished pairs of an earlier session are taken over.
    TakenOver {
        /// The experiment.
        experiment: &'a str,
        /// What they were run for.
        stage: RunStage,
        /// The pairs, from 1.
        pairs: &'a [u32],
    },
    /// The rate is looked for.
    Probing {
        /// The experiment.
        experiment: &'a str,
        /// How long the probe measures.
        length: Nanos,
    },
    /// The rate is known.
    OperatingPoint {
        /// The experiment.
        experiment: &'a str,
        /// The rate, and why.
        found: &'a OperatingPointFound,
        /// Whether it was found in an earlier session.
        taken_over: bool,
    },
    /// A pair began.
    PairStarted {
        /// The experiment.
        experiment: &'a str,
        /// What it is run for.
        stage: RunStage,
        /// The pair, from 1.
        pair: u32,
        /// How many there will be.
        wanted: PairsWanted,
        /// The names of the variants, in the order in which they run.
        order: &'a [&'a str],
        /// Whether they run one after the other, or how at once.
        design: DesignPlan,
    },
    /// A block began, in which each of several subjects runs once.
    BlockStarted {
        /// The experiment.
        experiment: &'a str,
        /// The block, from 1.
        block: u32,
        /// How many there are.
        of: u32,
        /// The names of the subjects, in the order in which they run.
        order: &'a [&'a str],
        /// How long all that follows will take.
        left: TimeLeft,
    },
    /// A run began. Where both runs of a pair are made at once, both begin.
    RunStarted {
        /// Which.
        identity: &'a RunIdentity,
        /// How long this run and all that follow will take.
        left: TimeLeft,
    },
    /// A run goes on.
    Run(Progress),
    /// A run ended.
    RunEnded {
        /// What it came to.
        summary: &'a RunSummary,
    },
    /// A pair ended.
    PairEnded {
        /// The experiment.
        experiment: &'a str,
        /// What it was run for.
        stage: RunStage,
        /// The pair, from 1.
        pair: u32,
        /// Why it is lost, if it is. One that is not may still turn out not to be
        /// believed.
        lost: Option<&'a str>,
        /// How long all that follows will take.
        left: TimeLeft,
    },
    /// A pair that was finished cannot be believed, and is repeated.
    PairDiscarded {
        /// The experiment.
        experiment: &'a str,
        /// What it was run for.
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
        found: &'a WarmupRecord,
    },
    /// The data were looked at, or no more pairs are run.
    Look {
        /// What is known, and what comes next.
        standing: &'a Standing,
        /// How long this experiment still takes.
        left: TimeLeft,
        /// How long all that follows will take.
        left_in_all: TimeLeft,
    },
    /// An experiment ended.
    ExperimentEnded {
        /// What it came to.
        verdict: &'a ExperimentVerdict,
    },
    /// Something went wrong.
    Problem(&'a Problem),
    /// Something that a reader should know now.
    Note(String),
}

/// How many pairs of a stage there will be, as far as is known when one begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PairsWanted {
    /// Until the data are looked at next.
    pub next_look: u32,
    /// Until the last look.
    pub most: u32,
    /// Those among both that are there because pairs had to be repeated.
    pub repeated: u32,
}
