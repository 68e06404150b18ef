//! The limits that make runs unreliable, as set when an experiment begins.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;
use stillwell_verdict::limits;

/// One limit that makes runs unreliable, the same for all variants.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct HealthRule {
    /// The value that is compared with the limit.
    pub rule: String,
    /// The limit: a share of one, seconds, or a number, as `unit` says.
    pub limit: f64,
    /// `share`, `s` or `1`.
    pub unit: String,
}

/// All of them, as this version has them.
pub(crate) fn health_rules() -> Vec<HealthRule> {
    let share = |rule: &str, limit: f64| HealthRule {
        rule: rule.to_owned(),
        limit,
        unit: "share".to_owned(),
    };
    let seconds = |rule: &str, limit: Nanos| HealthRule {
        unit: "s".to_owned(),
        ..share(rule, limit.as_secs_f64())
    };
    let number = |rule: &str, limit: f64| HealthRule {
        unit: "1".to_owned(),
        ..share(rule, limit)
    };
    vec![
        share("generator_late_at_most", limits::GENERATOR_LATE_SHARE),
        seconds(
            "generator_lateness_p99_at_most",
            limits::GENERATOR_LATENESS_P99,
        ),
        share("rate_achieved_at_least", limits::RATE_ACHIEVED_SHARE),
        share("generator_busy_at_most", limits::GENERATOR_BUSY_SHARE),
        share("sink_busy_at_most", limits::SINK_BUSY_SHARE),
        share("steal_at_most", limits::STEAL_SHARE),
        share("steal_cpu_time_at_most", limits::STEAL_SHARE_COUNTED),
        share("target_delayed_at_most", limits::TARGET_DELAYED_SHARE),
        share("worker_delayed_at_most", limits::WORKER_DELAYED_SHARE),
        seconds("clock_step_at_most", limits::CLOCK_STEP),
        number("beat_gap_periods_at_most", limits::BEAT_GAP_PERIODS),
        share("light_load_cpu_at_least", limits::LIGHT_LOAD_SHARE),
        share(
            "instruction_counter_running_at_least",
            limits::COUNTER_RUNNING_SHARE,
        ),
        number("pairs_at_least", f64::from(limits::PAIRS_MIN)),
        number(
            "planned_pairs_for_one_repeat",
            f64::from(limits::PAIRS_FOR_ONE_REPEAT),
        ),
    ]
}
