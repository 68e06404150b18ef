//! Captures written, cut and read back.

use std::fs;
use std::path::Path;

use stillwell_metric::{
    Kind, Labels, SeriesName, catalogue as metric, empty_histogram, encode_histogram,
};
use stillwell_units::Moment;
use tempfile::TempDir;

use super::*;
use crate::capture::{
    LadingRow, SeriesWanted, list_metrics, read_lading, survey_metric, validate, visit_lading,
};

const START: u64 = 1_700_000_000_000;
const SECONDS: u64 = 30;

fn output(path: &Path, layout: LadingLayout) -> LadingOutput {
    LadingOutput {
        path: path.to_path_buf(),
        layout,
        labels: Labels::none()
            .with("experiment", "tcp")
            .with("variant", "baseline"),
        expiration: None,
        flush: Nanos::from_secs(10),
        compression_level: 3,
    }
}

fn samples(second: u64) -> Vec<Sample> {
    let labels = Labels::none()
        .with("component", "generator")
        .with("component_name", "tcp")
        .with("id", "in");
    let mut histogram = empty_histogram();
    histogram.record_n(1000 + second, 5).unwrap();
    let histogram = Value::Histogram(encode_histogram(&histogram));
    vec![
        Sample::int(metric::BYTES_WRITTEN, &labels, 100 * second),
        Sample::int(metric::TARGET_RSS, &Labels::none(), 4096 + second),
        Sample::new(metric::LATENESS, &labels, histogram),
    ]
}

/// Thirty seconds, ten of them warm-up.
fn fill(writer: &mut LadingWriter) {
    for second in 0..SECONDS {
        let beat = Beat {
            index: second,
            moment: Moment::new(1 + second * 1_000_000_000),
            wall_millis: START + 1000 * second,
        };
        let phase = if second < 10 {
            Phase::Warmup
        } else {
            Phase::Measure
        };
        writer.beat(&beat, phase, &samples(second)).unwrap();
    }
}

fn rows(path: &Path) -> (Vec<LadingRow>, Option<String>) {
    let mut rows = Vec::new();
    let cut = visit_lading(path, &mut |row| rows.push(row)).unwrap();
    (rows, cut)
}

fn assert_whole(path: &Path, ticks: usize) {
    let result = validate(path, None).unwrap();
    assert!(result.is_valid(), "{result:?}");
    assert_eq!(result.ticks, ticks);
    let wanted = SeriesWanted::new().with("bytes_written", None);
    let capture = read_lading(path, &wanted).unwrap();
    let run = &capture.runs[0];
    assert_eq!(run.experiment.as_deref(), Some("tcp"));
    assert_eq!(run.measured.unwrap().0, START + 10_000);
    let rate = run
        .series("bytes_written", None)
        .unwrap()
        .rate(START + 10_000);
    assert!((rate.unwrap() - 100.0).abs() < 1e-9);
    let measured = run.clone().only_measured();
    let ticks_of =
        |run: &crate::capture::CaptureRun| run.series("bytes_written", None).unwrap().ticks.len();
    assert_eq!(ticks_of(run) - ticks_of(&measured), 10);
    let listed = list_metrics(path).unwrap().metrics;
    assert_eq!(listed.get("lateness"), Some(&Kind::Histogram));
    let survey = survey_metric(path, "total_rss_bytes", true).unwrap();
    let ((_, labels), series) = survey.series.first_key_value().unwrap();
    assert_eq!(labels.value("focus"), Some("target"));
    assert!(series.is_monotonic);
    assert_eq!(series.values[7], (7, Value::Float(4103.0)));
}

