//! Verdicts as tests need them.

use stillwell_plan::{Direction, GoalMetric, RateUnit, ReportLink};
use stillwell_units::{Nanos, RunId, Tolerance};
use stillwell_verdict::{
    Caution, CautionSeen, Change, CheckVerdict, Doubt, ExperimentVerdict, Gate, GoalVerdict,
    PlacedCpus, RateFigure, RunNotUsed, Verdict,
};

use crate::LabReport;

pub(crate) fn report(experiments: Vec<ExperimentVerdict>) -> LabReport {
    LabReport {
        title: "examples/quickstart".to_owned(),
        baseline: "relay".to_owned(),
        comparison: "relay --work-per-event 300ns".to_owned(),
        experiments,
        results_folder: ".stillwell/labs/20261121-091500".to_owned(),
        command: "stillwell run examples/quickstart --seed 42".to_owned(),
        seed: "42".to_owned(),
        version: "0.1.0".to_owned(),
        host: vec![
            ("cpus".to_owned(), "2".to_owned()),
            ("kernel".to_owned(), "6.11.0".to_owned()),
        ],
        elapsed: Nanos::from_secs(163),
        next: vec![
            "stillwell report .stillwell/labs/20261121-091500 --format markdown".to_owned(),
            "stillwell run examples/quickstart --pairs 16".to_owned(),
        ],
    }
}

/// An experiment with a costly and an untouched goal.
pub(crate) fn experiment(name: &str, verdict: Verdict, change: [f64; 3]) -> ExperimentVerdict {
    ExperimentVerdict {
        name: name.to_owned(),
        summary: Some("The relay, with 300 ns more work for each event.".to_owned()),
        erratic: false,
        variants: vec!["baseline".to_owned(), "comparison".to_owned()],
        pairs_planned: 8,
        pairs_used: 8,
        pairs_discarded: 0,
        not_used: Vec::new(),
        goals: vec![
            goal(GoalMetric::CpuPerEvent, true, verdict, 4100.0, change),
            goal(
                GoalMetric::IngressThroughput,
                false,
                Verdict::Equivalent,
                50.0 * 1_048_576.0,
                [-0.001, -0.004, 0.002],
            ),
            goal(
                GoalMetric::Memory,
                false,
                Verdict::Inconclusive,
                12.0 * 1_048_576.0,
                [0.02, -0.07, 0.12],
            ),
        ],
        checks: Vec::new(),
        cautions: Vec::new(),
        cpus: PlacedCpus {
            subject: Some(vec![1]),
            own: Some(vec![0]),
        },
        rate: vec![RateFigure {
            id: "lines".to_owned(),
            unit: RateUnit::Events,
            asked_per_second: Some(152_000.0),
            achieved_per_second: Some(151_998.4),
        }],
        warmup: Nanos::from_secs(2),
        measure: Nanos::from_secs(7),
        report_links: vec![ReportLink {
            text: "dashboard".to_owned(),
            link: "https://example.com/d?from=1".to_owned(),
        }],
        verdict,
        gate: match verdict {
            Verdict::Regressed => Gate::Regressed,
            Verdict::Invalid => Gate::Invalid,
            Verdict::Inconclusive => Gate::Inconclusive,
            Verdict::Improved | Verdict::Equivalent | Verdict::Different => Gate::Held,
        },
    }
}

pub(crate) fn goal(
    metric: GoalMetric,
    primary: bool,
    verdict: Verdict,
    baseline: f64,
    [estimate, lower, upper]: [f64; 3],
) -> GoalVerdict {
    let direction: Direction = metric.direction();
    GoalVerdict {
        metric,
        comparison: "comparison".to_owned(),
        primary,
        direction,
        tolerance: Tolerance::try_new(metric.default_tolerance_share()).unwrap(),
        verdict,
        baseline_mean: Some(baseline),
        comparison_mean: Some(baseline * (1.0 + estimate)),
        change: Some(Change {
            estimate,
            lower,
            upper,
        }),
        smallest_visible: Some((upper - lower) * 0.7),
        pairs_needed: Some(24),
        pairs: 8,
        pair_ratios: vec![1.0 + estimate; 2],
        reason: None,
        note: None,
    }
}

pub(crate) fn regressed() -> ExperimentVerdict {
    experiment("quickstart", Verdict::Regressed, [0.049, 0.045, 0.054])
}

pub(crate) fn equivalent() -> ExperimentVerdict {
    let mut own = experiment("tcp-to-http", Verdict::Equivalent, [0.001, -0.004, 0.006]);
    own.cautions = vec![
        CautionSeen {
            caution: Caution::NotIsolated {
                what: "cgroup".to_owned(),
                why: "the cgroup folder is not writable".to_owned(),
            },
            runs: 16,
            of: 16,
        },
        CautionSeen {
            caution: Caution::Pressure {
                resource: "CPU".to_owned(),
                share: 0.31,
            },
            runs: 3,
            of: 16,
        },
    ];
    own
}

pub(crate) fn inconclusive() -> ExperimentVerdict {
    experiment("syslog-parse", Verdict::Inconclusive, [0.011, -0.04, 0.065])
}

pub(crate) fn invalid() -> ExperimentVerdict {
    let mut own = experiment("udp-flood", Verdict::Invalid, [0.0; 3]);
    let reason = "2 valid pairs, 4 are needed: 1 run of baseline and 5 runs of comparison left \
                  out (the subject died in phase measure by signal 9; its last line: out of | luck)";
    own.goals[0].reason = Some(reason.to_owned());
    own.goals[0].change = None;
    own.goals[0].smallest_visible = None;
    own.goals[0].pairs_needed = None;
    own.goals[0].pairs = 2;
    own.goals.truncate(1);
    own.pairs_used = 2;
    own.pairs_discarded = 6;
    own.not_used = (1..=8)
        .map(|pair| RunNotUsed {
            pair,
            variant: "comparison".to_owned(),
            run: RunId::from_bytes([7; 16]),
            doubts: vec![
                Doubt::GeneratorLate {
                    id: "lines".to_owned(),
                    share: 0.123,
                    limit: 0.05,
                },
                Doubt::ForeignCpu {
                    share: 0.31,
                    limit: 0.25,
                },
            ],
        })
        .collect();
    own
}

pub(crate) fn failed_check() -> ExperimentVerdict {
    let mut own = experiment("http-json", Verdict::Equivalent, [-0.002, -0.009, 0.005]);
    own.gate = Gate::CheckFailed;
    own.checks = vec![
        CheckVerdict {
            name: "memory_usage".to_owned(),
            description: Some("Stays small.".to_owned()),
            passed: 14,
            not_measured: 0,
            runs: 16,
            worst_observed: Some(231.0 * 1_048_576.0),
            upper: Some(200.0 * 1_048_576.0),
            lower: None,
            unit: "B".to_owned(),
            failed_variants: vec!["comparison".to_owned()],
        },
        CheckVerdict {
            name: "no_errors".to_owned(),
            description: None,
            passed: 16,
            not_measured: 0,
            runs: 16,
            worst_observed: Some(0.0),
            upper: Some(0.0),
            lower: None,
            unit: "1".to_owned(),
            failed_variants: Vec::new(),
        },
    ];
    own
}

pub(crate) fn erratic() -> ExperimentVerdict {
    let mut own = experiment("idle", Verdict::Regressed, [0.12, 0.01, 0.24]);
    own.erratic = true;
    own
}
