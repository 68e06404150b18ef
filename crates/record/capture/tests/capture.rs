//! Captures written and read again, whole and cut.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stand outside of test functions here"
)]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

use stillwell_capture::{
    Capture, CaptureWriter, EventRecord, MANIFEST_SCHEMA, Manifest, PhaseMark, RunOutcome,
};
use stillwell_metric::{Beat, Kind, Labels, Sample, SeriesName, Value, catalogue};
use stillwell_plan::{Phase, RunPlan};
use stillwell_units::{Moment, RunId, Secrets, Seed};

fn manifest() -> Manifest {
    Manifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        run: RunId::from_bytes([9; 16]),
        version: "0.1.0".to_owned(),
        command: vec!["stillwell".to_owned()],
        identity: None,
        plan: RunPlan::idle(Seed::from_number(1)),
        host: serde_json::json!({"kernel": "6"}),
        host_after: serde_json::Value::Null,
        target_cpus: None,
        load_cpus: Some(vec![0]),
        notes: Vec::new(),
        warnings: Vec::new(),
        started_wall_millis: 5,
        phases: Vec::new(),
        target: None,
        restarts: Vec::new(),
        parts: Vec::new(),
        ledger: None,
        busiest: Vec::new(),
        last_received: None,
        machines: None,
        outcome: RunOutcome::Unfinished,
    }
}

fn samples(index: u64) -> Vec<Sample> {
    let labels = Labels::none().with("id", "in").with("worker", "0");
    vec![
        Sample::int(catalogue::BYTES_WRITTEN, &labels, index * 1000),
        Sample::int(catalogue::TOTAL_BYTES_RECEIVED, &Labels::none(), index),
        Sample {
            name: SeriesName::scraped("queue"),
            kind: Kind::Gauge,
            labels: Labels::none().with("é", "\"\n"),
            value: Value::Float(0.5),
        },
        Sample::new(
            catalogue::LATENESS,
            &labels,
            Value::Histogram(vec![0, 255, 7]),
        ),
    ]
}

fn beat(index: u64) -> Beat {
    Beat {
        index,
        moment: Moment::new(index * 1_000_000_000),
        wall_millis: 1_700_000_000_000 + index,
    }
}

fn write_beats(folder: &Path, beats: u64) -> CaptureWriter {
    let mut writer = CaptureWriter::create(folder, &manifest(), Secrets::Masked).unwrap();
    for index in 0..beats {
        writer
            .beat(&beat(index), Phase::Measure, &samples(index))
            .unwrap();
    }
    writer
        .event(&EventRecord {
            moment: Moment::new(3),
            wall_millis: 4,
            phase: Phase::Measure,
            what: "target got SIGHUP".to_owned(),
            is_step: true,
        })
        .unwrap();
    writer
}

/// Checks the content that a reader must see after `beats` beats.
fn check(capture: &Capture, beats: u64) {
    let series: Vec<_> = capture.series.iter().collect();
    assert_eq!(series.len(), 4);
    for (name, labels, series) in series {
        assert_eq!(series.points.len() as u64, beats, "{name:?}");
        for (index, point) in (0..).zip(&series.points) {
            let sample = samples(index)
                .into_iter()
                .find(|sample| sample.name == *name && sample.labels == *labels)
                .unwrap();
            assert_eq!(point.value, sample.value);
            assert_eq!(series.kind, sample.kind);
            assert_eq!(point.moment, beat(index).moment);
            assert_eq!(point.phase, Phase::Measure);
        }
    }
    assert_eq!(capture.events.len(), 1);
}

#[test]
fn a_closed_capture_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let writer = write_beats(folder.path(), 5);
    let last = Manifest {
        outcome: RunOutcome::Completed,
        phases: vec![
            PhaseMark {
                phase: Phase::Measure,
                moment: Moment::new(1),
                wall_millis: 1,
            },
            PhaseMark {
                phase: Phase::Drain,
                moment: Moment::new(9),
                wall_millis: 2,
            },
        ],
        ..manifest()
    };
    writer.close(&last).unwrap();
    assert!(!folder.path().join("series.jsonl").exists());
    let capture = Capture::open(folder.path()).unwrap();
    assert_eq!(capture.manifest, last);
    assert_eq!(last.measured(), Some((Moment::new(1), Moment::new(9))));
    check(&capture, 5);
}

