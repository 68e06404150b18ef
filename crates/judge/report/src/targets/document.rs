//! Several programs under one load as a document.

use stillwell_plan::targets::{Delivery, Durability};
use stillwell_units::count;
use stillwell_verdict::{
    ColumnFound, DeliveryFound, Place, TargetsCell, TargetsMetric, TargetsRow, TargetsVerdict,
};

use super::TargetsReport;
use crate::document::{
    Block, Cell, Chart, Column, Datum, Document, Interval, IntervalChart, IntervalRow, Medium,
    Section, Sign, Table, Text,
};
use crate::{profiles, words};

/// Cell text for a missing number.
const NOTHING: &str = "-";

/// Largest number of listed reasons of a kind.
const REASONS_MAX: usize = 12;

/// Returns the document: a table for each experiment, what to know when reading it, and the versions.
pub(super) fn document(report: &TargetsReport) -> Document {
    let title = Block::section(1, heading(report), []);
    // The tables are what a terminal still shows in the end.
    let mut blocks = vec![
        Block::on_page([title]),
        Block::on_screen(profile_blocks(report)),
    ];
    blocks.extend(report.verdicts.iter().map(section));
    blocks.extend(
        matrix(&report.verdicts).map(|table| Block::section(2, "delivery", [Block::Table(table)])),
    );
    blocks.push(Block::on_page(profile_blocks(report)));
    let versions = report.versions.iter().map(|(name, version)| {
        let version = version.as_deref().unwrap_or("version unknown");
        Text::from(format!("{name} = {version}"))
    });
    let left_out = report.left_out.iter();
    let left_out = left_out.map(|(name, reason)| format!("left out: {name}: {reason}").into());
    let problems = report.problems.iter().map(Text::bad);
    let programs = Block::list(versions.chain(left_out).chain(problems));
    let host = report
        .host
        .iter()
        .map(|(name, fact)| format!("{name}: {fact}"));
    let elapsed = report.elapsed.map(|elapsed| format!("took {elapsed}; "));
    let results = format!(
        "{}results in {}",
        elapsed.unwrap_or_default(),
        report.results_folder
    );
    let next = report.next.iter().map(|next| format!("next: {next}"));
    blocks.push(Block::group([
        programs,
        Block::on_page([Block::list(host)]),
        Block::on_screen([Block::list([results].into_iter().chain(next))]),
    ]));
    let origin = format!(", Stillwell {}", report.version);
    blocks.push(Block::Colophon(Text::code(&report.command).and(origin)));
    Document::new(blocks)
}

/// Returns the heading of a page.
fn heading(report: &TargetsReport) -> String {
    let programs = report.verdicts.iter().map(|verdict| verdict.columns.len());
    let programs = count(programs.max().unwrap_or_default());
    let programs = words::counted(programs, "program", "programs");
    let experiments = words::counted(count(report.verdicts.len()), "experiment", "experiments");
    format!(
        "{}: {programs} under the same load, {experiments}",
        report.title
    )
}

/// Returns the profiles of all targets that have some.
fn profile_blocks(report: &TargetsReport) -> Vec<Block> {
    let count = report.profiles.len();
    let all = report.profiles.iter().flat_map(|entry| {
        let heading = match report.verdicts.len() {
            1 => format!("Profiles of {}", entry.target),
            _ => format!("Profiles of {} in {}", entry.target, entry.experiment),
        };
        profiles::blocks(entry, heading, count)
    });
    all.collect()
}

fn section(verdict: &TargetsVerdict) -> Block {
    let blocks = [
        Block::Table(table(verdict)),
        Block::list(below(verdict)),
        Block::On(Medium::Browser, charts(verdict)),
    ];
    let section = Section::titled(2, verdict.name.as_str(), blocks);
    Block::Section(Section {
        summary: verdict.summary.as_deref().map(Text::from),
        ..section
    })
}

/// Returns a chart of each metric that several targets have a number of.
fn charts(verdict: &TargetsVerdict) -> Vec<Block> {
    let rows = verdict.rows.iter();
    let charts = rows.filter_map(|row| chart(row, &verdict.columns));
    charts.collect()
}

