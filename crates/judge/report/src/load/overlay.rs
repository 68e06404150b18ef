//! Several loads in one report: their figures side by side, and their lines in the same charts.

use serde_json::json;

use super::human::charts::{LoadCourse, latency_chart, rate_chart};
use super::{BriefLoad, BriefTimes, LoadReport, id};
use crate::document::{Block, Cell, Column, Document, Severity, Table, Text};
use crate::percentiles::percentile_chart;
use crate::{FullReport, words};

/// Schema of the data of an overlay.
pub const LOAD_OVERLAY_SCHEMA: &str = "stillwell/load-overlay/v1";

/// Names of the quantiles in the table.
const QUANTILES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

/// Returns the quantiles of the table in seconds.
const fn quantiles(times: &BriefTimes) -> [f64; 5] {
    [times.p50, times.p90, times.p99, times.p999, times.max]
}

/// Loads with their names.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOverlay {
    /// The loads; the first is the baseline of changes.
    pub loads: Vec<(String, LoadReport)>,
    /// The command that gives this again.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
}

impl From<&LoadOverlay> for FullReport {
    fn from(overlay: &LoadOverlay) -> Self {
        let loads = overlay.loads.iter();
        let briefs: Vec<BriefLoad> = loads.map(|(_, report)| BriefLoad::of(report)).collect();
        let named = overlay.loads.iter().zip(&briefs);
        let named = named.map(|((name, _), brief)| json!({ "name": name, "load": brief }));
        let data = json!({
            "schema": LOAD_OVERLAY_SCHEMA,
            "command": overlay.command,
            "version": overlay.version,
            "loads": named.collect::<Vec<_>>(),
        });
        Self {
            document: document(overlay, &briefs),
            data: format!("{data:#}\n"),
            page_data: None,
        }
    }
}

fn document(overlay: &LoadOverlay, briefs: &[BriefLoad]) -> Document {
    let names = overlay.loads.iter().map(|(name, _)| name.as_str());
    let headline = names.clone().collect::<Vec<_>>().join(" and ");
    let unreliable = names
        .clone()
        .zip(briefs)
        .filter(|(_, brief)| !brief.reliable);
    let warnings = unreliable.flat_map(|(name, brief)| {
        let warnings = brief.warnings.iter().filter(|warning| warning.unreliable);
        warnings.map(move |warning| {
            let text = format!("{name} is unreliable: {}", warning.text);
            Block::Note(Severity::Warning, text.into())
        })
    });
    let note = Text::from(
        "Each load is one run, so the noise between runs is unknown and there is no verdict. ",
    );
    let note = note
        .and(Text::code("stillwell ab"))
        .and(" repeats both sides and gives one.");
    let mut blocks: Vec<Block> = warnings.collect();
    blocks.push(Block::Table(table(overlay, briefs)));
    blocks.push(Block::Note(Severity::Note, note));
    blocks.extend(charts(overlay));
    let origin = format!(", Stillwell {}", overlay.version);
    blocks.push(Block::Colophon(Text::code(&overlay.command).and(origin)));
    Document::new([Block::section(1, format!("loads {headline}"), blocks)])
}

fn charts(overlay: &LoadOverlay) -> Vec<Block> {
    let loads = || overlay.loads.iter();
    let lines = |line: &dyn Fn(&LoadCourse<'_>) -> Vec<(f64, f64)>| {
        let lines = loads().map(|(name, report)| {
            let course = LoadCourse::of(&report.intervals);
            (name.clone(), line(&course))
        });
        lines
            .filter(|(_, points)| points.len() > 1)
            .collect::<Vec<_>>()
    };
    let times = loads().filter_map(|(name, report)| {
        let statistic = report.global.statistic(id::RESPONSE_TIME);
        let statistic = statistic.or_else(|| report.global.statistic(id::SERVICE_TIME))?;
        Some((name.as_str(), statistic.histogram.as_ref()?.unpack()))
    });
    let times: Vec<_> = times.collect();
    let times: Vec<_> = times.iter().map(|(name, times)| (*name, times)).collect();
    let over_time = [
        latency_chart("latency p50", lines(&|course| course.quantiles(0.5))),
        latency_chart("latency p99", lines(&|course| course.quantiles(0.99))),
        rate_chart(lines(&|course| course.rates(|_| true))),
    ];
    percentile_chart(&times)
        .into_iter()
        .chain(over_time)
        .collect()
}

fn table(overlay: &LoadOverlay, briefs: &[BriefLoad]) -> Table {
    let mut heads = vec!["figure".to_owned()];
    heads.extend(overlay.loads.iter().map(|(name, _)| name.clone()));
    let is_pair = briefs.len() == 2;
    if is_pair {
        heads.push("change".to_owned());
    }
    let mut rows = vec![
        row(
            "requests",
            briefs,
            &|brief| Some(brief.requests_per_second),
            |rate| format!("{}/s", words::significant(rate)),
        ),
        row(
            "errors",
            briefs,
            &|brief| Some(brief.error_share),
            words::percent,
        ),
    ];
    for head in ["latency", "service time"] {
        let times = |brief: &BriefLoad| match head {
            "latency" => brief.latency.as_ref().map(quantiles),
            _ => brief.service_time.as_ref().map(quantiles),
        };
        for (index, name) in QUANTILES.into_iter().enumerate() {
            let value = |brief: &BriefLoad| times(brief).map(|times| times[index] * 1e9);
            let name = format!("{head} {name}");
            rows.push(row(&name, briefs, &value, words::time));
        }
    }
    let columns = heads.into_iter().map(Column::named);
    Table::new(columns, rows)
}

/// Returns the cells of one figure; with two loads also the change between them.
fn row(
    name: &str,
    briefs: &[BriefLoad],
    value: &dyn Fn(&BriefLoad) -> Option<f64>,
    show: fn(f64) -> String,
) -> Vec<Cell> {
    let values: Vec<Option<f64>> = briefs.iter().map(value).collect();
    let shown = values.iter().map(|value| match value {
        Some(value) => show(*value).into(),
        None => words::MISSING.into(),
    });
    let mut cells: Vec<Cell> = vec![name.into()];
    cells.extend(shown);
    if let [first, second] = values.as_slice() {
        let change = match (first, second) {
            (Some(first), Some(second)) if *first > 0.0 => {
                stillwell_units::human::signed_percent(second / first - 1.0)
            }
            _ => words::MISSING.to_owned(),
        };
        cells.push(change.into());
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture;
    use crate::{Format, Style};

    #[test]
    fn loads_are_shown_side_by_side_without_a_verdict() {
        let mut slower = fixture::report();
        slower.health.sent_per_second *= 0.5;
        let overlay = LoadOverlay {
            loads: vec![
                ("a".to_owned(), fixture::report()),
                ("b".to_owned(), slower),
            ],
            command: "stillwell compare a b".to_owned(),
            version: "0.1.0".to_owned(),
        };
        let report = FullReport::from(&overlay);
        let text = report.render(Format::Terminal, Style::default());
        for part in [
            "loads a and b",
            "latency p99",
            "-50.0 %",
            "there is no verdict",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let data: serde_json::Value =
            serde_json::from_str(&report.render(Format::Json, Style::default())).unwrap();
        assert_eq!(data["loads"][1]["name"], "b");
        assert_eq!(data["schema"], LOAD_OVERLAY_SCHEMA);
        assert!(!report.charts().is_empty());
    }
}
