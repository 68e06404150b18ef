//! The result of a search for a commit.
//!
//! The answer first, then every tested commit in the order of the repository, then the
//! reason if there is no answer.

use stillwell_plan::{GoalMetric, WorkUnit};
use stillwell_verdict::Change;

use super::document::short;
use crate::FullReport;
use crate::document::{Block, Cell, Column, Document, Table, Text};
use crate::words::{change_with_interval, counted, goal_title, percent};

/// The content of a search's report.
#[derive(Clone, Debug, PartialEq)]
pub struct BisectReport {
    /// The experiment.
    pub experiment: String,
    /// Its primary goal.
    pub metric: GoalMetric,
    /// Unit of the work that costs are divided by.
    pub work: WorkUnit,
    /// GOOD, and all commits after it up to BAD.
    pub commits: Vec<BisectCommit>,
    /// Tested commits, in order of their tests.
    pub steps: Vec<BisectStep>,
    /// The result; `None` while commits remain to be tested.
    pub outcome: Option<BisectOutcome>,
    /// Folder with the results of all comparisons.
    pub results_folder: String,
    /// The command that gives this again.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
    /// Commands to run next, best first.
    pub next: Vec<String>,
}

/// A commit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BisectCommit {
    /// Its name, in full.
    pub revision: String,
    /// The first line of its message.
    pub title: String,
    /// True for a merge commit.
    pub merge: bool,
}

/// One comparison of two commits, by their places.
#[derive(Clone, Debug, PartialEq)]
pub struct BisectStep {
    /// The commit that was the baseline.
    pub baseline: usize,
    /// The commit that was compared with it.
    pub comparison: usize,
    /// Answer of the test.
    pub answer: CommitAnswer,
    /// The change, if it was measured.
    pub change: Option<Change>,
    /// Smallest change that counts, as a share.
    pub tolerance_share: f64,
    /// Number of pairs behind the answer.
    pub pairs: u32,
    /// Reason for the missing answer.
    pub reason: Option<String>,
    /// The folder of its results, in that of the search.
    pub results: String,
}

/// Answer for a commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommitAnswer {
    /// It is worse.
    Bad,
    /// It is not.
    Good,
    /// The test was inconclusive.
    Unknown,
}

/// Result of a search; commits by their places.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BisectOutcome {
    /// BAD is not worse than GOOD.
    NotWorse,
    /// It is unclear if BAD is worse than GOOD.
    Unclear,
    /// The first bad commit lies behind `good`, up to `bad`.
    Found {
        /// The last commit known to be good.
        good: usize,
        /// The first known to be bad.
        bad: usize,
        /// Answer of the comparison of these two.
        confirmed: CommitAnswer,
    },
}

impl BisectReport {
    /// Returns the search as a report; `data` is its record as JSON.
    #[must_use]
    pub fn with_data(&self, data: String) -> FullReport {
        FullReport {
            document: document(self),
            data,
            page_data: None,
        }
    }
}

/// Returns the document: the answer, every commit that was compared, and why some had no answer.
fn document(report: &BisectReport) -> Document {
    let mut sentences = answer(report).into_iter();
    let title = Text::strong(sentences.next().unwrap_or_default());
    let mut blocks: Vec<Block> = sentences.map(Block::paragraph).collect();
    let rows = rows(report);
    if !rows.is_empty() {
        let table = Table::new(HEADS.map(Column::named), rows);
        blocks.push(Block::group([Block::Table(table)]));
    }
    blocks.push(Block::group([Block::list(unanswered(report))]));
    let folder = &report.results_folder;
    let next = report.next.iter().map(|line| format!("next: {line}"));
    let results = [format!("results: {folder}")].into_iter().chain(next);
    let origin = Text::from(format!("{folder}; ")).and(Text::code(&report.command));
    Document::new([
        Block::section(1, title, blocks),
        Block::on_screen([Block::group([Block::list(results)])]),
        Block::Colophon(origin.and(format!(", Stillwell {}", report.version))),
    ])
}

/// The answer, in sentences.
fn answer(report: &BisectReport) -> Vec<String> {
    let goal = format!(
        "{}, {}",
        report.experiment,
        goal_title(&report.metric, report.work)
    );
    let ends = || report.steps.first().map(|step| size(report, step));
    let ends = || ends().unwrap_or_default();
    match report.outcome {
        None => vec![
            "the search was interrupted before it had a result".to_owned(),
            goal,
        ],
        Some(BisectOutcome::NotWorse) => vec![
            "BAD is not worse than GOOD, so there is no commit to find".to_owned(),
            format!("{goal}: {}", ends()),
            "if `history` showed the change: it may be one or two results before or after the place shown, so \
             use an older GOOD and a newer BAD; or the machine changed"
                .to_owned(),
        ],
        Some(BisectOutcome::Unclear) => vec![
            "inconclusive: BAD may or may not be worse than GOOD, so no commit was searched for".to_owned(),
            format!("{goal}: {}", ends()),
            "see the reason below; if the interval is too wide, more pairs (--max-pairs), longer runs \
             (--measure) or a quieter machine may decide"
                .to_owned(),
        ],
        Some(BisectOutcome::Found {
            good,
            bad,
            confirmed,
        }) => result_lines(report, &goal, (good, bad), confirmed),
    }
}