fn chart(row: &TargetsRow, columns: &[ColumnFound]) -> Option<Block> {
    let scale = row_scale(row);
    let rows = row.cells.iter().zip(columns).filter_map(|(cell, column)| {
        let TargetsCell::Value {
            mean,
            interval,
            place,
            ..
        } = cell
        else {
            return None;
        };
        let (low, high) = interval.unwrap_or((*mean, *mean));
        Some(IntervalRow {
            name: column.name.clone(),
            text: text(cell, scale),
            sign: Some(match place {
                Place::Winner => Sign::Better,
                Place::Tied | Place::Behind | Place::None => Sign::Unclear,
            }),
            interval: Some(Interval {
                estimate: mean / scale.factor,
                low: low.max(0.0) / scale.factor,
                high: high / scale.factor,
            }),
            tolerance: 0.0,
            scale: stillwell_plan::goal::Scale::Ratio,
            is_primary: false,
        })
    });
    let rows: Vec<IntervalRow> = rows.collect();
    let is_shown = rows.len() > 1
        && rows
            .iter()
            .any(|row| row.interval.is_some_and(|i| i.high > 0.0));
    is_shown.then(|| {
        Block::Chart(Chart::Intervals(IntervalChart {
            title: format!("{}{}", title(row.metric), scale.shown()),
            rows,
            is_from_zero: true,
        }))
    })
}

fn table(verdict: &TargetsVerdict) -> Table {
    let of_columns = |name: &str, text: &dyn Fn(&ColumnFound) -> String| {
        let cells = verdict
            .columns
            .iter()
            .map(|column| Cell::from(text(column)));
        [Cell::from(name)].into_iter().chain(cells).collect()
    };
    let mut rows: Vec<Vec<Cell>> = vec![
        of_columns("runs", &|column| {
            format!("{} of {}", column.completed, verdict.blocks)
        }),
        of_columns("claimed durability", &|column| {
            let claim = column.durability.map_or(NOTHING, Durability::name);
            match column.unchecked {
                Some(_) => format!("{claim}, not checked"),
                None => claim.to_owned(),
            }
        }),
    ];
    rows.extend(verdict.rows.iter().map(row));
    let followed =
        |column: &ColumnFound| column.delivery.runs > 0 || column.delivery.unknown.is_some();
    if verdict.columns.iter().any(followed) {
        rows.push(of_columns("delivery seen", &|column| {
            seen(&column.delivery)
        }));
    }
    if verdict
        .columns
        .iter()
        .any(|column| column.expected.is_some())
    {
        rows.push(of_columns("required delivery", &|column| {
            column.expected.map_or(NOTHING, Delivery::name).to_owned()
        }));
        rows.push(of_columns("kept", &|column| kept(column).to_owned()));
    }
    let names = verdict.columns.iter();
    let names = names.map(|column| Column::of_numbers(column.name.as_str()));
    Table::new([Column::default()].into_iter().chain(names), rows)
}

/// Describes the delivery of events in words.
fn seen(delivery: &DeliveryFound) -> String {
    match (delivery.seen(), delivery.lost, delivery.duplicated) {
        (Some(seen), ..) => seen.name().to_owned(),
        (None, 1.., 1..) => "lost and duplicated".to_owned(),
        _ if delivery.unknown.is_some() => "unknown".to_owned(),
        _ => NOTHING.to_owned(),
    }
}

/// Describes if the delivery meets the requirement.
const fn kept(column: &ColumnFound) -> &'static str {
    match (column.expected, column.delivery.keeps(column.expected)) {
        (None, _) => NOTHING,
        (Some(_), Some(true)) => "pass",
        (Some(_), Some(false)) => "fail",
        (Some(_), None) => "unknown",
    }
}

/// Returns the unit of a row.
fn row_scale(row: &TargetsRow) -> Scale {
    let means = row.cells.iter().filter_map(|cell| match cell {
        TargetsCell::Value { mean, .. } => Some(mean.abs()),
        TargetsCell::Invalid { mean, .. } => mean.map(f64::abs),
        TargetsCell::Missing { .. } => None,
    });
    Scale::of(row.metric, means.fold(0.0, f64::max))
}

fn row(row: &TargetsRow) -> Vec<Cell> {
    let scale = row_scale(row);
    let mut cells = vec![format!("{}{}", title(row.metric), scale.shown()).into()];
    cells.extend(row.cells.iter().map(|cell| Cell {
        text: text(cell, scale).into(),
        datum: datum(cell),
    }));
    cells
}

/// Returns the number behind a cell that may be compared.
const fn datum(cell: &TargetsCell) -> Option<Datum> {
    match *cell {
        TargetsCell::Value {
            mean,
            interval: Some((low, high)),
            ..
        } => Some(Datum::Interval(Interval {
            estimate: mean,
            low,
            high,
        })),
        TargetsCell::Value { mean, .. } => Some(Datum::Number {
            value: mean,
            unit: "",
        }),
        TargetsCell::Invalid { .. } | TargetsCell::Missing { .. } => None,
    }
}

