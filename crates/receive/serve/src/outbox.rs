//! Answers in order, each until it is due.

use std::collections::VecDeque;
use std::rc::Rc;

use stillwell_http::CONTINUE;
use stillwell_plan::serve::Fault;
use stillwell_scope::clock;
use stillwell_units::Moment;

use crate::answers::{Answers, Manner};
use crate::service::{Decision, Reply, Service};

/// Pipelined answers are written together up to about this length.
const WRITE_BYTES: usize = 64 << 10;

/// So many answers may wait before no more requests are read.
const WAITING_MAX: usize = 256;

/// Capacity that is kept of a buffer that a long answer has filled.
const KEPT_BYTES: usize = 256 << 10;

/// The answers of one connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    service: Rc<Service>,
    waiting: VecDeque<Waiting>,
    /// Bytes that are due, and the number of them that were sent.
    bytes: Vec<u8>,
    sent: usize,
    end: Option<End>,
}

#[derive(Debug)]
enum Waiting {
    Continue,
    Refusal,
    Answer(Decision, Manner),
}

/// End of a connection once its bytes are sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// It is closed: all was said.
    Close,
    /// It is closed while its client may still be sending.
    CloseEarly,
    /// It is reset.
    Reset,
    /// Nothing is said any more.
    Silence,
}

impl Outbox {
    pub(crate) fn new(service: &Rc<Service>) -> Self {
        Self {
            service: Rc::clone(service),
            waiting: VecDeque::new(),
            bytes: Vec::new(),
            sent: 0,
            end: None,
        }
    }

    /// A client waits before it sends a body.
    pub(crate) fn push_continue(&mut self) {
        self.waiting.push_back(Waiting::Continue);
    }

    /// A request cannot be framed.
    pub(crate) fn push_refusal(&mut self) {
        self.waiting.push_back(Waiting::Refusal);
    }

    /// A request is to be answered.
    pub(crate) fn push(&mut self, decision: Decision, manner: Manner) {
        self.waiting.push_back(Waiting::Answer(decision, manner));
    }

    /// Lays out what is due `now`.
    pub(crate) fn fill(&mut self, now: Moment) {
        while self.bytes.len() < WRITE_BYTES && self.end.is_none() {
            match self.waiting.front() {
                Some(Waiting::Answer(decision, _)) if decision.due > now => return,
                None => return,
                Some(_) => {}
            }
            match self.waiting.pop_front() {
                Some(Waiting::Continue) => self.bytes.extend_from_slice(CONTINUE),
                Some(Waiting::Refusal) => {
                    let service = Rc::clone(&self.service);
                    let mut date = service.date.borrow_mut();
                    let date = date.at(clock::wall());
                    service.site.answers.write_refusal(date, &mut self.bytes);
                    self.end = Some(End::CloseEarly);
                }
                Some(Waiting::Answer(decision, manner)) => self.lay_out(&decision.reply, manner),
                None => return,
            }
        }
    }

    /// Bytes to send.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// So much of it was sent.
    pub(crate) fn advance(&mut self, length: usize) {
        self.service.shard.sent_bytes.add(length as u64);
        self.sent += length;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.sent = 0;
        }
    }

    /// End of the connection once all is sent; `None` while it goes on.
    pub(crate) fn end(&self) -> Option<End> {
        self.end.filter(|_| self.bytes.is_empty())
    }

    /// When the next answer is due.
    pub(crate) fn due(&self) -> Option<Moment> {
        match self.waiting.front()? {
            Waiting::Answer(decision, _) => Some(decision.due),
            Waiting::Continue | Waiting::Refusal => Some(Moment::new(0)),
        }
    }

    /// Returns true if so much waits that no more is to be read.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    fn lay_out(&mut self, reply: &Reply, manner: Manner) {
        let service = Rc::clone(&self.service);
        let (answers, shard) = (&service.site.answers, &service.shard);
        service.site.end_one();
        let mut date = service.date.borrow_mut();
        let date = if answers.has_date() {
            date.at(clock::wall())
        } else {
            ""
        };
        let out = &mut self.bytes;
        let status = match reply {
            Reply::Common => answers.write_common(manner, date, out),
            Reply::Specific(answer) => answers.write_specific(answer, manner, date, out),
            Reply::Fault(Fault::Status(status)) => {
                let answer = crate::answers::SpecificAnswer::of_status(*status);
                answers.write_specific(&answer, manner, date, out)
            }
            Reply::Fault(fault) => {
                shard.count_fault(*fault);
                let end = misbehave(answers, *fault, date, out);
                self.end = end.or_else(|| manner.last.then_some(End::Close));
                return;
            }
        };
        shard.count_status(status);
        if manner.last {
            self.end = Some(End::Close);
        }
    }
}

/// Appends what is sent for `fault`, and says how the connection ends.
fn misbehave(answers: &Answers, fault: Fault, date: &str, out: &mut Vec<u8>) -> Option<End> {
    match fault {
        Fault::Status(_) => None,
        Fault::Close => Some(End::CloseEarly),
        Fault::Reset => Some(End::Reset),
        Fault::Silence => Some(End::Silence),
        Fault::Garbage => {
            Answers::write_garbage(out);
            Some(End::CloseEarly)
        }
        Fault::HugeHead => {
            Answers::write_huge(out);
            None
        }
        Fault::Truncate => {
            answers.write_broken(date, out);
            Some(End::CloseEarly)
        }
        Fault::Stall => {
            answers.write_broken(date, out);
            Some(End::Silence)
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        for waiting in &self.waiting {
            if let Waiting::Answer(..) = waiting {
                self.service.site.end_one();
                self.service.shard.abandoned.add(1);
            }
        }
    }
}
