//! Posts that wait for their answers.

use std::collections::VecDeque;

use stillwell_metric::Outcome;
use stillwell_units::Moment;

/// A block that was written, or is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Post {
    /// Answers that it will get, at least one.
    pub(super) answers: u64,
    pub(super) events: u64,
    /// In the worker's own time.
    pub(super) intended: Moment,
    pub(super) sent: Moment,
}

/// Events that one answer resolves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct AnswerCounts {
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
}

/// A post that is answered whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) post: Post,
    pub(super) outcome: Outcome,
}

/// Posts in the order in which they were written, and their answers, which have
/// numbers from 1 on and may come in any order.
#[derive(Debug)]
pub(super) struct InFlight {
    waiting: VecDeque<WaitingPost>,
    /// State of each number that is not older than the oldest post.
    messages: VecDeque<Message>,
    /// The number of the first of them.
    first: u64,
    /// Posts of which an answer is missing.
    open: usize,
}

#[derive(Debug)]
struct WaitingPost {
    post: Post,
    /// One beyond its last number.
    end: u64,
    left: u64,
    refusal: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Message {
    Open,
    /// It has no subscriber; the answer is still to come.
    Returned,
    Done,
}

impl InFlight {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            messages: VecDeque::new(),
            first: 1,
            open: 0,
        }
    }

    /// Posts that wait for an answer.
    pub(super) const fn len(&self) -> usize {
        self.open
    }

    /// When the oldest was sent.
    pub(super) fn oldest(&self) -> Option<Moment> {
        let oldest = self.waiting.iter().find(|waiting| waiting.left > 0)?;
        Some(oldest.post.sent)
    }

    pub(super) fn push(&mut self, post: Post) {
        let end = self.end() + post.answers;
        self.waiting.push_back(WaitingPost {
            post,
            end,
            left: post.answers,
            refusal: None,
        });
        for _ in 0..post.answers {
            self.messages.push_back(Message::Open);
        }
        self.open += 1;
    }

    /// One beyond the last number.
    fn end(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    /// The oldest message that is not answered.
    pub(super) fn oldest_number(&self) -> Option<u64> {
        let open = self.messages.iter();
        let open = open.take_while(|message| **message == Message::Done);
        let number = self.first + open.count() as u64;
        (number < self.end()).then_some(number)
    }

    /// Message `number` has no subscriber.
    pub(super) fn returned(&mut self, number: u64) {
        if let Some(message) = self.message(number)
            && *message == Message::Open
        {
            *message = Message::Returned;
        }
    }

    fn message(&mut self, number: u64) -> Option<&mut Message> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.messages.get_mut(at)
    }

    /// Message `number` is answered, and where it says so all before that are not.
    /// Posts that are answered whole by that go to `answered`. `None` where there is
    /// no such message.
    pub(super) fn answer(
        &mut self,
        (number, and_before): (u64, bool),
        refusal: Option<Outcome>,
        answered: &mut Vec<Answered>,
    ) -> Option<AnswerCounts> {
        let known = self.first..self.end();
        if !known.contains(&number) {
            // What is known no more was answered before.
            return None;
        }
        let from = if and_before { self.first } else { number };
        let mut at = self.waiting.partition_point(|waiting| waiting.end <= from);
        let mut counts = AnswerCounts {
            acknowledged: 0,
            refused: 0,
        };
        for number in from..=number {
            while self.waiting[at].end <= number {
                at += 1;
            }
            let Some(message) = self.message(number) else {
                break;
            };
            let refusal = match std::mem::replace(message, Message::Done) {
                Message::Done => continue,
                Message::Open => refusal,
                Message::Returned => Some(refusal.unwrap_or(Outcome::Status4xx)),
            };
            let waiting = &mut self.waiting[at];
            let events = waiting.post.events / waiting.post.answers;
            match refusal {
                Some(_) => counts.refused += events,
                None => counts.acknowledged += events,
            }
            waiting.refusal = waiting.refusal.or(refusal);
            waiting.left -= 1;
            if waiting.left == 0 {
                self.open -= 1;
                answered.push(Answered {
                    post: waiting.post,
                    outcome: waiting.refusal.unwrap_or(Outcome::Ok),
                });
            }
        }
        self.forget();
        Some(counts)
    }

    /// Posts at the front that are answered.
    fn forget(&mut self) {
        while let Some(waiting) = self.waiting.front()
            && waiting.left == 0
        {
            let end = waiting.end;
            self.waiting.pop_front();
            while self.first < end {
                self.messages.pop_front();
                self.first += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn post(answers: u64, events: u64) -> Post {
        Post {
            answers,
            events,
            intended: Moment::default(),
            sent: Moment::default(),
        }
    }

    proptest! {
        #[test]
        fn for_all_orders_every_message_is_answered_once(
            posts in prop::collection::vec(1_u64..6, 1..20),
            order in prop::collection::vec((any::<u64>(), any::<bool>(), any::<bool>()), 0..100),
        ) {
            let mut flight = InFlight::new();
            for answers in &posts {
                flight.push(post(*answers, *answers));
            }
            let messages: u64 = posts.iter().sum();
            let mut known = vec![None; usize::try_from(messages).unwrap()];
            let mut answered = Vec::new();
            let (mut acknowledged, mut refused) = (0, 0);
            let last = (messages - 1, true, false);
            for (number, and_before, is_refused) in order.into_iter().chain([last]) {
                let number = number % messages;
                let from = if and_before { 0 } else { number };
                let [from, to] = [from, number].map(|known_number| usize::try_from(known_number).unwrap());
                for message in &mut known[from..=to] {
                    *message = message.or(Some(is_refused));
                }
                let refusal = is_refused.then_some(Outcome::Status5xx);
                let counts = flight.answer((number + 1, and_before), refusal, &mut answered);
                if let Some(counts) = counts {
                    acknowledged += counts.acknowledged;
                    refused += counts.refused;
                }
                let wanted = |is: bool| known.iter().filter(|known_number| **known_number == Some(is)).count() as u64;
                prop_assert_eq!((acknowledged, refused), (wanted(false), wanted(true)));
                prop_assert_eq!(answered.len() + flight.len(), posts.len());
            }
            prop_assert_eq!((flight.len(), flight.oldest_number()), (0, None));
            prop_assert!(flight.waiting.is_empty() && flight.messages.is_empty());
        }
    }

    #[test]
    fn a_returned_message_is_refused_although_it_is_acknowledged() {
        let mut flight = InFlight::new();
        flight.push(post(2, 2));
        flight.push(post(1, 7));
        flight.returned(2);
        flight.returned(9);
        let mut answered = Vec::new();
        let counts = flight.answer((2, true), None, &mut answered);
        let expected = AnswerCounts {
            acknowledged: 1,
            refused: 1,
        };
        assert_eq!(counts, Some(expected));
        assert_eq!(answered[0].outcome, Outcome::Status4xx);
        assert_eq!((flight.len(), flight.oldest_number()), (1, Some(3)));
        assert_eq!(flight.answer((1, false), None, &mut answered), None);
        let counts = flight.answer((3, false), None, &mut answered).unwrap();
        assert_eq!(counts.acknowledged, 7);
    }
}
