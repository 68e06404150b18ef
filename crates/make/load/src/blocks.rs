//! The blocks of one worker of a generator, as bodies of requests.

mod taken;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::{AnswerTimes, Outcome};
use stillwell_payload::BlockSet;
use stillwell_plan::load::Routes;
use stillwell_scope::clock;
use stillwell_units::Moment;
use stillwell_worker::{Marks, Sending, Slice, StampText, Wait, Worker as Generator, write_header};

use super::answer::AnswerBody;
use super::build::{Head, Request};
use super::recorder::{Answer, Take, Ticket};
use super::routes::RouteTally;
use super::web::WebRecorder;
use taken::TakenBlocks;

/// The blocks of one worker, and the heads before them.
#[derive(Debug)]
pub(super) struct Blocks {
    generator: Rc<Generator>,
    /// The head before each over HTTP/1.1; over HTTP/2 each is written with its request.
    head: Head,
    taken: RefCell<TakenBlocks>,
    /// Common request of all of them: answers are read as answers to it, and over HTTP/2 it has
    /// the head.
    pub(super) request: Request,
    /// Requests that are sent in turn; empty if blocks are the bodies. Blocks only pace them.
    requests: Arc<[Request]>,
    /// Index of the next request.
    next: Cell<usize>,
    /// Index of the request of each place.
    chosen: RefCell<Vec<usize>>,
    web: RefCell<WebRecorder>,
}

impl Blocks {
    pub(super) fn new(
        generator: &Rc<Generator>,
        head: &Head,
        requests: Arc<[Request]>,
        routes: &Routes,
    ) -> Self {
        let tally = RouteTally::new(routes, [&*requests]);
        Self {
            generator: Rc::clone(generator),
            head: head.clone(),
            taken: RefCell::default(),
            request: head.with(&[], AnswerBody::Any),
            requests,
            next: Cell::new(0),
            chosen: RefCell::default(),
            web: RefCell::new(WebRecorder::new(&generator.shard, routes, tally)),
        }
    }

    /// Index among the requests of that of `ticket`; blocks as bodies have none.
    fn index_of(&self, ticket: Ticket) -> Option<usize> {
        self.chosen.borrow().get(ticket.request).copied()
    }

    /// Returns true if the blocks are the bodies of the requests.
    pub(super) fn are_bodies(&self) -> bool {
        self.requests.is_empty()
    }

    /// The request of `ticket`.
    pub(super) fn request_of(&self, ticket: Ticket) -> &Request {
        let chosen = self.chosen.borrow();
        let index = chosen.get(ticket.request);
        index.map_or(&self.request, |index| &self.requests[*index])
    }

    /// Chooses the request of `place`.
    fn choose(&self, place: usize) {
        let mut chosen = self.chosen.borrow_mut();
        if chosen.len() <= place {
            chosen.resize(place + 1, 0);
        }
        let index = self.next.get();
        chosen[place] = index;
        self.next.set((index + 1) % self.requests.len());
    }

    /// Counts a request of `bytes` that is sent.
    pub(super) fn sent(&self, bytes: usize) {
        self.generator.begin_paced();
        self.generator.end_paced();
        self.generator.shard.bytes.add(bytes as u64);
    }

    /// The result of [`Pool::take`] at `now`, without taking.
    pub(super) fn look(&self, now: Moment) -> Take {
        if self.generator.is_ending() {
            return Take::Never;
        }
        let look = self.generator.state.borrow_mut().look(now);
        match look {
            Err(at) => Take::Later(at),
            Ok(intended) => Take::Now(Ticket {
                endpoint: 0,
                request: self.taken.borrow().next(),
                intended,
                sent: None,
            }),
        }
    }

    /// The same, and takes it: from then on it is kept until it was answered or has
    /// failed.
    pub(super) fn take(&self, now: Moment) -> Take {
        if self.generator.is_ending() {
            return Take::Never;
        }
        match self.generator.take_block(now) {
            Ok((set, slice)) => {
                let place = self.taken.borrow_mut().put(set, slice);
                if !self.are_bodies() {
                    self.choose(place);
                }
                Take::Now(Ticket {
                    endpoint: 0,
                    request: place,
                    intended: slice.intended,
                    sent: None,
                })
            }
            Err(at) => Take::Later(at),
        }
    }

