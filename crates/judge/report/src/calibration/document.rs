//! A calibration as a document.

use stillwell_plan::WorkUnit;
use stillwell_plan::goal::Scale;
use stillwell_stats::{Level, binomial_share};
use stillwell_units::Nanos;

use super::{
    CalibratedExperiment, CalibratedGoal, CalibrationReport, MachineMet, Slowdown, Visible,
    WorseFound,
};
use crate::document::{
    AxisScale, Block, Cell, Chart, Column, Curve, Document, Medium, Table, Text,
};
use crate::words::{change_size, clock, counted, goal_title, interval, nanos, or_missing, percent};

/// Below this share of the noise, the other part is what limits.
const HALF: f64 = 0.5;

/// Pairing is worth telling from this ratio of the noise without and with it on.
const PAIRING_HELPS: f64 = 1.5;

/// Smallest share of others' CPU time that is reported as a limit.
const FOREIGN_SHOWN: f64 = 0.05;

/// Length of a usual experiment.
const USUAL_MINUTES: u32 = 10;

/// Returns the document: for each experiment how often it is wrong, what it can see, and what limits it.
pub(super) fn document(report: &CalibrationReport) -> Document {
    let title = format!("Calibration of {}", report.title);
    let mut blocks = vec![Block::on_page([Block::section(1, title, [])])];
    blocks.extend(report.experiments.iter().map(section));
    if report.experiments.is_empty() {
        blocks.push(Block::group([Block::paragraph("no comparison finished")]));
    }
    let elapsed = clock(report.elapsed);
    let took = format!("took {elapsed}; captures in {}", report.results_folder);
    let took = Block::paragraph(Text::dim(took));
    blocks.push(Block::on_screen([Block::group([took])]));
    let host = report.host.iter();
    let host: Vec<String> = host.map(|(name, fact)| format!("{name} {fact}")).collect();
    let (version, host) = (&report.version, host.join(", "));
    let origin = format!(", Stillwell {version}, {elapsed}; {host}");
    blocks.push(Block::Colophon(Text::code(&report.command).and(origin)));
    Document::new(blocks)
}

fn section(experiment: &CalibratedExperiment) -> Block {
    let heads = HEADS.map(str::to_owned).into_iter();
    let times = time_heads(experiment);
    // The shortest and the longest time stay on a narrow terminal.
    let middle = times
        .get(1..times.len().saturating_sub(1))
        .unwrap_or_default();
    let optional: Vec<&str> = middle
        .iter()
        .map(String::as_str)
        .chain(["pairs", "tolerance", "pair sd"])
        .collect();
    let columns = heads.chain(times.iter().cloned()).map(Column::named);
    let table = Table::new(
        columns,
        experiment
            .goals
            .iter()
            .map(|goal| goal_cells(goal, experiment.work)),
    )
    .with_optional(&optional);
    let seen = "the smallest change that four of five experiments distinguish from none";
    let subsections = [
        (
            "the baseline compared with itself",
            vec![Block::list(self_comparison(experiment))],
        ),
        (
            "the baseline compared with a slower version",
            vec![Block::list(worse(experiment))],
        ),
        (
            seen,
            vec![
                Block::On(Medium::Browser, chart(experiment)),
                Block::Table(table),
                Block::paragraph(pace(experiment)),
            ],
        ),
        (
            "what limits the detectable change",
            vec![Block::list(limits(experiment))],
        ),
    ];
    let subsections = subsections.map(|(title, blocks)| Block::section(3, title, blocks));
    let answer = answer(experiment).map(Block::paragraph);
    let blocks = answer.into_iter().chain(subsections);
    Block::section(2, experiment.name.as_str(), blocks.collect::<Vec<_>>())
}

/// Returns the change that the first goal detects, in the longest experiment of the table up to
/// [`USUAL_MINUTES`], or in the shortest that detects any.
fn answer(experiment: &CalibratedExperiment) -> Option<String> {
    let goal = experiment.goals.first()?;
    let detected = || {
        let all = goal.visible.iter();
        all.filter_map(|seen| Some((seen.minutes, seen.change?)))
    };
    let usual = detected().take_while(|(minutes, _)| *minutes <= USUAL_MINUTES);
    let (minutes, change) = usual.last().or_else(|| detected().next())?;
    Some(format!(
        "{}: four of five experiments of {minutes} min distinguish a change of {} from none; a regression \
         must also reach the tolerance of {}",
        goal_title(&goal.metric, experiment.work),
        size(goal.scale, change),
        size(goal.scale, goal.tolerance.share())
    ))
}