#[test]
fn both_formats_have_the_same_rows() {
    let folder = TempDir::new().unwrap();
    let output = output(&folder.path().join("cap"), LadingLayout::Multi);
    let mut writer = LadingWriter::create(&output, RunId::from_bytes([7; 16])).unwrap();
    fill(&mut writer);
    Box::new(writer).close().unwrap();
    let [lines, table] = output.files().try_into().unwrap();
    assert_eq!(lines, folder.path().join("cap.jsonl"));
    assert_eq!(table, folder.path().join("cap.parquet"));
    assert_whole(&lines, 30);
    assert_whole(&table, 30);
    assert_eq!(rows(&lines), rows(&table));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_line_has_ladings_fields_in_its_order() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cap.jsonl");
    let output = output(&path, LadingLayout::Jsonl);
    let mut writer = LadingWriter::create(&output, RunId::from_bytes([7; 16])).unwrap();
    fill(&mut writer);
    Box::new(writer).close().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "{\"run_id\":\"07070707-0707-0707-0707-070707070707\",\"time\":1700000000000,\
         \"fetch_index\":0,\"metric_name\":\"bytes_written\",\"metric_kind\":\"counter\",\
         \"value\":0,\"component\":\"generator\",\"component_name\":\"tcp\",\
         \"experiment\":\"tcp\",\"id\":\"in\",\"variant\":\"baseline\"}"
    );
    let of = |name: &str| {
        let name = format!("\"metric_name\":\"{name}\"");
        text.lines().find(|line| line.contains(&name)).unwrap()
    };
    assert!(of("total_rss_bytes").contains("\"value\":4096.0,"));
    let sketch = of("lateness");
    assert!(sketch.contains("\"metric_kind\":\"histogram\",\"value\":0.0,"));
    assert!(sketch.contains("\"value_histogram\":\"EAU"), "{sketch}");
    assert!(of("phase").contains("\"phase\":\"warmup\""));
}

#[test]
fn counters_of_the_target_are_whole_numbers_in_both_formats() {
    let folder = TempDir::new().unwrap();
    let output = output(&folder.path().join("cap"), LadingLayout::Multi);
    let mut writer = LadingWriter::create(&output, RunId::from_bytes([7; 16])).unwrap();
    let beat = Beat {
        index: 0,
        moment: Moment::new(1),
        wall_millis: START,
    };
    let sample = Sample {
        name: SeriesName::scraped("seen"),
        kind: Kind::Counter,
        labels: Labels::none(),
        value: Value::Float(1027.0),
    };
    writer.beat(&beat, Phase::Measure, &[sample]).unwrap();
    Box::new(writer).close().unwrap();
    for path in output.files() {
        let survey = survey_metric(&path, "target/seen", true).unwrap();
        let (_, series) = survey.series.first_key_value().unwrap();
        let expected = [(0, Value::Int(1027))];
        assert_eq!(series.values, expected, "{}", path.display());
    }
}

#[test]
fn what_was_written_before_a_kill_is_read() {
    for (name, layout) in [
        ("cap.jsonl", LadingLayout::Jsonl),
        ("cap.jsonl.zst", LadingLayout::Jsonl),
        ("cap.parquet", LadingLayout::Parquet),
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        let output = output(&path, layout);
        let mut writer = LadingWriter::create(&output, RunId::from_bytes([7; 16])).unwrap();
        fill(&mut writer);
        // A process that is killed closes nothing; what it wrote is there.
        std::mem::forget(writer);
        let ticks = usize::try_from(SECONDS).unwrap() - 1;
        assert_whole(&path, ticks);
        let (_, cut) = rows(&path);
        assert_eq!(cut.is_some(), name != "cap.jsonl", "{name}");
        if layout == LadingLayout::Parquet {
            // Without its journal the table is read up to its last flush.
            fs::remove_file(journal_of(&path)).unwrap();
            assert_whole(&path, 21);
        }
    }
}

/// Writes the capture of `run` at `path`; the writer is killed before the end if `is_killed`.
fn capture(path: &Path, layout: LadingLayout, run: u8, is_killed: bool) {
    let output = output(path, layout);
    let mut writer = LadingWriter::create(&output, RunId::from_bytes([run; 16])).unwrap();
    fill(&mut writer);
    if is_killed {
        std::mem::forget(writer);
    } else {
        Box::new(writer).close().unwrap();
    }
}