    /// The marks of one more connection, if events are stamped.
    pub(super) fn marks(&self) -> Option<Marks> {
        self.generator.marks()
    }

    /// Writes the head before this number of bytes, over HTTP/1.1, with their stamp if the head
    /// has it.
    pub(super) fn write_head(&self, bytes: usize, stamp: Option<&StampText>, out: &mut Vec<u8>) {
        out.clear();
        let Head::Http1(template) = &self.head else {
            return;
        };
        template.write_head(bytes as u64, out);
        if let Some(stamp) = stamp {
            write_header(stamp, out);
        }
    }

    /// The block of `ticket`, and the set that it is of; `None` once that has ended.
    pub(super) fn block(&self, ticket: Ticket) -> Option<(Rc<BlockSet>, Slice)> {
        self.taken.borrow().at(ticket.request)
    }

    /// The block of `ticket` on its way out at `now`. One that a connection gave back counts once.
    pub(super) fn sending<'a>(
        &'a self,
        (ticket, now): (&mut Ticket, Moment),
        (set, slice): &'a (Rc<BlockSet>, Slice),
        marks: Option<&'a mut Marks>,
    ) -> Sending<'a> {
        let is_again = ticket.sent.is_some();
        ticket.sent.get_or_insert(now);
        if is_again {
            self.generator.sending_again(set, *slice, marks)
        } else {
            self.generator.sending_marked(set, *slice, marks)
        }
    }

    /// Of the block of `ticket`, which was marked last, only so many bytes left.
    pub(super) fn take_back(&self, ticket: Ticket, marks: &Marks, bytes: usize) {
        let block = self.taken.borrow().at(ticket.request);
        let Some(((set, slice), stamping)) = block.zip(self.generator.stamping()) else {
            return;
        };
        let run = set.run(slice.first, slice.last);
        // Those that ended before the last byte, and the one that has it.
        let begun = bytes
            .checked_sub(1)
            .map_or(0, |last| run.events_within(last) + 1);
        marks.take_back(stamping, u64::from(begun));
    }

    /// A connection was opened, or could not be.
    pub(super) fn dialled(&self, failure: Option<Outcome>) {
        match failure {
            None => self.generator.shard.connections.add(1),
            Some(outcome) => self.generator.shard.count(outcome),
        }
    }

    /// The block of `ticket` was answered.
    pub(super) fn answered(&self, ticket: Ticket, answer: &Answer) {
        let index = self.index_of(ticket);
        self.taken.borrow_mut().end(ticket.request);
        let status = answer.whole.status;
        let shard = &self.generator.shard;
        shard.count(Outcome::of_status(status));
        let mut state = self.generator.state.borrow_mut();
        let response = state.record_answer(ticket.intended, answer.sent, answer.end);
        drop(state);
        let times = AnswerTimes {
            response: Some(response),
            ..answer.times()
        };
        let mut web = self.web.borrow_mut();
        web.answered((0, index), (status, Outcome::of_status(status)), times);
        web.publish(answer.end);
    }

    /// The block of `ticket` has got no answer.
    pub(super) fn failed(&self, ticket: Ticket, outcome: Outcome) {
        let index = self.index_of(ticket);
        self.taken.borrow_mut().end(ticket.request);
        self.generator.shard.count(outcome);
        self.web.borrow_mut().failed((0, index), outcome);
    }

    /// The one that says when begins to wait: until then, or for a connection.
    pub(super) fn suspend(&self, until: Option<Moment>) {
        let wait = until.map_or(Wait::Other, Wait::Schedule);
        let now = clock::now();
        self.web.borrow_mut().publish(now);
        let mut state = self.generator.state.borrow_mut();
        state.suspend(wait, now);
    }

    /// It waits no longer.
    pub(super) fn resume(&self, until: Option<Moment>) {
        let wait = until.map_or(Wait::Other, Wait::Schedule);
        let mut state = self.generator.state.borrow_mut();
        state.resume(wait, clock::now());
    }
}
