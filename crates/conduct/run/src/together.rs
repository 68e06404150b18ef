//! Two runs at once: what they agree on, and what they know of each other.
//!
//! Each run is whole: it has a conductor, a network namespace, a cgroup, generators, sinks, an
//! observer and a capture of its own. Beyond that they *meet* once both targets are ready, so
//! warm-up and measuring begin at the same moment, and each learns when the other fails before load
//! has ended: half a pair says nothing, and ends too.

mod beside;
mod meeting;

use stillwell_pacer::TurnPlan;
use stillwell_plan::stopping::DesignPlan;
use stillwell_target::Division;
use stillwell_units::{Nanos, Seed};

pub(crate) use beside::{Beside, Foreign};
pub(crate) use meeting::{Link, describe};

/// Fewest CPUs for a duet: one for each target, and at least as many for us.
const DUET_CPUS_MIN: usize = 4;

/// Pause between two turns, if turns are long enough: a target below its capacity holds some
/// milliseconds of work.
const TURN_GAP: Nanos = Nanos::from_millis(20);

/// Ways in which two runs share the host at the same time. Both need a network namespace, so their
/// ports do not collide.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Together {
    /// Both carry load all the time, each target on CPUs of its own. Which of them has which is
    /// drawn by lot.
    Duet,
    /// Both targets have the same CPUs, and load is switched between them in random turns. All
    /// rates are rates of a run's own turns.
    Sliced {
        /// Shortest turn.
        turn_min: Nanos,
        /// Longest turn.
        turn_max: Nanos,
    },
}

impl Together {
    /// Returns the way of `design`; `None` for runs one after the other.
    #[must_use]
    pub const fn of(design: DesignPlan) -> Option<Self> {
        match design {
            DesignPlan::Paired => None,
            DesignPlan::Duet => Some(Self::Duet),
            DesignPlan::Sliced { turn_min, turn_max } => Some(Self::Sliced { turn_min, turn_max }),
        }
    }

    /// The word for it.
    const fn name(self) -> &'static str {
        match self {
            Self::Duet => "duet",
            Self::Sliced { .. } => "sliced",
        }
    }

    /// Returns the turns of its runs, if there are any.
    pub(crate) fn turns(self) -> Option<TurnPlan> {
        match self {
            Self::Duet => None,
            Self::Sliced { turn_min, turn_max } => Some(TurnPlan {
                turn_min,
                turn_max,
                gap: TURN_GAP.min(Nanos::new(turn_min.as_u64() / 4)),
            }),
        }
    }
}

/// Returns the message that two runs at once are impossible because of `why`.
pub(crate) fn no_namespace(together: Together, why: &str) -> String {
    format!(
        "design {}: two runs at once need a network namespace each, so their ports do not \
         collide: {why}; runs one after the other (design paired) need none",
        together.name()
    )
}

/// The CPUs of the run on `side` of a duet, which has half of the targets'; with
/// an odd number one stays idle. `online` are all that there are.
pub(crate) fn divide_duet(
    division: Division,
    online: &[u16],
    side: usize,
    seed: &Seed,
) -> Result<Division, String> {
    let available = online.len();
    if available < DUET_CPUS_MIN {
        return Err(format!(
            "design duet: it needs {DUET_CPUS_MIN} CPUs or more, so each target has some \
             of its own; this process may use {available}: {online:?}"
        ));
    }
    let Some(cpus) = &division.target else {
        let reason = "design duet: the targets need separate CPUs, but the plan lets them use \
                      any CPU";
        return Err(reason.to_owned());
    };
    // Core by core, so the targets share none.
    let by_core = online.iter().filter(|cpu| cpus.contains(cpu));
    let cpus: Vec<u16> = by_core.copied().collect();
    let half = cpus.len() / 2;
    if half == 0 {
        return Err(format!(
            "design duet: it needs 2 CPUs or more for its targets, and the plan gives {}: {cpus:?}",
            cpus.len()
        ));
    }
    let is_swapped = seed.derive("duet", 0).bytes()[0] & 1 == 1;
    let cpus = if (side == 1) == is_swapped {
        cpus[..half].to_vec()
    } else {
        cpus[cpus.len() - half..].to_vec()
    };
    Ok(Division {
        target: Some(cpus),
        ..division
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stillwell_plan::placement::CpuChoice;
    use stillwell_target::divide;

    use super::*;

    fn sides(online: u16, target: &CpuChoice, seed: u64) -> [Result<Division, String>; 2] {
        let online: Vec<u16> = (0..online).collect();
        let seed = Seed::from_number(seed);
        [0, 1].map(|side| {
            let division = divide(&online, target, &CpuChoice::Auto);
            divide_duet(division, &online, side, &seed)
        })
    }

    proptest! {
        /// For all hosts of four CPUs and more: three disjoint sets; the
        /// targets' are equally large.
        #[test]
        fn a_duet_has_cpus_apart(online in 4_u16..64, seed: u64) {
            let [first, second] = sides(online, &CpuChoice::Auto, seed).map(Result::unwrap);
            let ours = first.ours.clone().unwrap();
            prop_assert_eq!(first.ours, second.ours);
            let (first, second) = (first.target.unwrap(), second.target.unwrap());
            prop_assert_eq!(first.len(), second.len());
            let mut all = [first, second, ours].concat();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), count);
        }
    }

    #[test]
    fn either_side_has_either_half() {
        let first = |seed| sides(4, &CpuChoice::Auto, seed).map(|side| side.unwrap().target);
        assert!((0..20).any(|seed| first(seed)[0] == Some(vec![2])));
        assert!((0..20).any(|seed| first(seed)[0] == Some(vec![3])));
    }

    #[test]
    fn a_duet_without_room_reports_what_was_found() {
        for (online, choice, words) in [
            (2, CpuChoice::Auto, "may use 2: [0, 1]"),
            (8, CpuChoice::Any, "lets them use any"),
            (8, CpuChoice::Count(1), "the plan gives 1: [7]"),
        ] {
            for side in sides(online, &choice, 1) {
                let reason = side.unwrap_err();
                assert!(reason.contains(words), "{reason}");
            }
        }
    }

    #[test]
    fn a_gap_is_a_quarter_of_a_short_turn_at_most() {
        let gap = |turn_min| {
            let sliced = Together::Sliced {
                turn_min: Nanos::from_millis(turn_min),
                turn_max: Nanos::SECOND,
            };
            sliced.turns().unwrap().gap
        };
        assert_eq!(gap(40), Nanos::from_millis(10));
        assert_eq!(gap(500), Nanos::from_millis(20));
        assert_eq!(Together::Duet.turns(), None);
    }
}
