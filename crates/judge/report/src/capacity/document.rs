//! A search as a document.

use stillwell_plan::WorkUnit;
use stillwell_plan::capacity::CapacityFigure;
use stillwell_stats::Estimate;
use stillwell_stats::capacity::usl::UslPoint;
use stillwell_stats::capacity::{CapacityFound, Observed, SearchEnd, Votes};
use stillwell_units::{Nanos, count};
use stillwell_verdict::capacity::{CapacityAnswer, CapacityProbe, KneeFound, figure_text};

use super::CapacityReport;
use crate::document::{
    AxisScale, Block, Cell, Chart, Column, Curve, Document, Mark, Medium, Sign, Table, Text,
};
use crate::words;

/// Returns the document: the answer, how sure it is, and every probe by its load.
pub(super) fn document(report: &CapacityReport) -> Document {
    let answer = match &report.answer {
        Some(CapacityAnswer::Bounds(result)) => bounds(report, result),
        Some(CapacityAnswer::Knee(Ok(result))) => knee(report, result),
        Some(CapacityAnswer::Knee(Err(why))) => {
            let title = Text::answer(Sign::Invalid, "no knee");
            let target = &report.target;
            Block::section(1, title.and(format!(": {why}, for {target}")), [])
        }
        None => {
            let title = Text::answer(Sign::Invalid, "no answer").and(format!(
                ": ended or interrupted before there was a result for {}",
                report.target
            ));
            Block::section(1, title, [])
        }
    };
    let mut blocks = vec![Block::on_page([answer.clone()])];
    if !report.probes.is_empty() {
        let charts = Block::On(Medium::Browser, charts(report));
        let curve = [charts, Block::Table(probes(report))];
        blocks.push(Block::section(2, "response curve", curve));
    }
    let probes = words::counted(count(report.probes.len()), "probe", "probes");
    let mut took = format!("{probes} in {}", words::clock(report.elapsed));
    let unclear = report.probes.iter();
    let unclear = unclear.filter(|probe| probe.observed == Observed::Unclear);
    let unclear = unclear.count();
    if unclear > 0 {
        took.push_str(&format!(", {unclear} of them inconclusive"));
    }
    let validity = words::validity(report.validity).map(Block::paragraph);
    blocks.push(Block::group(
        [Block::paragraph(took)].into_iter().chain(validity),
    ));
    let origin = format!(", Stillwell {}", report.version);
    blocks.push(Block::on_screen([answer]));
    blocks.push(Block::Colophon(Text::code(&report.command).and(origin)));
    Document::new(blocks)
}

/// One probe in a line, for who watches the search.
#[must_use]
pub fn probe_line(
    number: usize,
    probe: &CapacityProbe,
    unit: WorkUnit,
    shown: &[CapacityFigure],
) -> String {
    let mut line = format!("{number:>3}  {:<22}", load(probe, unit));
    for figure in shown {
        if let Some(value) = probe.figure(*figure) {
            line.push_str(&format!("  {figure} {}", figure_text(*figure, value)));
        }
    }
    line.push_str(&format!("  {}", word(probe)));
    if let Some(why) = &probe.why {
        line.push_str(&format!(": {why}"));
    }
    line
}

/// Returns a line of progress: the rates between which the answer is, and the longest time
/// that is left.
#[must_use]
pub fn progress_line(so_far: &CapacityFound, unit: WorkUnit, left: Nanos) -> String {
    format!(
        "     {}; at most {} s left",
        progress_bracket(so_far, unit),
        left.as_u64().div_ceil(1_000_000_000)
    )
}

/// Returns the rates between which the answer of a search is.
#[must_use]
pub fn progress_bracket(so_far: &CapacityFound, unit: WorkUnit) -> String {
    match (so_far.held, so_far.failed) {
        (Some(held), Some(failed)) => {
            format!(
                "between {} and {}",
                unit.rate(held.rate),
                unit.rate(failed.rate)
            )
        }
        (Some(held), None) => format!("at least {}", unit.rate(held.rate)),
        (None, Some(failed)) => format!("below {}", unit.rate(failed.rate)),
        (None, None) => "no result yet".to_owned(),
    }
}

const fn word(probe: &CapacityProbe) -> &'static str {
    match probe.observed {
        Observed::Held => "held",
        Observed::Failed => "failed",
        Observed::Unclear => "inconclusive",
    }
}

