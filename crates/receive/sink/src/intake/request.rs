//! Requests on their way in.

use std::borrow::Cow;

use stillwell_stamp::HEADER;

use super::aws_chunks::unframe;
use super::decode::{Coding, decode, is_snappy, unpack_snappy};
use super::memory::Reservation;
use super::service::{Answer, Request};
use super::site::Site;

/// The longest body that is kept; longer ones are answered with 413.
const BODY_BYTES_MAX: usize = 64 << 20;
/// The longest that it may become without its compression.
pub(super) const DECODED_BYTES_MAX: usize = 256 << 20;

/// The first status by which a service refuses a request.
const FIRST_REFUSAL: u16 = 400;
const CONTENT_TOO_LARGE: u16 = 413;
const SERVICE_UNAVAILABLE: u16 = 503;

/// The header with the digest of a body of S3, or with the name of its framing.
pub(super) const CONTENT_DIGEST: &str = "x-amz-content-sha256";

/// A request that is not whole yet.
#[derive(Debug)]
pub(super) struct Partial {
    method: String,
    target: String,
    content_type: String,
    operation: String,
    /// The header for stamps; empty where there is none.
    stamp: Vec<u8>,
    /// The header with the codings of its body; empty where there is none.
    content_encoding: String,
    /// True if its body is a block or frames of Snappy.
    is_snappy: bool,
    /// True if its head says that its bytes are in signed chunks, or in chunks with trailers.
    is_chunked: bool,
    body: Vec<u8>,
    memory: Reservation,
    /// The status that refuses the body, which is not kept then.
    refusal: Option<u16>,
}

