//! Every limit by which a run is believed or not, in one place.
//!
//! They are the same for all variants and are fixed before any number is seen.

use stillwell_units::Nanos;

/// Fewest valid pairs for a verdict: with three, a t interval is 4.3 standard
/// errors wide on each side, and one odd pair decides.
pub const PAIRS_MIN: u32 = 4;

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

/// Smallest share of the asked units that must have been sent. What is missing
/// shifts the load of one variant against the other's by as much.
pub const RATE_ACHIEVED_SHARE: f64 = 0.99;

/// How old a worker's figure of what was asked may be at either end of the
/// measured time: workers publish it every 10 ms.
pub const ASKED_UNSAID: Nanos = Nanos::from_millis(10);

/// Share of the time from which on a worker counts as held up by its peer.
pub const BLOCKED_SHARE: f64 = 0.05;

/// Share of the time from which on a generator at full speed that was never
/// blocked was itself the limit.
pub const GENERATOR_BUSY_SHARE: f64 = 0.90;

/// Share of the time from which on a sink worker was itself the limit.
pub const SINK_RUNNING_SHARE: f64 = 0.90;

/// Share of its CPUs from which on the subject was the limit, whoever else was
/// busy.
pub const SUBJECT_SATURATED_SHARE: f64 = 0.95;

/// CPU seconds of the subject for each second below which wake-ups, and not
/// work, make up its CPU per event.
pub const LIGHT_LOAD_SHARE: f64 = 0.25;

/// Largest share of the host's CPU time that the hypervisor may have taken: what
/// it takes also empties caches, so that CPU time itself grows.
pub const STEAL_SHARE: f64 = 0.05;

/// Largest share of the host's CPU time that others may have used, for goals
/// that count by the wall clock: they wait for whatever else the host does.
pub const FOREIGN_CPU_SHARE_WALL: f64 = 0.10;

/// The same for goals that the kernel counts: a process that waits for its turn
/// uses no CPU, but neighbours that busy share caches and clock speed.
pub const FOREIGN_CPU_SHARE: f64 = 0.25;

/// Largest difference between the wall clock's and the monotonic clock's idea of
/// the same stretch of time; slewing stays below 0.05 % of it.
pub const CLOCK_STEP: Nanos = Nanos::from_millis(100);

/// Largest gap between two beats, in periods of the observer.
pub const BEAT_GAP_PERIODS: f64 = 2.5;

/// Share of the measured time with tasks waiting for a resource from which on
/// readers are told of the pressure.
pub const PRESSURE_SHARE: f64 = 0.20;

/// Share of sends that did not end well from which on readers are told.
pub const FAILED_SHARE: f64 = 0.001;
