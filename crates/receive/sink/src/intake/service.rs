//! Answers of a service to requests.

use std::borrow::Cow;
use std::fmt::Debug;

/// A service: what it makes of whole requests and messages. Shared by all
/// connections.
pub(super) trait Service: Debug + Send + Sync {
    /// The answer to a request.
    fn answer(&self, request: &Request<'_>) -> Answer;

    /// The answer to a request whose body was stored as `stored`: with its codings, without the
    /// framing of chunks.
    fn answer_stored(&self, request: &Request<'_>, stored: &[u8]) -> Answer {
        let _unused = stored;
        self.answer(request)
    }

    /// Returns true if it takes bodies in signed chunks, as S3 does.
    fn takes_chunks(&self) -> bool {
        false
    }

    /// Returns true if the body of such a request is a block of Snappy although nothing of
    /// its headers says so.
    fn is_snappy(&self, request: &Request<'_>) -> bool {
        let _unused = request;
        false
    }

    /// Returns true if its status refuses no request: it takes all of them, and without their
    /// body those that cannot be decoded. Else a status of 400 or above refuses.
    fn takes_all(&self) -> bool {
        false
    }

    /// The answer to one message of a gRPC call of `method`, such as
    /// `/package.Service/Method`; an error is the call's status.
    fn message(&self, method: &str, message: &[u8]) -> Result<Reply, u32> {
        let _unused = (method, message);
        Err(UNIMPLEMENTED)
    }
}

/// The status of a gRPC call of what is not there.
pub(super) const UNIMPLEMENTED: u32 = 12;
/// The status of a gRPC call with a message that makes no sense.
pub(super) const INVALID_ARGUMENT: u32 = 3;
/// Status of a call for which there is no memory.
pub(super) const RESOURCE_EXHAUSTED: u32 = 8;

/// A whole request, its body without compression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// Without the query.
    pub(super) path: &'a str,
    /// In lower case, without parameters; empty where there is none.
    pub(super) content_type: &'a str,
    /// `x-amz-target`; empty where there is none.
    pub(super) operation: &'a str,
    pub(super) body: &'a [u8],
}

/// The answer to a request, and the counts of its contents.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    pub(super) body: Cow<'static, [u8]>,
    /// Events that it held.
    pub(super) events: u64,
    /// Events that its answer holds.
    pub(super) served: u64,
    /// True if its body was not what the protocol says.
    pub(super) is_malformed: bool,
    /// True if its body held series of metrics that were read.
    pub(super) has_series: bool,
}

impl Answer {
    /// Without a body.
    pub(super) const fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Cow::Borrowed(b""),
            events: 0,
            served: 0,
            is_malformed: false,
            has_series: false,
        }
    }

    /// With a body of this type.
    pub(super) fn with_body(
        status: u16,
        content_type: &'static str,
        body: impl Into<Cow<'static, [u8]>>,
    ) -> Self {
        Self {
            headers: vec![(Cow::Borrowed("content-type"), Cow::Borrowed(content_type))],
            body: body.into(),
            ..Self::status(status)
        }
    }

    /// With a body of JSON.
    pub(super) fn json(status: u16, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self::with_body(status, "application/json", body)
    }

    /// The same, for a request with so many events.
    pub(super) fn taking(self, events: u64) -> Self {
        Self { events, ..self }
    }

    /// The same, which holds so many events.
    pub(super) fn serving(self, served: u64) -> Self {
        Self { served, ..self }
    }

    /// The same, for a request whose body made no sense.
    pub(super) fn malformed(self) -> Self {
        Self {
            is_malformed: true,
            ..self
        }
    }

    /// The same, with one more header.
    pub(super) fn header(
        mut self,
        name: &'static str,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// The answer to one gRPC message, and the counts of its contents.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Reply {
    /// The message that answers it.
    pub(super) message: Cow<'static, [u8]>,
    /// Events that it held.
    pub(super) events: u64,
}
