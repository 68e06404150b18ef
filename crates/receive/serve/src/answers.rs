//! Answers in bytes.

use bytes::Bytes;
use stillwell_http::h2::H2ResponseBlock;
use stillwell_http::h3;
use stillwell_http::{HeadError, PreparedResponse};
use stillwell_plan::serve::{AnswerPlan, FilterSet, ResponseOptions};
use stillwell_units::Nanos;

use crate::date::{DATE_BYTES, Date};

/// As long as a date, and found again where the real one belongs.
const DATE_HERE: &str = "DATE-DATE-DATE-DATE-DATE-DATE";
const _: () = assert!(DATE_HERE.len() == DATE_BYTES);

/// Longer than any head that a client is bound to read.
pub(crate) const HUGE_HEADER_BYTES: usize = 64 << 10;

/// No program that speaks HTTP begins like this.
const GARBAGE: &[u8] = b"\0\xff\x16this is not HTTP\r\n\r\n\x7f\0\0\0garbage";

/// The body that is broken off where the usual one is too short for that.
const BROKEN_BODY_BYTES_MIN: usize = 100;

/// The answers of a listener that are the same each time, laid out once.
#[derive(Debug)]
pub(crate) struct Answers {
    common: Laid,
    last: Laid,
    refusal: Laid,
    /// Value of the header `server`.
    server: Option<String>,
    usual: SpecificAnswer,
}

/// The head of the common answer in HTTP/2, length and date included, of the last
/// requested second: so each answer is a copy.
#[derive(Debug, Default)]
pub(crate) struct CommonHead {
    second: Option<u64>,
    block: Option<H2ResponseBlock>,
}

/// An answer that only some requests get.
#[derive(Debug)]
pub(crate) struct SpecificAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// A response, and the position of its date.
#[derive(Debug)]
struct Laid {
    response: PreparedResponse,
    date_at: Option<usize>,
}

/// Manner in which an answer goes to one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Manner {
    /// Without the body, which `HEAD` does not get.
    pub(crate) head_only: bool,
    /// True if the connection is closed after it.
    pub(crate) last: bool,
}

impl Answers {
    pub(crate) fn new(plan: &AnswerPlan) -> Result<Self, HeadError> {
        let usual = SpecificAnswer::new(&plan.options, plan.filters, None, None);
        let server = plan.headers.server.as_deref();
        let laid = |answer: &SpecificAnswer, last| Laid::new(answer, last, server);
        Ok(Self {
            common: laid(&usual, false)?,
            last: laid(&usual, true)?,
            refusal: laid(&SpecificAnswer::of_status(400), true)?,
            server: plan.headers.server.clone(),
            usual,
        })
    }

    /// Appends the common answer to `out` and says its status.
    pub(crate) fn write_common(&self, manner: Manner, date: &str, out: &mut Vec<u8>) -> u16 {
        let laid = if manner.last {
            &self.last
        } else {
            &self.common
        };
        laid.write(manner.head_only, date, out);
        self.usual.status
    }

    /// Appends `answer` to `out`, or status 500 where it cannot be laid out, and
    /// says its status.
    pub(crate) fn write_specific(
        &self,
        answer: &SpecificAnswer,
        manner: Manner,
        date: &str,
        out: &mut Vec<u8>,
    ) -> u16 {
        let laid = |answer: &SpecificAnswer| Laid::new(answer, manner.last, self.server());
        if let Ok(response) = laid(answer) {
            response.write(manner.head_only, date, out);
            return answer.status;
        }
        if let Ok(error) = laid(&SpecificAnswer::of_status(500)) {
            error.write(manner.head_only, date, out);
        }
        500
    }

    /// Appends what a request gets that cannot be framed.
    pub(crate) fn write_refusal(&self, date: &str, out: &mut Vec<u8>) {
        self.refusal.write(false, date, out);
    }

    /// Appends an answer that breaks off in the middle of its body.
    pub(crate) fn write_broken(&self, date: &str, out: &mut Vec<u8>) {
        let mut answer = SpecificAnswer::of_status(200);
        answer.body = vec![b'a'; self.broken_bytes()];
        let manner = Manner {
            head_only: false,
            last: false,
        };
        self.write_specific(&answer, manner, date, out);
        out.truncate(out.len() - answer.body.len() / 2);
    }

