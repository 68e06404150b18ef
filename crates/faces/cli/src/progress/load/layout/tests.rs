//! Views as they look.

use stillwell_metric::{Outcome, TimeState, empty_histogram};
use stillwell_plan::Validity;
use stillwell_plan::load::LoadPacing;
use stillwell_run::LoadPhase;
use stillwell_units::{Moment, Nanos, float_from_u64};
use stillwell_verdict::LoadRules;

use super::super::view::{Limits, Second, Strain, View};
use crate::progress::live::frames::{drawn, look};
use crate::progress::live::{LiveView, Look};
use crate::progress::times::LatencyClasses;

const NOW: Moment = Moment::new(0);

/// An open loop in its twelfth second; the target stalled in the seventh.
fn view() -> View {
    let mut ended = [0; Outcome::ALL.len()];
    ended[Outcome::Ok.index()] = 239_950;
    ended[Outcome::Status5xx.index()] = 20;
    ended[Outcome::TimedOut.index()] = 6;
    let mut ended_last = [0; Outcome::ALL.len()];
    ended_last[Outcome::Ok.index()] = 19_994;
    ended_last[Outcome::Status5xx.index()] = 4;
    let second = |index: u64| {
        let is_stalled = index == 7;
        Second {
            rate: if is_stalled { 4000.0 } else { 19_998.0 } + float_from_u64(index),
            has_failures: is_stalled,
            latency: Some(if is_stalled {
                [900_000, 700_000_000, 800_000_000].map(Nanos::new)
            } else {
                [182_000, 1_200_000 + index * 9000, 9_310_000].map(Nanos::new)
            }),
        }
    };
    let mut shares = [0.0; TimeState::ALL.len()];
    shares[TimeState::Idle.index()] = 0.55;
    shares[TimeState::Blocked.index()] = 0.03;
    shares[TimeState::Running.index()] = 0.42;
    View {
        target: "http://127.0.0.1:8080/a/path?that=is&rather=long".to_owned(),
        limits: Limits {
            warmup: Nanos::from_secs(5),
            measure: Some(Nanos::from_secs(30)),
            requests: None,
            has_schedule: true,
            constant_rate: None,
            rules: LoadRules {
                pacing: LoadPacing::Open,
                validity: Validity::Normal,
            },
        },
        phase: Some(LoadPhase::Measure),
        elapsed: Nanos::from_millis(12_030),
        begun: 240_020,
        ended,
        ended_last,
        in_flight: 44,
        requested_rate: Some(20_000.0),
        received: 13.0e6,
        sent: 2.1e6,
        strip: (0..12).map(second).collect(),
        shares,
        generator_lateness: Some(Nanos::new(12_300)),
        warning: None,
        times: times(),
        is_ending: false,
    }
}

fn times() -> LatencyClasses {
    let mut histogram = empty_histogram();
    for (time, count) in [
        (150_000, 120_000),
        (182_000, 119_000),
        (1_200_000, 980),
        (700_000_000, 20),
    ] {
        histogram.record_n(time, count).unwrap();
    }
    let mut times = LatencyClasses::default();
    times.add(&histogram);
    times
}

#[test]
fn a_terminal_of_80_by_24() {
    insta::assert_snapshot!(drawn(&view(), NOW, look(80, 24)));
}

#[test]
fn a_terminal_of_200_by_50() {
    insta::assert_snapshot!(drawn(&view(), NOW, look(200, 50)));
}

#[test]
fn a_low_and_narrow_terminal_without_unicode() {
    let look = Look {
        unicode: false,
        ..look(60, 15)
    };
    insta::assert_snapshot!(drawn(&view(), NOW, look));
}

#[test]
fn a_tiny_terminal_shows_one_row() {
    for (columns, rows) in [(39, 30), (100, 9), (1, 1)] {
        assert_eq!(view().height(look(columns, rows)), 1, "{columns} x {rows}");
    }
    insta::assert_snapshot!(drawn(&view(), NOW, look(100, 5)));
}

#[test]
fn no_size_is_too_small() {
    for columns in [1, 2, 13, 39, 40, 41, 60, 79, 80, 130] {
        for rows in [1, 3, 10, 21, 22, 30] {
            drawn(&view(), NOW, look(columns, rows));
        }
    }
}

#[test]
fn a_closed_loop_whose_generator_is_the_limit() {
    let mut view = view();
    view.limits.has_schedule = false;
    view.limits.measure = None;
    view.limits.requests = Some(1_000_000);
    view.requested_rate = None;
    view.generator_lateness = None;
    view.shares = [0.0; TimeState::ALL.len()];
    view.shares[TimeState::Running.index()] = 0.996;
    view.shares[TimeState::Blocked.index()] = 0.004;
    view.warning = Some(Strain::Busy);
    insta::assert_snapshot!(drawn(&view, NOW, look(100, 20)));
}

#[test]
fn before_and_after() {
    let mut view = view();
    view.strip.clear();
    view.phase = None;
    let connecting = drawn(&view, NOW, look(100, 20));
    view.phase = Some(LoadPhase::Warmup);
    view.elapsed = Nanos::from_millis(2_010);
    view.strip.push_back(Second {
        rate: 20_000.0,
        has_failures: false,
        latency: None,
    });
    let warmup = drawn(&view, NOW, look(100, 20));
    view.phase = Some(LoadPhase::Drain);
    view.warning = Some(Strain::Late);
    let drain = drawn(&view, NOW, look(100, 20));
    insta::assert_snapshot!(format!("{connecting}\n\n{warmup}\n\n{drain}"));
}

#[test]
fn a_constant_rate_is_shown_as_requested_and_others_as_counted() {
    let limits = |constant_rate, has_schedule| Limits {
        has_schedule,
        constant_rate,
        ..view().limits
    };
    for (limits, counted, shown) in [
        (limits(Some(500.0), true), 499.0, Some(500.0)),
        (limits(Some(500.0), true), 0.0, Some(0.0)),
        (limits(None, true), 499.0, Some(499.0)),
        (limits(None, false), 0.0, None),
    ] {
        assert_eq!(limits.requested_rate(counted), shown);
    }
}