fn result_lines(
    report: &BisectReport,
    goal: &str,
    (good, bad): (usize, usize),
    confirmed: CommitAnswer,
) -> Vec<String> {
    let step = report.steps.iter().rev();
    let mut step = step.filter(|step| (step.baseline, step.comparison) == (good, bad));
    let against = step.next().map_or_else(String::new, |step| {
        format!(
            "{goal}: {} against {}",
            size(report, step),
            name(report, good)
        )
    });
    let first = match (confirmed, bad - good) {
        (CommitAnswer::Bad, 1) => format!("the first bad commit is {}", name(report, bad)),
        (CommitAnswer::Bad, several) => format!(
            "the first bad commit is one of {several}: after {} up to {}; those between are \
             inconclusive",
            name(report, good),
            name(report, bad)
        ),
        _ => format!(
            "not confirmed: the search led to {}, but compared with {} it is not certainly worse; no \
             commit is named",
            name(report, bad),
            name(report, good)
        ),
    };
    let mut output = vec![first];
    output.extend(Some(against).filter(|text| !text.is_empty()));
    if confirmed == CommitAnswer::Bad && bad - good == 1 && merge(report, bad) {
        output.push("it is a merge: the cause may be in the merged branch".to_owned());
    }
    if confirmed != CommitAnswer::Bad {
        output.push(
            "the change may be spread over several commits, or one comparison was wrong: \
             repeat with more pairs, or between two commits with a certain verdict"
                .to_owned(),
        );
    }
    output
}

fn merge(report: &BisectReport, place: usize) -> bool {
    report.commits.get(place).is_some_and(|commit| commit.merge)
}

/// Returns the short name and title of a commit.
fn name(report: &BisectReport, place: usize) -> String {
    report
        .commits
        .get(place)
        .map_or_else(String::new, |commit| {
            format!("{} ({})", short(&commit.revision), commit.title)
        })
}

/// Describes the measured change of a comparison.
fn size(report: &BisectReport, step: &BisectStep) -> String {
    let pairs = counted(step.pairs, "pair", "pairs");
    step.change.map_or_else(
        || "nothing was measured".to_owned(),
        |change| {
            let change = change_with_interval(report.metric.scale(), change);
            format!("{change} in {pairs}")
        },
    )
}

const HEADS: [&str; 5] = ["commit", "verdict", "change against GOOD", "pairs", "title"];

/// Returns the commits that were compared, GOOD first, and how many lie between.
fn rows(report: &BisectReport) -> Vec<Vec<Cell>> {
    if report.steps.is_empty() {
        return Vec::new();
    }
    let step_of = |place: usize| {
        let mut steps = report.steps.iter();
        steps.find(|step| step.baseline == 0 && step.comparison == place)
    };
    let mut rows = Vec::new();
    let mut between = 0_u32;
    for (place, commit) in report.commits.iter().enumerate() {
        let step = step_of(place);
        if step.is_none() && place > 0 {
            between += 1;
            continue;
        }
        let count = std::mem::take(&mut between);
        if count > 0 {
            let mut row = vec![Cell::default(); 4];
            row.push(format!("({count} not tested)").into());
            rows.push(row);
        }
        let change = step.and_then(|step| step.change);
        let change = change.map(|change| {
            Cell::interval(change_with_interval(report.metric.scale(), change), change)
        });
        let pairs = step.map(|step| Cell::number(step.pairs.to_string(), step.pairs.into(), ""));
        rows.push(vec![
            short(&commit.revision).into(),
            step.map_or("GOOD", |step| word(step.answer)).into(),
            change.unwrap_or_default(),
            pairs.unwrap_or_default(),
            commit.title.as_str().into(),
        ]);
    }
    rows
}

const fn word(answer: CommitAnswer) -> &'static str {
    match answer {
        CommitAnswer::Bad => "bad",
        CommitAnswer::Good => "good",
        CommitAnswer::Unknown => "?",
    }
}

/// Describes the missing answer, and the change that made a commit bad.
fn unanswered(report: &BisectReport) -> Vec<String> {
    let mut output = Vec::new();
    if let Some(step) = report.steps.get(1) {
        output.push(format!(
            "a commit is bad if it is worse than GOOD by {} or more, which is half of the change of BAD",
            percent(step.tolerance_share)
        ));
    }
    for step in &report.steps {
        if step.answer != CommitAnswer::Unknown {
            continue;
        }
        let mut reason = step.reason.as_deref().unwrap_or_default().lines();
        let reason = match reason.next() {
            Some(line) if !line.is_empty() => line,
            _ => "inconclusive",
        };
        output.push(format!(
            "? {}: {reason} ({})",
            name(report, step.comparison),
            step.results
        ));
    }
    output
}
