//! Options, and captures of lading, for tests.

use std::fs;
use std::ops::Range;
use std::path::Path;

use stillwell_lading::series::PHASE_MARKER;
use stillwell_metric::Kind;
use stillwell_plan::Phase;
use stillwell_verdict::across::CompareOptions;

use crate::SideOptions;

/// A metric, and its growth in each second as a counter or its value as a gauge.
pub(crate) type Recorded = (&'static str, Kind, f64);

/// Options that compare these metrics.
pub(crate) fn options(metrics: &[&str]) -> SideOptions {
    let metrics = metrics.iter().map(|metric| (*metric).to_owned());
    SideOptions {
        compare: CompareOptions {
            metrics: metrics.collect(),
            ..CompareOptions::default()
        },
        only: Vec::new(),
        method: None,
        warmup: None,
        cpus: 1,
        target_name: None,
        run_id: None,
        rows_are_runs: false,
    }
}

/// Writes a capture of 100 s with these series to `folder`, and returns its path. Phases are marked if the measured
/// seconds are given.
pub(crate) fn capture(
    folder: &Path,
    name: &str,
    series: &[Recorded],
    measured: Option<&Range<u32>>,
) -> String {
    let mut text = String::new();
    for second in 0..100_u32 {
        for &(metric, kind, value) in series {
            let value = match kind {
                Kind::Counter => value * f64::from(second),
                Kind::Gauge | Kind::Histogram => value,
            };
            text.push_str(&line(second, (metric, kind, value), ""));
        }
        if let Some(measured) = measured {
            let phase = match measured.contains(&second) {
                true => Phase::Measure,
                false => Phase::Warmup,
            };
            let label = format!(",\"phase\":\"{}\"", phase.name());
            let mark = (PHASE_MARKER, Kind::Gauge, 1.0);
            text.push_str(&line(second, mark, &label));
        }
    }
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn line(second: u32, (metric, kind, value): (&str, Kind, f64), labels: &str) -> String {
    let time = 1_700_000_000_000 + 1000 * u64::from(second);
    let kind = kind.name();
    format!(
        "{{\"run_id\":\"r\",\"time\":{time},\"fetch_index\":{second},\"metric_name\":\"{metric}\",\
         \"metric_kind\":\"{kind}\",\"value\":{value}{labels}}}\n"
    )
}