fn load(probe: &CapacityProbe, unit: WorkUnit) -> String {
    match (probe.rate, probe.connections) {
        (Some(requested), _) => unit.rate(requested),
        (None, Some(connections)) => words::counted(connections, "connection", "connections"),
        (None, None) => "at full speed".to_owned(),
    }
}

fn interval(estimate: Estimate, report: &CapacityReport) -> String {
    format!(
        "{} % interval {} to {}",
        words::significant(report.level.share() * 100.0).trim_end_matches(".0"),
        report.unit.rate(estimate.lower),
        report.unit.rate(estimate.upper)
    )
}

fn bounds(report: &CapacityReport, result: &CapacityFound) -> Block {
    let (mark, rest) = headline(report, result);
    let head = match result.end {
        SearchEnd::Confirmed | SearchEnd::AboveMaximum => Text::strong(mark),
        _ => Text::answer(Sign::Invalid, mark),
    };
    let votes = |votes: Votes, what: &str, count: u32| {
        let probes = words::counted(votes.held + votes.failed, "probe", "probes");
        let rate = report.unit.rate(votes.rate);
        format!("{what} at {rate}: {count} of {probes}")
    };
    let held = result.held.map(|entry| votes(entry, "held", entry.held));
    let failed = result
        .failed
        .map(|entry| votes(entry, "failed", entry.failed));
    let bounds: Vec<String> = report.bounds.iter().map(ToString::to_string).collect();
    let bounds = format!("bounds: {}", bounds.join(", "));
    let rows = held.into_iter().chain(failed).chain([bounds]);
    Block::section(1, head.and(format!(": {rest}")), [Block::list(rows)])
}

/// Returns the first line, and the sentences that follow it.
fn headline(report: &CapacityReport, result: &CapacityFound) -> (String, String) {
    let target = &report.target;
    let about = result.capacity.map(|capacity| {
        let output = report.unit.rate(capacity.value);
        (output, interval(capacity, report))
    });
    let highest = result.held.map(|votes| report.unit.rate(votes.rate));
    let highest = highest.unwrap_or_else(|| "nothing".to_owned());
    match (result.end, about) {
        (SearchEnd::Confirmed, Some((output, interval))) => (
            output,
            format!("capacity of {target}, confirmed; {interval}"),
        ),
        (SearchEnd::AboveMaximum, _) => (
            format!("at least {highest}"),
            format!("{target} meets all bounds at the highest requested rate; raise --to"),
        ),
        (SearchEnd::BelowMinimum, _) => (
            "below the lowest rate".to_owned(),
            format!("{target} fails a bound at every requested rate; lower --from"),
        ),
        (SearchEnd::GeneratorLimit, _) if result.held.is_none() => (
            "no answer".to_owned(),
            format!(
                "too few probes of {target} at the lowest rate were conclusive; lower --from, or see \
                 the reasons below"
            ),
        ),
        (SearchEnd::GeneratorLimit, _) => (
            format!("at least {highest}"),
            format!("above that, {target} was not measured reliably: see the reasons below"),
        ),
        (SearchEnd::BudgetSpent, Some((output, interval))) => (
            format!("about {output}"),
            format!(
                "capacity of {target}, not confirmed: --max-probes ended the search; {interval}"
            ),
        ),
        (SearchEnd::TimeSpent, Some((output, interval))) => (
            format!("about {output}"),
            format!("capacity of {target}, not confirmed: --max-time ended the search; {interval}"),
        ),
        (SearchEnd::Stopped, Some((output, interval))) => (
            format!("about {output}"),
            format!(
                "capacity of {target}, not confirmed: interrupted before the end of the search; \
                 {interval}"
            ),
        ),
        (_, Some((output, interval))) => (
            format!("about {output}"),
            format!(
                "capacity of {target}, NOT confirmed: the repeated probes contradict earlier ones; \
                 {interval}"
            ),
        ),
        (end, None) => one_sided(report, result, end),
    }
}

/// Returns the headline of a search that ended before its bounds both held and failed.
fn one_sided(report: &CapacityReport, result: &CapacityFound, end: SearchEnd) -> (String, String) {
    let target = &report.target;
    let ended = match end {
        SearchEnd::BudgetSpent => "--max-probes ended the search",
        SearchEnd::TimeSpent => "--max-time ended the search",
        _ => "interrupted before the end of the search",
    };
    match (result.held, result.failed) {
        (Some(held), None) => (
            format!("at least {}", report.unit.rate(held.rate)),
            format!("{target} met all bounds at every probed rate, not confirmed: {ended}"),
        ),
        (None, Some(failed)) => (
            format!("below {}", report.unit.rate(failed.rate)),
            format!("{target} failed a bound at every probed rate, not confirmed: {ended}"),
        ),
        _ => (
            "no answer".to_owned(),
            format!("no capacity of {target} is known: {ended}"),
        ),
    }
}

