//! Every limit that makes a run, a load or a probe of capacity unreliable, in
//! one place.
//!
//! They are the same for all variants and are fixed before any number is seen.
//!
//! # Two classes of goals
//!
//! Limits measure harm to a number, and not the presence of other programs.
//!
//! *Goals that the kernel counts* (CPU time, memory, counters): a process that waits
//! for a CPU uses none. They are spoiled by much steal, which inflates CPU time (not memory), and by a
//! rate that was not reached, which changes the work.
//!
//! *Goals that wait* (throughput, latency, delivery): they are spoiled by a generator
//! that was late, and by other programs that delayed the target.
//!
//! # Limits of runs, of loads and of probes
//!
//! A *run* measures what a program costs, and compares two variants in pairs: what
//! disturbs both alike does little harm, and a limit that is too strict discards
//! pairs. A *load* reports latencies of one target, each in absolute time, with
//! nothing to compare them with: the same disturbance is in its numbers, so it is
//! reported earlier. It has no repetition that could replace it, so less of what
//! is reported makes it invalid. A *probe* of capacity answers "kept up or
//! not" for one rate, and a search repeats it: its limits need a clear answer
//! only.
//!
//! | | run | load | probe |
//! | --- | --- | --- | --- |
//! | lateness, p99 | 10 ms, [`GENERATOR_LATENESS_P99`] | 1 ms, [`LOAD_LATENESS_P99`] | [`PROBE_LATENESS_OF_BOUND`] |
//! | worker without a CPU | 5 %, [`GENERATOR_LATE_SHARE`] | 5 %, [`LOAD_CPU_WAIT_SHARE`] | of a run or load |
//! | target delayed by others | 10 %, [`TARGET_DELAYED_SHARE`] | not known | as a run |
//! | worker delayed by others | 5 %, [`WORKER_DELAYED_SHARE`] | of a load | as a run |
//! | steal | 5 %, invalid, [`STEAL_SHARE`]; CPU time 10 %, [`STEAL_SHARE_COUNTED`] | 2 %, a warning, [`LOAD_STEAL_SHARE`] | as a run |
//! | busy generator | 90 %, [`GENERATOR_BUSY_SHARE`] | 90 %, [`LOAD_BUSY_SHARE`] | of a run or load |
//! | rate achieved | 99 %, [`RATE_ACHIEVED_SHARE`] | 99 %, [`LOAD_RATE_ACHIEVED_SHARE`] | 99 %, [`PROBE_REACHED_SHARE`] |

use stillwell_units::Nanos;

/// Fewest valid pairs for a verdict.
pub const PAIRS_MIN: u32 = stillwell_plan::stopping::PAIRS_MIN;

/// Fewest fresh pairs by which a change is confirmed.
pub const CONFIRM_PAIRS_MIN: u32 = stillwell_plan::stopping::PAIRS_CONFIRM_MIN;

/// Fewest valid pairs for `equivalent`: four would miss a fault that strikes half of all runs
/// in one of sixteen experiments.
pub const PAIRS_EQUIVALENT_MIN: u32 = 6;

/// Fewest valid pairs by which a change gates that no fresh pairs confirm: the signs of
/// four pairs agree by chance in one of eight experiments.
pub const PAIRS_UNCONFIRMED_MIN: u32 = 6;

/// Of how many planned pairs one may be discarded and repeated at any time. More are
/// replaced while time is left and at least one pair was valid; then the machine is unfit.
pub const PAIRS_FOR_ONE_REPEAT: u32 = 4;

/// Finished pairs without any number of a goal after which it is not waited for
/// any more: it is named wrongly, or the target does not report it.
pub const PAIRS_NEVER_MEASURED: u32 = 2;

/// Largest chance with which the discards of two variants may differ as much as
/// they do before that is reported as a finding.
pub const DISCARDS_UNBALANCED: f64 = 0.1;

/// Fewest pairs for the test by ranks: with five it cannot reach 5 %.
pub const SENSITIVITY_PAIRS_MIN: u32 = 6;

/// Fewest pairs whose skewness is judged.
pub const SKEWNESS_PAIRS_MIN: u32 = 8;

/// Fewest runs of a variant among which groups are looked for.
pub const GROUPS_RUNS_MIN: usize = 8;

/// Largest chance with which runs of one group may look as if they fell into two.
pub const GROUPS_CHANCE: f64 = 0.01;

/// Share of the list of other changed series that may be chance.
pub const MOVED_FALSE_SHARE: f64 = 0.10;

/// Smallest certain change, as a share, in the list of other changed series: a report shows less as 0 %.
pub const MOVED_MIN: f64 = 0.001;

/// Most lines in the list of other changed series.
pub const MOVED_MAX: usize = 20;

