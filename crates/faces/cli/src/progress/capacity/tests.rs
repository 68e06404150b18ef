//! The view of a search.

use stillwell_metric::{Histogram, empty_histogram};
use stillwell_plan::Phase;
use stillwell_run::RunTotals;

use super::*;
use crate::progress::live::frames::{drawn, look};

fn latencies() -> Histogram<u64> {
    let mut latencies = empty_histogram();
    for micros in [900, 1_100, 1_200, 1_300, 9_000] {
        latencies.saturating_record(micros * 1_000);
    }
    latencies
}

fn view() -> SearchView {
    let mut run = SuiteView::single("tcp");
    let at = |seconds: u64| Moment::new(seconds * 1_000_000_000);
    let phase = Progress::Phase {
        phase: Phase::Measure,
        ends_in: Some(Nanos::from_secs(8)),
    };
    run.run_progress(&phase, at(20));
    for beat in 0..3 {
        let progress = Progress::Beat {
            at: at(20 + beat),
            totals: RunTotals {
                events_sent: 4_000 * beat,
                bytes_sent: 0,
                bytes_received: 1 << 20,
                target_cpu: Some(Nanos::from_millis(700 * beat)),
                rss_bytes: Some(11 << 20),
                scheduled_units: [4_100 * beat, 4_000 * beat],
            },
            latencies: Some(Box::new(latencies())),
        };
        run.run_progress(&progress, at(20 + beat));
    }
    SearchView {
        number: 7,
        result: "between 3,162 and 5,623 requests/s".to_owned(),
        left: Some((Nanos::from_secs(90), at(10))),
        probe: Some(ProbeView::Run(Box::new(run))),
    }
}

#[test]
fn the_head_shows_the_result_and_the_rest_the_probe() {
    let now = Moment::new(23_500_000_000);
    let frames =
        [(80, 24), (200, 50)].map(|(columns, rows)| drawn(&view(), now, look(columns, rows)));
    insta::assert_snapshot!(frames.join("\n\n"));
}

#[test]
fn no_size_is_too_small() {
    for columns in [1, 2, 30, 59, 60, 80, 100] {
        for rows in [1, 2, 3, 12, 24] {
            drawn(&view(), Moment::new(0), look(columns, rows));
        }
    }
}
