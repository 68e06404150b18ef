use std::io;
use std::path::Path;

use stillwell_metric::Labels;
use stillwell_plan::RunPlan;
use stillwell_plan::target::Places;
use stillwell_units::{RunId, Secrets, Seed};

use super::*;
use crate::describe::CallDescriber;
use crate::export::Exports;

/// A run without load and without a target, whose capture is in `folder`.
pub(crate) fn request(folder: &Path) -> RunRequest {
    RunRequest {
        plan: RunPlan::idle(Seed::from_number(1)),
        places: Places {
            stillwell: "stillwell".into(),
            state: folder.to_owned(),
            files: None,
            experiment: folder.to_owned(),
        },
        folder: folder.to_owned(),
        identity: None,
        command: Vec::new(),
        secrets: Secrets::Masked,
        run: RunId::from_bytes([7; 16]),
        exports: Exports::default(),
        fleet: None,
        describer: CallDescriber::default(),
    }
}

#[test]
fn a_write_that_fails_after_the_last_look_is_the_outcome_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let failed = || {
        Err(CaptureError {
            path: "events.jsonl".into(),
            source: io::Error::other("no space"),
        })
    };
    let mut record = Record::begin(&request(folder.path())).unwrap();
    record.keep(failed());
    let manifest = record.close(RunOutcome::Completed);
    let expected = RunOutcome::StorageFailed {
        reason: "write events.jsonl: no space".to_owned(),
    };
    assert_eq!(manifest.outcome, expected);
    let written = Manifest::open(folder.path()).unwrap();
    assert_eq!(written.outcome, expected);
    // The first failure of a run is its outcome.
    let mut record = Record::begin(&request(folder.path())).unwrap();
    record.keep(failed());
    let interrupted = RunOutcome::Interrupted { signal: 2 };
    assert_eq!(record.close(interrupted.clone()).outcome, interrupted);
}

#[test]
fn the_memory_of_a_target_is_its_largest_sample_or_mark() {
    let sample = |metric, bytes| Sample::int(metric, &Labels::none(), bytes);
    let beat = [
        sample(catalogue::TARGET_CPU, 900),
        sample(catalogue::TARGET_RSS, 40),
        sample(catalogue::TARGET_RSS_PEAK, 70),
    ];
    assert_eq!(resident_bytes(&beat), 70);
    assert_eq!(resident_bytes(&beat[..2]), 40);
    assert_eq!(resident_bytes(&beat[..1]), 0);
}
