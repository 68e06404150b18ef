//! Saved loads as points of a history.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use stillwell_capture::LoadCapture;
use stillwell_experiment::history::SavedHistory;
use stillwell_report::load::BriefLoad;
use stillwell_sides::read_saved_load;
use stillwell_verdict::history::HistoryPoint;

use crate::command::output;
use crate::command::report::report_of_load;

/// Returns true if `path` is a file, or the capture of a load.
pub(super) fn is_load(path: &Path) -> bool {
    path.is_file() || LoadCapture::is_load(path)
}

/// Adds the loads that began in `span`, in milliseconds since 1970, or the reason why one is left
/// out; each load once, however many files and captures have its result.
pub(super) fn read(paths: &[PathBuf], span: &Range<u64>, history: &mut SavedHistory) {
    let mut loads = BTreeMap::<_, Vec<(String, u64, &PathBuf)>>::new();
    for path in paths {
        let (point, seed, requests) = match point(path) {
            Ok(read) if span.contains(&read.0.origin.time_millis) => read,
            Ok(_) => continue,
            Err(reason) => {
                history.skipped.push((path.clone(), reason));
                continue;
            }
        };
        let origin = &point.origin;
        let identity = (
            origin.time_millis,
            point.experiment.clone(),
            origin.workload.clone(),
        );
        let known = loads.entry(identity).or_default();
        // Loads that start in parallel differ in these. The formats of Nighthawk and fortio have no seed.
        let first = known.iter().find(|(known_seed, known_requests, _)| {
            let is_equal = *known_seed == seed && *known_requests == requests;
            is_equal || known_seed.is_empty() != seed.is_empty()
        });
        match first {
            Some((_, _, first)) if *first == path => {}
            Some((_, _, first)) => {
                let reason = format!("it is the same load as {}", output::show_path(first));
                history.skipped.push((path.clone(), reason));
            }
            None => {
                known.push((seed, requests, path));
                history.points.push(point);
            }
        }
    }
}

/// Returns the load as a point, its seed and the number of its requests.
fn point(path: &Path) -> Result<(HistoryPoint, String, u64), String> {
    let load = if path.is_dir() {
        let capture = LoadCapture::open(path);
        let capture = capture.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
        BriefLoad::of(&report_of_load(&capture))
    } else {
        read_saved_load(path).map_err(|error| format!("{:#}", error.root_cause()))?
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let point = load.history_point(&name);
    let point = point.map_err(|error| error.to_string())?;
    Ok((point, load.seed, load.requests))
}
