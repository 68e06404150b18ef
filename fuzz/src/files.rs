//! Input that is read from files: the bytes are written to one, over and over.

use std::path::Path;
use std::sync::OnceLock;

use stillwell_capture::{Capture, MANIFEST_SCHEMA, Manifest, RunOutcome};
use stillwell_config::files::Disk;
use stillwell_config::{Loaded, Loader, RunOverrides, SuiteOverrides};
use stillwell_lading::capture::{SeriesWanted, read_lading};
use stillwell_units::RunId;

/// Reads native files, and those of lading and SMP.
const LOADER: Loader<'static> = Loader::new(&Disk, stillwell_lading::FORMATS);

/// The smallest run that there is.
const NO_LOAD: &str = "blackhole: []\ngenerator: []\n";

/// A configuration is a plan or says what is wrong, and its schema never fails.
pub fn config(bytes: &[u8]) {
    let path = folder().join("lading.yaml");
    write(&path, bytes);
    drop(LOADER.run_plan(&path, &RunOverrides::default()));
    let path = folder().join("experiment.yaml");
    write(&path, bytes);
    if let Err(errors) = LOADER.suite(std::slice::from_ref(&path), &SuiteOverrides::default()) {
        assert!(errors.has_errors(), "refused without a reason");
        // Every mistake can be shown, wherever it lies.
        assert!(!errors.to_string().is_empty());
    }
}

/// A run that was cut off is read up to where it makes sense.
pub fn capture(bytes: &[u8]) {
    let folder = folder();
    let manifest = folder.join("manifest.json");
    if !manifest.exists() {
        let text = serde_json::to_vec(&some_manifest());
        write(&manifest, &text.expect("a manifest can be written"));
        write(&folder.join("events.jsonl"), b"");
        write(&folder.join("series.jsonl"), b"");
        Capture::open(folder).expect("an empty run can be read");
    }
    write(&folder.join("series.jsonl"), bytes);
    let Ok(capture) = Capture::open(folder) else {
        return;
    };
    let lines = bytes.split(|byte| *byte == b'\n').count();
    let points: usize = capture
        .series
        .iter()
        .map(|(_, _, series)| series.points.len())
        .sum();
    assert!(points <= lines);
}

/// A capture of another tool is read or refused.
pub fn lading_capture(bytes: &[u8]) {
    let path = folder().join("captures");
    write(&path, bytes);
    let wanted = SeriesWanted::new()
        .with("bytes_written", None)
        .with("total_bytes_received", Some("a"));
    drop(read_lading(&path, &wanted));
}

fn some_manifest() -> Manifest {
    let path = folder().join("lading.yaml");
    write(&path, NO_LOAD.as_bytes());
    let Loaded { plan, .. } = LOADER
        .run_plan(&path, &RunOverrides::default())
        .expect("a run without load is one");
    Manifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        run: RunId::from_bytes([9; 16]),
        version: "0.1.0".to_owned(),
        command: Vec::new(),
        identity: None,
        plan,
        host: serde_json::Value::Null,
        host_after: serde_json::Value::Null,
        busiest: Vec::new(),
        target_cpus: None,
        load_cpus: None,
        notes: Vec::new(),
        restarts: Vec::new(),
        warnings: Vec::new(),
        started_wall_millis: 5,
        phases: Vec::new(),
        target: None,
        parts: Vec::new(),
        outcome: RunOutcome::Unfinished,
        ledger: None,
        last_received: None,
        machines: None,
    }
}

/// The folder of this process. No code runs when a fuzzer ends: the script that starts it
/// removes the files below `TMPDIR`.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| tempfile::tempdir().expect("a folder can be made"))
        .path()
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("the file can be written");
}
