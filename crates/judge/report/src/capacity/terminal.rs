//! A search for readers at a terminal.

use stillwell_plan::CapacityFigure;
use stillwell_stats::Estimate;
use stillwell_stats::capacity::usl::UslPoint;
use stillwell_stats::capacity::{CapacityFound, Observed, SearchEnd, Votes};

use super::{CapacityAnswer, CapacityProbe, CapacityReport, CapacityUnit, KneeFound};
use crate::{Style, words};

/// The answer, how sure it is, and every probe by its load.
#[must_use]
pub fn capacity_terminal(report: &CapacityReport, style: Style) -> String {
    let mut text = match &report.answer {
        Some(CapacityAnswer::Bounds(found)) => bounds(report, found, style),
        Some(CapacityAnswer::Knee(found)) => knee(report, found, style),
        None => format!(
            "{}: cut short or interrupted before there was an answer for {}\n",
            style.bad("! no answer"),
            report.target
        ),
    };
    if !report.probes.is_empty() {
        text.push_str(&format!("\n{}\n", style.strong("response curve")));
        text.push_str(&curve(report, style));
    }
    let unclear = of(report, Observed::Unclear);
    text.push_str(&format!(
        "\n{} in {}",
        words::counted(count(report.probes.len()), "probe", "probes"),
        words::clock(report.elapsed)
    ));
    if unclear > 0 {
        text.push_str(&format!(", {unclear} of them unclear"));
    }
    text.push('\n');
    text
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
            line.push_str(&format!("  {figure} {}", figure.told(value)));
        }
    }
    line.push_str(&format!("  {}", word(probe)));
    if let Some(why) = &probe.why {
        line.push_str(&format!(": {why}"));
    }
    line
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn of(report: &CapacityReport, observed: Observed) -> usize {
    let probes = report.probes.iter();
    probes.filter(|probe| probe.observed == observed).count()
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

fn bounds(report: &CapacityReport, found: &CapacityFound, style: Style) -> String {
    let answer = headline(report, found);
    let (mark, rest) = answer;
    let head = match found.end {
        SearchEnd::Confirmed | SearchEnd::AboveMaximum => style.strong(&mark),
        _ => style.bad(&mark),
    };
    let mut text = format!("{head}: {rest}\n");
    let mut row = |votes: Option<Votes>, what: &str| {
        if let Some(votes) = votes {
            text.push_str(&format!(
                "  {what} at {}: {} of {}\n",
                rate(votes.rate, report.unit),
                if what == "held" {
                    votes.held
                } else {
                    votes.failed
                },
                words::counted(votes.held + votes.failed, "probe", "probes"),
            ));
        }
    };
    row(found.held, "held");
    row(found.failed, "failed");
    let bounds: Vec<String> = report.bounds.iter().map(ToString::to_string).collect();
    text.push_str(&format!("  bounds: {}\n", bounds.join(", ")));
    text
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
            format!("{target} keeps its bounds at the highest rate that was asked for; raise --to"),
        ),
        (SearchEnd::BelowMinimum, _) => (
            "! below the lowest rate".to_owned(),
            format!("{target} keeps its bounds at no rate that was asked for; lower --from"),
        ),
        (SearchEnd::GeneratorLimit, _) => (
            format!("! at least {highest}"),
            format!("above that it cannot be told of {target}: see why below"),
        ),
        (SearchEnd::BudgetSpent, Some((told, interval))) => (
            format!("! about {told}"),
            format!("capacity of {target}, not confirmed: no probe was left; {interval}"),
        ),
        (_, Some((told, interval))) => (
            format!("! about {told}"),
            format!(
                "capacity of {target}, NOT confirmed: probes around it disagree with those before; \
                 {interval}"
            ),
        ),
        (_, None) => (
            "! no answer".to_owned(),
            format!("no probe was left before bounds of {target} both held and failed"),
        ),
    }
}

fn knee(report: &CapacityReport, found: &Result<KneeFound, String>, style: Style) -> String {
    let target = &report.target;
    let found = match found {
        Ok(found) => found,
        Err(why) => return format!("{}: {why}, for {target}\n", style.bad("! no knee")),
    };
    let told = |point: UslPoint| {
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
    let head = match found.knee {
        Some(point) => format!(
            "{}: {}\n",
            style.strong(&format!("knee of {target}")),
            told(point)
        ),
        None => format!(
            "{}: throughput of {target} grows evenly with connections\n",
            style.bad("! no knee")
        ),
    };
    let most = f64::from(found.connections_max);
    let beyond = |point: Option<UslPoint>| point.is_some_and(|own| own.concurrency.value > most);
    let mut text = head;
    if let Some(point) = found.peak {
        text.push_str(&format!("  peak: {}\n", told(point)));
    } else {
        text.push_str("  peak: none, more connections never make it slower\n");
    }
    if beyond(found.knee) || beyond(found.peak) {
        text.push_str(&format!(
            "  beyond the {most} connections that were tried it is only extrapolated; raise --connections\n"
        ));
    }
    if found.left_out > 0 {
        text.push_str(&format!(
            "  {} of {} were left out: see why below\n",
            found.left_out,
            words::counted(count(report.probes.len()), "probe", "probes")
        ));
    }
    let law = &found.law;
    text.push_str(&format!(
        "  law: one alone {}, contention {:.4}, crosstalk {:.6}; throughputs lie {} around it\n",
        rate(law.lambda, report.unit),
        law.sigma,
        law.kappa,
        rate(law.residual, report.unit)
    ));
    text
}

fn curve(report: &CapacityReport, style: Style) -> String {
    let curve = report.curve();
    let measured = |figure: &CapacityFigure| curve.iter().any(|it| it.figure(*figure).is_some());
    let columns: Vec<CapacityFigure> = report.columns().into_iter().filter(measured).collect();
    let mut rows = vec![vec!["load".to_owned(), "reached".to_owned()]];
    rows[0].extend(columns.iter().map(ToString::to_string));
    rows[0].push(String::new());
    for probe in &curve {
        let mut row = vec![load(probe, report.unit), rate(probe.reached, report.unit)];
        row.extend(columns.iter().map(|figure| {
            let value = probe.figure(*figure);
            value.map_or_else(|| "-".to_owned(), |value| figure.told(value))
        }));
        let why = probe.why.as_ref().map(|why| format!(": {why}"));
        row.push(format!("{}{}", word(probe), why.unwrap_or_default()));
        rows.push(row);
    }
    let text = words::columns(&rows, 2);
    match text.split_once('\n') {
        Some((head, rest)) => format!("{}\n{rest}", style.faint(head)),
        None => text,
    }
}
