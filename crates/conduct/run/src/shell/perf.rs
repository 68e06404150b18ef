//! The CPU profile of a run by `perf`: sampled while the target runs, stored as a pprof file.

use std::fs::{self, File};
use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use stillwell_capture::{PROFILES, PhaseMark, create_private, make_private, write_private};
use stillwell_plan::Phase;
use stillwell_plan::observer::InspectorPlan;
use stillwell_profile::read_perf_script;
use stillwell_scope::explain;
use stillwell_target::{perf_inspector, perf_script};
use stillwell_units::Moment;
use stillwell_units::human::percent;

use crate::shell::Shell;

/// Name of the samples' file.
const DATA: &str = "perf.data";

/// Name of the text of the samples.
const TEXT: &str = "perf.txt";

/// Name of the profile: its page is `cpu-perf`.
const PROFILE: &str = "cpu-perf-0.0000.pb.gz";

/// Maximum size of the text of the samples.
const TEXT_BYTES_MAX: u64 = 512 << 20;

/// Share of lost samples above which a profile is reported as incomplete.
const LOST_SHARE_MAX: f64 = 0.01;

/// Number of times that `perf` is started: it fails if one of the processes has ended by then.
const STARTS_MAX: u8 = 3;

/// Samples of `perf` that are to become a profile.
#[derive(Debug)]
pub(super) struct PerfSamples {
    folder: PathBuf,
    frequency: NonZeroU32,
    /// The measured time until `perf` ended.
    measured: Option<(Moment, Moment)>,
    /// Wall clock at the start of the measured time, in nanoseconds since 1970.
    started_ns: i64,
}

impl Shell {
    /// Returns the inspector that samples the target; `None` if no profile by `perf` is requested or there is no
    /// target.
    pub(super) fn perf_inspector(&mut self) -> Option<InspectorPlan> {
        let plan = self.request.plan.observer.perf?;
        let folder = self.request.folder.join(PROFILES);
        // A folder that cannot be made is the inspector's error, which it reports.
        make_private(&folder).unwrap_or_default();
        let first = self.target.pid()?;
        self.perf_starts += 1;
        let processes = sampled(self.perf_starts, first, self.target.processes());
        Some(perf_inspector(&plan, &processes, &folder.join(DATA)))
    }

    /// Returns true if `perf`, which has failed, is to be started again.
    pub(super) fn is_perf_repeated(&self) -> bool {
        let is_planned = self.request.plan.observer.perf.is_some();
        is_planned && self.perf_starts < STARTS_MAX
    }

    /// Returns the samples of this run, if there are any.
    pub(super) fn perf_samples(&self) -> Option<PerfSamples> {
        let plan = self.request.plan.observer.perf.as_ref()?;
        let measured = sampled_time(&self.record.manifest.phases, self.inspector_ended);
        let wall = stillwell_scope::clock::FixedWall::now();
        let started = measured.map_or(0, |(begin, _)| wall.at(begin).as_u64());
        Some(PerfSamples {
            folder: self.request.folder.join(PROFILES),
            frequency: plan.frequency,
            measured,
            started_ns: i64::try_from(started).ok()?,
        })
    }
}

impl PerfSamples {
    /// Stores the samples of the measured time as a profile and removes the files of `perf`. Returns a warning about an
    /// incomplete profile.
    ///
    /// # Errors
    /// The reason why there is no profile.
    pub(super) fn store(&self) -> Result<Option<String>, String> {
        let stored = self.convert();
        for name in [DATA, TEXT] {
            // They are missing if `perf` failed.
            fs::remove_file(self.folder.join(name)).unwrap_or_default();
        }
        stored
    }

    fn convert(&self) -> Result<Option<String>, String> {
        let measured = self.measured.ok_or("the run has no measured phase")?;
        let path = self.folder.join(TEXT);
        let text = create_private(&path).map_err(|error| explain(&error))?;
        perf_script(&self.folder.join(DATA), text).map_err(|error| explain(&error))?;
        let text = read_text(&path)?;
        let mut read =
            read_perf_script(&text, self.frequency, measured).map_err(|error| explain(&error))?;
        read.profile.time_ns = self.started_ns;
        let bytes = read.profile.write().map_err(|error| explain(&error))?;
        write_private(&self.folder.join(PROFILE), bytes).map_err(|error| explain(&error))?;
        Ok((read.lost_share() > LOST_SHARE_MAX).then(|| {
            let all = read.taken.saturating_add(read.lost);
            let share = percent(read.lost_share());
            let lost = read.lost;
            format!(
                "`perf` lost {lost} of {all} samples ({share}): CPU times of the profile are too low, shares of functions \
                 are about right; lower `perf.frequency`, or free a CPU"
            )
        }))
    }
}

/// Returns the processes to sample at this start, of all processes of the target; the last start has the first process
/// alone, which does not end before the run. If the target has ended, that is the error of `perf`, which reports it.
fn sampled(start: u8, first: u32, all: Vec<u32>) -> Vec<u32> {
    if all.is_empty() || start >= STARTS_MAX {
        vec![first]
    } else {
        all
    }
}

/// Returns the measured time, which `perf` samples until it has `ended`: amounts are divided by its length.
fn sampled_time(phases: &[PhaseMark], ended: Option<Moment>) -> Option<(Moment, Moment)> {
    let mut marks = phases.iter();
    let begin = marks.find(|mark| mark.phase == Phase::Measure)?.moment;
    let mut moments = phases.iter().map(|mark| mark.moment);
    let end = moments.find(|moment| *moment > begin).unwrap_or(begin);
    Some((begin, ended.map_or(end, |ended| ended.clamp(begin, end))))
}

fn read_text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| explain(&error))?;
    let mut file = file.take(TEXT_BYTES_MAX + 1);
    file.read_to_end(&mut bytes)
        .map_err(|error| explain(&error))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        let limit = TEXT_BYTES_MAX >> 20;
        return Err(format!(
            "the samples take more than {limit} MiB as text; use a lower frequency"
        ));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_start_does_not_depend_on_processes_that_end() {
        assert_eq!(sampled(1, 5, vec![5, 6, 7]), [5, 6, 7]);
        assert_eq!(sampled(1, 5, Vec::new()), [5]);
        assert_eq!(sampled(STARTS_MAX, 5, vec![5, 6, 7]), [5]);
    }

    /// The samples until the restart were divided by the whole measured time.
    #[test]
    fn the_time_of_samples_ends_with_perf_if_the_target_is_started_again() {
        let mark = |(phase, moment)| PhaseMark {
            phase,
            moment: Moment::new(moment),
            wall_millis: 0,
        };
        let phases = [
            (Phase::Warmup, 3),
            (Phase::Measure, 10),
            (Phase::Drain, 30),
            (Phase::Stop, 40),
        ];
        let phases = phases.map(mark);
        for (ended, end) in [(None, 30), (Some(17), 17), (Some(35), 30), (Some(5), 10)] {
            let time = sampled_time(&phases, ended.map(Moment::new));
            assert_eq!(time, Some((Moment::new(10), Moment::new(end))));
        }
        assert_eq!(sampled_time(&phases[..1], None), None);
    }
}
