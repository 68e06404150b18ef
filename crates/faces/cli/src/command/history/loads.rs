//! Saved loads as points of a history.

use std::ops::Range;
use std::path::{Path, PathBuf};

use stillwell_capture::LoadCapture;
use stillwell_experiment::history::SavedHistory;
use stillwell_report::load::BriefLoad;
use stillwell_sides::read_saved_load;
use stillwell_verdict::history::HistoryPoint;

use crate::command::report::report_of_load;

/// Returns true if `path` is a file, or the capture of a load.
pub(super) fn is_load(path: &Path) -> bool {
    path.is_file() || LoadCapture::is_load(path)
}

/// Adds the loads that began in `span`, in milliseconds since 1970, or the reason why one is left
/// out.
pub(super) fn read(paths: &[PathBuf], span: &Range<u64>, history: &mut SavedHistory) {
    for path in paths {
        match point(path) {
            Ok(point) if span.contains(&point.origin.time_millis) => history.points.push(point),
            Ok(_) => {}
            Err(reason) => history.skipped.push((path.clone(), reason)),
        }
    }
}

fn point(path: &Path) -> Result<HistoryPoint, String> {
    let load = if path.is_dir() {
        let capture = LoadCapture::open(path);
        let capture = capture.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
        BriefLoad::of(&report_of_load(&capture))
    } else {
        read_saved_load(path).map_err(|error| format!("{:#}", error.root_cause()))?
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    load.history_point(&name).map_err(|error| error.to_string())
}
