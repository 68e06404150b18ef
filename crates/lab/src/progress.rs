//! What a lab tells while it goes on.

use stillwell_capture::RunIdentity;
use stillwell_plan::GitSource;
use stillwell_run::Progress;
use stillwell_units::Nanos;
use stillwell_verdict::{ExperimentVerdict, RunSummary};

use crate::{Built, OperatingPointFound, Problem};

/// What a lab tells while it goes on.
#[derive(Debug)]
pub enum LabProgress<'a> {
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
        /// The pair, from 1.
        pair: u32,
        /// How many there are.
        of: u32,
        /// The names of the variants, in the order in which they run.
        order: &'a [&'a str],
    },
    /// A run began.
    RunStarted {
        /// Which.
        identity: &'a RunIdentity,
        /// How long this run and all that follow will take.
        left: Nanos,
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
        /// The pair, from 1.
        pair: u32,
        /// Why it is lost, if it is.
        lost: Option<&'a str>,
        /// How long all that follows will take.
        left: Nanos,
    },
    /// What the pairs so far say. It ends nothing.
    Interim {
        /// What the experiment would come to if it ended now.
        verdict: &'a ExperimentVerdict,
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