#[test]
fn a_capture_whose_writer_was_killed_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    drop(write_beats(folder.path(), 3));
    let journal = folder.path().join("series.jsonl");
    let mut text = fs::read_to_string(&journal).unwrap();
    text.push_str("{\"run_id\":\"0a\",\"ti");
    fs::write(&journal, text).unwrap();
    let capture = Capture::open(folder.path()).unwrap();
    assert_eq!(capture.manifest.outcome, RunOutcome::Unfinished);
    check(&capture, 3);
}

#[test]
fn a_new_capture_has_no_results_of_an_earlier_run_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let profiles = folder.path().join("profiles");
    let summary = folder.path().join("summary.json");
    fs::create_dir(&profiles).unwrap();
    let (profile, notes) = (profiles.join("heap-0.0000.pb.gz"), profiles.join("notes"));
    for path in [&profile, &notes, &summary] {
        fs::write(path, "old").unwrap();
    }
    drop(write_beats(folder.path(), 3));
    let is_left = [&profile, &summary, &notes].map(|path| path.exists());
    assert_eq!(is_left, [false, false, true]);
    check(&Capture::open(folder.path()).unwrap(), 3);
}

#[test]
fn a_manifest_is_replaced_only_if_it_is_that_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(Manifest::can_replace(&folder.join("none")));
    assert!(Manifest::can_replace(folder));
    drop(write_beats(folder, 1));
    assert!(Manifest::can_replace(folder));
    let path = folder.join("manifest.json");
    for (text, can_replace) in [
        (r#"{"schema": "stillwell/run/v1"}"#, true),
        (r#"{"schema": "stillwell/load-capture/v1"}"#, false),
        (r#"{"schema": "of another program"}"#, false),
        (r#"{"name": "of another program"}"#, false),
        ("[]", false),
        ("not JSON", false),
        ("", false),
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(Manifest::can_replace(folder), can_replace, "{text}");
    }
    // A link is not a regular file, even one to the manifest of a run.
    fs::write(folder.join("linked"), r#"{"schema": "stillwell/run/v2"}"#).unwrap();
    fs::remove_file(&path).unwrap();
    symlink("linked", &path).unwrap();
    assert!(!Manifest::can_replace(folder));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(!Manifest::can_replace(folder));
}

#[test]
fn a_folder_takes_one_capture_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let writer = write_beats(folder, 3);
    let refused = CaptureWriter::create(folder, &manifest(), Secrets::Masked).unwrap_err();
    assert_eq!(refused.path, folder);
    assert_eq!(refused.source.kind(), ErrorKind::ResourceBusy);
    writer.close(&manifest()).unwrap();
    check(&Capture::open(folder).unwrap(), 3);
    // A writer that was closed or dropped has no lock.
    drop(write_beats(folder, 1));
    drop(write_beats(folder, 2));
    check(&Capture::open(folder).unwrap(), 2);
}

#[test]
fn a_last_line_that_was_cut_within_a_character_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    drop(write_beats(folder.path(), 3));
    for name in ["series.jsonl", "events.jsonl"] {
        let path = folder.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend(b"{\"what\":\"\xc3");
        fs::write(&path, bytes).unwrap();
    }
    check(&Capture::open(folder.path()).unwrap(), 3);
}

#[test]
fn more_rows_than_one_group_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = CaptureWriter::create(folder.path(), &manifest(), Secrets::Masked).unwrap();
    let many: Vec<Sample> = (0..40_000_u64)
        .map(|id| {
            let labels = Labels::none().with("id", id.to_string());
            Sample::int(catalogue::BYTES_WRITTEN, &labels, id)
        })
        .collect();
    for index in 0..2 {
        writer.beat(&beat(index), Phase::Warmup, &many).unwrap();
    }
    writer.close(&manifest()).unwrap();
    let capture = Capture::open(folder.path()).unwrap();
    assert_eq!(capture.series.of(catalogue::BYTES_WRITTEN).count(), 40_000);
    assert!(
        capture
            .series
            .iter()
            .all(|(.., series)| series.points.len() == 2)
    );
}

#[test]
fn what_cannot_be_written_or_read_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = CaptureWriter::create(&file.join("run"), &manifest(), Secrets::Masked).unwrap_err();
    assert!(error.to_string().ends_with("file/run"), "{error}");
    let error = Capture::open(folder.path()).unwrap_err();
    assert!(error.to_string().ends_with("manifest.json"), "{error}");
}
