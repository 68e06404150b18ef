//! The order of probes of any kind.

use stillwell_stats::capacity::{
    CapacityFound, CapacitySearch, Observed, Purpose, SearchEnd, SearchStep,
};
use stillwell_verdict::capacity::{CapacityAnswer, CapacityProbe, knee_of};

/// Fewest different loads that a law follows from.
pub const KNEE_LOADS_MIN: usize = 4;

/// A watcher of a search: it receives every probe and may end the search.
pub trait SearchWatcher {
    /// Returns whether the search is to end: a probe that was cut short says nothing.
    fn is_interrupted(&self) -> bool;

    /// Reports the probe with this number, from 1.
    fn report(&mut self, number: usize, probe: &CapacityProbe);

    /// Reports the answer so far after a probe, and the maximum number of probes that follow.
    fn report_progress(&mut self, _so_far: &CapacityFound, _probes_left: u32) {}

    /// Returns true if no time is left for another probe.
    fn is_out_of_time(&self) -> bool {
        false
    }

    /// Waits before the next probe.
    fn cool_down(&self);
}

/// The result of a search.
#[derive(Debug)]
pub struct CapacitySearched<E> {
    /// All probes that ended, in order.
    pub probes: Vec<CapacityProbe>,
    /// The answer, as far as it is known where the search was interrupted or failed; `None`
    /// if no probe ended.
    pub answer: Option<CapacityAnswer>,
    /// The error that ended the search after some probes.
    pub failure: Option<E>,
}

impl<E> CapacitySearched<E> {
    const fn new() -> Self {
        Self {
            probes: Vec::new(),
            answer: None,
            failure: None,
        }
    }

    /// Adds the answer so far of a search that ended early.
    fn ended(mut self, search: &CapacitySearch, end: SearchEnd) -> Self {
        if !self.probes.is_empty() {
            self.answer = Some(CapacityAnswer::Bounds(search.result(end)));
        }
        self
    }

    /// Takes the result of one probe and returns what it observed; `None` where the search is
    /// over.
    ///
    /// # Errors
    /// The first probe's error: there is nothing else to report then.
    fn take(
        &mut self,
        probe: Result<CapacityProbe, E>,
        watcher: &mut dyn SearchWatcher,
    ) -> Result<Option<Observed>, E> {
        let probe = match probe {
            Ok(probe) => probe,
            Err(error) if self.probes.is_empty() => return Err(error),
            Err(error) => {
                self.failure = Some(error);
                return Ok(None);
            }
        };
        if watcher.is_interrupted() {
            return Ok(None);
        }
        let observed = probe.observed;
        watcher.report(self.probes.len() + 1, &probe);
        self.probes.push(probe);
        watcher.cool_down();
        Ok(Some(observed))
    }
}

/// Searches the highest rate at which probes hold.
///
/// # Errors
/// The first probe's error. A later one is in the result, beside the probes before.
pub fn highest_rate<E>(
    mut search: CapacitySearch,
    watcher: &mut dyn SearchWatcher,
    mut probe: impl FnMut(f64, Purpose) -> Result<CapacityProbe, E>,
) -> Result<CapacitySearched<E>, E> {
    let mut searched = CapacitySearched::new();
    loop {
        let (rate, purpose) = match search.step() {
            SearchStep::Done(answer) => {
                searched.answer = Some(CapacityAnswer::Bounds(answer));
                return Ok(searched);
            }
            SearchStep::Probe { rate, purpose } => (rate, purpose),
        };
        if watcher.is_out_of_time() && !searched.probes.is_empty() {
            return Ok(searched.ended(&search, SearchEnd::TimeSpent));
        }
        match searched.take(probe(rate, purpose), watcher)? {
            Some(observed) => {
                search.observe(observed);
                let so_far = search.result(SearchEnd::Stopped);
                watcher.report_progress(&so_far, search.probes_left());
            }
            None => return Ok(searched.ended(&search, SearchEnd::Stopped)),
        }
    }
}