    /// Length of a body that breaks off, and the part that is sent.
    pub(crate) fn broken_body(&self) -> (usize, Vec<u8>) {
        let length = self.broken_bytes();
        (length, vec![b'a'; length / 2])
    }

    /// The usual answer.
    pub(crate) const fn common(&self) -> &SpecificAnswer {
        &self.usual
    }

    fn broken_bytes(&self) -> usize {
        self.usual.body.len().max(BROKEN_BODY_BYTES_MIN)
    }

    /// Appends an answer whose head is longer than any client reads.
    pub(crate) fn write_huge(out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-huge: ");
        out.resize(out.len() + HUGE_HEADER_BYTES, b'a');
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends what is no HTTP.
    pub(crate) fn write_garbage(out: &mut Vec<u8>) {
        out.extend_from_slice(GARBAGE);
    }

    /// Returns true if answers carry a date.
    pub(crate) const fn has_date(&self) -> bool {
        self.server.is_some()
    }

    /// Value of the header `server`.
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }
}

impl CommonHead {
    /// The head at `wall`; `None` where it cannot be laid out.
    pub(crate) fn at(
        &mut self,
        answers: &Answers,
        date: &mut Date,
        wall: Nanos,
    ) -> Option<&H2ResponseBlock> {
        // Without a date all seconds are alike.
        let second = answers.has_date().then(|| wall.as_u64() / 1_000_000_000);
        if self.block.is_none() || self.second != second {
            let common = answers.common();
            let date = second.map(|_| date.at(wall));
            let block = common.head(answers.server(), date).ok();
            self.block = block.map(|block| block.with_content_length(common.body.len() as u64));
            self.second = second;
        }
        self.block.as_ref()
    }
}

/// The common answer in HTTP/3, with its body and without, of the last second that was
/// requested: so all answers share their bytes.
#[derive(Debug, Default)]
pub(crate) struct CommonHttp3 {
    second: Option<u64>,
    laid: Option<[Bytes; 2]>,
}

impl CommonHttp3 {
    /// The answer at `wall`; empty where it cannot be laid out.
    pub(crate) fn at(
        &mut self,
        answers: &Answers,
        date: &mut Date,
        wall: Nanos,
        head_only: bool,
    ) -> Bytes {
        // Without a date all seconds are alike.
        let second = answers.has_date().then(|| wall.as_u64() / 1_000_000_000);
        if self.laid.is_none() || self.second != second {
            let date = second.map(|_| date.at(wall));
            let lay = |head_only| {
                let laid = answers
                    .common()
                    .lay_http3(answers.server(), date, head_only);
                Bytes::from(laid.unwrap_or_default())
            };
            self.laid = Some([lay(false), lay(true)]);
            self.second = second;
        }
        let laid = self.laid.as_ref();
        laid.map_or_else(Bytes::new, |laid| laid[usize::from(head_only)].clone())
    }
}

impl SpecificAnswer {
    /// The answer that `options` request, as far as there are `filters` that
    /// heed them; with the request's headers and with the time since the request
    /// before, where those are to be sent.
    pub(crate) fn new(
        options: &ResponseOptions,
        filters: FilterSet,
        echo: Option<&str>,
        delta: Option<(Nanos, &str)>,
    ) -> Self {
        let mut answer = Self::of_status(404);
        if filters.test_server {
            let bytes = usize::try_from(options.body_bytes.unwrap_or(0)).unwrap_or(0);
            answer.body = vec![b'a'; bytes];
            answer
                .body
                .extend_from_slice(echo.unwrap_or_default().as_bytes());
            let (status, headers) = options.status_and_headers(!answer.body.is_empty());
            answer.status = status;
            if matches!(status, 204 | 304) {
                answer.body.clear();
            }
            let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            answer.headers = headers.into_iter().map(owned).collect();
        }
        if let Some((delta, name)) = delta {
            let nanoseconds = delta.as_u64().to_string();
            answer.headers.push((name.to_owned(), nanoseconds));
        }
        answer
    }

