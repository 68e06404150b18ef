//! Reads answers, each faster if it begins like the last.

use stillwell_http::{H1ResponseEvent, ParseError, ResponseParser};

/// The head of an answer that was parsed before. Servers answer like requests
/// alike, except the date once a second: comparing is ten times faster than
/// parsing, and what is the same byte for byte means the same.
#[derive(Debug, Default)]
pub(super) struct HeadMemo {
    head: Vec<u8>,
    status: u16,
    keep_alive: bool,
    head_bytes: u64,
    body_bytes: u64,
}

/// The body of an answer, by the method of its request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AnswerBody {
    /// As its head says.
    Any,
    /// None, also if its head gives a length.
    Never,
    /// None if the status opens a tunnel, else as its head says. No request follows through
    /// a tunnel.
    UnlessTunnel,
}

impl AnswerBody {
    /// Returns true if an answer of `status` opens a tunnel.
    pub(super) const fn opens_tunnel(self, status: u16) -> bool {
        matches!(self, Self::UnlessTunnel) && 200 <= status && status < 300
    }
}

/// Reads the answers of one connection.
#[derive(Debug)]
pub(super) struct ResponseReader {
    parser: ResponseParser,
    state: ReaderState,
    whole: ResponseSummary,
    /// The header whose number is looked for. Each head is parsed then: heads
    /// that differ in it are not alike.
    watched: Option<String>,
    watched_values: Vec<Option<u64>>,
    /// Headers of the answer under way, if they are reported.
    headers_kept: Option<Vec<(String, Vec<u8>)>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReaderState {
    Start,
    /// In a head, or in a body that the parser follows.
    Parsing,
    /// In a body of which so much is left.
    Left(u64),
}

/// Received part of an answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct ResponseSummary {
    pub(super) status: u16,
    /// True if another request may follow.
    pub(super) keep_alive: bool,
    /// Names and values of headers, `:status` among them.
    pub(super) head_bytes: u64,
    pub(super) body_bytes: u64,
}

impl ResponseReader {
    pub(super) fn new(watched: Option<&str>) -> Self {
        Self {
            parser: ResponseParser::new(),
            state: ReaderState::Start,
            whole: ResponseSummary::default(),
            watched: watched.map(str::to_owned),
            watched_values: Vec::new(),
            headers_kept: None,
        }
    }

    /// Keeps all headers of each answer, where `keeps` says so. Each head is parsed
    /// then.
    pub(super) fn keeping_headers(self, keeps: bool) -> Self {
        let headers_kept = keeps.then(Vec::new);
        Self {
            headers_kept,
            ..self
        }
    }

    /// Names and values of the last answer's headers, where they are kept.
    pub(super) fn headers_kept(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let headers_kept = self.headers_kept.iter().flatten();
        headers_kept.map(|(name, value)| (name.as_bytes(), value.as_slice()))
    }

    /// The number under the watched header of the last answer, where it had one.
    pub(super) fn watched(&self) -> Option<u64> {
        match self.watched_values.as_slice() {
            [value] => *value,
            // With several values it is unknown which one is meant.
            _ => None,
        }
    }