/// Most numbers of series that a summary keeps.
pub const SERIES_MAX: usize = 2000;

/// Most rates from beat to beat that a summary keeps.
pub const BEATS_MAX: usize = 300;

/// Share of cases in which the interval of a drift within a run holds the truth: many runs are
/// looked at.
pub const STEADY_LEVEL: f64 = 0.99;

/// Growth of the median latency over the measured window, as a share of its mean, from which on a
/// sure growth is reported.
pub const LATENCY_GROWTH: f64 = 0.2;

/// Growth of a rate over the measured window, as a share of its mean, from which
/// on a sure drift is reported: a smaller one is common to both variants.
pub const STEADY_DRIFT: f64 = 0.05;

/// Power with which the pairs that a tolerance needs are counted.
pub const POWER: f64 = 0.8;

/// Largest share of the measured time in which a generator worker may have had
/// something due, nothing in its way, and yet not run.
pub const GENERATOR_LATE_SHARE: f64 = 0.05;

/// Lateness (99 of 100 sends) up to which such time does no harm: waking from a
/// timer costs some tens of microseconds at every send and adds up to a large
/// share of the time at high rates, while a worker that has to queue for its CPU
/// is late by whole scheduler slices.
pub const GENERATOR_LATENESS_P99: Nanos = Nanos::from_millis(10);

/// Smallest share of the requested units that must have been sent. What is missing
/// shifts the load of one variant against the other's by as much.
pub const RATE_ACHIEVED_SHARE: f64 = 0.99;

/// Largest age of a worker's figure of its requested units at either end of the
/// measured time: workers publish it every 10 ms.
pub const REQUESTED_UNREPORTED: Nanos = Nanos::from_millis(10);

/// Share of the time from which on a worker counts as held up by its peer.
pub const BLOCKED_SHARE: f64 = 0.05;

/// Share of the time from which on a generator at full speed that was never
/// blocked was itself the limit.
pub const GENERATOR_BUSY_SHARE: f64 = 0.90;

/// Share of the time from which on a sink worker that ran or waited for a CPU
/// was itself the limit.
pub const SINK_BUSY_SHARE: f64 = 0.90;

/// Share of its CPUs from which on the target was the limit, for any other
/// busy.
pub const TARGET_SATURATED_SHARE: f64 = 0.95;

/// CPU seconds of the target for each second below which wake-ups, and not
/// work, make up its CPU per event.
pub const LIGHT_LOAD_SHARE: f64 = 0.25;

/// Share of the target's CPU time in which the counter of its instructions has to run. The rest is scaled: if its
/// rate differs by a tenth, the number is off by a thousandth.
pub const COUNTER_RUNNING_SHARE: f64 = 0.99;

/// Largest share of the host's CPU time that the hypervisor may have taken: what
/// it takes also empties caches, so CPU time itself grows.
pub const STEAL_SHARE: f64 = 0.05;

/// The same for goals that the kernel counts: it subtracts stolen time from CPU time, so
/// only the effect on caches is left. See docs/internals/harm.md.
pub const STEAL_SHARE_COUNTED: f64 = 0.10;

/// Largest share of the time in which the target wanted a CPU that other programs may
/// have taken from it, for goals that wait. Goals that the kernel counts go on
/// counting: see docs/internals/harm.md for the effect of each.
pub const TARGET_DELAYED_SHARE: f64 = 0.10;

/// Largest share of the measured time in which a thread of a generator or sink may
/// have waited for a CPU that other programs had, for goals that wait.
pub const WORKER_DELAYED_SHARE: f64 = 0.05;

/// Share of the host's CPU time used by other programs from which on the report
/// mentions it. It is no harm by itself.
pub const FOREIGN_CPU_SHARE: f64 = 0.10;

/// Clocks of machines are compared too coarsely for latencies between them if the error may be larger
/// than this.
pub const CLOCK_ERROR: Nanos = Nanos::from_millis(100);

/// Largest difference between the wall clock's and the monotonic clock's idea of
/// the same stretch of time; slewing stays below 0.05 % of it.
pub const CLOCK_STEP: Nanos = Nanos::from_millis(100);

/// Largest gap between two beats, in periods of the observer.
pub const BEAT_GAP_PERIODS: f64 = 2.5;

/// Share of the measured time with tasks waiting for a resource from which on
/// the report mentions the pressure.
pub const PRESSURE_SHARE: f64 = 0.20;

/// Share of sends that did not end well from which on the report mentions it.
pub const FAILED_SHARE: f64 = 0.001;

/// Largest share of what a run sends by its schedule that one block may be.
pub const BLOCK_SHARE: f64 = 0.10;

/// Largest difference between the bytes that two targets took, as a share, up to
/// which totals of their runs may be compared: beyond it who did less used less.
pub const EQUAL_WORK_SHARE: f64 = 0.02;

