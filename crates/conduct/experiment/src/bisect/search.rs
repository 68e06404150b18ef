//! Which commit is looked at next.

use serde::{Deserialize, Serialize};

/// Looks for the first bad one of a line of commits, of which the one before the
/// first is good.
///
/// Commits are counted from 1; 0 is GOOD, the last one is BAD. First both ends
/// are compared; then every commit that is asked for lies between the last one
/// known to be good and the first known to be bad, as near to the middle as one
/// that was not asked for yet can be; in the end these two are compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Search {
    /// The last commit known to be good.
    good: usize,
    /// The first known to be bad.
    bad: usize,
    last: usize,
    /// Commits between them of which nobody can tell.
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

/// What is to be done next.
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

/// What a comparison says of the later of its commits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is worse.
    Bad,
    /// It is not.
    Good,
    /// Nobody can tell, or it could not be run.
    Unknown,
}

/// What came out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// BAD is not worse than GOOD.
    NotWorse,
    /// Nobody can tell whether BAD is worse than GOOD.
    Unclear,
    /// The first bad commit lies in a range.
    Found(Found),
}

/// Where the first bad commit lies: behind `good`, up to `bad`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Found {
    /// The last commit known to be good.
    pub good: usize,
    /// The first known to be bad.
    pub bad: usize,
    /// What the comparison of these two said: bad where it confirmed them.
    pub confirmed: Answer,
}

impl Found {
    /// Whether it is one commit, and confirmed.
    #[must_use]
    pub const fn is_sure(self) -> bool {
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

    /// What is to be done next.
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

    /// Takes the answer to what [`step`](Self::step) asked for; gives what is to
    /// be done next.
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
            Step::Confirm { .. } => self.stage = self.found(answer),
            Step::Done(_) => {}
        }
        if self.stage == Stage::Between && self.candidate().is_none() {
            // Both ends were compared already.
            let is_whole = (self.good, self.bad) == (0, self.last);
            self.stage = if is_whole {
                self.found(Answer::Bad)
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

    /// How many comparisons are still needed at most, where all can tell.
    #[must_use]
    pub fn left_at_most(&self) -> usize {
        let between = self.bad - self.good - 1;
        let halvings = usize::BITS - between.leading_zeros();
        let halvings = usize::try_from(halvings).unwrap_or(usize::MAX);
        match self.stage {
            Stage::Ends => 1 + halvings + usize::from(between > 0),
            Stage::Between => halvings + 1,
            Stage::Confirming => 1,
            Stage::Done(_) => 0,
        }
    }

    /// The commit nearest to the middle that was not asked for.
    fn candidate(&self) -> Option<usize> {
        let sum = self.good + self.bad;
        (self.good + 1..self.bad)
            .filter(|commit| !self.unknown.contains(commit))
            .min_by_key(|commit| (2 * commit).abs_diff(sum))
    }

    const fn found(&self, confirmed: Answer) -> Stage {
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

    /// Runs a search among `commits`, of which `first_bad` is the first bad one
    /// and `unknown` cannot be told; gives the outcome, and what was asked.
    fn run(commits: usize, first_bad: usize, unknown: &[usize]) -> (Outcome, Vec<Step>) {
        let mut search = Search::new(commits);
        let mut asked = Vec::new();
        let mut step = search.step();
        loop {
            let left = search.left_at_most();
            let answer = match step {
                Step::Done(outcome) => {
                    assert_eq!(left, 0);
                    return (outcome, asked);
                }
                Step::Test(commit) if unknown.contains(&commit) => Answer::Unknown,
                Step::Ends(commit) | Step::Test(commit) if commit < first_bad => Answer::Good,
                Step::Ends(_) | Step::Test(_) => Answer::Bad,
                Step::Confirm { good, bad } => {
                    assert!(good < first_bad && first_bad <= bad);
                    Answer::Bad
                }
            };
            asked.push(step);
            step = search.answer(answer);
            if unknown.is_empty() && !matches!(step, Step::Done(_)) {
                assert!(search.left_at_most() < left, "{asked:?}");
            }
        }
    }

    fn found(outcome: Outcome) -> Found {
        match outcome {
            Outcome::Found(found) => found,
            other => panic!("{other:?}"),
        }
    }

    /// For all numbers of commits and all places of the bad one: it is found,
    /// within as many tests as halving needs.
    #[test]
    fn the_first_bad_one_is_found_wherever_it_is() {
        for commits in 1..=70 {
            for first_bad in 1..=commits {
                let (outcome, asked) = run(commits, first_bad, &[]);
                let found = found(outcome);
                assert_eq!((found.good, found.bad), (first_bad - 1, first_bad));
                assert!(found.is_sure());
                let tests = asked.iter().filter(|step| matches!(step, Step::Test(_)));
                let halvings = commits.next_power_of_two().trailing_zeros();
                assert!(tests.count() <= usize::try_from(halvings).unwrap());
                assert!(asked.len() <= Search::new(commits).left_at_most());
            }
        }
    }

    proptest! {
        /// For all commits of which nobody can tell: the bad one lies in the range
        /// that is left, of which nobody can tell the inside, and no commit is
        /// asked for twice.
        #[test]
        fn what_is_left_holds_the_bad_one_and_nothing_that_is_known(
            commits in 1_usize..60,
            place: prop::sample::Index,
            unknown in prop::collection::btree_set(1_usize..60, 0..40),
        ) {
            let first_bad = place.index(commits) + 1;
            let unknown: Vec<usize> = unknown.into_iter().collect();
            let (outcome, asked) = run(commits, first_bad, &unknown);
            let found = found(outcome);
            prop_assert!(found.good < first_bad && first_bad <= found.bad);
            for inside in found.good + 1..found.bad {
                prop_assert!(unknown.contains(&inside));
                prop_assert!(asked.contains(&Step::Test(inside)));
            }
            prop_assert_eq!(found.is_sure(), found.bad - found.good == 1);
            let mut once = asked.clone();
            once.sort_by_key(|step| format!("{step:?}"));
            once.dedup();
            prop_assert_eq!(once.len(), asked.len());
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
    fn what_is_not_confirmed_is_not_sure() {
        let mut search = Search::new(2);
        assert_eq!(search.step(), Step::Ends(2));
        assert_eq!(search.answer(Answer::Bad), Step::Test(1));
        assert_eq!(
            search.answer(Answer::Bad),
            Step::Confirm { good: 0, bad: 1 }
        );
        let Step::Done(Outcome::Found(found)) = search.answer(Answer::Good) else {
            panic!("{search:?}");
        };
        assert!(!found.is_sure());
    }
}
