//! Asking: one suite for each comparison.

use std::path::Path;

use stillwell_plan::experiment::{BinarySource, GitSource};
use stillwell_plan::{ExperimentPlan, SuitePlan, VariantPlan};
use stillwell_run::Interrupt;
use stillwell_units::Tolerance;

use super::git::{Commit, commits_between};
use super::record::{BISECT_SCHEMA, BisectRecord, OutcomeRecord, StepRecord};
use super::search::{Answer, Outcome, Search, Step};
use crate::{
    Executor, ProblemKind, Results, SuiteError, SuiteOptions, SuiteOutcome, SuiteProgress,
    fingerprint, run_suite,
};

/// The share of the change between both ends that a commit must have to be bad:
/// as far from none as from all of it.
const SHARE_OF_CHANGE: f64 = 0.5;

/// A tolerance is never wider, however large the change is.
const TOLERANCE_MAX: f64 = 0.5;

/// The end of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisected {
    /// The outcome; `None` if it was interrupted.
    pub outcome: Option<Outcome>,
    /// Questions and answers; `None` if not even the commits were listed.
    pub record: Option<BisectRecord>,
}

/// Progress of a search.
#[derive(Debug)]
pub enum BisectProgress<'a> {
    /// The commits are known: GOOD, and all after it up to BAD.
    Commits(&'a [Commit]),
    /// Two commits are going to be compared.
    Comparing {
        /// Maximum number of comparisons from here on, this one included, if every comparison has
        /// an answer.
        left_at_most: usize,
        /// The baseline.
        baseline: &'a Commit,
        /// The commit that is compared with the baseline.
        comparison: &'a Commit,
    },
    /// They were compared.
    Answered {
        /// The answer.
        step: &'a StepRecord,
        /// True if that was in an earlier session.
        taken_over: bool,
    },
    /// The comparison goes on.
    Suite(SuiteProgress<'a>),
}

/// The reason why a search could not be begun or not go on.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    /// The plan is not one of two revisions.
    #[error("cannot bisect with this plan: {reason}")]
    Plan {
        /// The missing property.
        reason: String,
    },
    /// GOOD and BAD could not be compared.
    #[error("cannot compare GOOD with BAD: {reason}")]
    Ends {
        /// The reason why not.
        reason: String,
    },
    /// Results could not be kept.
    #[error("cannot write results: {reason}")]
    Storage {
        /// The reason why not.
        reason: String,
    },
    /// The search could not be begun, or a comparison not be made.
    #[error(transparent)]
    Suite(#[from] SuiteError),
}

/// Searches for the first commit between two revisions that made the primary goal of an experiment
/// worse.
///
/// `plan` holds one experiment, whose two variants differ only in their revisions: GOOD first, BAD
/// second. Both are compared first. If BAD is worse by d, a commit counts as bad if it is worse than
/// GOOD by half of d. Commits that cannot be checked out, built or judged are skipped. In the end the last good
/// commit is compared with the first bad one.
///
/// # Errors
/// [`BisectError`] where it could not begin or continue. All answers until then are kept, and the
/// search can be resumed.
pub fn run_bisect(
    plan: &SuitePlan,
    options: &SuiteOptions,
    executor: &mut dyn Executor,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(BisectProgress<'_>),
) -> Result<Bisected, BisectError> {
    let [good, bad] = ends_of(plan)?;
    let listed = commits_between(&good.repository, &good.revision, &bad.revision, interrupt)?;
    let Some(commits) = listed else {
        return Ok(Bisected {
            outcome: None,
            record: None,
        });
    };
    progress(BisectProgress::Commits(&commits));
    let mut record = open(plan, options, good, commits)?;
    let known = std::mem::take(&mut record.steps);
    let mut known = known.into_iter();
    let mut search = Search::new(record.commits.len() - 1);
    loop {
        let step = search.step();
        let Some(question) = Comparison::by(step) else {
            break;
        };
        let blank = question.blank(&record, plan);
        let earlier = known.next().filter(|item| is_same_question(item, &blank));
        let taken_over = earlier.is_some();
        let answered = match earlier {
            Some(earlier) => Some(earlier),
            None => {
                // What was answered to other questions helps no more.
                known = Vec::new().into_iter();
                progress(BisectProgress::Comparing {
                    left_at_most: search.left_at_most(),
                    baseline: &record.commits[question.baseline],
                    comparison: &record.commits[question.comparison],
                });
                compare_commits(
                    (question, record.commits.as_slice()),
                    blank,
                    plan,
                    options,
                    (executor, interrupt),
                    progress,
                )?
            }
        };
        let Some(answered) = answered else {
            return Ok(Bisected {
                outcome: None,
                record: Some(record),
            });
        };
        progress(BisectProgress::Answered {
            step: &answered,
            taken_over,
        });
        search.answer(answered.answer);
        record.steps.push(answered);
        if !taken_over {
            record.write(&options.results)?;
        }
    }
    let outcome = match search.step() {
        Step::Done(outcome) => Some(outcome),
        Step::Ends(_) | Step::Test(_) | Step::Confirm { .. } => None,
    };
    record.outcome = outcome.map(|item| OutcomeRecord::new(item, &record.commits));
    record.write(&options.results)?;
    Ok(Bisected {
        outcome,
        record: Some(record),
    })
}

/// The sources of GOOD and BAD.
fn ends_of(plan: &SuitePlan) -> Result<[&GitSource; 2], BisectError> {
    let refuse = |reason: &str| BisectError::Plan {
        reason: reason.to_owned(),
    };
    let [experiment] = plan.experiments.as_slice() else {
        return Err(refuse("a bisection needs exactly one experiment"));
    };
    let [good, bad] = experiment.variants.as_slice() else {
        return Err(refuse("it must have two variants"));
    };
    let (BinarySource::Git(baseline), BinarySource::Git(comparison)) = (&good.binary, &bad.binary)
    else {
        return Err(refuse("both variants must be built from revisions"));
    };
    let unified = VariantPlan {
        name: good.name.clone(),
        binary: good.binary.clone(),
        ..bad.clone()
    };
    let same_build = GitSource {
        revision: baseline.revision.clone(),
        ..comparison.clone()
    };
    if unified != *good || same_build != *baseline {
        return Err(refuse("its variants may differ only in their revisions"));
    }
    Ok([baseline, comparison])
}

/// The record to go on with, or a new one.
fn open(
    plan: &SuitePlan,
    options: &SuiteOptions,
    good: &GitSource,
    commits: Vec<Commit>,
) -> Result<BisectRecord, SuiteError> {
    let folder = &options.results;
    let place = BisectRecord::place(folder);
    let fingerprint_of = |plan: &SuitePlan| {
        fingerprint(plan).map_err(|error| SuiteError::Write {
            path: place.clone(),
            source: error.into(),
        })
    };
    let typed = fingerprint_of(plan)?;
    let fingerprint = fingerprint_of(&between(plan, &commits))?;
    let experiment = plan.experiments.first();
    let new = BisectRecord {
        schema: BISECT_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: options.command.clone(),
        experiment: experiment.map_or_else(String::new, |item| item.name.clone()),
        fingerprint,
        repository: good.repository.clone(),
        commits,
        steps: Vec::new(),
        outcome: None,
    };
    let has_results = Results::new(folder.clone()).has_results();
    match (options.resume, place.exists()) {
        (false, _) if has_results => Err(SuiteError::AlreadyThere {
            results: folder.clone(),
        }),
        (false, _) => {
            new.write(folder)?;
            Ok(new)
        }
        (true, true) => go_on(folder, new, &typed),
        (true, false) => Err(SuiteError::NothingToResume {
            results: folder.clone(),
        }),
    }
}

/// The plan with its revisions as names of commits: a branch that moves, or another spelling, is the same search as long
/// as the commits are.
fn between(plan: &SuitePlan, commits: &[Commit]) -> SuitePlan {
    let mut plan = plan.clone();
    let variants = plan
        .experiments
        .iter_mut()
        .flat_map(|item| &mut item.variants);
    let ends = [commits.first(), commits.last()];
    for (variant, commit) in variants.zip(ends.into_iter().flatten()) {
        if let BinarySource::Git(source) = &mut variant.binary {
            source.revision.clone_from(&commit.revision);
        }
    }
    plan
}

/// The steps of an earlier session, if that looked for the same thing. Older records have the fingerprint of the
/// plan as it was typed.
fn go_on(folder: &Path, new: BisectRecord, typed: &str) -> Result<BisectRecord, SuiteError> {
    let old = BisectRecord::read(folder)?;
    let changed = |pointer: &str| SuiteError::PlanChanged {
        results: folder.to_path_buf(),
        pointer: pointer.to_owned(),
    };
    if old.commits != new.commits {
        return Err(changed("/commits"));
    }
    if old.fingerprint != new.fingerprint && old.fingerprint != typed {
        return Err(changed("/fingerprint"));
    }
    // Until all steps are answered again.
    Ok(BisectRecord {
        outcome: None,
        ..old
    })
}

/// Two commits to be compared, by their places.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    step: Step,
    baseline: usize,
    comparison: usize,
}

impl Comparison {
    fn by(step: Step) -> Option<Self> {
        let (baseline, comparison) = match step {
            Step::Ends(commit) | Step::Test(commit) => (0, commit),
            Step::Confirm { good, bad } => (good, bad),
            Step::Done(_) => return None,
        };
        Some(Self {
            step,
            baseline,
            comparison,
        })
    }

    /// The record of it, before there is an answer.
    fn blank(self, record: &BisectRecord, plan: &SuitePlan) -> StepRecord {
        let revision = |place: usize| record.commits[place].revision.clone();
        let comparison = revision(self.comparison);
        let short = comparison.get(..12).unwrap_or(&comparison);
        let results = match self.step {
            Step::Test(_) => format!("test-{short}"),
            Step::Confirm { .. } => format!("confirm-{short}"),
            Step::Ends(_) | Step::Done(_) => "ends".to_owned(),
        };
        let metric = record.metric().cloned();
        let goals = plan.experiments.first().map(|item| item.goals.as_slice());
        let mut goals = goals.unwrap_or_default().iter();
        let goal = goals.find(|goal| metric.as_ref().is_none_or(|metric| goal.metric == *metric));
        let stated = goal.map_or(Tolerance::DEFAULT, |goal| goal.tolerance);
        // The first step that was answered is the one of the ends.
        let change = record.steps.first().and_then(|ends| ends.change);
        let half =
            change.map(|[estimate, ..]| (estimate.abs() * SHARE_OF_CHANGE).min(TOLERANCE_MAX));
        let tolerance = half.and_then(|half| Tolerance::try_new(half).ok());
        StepRecord {
            results,
            baseline: revision(self.baseline),
            comparison,
            tolerance: tolerance.unwrap_or(stated).share(),
            answer: Answer::Unknown,
            verdict: None,
            change: None,
            metric,
            pairs: 0,
            reason: None,
        }
    }

    /// The suite that answers it.
    fn plan(self, plan: &SuitePlan, blank: &StepRecord) -> SuitePlan {
        let mut plan = plan.clone();
        for experiment in &mut plan.experiments {
            self.set(experiment, blank);
        }
        plan
    }

    fn set(self, experiment: &mut ExperimentPlan, blank: &StepRecord) {
        let revisions = [&blank.baseline, &blank.comparison];
        for (variant, revision) in experiment.variants.iter_mut().zip(revisions) {
            if let BinarySource::Git(source) = &mut variant.binary {
                source.revision.clone_from(revision);
            }
        }
        // A wrong turn shows when its end is confirmed.
        experiment.confirm &= !matches!(self.step, Step::Test(_));
        // The goal that decided between the ends decides all steps.
        let mut goals = experiment.goals.iter();
        if let Some(place) = goals.position(|goal| Some(&goal.metric) == blank.metric.as_ref()) {
            experiment.goals[..=place].rotate_right(1);
        }
        if let (Some(goal), Ok(tolerance)) = (
            experiment.goals.first_mut(),
            Tolerance::try_new(blank.tolerance),
        ) && tolerance != goal.tolerance
        {
            (goal.tolerance, goal.tolerance_time) = (tolerance, None);
        }
    }
}

/// Returns true if the answer to `earlier` also answers the present question.
fn is_same_question(earlier: &StepRecord, now: &StepRecord) -> bool {
    earlier.results == now.results
        && earlier.baseline == now.baseline
        && earlier.comparison == now.comparison
}

/// Compares two commits; `None` if interrupted.
fn compare_commits(
    (question, commits): (Comparison, &[Commit]),
    blank: StepRecord,
    plan: &SuitePlan,
    options: &SuiteOptions,
    (executor, interrupt): (&mut dyn Executor, &Interrupt),
    progress: &mut dyn FnMut(BisectProgress<'_>),
) -> Result<Option<StepRecord>, BisectError> {
    let plan = question.plan(plan, &blank);
    let folder = options.results.join(&blank.results);
    let options = SuiteOptions {
        resume: Results::new(folder.clone()).suite().exists(),
        results: folder,
        ..options.clone()
    };
    let is_ends = matches!(question.step, Step::Ends(_));
    let ran = run_suite(&plan, &options, executor, interrupt, &mut |event| {
        progress(BisectProgress::Suite(event));
    });
    match ran {
        Ok(outcome) if outcome.interrupted.is_some() => Ok(None),
        Ok(outcome) => record_step(&outcome, blank, is_ends).map(Some),
        Err(error) if is_skipped(&error, commits) => Ok(Some(blank.unknown(error.to_string()))),
        Err(error) => Err(error.into()),
    }
}

/// Messages of git and of builds about a full disk.
const DISK_FULL: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// Messages of git that say nothing about the commit: about a full disk without the reason, and the like.
const NOT_THE_COMMIT: [&str; 4] = [
    "unable to write",
    "Read-only file system",
    "Permission denied",
    "died of signal",
];

/// Returns true if the search skips the commit of this error: one that cannot be checked out or does not build. GOOD and
/// BAD, the ends of `commits`, are never skipped.
fn is_skipped(error: &SuiteError, commits: &[Commit]) -> bool {
    let has = |text: &str, messages: &[&str]| messages.iter().any(|part| text.contains(*part));
    let revision = match error {
        SuiteError::Build {
            revision,
            reason,
            log_tail,
            ..
        } if !has(reason, &DISK_FULL) && !has(log_tail, &DISK_FULL) => revision,
        SuiteError::Checkout {
            revision, reason, ..
        } if !has(reason, &DISK_FULL) && !has(reason, &NOT_THE_COMMIT) => revision,
        _ => return false,
    };
    let mut ends = commits.first().into_iter().chain(commits.last());
    !ends.any(|end| end.revision == *revision)
}

fn record_step(
    outcome: &SuiteOutcome,
    blank: StepRecord,
    is_ends: bool,
) -> Result<StepRecord, BisectError> {
    let problem = outcome.most_severe();
    let reason = problem.map_or_else(
        || "it was not finished".to_owned(),
        |problem| problem.reason.clone(),
    );
    let kind = problem.map(|problem| problem.kind);
    match (outcome.verdicts.first(), kind) {
        (_, Some(ProblemKind::Storage | ProblemKind::StorageAtStart)) => {
            Err(BisectError::Storage { reason })
        }
        (_, Some(ProblemKind::CouldNotStart)) if is_ends => Err(BisectError::Ends { reason }),
        (Some(verdict), None) => Ok(blank.answered(verdict)),
        (Some(_), Some(_)) | (None, _) => Ok(blank.unknown(reason)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_commit_is_skipped_unless_it_is_good_or_bad_or_the_disk_is_full() {
        let commits = ["good", "middle", "bad"].map(|revision| Commit {
            revision: revision.to_owned(),
            title: String::new(),
            merge: false,
        });
        let checkout = |revision: &str, reason: &str| SuiteError::Checkout {
            repository: PathBuf::new(),
            revision: revision.to_owned(),
            reason: reason.to_owned(),
        };
        let failed = |revision: &str, reason: &str, log_tail: &str| SuiteError::Build {
            revision: revision.to_owned(),
            reason: reason.to_owned(),
            log_tail: log_tail.to_owned(),
            log: PathBuf::new(),
        };
        let build = |revision: &str| failed(revision, "exit status: 1", "error: expected `;`");
        let missing = "fatal: number: smudge filter lfs failed";
        for (error, expected) in [
            (checkout("middle", missing), true),
            (build("middle"), true),
            (checkout("good", missing), false),
            (checkout("bad", missing), false),
            (build("good"), false),
            (build("bad"), false),
            (
                failed("middle", "exit status: 1", "ld: No space left on device"),
                false,
            ),
            (
                failed("middle", "exit status: 1", "cc: Disk quota exceeded"),
                false,
            ),
            (
                failed("middle", "copy: No space left on device (os error 28)", ""),
                false,
            ),
            (
                checkout("middle", "error: file write error: No space left on device"),
                false,
            ),
            (
                checkout("middle", "error: file write error: Disk quota exceeded"),
                false,
            ),
            (
                checkout("middle", "error: unable to write file a.bin"),
                false,
            ),
            (
                checkout("middle", "error: external filter 'a' died of signal 9"),
                false,
            ),
        ] {
            assert_eq!(is_skipped(&error, &commits), expected, "{error}");
        }
    }
}