/// Fewest bytes written to storage for each byte taken that a target may claim a
/// buffer on disk with: a file system may spare some of them, and not most.
pub const PERSISTED_SHARE_MIN: f64 = 0.5;

/// Holm's adjusted p value up to which one target counts as better than another.
pub const BETTER_CHANCE: f64 = 0.05;

/// Share of its time on the CPU above which a worker of a load may be the limit: as
/// of a run.
pub const LOAD_BUSY_SHARE: f64 = GENERATOR_BUSY_SHARE;

/// 99th percentile of its lateness above which a generator distorts the latencies
/// of a load. A tenth of a run's limit: lateness is part of every latency from the
/// intended time, and a run's goals are counts and CPU time…
pub const LOAD_LATENESS_P99: Nanos = Nanos::from_millis(1);

/// …if it is also above this share of the median latency.
pub const LOAD_LATENESS_OF_LATENCY: f64 = 0.1;

/// 99th percentile of its lateness above which a generator sends requests of a load
/// in bunches: gaps are shorter than in the schedule, which a rate limiter may refuse.
pub const LOAD_BUNCHED_P99: Nanos = Nanos::new(200_000);

/// Fewest requests of which such a lateness is reported: with few, the 99th percentile is that of
/// a single request.
pub const LOAD_BUNCHED_REQUESTS_MIN: u64 = 300;

/// Largest share of its time that a worker of a load may wait for a CPU that it
/// wants. A run counts only such time in which something was due.
pub const LOAD_CPU_WAIT_SHARE: f64 = 0.05;

/// Shortest measured time of a load of which a share says anything. Runs last longer
/// by plan.
pub const LOAD_SHARES_FROM: Nanos = Nanos::from_millis(500);

/// Share of the host's CPU time taken by the hypervisor above which readers of a
/// load are warned. Below a run's limit, as a load has no pair that shares the
/// disturbance; and no more than a warning, as a load's latencies do not count CPU
/// time.
pub const LOAD_STEAL_SHARE: f64 = 0.02;

/// Drift of a generator's clock, in parts per million, above which its latencies and its rate
/// are wrong by more than other limits allow. Clocks that follow a server stay below 500.
pub const LOAD_CLOCK_DRIFT_PPM: u64 = 1_000;

/// Share of its time above which a worker that had no request to send waited for
/// their source.
pub const LOAD_SOURCE_WAIT_SHARE: f64 = 0.01;

/// Share of the requested rate below which a load did not achieve it: as of a run.
pub const LOAD_RATE_ACHIEVED_SHARE: f64 = RATE_ACHIEVED_SHARE;

/// Smallest share of the requested rate that a probe of capacity must have begun: as
/// of a run.
pub const PROBE_REACHED_SHARE: f64 = RATE_ACHIEVED_SHARE;

/// Share of the requested units of a run's generator from which on a probe counts all
/// as sent: its lateness moves no totals then.
pub const PROBE_SENT_SHARE: f64 = RATE_ACHIEVED_SHARE;

/// Share of a probe's bound of a time above which the lateness of the generator may be
/// why it broke. A probe tests whether one bound holds, and its limit is the
/// bound's and no absolute time.
pub const PROBE_LATENESS_OF_BOUND: f64 = 0.1;

/// Growth of the median latency, as a share of the time in which it grows, from which on a queue
/// fills within a probe: so much more arrives than the target can do.
pub const PROBE_GROWTH: f64 = 0.001;

/// Lateness from which on requests of a probe count as sent in a bunch, which a
/// limiter may refuse.
pub const PROBE_BUNCHED: Nanos = LOAD_LATENESS_P99;

/// Share of the time from which on the peer of a probe's generator kept it waiting,
/// so the generator is not the limit: as of a run.
pub const PROBE_BLOCKED_SHARE: f64 = BLOCKED_SHARE;

/// Share of what a bound leaves above which sends that may be under way decide
/// whether it holds.
pub const PROBE_UNDER_WAY_OF_BOUND: f64 = 0.1;

/// Fewest degrees of freedom for a verdict on runs that were not made by an experiment:
/// what four pairs have. With fewer the noise itself is hardly known.
pub const COMPARED_DEGREES_MIN: f64 = 3.0;

/// A rank test that cannot reach this p value for any runs is not shown.
pub const COMPARED_RANKS_BELOW: f64 = 0.05;

/// Maximum number of pairs of a comparison with a Hodges–Lehmann estimate. Its memory grows with the
/// square of their number: 2,000 pairs have two million means.
pub const COMPARED_CENTRE_PAIRS_MAX: usize = 2_000;

/// Runs on a side below which the report says that one odd run decides.
pub const COMPARED_RUNS_FEW: usize = 4;