/// Returns the smallest detected change by the length of an experiment, with the tolerance of the first goal.
fn chart(experiment: &CalibratedExperiment) -> Vec<Block> {
    let lines = experiment.goals.iter().map(|goal| {
        let seen = goal.visible.iter();
        let points = seen.filter_map(|seen| Some((f64::from(seen.minutes), seen.change?)));
        (
            goal_title(&goal.metric, experiment.work).into_owned(),
            points.collect(),
        )
    });
    let mut series: Vec<(String, Vec<(f64, f64)>)> = lines.collect();
    series.retain(|(_, points)| points.len() > 1);
    let ends = series
        .first()
        .and_then(|(_, points)| Some((*points.first()?, *points.last()?)));
    let goal = experiment.goals.first();
    if let Some((goal, (first, last))) = goal.zip(ends) {
        let tolerance = goal.tolerance.share();
        let line = vec![(first.0, tolerance), (last.0, tolerance)];
        series.insert(1, ("tolerance".to_owned(), line));
    }
    let has_lines = !series.is_empty();
    let curve = Curve {
        scales: (AxisScale::Linear, AxisScale::FromZero),
        x: ("length of an experiment".to_owned(), "min"),
        y: (
            "smallest change distinguished from none".to_owned(),
            "share",
        ),
        series,
        ..Curve::default()
    };
    match has_lines {
        true => vec![Block::Chart(Chart::Curve(curve))],
        false => Vec::new(),
    }
}

/// `3 of 40 (1.6 % to 20.4 %)`, the interval exact at 95 %.
fn rate(hits: u32, of: u32) -> String {
    let share = binomial_share(hits, of, Level::NINETY_FIVE);
    format!(
        "{hits} of {of} ({} to {})",
        percent(share.lower),
        percent(share.upper)
    )
}

/// Describes how often equal versions were called different.
fn self_comparison(experiment: &CalibratedExperiment) -> Vec<String> {
    let self_comparison = experiment.self_comparison;
    let of = self_comparison.comparisons;
    let mut lines = vec![
        format!(
            "change reported although nothing differs: {}; in the search, before confirmation: {}",
            rate(self_comparison.flagged, of),
            rate(self_comparison.flagged_by_search, of)
        ),
        format!(
            "interval excludes zero: {}; equivalent: {}",
            rate(self_comparison.without_zero, of),
            rate(self_comparison.equivalent, of)
        ),
    ];
    if self_comparison.invalid > 0 {
        lines.push(format!("invalid: {}", rate(self_comparison.invalid, of)));
    }
    lines
}

/// Describes how often a known change was detected.
fn worse(experiment: &CalibratedExperiment) -> Vec<String> {
    let worse = match &experiment.worse {
        Ok(worse) => worse,
        Err(reason) => return vec![format!("no slower version was tested: {}", reason)],
    };
    let scale = experiment
        .goals
        .first()
        .map_or(Scale::Ratio, |goal| goal.scale);
    let truth = worse.truth.map(|truth| change_size(scale, truth));
    let of = worse.comparisons;
    let mut lines = vec![format!(
        "{}, {}: detected {}; in the search, before confirmation: {}",
        truth.as_deref().unwrap_or("a change of unknown size"),
        slowdown(worse.how),
        rate(worse.confirmed, of),
        rate(worse.found_by_search, of)
    )];
    if let Some((truth, covered)) = truth.zip(worse.covered) {
        lines.push(format!("interval contains {truth}: {}", rate(covered, of)));
    }
    if worse.invalid > 0 {
        lines.push(format!("invalid: {}", rate(worse.invalid, of)));
    }
    if let Some(output) = output(worse, scale) {
        lines.push(output);
    }
    lines
}

fn output(worse: &WorseFound, scale: Scale) -> Option<String> {
    let output = worse.changes.iter().take(8).map(|change| {
        format!(
            "{} {}",
            change_size(scale, change.estimate),
            interval(*change)
        )
    });
    let output: Vec<String> = output.collect();
    (!output.is_empty()).then(|| format!("estimates: {}", output.join(", ")))
}

const fn slowdown(how: Slowdown) -> &'static str {
    match how {
        Slowdown::Burn => "by extra CPU time",
        Slowdown::Pause => "by stopping the target for that share of the time",
    }
}

/// Heads of the table of goals, without the times.
const HEADS: [&str; 5] = ["goal", "tolerance", "flagged", "pairs", "pair sd"];

