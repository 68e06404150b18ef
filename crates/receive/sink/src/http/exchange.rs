//! One connection's requests, without I/O: bytes in, replies out.

use std::sync::Arc;
use stillwell_http::{H1RequestEvent, H1RequestHead, ParseError, RequestParser};

use stillwell_metric::SinkShard;
use stillwell_plan::step::Refusal;
use stillwell_stamp::HEADER;

use crate::events::BodyEvents;
use crate::intake::decode::{BodyDecoder, Coding};
use crate::ledger::Stamps;
use crate::steering::Steering;

/// The next reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HttpReply {
    /// The client waits before it sends its body.
    Continue,
    /// The sink's answer.
    Answer {
        /// Without the body, which `HEAD` does not get.
        head_only: bool,
        /// True if the connection is to be closed after it.
        last: bool,
    },
    /// The request is refused on purpose.
    Refused {
        /// How.
        with: Refusal,
        /// True if the connection is to be closed after it.
        last: bool,
    },
    /// The request cannot be framed; the connection is to be closed after this.
    Refuse,
}

impl HttpReply {
    pub(super) const fn is_last(self) -> bool {
        matches!(
            self,
            Self::Refuse | Self::Answer { last: true, .. } | Self::Refused { last: true, .. }
        )
    }
}

/// Reads requests, counts them, and says what to reply.
#[derive(Debug)]
pub(super) struct Exchange {
    parser: RequestParser,
    request: Option<ReceivedRequest>,
    /// At most one and a half for every 16 bytes of what was taken in.
    replies: Vec<HttpReply>,
    refused: bool,
    ended: bool,
    /// Looks through bodies.
    stamps: Stamps,
    /// Says which requests are refused.
    steering: Option<Arc<Steering>>,
}

/// The request that is being read.
#[derive(Debug)]
struct ReceivedRequest {
    head_only: bool,
    last: bool,
    /// Decoder of the body; `None` without codings, or if one is unknown.
    decoder: Option<BodyDecoder>,
    events: BodyEvents,
    /// Its body is packed in a way that is not known.
    is_unread: bool,
    /// It is refused on purpose: nothing in it counts.
    refusal: Option<Refusal>,
}

impl Exchange {
    /// Before the first request of a connection.
    pub(super) fn new(stamps: Stamps, steering: Option<Arc<Steering>>) -> Self {
        Self {
            parser: RequestParser::default(),
            request: None,
            replies: Vec::new(),
            refused: false,
            ended: false,
            stamps: stamps.of_requests(),
            steering,
        }
    }

    /// Takes in the bytes that were read; bytes after the last request are ignored.
    pub(super) fn take(&mut self, input: &[u8], shard: &SinkShard) {
        let mut read = 0;
        while !self.ended {
            match self.step(&input[read..], shard) {
                Ok(Some(consumed)) => read += consumed,
                Ok(None) => return,
                Err(_) => {
                    shard.errors.add(1);
                    self.replies.push(HttpReply::Refuse);
                    self.refused = true;
                    self.ended = true;
                }
            }
        }
    }

    /// The replies to what was taken in since the last call, in order.
    pub(super) fn replies(&mut self) -> Vec<HttpReply> {
        std::mem::take(&mut self.replies)
    }

    /// Gives the room that [`Self::replies`] came in back.
    pub(super) fn reuse(&mut self, mut replies: Vec<HttpReply>) {
        replies.clear();
        self.replies = replies;
    }

    /// The peer has closed the connection.
    pub(super) fn finish(&mut self, shard: &SinkShard) {
        if !self.ended && self.parser.finish().is_err() {
            shard.errors.add(1);
        }
    }

    /// Returns true if a request could not be framed.
    pub(super) const fn is_refused(&self) -> bool {
        self.refused
    }

    /// Returns true within a body whose coding is undone.
    pub(super) const fn is_decoding(&self) -> bool {
        matches!(
            &self.request,
            Some(ReceivedRequest {
                decoder: Some(_),
                ..
            })
        )
    }

    /// The number of the request whose head has begun and is not whole, if there is one.
    pub(super) fn open_head(&self) -> Option<u64> {
        self.parser.open_head()
    }

    /// One event of the parser: the bytes it took, `None` where it needs more.
    fn step(&mut self, input: &[u8], shard: &SinkShard) -> Result<Option<usize>, ParseError> {
        let (consumed, event) = self.parser.advance(input)?;
        match event {
            Some(H1RequestEvent::Head(head)) => {
                if head.expect_continue {
                    self.replies.push(HttpReply::Continue);
                }
                let steering = self.steering.as_ref();
                let refusal = steering.and_then(|steering| steering.refusal());
                if refusal.is_none() && self.stamps.looks_in_headers() {
                    self.stamps.begin_request(head.header(HEADER));
                }
                self.request = Some(ReceivedRequest::of(&head, refusal));
            }
            Some(H1RequestEvent::Body(part)) => {
                shard.bytes.add(part.len() as u64);
                if let Some(request) = &mut self.request {
                    request.take(part, &mut self.stamps, shard);
                }
            }
            Some(H1RequestEvent::End) => {
                if let Some(mut request) = self.request.take() {
                    request.end(&mut self.stamps, shard);
                    self.stamps.end_request();
                    shard.messages.add(1);
                    shard.refused.add(u64::from(request.refusal.is_some()));
                    shard.events.add(request.events.finish());
                    self.replies.push(request.reply());
                    self.ended = request.last;
                }
            }
            None => return Ok(None),
        }
        Ok(Some(consumed))
    }
}