#[test]
fn a_journal_is_read_in_place_of_a_table_of_the_same_run_only() {
    use LadingLayout::{Jsonl, Parquet};
    const JOURNAL_RUN: u8 = 7;
    // Replacement of what the killed run left at its path, and the run that is read.
    for (replacement, expected) in [
        (None, JOURNAL_RUN),
        (Some((Parquet, JOURNAL_RUN, false)), JOURNAL_RUN),
        (Some((Parquet, 8, false)), 8),
        (Some((Jsonl, 8, false)), 8),
        (Some((Jsonl, 8, true)), 8),
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("cap");
        capture(&path, Parquet, JOURNAL_RUN, true);
        if let Some((layout, run, is_killed)) = replacement {
            let newer = folder.path().join("newer");
            capture(&newer, layout, run, is_killed);
            fs::rename(&newer, &path).unwrap();
        }
        let (rows, cut) = rows(&path);
        let expected_run = super::hyphenated(&RunId::from_bytes([expected; 16]).to_string());
        assert_eq!(rows[0].run_id, expected_run, "{replacement:?}");
        let is_journal = cut.is_some_and(|cut| cut.contains("journal"));
        assert_eq!(is_journal, expected == JOURNAL_RUN, "{replacement:?}");
    }
    // A table without rows, or without an end, does not replace the lines of a journal.
    for table in [b"PAR1".as_slice(), b""] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("cap");
        capture(&path, Parquet, JOURNAL_RUN, true);
        fs::write(&path, table).unwrap();
        assert_whole(&path, usize::try_from(SECONDS).unwrap() - 1);
    }
}

#[test]
fn a_table_that_was_flushed_often_is_as_one_that_was_not() {
    let folder = TempDir::new().unwrap();
    let mut result = Vec::new();
    for flush in [1, 7, 1000] {
        let path = folder.path().join(format!("{flush}.parquet"));
        let mut output = output(&path, LadingLayout::Parquet);
        output.flush = Nanos::from_secs(flush);
        let mut writer = LadingWriter::create(&output, RunId::from_bytes([7; 16])).unwrap();
        fill(&mut writer);
        Box::new(writer).close().unwrap();
        assert_whole(&path, 30);
        result.push(rows(&path));
    }
    assert!(result.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn broken_rules_are_found_and_the_first_is_named() {
    let line = |tick: u64, time: u64, metric: &str| {
        format!(
            "{{\"run_id\":\"r\",\"time\":{time},\"fetch_index\":{tick},\"metric_name\":\"{metric}\",\
             \"metric_kind\":\"gauge\",\"value\":1.0}}\n"
        )
    };
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cap.jsonl");
    let check = |text: String, seconds| {
        fs::write(&path, text).unwrap();
        validate(&path, seconds).unwrap()
    };
    let fine = line(0, 1000, "a") + &line(0, 1000, "b") + &line(1, 2000, "a");
    let result = check(fine.clone(), Some(2));
    assert!(result.is_valid());
    assert_eq!((result.rows, result.series, result.ticks), (3, 2, 2));
    assert_eq!(check(fine.clone(), Some(3)).times_wanted, Some(3));
    let result = check(fine.clone() + &line(1, 2001, "b"), None);
    assert_eq!(
        (result.mapping_violations, result.series_violations),
        (1, 0)
    );
    assert_eq!(result.first.unwrap().row, 4);
    for second in [(1, 2000), (0, 1000)] {
        let result = check(fine.clone() + &line(second.0, second.1, "a"), None);
        assert_eq!(
            (result.mapping_violations, result.series_violations),
            (0, 1)
        );
        assert!(result.first.unwrap().problem.contains("`a` goes from"));
    }
}