/// Returns a row of the table of goals: its heads, then one cell for each time.
fn goal_cells(goal: &CalibratedGoal, work: WorkUnit) -> Vec<Cell> {
    let share = |share: f64| Cell::number(size(goal.scale, share), share, "share");
    let visible = |seen: &Visible| seen.change.map_or_else(|| or_missing(None).into(), share);
    let mut cells = vec![
        goal_title(&goal.metric, work).into_owned().into(),
        share(goal.tolerance.share()),
        format!("{} of {}", goal.flagged, goal.comparisons).into(),
        Cell::number(goal.pairs.to_string(), goal.pairs.into(), ""),
        goal.pair_deviation
            .map_or_else(|| or_missing(None).into(), share),
    ];
    cells.extend(goal.visible.iter().map(visible));
    cells
}

/// Without a sign: how large, not which way. What a precise measurement shows are hundredths
/// of a percent.
fn size(scale: Scale, share: f64) -> String {
    match scale {
        Scale::Ratio => format!("{:.2} %", 100.0 * share),
        Scale::Difference => format!("{:.2} points", 100.0 * share),
    }
}

/// The heads of the times.
fn time_heads(experiment: &CalibratedExperiment) -> Vec<String> {
    let first = experiment.goals.first();
    let seen = first.map_or(&[][..], |goal| goal.visible.as_slice());
    seen.iter()
        .map(|seen| format!("in {} min ({} pairs)", seen.minutes, seen.pairs))
        .collect()
}

/// Describes the length of a pair, and of an experiment with its present settings.
fn pace(experiment: &CalibratedExperiment) -> String {
    let whole = experiment
        .pair_time
        .as_u64()
        .saturating_mul(experiment.max_pairs.into());
    format!(
        "A pair takes {}; a search of {}, with the settings of the experiment, at most {}.",
        nanos(experiment.pair_time),
        counted(experiment.max_pairs, "pair", "pairs"),
        clock(Nanos::new(whole))
    )
}

/// Returns the limits of the setup, a sentence each.
fn limits(experiment: &CalibratedExperiment) -> Vec<String> {
    let goals = || experiment.goals.iter();
    let noises = goals().filter_map(|goal| noise(goal, experiment.work));
    let lengths = goals().filter_map(|goal| length(goal, experiment.work));
    let mut lines: Vec<String> = noises.chain(lengths).collect();
    lines.extend(machine(&experiment.machine));
    lines
}

fn noise(goal: &CalibratedGoal, work: WorkUnit) -> Option<String> {
    let (pair, apart) = (goal.pair_deviation?, goal.apart_deviation?);
    let title = goal_title(&goal.metric, work);
    let helps = if apart > PAIRING_HELPS * pair {
        "pairing removes what they share, such as drift of the machine"
    } else {
        "they share little, so a quieter machine or longer runs help more than more pairs"
    };
    Some(format!(
        "{title}: the two runs of a pair differ by {} (sd), runs at any two times by {}; {helps}",
        size(goal.scale, pair),
        size(goal.scale, apart)
    ))
}

fn length(goal: &CalibratedGoal, work: WorkUnit) -> Option<String> {
    let title = goal_title(&goal.metric, work);
    let share = goal.within_share?;
    let advice = match goal.better_seconds {
        Some(seconds) if share >= HALF => {
            format!("; runs of {seconds:.0} s would detect smaller changes in the same time")
        }
        _ => String::new(),
    };
    let where_from = if share >= HALF {
        "within runs"
    } else {
        "between runs"
    };
    Some(format!(
        "{title}: most of the noise arises {where_from} ({} within){advice}",
        percent(share)
    ))
}

fn machine(machine: &MachineMet) -> Vec<String> {
    let mut lines = Vec::new();
    if machine.pairs_discarded > 0 {
        lines.push(format!(
            "{} discarded and repeated",
            counted(machine.pairs_discarded, "pair", "pairs")
        ));
    }
    for (code, runs) in &machine.warnings {
        let runs = counted(*runs, "run", "runs");
        lines.push(format!("{runs} unreliable: {code}"));
    }
    if let Some((mean, most)) = machine.foreign {
        let limit = if mean >= FOREIGN_SHOWN {
            "; a quieter machine would detect smaller changes"
        } else {
            ""
        };
        lines.push(format!(
            "other programs used {} of the host's CPU time, at most {}{limit}",
            percent(mean),
            percent(most)
        ));
    }
    if let Some((mean, most)) = machine.steal.filter(|(_, most)| *most > 0.0) {
        lines.push(format!(
            "the hypervisor took {} of the host's CPU time, at most {}",
            percent(mean),
            percent(most)
        ));
    }
    lines
}
