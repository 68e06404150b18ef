//! A search as a document.

use stillwell_plan::CapacityFigure;
use stillwell_stats::Estimate;
use stillwell_stats::capacity::usl::UslPoint;
use stillwell_stats::capacity::{CapacityFound, Observed, SearchEnd, Votes};
use stillwell_units::Nanos;
use stillwell_verdict::capacity::{
    CapacityAnswer, CapacityProbe, CapacityUnit, KneeFound, figure_text,
};

use super::CapacityReport;
use crate::document::{AxisScale, Block, Cell, Chart, Column, Curve, Document, Sign, Table, Text};
use crate::words;

/// Returns the document: the answer, how sure it is, and every probe by its load.
pub(super) fn document(report: &CapacityReport) -> Document {
    let mut blocks = vec![match &report.answer {
        Some(CapacityAnswer::Bounds(found)) => bounds(report, found),
        Some(CapacityAnswer::Knee(Ok(found))) => knee(report, found),
        Some(CapacityAnswer::Knee(Err(why))) => {
            let title = Text::answer(Sign::Invalid, "no knee");
            let target = &report.target;
            Block::section(1, title.and(format!(": {why}, for {target}")), [])
        }
        None => {
            let title = Text::answer(Sign::Invalid, "no answer").and(format!(
                ": cut short or interrupted before there was an answer for {}",
                report.target
            ));
            Block::section(1, title, [])
        }
    }];
    if !report.probes.is_empty() {
        let curve = [Block::Table(probes(report)), Block::Chart(chart(report))];
        blocks.push(Block::section(2, "response curve", curve));
    }
    let probes = words::counted(count(report.probes.len()), "probe", "probes");
    let mut took = format!("{probes} in {}", words::clock(report.elapsed));
    let unclear = report.probes.iter();
    let unclear = unclear.filter(|probe| probe.observed == Observed::Unclear);
    let unclear = unclear.count();
    if unclear > 0 {
        took.push_str(&format!(", {unclear} of them unclear"));
    }
    blocks.push(Block::group([Block::paragraph(took)]));
    let origin = format!(", Stillwell {}", report.version);
    blocks.push(Block::Colophon(Text::code(&report.command).and(origin)));
    Document::new(blocks)
}

