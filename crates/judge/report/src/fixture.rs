//! Verdicts as tests need them.

use stillwell_plan::experiment::{FamilyPlan, ReportLink};
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{GoalMetric, GoalPlan, StoppingPlan, WorkUnit};
use stillwell_units::{Nanos, RunId};
use stillwell_verdict::{
    ArmDiscards, Change, CheckVerdict, Confirmation, ErraticSign, ErrorBudget, ExperimentVerdict,
    Gate, GoalVerdict, Moved, PlacedCpus, Protection, RateFigure, RunNotUsed, RunNote,
    RunNoteCount, RunStage, RunWarning, Sensitivity, StopReason, UnreliableEstimate, Verdict,
};

use crate::SuiteReport;

pub(crate) fn report(experiments: Vec<ExperimentVerdict>) -> SuiteReport {
    SuiteReport {
        title: "examples/quickstart".to_owned(),
        baseline: "relay".to_owned(),
        comparison: "relay --work-per-event 300ns".to_owned(),
        experiments,
        budget: ErrorBudget {
            comparisons: 1,
            protection: Protection::Confirmation,
            false_alarm_bound: Some(0.000_625),
            confirmed: 1,
            not_confirmed: 0,
            demoted: Vec::new(),
        },
        problems: Vec::new(),
        results_folder: ".stillwell/results/20261121-091500".to_owned(),
        command: "stillwell run examples/quickstart --seed 42".to_owned(),
        seed: "42".to_owned(),
        version: "0.1.0".to_owned(),
        host: vec![
            ("cpus".to_owned(), "2".to_owned()),
            ("kernel".to_owned(), "6.11.0".to_owned()),
        ],
        elapsed: Nanos::from_secs(163),
        next: vec![
            "stillwell report .stillwell/results/20261121-091500 --format markdown".to_owned(),
            "stillwell run examples/quickstart --pairs 16".to_owned(),
        ],
        runs: Vec::new(),
    }
}

