//! One HTTP/1.1 connection, without I/O: bytes in, bytes out.

use std::collections::VecDeque;

use stillwell_http::{
    CONTINUE, H1RequestEvent, ParseError, PreparedResponse, RequestParser, write_response,
};
use stillwell_plan::step::Refusal;
use stillwell_stamp::HEADER;
use stillwell_units::Moment;
use stillwell_wire::server::{Output, Protocol};

use super::request::{CONTENT_DIGEST, Partial};
use super::service::Answer;
use super::site::{Due, Site};

/// Answers that wait at most before no more requests are read.
const WAITING_MAX: usize = 64;

/// One connection and its requests.
#[derive(Debug)]
pub(super) struct Http1 {
    site: Site,
    parser: RequestParser,
    request: Option<Http1Incoming>,
    /// In the order of their requests, which is that of their times.
    waiting: VecDeque<Http1Outgoing>,
    out: Vec<u8>,
    sent: usize,
    /// No more requests are read.
    is_closing: bool,
}

#[derive(Debug)]
struct Http1Incoming {
    partial: Partial,
    is_last: bool,
    /// It is refused on purpose: nothing in it counts.
    refusal: Option<Refusal>,
}

#[derive(Debug)]
struct Http1Outgoing {
    due: Due,
    answer: Answer,
    is_head: bool,
    is_last: bool,
}

impl Http1 {
    pub(super) fn new(site: Site) -> Self {
        Self {
            site,
            parser: RequestParser::new(),
            request: None,
            waiting: VecDeque::new(),
            out: Vec::new(),
            sent: 0,
            is_closing: false,
        }
    }

    /// One event of the parser: the bytes it took, `None` where it needs more.
    fn step(&mut self, input: &[u8], now: Moment) -> Result<Option<usize>, ParseError> {
        let (consumed, event) = self.parser.advance(input)?;
        match event {
            Some(H1RequestEvent::Head(head)) => {
                if head.expect_continue {
                    self.out.extend_from_slice(CONTINUE);
                }
                let mut partial = Partial::new(head.method, head.target, &self.site);
                let takes_chunks = self.site.service().takes_chunks();
                let digest = takes_chunks.then(|| head.header(CONTENT_DIGEST)).flatten();
                for (name, value) in [
                    ("content-type", head.content_type.map(str::as_bytes)),
                    ("content-encoding", head.content_encoding.map(str::as_bytes)),
                    ("x-amz-target", head.header("x-amz-target")),
                    (CONTENT_DIGEST, digest),
                    (HEADER, head.header(HEADER)),
                ] {
                    partial.header(name, value.unwrap_or_default());
                }
                self.request = Some(Http1Incoming {
                    partial,
                    is_last: !head.keep_alive,
                    refusal: self.site.refusal(),
                });
            }
            Some(H1RequestEvent::Body(part)) => {
                if let Some(request) = &mut self.request {
                    match request.refusal {
                        Some(_) => self.site.shard.bytes.add(part.len() as u64),
                        None => request.partial.push(part, &self.site),
                    }
                }
            }
            Some(H1RequestEvent::End) => {
                if let Some(Http1Incoming {
                    partial,
                    is_last,
                    refusal,
                }) = self.request.take()
                {
                    let is_head = partial.is_head();
                    self.waiting.push_back(Http1Outgoing {
                        due: self.site.due(now),
                        answer: match refusal {
                            Some(with) => self.site.refused(with),
                            None => partial.finish(&self.site),
                        },
                        is_head,
                        is_last,
                    });
                    self.is_closing = is_last;
                }
            }
            None => return Ok(None),
        }
        Ok(Some(consumed))
    }
}

impl Output for Http1 {
    fn fill(&mut self, now: Moment) {
        while self.due().is_some_and(|due| due <= now)
            && let Some(outgoing) = self.waiting.pop_front()
        {
            outgoing.write(&mut self.out);
        }
    }

    fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    fn advance(&mut self, length: usize) {
        self.sent += length;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
    }
}

impl Protocol for Http1 {
    type End = ();

    fn take(&mut self, input: &[u8], now: Moment) {
        let mut read = 0;
        while !self.is_closing {
            match self.step(&input[read..], now) {
                Ok(Some(consumed)) => read += consumed,
                Ok(None) => return,
                Err(_) => {
                    self.site.shard.errors.add(1);
                    self.waiting.push_back(Http1Outgoing {
                        due: Due::at(now),
                        answer: Answer::status(400),
                        is_head: false,
                        is_last: true,
                    });
                    self.is_closing = true;
                }
            }
        }
    }

    fn due(&self) -> Option<Moment> {
        self.waiting.front().map(|outgoing| outgoing.due.moment)
    }

    fn open_head(&self) -> Option<u64> {
        self.parser.open_head()
    }

    fn is_full(&self) -> bool {
        self.is_closing || self.waiting.len() >= WAITING_MAX
    }

    fn is_cut(&self) -> bool {
        self.site.is_cut.get()
    }

    fn end(&self) -> Option<()> {
        let is_over = self.is_closing && self.waiting.is_empty() && self.unsent().is_empty();
        is_over.then_some(())
    }

    fn finish(&mut self) {
        if !self.is_closing && self.parser.finish().is_err() {
            self.site.shard.errors.add(1);
        }
    }
}

impl Http1Outgoing {
    fn write(&self, out: &mut Vec<u8>) {
        let answer = &self.answer;
        let fields = answer.headers.iter();
        let mut headers: Vec<(&str, &str)> = fields
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
            .collect();
        if self.is_last {
            headers.push(("connection", "close"));
        }
        let written = if self.is_head {
            PreparedResponse::new(answer.status, &headers, &answer.body)
                .map(|response| out.extend_from_slice(response.head()))
        } else {
            write_response(answer.status, &headers, &answer.body, out)
        };
        // A service whose answer cannot be written has failed.
        written.unwrap_or_else(|_| {
            write_response(500, &headers[headers.len()..], b"", out).unwrap_or_default();
        });
    }
}
