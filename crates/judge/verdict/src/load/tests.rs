//! A load is judged by its evidence alone.

use stillwell_metric::{Remedy, TlsWish};
use stillwell_units::Nanos;

use super::*;

/// Evidence of a load without warnings.
fn clean() -> LoadEvidence {
    LoadEvidence {
        measured: Nanos::from_secs(10),
        strain: LoadStrain {
            busy_share: 0.5,
            lateness_p99: Nanos::new(50_000),
            service_median: Nanos::from_millis(3),
        },
        steal_share: Some(0.0),
        due: 1000,
        requested: 1000,
        begun: 1000,
        sent: 1000,
        answers: 1000,
        answers_with_warmup: 1000,
        ..LoadEvidence::default()
    }
}

fn codes(warnings: &[LoadWarning]) -> Vec<&'static str> {
    warnings.iter().map(LoadWarning::code).collect()
}

#[test]
fn a_generator_is_warned_about_by_what_it_distorts() {
    let warnings = |pacing: LoadPacing, busy_share: f64, late_ms: u64| {
        let strain = LoadStrain {
            busy_share,
            lateness_p99: Nanos::from_millis(late_ms),
            service_median: Nanos::from_millis(3),
        };
        codes(&strain_warnings(pacing, &strain))
    };
    for pacing in [LoadPacing::Closed, LoadPacing::Deferred, LoadPacing::Open] {
        assert_eq!(warnings(pacing, 0.89, 0), [""; 0], "{pacing:?}");
    }
    assert_eq!(warnings(LoadPacing::Open, 0.89, 1), ["sends_bunched"]);
    assert_eq!(warnings(LoadPacing::Deferred, 0.89, 1), [""; 0]);
    assert_eq!(
        warnings(LoadPacing::Open, 0.95, 2),
        ["generator_saturated", "generator_late"]
    );
    assert_eq!(warnings(LoadPacing::Closed, 0.95, 0), ["generator_limit"]);
    // Latency does not count from the intended time there.
    assert_eq!(
        warnings(LoadPacing::Deferred, 0.95, 2),
        ["generator_saturated"]
    );
}

#[test]
fn lateness_bunches_requests_before_it_distorts_latencies() {
    for (lateness_us, expected) in [
        (200, [""; 0].as_slice()),
        (201, &["sends_bunched"]),
        (1000, &["sends_bunched"]),
        (2000, &["generator_late"]),
    ] {
        let mut evidence = clean();
        evidence.strain.lateness_p99 = Nanos::new(lateness_us * 1000);
        let warnings = codes(&load_warnings(LoadPacing::Open, &evidence));
        assert_eq!(warnings, expected, "{lateness_us} µs");
    }
}

#[test]
fn shares_of_less_than_half_a_second_cause_no_warning() {
    let mut evidence = clean();
    evidence.measured = Nanos::from_millis(499);
    evidence.strain.busy_share = 1.0;
    evidence.cpu_wait_share = 1.0;
    evidence.steal_share = Some(1.0);
    assert!(load_warnings(LoadPacing::Open, &evidence).is_empty());
}

#[test]
fn every_warning_has_evidence_on_both_sides_of_its_limit() {
    type Change = fn(&mut LoadEvidence);
    let cases: [(Change, &[&str]); 18] = [
        (|_| {}, &[]),
        (|evidence| evidence.strain.busy_share = 0.9, &[]),
        (
            |evidence| evidence.strain.busy_share = 0.91,
            &["generator_saturated"],
        ),
        (|evidence| evidence.cpu_wait_share = 0.05, &[]),
        (
            |evidence| evidence.cpu_wait_share = 0.06,
            &["cpu_starvation"],
        ),
        (|evidence| evidence.steal_share = Some(0.02), &[]),
        (|evidence| evidence.steal_share = Some(0.03), &["cpu_steal"]),
        (|evidence| evidence.begun = 990, &[]),
        (|evidence| evidence.begun = 989, &["rate_not_reached"]),
        (|evidence| evidence.source.wait_share = 0.01, &[]),
        (
            |evidence| evidence.source.wait_share = 0.02,
            &["source_slow"],
        ),
        (|evidence| evidence.headers_dropped = 1, &["export_failed"]),
        (
            |evidence| evidence.export_failures = vec!["why".to_owned()],
            &["export_failed"],
        ),
        (
            |evidence| (evidence.malformed, evidence.answers) = (1, 0),
            &["no_answer"],
        ),
        (
            |evidence| {
                (evidence.malformed, evidence.answer_trouble) =
                    (1, Some(Trouble::plain("why".to_owned())))
            },
            &["malformed"],
        ),
        // A source that is slow is why less was begun.
        (
            |evidence| (evidence.source.wait_share, evidence.begun) = (0.5, 500),
            &["source_slow"],
        ),
        (
            |evidence| (evidence.answers, evidence.begun, evidence.has_warmup) = (0, 0, true),
            &["all_warmup", "rate_not_reached"],
        ),
        (
            |evidence| {
                (
                    evidence.answers,
                    evidence.begun,
                    evidence.answers_with_warmup,
                ) = (0, 0, 0)
            },
            &["no_request", "rate_not_reached"],
        ),
    ];
    for (number, (change, expected)) in cases.into_iter().enumerate() {
        let mut evidence = clean();
        change(&mut evidence);
        let warnings = load_warnings(LoadPacing::Open, &evidence);
        assert_eq!(codes(&warnings), expected, "case {number}");
    }
}

#[test]
fn a_load_without_answers_names_the_first_trouble_and_its_remedy() {
    let remedy = Some(Remedy {
        wish: TlsWish::Trust,
        of_proxy: false,
    });
    let mut evidence = clean();
    evidence.answers = 0;
    evidence.first_trouble = Some(Trouble {
        why: "the certificate is not trusted".to_owned(),
        remedy,
    });
    let warnings = load_warnings(LoadPacing::Closed, &evidence);
    assert_eq!(codes(&warnings), ["no_answer"]);
    assert_eq!(warnings[0].remedy(), remedy);
    assert_eq!(
        warnings[0].to_string(),
        "no request was answered: the certificate is not trusted"
    );
}

#[test]
fn requests_that_were_not_handed_out_are_the_reason_for_none() {
    let mut evidence = LoadEvidence {
        requested: 5,
        ..LoadEvidence::default()
    };
    evidence.source.waits_with_warmup = 3;
    let warnings = load_warnings(LoadPacing::Closed, &evidence);
    assert_eq!(
        warnings[0].to_string(),
        "no request was sent: the request source supplied none"
    );
}
