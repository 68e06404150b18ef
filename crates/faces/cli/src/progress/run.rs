//! Figures of runs while they go on.

use stillwell_plan::Phase;
use stillwell_run::{Progress, RunTotals};
use stillwell_units::{Moment, Nanos, float_from_u64};
use stillwell_verdict::RunSummary;

use super::times::LatencyClasses;

/// Shortest time over which a rate is shown.
const RATE_OVER_SECONDS_MIN: f64 = 0.5;

/// Figures of one run; those that were not measured are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RunFigures {
    /// Events sent each second.
    pub(super) rate: Option<f64>,
    /// Events that the schedule requested each second.
    pub(super) requested: Option<f64>,
    /// Median and 99th percentile.
    pub(super) latency: Option<[Nanos; 2]>,
    /// CPU seconds of the target each second.
    pub(super) cpu: Option<f64>,
    /// Resident memory of the target in bytes.
    pub(super) memory: Option<f64>,
    /// Bytes that sinks received.
    pub(super) received: u64,
}

impl RunFigures {
    /// The figures of an ended run, over its measured phase.
    pub(super) fn of(summary: &RunSummary) -> Self {
        let figures = &summary.figures;
        let seconds = summary.measured.as_secs_f64();
        let per_second = |total: f64| (seconds > 0.0).then(|| total / seconds);
        let rate = figures.measured.events_sent.and_then(per_second);
        let sums = figures.generators.iter().filter_map(|generator| {
            Some((
                generator.requested_per_second?,
                generator.achieved_per_second?,
            ))
        });
        let (requested, achieved) = sums.fold((0.0, 0.0), |sum, generator| {
            (sum.0 + generator.0, sum.1 + generator.1)
        });
        let latency = figures
            .response_time
            .as_ref()
            .or(figures.event_latency.as_ref());
        Self {
            rate,
            requested: scaled(rate, requested, achieved),
            latency: latency.map(|times| [times.p50, times.p99]),
            cpu: figures.target_cpu_share,
            memory: figures.rss_mean_bytes,
            received: 0,
        }
    }
}

/// The requested events of a schedule that may count something else than events.
fn scaled(rate: Option<f64>, requested: f64, sent: f64) -> Option<f64> {
    rate.filter(|_| requested > 0.0 && sent > 0.0)
        .map(|rate| rate * requested / sent)
}

/// The position of a run in its phases, and its latest figures.
#[derive(Clone, Debug, Default)]
pub(super) struct RunCourse {
    pub(super) phase: Option<Phase>,
    pub(super) began: Option<Moment>,
    /// Length of a phase with load.
    pub(super) length: Option<Nanos>,
    pub(super) figures: RunFigures,
    /// Latencies of the phase.
    pub(super) times: LatencyClasses,
    /// Time and totals of the latest beat that rates were computed from.
    last: Option<(Moment, RunTotals)>,
}

impl RunCourse {
    /// Takes in what a run reports.
    pub(super) fn update(&mut self, progress: &Progress, now: Moment) {
        match progress {
            Progress::Phase { phase, ends_in } => {
                let has_length = matches!(phase, Phase::Warmup | Phase::Measure);
                (self.phase, self.began) = (Some(*phase), Some(now));
                self.length = ends_in.filter(|_| has_length);
                self.last = None;
                // What follows the load still belongs to it.
                if has_length {
                    self.times = LatencyClasses::default();
                }
            }
            Progress::Beat {
                at,
                totals,
                latencies,
            } => {
                self.figures.received = totals.bytes_received;
                self.figures.memory = totals.rss_bytes.map(float_from_u64).or(self.figures.memory);
                if let Some(latencies) = latencies {
                    let at = |share: f64| Nanos::new(latencies.value_at_quantile(share));
                    self.figures.latency = Some([at(0.5), at(0.99)]);
                    self.times.add(latencies);
                }
                self.rates(*at, *totals);
            }
            Progress::Note(_) => {}
        }
    }

    /// Rates since the beat before in the same phase.
    fn rates(&mut self, at: Moment, totals: RunTotals) {
        let Some((from, before)) = self.last else {
            self.last = Some((at, totals));
            return;
        };
        let seconds = at.since(from).as_secs_f64();
        // Phase marks are beats too; between those, a rate means nothing.
        if seconds < RATE_OVER_SECONDS_MIN {
            return;
        }
        let growth = |after: u64, before: u64| float_from_u64(after.saturating_sub(before));
        let rate = growth(totals.events_sent, before.events_sent) / seconds;
        let units = |totals: RunTotals| totals.scheduled_units;
        let [requested, sent] = [0, 1].map(|at| growth(units(totals)[at], units(before)[at]));
        self.figures.rate = Some(rate);
        self.figures.requested = scaled(Some(rate), requested, sent);
        self.figures.cpu = totals
            .target_cpu
            .zip(before.target_cpu)
            .map(|(after, before)| growth(after.as_u64(), before.as_u64()) / 1e9 / seconds);
        self.last = Some((at, totals));
    }

    /// Returns elapsed time and length of a phase that has one.
    pub(super) fn elapsed(&self, now: Moment) -> Option<(Nanos, Nanos)> {
        let length = self.length?;
        Some((now.since(self.began?).min(length), length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(millis: u64, events_sent: u64, units: [u64; 2], cpu: u64) -> Progress {
        Progress::Beat {
            at: Moment::new(millis * 1_000_000),
            totals: RunTotals {
                events_sent,
                target_cpu: Some(Nanos::new(cpu)),
                rss_bytes: Some(1 << 20),
                scheduled_units: units,
                ..RunTotals::default()
            },
            latencies: None,
        }
    }

    #[test]
    fn rates_are_those_since_the_beat_before() {
        let mut run = RunCourse::default();
        let at = |millis: u64| Moment::new(millis * 1_000_000);
        let phase = Progress::Phase {
            phase: Phase::Measure,
            ends_in: Some(Nanos::from_secs(10)),
        };
        run.update(&phase, at(1_000));
        run.update(&beat(1_000, 100, [10, 10], 0), at(1_000));
        assert_eq!(run.figures.rate, None);
        // The schedule counts blocks of ten events, one of which is late.
        run.update(&beat(2_000, 1_100, [120, 110], 500_000_000), at(2_700));
        assert_eq!(run.figures.rate, Some(1_000.0));
        assert_eq!(run.figures.requested, Some(1_100.0));
        assert_eq!(run.figures.cpu, Some(0.5));
        // Too close to say anything.
        run.update(&beat(2_100, 9_999, [999, 999], 0), at(2_800));
        assert_eq!(run.figures.rate, Some(1_000.0));
        assert_eq!(
            run.elapsed(at(4_000)),
            Some((Nanos::from_secs(3), Nanos::from_secs(10)))
        );
    }
}