fn knee(report: &CapacityReport, result: &KneeFound) -> Block {
    let target = &report.target;
    let point = |point: UslPoint| {
        let UslPoint {
            concurrency,
            throughput,
        } = point;
        format!(
            "{} connections ({} to {}), {} ({} to {})",
            words::significant(concurrency.value),
            words::significant(concurrency.lower),
            words::significant(concurrency.upper),
            report.unit.rate(throughput.value),
            words::significant(throughput.lower),
            words::significant(throughput.upper),
        )
    };
    let title = match result.knee {
        Some(knee) => Text::strong(format!("knee of {target}")).and(format!(": {}", point(knee))),
        None => Text::answer(Sign::Invalid, "no knee").and(format!(
            ": throughput of {target} grows in proportion to the connections; raise --connections"
        )),
    };
    let most = f64::from(result.connections_max);
    let beyond =
        |point: Option<UslPoint>| point.is_some_and(|entry| entry.concurrency.value > most);
    let mut rows = vec![result.peak.map_or_else(
        || "peak: none; more connections do not reduce the throughput".to_owned(),
        |peak| format!("peak: {}", point(peak)),
    )];
    if beyond(result.knee) || beyond(result.peak) {
        rows.push(format!(
            "beyond the {most} connections that were tested, the result is extrapolated; raise --connections"
        ));
    }
    if result.left_out > 0 {
        rows.push(format!(
            "{} of {} were left out for the reasons below",
            result.left_out,
            words::counted(count(report.probes.len()), "probe", "probes")
        ));
    }
    let law = &result.law;
    rows.push(format!(
        "Universal Scalability Law: one connection alone {}, contention {:.4}, crosstalk {:.6}; residual {}",
        report.unit.rate(law.lambda),
        law.sigma,
        law.kappa,
        report.unit.rate(law.residual)
    ));
    Block::section(1, title, [Block::list(rows)])
}

/// Returns the probes by their load, those of one load in one row with their medians.
fn probes(report: &CapacityReport) -> Table {
    let curve = report.curve();
    let measured =
        |figure: &CapacityFigure| curve.iter().any(|item| item.figure(*figure).is_some());
    let figures: Vec<CapacityFigure> = report.columns().into_iter().filter(measured).collect();
    let heads = ["load", "probes", "reached"].map(Column::of_numbers);
    let named = figures
        .iter()
        .map(|entry| Column::of_numbers(entry.to_string()));
    let columns = heads
        .into_iter()
        .chain(named)
        .chain([Column::named("result")]);
    let loads = curve.chunk_by(|a, b| load(a, report.unit) == load(b, report.unit));
    Table::new(
        columns,
        loads.map(|probes| load_row(probes, &figures, report.unit)),
    )
    .with_optional(&["throughput", "loss", "reached", "probes"])
}

/// Returns the row of the probes of one load.
fn load_row(probes: &[&CapacityProbe], figures: &[CapacityFigure], unit: WorkUnit) -> Vec<Cell> {
    let load_text = load(probes[0], unit);
    let reached = median(probes.iter().map(|probe| probe.reached));
    let reached = reached.unwrap_or_default();
    let connections = probes[0].connections.map(f64::from);
    let mut row = vec![
        match probes[0].rate.or(connections) {
            Some(value) => Cell::number(load_text, value, ""),
            None => load_text.into(),
        },
        probes.len().to_string().into(),
        Cell::number(unit.rate(reached), reached, "per_second"),
    ];
    row.extend(figures.iter().map(|figure| {
        let unit = if figure.is_time() { "ns" } else { "" };
        let value = median(probes.iter().filter_map(|probe| probe.figure(*figure)));
        value.map_or_else(
            || "-".into(),
            |value| Cell::number(figure_text(*figure, value), value, unit),
        )
    }));
    row.push(results_text(probes).into());
    row
}

