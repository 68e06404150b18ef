//! The view of a suite.

use stillwell_plan::Phase;
use stillwell_run::RunTotals;
use stillwell_units::Nanos;

use super::*;
use crate::progress::live::LiveView;
use crate::progress::live::frames::{drawn, look};

fn at(seconds: u64) -> Moment {
    Moment::new(seconds * 1_000_000_000)
}

fn figures(rate: f64, cpu: f64) -> RunFigures {
    RunFigures {
        rate: Some(rate),
        requested: Some(10_000.0),
        latency: Some([1_230_000, 8_940_000].map(Nanos::new)),
        cpu: Some(cpu),
        memory: Some(48.3e6),
        received: 0,
    }
}

fn estimate(name: &str, metric: &str, estimate: f64, half: f64) -> EstimateRow {
    EstimateRow {
        name: name.to_owned(),
        metric: metric.to_owned(),
        change: Change {
            estimate,
            lower: estimate - half,
            upper: estimate + half,
        },
        tolerance: 0.05,
        scale: Scale::Ratio,
    }
}

/// The seventh pair of the second of three experiments, 6 s into a measured phase of 10 s.
fn view() -> SuiteView {
    let mut view = SuiteView::default();
    view.ended.push(EndedRow {
        name: "idle".to_owned(),
        verdict: Verdict::Equivalent,
        change: Some((
            "cpu".to_owned(),
            estimate("", "", 0.002, 0.011).change,
            Scale::Ratio,
        )),
    });
    view.experiment("syslog_to_http", (2, 3));
    view.pair(
        "pair 7 of 8 to 20".to_owned(),
        &["comparison", "baseline"],
        DesignPlan::Paired,
    );
    view.run_started("comparison");
    view.row("baseline").figures = figures(9_998.0, 0.612);
    view.row("comparison").figures = figures(9_420.0, 0.871);
    let phase = Progress::Phase {
        phase: Phase::Measure,
        ends_in: Some(Nanos::from_secs(10)),
    };
    view.run_progress(&phase, at(100));
    let minutes = |count: u64| Nanos::from_secs(60 * count);
    let left = TimeLeft {
        least: minutes(1),
        likely: minutes(2),
        most: minutes(9),
    };
    view.left = Some((left, at(96)));
    for (pairs, half) in [(2, 0.6), (3, 0.21), (4, 0.11), (5, 0.07), (6, 0.05)] {
        let name = format!("{pairs} pairs");
        view.estimates
            .push(estimate(&name, "cpu_per_event", 0.31, half));
    }
    for (metric, change, half) in [
        ("cpu_per_event", 0.31, 0.05),
        ("memory", -0.002, 0.004),
        ("egress_throughput", -0.06, 0.02),
    ] {
        view.goals.push(estimate(metric, metric, change, half));
    }
    view
}

#[test]
fn a_terminal_of_80_by_24() {
    insta::assert_snapshot!(drawn(&view(), at(106), look(80, 24)));
}

#[test]
fn a_terminal_of_200_by_50() {
    insta::assert_snapshot!(drawn(&view(), at(106), look(200, 50)));
}

#[test]
fn tab_shows_goals_and_then_experiments() {
    let mut view = view();
    let panels = [0, 1].map(|_| {
        view.show_next_panel();
        drawn(&view, at(106), look(80, 24))
    });
    insta::assert_snapshot!(panels.join("\n\n"));
    view.show_next_panel();
    assert_eq!(view.panel, Panel::Estimate);
}

#[test]
fn a_pause_is_announced_and_stops_the_remaining_time() {
    let mut view = view();
    view.toggle_pause(at(106));
    assert!(drawn(&view, at(106), look(80, 24)).contains("pauses after this pair"));
    view.waiting_since = Some(at(110));
    let paused = drawn(&view, at(500), look(80, 24));
    assert!(paused.contains("paused: p continues"), "{paused}");
    assert!(paused.contains("46 s to 8 min 46 s left"), "{paused}");
    view.resume(at(500));
    let resumed = drawn(&view, at(501), look(80, 24));
    assert!(resumed.contains("45 s to 8 min 45 s left"), "{resumed}");
}

#[test]
fn before_the_first_pair_and_on_a_low_terminal() {
    let mut first = SuiteView::default();
    first.experiment("idle", (1, 1));
    first.step = "probe".to_owned();
    let first = drawn(&first, at(1), look(80, 24));
    insta::assert_snapshot!(format!(
        "{first}\n\n{}",
        drawn(&view(), at(106), look(100, 8))
    ));
}

#[test]
fn runs_that_are_made_at_once_each_have_their_figures() {
    let mut view = SuiteView::default();
    view.experiment("idle", (1, 1));
    view.pair(
        "pair 1 of 4".to_owned(),
        &["comparison", "baseline"],
        DesignPlan::Duet,
    );
    let variants = [("comparison", 1_000), ("baseline", 2_000)];
    for (variant, _) in variants {
        view.run_started(variant);
    }
    for (variant, rate) in variants {
        let phase = Progress::Phase {
            phase: Phase::Measure,
            ends_in: Some(Nanos::from_secs(10)),
        };
        view.run_progress_of(variant, &phase, at(100));
        for second in 0..3 {
            let beat = Progress::Beat {
                at: at(100 + second),
                totals: RunTotals {
                    events_sent: rate * second,
                    ..RunTotals::default()
                },
                latencies: None,
            };
            view.run_progress_of(variant, &beat, at(100 + second));
        }
    }
    let frame = drawn(&view, at(103), look(80, 24));
    for part in [
        "both at once: measuring",
        "▶ baseline    2,000/s",
        "▶ comparison  1,000/s",
    ] {
        assert!(frame.contains(part), "{part}: {frame}");
    }
}

#[test]
fn while_nothing_runs_the_view_shows_what_happens() {
    let mut view = view();
    view.running = None;
    for status in ["building HEAD", "waiting up to 5 s for a quieter machine"] {
        view.waits_for(status);
        assert!(drawn(&view, at(106), look(80, 24)).contains(status));
    }
    let fresh = drawn(&SuiteView::default(), at(0), look(80, 24));
    assert!(fresh.contains("preparing"), "{fresh}");
}

#[test]
fn no_size_is_too_small() {
    for columns in [1, 3, 20, 59, 60, 80, 149, 150, 220] {
        for rows in [1, 2, 11, 12, 13, 24, 50] {
            drawn(&view(), at(106), look(columns, rows));
        }
    }
}

#[test]
fn rows_of_variants_keep_their_places_in_any_order_of_a_pair() {
    let mut view = view();
    let names = |view: &SuiteView| {
        view.variants
            .iter()
            .map(|row| row.name.clone())
            .collect::<Vec<_>>()
    };
    let before = names(&view);
    assert_eq!(before[0], "baseline");
    view.pair(
        "pair 8".to_owned(),
        &["baseline", "comparison"],
        DesignPlan::Paired,
    );
    assert_eq!(names(&view), before);
}

#[test]
fn control_characters_of_a_name_do_not_steer_the_terminal() {
    let mut view = view();
    view.experiment("a\u{1b}[2Jb\u{7}\u{9b}c", (1, 2));
    let frame = drawn(&view, at(106), look(80, 24));
    assert!(
        frame.chars().all(|c| !c.is_control() || c == '\n'),
        "{frame:?}"
    );
}
