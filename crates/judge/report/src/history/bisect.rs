//! What a search for a commit came to.
//!
//! The answer first, then every commit that was asked for in the order of the
//! repository, then why there was no answer where there was none.

use stillwell_plan::{GoalMetric, Scale};
use stillwell_verdict::Change;

use super::words::short;
use crate::Style;
use crate::comparison::markdown::escaped;
use crate::words::{change_with_interval, columns, counted, goal_title, percent, plain};

/// All that is told of a search for a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct BisectReport {
    /// The experiment.
    pub experiment: String,
    /// Its primary goal.
    pub metric: GoalMetric,
    /// GOOD, and all commits after it up to BAD.
    pub commits: Vec<BisectCommit>,
    /// What was asked, in order.
    pub steps: Vec<BisectStep>,
    /// What came out; `None` as long as something is still to be asked.
    pub outcome: Option<BisectOutcome>,
    /// Where the results of all comparisons lie.
    pub results_folder: String,
    /// The command that gives this again.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
    /// What to type next, best first.
    pub next: Vec<String>,
}

/// A commit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BisectCommit {
    /// Its name, in full.
    pub revision: String,
    /// The first line of its message.
    pub subject: String,
    /// Whether it brought in a branch.
    pub merge: bool,
}

/// One comparison of two commits, by their places.
#[derive(Clone, Debug, PartialEq)]
pub struct BisectStep {
    /// The commit that was the baseline.
    pub baseline: usize,
    /// The commit that was compared with it.
    pub comparison: usize,
    /// What was said of it.
    pub answer: CommitAnswer,
    /// The change, if it was measured.
    pub change: Option<Change>,
    /// How large a change had to be to matter.
    pub tolerance_share: f64,
    /// Pairs that this rests on.
    pub pairs: u32,
    /// Why there is no answer.
    pub reason: Option<String>,
    /// The folder of its results, in that of the search.
    pub results: String,
}

/// What is said of a commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommitAnswer {
    /// It is worse.
    Bad,
    /// It is not.
    Good,
    /// Nobody can tell.
    Unknown,
}

/// What came out of a search; commits by their places.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BisectOutcome {
    /// BAD is not worse than GOOD.
    NotWorse,
    /// Nobody can tell whether BAD is worse than GOOD.
    Unclear,
    /// The first bad commit lies behind `good`, up to `bad`.
    Found {
        /// The last commit known to be good.
        good: usize,
        /// The first known to be bad.
        bad: usize,
        /// What the comparison of these two said.
        confirmed: CommitAnswer,
    },
}

/// The search for readers at a terminal.
#[must_use]
pub fn bisect_terminal(report: &BisectReport, style: Style) -> String {
    let mut text = String::new();
    for (place, sentence) in answer(report).iter().enumerate() {
        let line = plain(sentence);
        match place {
            0 => text.push_str(&format!("{}\n", style.strong(&line))),
            _ => text.push_str(&format!("  {line}\n")),
        }
    }
    let rows = rows(report);
    if !rows.is_empty() {
        let heads = HEADS.map(str::to_owned).to_vec();
        let cells = rows.into_iter().map(|row| row.map(|cell| plain(&cell)));
        let rows: Vec<Vec<String>> = [heads]
            .into_iter()
            .chain(cells.map(|row| row.to_vec()))
            .collect();
        text.push_str(&format!("\n{}", columns(&rows, 2)));
    }
    for (place, told) in unanswered(report).iter().enumerate() {
        let gap = if place == 0 { "\n" } else { "" };
        text.push_str(&format!("{gap}  {}\n", plain(told)));
    }
    text.push_str(&format!("\nresults: {}\n", plain(&report.results_folder)));
    for line in &report.next {
        text.push_str(&format!("next: {}\n", plain(line)));
    }
    text
}

/// The search for a page or a comment.
#[must_use]
pub fn bisect_markdown(report: &BisectReport) -> String {
    let sentences = answer(report);
    let mut sentences = sentences.iter().map(|sentence| escaped(sentence));
    let mut text = format!("## {}\n", sentences.next().unwrap_or_default());
    for sentence in sentences {
        text.push_str(&format!("\n{sentence}\n"));
    }
    let rows = rows(report);
    if !rows.is_empty() {
        text.push_str(&format!("\n| {} |\n", HEADS.join(" | ")));
        text.push_str(&format!("|{}\n", " --- |".repeat(HEADS.len())));
        for row in rows {
            text.push_str(&format!("| {} |\n", row.map(|c| escaped(&c)).join(" | ")));
        }
    }
    for (place, told) in unanswered(report).iter().enumerate() {
        let gap = if place == 0 { "\n" } else { "" };
        text.push_str(&format!("{gap}* {}\n", escaped(told)));
    }
    let command = report.command.replace('`', "'");
    text.push_str(&format!(
        "\n<sub>{}; `{command}`, Stillwell {}</sub>\n",
        escaped(&report.results_folder),
        report.version
    ));
    text
}

