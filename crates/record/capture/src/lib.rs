//! The record of one run: the only bridge between the half that runs and the
//! half that reads.
//!
//! A capture is a folder:
//!
//! | file | what |
//! | --- | --- |
//! | `manifest.json` | [`Manifest`]: plan, host, phases, outcome |
//! | `series.parquet` | one row per metric, labels and beat ([`schema`]) |
//! | `series.jsonl` | the same, line by line, while the run goes on; gone once the Parquet file is whole |
//! | `events.jsonl` | [`EventRecord`]s: what happened, and when |
//! | `profiles/` | profiles of the target ([`RunProfiles`]) |
//! | `target.stdout.log`, `target.stderr.log` | what the target said |
//!
//! [`CaptureWriter`] writes one and [`Capture::open`] reads one, also one whose
//! writer was killed. Nothing that a report shows lives anywhere else. This
//! crate is synchronous and does not know how samples are made.
//!
//! [`LoadCapture`] is the record of one load, without a target.
//!
//! A [`SampleFormat`] of another crate writes the same run once more in another format.

mod journal;
mod ledger;
mod load;
mod manifest;
mod parquet;
mod private;
mod profiles;
mod read;
mod results;
pub mod rows;
mod run_merge;
mod samples;
pub mod schema;
mod series;
mod write;

pub use ledger::{
    CountBounds, DividedLedger, LedgerEvent, LedgerFigures, LedgerRange, LedgerRecord,
};
pub use load::{
    FleetRecord, GeneratorClock, GeneratorRecord, GeneratorResult, HostCpu, LOAD_SCHEMA,
    LoadCapture, LoadEnd, LoadManifest, LoadMerge, LoadSecond, LoadWorker, LoadWorkerView,
    MergeError, PageFound, RouteCounts, SinkFound, SpansFound, TelemetryResult,
};
pub use manifest::{
    BusyProgram, EventRecord, MANIFEST_SCHEMA, Manifest, Note, PartNote, PhaseMark, Restart,
    RunIdentity, RunOutcome, RunStage, TargetEnd,
};
pub use private::{
    create_private, create_private_log, make_private, replace_private, write_private,
};
pub use profiles::{PROFILES, RunProfiles, StoredProfile};
pub use read::{Capture, OpenError};
pub use results::{ResultRow, ResultRun, write_results};
pub use run_merge::{RunMachines, RunMergeError, RunPart, RunTask, RunTaskResult, merge_runs};
pub use samples::{SampleFormat, SampleWriter};
pub use series::{Point, Series, SeriesTable};
pub use write::{CaptureError, CaptureWriter, SUMMARY};
