//! A summary as a document.

use super::{BriefLoad, BriefRoute, BriefTimes};
use crate::document::{Block, Cell, Column, Document, Sign, Table, Text};
use crate::{FullReport, words};

impl From<&BriefLoad> for FullReport {
    fn from(brief: &BriefLoad) -> Self {
        Self {
            document: document(brief),
            data: brief.to_json(),
            page_data: None,
        }
    }
}

fn document(brief: &BriefLoad) -> Document {
    let rate = format!(
        "{}: {}/s for {}",
        brief.targets.join(", "),
        words::significant(brief.requests_per_second),
        words::time(brief.duration * 1e9)
    );
    let headline = match brief.reliable {
        true => Text::from(rate),
        false => Text::answer(Sign::Invalid, "unreliable").and(format!(": {rate}")),
    };
    let warnings = brief.warnings.iter().map(|warning| warning.text.clone());
    let blocks = [
        Block::group([Block::KeyValue(rows(brief))]),
        Block::group(routes(&brief.routes)),
        Block::group([Block::list(warnings)]),
        colophon(brief),
    ];
    Document::new([Block::section(1, headline, blocks)])
}

/// Returns the command and the version; of a result of another tool, its name.
fn colophon(brief: &BriefLoad) -> Block {
    Block::Colophon(match brief.version.as_str() {
        "" => Text::from(brief.command.clone()),
        version => Text::code(&brief.command).and(format!(", Stillwell {version}")),
    })
}

fn rows(brief: &BriefLoad) -> Vec<(Text, Text)> {
    let mut rows: Vec<(Text, Text)> = vec![
        ("requests".into(), brief.requests.to_string().into()),
        ("errors".into(), words::percent(brief.error_share).into()),
    ];
    if brief.requests_not_sent > 0 {
        let text = format!("{} requests that were due", brief.requests_not_sent);
        rows.push(("not sent".into(), text.into()));
    }
    let codes = brief.status_codes.iter();
    let codes = codes.map(|(status, count)| format!("{status}: {count}"));
    let codes: Vec<String> = codes.collect();
    if !codes.is_empty() {
        rows.push(("status codes".into(), codes.join(", ").into()));
    }
    for (head, times) in [
        ("latency", &brief.latency),
        ("service time", &brief.service_time),
        ("first byte", &brief.first_byte),
        ("connect", &brief.connect),
        ("TLS handshake", &brief.tls_handshake),
    ] {
        rows.extend(
            times
                .as_ref()
                .map(|times| (head.into(), distribution(times).into())),
        );
    }
    if !brief.ended_because.is_empty() {
        rows.push(("ended".into(), brief.ended_because.clone().into()));
    }
    rows
}

/// `p50 …, p90 …, p99 …, max …`.
fn distribution(times: &BriefTimes) -> String {
    let time = |seconds: f64| words::time(seconds * 1e9);
    format!(
        "p50 {}, p90 {}, p99 {}, max {}",
        time(times.p50),
        time(times.p90),
        time(times.p99),
        time(times.max)
    )
}

fn routes(routes: &[BriefRoute]) -> Option<Block> {
    let head = ["route", "requests", "errors", "p50", "p99"];
    let rows = routes.iter().map(|route| {
        let at = |quantile: fn(&BriefTimes) -> f64| -> Cell {
            let time = route.latency.as_ref().map(quantile);
            time.map_or_else(
                || words::MISSING.into(),
                |seconds| Cell::number(words::time(seconds * 1e9), seconds * 1e9, "ns"),
            )
        };
        vec![
            route.name.as_str().into(),
            route.requests.to_string().into(),
            words::percent(route.error_share).into(),
            at(|times| times.p50),
            at(|times| times.p99),
        ]
    });
    let table = Table::new(head.map(Column::of_numbers), rows);
    (!routes.is_empty()).then_some(Block::Table(table))
}
