//! Figures of the other run in each capture.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use stillwell_metric::{Labels, Metric, Sample, SeriesName, Shard, Value, catalogue};
use stillwell_observer::TargetReader;
use stillwell_pacer::Turns;
use stillwell_scope::clock;
use stillwell_units::Nanos;

use super::meeting::Meeting;

/// Sampled with a run: how long it had its turn, and the CPU time of the other run's target, which
/// is not foreign.
pub(crate) struct Beside {
    meeting: Arc<Meeting>,
    partner: usize,
    /// The reader of the partner's target, and the process that it follows.
    reader: Mutex<Option<(TargetReader, u32)>>,
    /// Set when load begins; absent without turns.
    turns: Option<Arc<OnceLock<Turns>>>,
}

impl Beside {
    pub(super) const fn new(
        meeting: Arc<Meeting>,
        partner: usize,
        turns: Option<Arc<OnceLock<Turns>>>,
    ) -> Self {
        Self {
            meeting,
            partner,
            reader: Mutex::new(None),
            turns,
        }
    }

    fn partner_cpu(&self) -> u64 {
        let Some(probe) = self.meeting.probe(self.partner) else {
            return 0;
        };
        let pid = probe.pid;
        // Only the sampler reads, once a beat.
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, followed) =
            reader.get_or_insert_with(|| (TargetReader::new(Path::new("/proc"), probe), pid));
        if *followed != pid {
            // A step has started it again.
            reader.follow(pid);
            *followed = pid;
        }
        reader.sample(false, &mut Vec::new())
    }
}

impl Shard for Beside {
    fn sample(&self, samples: &mut Vec<Sample>) {
        let none = Labels::none();
        if let Some(turns) = &self.turns {
            let active = turns.get().map(|turns| turns.active(clock::now()));
            let active = active.unwrap_or(Nanos::ZERO).as_u64();
            samples.push(Sample::int(catalogue::ACTIVE_TIME, &none, active));
        }
        let cpu = self.partner_cpu();
        samples.push(Sample::int(catalogue::PARTNER_CPU, &none, cpu));
    }
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside")
            .field("partner", &self.partner)
            .finish_non_exhaustive()
    }
}

/// Takes the partner's CPU time out of what the observer, which has no
/// partner, calls foreign.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// The partner's at the first beat.
    first: Option<u64>,
    /// The two counters are read a moment apart, so the difference may fall; a
    /// total may not.
    largest_of_host: u64,
    largest_of_target_cpus: u64,
}

impl Foreign {
    /// Corrects one beat's samples; changes nothing where there is no partner.
    pub(crate) fn correct(&mut self, samples: &mut [Sample]) {
        let value = |metric: Metric| {
            let name = SeriesName::from(metric);
            let sample = samples.iter().find(|sample| sample.name == name);
            sample.map(|sample| &sample.value)
        };
        let Some(&Value::Int(partner)) = value(catalogue::PARTNER_CPU) else {
            return;
        };
        // Runs at the same time have CPUs of their own; runs in turns share those of the target.
        let is_in_turns = value(catalogue::ACTIVE_TIME).is_some();
        let grown = partner.saturating_sub(*self.first.get_or_insert(partner));
        without(
            samples,
            catalogue::HOST_CPU_FOREIGN,
            grown,
            &mut self.largest_of_host,
        );
        if is_in_turns {
            let metric = catalogue::TARGET_CPUS_FOREIGN;
            without(samples, metric, grown, &mut self.largest_of_target_cpus);
        }
    }
}

fn without(samples: &mut [Sample], metric: Metric, partner: u64, largest: &mut u64) {
    let name = SeriesName::from(metric);
    for sample in samples.iter_mut().filter(|sample| sample.name == name) {
        if let Value::Int(foreign) = &mut sample.value {
            *largest = (*largest).max(foreign.saturating_sub(partner));
            *foreign = *largest;
        }
    }
}

#[cfg(test)]
mod tests {
    use stillwell_observer::TargetProbe;
    use stillwell_units::Seed;

    use super::*;
    use crate::together::{Link, Together};

    fn beat(foreign: u64, partner: Option<u64>) -> Vec<Sample> {
        let none = Labels::none();
        let partner = partner.map(|partner| Sample::int(catalogue::PARTNER_CPU, &none, partner));
        let foreign = Sample::int(catalogue::HOST_CPU_FOREIGN, &none, foreign);
        partner.into_iter().chain([foreign]).collect()
    }

    fn foreign(samples: &[Sample]) -> Option<&Value> {
        samples.last().map(|sample| &sample.value)
    }

    /// The reader kept to the first process, which had ended: all that the new one used was foreign.
    #[test]
    fn the_cpu_time_of_a_restarted_partner_is_that_of_its_new_process_too() {
        // Larger than any number that a kernel gives.
        const ENDED: u32 = 4_194_305;
        let [partner, this] = Link::pair(Together::Duet, Seed::from_number(1));
        let beside = this.beside();
        let watch = |pid| {
            partner.watch(TargetProbe {
                pid,
                ..TargetProbe::default()
            });
        };
        assert_eq!(beside.partner_cpu(), 0);
        watch(ENDED);
        assert_eq!(beside.partner_cpu(), 0);
        watch(std::process::id());
        assert!(beside.partner_cpu() > 0);
    }

    /// A service of several threads waits for its own threads. In turns, that wait must not count as a wait for the other run.
    #[test]
    fn the_partner_is_foreign_to_the_cpus_of_the_target_only_where_they_are_not_shared() {
        for (in_turns, expected) in [(true, 5), (false, 25)] {
            let mut sample = Foreign::default();
            for (raw, partner) in [(0, 50), (25, 70)] {
                let mut samples = beat(0, Some(partner));
                let int = |metric, value| Sample::int(metric, &Labels::none(), value);
                samples.extend(in_turns.then(|| int(catalogue::ACTIVE_TIME, 1)));
                samples.push(int(catalogue::TARGET_CPUS_FOREIGN, raw));
                sample.correct(&mut samples);
                if raw > 0 {
                    assert_eq!(foreign(&samples), Some(&Value::Int(expected)));
                }
            }
        }
    }

    #[test]
    fn the_partner_is_not_foreign() {
        let mut sample = Foreign::default();
        for (raw, partner, expected) in [(0, 50, 0), (30, 70, 10), (40, 85, 10), (60, 90, 20)] {
            let mut samples = beat(raw, Some(partner));
            sample.correct(&mut samples);
            assert_eq!(foreign(&samples), Some(&Value::Int(expected)));
        }
        let mut alone = beat(77, None);
        sample.correct(&mut alone);
        assert_eq!(foreign(&alone), Some(&Value::Int(77)));
    }
}
