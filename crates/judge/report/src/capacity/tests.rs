//! Reports of a search for each of its ends.

use stillwell_plan::WorkUnit;
use stillwell_stats::Estimate;
use stillwell_stats::capacity::usl::Usl;
use stillwell_stats::capacity::{CapacityFound, SearchEnd, Votes};
use stillwell_verdict::capacity::KneeFound;

use super::*;
use crate::{Format, Style};

fn probe(rate: f64, observed: Observed, p99: f64, why: Option<&str>) -> CapacityProbe {
    CapacityProbe {
        purpose: Some(Purpose::Narrow),
        rate: Some(rate),
        connections: None,
        reached: rate * 0.999,
        observed,
        why: why.map(str::to_owned),
        figures: vec![
            (CapacityFigure::Latency(0.5), Some(400_000.0)),
            (CapacityFigure::Latency(0.99), Some(p99)),
            (CapacityFigure::Errors, Some(0.0002)),
        ],
    }
}

fn report(end: SearchEnd) -> CapacityReport {
    let estimate = Estimate {
        value: 5012.0,
        lower: 4960.0,
        upper: 5060.0,
    };
    let votes = |rate, held, failed| Some(Votes { rate, held, failed });
    CapacityReport {
        validity: stillwell_plan::Validity::Normal,
        target: "http://127.0.0.1:10000/".to_owned(),
        unit: WorkUnit::Requests,
        bounds: vec!["p99<20ms".parse().unwrap(), "errors<0.1%".parse().unwrap()],
        probes: vec![
            probe(4000.0, Observed::Held, 1.2e6, None),
            probe(8000.0, Observed::Failed, f64::INFINITY, Some("p99 never")),
            probe(
                6000.0,
                Observed::Unclear,
                3e7,
                Some("the \"generator\" was the limit"),
            ),
        ],
        answer: Some(CapacityAnswer::Bounds(CapacityFound {
            end,
            capacity: Some(estimate),
            held: votes(4890.0, 3, 0),
            failed: votes(5170.0, 1, 2),
            probes: 3,
            unclear: 1,
        })),
        within: 0.03,
        level: Level::NINETY_FIVE,
        command: "stillwell find-capacity http://127.0.0.1:10000/".to_owned(),
        version: "0".to_owned(),
        elapsed: Nanos::from_secs(52),
    }
}

#[test]
fn a_confirmed_answer() {
    let report = report(SearchEnd::Confirmed);
    insta::assert_snapshot!(
        "terminal",
        FullReport::from(&report).render(Format::Terminal, Style::default())
    );
    insta::assert_snapshot!("csv", capacity_csv(&report));
    insta::assert_snapshot!("json", capacity_json(&report));
}

#[test]
fn a_saved_search_is_read_back() {
    let mut saved = report(SearchEnd::AboveMaximum);
    let read = read_capacity_json(&capacity_json(&saved)).unwrap();
    // All columns are in the text.
    for probe in &mut saved.probes {
        probe.figures = CapacityProbe::COLUMNS
            .into_iter()
            .chain(saved.bounds.iter().map(|bound| bound.figure))
            .map(|figure| (figure, probe.figure(figure)))
            .collect();
    }
    assert_eq!(read, saved);
    assert_eq!(
        read.probes[1].figure(CapacityFigure::Latency(0.99)),
        Some(f64::INFINITY)
    );
    for end in SearchEnd::ALL {
        let saved = capacity_json(&report(end));
        let read = read_capacity_json(&saved).unwrap();
        assert_eq!(capacity_json(&read), saved);
    }
    let mut open = report(SearchEnd::Confirmed);
    open.answer = None;
    assert_eq!(
        read_capacity_json(&capacity_json(&open)).unwrap().answer,
        None
    );
}