    /// Takes `input`, the next that was read; gives the answer once it is whole.
    ///
    /// # Errors
    /// [`ParseError`] for an answer that breaks the protocol.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        body: AnswerBody,
        memo: &mut HeadMemo,
    ) -> Result<Option<ResponseSummary>, ParseError> {
        match self.state {
            ReaderState::Start if body == AnswerBody::Any && memo.begins(input) => {
                self.whole = memo.whole();
                let rest = input.len() - memo.head.len();
                self.body(self.whole.body_bytes, rest as u64)
            }
            ReaderState::Start | ReaderState::Parsing => self.parse(input, body, memo),
            ReaderState::Left(left) => self.body(left, input.len() as u64),
        }
    }

    /// The connection has ended: that may be the end of an answer.
    pub(super) fn finish(&mut self) -> Option<ResponseSummary> {
        if self.state != ReaderState::Parsing {
            return None;
        }
        let end = self.parser.finish();
        matches!(end, Ok(Some(H1ResponseEvent::End))).then_some(ResponseSummary {
            keep_alive: false,
            ..self.whole
        })
    }

    /// Of `left` bytes of a body, `came` have come.
    const fn body(&mut self, left: u64, came: u64) -> Result<Option<ResponseSummary>, ParseError> {
        if came < left {
            self.state = ReaderState::Left(left - came);
            return Ok(None);
        }
        self.ended(came == left)
    }

    fn parse(
        &mut self,
        input: &[u8],
        body: AnswerBody,
        memo: &mut HeadMemo,
    ) -> Result<Option<ResponseSummary>, ParseError> {
        let is_start = self.state == ReaderState::Start;
        if is_start {
            self.whole = ResponseSummary::default();
            self.state = ReaderState::Parsing;
            self.watched_values.clear();
            if let Some(headers_kept) = &mut self.headers_kept {
                headers_kept.clear();
            }
            // It ends with its head, also if that gives no length (RFC 9112, 6.3). This holds
            // for the next final response alone.
            if body == AnswerBody::Never {
                self.parser.answers_head();
            }
        }
        let mut read = 0;
        loop {
            let (watched, values) = (&self.watched, &mut self.watched_values);
            let headers_kept = &mut self.headers_kept;
            let header = |name: &str, value: &[u8]| {
                let is_it = |watched: &String| watched.eq_ignore_ascii_case(name);
                if watched.as_ref().is_some_and(is_it) {
                    values.push(number(value));
                }
                if let Some(headers_kept) = headers_kept {
                    headers_kept.push((name.to_owned(), value.to_vec()));
                }
            };
            let (consumed, event) = self.parser.advance_reading(&input[read..], header)?;
            read += consumed;
            match event {
                None => return Ok(None),
                Some(H1ResponseEvent::Body(part)) => self.whole.body_bytes += part.len() as u64,
                Some(H1ResponseEvent::Head(head)) => {
                    self.whole.status = head.status;
                    self.whole.keep_alive = head.keep_alive;
                    self.whole.head_bytes = head.header_bytes as u64;
                    let is_tunnel = body.opens_tunnel(head.status);
                    if is_tunnel || body == AnswerBody::Never {
                        self.parser = ResponseParser::new();
                        self.whole.keep_alive &= !is_tunnel;
                        // Through a tunnel, the other end may speak first.
                        return self.ended(is_tunnel || read == input.len());
                    }
                    let is_read = self.watched.is_some() || self.headers_kept.is_some();
                    let is_framed = body == AnswerBody::Any && !matches!(head.status, 204 | 304);
                    let is_cacheable = !is_read && is_framed;
                    if is_start && is_cacheable {
                        memo.learn(&input[..read], self.whole, head.content_length);
                    }
                }
                Some(H1ResponseEvent::End) => return self.ended(read == input.len()),
            }
        }
    }

    /// An answer is whole. Bytes behind it belong to no request, so it may be another's answer, too.
    const fn ended(&mut self, is_all: bool) -> Result<Option<ResponseSummary>, ParseError> {
        self.state = ReaderState::Start;
        match is_all {
            true => Ok(Some(self.whole)),
            false => Err(ParseError::Unrequested),
        }
    }
}

/// A value that is a whole number.
pub(super) fn number(value: &[u8]) -> Option<u64> {
    str::from_utf8(value).ok()?.trim().parse().ok()
}

impl HeadMemo {
    fn begins(&self, input: &[u8]) -> bool {
        !self.head.is_empty() && input.starts_with(&self.head)
    }

    const fn whole(&self) -> ResponseSummary {
        ResponseSummary {
            status: self.status,
            keep_alive: self.keep_alive,
            head_bytes: self.head_bytes,
            body_bytes: self.body_bytes,
        }
    }

    fn learn(&mut self, head: &[u8], whole: ResponseSummary, content_length: Option<u64>) {
        let Some(body_bytes) = content_length else {
            return;
        };
        self.head.clear();
        self.head.extend_from_slice(head);
        self.status = whole.status;
        self.keep_alive = whole.keep_alive;
        self.head_bytes = whole.head_bytes;
        self.body_bytes = body_bytes;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANSWERS: [(&str, AnswerBody, u16, u64, bool); 11] = [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
            AnswerBody::Any,
            200,
            3,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n",
            AnswerBody::Never,
            200,
            0,
            true,
        ),
        (
            "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n",
            AnswerBody::Any,
            404,
            0,
            true,
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 C\r\ncontent-length: 1\r\n\r\nx",
            AnswerBody::Any,
            201,
            1,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            AnswerBody::Any,
            200,
            2,
            true,
        ),
        (
            "HTTP/1.1 503 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno",
            AnswerBody::Any,
            503,
            2,
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nserver: a\r\n\r\n",
            AnswerBody::Never,
            200,
            0,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            AnswerBody::Never,
            200,
            0,
            true,
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nserver: a\r\n\r\n",
            AnswerBody::Never,
            200,
            0,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
            AnswerBody::Never,
            200,
            0,
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n",
            AnswerBody::UnlessTunnel,
            200,
            0,
            false,
        ),
    ];