/// An experiment with a costly and an untouched goal.
#[expect(clippy::too_many_lines, reason = "one literal with all of its fields")]
pub(crate) fn experiment(name: &str, verdict: Verdict, change: [f64; 3]) -> ExperimentVerdict {
    ExperimentVerdict {
        name: name.to_owned(),
        summary: Some("The relay, with 300 ns more work for each event.".to_owned()),
        family: None,
        erratic: false,
        erratic_signs: Vec::new(),
        work: WorkUnit::Events,
        variants: vec!["baseline".to_owned(), "comparison".to_owned()],
        stopping: StoppingPlan::Sequential { max_pairs: 20 },
        design: DesignPlan::Paired,
        builds: 1,
        confirm: true,
        pairs_planned: 20,
        pairs_used: 8,
        pairs_valid: 8,
        pairs_discarded: 0,
        discards: Vec::new(),
        discards_unbalanced: false,
        not_used: Vec::new(),
        stopped: Some(match verdict {
            Verdict::Regressed | Verdict::Improved => StopReason::Confirmed,
            Verdict::Equivalent => StopReason::Certain,
            Verdict::Different | Verdict::Inconclusive => StopReason::LastLook,
            Verdict::Invalid => StopReason::Unfit,
        }),
        likely_pairs: None,
        likely_left: None,
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
        skipped: Vec::new(),
        moved: Vec::new(),
        moved_of: 0,
        notes: Vec::new(),
        advice: Vec::new(),
        cpus: PlacedCpus {
            target: Some(vec![1]),
            workers: Some(vec![0]),
        },
        rate: vec![RateFigure {
            id: "lines".to_owned(),
            unit: WorkUnit::Events,
            requested_per_second: Some(152_000.0),
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
    let plan = GoalPlan::new(metric);
    GoalVerdict {
        scale: plan.metric.scale(),
        metric: plan.metric,
        comparison: "comparison".to_owned(),
        primary,
        direction: plan.direction,
        tolerance: plan.tolerance,
        tolerance_time: None,
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
        t_statistic: Some(9.5),
        pair_deviation: Some(0.006),
        pairs: 8,
        pairs_valid: 8,
        pair_changes: vec![estimate; 2],
        sensitivity: None,
        confirmation: None,
        reason: None,
        note: None,
        unreliable: None,
    }
}

pub(crate) fn regressed() -> ExperimentVerdict {
    experiment("quickstart", Verdict::Regressed, [0.049, 0.045, 0.054])
}

/// Returns an experiment that compares two variants with one baseline; the second has regressed.
pub(crate) fn of_three() -> ExperimentVerdict {
    let mut entry = regressed();
    let variants = ["baseline", "first", "second"].map(str::to_owned);
    entry.variants = variants.to_vec();
    let of = |comparison: &str, verdict: Verdict, change: [f64; 3]| GoalVerdict {
        comparison: comparison.to_owned(),
        ..goal(GoalMetric::CpuPerEvent, true, verdict, 4100.0, change)
    };
    entry.goals = vec![
        of("first", Verdict::Equivalent, [0.001, -0.004, 0.006]),
        of("second", Verdict::Regressed, [0.049, 0.045, 0.054]),
    ];
    entry
}

pub(crate) fn equivalent() -> ExperimentVerdict {
    let mut experiment_json =
        experiment("tcp-to-http", Verdict::Equivalent, [0.001, -0.004, 0.006]);
    experiment_json.notes = vec![
        RunNoteCount {
            note: RunNote::NotIsolated {
                what: "cgroup".to_owned(),
                why: "the cgroup folder is not writable".to_owned(),
            },
            runs: 16,
            of: 16,
        },
        RunNoteCount {
            note: RunNote::Pressure {
                resource: "CPU".to_owned(),
                share: 0.31,
            },
            runs: 3,
            of: 16,
        },
    ];
    experiment_json
}

pub(crate) fn inconclusive() -> ExperimentVerdict {
    experiment("syslog-parse", Verdict::Inconclusive, [0.011, -0.04, 0.065])
}

pub(crate) fn invalid() -> ExperimentVerdict {
    let mut entry = experiment("udp-flood", Verdict::Invalid, [0.0; 3]);
    let reason = "2 valid pairs, 4 are needed: 1 run of baseline and 5 runs of comparison left \
                  out (target died in phase measure by signal 9; its last line: out of | luck)";
    entry.goals[0].reason = Some(reason.to_owned());
    entry.goals[0].change = None;
    entry.goals[0].unreliable = Some(UnreliableEstimate {
        change: Some(Change {
            estimate: 0.031,
            lower: -0.024,
            upper: 0.089,
        }),
        baseline_mean: Some(4100.0),
        comparison_mean: Some(4227.0),
        pairs: 8,
    });
    entry.goals[0].smallest_visible = None;
    entry.goals[0].pairs_needed = None;
    entry.goals[0].pairs = 2;
    entry.goals.truncate(1);
    entry.pairs_used = 2;
    entry.pairs_valid = 2;
    entry.pairs_discarded = 6;
    entry.discards = [("baseline", 1, 0), ("comparison", 5, 5)]
        .map(|(variant, runs, target_failures)| ArmDiscards {
            variant: variant.to_owned(),
            runs,
            target_failures,
        })
        .to_vec();
    entry.discards_unbalanced = true;
    entry.not_used = (1..=8)
        .map(|pair| RunNotUsed {
            stage: RunStage::Search,
            pair,
            variant: "comparison".to_owned(),
            run: RunId::from_bytes([7; 16]),
            values: vec![(GoalMetric::CpuPerEvent, 4310.0)],
            warnings: vec![
                RunWarning::GeneratorLate {
                    id: "lines".to_owned(),
                    share: 0.123,
                    limit: 0.05,
                },
                RunWarning::TargetDelayed {
                    share: 0.31,
                    limit: 0.1,
                },
            ],
        })
        .collect();
    entry
}

pub(crate) fn failed_check() -> ExperimentVerdict {
    let mut entry = experiment("http-json", Verdict::Equivalent, [-0.002, -0.009, 0.005]);
    entry.gate = Gate::CheckFailed;
    entry.checks = vec![
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
    entry
}

pub(crate) fn erratic() -> ExperimentVerdict {
    let mut entry = experiment("idle", Verdict::Regressed, [0.12, 0.01, 0.24]);
    entry.erratic = true;
    entry
}

/// Returns one experiment for each of `kinds`, which are taken modulo 7, with a name of its own.
pub(crate) fn of_kinds(kinds: &[u8], name: &str) -> Vec<ExperimentVerdict> {
    let entry = |(index, kind): (usize, &u8)| {
        let entry = match kind % 7 {
            0 => equivalent(),
            1 => regressed(),
            2 => invalid(),
            3 => inconclusive(),
            4 => failed_check(),
            5 => erratic(),
            _ => explained(),
        };
        ExperimentVerdict {
            name: format!("{name} {index}"),
            ..entry
        }
    };
    kinds.iter().enumerate().map(entry).collect()
}

/// A regression that was confirmed, with its likely cause and all that an
/// experiment can say about itself.
#[expect(clippy::too_many_lines, reason = "one literal with all of its fields")]
pub(crate) fn explained() -> ExperimentVerdict {
    let mut entry = regressed();
    entry.design = DesignPlan::Sliced {
        turn_min: Nanos::from_millis(100),
        turn_max: Nanos::from_millis(500),
    };
    entry.goals[0].confirmation = Some(Confirmation {
        searched: Verdict::Regressed,
        search_change: Some(Change {
            estimate: 0.053,
            lower: 0.031,
            upper: 0.074,
        }),
        pairs_wanted: 8,
        looked: Some(8),
        pairs: 8,
        pair_changes: vec![0.05; 8],
        change: Some(Change {
            estimate: 0.05,
            lower: 0.044,
            upper: 0.056,
        }),
        pooled: Some(Change {
            estimate: 0.051,
            lower: 0.045,
            upper: 0.057,
        }),
        p_value: Some(0.000_01),
        confirmed: Some(true),
    });
    entry.goals[1].sensitivity = Some(Sensitivity {
        wilcoxon_p: 0.0078,
        hodges_lehmann: -0.002,
        disagrees: true,
    });
    entry.goals.push(goal(
        GoalMetric::Loss,
        false,
        Verdict::Equivalent,
        0.0,
        [0.0001, -0.0002, 0.0004],
    ));
    entry.moved = [
        ("total_rss_bytes:mean", "B", 12e6, 30e6, 1.5, 1.4),
        (
            "relay_buffer_events{kind=|odd|}:mean",
            "",
            0.0,
            3.0,
            f64::INFINITY,
            f64::INFINITY,
        ),
    ]
    .map(
        |(series, unit, baseline_mean, comparison_mean, change, at_least)| Moved {
            comparison: "comparison".to_owned(),
            series: series.to_owned(),
            unit,
            baseline_mean,
            comparison_mean,
            change,
            at_least,
            p_adjusted: 0.000_2,
            pairs: 8,
        },
    )
    .to_vec();
    entry.moved_of = 214;
    entry.pairs_valid = 9;
    entry.pairs_discarded = 1;
    entry.discards = vec![ArmDiscards {
        variant: "baseline".to_owned(),
        runs: 1,
        target_failures: 0,
    }];
    entry.erratic_signs = vec![ErraticSign::TwoGroups {
        variant: "comparison".to_owned(),
        lower: 5,
        upper: 3,
        apart: 0.04,
    }];
    entry.advice = vec!["runs of 12 s would decide in about 6 min".to_owned()];
    entry
}

/// Four cells of a matrix of two parameters.
pub(crate) fn matrix() -> Vec<ExperimentVerdict> {
    let cells = [
        ("8 MiB", "100", Verdict::Equivalent, [0.001, -0.004, 0.004]),
        ("8 MiB", "1k", Verdict::Regressed, [0.02, 0.01, 0.03]),
        ("64 MiB", "100", Verdict::Equivalent, [0.002, -0.003, 0.004]),
        ("64 MiB", "1k", Verdict::Regressed, [0.04, 0.03, 0.05]),
    ];
    let cell = |(size, contexts, verdict, change): (&str, &str, Verdict, [f64; 3])| {
        let parameters = [("size", size), ("contexts", contexts)];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let name = format!("interner_size-{size}_contexts-{contexts}");
        ExperimentVerdict {
            family: Some(FamilyPlan {
                name: "interner".to_owned(),
                parameters: parameters.to_vec(),
            }),
            ..experiment(&name, verdict, change)
        }
    };
    cells.map(cell).to_vec()
}
