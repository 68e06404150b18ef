//! Audit of the statistics: disturbances that the interval does not assume. The tables are in
//! docs/internals/calibration.md.

use stillwell_stats::simulate::{DisturbedMachine, Ending, PairNoise, SharedNoise, WholeProcedure};

const EXPERIMENTS: u32 = 2000;

/// Shares of experiments in which an interval misses the truth, the search says
/// `regressed`, the confirmation says it too, and which end as `equivalent`.
fn shares(machine: &DisturbedMachine, seed: u64) -> [f64; 4] {
    let rule = WholeProcedure::sequential(20, 0.02).unwrap();
    let mut counts = [0_u32; 4];
    for number in 0..EXPERIMENTS {
        let stages = machine
            .stages((seed << 32) + u64::from(number), 20)
            .unwrap();
        let whole = rule.follow(&stages, machine.truth()).unwrap();
        let is = [
            !whole.always_covered,
            whole.searched == Ending::Regressed,
            whole.ending == Ending::Regressed,
            whole.ending == Ending::Equivalent,
        ];
        for (count, is) in counts.iter_mut().zip(is) {
            *count += u32::from(is);
        }
    }
    counts.map(|count| f64::from(count) / f64::from(EXPERIMENTS))
}

/// Blocks of two pairs and no pauses: 49 % with the square wave, 51 % with the sine.
#[test]
fn f2_blocks_of_four_and_pauses_resist_periods() {
    for (seed, shared, most) in [
        (
            1,
            SharedNoise::Square {
                height: 0.05,
                period: 4.0,
            },
            0.22,
        ),
        (
            2,
            SharedNoise::Sine {
                amplitude: 0.03,
                period: 4.0,
            },
            0.24,
        ),
        (
            3,
            SharedNoise::Sine {
                amplitude: 0.03,
                period: 5.0,
            },
            0.25,
        ),
        (
            4,
            SharedNoise::Square {
                height: 0.05,
                period: 3.7,
            },
            0.15,
        ),
    ] {
        let machine = DisturbedMachine {
            shared,
            ..DisturbedMachine::of_noise(0.003)
        };
        let [alarms, _, confirmed, _] = shares(&machine, seed);
        assert!(alarms < most, "{shared:?}: {alarms}");
        assert!(confirmed < 0.015, "{shared:?}: {confirmed}");
    }
}

/// A run that differs because it is second cancels in each block.
#[test]
fn f2_the_position_in_a_pair_is_no_alarm() {
    let machine = DisturbedMachine {
        shared: SharedNoise::Position(0.02),
        ..DisturbedMachine::of_noise(0.003)
    };
    let [alarms, ..] = shares(&machine, 5);
    assert!(alarms < 0.01, "{alarms}");
}

/// The whole procedure keeps its promise for independent normal pairs.
#[test]
fn f1_equal_versions_are_hardly_ever_confirmed_as_regressed() {
    let [alarms, _, confirmed, _] = shares(&DisturbedMachine::of_noise(0.03), 6);
    assert!(alarms < 0.07, "{alarms}");
    assert!(confirmed <= 0.003, "{confirmed}");
}

/// A fault of one start in ten: with four pairs more than half were `equivalent`.
#[test]
fn f9_rare_faults_are_less_often_equivalent() {
    let machine = DisturbedMachine {
        noise: PairNoise::Faults {
            noise: 0.005,
            share: 0.1,
            size: 0.3,
        },
        ..DisturbedMachine::of_noise(0.0)
    };
    let [.., equivalent] = shares(&machine, 7);
    assert!((0.45..0.62).contains(&equivalent), "{equivalent}");
}

/// Two builds of one source that differ by layout are different executables, and no
/// confirmation with the same builds detects that.
#[test]
fn f2_layout_is_confirmed() {
    let machine = DisturbedMachine {
        layout: 0.02,
        ..DisturbedMachine::of_noise(0.01)
    };
    let [_, _, confirmed, _] = shares(&machine, 8);
    assert!(confirmed > 0.1, "{confirmed}");
}
