//! Change points: as Otava finds them, and as they should be found.

use crate::simulated::{Noise, share};
use stillwell_stats::change::{ChangeError, ChangeOptions, OtavaOptions, detect, otava};

fn numbers(text: &str) -> Vec<f64> {
    text.split(';').map(|cell| cell.parse().unwrap()).collect()
}

#[track_caller]
fn assert_close(result: f64, expected: f64, what: &str) {
    let allowed = 1e-9 * expected.abs().max(1e-3);
    assert!(
        (result - expected).abs() <= allowed,
        "{what}: {result:e} where Otava has {expected:e}"
    );
}

#[test]
fn otava_finds_the_same() {
    let (mut series, mut points) = (0, 0);
    let golden = include_str!("../golden/otava.csv");
    for row in golden.lines().skip(2) {
        let row: Vec<&str> = row.split(',').collect();
        let options = OtavaOptions {
            window: row[1].parse().unwrap(),
            p_value: row[2].parse().unwrap(),
            magnitude: row[3].parse().unwrap(),
        };
        let what = &row[..4].join(" ");
        let result = otava(&numbers(row[4]), &options).unwrap();
        let expected: Vec<_> = row[5].split('|').filter(|cell| !cell.is_empty()).collect();
        assert_eq!(result.len(), expected.len(), "{what}");
        for (point, expected) in result.iter().zip(expected) {
            let (index, figures) = expected.split_once(';').unwrap();
            assert_eq!(point.index, index.parse::<usize>().unwrap(), "{what}");
            let result = [
                point.forward_change_percent(),
                point.magnitude(),
                point.mean_before,
                point.standard_deviation_before,
                point.mean_after,
                point.standard_deviation_after,
                point.p_value,
            ];
            for (result, expected) in result.into_iter().zip(numbers(figures)) {
                assert_close(result, expected, what);
            }
            points += 1;
        }
        series += 1;
    }
    assert!(series >= 60 && points >= 500, "{series}, {points}");
}

fn history(noise: &mut Noise, levels: &[(usize, f64)], correlation: f64) -> Vec<f64> {
    let count = levels.iter().map(|(count, _)| count).sum();
    let levels = levels
        .iter()
        .flat_map(|&(count, level)| std::iter::repeat_n(level, count));
    let chance = noise.correlated(count, correlation);
    levels
        .zip(chance)
        .map(|(level, noise)| level * (1.0 + 0.01 * noise))
        .collect()
}

/// At 5 % false alarms.
fn options(seed: u32) -> ChangeOptions {
    ChangeOptions {
        alarm_rate: 0.05,
        seed: seed.into(),
        ..ChangeOptions::default()
    }
}

/// The share of 200 stationary histories in which something is found at 5 %.
fn alarms(seed: u64, count: usize, correlation: f64) -> f64 {
    let mut noise = Noise::seeded(seed);
    share(200, |trial| {
        let values = history(&mut noise, &[(count, 1.0)], correlation);
        !detect(&values, &options(trial)).unwrap().points.is_empty()
    })
}

/// Two standard errors of a share of 200 at 5 %.
const CHANCE: f64 = 0.031;

#[test]
fn stationary_histories_alarm_as_often_as_stated() {
    for (seed, count) in [(1, 50), (2, 200)] {
        let rate = alarms(seed, count, 0.0);
        assert!(rate <= 0.05 + CHANCE, "{count}: {rate}");
    }
}

#[test]
fn drifting_histories_alarm_as_often_as_stated() {
    for (seed, count) in [(3, 50), (4, 200)] {
        let rate = alarms(seed, count, 0.5);
        assert!(rate <= 0.05 + CHANCE, "{count}: {rate}");
    }
}

/// At a stated 5 %, histories of 20 values with correlations up to the stated one.
#[test]
fn f6_correlated_histories_change_as_rarely_as_stated() {
    for (seed, correlation) in [(11, 0.0), (12, 0.5), (13, 0.6)] {
        let mut noise = Noise::seeded(seed);
        let rate = share(200, |trial| {
            let values = history(&mut noise, &[(20, 1.0)], correlation);
            !detect(&values, &options(trial)).unwrap().points.is_empty()
        });
        assert!(rate <= 0.05 + CHANCE, "{correlation}: {rate}");
    }
}

