//! Clocks of generators compared with the clock of the task that receives.

use stillwell_units::Nanos;

use super::Members;
use crate::clocks::{ClockOffset, ClockOffsets};

/// Drift of a clock that was not measured again, in parts per million: clocks that follow a time
/// server stay below it.
const DRIFT_MAX_PPM: u64 = 500;

/// Lead of one clock over another, as both were compared with that of the controller.
fn lead(of: ClockOffset, over: ClockOffset) -> ClockOffset {
    ClockOffset {
        nanos: of.nanos.saturating_sub(over.nanos),
        error: of.error + over.error,
    }
}

/// Returns the lead of the monotonic clock of task `of` over that of task `over`; none of either
/// on one machine, unless what was measured contradicts that.
pub(super) fn lead_of(
    members: &Members,
    clocks: &[Option<ClockOffsets>],
    of: usize,
    over: usize,
) -> Option<ClockOffset> {
    let clock = |task: usize| Some(clocks.get(task).copied()??.monotonic);
    let measured = lead(clock(of)?, clock(over)?);
    let is_one_machine = members.tasks.get(of)?.boot == members.tasks.get(over)?.boot;
    if is_one_machine && !measured.is_certain() {
        return Some(ClockOffset {
            nanos: 0,
            error: Nanos::ZERO,
        });
    }
    Some(measured)
}

/// Returns the bound on the error of a lead that was applied from the start until now: `before` and
/// `after` are what was measured then, `elapsed` apart.
pub(super) fn error_over(before: ClockOffset, after: Option<ClockOffset>, elapsed: Nanos) -> Nanos {
    if before.error == Nanos::ZERO && after.is_none_or(|after| after.error == Nanos::ZERO) {
        return Nanos::ZERO;
    }
    match after {
        Some(after) => {
            let change = Nanos::new(after.nanos.abs_diff(before.nanos));
            before.error.max(change + after.error)
        }
        None => {
            let drift = elapsed.as_u64() / 1_000_000 * (2 * DRIFT_MAX_PPM);
            before.error + Nanos::new(drift)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A clock with any offset, and a drift in one direction: for all that is measured within
        /// its bounds, the true lead at any time of the run is within the returned one.
        #[test]
        fn the_true_lead_is_within_the_bound(
            offset in -1_000_000_000_i64..1_000_000_000,
            drift in -1_000_000_i64..1_000_000,
            (miss_before, miss_after) in (-5_000_i64..5_000, -5_000_i64..5_000),
            share in 0_i64..=100,
        ) {
            let measured = |nanos, error| ClockOffset { nanos, error: Nanos::new(error) };
            let before = measured(offset + miss_before, 5_000);
            let after = measured(offset + drift + miss_after, 5_000);
            let elapsed = Nanos::from_secs(60);
            let bound = error_over(before, Some(after), elapsed).as_u64();
            let true_lead = offset + drift * share / 100;
            prop_assert!(true_lead.abs_diff(before.nanos) <= bound);
        }
    }

    #[test]
    fn one_machine_has_one_clock_unless_it_certainly_has_two() {
        let member = |boot: &str| super::super::Member {
            attempt: String::new(),
            node: String::new(),
            boot: boot.to_owned(),
            address: [127, 0, 0, 1].into(),
            began: Nanos::ZERO,
        };
        let members = Members {
            tasks: vec![member("a"), member("a"), member("b")],
            hosts: Default::default(),
        };
        let clock = |nanos| {
            let offset = ClockOffset {
                nanos,
                error: Nanos::new(10),
            };
            Some(ClockOffsets {
                wall: offset,
                monotonic: offset,
            })
        };
        let clocks = [clock(0), clock(15), clock(15)];
        let lead = |of, over| lead_of(&members, &clocks, of, over).unwrap();
        assert_eq!((lead(1, 0).nanos, lead(1, 0).error), (0, Nanos::ZERO));
        assert_eq!((lead(2, 0).nanos, lead(2, 0).error), (15, Nanos::new(20)));
        let clocks = [clock(0), clock(500), None];
        let planted = lead_of(&members, &clocks, 1, 0).unwrap();
        assert_eq!((planted.nanos, planted.error), (500, Nanos::new(20)));
        assert_eq!(lead_of(&members, &clocks, 2, 0), None);
    }
}