impl ReceivedRequest {
    fn of(head: &H1RequestHead<'_>, refusal: Option<Refusal>) -> Self {
        if refusal.is_some() {
            return Self {
                head_only: head.method == "HEAD",
                last: !head.keep_alive,
                decoder: None,
                events: BodyEvents::Unseen,
                is_unread: false,
                refusal,
            };
        }
        let coding = head.content_encoding;
        let codings = coding.and_then(Coding::all);
        let decoder = codings.as_deref().and_then(BodyDecoder::new);
        let is_plain = codings.is_some_and(|codings| codings.is_empty());
        let coding = coding.filter(|_| decoder.is_none() && !is_plain);
        let events = BodyEvents::new(head.content_type, coding);
        Self {
            head_only: head.method == "HEAD",
            last: !head.keep_alive,
            is_unread: matches!(events, BodyEvents::Unseen),
            events,
            decoder,
            refusal: None,
        }
    }

    /// The next part of its body.
    fn take(&mut self, part: &[u8], stamps: &mut Stamps, shard: &SinkShard) {
        if self.refusal.is_some() {
            return;
        }
        let Some(decoder) = &mut self.decoder else {
            stamps.feed(part);
            return self.events.take(part);
        };
        let decoded = decoder.push(part, |bytes| {
            shard.decoded_bytes.add(bytes.len() as u64);
            stamps.feed(bytes);
            self.events.take(bytes);
        });
        if decoded.is_err() {
            self.give_up(shard);
        }
    }

    /// Its body has ended.
    fn end(&mut self, stamps: &mut Stamps, shard: &SinkShard) {
        let Some(decoder) = &mut self.decoder else {
            shard.malformed.add(u64::from(self.is_unread));
            return;
        };
        let decoded = decoder.finish(|bytes| {
            shard.decoded_bytes.add(bytes.len() as u64);
            stamps.feed(bytes);
            self.events.take(bytes);
        });
        if decoded.is_err() {
            self.give_up(shard);
        }
    }

    /// Its body is not encoded as it says: what is in it cannot be seen.
    fn give_up(&mut self, shard: &SinkShard) {
        shard.malformed.add(1);
        self.decoder = None;
        self.events = BodyEvents::Unseen;
    }

    const fn reply(&self) -> HttpReply {
        if let Some(with) = self.refusal {
            return HttpReply::Refused {
                with,
                last: self.last,
            };
        }
        HttpReply::Answer {
            head_only: self.head_only,
            last: self.last,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use stillwell_metric::Labels;

    use super::*;

    /// Other connections are served between the reads of such a body.
    #[test]
    fn a_compressed_body_is_read_in_turns_from_its_head_to_its_end() {
        let shard = SinkShard::new(Labels::none());
        let body = zstd::encode_all(&b"one\ntwo\n"[..], 1).unwrap();
        let (first, last) = body.split_at(body.len() - 1);
        let head = |coding: &str| {
            let length = body.len();
            format!("POST / HTTP/1.1\r\nhost: a\r\n{coding}content-length: {length}\r\n\r\n")
        };
        for (coding, is_decoding) in [("content-encoding: zstd\r\n", true), ("", false)] {
            let mut exchange = Exchange::new(Stamps::new(None, None), None);
            assert!(!exchange.is_decoding());
            exchange.take(head(coding).as_bytes(), &shard);
            assert_eq!(exchange.is_decoding(), is_decoding);
            exchange.take(first, &shard);
            assert_eq!(exchange.is_decoding(), is_decoding);
            exchange.take(last, &shard);
            assert!(!exchange.is_decoding());
        }
        assert_eq!(shard.messages.total(), 2);
    }

    #[test]
    fn up_to_two_codings_are_undone_from_the_last_to_the_first() {
        let text = b"one\ntwo\n".as_slice();
        let packed = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        let gzip = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        for (coding, body, is_read) in [
            ("", text.to_vec(), true),
            ("identity", text.to_vec(), true),
            ("zstd", packed(text), true),
            ("gzip, zstd", packed(&gzip(text)), true),
            ("zstd, identity, gzip", gzip(&packed(text)), true),
            ("zstd, gzip", packed(&gzip(text)), false),
            ("gzip, zstd", packed(text), false),
            ("zstd, zstd, zstd", packed(&packed(&packed(text))), false),
            ("zstd, br", packed(text), false),
        ] {
            let shard = SinkShard::new(Labels::none());
            let mut exchange = Exchange::new(Stamps::new(None, None), None);
            let length = body.len();
            let head = format!(
                "POST / HTTP/1.1\r\nhost: a\r\ncontent-encoding: {coding}\r\n\
                 content-length: {length}\r\n\r\n"
            );
            exchange.take(head.as_bytes(), &shard);
            for part in body.chunks(3) {
                exchange.take(part, &shard);
            }
            let counts = [&shard.messages, &shard.events, &shard.malformed];
            let counts = counts.map(|cell| cell.total());
            let expected = if is_read { [1, 2, 0] } else { [1, 0, 1] };
            assert_eq!(counts, expected, "{coding}");
        }
    }
}