impl Partial {
    /// A request that begins; headers are set by [`Self::header`].
    pub(super) fn new(method: &str, target: &str, site: &Site) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            content_type: String::new(),
            operation: String::new(),
            stamp: Vec::new(),
            content_encoding: String::new(),
            is_snappy: false,
            is_chunked: false,
            body: Vec::new(),
            memory: site.intake.memory.reservation(),
            refusal: None,
        }
    }

    /// It has this header, if that is of interest.
    pub(super) fn header(&mut self, name: &str, value: &[u8]) {
        let Ok(value) = str::from_utf8(value) else {
            return;
        };
        if name.eq_ignore_ascii_case("content-type") {
            let kind = value.split(';').next().unwrap_or_default();
            self.content_type = kind.trim().to_ascii_lowercase();
        } else if name.eq_ignore_ascii_case("content-encoding") {
            self.is_snappy = is_snappy(value);
            value.clone_into(&mut self.content_encoding);
        } else if name.eq_ignore_ascii_case("x-amz-target") {
            value.clone_into(&mut self.operation);
        } else if name.eq_ignore_ascii_case(CONTENT_DIGEST) {
            self.is_chunked = value.starts_with("STREAMING-");
        } else if name.eq_ignore_ascii_case(HEADER) && self.stamp.is_empty() {
            // The first one counts.
            self.stamp = value.as_bytes().to_vec();
        }
    }

    /// Returns the header for stamps; empty where there is none.
    pub(super) fn stamp(&self) -> &[u8] {
        &self.stamp
    }

    /// The next part of its body.
    pub(super) fn push(&mut self, part: &[u8], site: &Site) {
        site.shard.bytes.add(part.len() as u64);
        if self.refusal.is_some() {
            return;
        }
        let length = self.body.len() + part.len();
        self.refusal = if length > BODY_BYTES_MAX {
            Some(CONTENT_TOO_LARGE)
        } else if length > self.body.capacity() && !self.grow(length) {
            Some(SERVICE_UNAVAILABLE)
        } else {
            None
        };
        if self.refusal.is_some() {
            self.body = Vec::new();
            let _is_smaller = self.memory.resize(0);
        } else {
            self.body.extend_from_slice(part);
        }
    }

    /// Makes room for `length` bytes, and for as many as are there already. Returns false where
    /// the bodies of all connections need the memory.
    fn grow(&mut self, length: usize) -> bool {
        let capacity = length.max(self.body.capacity() * 2).min(BODY_BYTES_MAX);
        let has_room = self.memory.resize(capacity);
        if has_room {
            self.body.reserve_exact(capacity - self.body.len());
        }
        has_room
    }

    pub(super) fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Path and query.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// It is whole: counts it and gives the service's answer.
    pub(super) fn finish(&self, site: &Site) -> Answer {
        let shard = &site.shard;
        shard.messages.add(1);
        let answer = self.answer(site);
        shard.events.add(answer.events);
        shard.events_served.add(answer.served);
        shard.malformed.add(u64::from(answer.is_malformed));
        shard.parsed.add(u64::from(answer.has_series));
        answer
    }

    /// As a service has it, with this body.
    fn request<'a>(&'a self, body: &'a [u8]) -> Request<'a> {
        Request {
            method: &self.method,
            path: self.target.split('?').next().unwrap_or_default(),
            content_type: &self.content_type,
            operation: &self.operation,
            body,
        }
    }

    fn answer(&self, site: &Site) -> Answer {
        if let Some(status) = self.refusal {
            let answer = Answer::status(status).malformed();
            return match status {
                SERVICE_UNAVAILABLE => answer.header("retry-after", "1"),
                _ => answer,
            };
        }
        let Some(codings) = self.codings(site) else {
            return self.undecoded(415, &self.body, site);
        };
        let Some(stored) = self.stored(site) else {
            return Answer::status(400).malformed();
        };
        let Some(body) = self.decoded(&stored, &codings, site) else {
            return self.undecoded(400, b"", site);
        };
        site.shard.decoded_bytes.add(body.len() as u64);
        let service = site.service();
        let answer = service.answer_stored(&self.request(&body), &stored);
        if service.takes_all() || answer.status < FIRST_REFUSAL {
            site.arrived(&self.stamp, &body);
        }
        answer
    }

    /// The answer to a body that cannot be decoded: `status`, unless the service takes all. Stamps
    /// are then searched in `seen` and in the header.
    fn undecoded(&self, status: u16, seen: &[u8], site: &Site) -> Answer {
        let service = site.service();
        if !service.takes_all() {
            return Answer::status(status).malformed();
        }
        site.arrived(&self.stamp, seen);
        service.answer(&self.request(b"")).malformed()
    }

    /// The codings of the body without the framing of chunks; `None` where one is not known.
    /// Headers come in any order, so this is decided once the head is whole.
    fn codings(&self, site: &Site) -> Option<Vec<Coding>> {
        if self.is_snappy {
            Some(Vec::new())
        } else if self.is_unframed(site) {
            Coding::all_unframed(&self.content_encoding)
        } else {
            Coding::all(&self.content_encoding)
        }
    }

    /// Returns true if the framing of chunks is undone.
    fn is_unframed(&self, site: &Site) -> bool {
        self.is_chunked && site.service().takes_chunks()
    }

    /// The body without the framing of chunks; `None` where it is not so framed.
    fn stored(&self, site: &Site) -> Option<Cow<'_, [u8]>> {
        if self.is_unframed(site) {
            unframe(&self.body).map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(self.body.as_slice()))
        }
    }

    /// `stored` without `codings` and Snappy; `None` where it is not so encoded, or too long
    /// without.
    fn decoded<'a>(
        &self,
        stored: &'a [u8],
        codings: &[Coding],
        site: &Site,
    ) -> Option<Cow<'a, [u8]>> {
        let body = if codings.is_empty() {
            Cow::Borrowed(stored)
        } else {
            Cow::Owned(decode(stored, codings, DECODED_BYTES_MAX)?)
        };
        if !(self.is_snappy || site.service().is_snappy(&self.request(&body))) {
            return Some(body);
        }
        unpack_snappy(&body, DECODED_BYTES_MAX).map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use stillwell_plan::sink::IntakeService;
    use stillwell_units::Nanos;

    use super::super::fixture::site;
    use super::*;
    use crate::intake::Intake;

    #[test]
    fn the_name_of_the_framing_is_a_coding_unless_the_framing_is_undone() {
        let coding = ("content-encoding", "aws-chunked");
        let framed = (CONTENT_DIGEST, "STREAMING-UNSIGNED-PAYLOAD-TRAILER");
        let unframed = (CONTENT_DIGEST, "UNSIGNED-PAYLOAD");
        let s3 = || Intake::new("a", &IntakeService::S3, Nanos::ZERO);
        let loki = Intake::new("a", &IntakeService::Loki, Nanos::ZERO);
        let plain = Intake::plain(200, &[], b"", Nanos::ZERO);
        for (intake, headers, status, is_malformed) in [
            (s3(), [coding, framed], 200, false),
            (s3(), [framed, coding], 200, false),
            (s3(), [coding, unframed], 415, true),
            (loki, [coding, framed], 415, true),
            (plain, [coding, framed], 200, true),
        ] {
            let site = site(intake);
            let mut partial = Partial::new("PUT", "/bucket/key", &site);
            for (name, value) in headers {
                partial.header(name, value.as_bytes());
            }
            partial.push(b"1\r\na\r\n0\r\n\r\n", &site);
            let answer = partial.finish(&site);
            let seen = (answer.status, answer.is_malformed);
            assert_eq!(seen, (status, is_malformed), "{headers:?}");
        }
    }

    #[test]
    fn a_body_that_cannot_be_decoded_is_malformed_and_refused_unless_all_are_taken() {
        for (coding, refusal) in [("br", 415), ("gzip", 400), ("snappy", 400)] {
            let plain = Intake::plain(204, &[], b"", Nanos::ZERO);
            let loki = Intake::new("a", &IntakeService::Loki, Nanos::ZERO);
            for (intake, status) in [(plain, 204), (loki, refusal)] {
                let site = site(intake);
                let mut partial = Partial::new("POST", "/", &site);
                partial.header("content-encoding", coding.as_bytes());
                partial.push(b"\xff\xff\xff\xff\x0f\0a", &site);
                let answer = partial.finish(&site);
                let seen = (answer.status, answer.is_malformed, answer.events);
                assert_eq!(seen, (status, true, 0), "{coding}");
            }
        }
    }
}