/// Searches the knee over these numbers of connections, each probed `repeats` times.
///
/// # Errors
/// The first probe's error. A later one is in the result, beside the probes before.
pub fn knee<E>(
    loads: &[u32],
    repeats: u32,
    watcher: &mut dyn SearchWatcher,
    mut probe: impl FnMut(u32) -> Result<CapacityProbe, E>,
) -> Result<CapacitySearched<E>, E> {
    let mut searched = CapacitySearched::new();
    // Round after round, so what drifts hits all loads alike.
    'rounds: for _ in 0..repeats {
        for connections in loads {
            if watcher.is_out_of_time() && !searched.probes.is_empty() {
                break 'rounds;
            }
            let probe = probe(*connections).map(|probe| CapacityProbe {
                connections: Some(*connections),
                ..probe
            });
            if searched.take(probe, watcher)?.is_none() {
                return Ok(searched);
            }
        }
    }
    // Time may have ended before the largest of `loads`.
    let tried = searched.probes.iter();
    let most = tried.filter_map(|probe| probe.connections).max();
    let knee = knee_of(&searched.probes, most.unwrap_or(0));
    searched.answer = Some(CapacityAnswer::Knee(knee));
    Ok(searched)
}

/// Numbers of connections: each some half more than the one before.
#[must_use]
pub fn knee_loads(least: u32, most: u32) -> Vec<u32> {
    let mut loads = Vec::new();
    let mut next = least;
    while next < most {
        loads.push(next);
        next = (next + next / 2).max(next + 1);
    }
    if least <= most {
        loads.push(most);
    }
    loads
}

#[cfg(test)]
mod tests {
    use stillwell_stats::Level;
    use stillwell_stats::capacity::{SearchPlan, Votes};

    use super::*;

    #[test]
    fn loads_grow_by_half_and_end_where_they_should() {
        assert_eq!(knee_loads(1, 16), [1, 2, 3, 4, 6, 9, 13, 16]);
        assert_eq!(knee_loads(1, 3), [1, 2, 3]);
        assert!(knee_loads(3, 2).is_empty());
        assert_eq!(knee_loads(2, 2), [2]);
    }

    #[derive(Default)]
    struct Watching {
        reported: Vec<usize>,
        interrupted_after: Option<usize>,
        out_of_time_after: Option<usize>,
        brackets: Vec<(f64, f64)>,
    }

    impl SearchWatcher for Watching {
        fn is_interrupted(&self) -> bool {
            self.interrupted_after
                .is_some_and(|probes| self.reported.len() >= probes)
        }

        fn report(&mut self, number: usize, _: &CapacityProbe) {
            self.reported.push(number);
        }

        fn report_progress(&mut self, so_far: &CapacityFound, _: u32) {
            let rate = |votes: Option<Votes>| votes.map_or(0.0, |votes| votes.rate);
            self.brackets.push((rate(so_far.held), rate(so_far.failed)));
        }

        fn is_out_of_time(&self) -> bool {
            self.out_of_time_after
                .is_some_and(|probes| self.reported.len() >= probes)
        }

        fn cool_down(&self) {}
    }

    fn probe(observed: Observed, reached: f64) -> CapacityProbe {
        CapacityProbe {
            purpose: None,
            rate: None,
            connections: None,
            reached,
            observed,
            why: None,
            figures: Vec::new(),
        }
    }

    fn search() -> CapacitySearch {
        CapacitySearch::try_new(SearchPlan {
            from: 100.0,
            to: 1e6,
            within: 0.05,
            repeats: 2,
            probes_max: 60,
            level: Level::NINETY_FIVE,
        })
        .unwrap()
    }