/// A step of 2 % where the standard deviation is 1 %, at one false alarm in a
/// hundred: the only point found, and off by at most three values.
#[test]
fn a_step_of_two_percent_is_found() {
    for (correlation_max, before, after, power) in [(0.6, 60, 20, 0.85), (0.0, 60, 10, 0.9)] {
        let mut noise = Noise::seeded(5);
        let result = share(40, |trial| {
            let values = history(&mut noise, &[(before, 1.0), (after, 1.02)], 0.0);
            let options = ChangeOptions {
                correlation_max,
                seed: trial.into(),
                ..ChangeOptions::default()
            };
            let result = detect(&values, &options).unwrap();
            result.points.len() == 1 && result.points[0].index.abs_diff(before) <= 3
        });
        assert!(result >= power - 0.1, "{before} and {after}: {result}");
    }
}

/// A step that is taken back, which one split over all cannot see, and one after
/// another that do not hide each other.
#[test]
fn several_steps_are_found() {
    let mut noise = Noise::seeded(6);
    let levels = [(40, 1.0), (40, 1.04), (40, 1.0), (40, 1.04), (40, 1.0)];
    let values = history(&mut noise, &levels, 0.0);
    let result = detect(&values, &ChangeOptions::default()).unwrap();
    let indices: Vec<_> = result.points.iter().map(|point| point.index).collect();
    assert_eq!(indices.len(), 4, "{indices:?}");
    for (index, expected) in indices.iter().zip([40, 80, 120, 160]) {
        assert!(index.abs_diff(expected) <= 1, "{indices:?}");
    }
    let point = result.points[0];
    assert!(
        (point.forward_change_percent() - 4.0).abs() < 1.0,
        "{point:?}"
    );
    assert!((point.mean_before - 1.0).abs() < 0.01);
    assert!(point.p_value <= 0.01 && result.p_value <= 0.01);
    assert!((0.005..0.015).contains(&point.standard_deviation_after));
}

/// A history with one true step is divided there, and the rest of the error
/// budget covers both parts.
#[test]
fn found_steps_bring_no_false_ones() {
    let mut noise = Noise::seeded(7);
    let more = share(100, |trial| {
        let values = history(&mut noise, &[(60, 1.0), (60, 1.1)], 0.0);
        let result = detect(&values, &options(trial)).unwrap();
        assert!(!result.points.is_empty());
        result.points.len() > 1
    });
    assert!(more <= 0.05 + 1.4 * CHANCE, "{more}");
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let values = history(&mut Noise::seeded(9), &[(30, 1.0), (30, 1.01)], 0.0);
    let result = |seed| detect(&values, &options(seed)).unwrap();
    assert_eq!(result(3), result(3));
    assert!((result(3).p_value - result(4).p_value).abs() < 0.05);
}

#[test]
fn short_and_constant_histories_have_no_change_points() {
    for values in [&[1.0][..], &[1.0, 2.0, 9.0, 9.5, 9.4], &[4.0; 60]] {
        let result = detect(values, &options(1)).unwrap();
        assert_eq!((result.points.len(), result.p_value), (0, 1.0));
    }
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let values = [1.0; 9];
    let options = ChangeOptions {
        alarm_rate: 1.0,
        ..ChangeOptions::default()
    };
    assert_eq!(
        detect(&values, &options),
        Err(ChangeError::AlarmRate { actual: 1.0 })
    );
    let none = detect(&[], &ChangeOptions::default());
    assert!(matches!(none, Err(ChangeError::Values(_))));
    let window = OtavaOptions {
        window: 1,
        ..OtavaOptions::default()
    };
    assert_eq!(
        otava(&values, &window),
        Err(ChangeError::Window { actual: 1 })
    );
}
