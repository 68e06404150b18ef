//! A history as a document.

use jiff::Timestamp;
use jiff::tz::Offset;
use stillwell_plan::goal::Scale;
use stillwell_plan::{GoalMetric, GoalPlan};
use stillwell_stats::Sample;
use stillwell_units::{count, float_from_u64};
use stillwell_verdict::history::{Basis, Latest, Lead, Method, Origin, Suspect, Trend, TrendPoint};

use super::{HistoryReport, charts};
use crate::document::{
    Block, Cell, Column, Document, Inline, Item, Medium, Severity, Sign, Sparkline, Table, Text,
};
use crate::words;

/// Cells of a line of points.
const SPARKS_MAX: usize = 40;
/// Digits of a commit's name that readers know it by.
const COMMIT_SHOWN: usize = 12;

/// Returns the document: for each experiment its trends, and the changes in them.
pub(super) fn document(report: &HistoryReport) -> Document {
    let mut sections = Vec::new();
    let mut rest = report.trends.as_slice();
    while let Some(first) = rest.first() {
        let same = |trend: &&Trend| {
            trend.experiment == first.experiment && trend.comparison == first.comparison
        };
        let (trends, left) = rest.split_at(rest.iter().take_while(same).count());
        rest = left;
        let table = Table::new(HEADS.map(Column::named), trends.iter().map(cells));
        let blocks = [
            Block::Table(table),
            Block::On(
                Medium::Browser,
                trends.iter().filter_map(charts::trend).collect(),
            ),
            Block::List(trends.iter().flat_map(items).collect()),
        ];
        sections.push(Block::section(2, test_name(first, &report.trends), blocks));
    }
    let skipped = report.skipped.iter();
    let skipped = skipped
        .map(|(folder, reason)| Block::Note(Severity::Note, format!("{folder}: {reason}").into()));
    let mut end: Vec<Block> = skipped.collect();
    let promise = promise(report);
    if !report.trends.is_empty() {
        end.push(Block::on_screen([Block::paragraph(Text::dim(
            promise.as_str(),
        ))]));
    }
    let origin = Text::from(format!("{promise}; ")).and(Text::code(&report.command));
    let origin = origin.and(format!(", Stillwell {}", report.version));
    Document::new([
        Block::section(1, headline(report), sections),
        Block::group(end),
        Block::Colophon(origin),
    ])
}

/// Returns what is to be known of a trend, and its changes with the commands that confirm them.
fn items(trend: &Trend) -> Vec<Item> {
    let title = words::goal_title(&trend.metric, trend.work);
    let remarks = remarks(trend).into_iter();
    let remarks = remarks.map(|remark| Item::new(Text::dim(format!("{title}: {remark}"))));
    let mut items: Vec<Item> = remarks.collect();
    for change in &trend.leads {
        items.extend(lead(trend, change).into_iter().map(Item::new));
        let command = bisect_command(trend, change).filter(|_| change.worse);
        if let Some((last, command)) = items.last_mut().zip(command) {
            last.action = Some((
                "this is an indication; to confirm it and find its commit",
                command,
            ));
        }
    }
    items
}

/// The first line of all.
fn headline(report: &HistoryReport) -> String {
    let count = |number: usize| count(number);
    let points = || report.trends.iter().flat_map(|trend| &trend.points);
    // Folders of several places may have the same name.
    let run = |point: &TrendPoint| (point.origin.time_millis, point.origin.run.clone());
    let mut runs: Vec<(u64, String)> = points().map(run).collect();
    runs.sort_unstable();
    runs.dedup();
    let results = words::counted(count(runs.len()), "result", "results");
    let times = || points().map(|point| point.origin.time_millis);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return "no result has these goals".to_owned();
    };
    let too_few = |trend: &Trend| trend.latest == Latest::TooFew;
    let alarms = match count(report.alarms()) {
        0 if report.trends.iter().all(too_few) => "too few for a result".to_owned(),
        0 => "no goal is worse at its latest change".to_owned(),
        1 => "1 goal is worse since its latest change".to_owned(),
        many => format!("{many} goals are worse since their latest change"),
    };
    format!(
        "history of {results} from {} to {}: {alarms}",
        utc_minute(first),
        utc_minute(last)
    )
}

/// Describes the error rate of the method.
fn promise(report: &HistoryReport) -> String {
    let tested = report.trends.iter().filter(|trend| trend.p_value.is_some());
    let tested = float_from_u64(tested.count() as u64);
    match report.method {
        Method::Stillwell { alarm_rate } => format!(
            "Stillwell's test reports a change in at most {} of histories without a change: {:.2} false \
             alarms are expected in the {} tested here, for one call",
            words::percent(alarm_rate),
            alarm_rate * tested,
            words::grouped(tested)
        ),
        Method::Otava(options) => format!(
            "by Apache Otava's test at p < {}: it treats the best of all splits as if it was \
             chosen in advance, and long histories without a change raise far more false alarms \
             than that",
            options.p_value
        ),
    }
}