/// Returns how many probes of one load had which result, and the reason of the last one that did
/// not hold.
fn results_text(probes: &[&CapacityProbe]) -> String {
    let kinds = [Observed::Held, Observed::Failed, Observed::Unclear].map(|kind| {
        let of_kind = probes.iter().filter(|probe| probe.observed == kind);
        (
            of_kind.clone().count(),
            of_kind.map(|probe| word(probe)).next(),
        )
    });
    let is_mixed = kinds.iter().filter(|(number, _)| *number > 0).count() > 1;
    let named = kinds.iter().filter_map(|(number, word)| match word {
        Some(word) if is_mixed => Some(format!("{number} {word}")),
        word => word.map(str::to_owned),
    });
    let mut text = named.collect::<Vec<_>>().join(", ");
    let reasons = probes.iter().rev().filter_map(|probe| probe.why.as_ref());
    if let Some(why) = reasons.into_iter().next() {
        text.push_str(&format!(": {why}"));
    }
    text
}

/// Returns the middle value, the lower one of two; `None` without any.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// Returns the charts: latencies with their bounds and what was reached, over the load. Lines join the medians of
/// each load; dots are probes.
fn charts(report: &CapacityReport) -> Vec<Block> {
    let curve = report.curve();
    let is_rate = curve.iter().any(|probe| probe.rate.is_some());
    let x = match is_rate {
        true => ("requested rate".to_owned(), "per second"),
        false => ("connections".to_owned(), ""),
    };
    let figures = report.columns().into_iter();
    let times: Vec<CapacityFigure> = figures.filter(|figure| figure.is_time()).collect();
    let lines = times.iter().map(|figure| {
        let line = medians(&curve, |probe| probe.figure(*figure));
        (figure.to_string(), line)
    });
    let mut series: Vec<_> = lines.filter(|(_, line)| !line.is_empty()).collect();
    let most = curve.iter().map(|probe| load_of(probe)).fold(0.0, f64::max);
    let bounds = report.bounds.iter().filter(|bound| bound.figure.is_time());
    series.extend(bounds.clone().map(|bound| {
        let line = vec![(0.0, bound.limit), (most, bound.limit)];
        (format!("bound {bound}"), line)
    }));
    let bounded = bounds.map(|bound| bound.figure).next();
    let marked = bounded.or_else(|| times.last().copied());
    let latencies = Curve {
        scales: (AxisScale::FromZero, AxisScale::Log),
        x: x.clone(),
        y: ("latency".to_owned(), "ns"),
        series,
        marks: marks(report, |probe| probe.figure(marked?)),
        ..Curve::default()
    };
    let reached = medians(&curve, |probe| Some(probe.reached));
    let throughput = Curve {
        scales: (AxisScale::FromZero, AxisScale::FromZero),
        x,
        y: ("reached per second".to_owned(), ""),
        series: vec![("reached".to_owned(), reached)],
        marks: marks(report, |probe| Some(probe.reached)),
        ..Curve::default()
    };
    let note = "Each dot is a probe: filled and green if its bounds held, hollow and red if one failed, grey if \
                that is unclear. Lines join the medians of each load.";
    let curves = [latencies, throughput].map(|curve| Block::Chart(Chart::Curve(curve)));
    let note = Block::Paragraph(Text::dim(note));
    curves.into_iter().chain([note]).collect()
}

/// Returns the rate of a probe, or its connections.
fn load_of(probe: &CapacityProbe) -> f64 {
    let connections = probe.connections.map(f64::from);
    probe.rate.or(connections).unwrap_or(0.0)
}

/// Returns the median of the finite values of each load.
fn medians(
    curve: &[&CapacityProbe],
    value: impl Fn(&CapacityProbe) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let loads = curve.chunk_by(|a, b| load_of(a).total_cmp(&load_of(b)).is_eq());
    let points = loads.filter_map(|probes| {
        let values = probes.iter().filter_map(|probe| value(probe));
        let middle = median(values.filter(|value| value.is_finite()))?;
        Some((load_of(probes[0]), middle))
    });
    points.collect()
}

fn marks(report: &CapacityReport, y: impl Fn(&CapacityProbe) -> Option<f64>) -> Vec<Mark> {
    let marks = report.probes.iter().filter_map(|probe| {
        Some(Mark {
            x: load_of(probe),
            y: y(probe).filter(|value| value.is_finite())?,
            sign: sign(probe),
            text: format!("{}: {}", load(probe, report.unit), word(probe)),
        })
    });
    marks.collect()
}

const fn sign(probe: &CapacityProbe) -> Sign {
    match probe.observed {
        Observed::Held => Sign::Same,
        Observed::Failed => Sign::Worse,
        Observed::Unclear => Sign::Unclear,
    }
}