/// One probe in a line, for who watches the search.
#[must_use]
pub fn probe_line(
    number: usize,
    probe: &CapacityProbe,
    unit: CapacityUnit,
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
pub fn progress_line(so_far: &CapacityFound, unit: CapacityUnit, left: Nanos) -> String {
    let bracket = match (so_far.held, so_far.failed) {
        (Some(held), Some(failed)) => {
            format!(
                "between {} and {}",
                rate(held.rate, unit),
                rate(failed.rate, unit)
            )
        }
        (Some(held), None) => format!("at least {}", rate(held.rate, unit)),
        (None, Some(failed)) => format!("below {}", rate(failed.rate, unit)),
        (None, None) => "no result yet".to_owned(),
    };
    format!(
        "     {bracket}; at most {} s left",
        left.as_u64().div_ceil(1_000_000_000)
    )
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn rate(value: f64, unit: CapacityUnit) -> String {
    match unit {
        CapacityUnit::Requests if value < 10.0 => format!("{value:.2} requests/s"),
        CapacityUnit::Requests => format!("{} requests/s", words::grouped(value)),
        CapacityUnit::Generated(unit) => words::rate(value, unit),
    }
}

const fn word(probe: &CapacityProbe) -> &'static str {
    match probe.observed {
        Observed::Held => "held",
        Observed::Failed => "failed",
        Observed::Unclear => "cannot tell",
    }
}

fn load(probe: &CapacityProbe, unit: CapacityUnit) -> String {
    match (probe.rate, probe.connections) {
        (Some(asked), _) => rate(asked, unit),
        (None, Some(connections)) => words::counted(connections, "connection", "connections"),
        (None, None) => "at full speed".to_owned(),
    }
}

fn interval(estimate: Estimate, report: &CapacityReport) -> String {
    format!(
        "{} % interval {} to {}",
        words::significant(report.level.share() * 100.0).trim_end_matches(".0"),
        rate(estimate.lower, report.unit),
        rate(estimate.upper, report.unit)
    )
}

fn bounds(report: &CapacityReport, found: &CapacityFound) -> Block {
    let (mark, rest) = headline(report, found);
    let head = match found.end {
        SearchEnd::Confirmed | SearchEnd::AboveMaximum => Text::strong(mark),
        _ => Text::answer(Sign::Invalid, mark),
    };
    let votes = |votes: Votes, what: &str, count: u32| {
        let probes = words::counted(votes.held + votes.failed, "probe", "probes");
        let rate = rate(votes.rate, report.unit);
        format!("{what} at {rate}: {count} of {probes}")
    };
    let held = found.held.map(|own| votes(own, "held", own.held));
    let failed = found.failed.map(|own| votes(own, "failed", own.failed));
    let bounds: Vec<String> = report.bounds.iter().map(ToString::to_string).collect();
    let bounds = format!("bounds: {}", bounds.join(", "));
    let rows = held.into_iter().chain(failed).chain([bounds]);
    Block::section(1, head.and(format!(": {rest}")), [Block::list(rows)])
}

/// What stands first, and what follows it.
fn headline(report: &CapacityReport, found: &CapacityFound) -> (String, String) {
    let target = &report.target;
    let about = found.capacity.map(|capacity| {
        let told = rate(capacity.value, report.unit);
        (told, interval(capacity, report))
    });
    let highest = found.held.map(|votes| rate(votes.rate, report.unit));
    let highest = highest.unwrap_or_else(|| "nothing".to_owned());
    match (found.end, about) {
        (SearchEnd::Confirmed, Some((told, interval))) => {
            (told, format!("capacity of {target}, confirmed; {interval}"))
        }
        (SearchEnd::AboveMaximum, _) => (
            format!("at least {highest}"),
            format!("{target} keeps its bounds at the highest requested rate; raise --to"),
        ),
        (SearchEnd::BelowMinimum, _) => (
            "below the lowest rate".to_owned(),
            format!("{target} breaks its bounds at every requested rate; lower --from"),
        ),
        (SearchEnd::GeneratorLimit, _) => (
            format!("at least {highest}"),
            format!("above that, {target} was not measured reliably: see the reasons below"),
        ),
        (SearchEnd::BudgetSpent, Some((told, interval))) => (
            format!("about {told}"),
            format!("capacity of {target}, not confirmed: no probe was left; {interval}"),
        ),
        (SearchEnd::TimeSpent, Some((told, interval))) => (
            format!("about {told}"),
            format!("capacity of {target}, not confirmed: --max-time ended the search; {interval}"),
        ),
        (SearchEnd::Stopped, Some((told, interval))) => (
            format!("about {told}"),
            format!(
                "capacity of {target}, not confirmed: interrupted before the end of the search; \
                 {interval}"
            ),
        ),
        (_, Some((told, interval))) => (
            format!("about {told}"),
            format!(
                "capacity of {target}, NOT confirmed: probes around it disagree with those before; \
                 {interval}"
            ),
        ),
        (SearchEnd::TimeSpent | SearchEnd::Stopped, None) => (
            "no answer".to_owned(),
            format!("cut short or interrupted before bounds of {target} both held and failed"),
        ),
        (_, None) => (
            "no answer".to_owned(),
            format!("no probe was left before bounds of {target} both held and failed"),
        ),
    }
}

fn knee(report: &CapacityReport, found: &KneeFound) -> Block {
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
            rate(throughput.value, report.unit),
            words::significant(throughput.lower),
            words::significant(throughput.upper),
        )
    };
    let title = match found.knee {
        Some(knee) => Text::strong(format!("knee of {target}")).and(format!(": {}", point(knee))),
        None => Text::answer(Sign::Invalid, "no knee").and(format!(
            ": throughput of {target} grows evenly with connections"
        )),
    };
    let most = f64::from(found.connections_max);
    let beyond = |point: Option<UslPoint>| point.is_some_and(|own| own.concurrency.value > most);
    let mut rows = vec![found.peak.map_or_else(
        || "peak: none, more connections never make it slower".to_owned(),
        |peak| format!("peak: {}", point(peak)),
    )];
    if beyond(found.knee) || beyond(found.peak) {
        rows.push(format!(
            "beyond the {most} connections that were tried it is only extrapolated; raise --connections"
        ));
    }
    if found.left_out > 0 {
        rows.push(format!(
            "{} of {} were left out: see why below",
            found.left_out,
            words::counted(count(report.probes.len()), "probe", "probes")
        ));
    }
    let law = &found.law;
    rows.push(format!(
        "law: one alone {}, contention {:.4}, crosstalk {:.6}; throughputs lie {} around it",
        rate(law.lambda, report.unit),
        law.sigma,
        law.kappa,
        rate(law.residual, report.unit)
    ));
    Block::section(1, title, [Block::list(rows)])
}

/// Returns every probe by its load.
fn probes(report: &CapacityReport) -> Table {
    let curve = report.curve();
    let measured = |figure: &CapacityFigure| curve.iter().any(|it| it.figure(*figure).is_some());
    let figures: Vec<CapacityFigure> = report.columns().into_iter().filter(measured).collect();
    let heads = ["load", "reached"].map(Column::of_numbers).into_iter();
    let columns = heads.chain(
        figures
            .iter()
            .map(|own| Column::of_numbers(own.to_string())),
    );
    let columns = columns.chain([Column::default()]);
    let rows = curve.iter().map(|probe| {
        let load_text = load(probe, report.unit);
        let reached = rate(probe.reached, report.unit);
        let mut row = vec![
            match probe.rate.or_else(|| probe.connections.map(f64::from)) {
                Some(value) => Cell::number(load_text, value, ""),
                None => load_text.into(),
            },
            Cell::number(reached, probe.reached, "per_second"),
        ];
        row.extend(figures.iter().map(|figure| {
            let unit = if figure.is_time() { "ns" } else { "" };
            let value = probe.figure(*figure);
            value.map_or_else(
                || "-".into(),
                |value| Cell::number(figure_text(*figure, value), value, unit),
            )
        }));
        let why = probe.why.as_ref().map(|why| format!(": {why}"));
        row.push(format!("{}{}", word(probe), why.unwrap_or_default()).into());
        row
    });
    Table::new(columns, rows)
}

/// Returns latencies over what was reached.
fn chart(report: &CapacityReport) -> Chart {
    let curve = report.curve();
    let times = report.columns().into_iter();
    let series = times.filter(|figure| figure.is_time()).map(|figure| {
        let points = curve.iter().filter_map(|probe| {
            let time = probe.figure(figure).filter(|own| own.is_finite())?;
            Some((probe.reached, time))
        });
        (figure.to_string(), points.collect())
    });
    Chart::Curve(Curve {
        scales: (AxisScale::FromZero, AxisScale::Log),
        x: ("reached".to_owned(), "per second"),
        y: ("latency".to_owned(), "ns"),
        series: series.collect(),
    })
}