    proptest! {
        #[test]
        fn for_all_sequences_and_cuts_answers_read_as_they_are(
            which in prop::collection::vec(0_usize..ANSWERS.len(), 1..20),
            cuts in prop::collection::vec(1_usize..40, 1..10),
        ) {
            let (mut memo, mut cuts) = (HeadMemo::default(), cuts.into_iter().cycle());
            let mut reader = ResponseReader::new(None);
            for index in which {
                let (text, body, status, body_bytes, keep_alive) = ANSWERS[index];
                let mut rest = text.as_bytes();
                let mut seen = None;
                while !rest.is_empty() {
                    prop_assert_eq!(seen, None, "whole before its end");
                    let cut = cuts.next().unwrap_or(1).min(rest.len());
                    seen = reader.take(&rest[..cut], body, &mut memo).unwrap();
                    rest = &rest[cut..];
                }
                let head_bytes = header_bytes(text);
                let whole = ResponseSummary { status, keep_alive, head_bytes, body_bytes };
                prop_assert_eq!(seen, Some(whole));
            }
        }
    }

    /// Without a length the body was all until the end of the connection, which closed.
    #[test]
    fn an_answer_to_head_ends_with_its_head_and_keeps_the_connection() {
        let (mut memo, mut reader) = (HeadMemo::default(), ResponseReader::new(None));
        let mut read = |text: &str, body: AnswerBody| {
            let whole = reader.take(text.as_bytes(), body, &mut memo).unwrap();
            whole.map(|whole| (whole.body_bytes, whole.keep_alive))
        };
        for (headers, keep_alive) in [
            ("", true),
            ("transfer-encoding: chunked\r\n", true),
            ("content-length: 3\r\n", true),
            ("connection: close\r\n", false),
        ] {
            for interim in ["", "HTTP/1.1 100 Continue\r\n\r\n"] {
                let text = format!("{interim}HTTP/1.1 200 OK\r\n{headers}\r\n");
                let whole = read(&text, AnswerBody::Never);
                assert_eq!(whole, Some((0, keep_alive)), "{text}");
            }
        }
        // The next answer is to another method.
        let text = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab";
        assert_eq!(read(text, AnswerBody::Any), Some((2, true)));
    }

    #[test]
    fn a_tunnel_ends_an_answer_with_its_head_and_a_refusal_has_a_body() {
        let mut memo = HeadMemo::default();
        let mut read = |text: &str| {
            let mut reader = ResponseReader::new(None);
            let whole = reader.take(text.as_bytes(), AnswerBody::UnlessTunnel, &mut memo);
            whole
                .unwrap()
                .map(|whole| (whole.status, whole.body_bytes, whole.keep_alive))
        };
        let opened = "HTTP/1.1 200 OK\r\n\r\nfrom the other end";
        let refused = "HTTP/1.1 407 No\r\ncontent-length: 2\r\n\r\nno";
        assert_eq!(read(opened), Some((200, 0, false)));
        assert_eq!(read(refused), Some((407, 2, true)));
    }

    /// Names and values of the last head in `text`, `:status` among them.
    fn header_bytes(text: &str) -> u64 {
        let (_, head) = text.rsplit_once("HTTP/1.1 ").unwrap();
        let (head, _) = head.split_once("\r\n\r\n").unwrap();
        let headers = head.lines().skip(1).map(|line| line.len() - ": ".len());
        (headers.sum::<usize>() + ":status200".len()) as u64
    }

    #[test]
    fn a_watched_header_is_read_from_every_answer_and_only_where_it_is_clear() {
        let (mut memo, mut reader) = (HeadMemo::default(), ResponseReader::new(Some("x-delta")));
        for (headers, number) in [
            ("X-Delta: 12\r\n", Some(12)),
            ("x-delta: 13\r\n", Some(13)),
            ("", None),
            ("x-delta: 1\r\nx-delta: 2\r\n", None),
            ("x-delta: soon\r\n", None),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n");
            let whole = reader
                .take(text.as_bytes(), AnswerBody::Any, &mut memo)
                .unwrap();
            assert!(whole.is_some());
            assert_eq!(reader.watched(), number, "{headers}");
        }
    }

    #[test]
    fn an_answer_may_end_with_its_connection_and_may_not_be_followed() {
        let mut memo = HeadMemo::default();
        let mut reader = ResponseReader::new(None);
        let text = b"HTTP/1.1 200 OK\r\n\r\nabc";
        assert_eq!(reader.take(text, AnswerBody::Any, &mut memo), Ok(None));
        assert_eq!(reader.finish().map(|whole| whole.body_bytes), Some(3));
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab";
        for _ in 0..2 {
            let mut reader = ResponseReader::new(None);
            let followed = reader.take(text, AnswerBody::Any, &mut memo);
            assert_eq!(followed, Err(ParseError::Unrequested));
        }
        let broken = ResponseReader::new(None).take(b"HELO\r\n\r\n", AnswerBody::Any, &mut memo);
        assert!(broken.is_err(), "{broken:?}");
    }
}