/// The experiment, and the variant where there are several.
pub(super) fn test_name(trend: &Trend, trends: &[Trend]) -> String {
    let several = trends.iter().any(|candidate| {
        candidate.experiment == trend.experiment && candidate.comparison != trend.comparison
    });
    joined(&trend.experiment, &trend.comparison, several)
}

pub(super) fn joined(experiment: &str, comparison: &str, several: bool) -> String {
    if several {
        format!("{experiment}.{comparison}")
    } else {
        experiment.to_owned()
    }
}

/// Heads of the table of trends.
const HEADS: [&str; 5] = ["goal", "results", "latest", "trend", "state"];

fn cells(trend: &Trend) -> Vec<Cell> {
    let role = if trend.gates { "" } else { " (info only)" };
    let latest = trend.points.last().map(|last| level(trend, last.value));
    let sign = match trend.latest {
        Latest::Worse => Sign::Worse,
        Latest::Better => Sign::Better,
        Latest::Steady => Sign::Same,
        Latest::TooFew => Sign::Unclear,
    };
    vec![
        format!("{}{role}", words::goal_title(&trend.metric, trend.work)).into(),
        trend.points.len().to_string().into(),
        words::or_missing(latest).into(),
        Text(vec![Inline::Sparkline(sparkline(trend))]).into(),
        Text::answer(sign, trend.latest.name()).into(),
    ]
}

/// A value of a trend with its unit.
/// Returns a level of a trend on the scale of its metric, or as a change against the baseline of the same pairs.
pub(super) fn level_number(trend: &Trend, value: f64) -> f64 {
    match (trend.basis, trend.scale) {
        (Basis::Anchor, Scale::Ratio) => value.exp_m1(),
        (Basis::Level, Scale::Ratio) => value.exp(),
        (_, Scale::Difference) => value,
    }
}

fn level(trend: &Trend, value: f64) -> String {
    let number = level_number(trend, value);
    match (trend.basis, trend.scale) {
        (Basis::Anchor, Scale::Ratio) => words::signed_percent(number),
        (Basis::Anchor, Scale::Difference) => words::goal_difference(&trend.metric, number),
        (Basis::Level, _) => words::goal_value(&trend.metric, number),
    }
}

/// Returns the points and their changes, neighbours taken together where there are many.
fn sparkline(trend: &Trend) -> Sparkline {
    let together = trend.points.len().div_ceil(SPARKS_MAX).max(1);
    let values: Vec<f64> = trend.points.iter().map(|point| point.value).collect();
    let means = values.chunks(together);
    let means = means.filter_map(|part| Some(Sample::try_new(part, 1).ok()?.mean()));
    Sparkline {
        values: means.map(Some).collect(),
        is_from_zero: false,
        changes: trend
            .leads
            .iter()
            .map(|lead| lead.index / together)
            .collect(),
    }
}

/// Returns the remarks about a trend that precede its changes.
fn remarks(trend: &Trend) -> Vec<String> {
    let mut remarks = Vec::new();
    if trend.latest == Latest::TooFew {
        let needed = trend.points_needed;
        remarks.push(match trend.stretches.len() {
            0 | 1 => format!(
                "too few results to find a change: {} of at least {needed}",
                trend.points.len()
            ),
            _ => format!(
                "too few comparable results in a row to find a change: at least \
                 {needed} are needed, and more where there are several"
            ),
        });
    }
    if trend.basis == Basis::Level {
        remarks.push(
            "the baseline differs between results, so the numbers include drift of the machine: use one \
             fixed build as baseline to cancel it"
                .to_owned(),
        );
    }
    for start in trend.stretches.iter().skip(1) {
        let [before, here] = [start - 1, *start].map(|place| &trend.points[place].origin);
        let what = if before.workload == here.workload {
            "baseline"
        } else {
            "workload"
        };
        remarks.push(format!(
            "the {what} changed at {}: results before it are not compared with results after it",
            moment(here)
        ));
    }
    remarks
}

