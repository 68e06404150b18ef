//! gRPC calls: their messages as they are sent, and what is made of their answers.

use std::fmt;
use std::ops::Range;

use stillwell_http::grpc::{MessageCounter, http_status, status, timeout_value, write_message};
use stillwell_http::h2::Fields;
use stillwell_metric::CallEnd;
use stillwell_payload::BlockSet;
use stillwell_plan::load::{BodyPlan, GrpcMessages, GrpcPlan};
use stillwell_units::{Moment, Nanos};

use super::answer::AnswerBody;
use super::build::{EncodedRequest, Head, Request};

/// The gRPC part of a request. Its bytes are messages behind their heads.
#[derive(Debug)]
pub(super) struct Call {
    /// End of each message.
    ends: Box<[usize]>,
    /// Messages of a call, which are those over and over.
    pub(super) count: u64,
    pub(super) every: Option<Nanos>,
    pub(super) deadline: Option<Nanos>,
    pub(super) server_streams: bool,
}

/// Headers of a call besides the configured ones.
pub(super) fn headers(body: &BodyPlan) -> Vec<(&'static str, String)> {
    let BodyPlan::Grpc(call) = body else {
        return Vec::new();
    };
    let mut headers = vec![
        ("te", "trailers".to_owned()),
        ("content-type", "application/grpc".to_owned()),
        // Some servers compress unless the request refuses it.
        ("grpc-accept-encoding", "identity".to_owned()),
    ];
    if let Some(deadline) = call.deadline {
        headers.push(("grpc-timeout", timeout_value(deadline.as_u64())));
    }
    headers
}

/// Lays out calls as `plan` says; `blocks` are those of its payload.
pub(super) fn lay_out(
    head: &Head,
    plan: &GrpcPlan,
    blocks: Option<&BlockSet>,
    requests: &mut Vec<Request>,
) {
    let given = match (&plan.messages, blocks) {
        (GrpcMessages::Given(all), _) => all.iter().map(Vec::as_slice).collect(),
        // A call that is not described has none yet.
        (GrpcMessages::Payload(_), None) | (GrpcMessages::Typed(_), _) => Vec::new(),
        (GrpcMessages::Payload(_), Some(set)) => {
            let block = |index| set.run(index, index + 1).bytes;
            (0..set.len()).map(block).collect::<Vec<_>>()
        }
    };
    // With one message a call, each one makes a call of its own.
    let calls = match plan.count {
        1 => given.chunks(1),
        _ => given.chunks(given.len().max(1)),
    };
    for messages in calls {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for message in messages {
            // Nothing as long as that fits into memory twice.
            write_message(message, false, &mut bytes).unwrap_or_default();
            ends.push(bytes.len());
        }
        let mut request = head.with(&bytes, AnswerBody::Any);
        if let EncodedRequest::Http2 { call, .. } = &mut request.encoded {
            *call = Some(Call {
                ends: ends.into(),
                count: plan.count,
                every: plan.every,
                deadline: plan.deadline,
                server_streams: plan.server_streams,
            });
        }
        requests.push(request);
    }
}

impl Call {
    /// Position of message `turn`.
    fn place(&self, turn: usize) -> Range<usize> {
        let start = turn.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[turn]
    }
}

/// Unsent part of one call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallUpload {
    /// Messages that were sent wholly.
    pub(super) sent: u64,
    /// The next message, and the number of its sent bytes.
    turn: usize,
    part: usize,
    /// When it is due, where it is not yet.
    pub(super) due: Option<Moment>,
}

impl CallUpload {
    /// Sends what may be sent `now` of a call that went out at `begun`. `send` takes
    /// bytes and whether they are the last ones, and says how many it took; what it
    /// leaves is tried when there is room again.
    pub(super) fn send(
        &mut self,
        call: &Call,
        bytes: &[u8],
        (begun, now): (Moment, Moment),
        mut send: impl FnMut(&[u8], bool) -> Option<usize>,
    ) {
        self.due = None;
        while self.sent < call.count {
            if let Some(every) = call.every {
                let after = every.as_u64().saturating_mul(self.sent);
                let due = begun + Nanos::new(after);
                if due > now {
                    self.due = Some(due);
                    return;
                }
            }
            let message = &bytes[call.place(self.turn)];
            let is_last = self.sent + 1 == call.count;
            let rest = &message[self.part..];
            let Some(taken) = send(rest, is_last) else {
                return;
            };
            if taken < rest.len() {
                self.part += taken;
                return;
            }
            self.sent += 1;
            self.part = 0;
            self.turn = (self.turn + 1) % call.ends.len();
        }
    }
}

/// Received part of one call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallResponse {
    status: Option<u32>,
    is_grpc: bool,
    has_coding: bool,
    messages: MessageCounter,
    is_garbled: bool,
    pub(super) first_message: Option<Moment>,
}

impl CallResponse {
    pub(super) fn head(&mut self, fields: Fields<'_>) {
        let kind = fields.value("content-type").unwrap_or_default();
        self.is_grpc = kind.starts_with(b"application/grpc");
        let coding = fields.value("grpc-encoding").unwrap_or_default();
        self.has_coding = !coding.is_empty() && coding != b"identity";
        self.status = status(fields);
    }

    /// Takes a part of the body that came `now`; gives how many messages it
    /// completes, and how many of them are compressed.
    pub(super) fn body(&mut self, bytes: &[u8], now: Moment) -> (u64, u64) {
        if self.is_garbled || !self.is_grpc {
            return (0, 0);
        }
        let before = self.messages;
        self.is_garbled = self.messages.take(bytes).is_err();
        let came = self.messages.messages() - before.messages();
        if came > 0 {
            self.first_message.get_or_insert(now);
        }
        (came, self.messages.compressed() - before.compressed())
    }

    pub(super) fn trailers(&mut self, fields: Fields<'_>) {
        self.status = status(fields).or(self.status);
    }

    /// Returns the end that the whole answer means, and the corresponding status of HTTP.
    /// `served` is the received status.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn conclude(
        &self,
        served: u16,
        server_streams: bool,
    ) -> Result<(CallEnd, u16), CallTrouble> {
        let status = match self.status {
            Some(status) => status,
            None if served != 200 => return Ok((CallEnd::NotGrpc, served)),
            None if !self.is_grpc => return Err(CallTrouble(CallEnd::NotGrpc)),
            None => return Err(CallTrouble(CallEnd::NoStatus)),
        };
        let is_well = status == 0;
        let is_coded = self.messages.compressed() > 0;
        let is_one = self.messages.messages() == 1;
        let trouble = if self.is_garbled || (is_coded && !self.has_coding) {
            Some(CallEnd::BadFrame)
        } else if is_well && self.messages.is_within() {
            Some(CallEnd::CutShort)
        } else if is_well && !server_streams && !is_one {
            Some(CallEnd::WrongCount)
        } else {
            None
        };
        match trouble {
            Some(end) => Err(CallTrouble(end)),
            None => Ok((CallEnd::of_status(status), http_status(status))),
        }
    }
}

/// An answer that breaks gRPC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CallTrouble(pub(super) CallEnd);

impl fmt::Display for CallTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            CallEnd::NoStatus => "a call was answered without `grpc-status`",
            CallEnd::NotGrpc => {
                "the response is not gRPC: its content-type is not application/grpc"
            }
            CallEnd::CutShort => "a call ended with status OK within a message",
            CallEnd::WrongCount => {
                "a call ended with status OK, but without exactly one response message"
            }
            _ => "a response is not a gRPC message, or does not state its compression",
        })
    }
}

impl std::error::Error for CallTrouble {}

#[cfg(test)]
mod tests;