    /// Makes an answer of a gRPC call of it, as Envoy does with its own answers: a head alone,
    /// with a status that corresponds to that of HTTP unless there is one.
    pub(crate) fn make_call_answer(&mut self) {
        let has_status = self.headers.iter().any(|(name, _)| name == "grpc-status");
        if !has_status {
            let status = match self.status {
                400 => 13,
                401 => 16,
                403 => 7,
                404 => 12,
                429 | 502..=504 => 14,
                _ => 2,
            };
            self.headers
                .push(("grpc-status".to_owned(), status.to_string()));
        }
        self.headers.retain(|(name, _)| name != "content-type");
        let kind = "application/grpc".to_owned();
        self.headers.push(("content-type".to_owned(), kind));
        self.status = 200;
        self.body.clear();
    }

    /// Its head in HTTP/2; date and length are added each time.
    pub(crate) fn block(&self, server: Option<&str>) -> Result<H2ResponseBlock, HeadError> {
        self.head(server, None)
    }

    /// All of it in HTTP/3, without the body for `HEAD`.
    pub(crate) fn lay_http3(
        &self,
        server: Option<&str>,
        date: Option<&str>,
        head_only: bool,
    ) -> Result<Vec<u8>, HeadError> {
        let block = h3::H3ResponseBlock::new(self.status, &self.header_list(server, date))?;
        let length = self.body.len();
        let mut laid = Vec::with_capacity(length + 512);
        let body_length = match (head_only, length as u64) {
            (true, bytes) => h3::BodyLength::Withheld(bytes),
            (false, bytes) => h3::BodyLength::Bytes(bytes),
        };
        block.write(&[], body_length, &mut laid);
        if !head_only && length > 0 {
            h3::write_data_head(length, &mut laid);
            laid.extend_from_slice(&self.body);
        }
        Ok(laid)
    }

    fn head(&self, server: Option<&str>, date: Option<&str>) -> Result<H2ResponseBlock, HeadError> {
        H2ResponseBlock::new(self.status, &self.header_list(server, date))
    }

    fn header_list<'a>(
        &'a self,
        server: Option<&'a str>,
        date: Option<&'a str>,
    ) -> Vec<(&'a str, &'a str)> {
        let given = self.headers.iter();
        let mut headers: Vec<(&str, &str)> = given
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        if let Some(server) = server
            && !headers.iter().any(|(name, _)| *name == "server")
        {
            headers.push(("server", server));
        }
        headers.extend(date.map(|date| ("date", date)));
        headers
    }

    /// An answer with nothing but a status.
    pub(crate) const fn of_status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// The answer to a request whose wishes make no sense.
    pub(crate) fn misunderstood(filter: &str, message: &str) -> Self {
        let body = format!("{filter} didn't understand the request: {message}");
        Self {
            status: 500,
            headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
            body: body.into_bytes(),
        }
    }
}

impl Laid {
    fn new(answer: &SpecificAnswer, last: bool, server: Option<&str>) -> Result<Self, HeadError> {
        let given = answer.headers.iter();
        let mut headers: Vec<(&str, &str)> = given
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let is_set = |headers: &[(&str, &str)], name: &str| {
            headers
                .iter()
                .any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        if let Some(server) = server {
            headers.push(("date", DATE_HERE));
            if !is_set(&headers, "server") {
                headers.push(("server", server));
            }
        }
        if last && !is_set(&headers, "connection") {
            headers.push(("connection", "close"));
        }
        let response = PreparedResponse::new(answer.status, &headers, &answer.body)?;
        let head = response.head();
        let date_at = server.and_then(|_| memchr::memmem::find(head, DATE_HERE.as_bytes()));
        Ok(Self { response, date_at })
    }

    fn write(&self, head_only: bool, date: &str, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(if head_only {
            self.response.head()
        } else {
            self.response.bytes()
        });
        if let Some(at) = self.date_at
            && date.len() == DATE_BYTES
        {
            let at = begin + at;
            out[at..at + DATE_BYTES].copy_from_slice(date.as_bytes());
        }
    }
}