/// A change, as sentences.
fn lead(trend: &Trend, lead: &Lead) -> Vec<String> {
    let here = &trend.points[lead.index].origin;
    let way = if lead.worse { "worse" } else { "better" };
    let size = if lead.matters {
        ""
    } else {
        ", within the tolerance"
    };
    let mut sentences = vec![format!(
        "{} {} ({way}{size}) from {} on: {} before, {} since then, p = {:.2}",
        words::goal_title(&trend.metric, trend.work),
        words::change_size(trend.scale, lead.change),
        moment(here),
        level(trend, lead.before),
        level(trend, lead.after),
        lead.p_value.max(0.01)
    )];
    if lead.p_value < 0.01 {
        sentences[0] = sentences[0].replace("p = 0.01", "p < 0.01");
    }
    for suspect in &lead.suspects {
        sentences.push(match suspect {
            Suspect::OtherMachine => {
                let before = &trend.points[lead.index - 1].origin;
                let name = |origin: &Origin| {
                    let unknown = || "an unknown machine".to_owned();
                    origin.machine.clone().unwrap_or_else(unknown)
                };
                format!(
                    "the machine changed too: {} before, {} now",
                    name(before),
                    name(here)
                )
            }
            Suspect::SameProgram => {
                "the program is the same before and after: look at the machine".to_owned()
            }
        });
    }
    sentences
}

/// The command that confirms a change and finds its commit, if both sides were
/// built from different commits.
pub(super) fn bisect_command(trend: &Trend, lead: &Lead) -> Option<String> {
    let [before, after] = [lead.index - 1, lead.index].map(|place| &trend.points[place]);
    let (good, bad) = (&before.origin.commit, &after.origin.commit);
    let (good, bad) = (good.as_deref()?, bad.as_deref()?);
    let git = after.origin.git.as_ref()?;
    if good == bad {
        return None;
    }
    let (good, bad) = (short(good), short(bad));
    let mut line = vec![
        "stillwell".to_owned(),
        "bisect".to_owned(),
        good.to_owned(),
        bad.to_owned(),
        quoted(&after.origin.folder.to_string_lossy()),
        "--only".to_owned(),
        quoted(&trend.experiment),
    ];
    if trend.comparison != "comparison" {
        line.extend(["--variant".to_owned(), quoted(&trend.comparison)]);
    }
    if !is_primary(after) {
        line.extend(["--goal".to_owned(), quoted(&goal_word(trend))]);
    }
    line.extend([
        "--repo".to_owned(),
        quoted(&git.repository.to_string_lossy()),
        "--build".to_owned(),
        quoted(&git.build),
        "--build-output".to_owned(),
        quoted(&git.output.to_string_lossy()),
    ]);
    Some(line.join(" "))
}

fn is_primary(point: &TrendPoint) -> bool {
    point.measured.role == stillwell_verdict::history::Role::Primary
}

/// The goal as a command line names it, with what only its user knows.
fn goal_word(trend: &Trend) -> String {
    let name = trend.metric.name();
    if matches!(trend.metric, GoalMetric::Series(_)) {
        return format!("{name}:{}", trend.direction.better());
    }
    let default = GoalPlan::new(trend.metric.clone());
    if default.tolerance == trend.tolerance {
        name.into_owned()
    } else {
        format!("{name}:{}", trend.tolerance)
    }
}

/// Returns `word` as one word of a shell, quoted if needed.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// When and of what: `2026-11-21 14:05 (v1.2, 0123456789ab)`.
fn moment(origin: &Origin) -> String {
    let commit = origin.commit.as_deref().map(short);
    let names: Vec<&str> = origin
        .version
        .as_deref()
        .into_iter()
        .chain(commit)
        .collect();
    let names = if names.is_empty() {
        origin.run.clone()
    } else {
        names.join(", ")
    };
    format!("{} ({names})", utc_minute(origin.time_millis))
}

pub(super) fn short(commit: &str) -> &str {
    commit.get(..COMMIT_SHOWN).unwrap_or(commit)
}

/// Returns a moment in milliseconds since 1970 as `2026-11-21 14:05`, UTC.
#[must_use]
pub fn utc_minute(millis: u64) -> String {
    utc(millis, "%Y-%m-%d %H:%M")
}

/// `2026-11-21 14:05:33 +0000`.
pub(super) fn timestamp(millis: u64) -> String {
    utc(millis, "%Y-%m-%d %H:%M:%S +0000")
}

/// Returns the same in a format of `strftime`. Times after the year 9999 are its end.
fn utc(millis: u64, format: &str) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    Offset::UTC.to_datetime(time).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_split_are_quoted() {
        assert_eq!(quoted("a/b-c=1"), "a/b-c=1");
        assert_eq!(quoted("two words"), "'two words'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 +0000"),
            (951_782_400, "2000-02-29 00:00:00 +0000"),
            (951_868_800, "2000-03-01 00:00:00 +0000"),
            (1_795_269_933, "2026-11-21 14:05:33 +0000"),
            (4_107_542_399, "2100-02-28 23:59:59 +0000"),
        ] {
            assert_eq!(timestamp(seconds * 1000), expected);
        }
    }
}
