//! The choice of the next commit.

use serde::{Deserialize, Serialize};
use stillwell_units::as_usize;

/// Searches a line of commits for the first bad one, whose parent is the last good one.
///
/// Commits are counted from 1; 0 is GOOD, the last one is BAD. First both ends are compared. Then
/// every commit that is tried lies between the last known good one and the first known bad one, as
/// near to the middle as possible. In the end these two are compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Search {
    /// The last commit known to be good.
    good: usize,
    /// The first known to be bad.
    bad: usize,
    last: usize,
    /// Commits between them that could not be judged.
    unknown: Vec<usize>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Ends,
    Between,
    Confirming,
    Done(Outcome),
}

/// The next step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Compare GOOD with BAD, this commit.
    Ends(usize),
    /// Compare GOOD with this commit.
    Test(usize),
    /// Compare the last good commit with the first bad one.
    Confirm {
        /// The last good one.
        good: usize,
        /// The first bad one.
        bad: usize,
    },
    /// Nothing.
    Done(Outcome),
}

/// The answer of a comparison about the later one of its commits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is worse.
    Bad,
    /// It is not.
    Good,
    /// No answer, or the comparison could not be run.
    Unknown,
}

/// The outcome of a search.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// BAD is not worse than GOOD.
    NotWorse,
    /// It is not known if BAD is worse than GOOD.
    Unclear,
    /// The first bad commit lies in a range.
    Found(Found),
}

/// The range of the first bad commit: behind `good`, up to `bad`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Found {
    /// The last commit known to be good.
    pub good: usize,
    /// The first known to be bad.
    pub bad: usize,
    /// The answer of the comparison of these two: bad if it confirmed them.
    pub confirmed: Answer,
}

impl Found {
    /// True if it is one commit, and confirmed.
    #[must_use]
    pub const fn is_certain(self) -> bool {
        self.bad - self.good == 1 && matches!(self.confirmed, Answer::Bad)
    }
}

impl Search {
    /// A search among this many commits after GOOD, BAD included: at least one.
    #[must_use]
    pub const fn new(commits: usize) -> Self {
        let last = if commits == 0 { 1 } else { commits };
        Self {
            good: 0,
            bad: last,
            last,
            unknown: Vec::new(),
            stage: Stage::Ends,
        }
    }

    /// Returns the next step.
    #[must_use]
    pub fn step(&self) -> Step {
        match self.stage {
            Stage::Ends => Step::Ends(self.bad),
            Stage::Between => self.candidate().map_or(
                Step::Confirm {
                    good: self.good,
                    bad: self.bad,
                },
                Step::Test,
            ),
            Stage::Confirming => Step::Confirm {
                good: self.good,
                bad: self.bad,
            },
            Stage::Done(outcome) => Step::Done(outcome),
        }
    }

    /// Takes the answer to the comparison of [`step`](Self::step); returns the next step.
    pub fn answer(&mut self, answer: Answer) -> Step {
        match self.step() {
            Step::Ends(_) => {
                self.stage = match answer {
                    Answer::Bad => Stage::Between,
                    Answer::Good => Stage::Done(Outcome::NotWorse),
                    Answer::Unknown => Stage::Done(Outcome::Unclear),
                };
            }
            Step::Test(commit) => match answer {
                Answer::Bad => self.bad = commit,
                Answer::Good => self.good = commit,
                Answer::Unknown => self.unknown.push(commit),
            },
            Step::Confirm { .. } => self.stage = self.found_range(answer),
            Step::Done(_) => {}
        }
        if self.stage == Stage::Between && self.candidate().is_none() {
            // Both ends were compared already.
            let is_whole = (self.good, self.bad) == (0, self.last);
            self.stage = if is_whole {
                self.found_range(Answer::Bad)
            } else {
                Stage::Confirming
            };
        }
        self.step()
    }

    /// The last commit known to be good and the first known to be bad.
    #[must_use]
    pub const fn bounds(&self) -> (usize, usize) {
        (self.good, self.bad)
    }

    /// Maximum number of comparisons that are still needed if each has an answer.
    #[must_use]
    pub fn left_at_most(&self) -> usize {
        let between = self.bad - self.good - 1;
        let halvings = usize::BITS - between.leading_zeros();
        let halvings = as_usize(halvings);
        match self.stage {
            Stage::Ends => 1 + halvings + usize::from(between > 0),
            Stage::Between => halvings + 1,
            Stage::Confirming => 1,
            Stage::Done(_) => 0,
        }
    }

    /// The commit nearest to the middle that was not tried yet.
    fn candidate(&self) -> Option<usize> {
        let sum = self.good + self.bad;
        (self.good + 1..self.bad)
            .filter(|commit| !self.unknown.contains(commit))
            .min_by_key(|commit| (2 * commit).abs_diff(sum))
    }