#[test]
fn a_text_that_is_no_saved_search_names_what_is_wrong() {
    let text = capacity_json(&report(SearchEnd::Confirmed));
    for (text, expected) in [
        (
            "{".to_owned(),
            "it is not JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("{}".to_owned(), "its schema is not stillwell/capacity/v1"),
        (
            text.replace("\"level\": 0.95", "\"level\": 2"),
            "the value of `level` is missing or wrong",
        ),
        (
            text.replace("p99<20ms", "p99"),
            "the value of `bounds` is missing or wrong",
        ),
    ] {
        assert_eq!(read_capacity_json(&text).unwrap_err().to_string(), expected);
    }
}

/// The last section.
fn answer(text: &str) -> &str {
    text.rsplit("\n\n").next().unwrap_or_default()
}

#[test]
fn every_other_end_is_reported_as_no_capacity() {
    for (end, expected) in [
        (SearchEnd::NotConfirmed, "NOT confirmed"),
        (SearchEnd::AboveMaximum, "raise --to"),
        (SearchEnd::BelowMinimum, "lower --from"),
        (SearchEnd::GeneratorLimit, "was not measured reliably"),
        (SearchEnd::BudgetSpent, "--max-probes ended the search"),
        (SearchEnd::TimeSpent, "--max-time ended the search"),
        (SearchEnd::Stopped, "interrupted before the end"),
    ] {
        let text = FullReport::from(&report(end)).render(Format::Terminal, Style::default());
        assert!(answer(&text).contains(expected), "{text}");
    }
    let mut interrupted = report(SearchEnd::Confirmed);
    interrupted.answer = None;
    let text = FullReport::from(&interrupted).render(Format::Terminal, Style::default());
    let expected = "! no answer: ended or interrupted";
    assert!(answer(&text).starts_with(expected), "{text}");
}

#[test]
fn a_search_with_one_side_only_reports_which() {
    let votes = |rate, held, failed| Some(Votes { rate, held, failed });
    for (held, failed, expected) in [
        (
            votes(4000.0, 2, 0),
            None,
            "at least 4,000 requests/s: http://127.0.0.1:10000/ met all bounds at every probed \
             rate, not confirmed: --max-probes ended the search",
        ),
        (
            None,
            votes(200.0, 0, 1),
            "below 200 requests/s: http://127.0.0.1:10000/ failed a bound at every probed rate",
        ),
        (None, None, "no answer: no capacity of"),
    ] {
        let mut report = report(SearchEnd::BudgetSpent);
        let Some(CapacityAnswer::Bounds(result)) = &mut report.answer else {
            unreachable!("it is a search for bounds");
        };
        (result.capacity, result.held, result.failed) = (None, held, failed);
        let text = FullReport::from(&report).render(Format::Terminal, Style::default());
        let joined = answer(&text).split_whitespace().collect::<Vec<_>>();
        assert!(joined.join(" ").contains(expected), "{text}");
    }
}

/// The headline was "at least nothing".
#[test]
fn a_search_whose_lowest_rate_stays_unclear_has_no_answer() {
    let mut report = report(SearchEnd::GeneratorLimit);
    let Some(CapacityAnswer::Bounds(result)) = &mut report.answer else {
        unreachable!("it is a search for bounds");
    };
    (result.capacity, result.held, result.failed) = (None, None, None);
    let text = FullReport::from(&report).render(Format::Terminal, Style::default());
    let joined = answer(&text).split_whitespace().collect::<Vec<_>>();
    let expected = "! no answer: too few probes of http://127.0.0.1:10000/ at the lowest rate were \
                    conclusive; lower --from";
    assert!(joined.join(" ").starts_with(expected), "{text}");
}

#[test]
fn a_knee_and_its_peak() {
    let law = |n: f64| 500.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.005 * n * (n - 1.0));
    let points = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, law(n) * (1.0 + 0.01 * (n * 3.0).sin())));
    let law = Usl::fit(&points).unwrap();
    let mut report = report(SearchEnd::Confirmed);
    report.bounds.clear();
    report.answer = Some(CapacityAnswer::Knee(Ok(KneeFound {
        knee: law.knee(Level::NINETY_FIVE),
        peak: law.peak(Level::NINETY_FIVE),
        law,
        connections_max: 16,
        left_out: 0,
    })));
    for probe in &mut report.probes {
        (probe.rate, probe.purpose, probe.connections) = (None, None, Some(4));
    }
    insta::assert_snapshot!(
        "knee",
        FullReport::from(&report).render(Format::Terminal, Style::default())
    );
    let read = read_capacity_json(&capacity_json(&report)).unwrap();
    assert_eq!(capacity_json(&read), capacity_json(&report));
    if let Some(CapacityAnswer::Knee(Ok(knee))) = &mut report.answer {
        knee.left_out = 2;
    }
    let text = FullReport::from(&report).render(Format::Terminal, Style::default());
    assert!(text.contains("\n  2 of "), "{text}");
    report.answer = Some(CapacityAnswer::Knee(Err(
        "the throughputs do not follow the Universal Scalability Law".to_owned(),
    )));
    let text = FullReport::from(&report).render(Format::Terminal, Style::default());
    let expected = "! no knee: the throughputs do not follow the Universal Scalability Law";
    assert!(answer(&text).starts_with(expected), "{text}");
}