    #[test]
    fn a_search_finds_the_threshold_of_its_probes() {
        let mut watching = Watching::default();
        let searched = highest_rate(search(), &mut watching, |rate, _| {
            let observed = if rate < 5000.0 {
                Observed::Held
            } else {
                Observed::Failed
            };
            Ok::<_, String>(probe(observed, rate))
        });
        let searched = searched.unwrap();
        let Some(CapacityAnswer::Bounds(answer)) = searched.answer else {
            panic!("{:?}", searched.answer);
        };
        assert_eq!(answer.end, SearchEnd::Confirmed);
        let capacity = answer.capacity.unwrap().value;
        assert!((4500.0..5500.0).contains(&capacity), "{capacity}");
        let numbers: Vec<usize> = (1..=searched.probes.len()).collect();
        assert_eq!(watching.reported, numbers);
    }

    #[test]
    fn an_error_ends_a_search_with_what_was_probed_before() {
        let mut watching = Watching::default();
        let error = highest_rate(search(), &mut watching, |_, _| Err("none"));
        assert_eq!(error.unwrap_err(), "none");
        let mut count = 0;
        let searched = highest_rate(search(), &mut watching, |rate, _| {
            count += 1;
            if count > 2 {
                return Err("broken");
            }
            Ok(probe(Observed::Held, rate))
        });
        let searched = searched.unwrap();
        assert_eq!(
            (searched.probes.len(), searched.failure),
            (2, Some("broken"))
        );
        let Some(CapacityAnswer::Bounds(bounds)) = searched.answer else {
            panic!("{:?}", searched.answer);
        };
        assert_eq!(bounds.end, SearchEnd::Stopped);
        assert!((bounds.held.unwrap().rate - 200.0).abs() < 1e-9);
    }

    #[test]
    fn a_search_without_time_ends_with_the_bracket_so_far() {
        let mut watching = Watching {
            out_of_time_after: Some(9),
            ..Watching::default()
        };
        let searched = highest_rate(search(), &mut watching, |rate, _| {
            let observed = if rate < 1000.0 {
                Observed::Held
            } else {
                Observed::Failed
            };
            Ok::<_, String>(probe(observed, rate))
        });
        let Some(CapacityAnswer::Bounds(bounds)) = searched.unwrap().answer else {
            panic!("no answer");
        };
        assert_eq!((bounds.end, bounds.probes), (SearchEnd::TimeSpent, 9));
        let (held, failed) = (bounds.held.unwrap().rate, bounds.failed.unwrap().rate);
        assert!(held < 1000.0 && failed >= 1000.0, "{held} {failed}");
        assert_eq!(watching.brackets.last(), Some(&(held, failed)));
    }

    /// The largest load of the plan was reported, tried or not.
    #[test]
    fn a_knee_without_time_names_the_highest_load_that_was_tried() {
        let mut watching = Watching {
            out_of_time_after: Some(5),
            ..Watching::default()
        };
        let searched = knee(&knee_loads(1, 16), 1, &mut watching, |connections| {
            let load = f64::from(connections);
            let slowed = 1.0 + 0.1 * (load - 1.0) + 0.01 * load * (load - 1.0);
            Ok::<_, String>(probe(Observed::Held, 1000.0 * load / slowed))
        });
        let Some(CapacityAnswer::Knee(Ok(knee))) = searched.unwrap().answer else {
            panic!("no answer");
        };
        assert_eq!(knee.connections_max, 6);
    }

    #[test]
    fn a_probe_that_was_cut_short_is_no_part_of_a_search() {
        let mut watching = Watching {
            interrupted_after: Some(3),
            ..Watching::default()
        };
        let searched = knee(&knee_loads(1, 16), 1, &mut watching, |connections| {
            Ok::<_, String>(probe(Observed::Held, f64::from(connections)))
        });
        let searched = searched.unwrap();
        let loads: Vec<_> = searched
            .probes
            .iter()
            .map(|probe| probe.connections)
            .collect();
        assert_eq!(loads, [Some(1), Some(2), Some(3)]);
        assert_eq!(searched.answer, None);
    }
}
