//! A load is judged by its evidence alone.

use stillwell_metric::{ClockDrift, Remedy, TlsWish};
use stillwell_units::Nanos;

use super::*;

fn usual(pacing: LoadPacing) -> LoadRules {
    LoadRules {
        pacing,
        validity: Validity::Normal,
    }
}

/// Evidence of a load without warnings.
fn clean() -> LoadEvidence {
    LoadEvidence {
        measured: Nanos::from_secs(10),
        strain: LoadStrain {
            busy_share: 0.5,
            lateness_p99: Nanos::new(50_000),
            lateness_count: 1000,
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
            lateness_count: 1000,
            service_median: Nanos::from_millis(3),
        };
        codes(&strain_warnings(usual(pacing), &strain))
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
        let warnings = codes(&load_warnings(usual(LoadPacing::Open), &evidence));
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
    assert!(load_warnings(usual(LoadPacing::Open), &evidence).is_empty());
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
        let warnings = load_warnings(usual(LoadPacing::Open), &evidence);
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
    let warnings = load_warnings(usual(LoadPacing::Closed), &evidence);
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
    let warnings = load_warnings(usual(LoadPacing::Closed), &evidence);
    assert_eq!(
        warnings[0].to_string(),
        "no request was sent: the request source supplied none"
    );
}

/// With few requests the 99th percentile is one request.
#[test]
fn few_requests_are_not_called_bunched() {
    for (count, expected) in [(299, [""; 0].as_slice()), (300, &["sends_bunched"])] {
        let mut evidence = clean();
        evidence.strain.lateness_p99 = Nanos::from_millis(1);
        evidence.strain.lateness_count = count;
        let warnings = load_warnings(usual(LoadPacing::Open), &evidence);
        assert_eq!(codes(&warnings), expected, "{count}");
    }
}

#[test]
fn validity_halves_the_limits_of_a_load_or_lets_what_exceeds_them_count() {
    let mut evidence = clean();
    evidence.cpu_wait_share = 0.03;
    for (validity, wait, expected) in [
        (Validity::Strict, 0.02, &[][..]),
        (Validity::Strict, 0.03, &[("cpu_starvation", true)][..]),
        (Validity::Normal, 0.03, &[]),
        (Validity::Normal, 0.06, &[("cpu_starvation", true)]),
        (Validity::Off, 0.06, &[("cpu_starvation", false)]),
    ] {
        evidence.cpu_wait_share = wait;
        let rules = LoadRules {
            validity,
            ..usual(LoadPacing::Open)
        };
        let warnings = load_warnings(rules, &evidence);
        let judged = warnings.iter();
        let judged = judged.map(|warning| (warning.code(), rules.is_unreliable_by(warning)));
        assert_eq!(judged.collect::<Vec<_>>(), expected, "{validity:?} {wait}");
    }
    // Without answers there is nothing to count.
    evidence.answers = 0;
    let rules = LoadRules {
        validity: Validity::Off,
        ..usual(LoadPacing::Open)
    };
    let warnings = load_warnings(rules, &evidence);
    assert!(rules.is_unreliable_by(&warnings[0]), "{warnings:?}");
}

/// A starved generator blamed the connections.
#[test]
fn a_missed_rate_names_the_part_that_was_too_slow() {
    for (cpu_wait_share, sent, expected) in [
        (0.0, 900, "waited for the target"),
        (0.5, 900, "generator was too slow"),
        // Four connections to a server that takes 10 ms, at 2,000/s.
        (0.1, 178, "waited for the target"),
    ] {
        let mut evidence = clean();
        evidence.begun = sent;
        evidence.sent = sent;
        evidence.cpu_wait_share = cpu_wait_share;
        let warnings = load_warnings(usual(LoadPacing::Open), &evidence);
        let text = warnings.last().map(ToString::to_string).unwrap();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_generator_of_several_is_judged_as_if_it_were_alone() {
    let generator = |index: u16, evidence| GeneratorEvidence {
        index,
        node: format!("n{index}"),
        evidence,
        drift: None,
    };
    let mut late = clean();
    late.strain.lateness_p99 = Nanos::from_millis(2);
    late.cpu_wait_share = 0.5;
    let mut evidence = clean();
    evidence.cpu_wait_share = 0.5;
    evidence.generators = vec![
        generator(0, Ok(clean())),
        generator(1, Ok(late.clone())),
        generator(2, Err("its process was killed".to_owned())),
        generator(3, Ok(late)),
    ];
    let rules = usual(LoadPacing::Open);
    let warnings = load_warnings(rules, &evidence);
    assert_eq!(
        codes(&warnings),
        ["generator_missing", "cpu_starvation", "generator_late"]
    );
    let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(texts[0].contains("generator 2 has no result"), "{texts:?}");
    assert!(
        texts[2].starts_with("generator 1 on n1: generator late"),
        "{texts:?}"
    );
    assert!(
        warnings
            .iter()
            .all(|warning| rules.is_unreliable_by(warning))
    );
    let off = LoadRules {
        validity: Validity::Off,
        ..rules
    };
    let unreliable = warnings
        .iter()
        .filter(|warning| off.is_unreliable_by(warning));
    assert_eq!(unreliable.count(), 1, "the missing one is always missing");
}

/// Latencies of a clock that is 2 % fast are 2 % too long.
#[test]
fn a_clock_that_certainly_drifts_makes_a_load_unreliable() {
    let warnings = |ppm, error| {
        let mut evidence = clean();
        evidence.generators = vec![GeneratorEvidence {
            index: 1,
            node: "n1".to_owned(),
            evidence: Ok(clean()),
            drift: Some(ClockDrift { ppm, error }),
        }];
        load_warnings(usual(LoadPacing::Open), &evidence)
    };
    for (ppm, error) in [(0, 5_000), (500, 10), (20_000, 19_000)] {
        assert_eq!(warnings(ppm, error), [], "{ppm} ± {error}");
    }
    let drifted = warnings(-20_000, 300);
    assert_eq!(codes(&drifted), ["clock_drift"]);
    assert!(usual(LoadPacing::Open).is_unreliable_by(&drifted[0]));
    let text = drifted[0].to_string();
    assert!(
        text.starts_with("generator 1 on n1: clock drift: its clock ran 20000 ± 300 ppm slower"),
        "{text}"
    );
}
