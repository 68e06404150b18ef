use stillwell_units::{ByteRate, ByteSize};

use super::*;

fn restarts() -> Restarts {
    let restarts = Restarts::default();
    let stopped = Stopped {
        exit: None,
        killed: false,
        left_behind: 0,
    };
    restarts.ended(Moment::new(1_000), Moment::new(1_100), &stopped);
    restarts
}

#[test]
fn a_target_delivers_again_with_arrivals_after_it_is_ready_again() {
    let restarts = restarts();
    restarts.started(Moment::new(1_200));
    // What the one before it had sent may arrive at any time.
    assert_eq!(restarts.received(Moment::new(1_250)), None);
    assert_eq!(restarts.ready(Moment::new(1_300)), Nanos::new(300));
    assert_eq!(restarts.received(Moment::new(1_250)), None);
    assert_eq!(restarts.received(Moment::new(1_450)), Some(Nanos::new(450)));
    assert_eq!(restarts.received(Moment::new(1_900)), None);
    assert_eq!(restarts.all()[0].delivered_after, Some(Nanos::new(450)));
}

#[test]
fn the_longest_way_back_is_a_series_and_none_is_not() {
    let restarts = restarts();
    let mut samples = Vec::new();
    restarts.sample(&mut samples);
    assert_eq!(samples.len(), 1, "{samples:?}");
    restarts.ready(Moment::new(1_300));
    restarts.received(Moment::new(1_450));
    let stopped = Stopped {
        exit: None,
        killed: true,
        left_behind: 0,
    };
    restarts.ended(Moment::new(5_000), Moment::new(5_000), &stopped);
    restarts.ready(Moment::new(5_010));
    samples.clear();
    restarts.sample(&mut samples);
    let values: Vec<_> = samples.iter().map(|sample| sample.value.clone()).collect();
    let expected = [2, 300, 450].map(stillwell_metric::Value::Int);
    assert_eq!(values, expected);
}

#[test]
fn disks_are_described_by_their_change() {
    let limits = DiskLimits {
        fsync_delay: Some(Nanos::from_millis(20)),
        fsync_delay_per_mib: Some(Nanos::from_millis(1)),
        write_rate: ByteRate::try_new(2 << 20).ok(),
        limit: Some(ByteSize::mib(16)),
    };
    for (change, expected) in [
        (DiskChange::Full, "full"),
        (DiskChange::Restore, "as in its plan"),
        (
            DiskChange::Limits(limits),
            "fsync takes 20ms longer, 1ms longer for each MiB, takes 2 MiB/s at most, holds 16 MiB at most",
        ),
    ] {
        let path = "{state}/buffer".into();
        let step = StepAction::Disk { path, change };
        assert_eq!(
            describe(&step),
            format!("disk {{state}}/buffer: {expected}")
        );
    }
}