fn text(cell: &TargetsCell, scale: Scale) -> String {
    match cell {
        TargetsCell::Invalid { mean, .. } => mean.map_or_else(
            || "INVALID".to_owned(),
            |mean| {
                format!(
                    "INVALID ({})",
                    number(mean / scale.factor, mean / scale.factor)
                )
            },
        ),
        TargetsCell::Missing { .. } => NOTHING.to_owned(),
        TargetsCell::Value {
            mean,
            interval,
            place,
            ..
        } => {
            let mean = mean / scale.factor;
            let mut text = number(mean, mean);
            if let Some((lower, upper)) = interval {
                let half = number((upper - lower) / 2.0 / scale.factor, mean);
                text.push_str(&format!(" ±{half}"));
            }
            match place {
                Place::Winner => text.push_str(" W"),
                Place::Tied => text.push_str(" ="),
                Place::Behind | Place::None => {}
            }
            text
        }
    }
}

/// With the decimals at which `mean` has three digits that matter.
fn number(value: f64, mean: f64) -> String {
    let size = mean.abs();
    let decimals = match size {
        _ if size == 0.0 || size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.0005 => 3,
        _ => 6,
    };
    if value == 0.0 {
        return "0".to_owned();
    }
    format!("{value:.decimals$}")
}

/// Unit of the numbers of a row.
#[derive(Clone, Copy, Debug)]
struct Scale {
    unit: &'static str,
    factor: f64,
}

impl Scale {
    /// The unit in which the largest of them, `most`, is easy to read.
    fn of(metric: TargetsMetric, most: f64) -> Self {
        use TargetsMetric as M;
        const BYTES: [(&str, f64); 4] = [
            ("GiB", 1_073_741_824.0),
            ("MiB", 1_048_576.0),
            ("KiB", 1024.0),
            ("B", 1.0),
        ];
        const RATES: [(&str, f64); 4] = [
            ("GiB/s", 1_073_741_824.0),
            ("MiB/s", 1_048_576.0),
            ("KiB/s", 1024.0),
            ("B/s", 1.0),
        ];
        const TIMES: [(&str, f64); 3] = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)];
        let fitting = |units: &[(&'static str, f64)]| {
            let mut fit = units.iter().filter(|(_, factor)| most >= *factor);
            let (unit, factor) = fit
                .next()
                .or_else(|| units.last())
                .copied()
                .unwrap_or(("", 1.0));
            Self { unit, factor }
        };
        let plain = |unit| Self { unit, factor: 1.0 };
        match metric {
            M::Accepted | M::Delivered => fitting(&RATES),
            M::MemoryPeak | M::DiskRead | M::DiskWritten | M::NetReceived | M::NetSent => {
                fitting(&BYTES)
            }
            M::LatencyP50 | M::LatencyP99 | M::Drain | M::Recovery => fitting(&TIMES),
            M::CpuSystem | M::CpuUser => plain("cores"),
            M::CpuPerGib => plain("CPU s"),
            M::Loss | M::Duplicated => Self {
                unit: "%",
                factor: 0.01,
            },
            M::Load
            | M::TcpEstablished
            | M::TcpOpened
            | M::TcpTimeWait
            | M::WrittenPerByte
            | M::FlushesPerMib => plain(""),
        }
    }

    fn shown(self) -> String {
        match self.unit {
            "" => String::new(),
            unit => format!(", {unit}"),
        }
    }
}

/// Returns the title of a row.
pub(super) const fn title(metric: TargetsMetric) -> &'static str {
    match metric {
        TargetsMetric::Accepted => "IO thrpt, received (avg)",
        TargetsMetric::Delivered => "IO thrpt, forwarded (avg)",
        TargetsMetric::CpuSystem => "CPU sys (avg)",
        TargetsMetric::CpuUser => "CPU usr (avg)",
        TargetsMetric::Load => "Load 1m, host (avg)",
        TargetsMetric::MemoryPeak => "Mem used (max)",
        TargetsMetric::DiskRead => "Disk read (sum)",
        TargetsMetric::DiskWritten => "Disk writ (sum)",
        TargetsMetric::NetReceived => "Net recv (sum)",
        TargetsMetric::NetSent => "Net send (sum)",
        TargetsMetric::TcpEstablished => "TCP estab (avg)",
        TargetsMetric::TcpOpened => "TCP opened (sum)",
        TargetsMetric::TcpTimeWait => "TCP time wait (avg)",
        TargetsMetric::CpuPerGib => "CPU per GiB received",
        TargetsMetric::WrittenPerByte => "Bytes written per byte received",
        TargetsMetric::FlushesPerMib => "Disk flushes per MiB received",
        TargetsMetric::LatencyP50 => "Latency p50",
        TargetsMetric::LatencyP99 => "Latency p99",
        TargetsMetric::Loss => "Loss",
        TargetsMetric::Duplicated => "Duplicated",
        TargetsMetric::Drain => "Forwarding after the load (time)",
        TargetsMetric::Recovery => "Restart recovery",
    }
}