    const fn found_range(&self, confirmed: Answer) -> Stage {
        Stage::Done(Outcome::Found(Found {
            good: self.good,
            bad: self.bad,
            confirmed,
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a search among `commits`, whose first bad one is `first_bad`; `unknown` cannot be
    /// judged. Returns the outcome and the steps.
    fn run(commits: usize, first_bad: usize, unknown: &[usize]) -> (Outcome, Vec<Step>) {
        let mut search = Search::new(commits);
        let mut steps = Vec::new();
        let mut step = search.step();
        loop {
            let left = search.left_at_most();
            let answer = match step {
                Step::Done(outcome) => {
                    assert_eq!(left, 0);
                    return (outcome, steps);
                }
                Step::Test(commit) if unknown.contains(&commit) => Answer::Unknown,
                Step::Ends(commit) | Step::Test(commit) if commit < first_bad => Answer::Good,
                Step::Ends(_) | Step::Test(_) => Answer::Bad,
                Step::Confirm { good, bad } => {
                    assert!(good < first_bad && first_bad <= bad);
                    Answer::Bad
                }
            };
            steps.push(step);
            step = search.answer(answer);
            if unknown.is_empty() && !matches!(step, Step::Done(_)) {
                assert!(search.left_at_most() < left, "{steps:?}");
            }
        }
    }

    fn found_range(outcome: Outcome) -> Found {
        match outcome {
            Outcome::Found(found_range) => found_range,
            other => panic!("{other:?}"),
        }
    }

    /// For all numbers of commits and all places of the bad one: it is found,
    /// within as many tests as halving needs.
    #[test]
    fn the_first_bad_one_is_found_wherever_it_is() {
        for commits in 1..=70 {
            for first_bad in 1..=commits {
                let (outcome, steps) = run(commits, first_bad, &[]);
                let found_range = found_range(outcome);
                assert_eq!(
                    (found_range.good, found_range.bad),
                    (first_bad - 1, first_bad)
                );
                assert!(found_range.is_certain());
                let tests = steps.iter().filter(|step| matches!(step, Step::Test(_)));
                let halvings = commits.next_power_of_two().trailing_zeros();
                assert!(tests.count() <= usize::try_from(halvings).unwrap());
                assert!(steps.len() <= Search::new(commits).left_at_most());
            }
        }
    }

    proptest! {
        /// For all commits that cannot be judged: the bad one lies in the range that is left, no
        /// commit inside it can be judged, and no commit is tried twice.
        #[test]
        fn what_is_left_holds_the_bad_one_and_nothing_that_is_known(
            commits in 1_usize..60,
            place: prop::sample::Index,
            unknown in prop::collection::btree_set(1_usize..60, 0..40),
        ) {
            let first_bad = place.index(commits) + 1;
            let unknown: Vec<usize> = unknown.into_iter().collect();
            let (outcome, steps) = run(commits, first_bad, &unknown);
            let found_range = found_range(outcome);
            prop_assert!(found_range.good < first_bad && first_bad <= found_range.bad);
            for inside in found_range.good + 1..found_range.bad {
                prop_assert!(unknown.contains(&inside));
                prop_assert!(steps.contains(&Step::Test(inside)));
            }
            prop_assert_eq!(found_range.is_certain(), found_range.bad - found_range.good == 1);
            let mut once = steps.clone();
            once.sort_by_key(|step| format!("{step:?}"));
            once.dedup();
            prop_assert_eq!(once.len(), steps.len());
        }

        /// For all answers: it comes to an end.
        #[test]
        fn any_answers_come_to_an_end(
            commits in 1_usize..40,
            answers in prop::collection::vec(0_u8..3, 60),
        ) {
            let mut search = Search::new(commits);
            for answer in answers {
                search.answer([Answer::Bad, Answer::Good, Answer::Unknown][usize::from(answer)]);
            }
            prop_assert!(matches!(search.step(), Step::Done(_)), "{:?}", search);
        }
    }

    #[test]
    fn ends_that_do_not_differ_end_it() {
        for (answer, outcome) in [
            (Answer::Good, Outcome::NotWorse),
            (Answer::Unknown, Outcome::Unclear),
        ] {
            let step = Search::new(9).answer(answer);
            assert_eq!(step, Step::Done(outcome));
        }
    }

    #[test]
    fn an_unconfirmed_range_is_not_certain() {
        let mut search = Search::new(2);
        assert_eq!(search.step(), Step::Ends(2));
        assert_eq!(search.answer(Answer::Bad), Step::Test(1));
        assert_eq!(
            search.answer(Answer::Bad),
            Step::Confirm { good: 0, bad: 1 }
        );
        let Step::Done(Outcome::Found(found_range)) = search.answer(Answer::Good) else {
            panic!("{search:?}");
        };
        assert!(!found_range.is_certain());
    }
}
