//! Views as they look.

use stillwell_metric::{Outcome, TimeState};
use stillwell_plan::load::LoadPacing;
use stillwell_run::LoadPhase;
use stillwell_units::{Nanos, float_from_u64};

use super::super::view::{Limits, Second, Strain, View};
use super::{Look, lines};

const WIDE: Look = Look {
    columns: 100,
    rows: 30,
    color: false,
    unicode: true,
};

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
    shares[TimeState::Ahead.index()] = 0.55;
    shares[TimeState::Blocked.index()] = 0.03;
    shares[TimeState::Running.index()] = 0.42;
    View {
        target: "http://127.0.0.1:8080/a/path?that=is&rather=long".to_owned(),
        limits: Limits {
            warmup: Nanos::from_secs(5),
            measure: Some(Nanos::from_secs(30)),
            requests: None,
            has_schedule: true,
            pacing: LoadPacing::Open,
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
        own_lateness: Some(Nanos::new(12_300)),
        warning: None,
    }
}

fn drawn(view: &View, look: Look) -> String {
    let lines = lines(view, look);
    assert!(lines.iter().all(|line| line.width() < look.columns.max(1)));
    let texts = lines.iter().map(|line| line.text(look.color));
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_wide_terminal() {
    insta::assert_snapshot!(drawn(&view(), WIDE));
}

#[test]
fn a_narrow_terminal_without_unicode() {
    let look = Look {
        columns: 60,
        unicode: false,
        ..WIDE
    };
    insta::assert_snapshot!(drawn(&view(), look));
}

#[test]
fn colours_stand_where_they_are_wanted() {
    let look = Look {
        color: true,
        ..WIDE
    };
    insta::assert_snapshot!(drawn(&view(), look).replace('\x1b', "ESC"));
}

#[test]
fn a_tiny_terminal_shows_one_line() {
    for (columns, rows) in [(39, 30), (100, 9), (1, 1)] {
        let look = Look {
            columns,
            rows,
            ..WIDE
        };
        assert_eq!(lines(&view(), look).len(), 1, "{columns} x {rows}");
    }
    let look = Look { rows: 5, ..WIDE };
    insta::assert_snapshot!(drawn(&view(), look));
}

#[test]
fn no_width_is_too_small() {
    for columns in 0..130 {
        for rows in [0, 3, 30] {
            drawn(
                &view(),
                Look {
                    columns,
                    rows,
                    ..WIDE
                },
            );
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
    view.own_lateness = None;
    view.shares = [0.0; TimeState::ALL.len()];
    view.shares[TimeState::Running.index()] = 0.996;
    view.shares[TimeState::Blocked.index()] = 0.004;
    view.warning = Some(Strain::Busy);
    insta::assert_snapshot!(drawn(&view, WIDE));
}

#[test]
fn before_and_after() {
    let mut view = view();
    view.strip.clear();
    view.phase = None;
    let connecting = drawn(&view, WIDE);
    view.phase = Some(LoadPhase::Warmup);
    view.elapsed = Nanos::from_millis(2_010);
    view.strip.push_back(Second {
        rate: 20_000.0,
        has_failures: false,
        latency: None,
    });
    let warmup = drawn(&view, WIDE);
    view.phase = Some(LoadPhase::Drain);
    view.warning = Some(Strain::Late);
    let drain = drawn(&view, WIDE);
    insta::assert_snapshot!(format!("{connecting}\n\n{warmup}\n\n{drain}"));
}