/// Everything to say below the table, in order: sentences.
fn below(verdict: &TargetsVerdict) -> Vec<String> {
    let mut sentences = Vec::new();
    let has = |wanted: Place| {
        let mut cells = verdict.rows.iter().flat_map(|row| &row.cells);
        cells.any(|cell| matches!(cell, TargetsCell::Value { place, .. } if *place == wanted))
    };
    if has(Place::Winner) || has(Place::Tied) {
        sentences.push(
            "W: certainly better than all others with the same claim of durability; =: no target is \
             certainly better. Means over runs with their 95 % intervals; compared by blocks, \
             Holm's correction over the pairs of a row."
                .to_owned(),
        );
    }
    sentences.extend(invalid(verdict));
    let mut unranked: Vec<&str> = Vec::new();
    for row in &verdict.rows {
        for reason in row.unranked.iter().map(String::as_str) {
            if !unranked.contains(&reason) {
                unranked.push(reason);
            }
        }
    }
    for reason in unranked {
        sentences.push(format!(
            "no winner by CPU, latency and the time after the load: {reason}"
        ));
    }
    for column in &verdict.columns {
        let unchecked = column.unchecked.iter();
        sentences.extend(unchecked.map(|reason| format!("{}: {reason}", column.name)));
        sentences.extend(of_delivery(column));
    }
    sentences.extend(verdict.remarks.iter().cloned());
    sentences
}

/// `INVALID`, and why: once for each target and reason.
fn invalid(verdict: &TargetsVerdict) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for (at, column) in verdict.columns.iter().enumerate() {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for row in &verdict.rows {
            let Some(TargetsCell::Invalid { reason, .. }) = row.cells.get(at) else {
                continue;
            };
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, rows)) => rows.push(title(row.metric)),
                None => reasons.push((reason, vec![title(row.metric)])),
            }
        }
        for (reason, rows) in reasons.into_iter().take(REASONS_MAX) {
            let which = match rows.as_slice() {
                _ if column.invalid.is_some() => String::new(),
                [only] => format!(" ({only})"),
                [first, .., last] => format!(" ({first} … {last}, {} rows)", rows.len()),
                [] => String::new(),
            };
            sentences.push(format!("INVALID {}{which}: {reason}", column.name));
        }
    }
    sentences
}

fn of_delivery(column: &ColumnFound) -> Option<String> {
    let result = &column.delivery;
    let mut parts: Vec<String> = Vec::new();
    for (count, what) in [
        (result.lost, "lost"),
        (result.duplicated, "duplicated"),
        (result.reordered, "reordered"),
        (result.damaged, "damaged"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    parts.extend(result.unknown.clone());
    if parts.is_empty() || (result.runs == 0 && column.invalid.is_some()) {
        return None;
    }
    Some(format!(
        "{}: of {} events sent in {} {}: {}",
        column.name,
        result.sent,
        result.runs,
        if result.runs == 1 { "run" } else { "runs" },
        parts.join(", ")
    ))
}

/// Returns the delivery of every target in every experiment, if there are several and
/// delivery was checked.
fn matrix(verdicts: &[TargetsVerdict]) -> Option<Table> {
    let followed = verdicts.iter().any(|verdict| {
        let mut columns = verdict.columns.iter();
        columns.any(|item| item.delivery.runs > 0)
    });
    if verdicts.len() < 2 || !followed {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for column in verdicts.iter().flat_map(|verdict| &verdict.columns) {
        if !names.contains(&column.name.as_str()) {
            names.push(&column.name);
        }
    }
    let rows = verdicts.iter().map(|verdict| {
        let cells = names.iter().map(|name| {
            let mut columns = verdict.columns.iter();
            let column = columns.find(|item| item.name == **name);
            Cell::from(column.map_or_else(|| NOTHING.to_owned(), outcome))
        });
        let name = Cell::from(verdict.name.as_str());
        [name].into_iter().chain(cells).collect()
    });
    let heads = [""].into_iter().chain(names.iter().copied());
    Some(Table::new(heads.map(Column::named), rows))
}

fn outcome(column: &ColumnFound) -> String {
    let seen = seen(&column.delivery);
    match kept(column) {
        NOTHING => seen,
        kept => format!("{kept}: {seen}"),
    }
}
