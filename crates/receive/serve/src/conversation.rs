//! One HTTP/1.1 connection's requests, without I/O: bytes in, answers out.

use stillwell_http::{H1RequestEvent, H1RequestHead, ParseError, RequestParser};
use stillwell_units::Moment;

use crate::answers::Manner;
use crate::outbox::Outbox;
use crate::request::RequestedResponse;
use crate::service::Service;

/// Reads requests and has them answered.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    parser: RequestParser,
    request: Option<Http1Request>,
    ended: bool,
}

/// The request that is being read.
#[derive(Debug)]
struct Http1Request {
    manner: Manner,
    requested: Option<Box<RequestedResponse>>,
}

impl Conversation {
    /// Takes in what was read `now`; bytes after the last request are
    /// ignored.
    pub(crate) fn take(
        &mut self,
        input: &[u8],
        now: Moment,
        service: &Service,
        outbox: &mut Outbox,
    ) {
        let mut read = 0;
        while !self.ended {
            match self.step(&input[read..], now, service, outbox) {
                Ok(Some(consumed)) => read += consumed,
                Ok(None) => return,
                Err(_) => {
                    service.shard.malformed.add(1);
                    outbox.push_refusal();
                    self.ended = true;
                }
            }
        }
    }

    /// The peer has closed the connection.
    pub(crate) fn finish(&mut self, service: &Service) {
        if !self.ended && self.parser.finish().is_err() {
            service.shard.malformed.add(1);
        }
    }

    /// The number of the request whose head has begun and is not whole, if there is one.
    pub(crate) fn open_head(&self) -> Option<u64> {
        self.parser.open_head()
    }

    /// One event of the parser: the bytes it took, `None` where it needs more.
    fn step(
        &mut self,
        input: &[u8],
        now: Moment,
        service: &Service,
        outbox: &mut Outbox,
    ) -> Result<Option<usize>, ParseError> {
        let (consumed, event) = self.parser.advance(input)?;
        match event {
            Some(H1RequestEvent::Head(head)) => {
                if head.expect_continue {
                    outbox.push_continue();
                }
                self.request = Some(Http1Request::of(&head, service));
            }
            Some(H1RequestEvent::Body(part)) => service.shard.body_bytes.add(part.len() as u64),
            Some(H1RequestEvent::End) => {
                if let Some(request) = self.request.take() {
                    service.shard.requests.add(1);
                    self.ended = request.manner.last;
                    outbox.push(service.decide(now, request.requested), request.manner);
                }
            }
            None => return Ok(None),
        }
        Ok(Some(consumed))
    }
}

impl Http1Request {
    fn of(head: &H1RequestHead<'_>, service: &Service) -> Self {
        let pseudo: [(&[u8], &[u8]); 2] = [
            (b":path", head.target.as_bytes()),
            (b":method", head.method.as_bytes()),
        ];
        Self {
            manner: Manner {
                head_only: head.method == "HEAD",
                last: !head.keep_alive,
            },
            requested: service.requested("HTTP/1", || pseudo.into_iter().chain(head.headers())),
        }
    }
}