/// The answer, in sentences.
fn answer(report: &BisectReport) -> Vec<String> {
    let goal = format!("{}, {}", report.experiment, goal_title(&report.metric));
    let ends = || report.steps.first().map(|step| size(report, step));
    let ends = || ends().unwrap_or_default();
    match report.outcome {
        None => vec![
            "the search was interrupted: there is no answer yet".to_owned(),
            goal,
        ],
        Some(BisectOutcome::NotWorse) => vec![
            "BAD is not worse than GOOD: there is nothing to look for".to_owned(),
            format!("{goal}: {}", ends()),
            "if a history led here: its change may lie a lab or two beside where it is shown, so \
             take an older GOOD and a newer BAD; or it was the machine that changed"
                .to_owned(),
        ],
        Some(BisectOutcome::Unclear) => vec![
            "nobody can tell whether BAD is worse than GOOD: no commit was looked for".to_owned(),
            format!("{goal}: {}", ends()),
            "more pairs (--max-pairs), longer runs (--measure) or a quieter machine may tell"
                .to_owned(),
        ],
        Some(BisectOutcome::Found {
            good,
            bad,
            confirmed,
        }) => found(report, &goal, (good, bad), confirmed),
    }
}

fn found(
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
            "the first bad commit is one of {several}: after {} up to {}; of those between nobody \
             can tell",
            name(report, good),
            name(report, bad)
        ),
        _ => format!(
            "not confirmed: the search led to {}, but compared with {} it is not surely worse; no \
             commit is named",
            name(report, bad),
            name(report, good)
        ),
    };
    let mut told = vec![first];
    told.extend(Some(against).filter(|text| !text.is_empty()));
    if confirmed == CommitAnswer::Bad && bad - good == 1 && merge(report, bad) {
        told.push("it is a merge: the cause may lie in the branch that it brought in".to_owned());
    }
    if confirmed != CommitAnswer::Bad {
        told.push(
            "the change may be spread over several commits, or one comparison was wrong: look \
             again between commits that were surely told, or with more pairs"
                .to_owned(),
        );
    }
    told
}

fn merge(report: &BisectReport, place: usize) -> bool {
    report.commits.get(place).is_some_and(|commit| commit.merge)
}

/// A commit by its short name and subject.
fn name(report: &BisectReport, place: usize) -> String {
    report
        .commits
        .get(place)
        .map_or_else(String::new, |commit| {
            format!("{} ({})", short(&commit.revision), commit.subject)
        })
}

/// What a comparison measured.
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

const HEADS: [&str; 5] = ["commit", "is", "change against GOOD", "pairs", "subject"];

/// The commits that were asked for, GOOD first, and how many lie between.
fn rows(report: &BisectReport) -> Vec<[String; 5]> {
    if report.steps.is_empty() {
        return Vec::new();
    }
    let asked = |place: usize| {
        let mut steps = report.steps.iter();
        steps.find(|step| step.baseline == 0 && step.comparison == place)
    };
    let mut rows = Vec::new();
    let mut between = 0_u32;
    for (place, commit) in report.commits.iter().enumerate() {
        let step = asked(place);
        if step.is_none() && place > 0 {
            between += 1;
            continue;
        }
        let count = std::mem::take(&mut between);
        if count > 0 {
            let told = format!("({count} not asked for)");
            rows.push([
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                told,
            ]);
        }
        rows.push([
            short(&commit.revision).to_owned(),
            step.map_or("GOOD", |step| word(step.answer)).to_owned(),
            step.map_or_else(String::new, |step| change(report.metric.scale(), step)),
            step.map_or_else(String::new, |step| step.pairs.to_string()),
            commit.subject.clone(),
        ]);
    }
    rows
}

fn change(scale: Scale, step: &BisectStep) -> String {
    step.change
        .map_or_else(String::new, |own| change_with_interval(scale, own))
}

const fn word(answer: CommitAnswer) -> &'static str {
    match answer {
        CommitAnswer::Bad => "bad",
        CommitAnswer::Good => "good",
        CommitAnswer::Unknown => "?",
    }
}

/// Why there was no answer, and what a commit had to be to be bad.
fn unanswered(report: &BisectReport) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(step) = report.steps.get(1) {
        told.push(format!(
            "a commit is bad where it is worse than GOOD by {} or more, half of what BAD is",
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
            _ => "the change is neither surely there nor surely not",
        };
        told.push(format!(
            "? {}: {reason} ({})",
            name(report, step.comparison),
            step.results
        ));
    }
    told
}
