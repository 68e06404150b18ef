//! Datagrams in the bodies of `CONNECT` with `connect-udp` (RFC 9298), each in a
//! capsule (RFC 9297, 3.2): a type, a length, and so many bytes. Of type 0 these are
//! the number of a context and, where that is 0, the payload of a packet of UDP.
//! All numbers are integers of QUIC (RFC 9000, 16).
//!
//! ```
//! use stillwell_http::capsule::{CapsuleReader, write_datagram};
//!
//! let mut body = Vec::new();
//! write_datagram(b"abc", &mut body);
//! assert_eq!(body, [0, 4, 0, b'a', b'b', b'c']);
//!
//! let mut reader = CapsuleReader::new();
//! assert_eq!(reader.advance(&body[..4])?, (4, None));
//! assert_eq!(reader.advance(&body[4..])?, (2, Some(b"abc".as_slice())));
//! reader.finish()?;
//! # Ok::<(), stillwell_http::capsule::CapsuleError>(())
//! ```

use crate::h3::frame::{H3FrameHead, Partial, write_head};
use stillwell_units::as_usize;

/// The longest payload of a packet of UDP, in bytes (RFC 9298, 5): its length of 16
/// bits counts the packet's own head of 8 bytes.
pub const UDP_PAYLOAD_BYTES_MAX: usize = 65_527;

/// The type of capsules that hold a datagram.
const DATAGRAM: u64 = 0;

/// The context of payloads of UDP. It takes one byte.
const UDP: u64 = 0;

/// Appends a capsule with `payload`, which is of [`UDP_PAYLOAD_BYTES_MAX`] at most: of
/// more the receiver makes an error.
pub fn write_datagram(payload: &[u8], out: &mut Vec<u8>) {
    write_head(DATAGRAM, 1 + payload.len(), out);
    out.push(0);
    out.extend_from_slice(payload);
}

/// A body that holds no capsules, or invalid ones. A reader that has failed stays failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CapsuleError {
    /// A datagram that ends before the number of its context does.
    #[error("a datagram ends within its context ID")]
    Context,
    /// A payload that no packet of UDP holds.
    #[error("a payload of {bytes} bytes exceeds the {UDP_PAYLOAD_BYTES_MAX} of UDP")]
    TooLarge {
        /// The payload.
        bytes: u64,
    },
    /// The body ended within a capsule.
    #[error("the body ended within a capsule")]
    Truncated,
}

/// Reads the datagrams of one body, cut anywhere. Holds at most one payload; those that
/// arrive whole are not copied. Capsules of other types and datagrams of other contexts are
/// skipped, and never held.
#[derive(Debug)]
pub struct CapsuleReader {
    integers: Partial,
    next: Next,
    /// The received part of a payload, or the payload handed out last.
    partial: Vec<u8>,
    is_handed_out: bool,
    failure: Option<CapsuleError>,
}

/// The next part of the body, with the bytes left of its capsule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    Head,
    /// Above 0, as is what is skipped: both end with the byte that ends them.
    Context(u64),
    Payload(usize),
    Skipped(u64),
}

impl CapsuleReader {
    /// At the beginning of a body.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            integers: Partial::EMPTY,
            next: Next::Head,
            partial: Vec::new(),
            is_handed_out: false,
            failure: None,
        }
    }

    /// Returns the number of bytes taken from `input`, and the payload that they completed,
    /// which may be empty. Without a payload all of `input` was taken.
    ///
    /// # Errors
    /// [`CapsuleError`] where the stream is to be given up, and ever after.
    pub fn advance<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<&'a [u8]>), CapsuleError> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        if std::mem::take(&mut self.is_handed_out) {
            self.partial.clear();
        }
        let (taken, last_bytes) = match self.take(input) {
            Ok(step) => step,
            Err(error) => {
                self.failure = Some(error);
                return Err(error);
            }
        };
        let Some(last_bytes) = last_bytes else {
            return Ok((taken, None));
        };
        let payload = if self.partial.is_empty() {
            &input[taken - last_bytes..taken]
        } else {
            self.is_handed_out = true;
            &self.partial
        };
        Ok((taken, Some(payload)))
    }

    /// The body has ended.
    ///
    /// # Errors
    /// [`CapsuleError::Truncated`] within a capsule (RFC 9297, 3.3), or what has failed
    /// before.
    pub fn finish(&self) -> Result<(), CapsuleError> {
        match self.failure {
            Some(error) => Err(error),
            None if self.next == Next::Head && self.integers.is_empty() => Ok(()),
            None => Err(CapsuleError::Truncated),
        }
    }

    /// Returns the number of bytes taken from `input`. Where they completed a payload, also
    /// how many of them belong to it, at their end; this is all of the payload unless some is
    /// kept.
    fn take(&mut self, input: &[u8]) -> Result<(usize, Option<usize>), CapsuleError> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            match self.next {
                Next::Payload(left) => {
                    let now = left.min(rest.len());
                    let is_whole = self.take_payload(&rest[..now], left);
                    return Ok((taken + now, is_whole.then_some(now)));
                }
                _ if rest.is_empty() => return Ok((taken, None)),
                Next::Head => {
                    let (now, head) = self.integers.head(rest);
                    taken += now;
                    if let Some(head) = head {
                        self.next = Next::of_capsule(head)?;
                    }
                }
                Next::Context(left) => {
                    let (now, context) = self.integers.integer(first(rest, left));
                    taken += now;
                    self.next = Next::of_datagram(context, left - now as u64)?;
                }
                Next::Skipped(left) => {
                    let now = first(rest, left).len();
                    taken += now;
                    self.next = Next::skipped(left - now as u64);
                }
            }
        }
    }

    /// Returns true if `part` ends the payload of which `left` bytes are missing. The part is
    /// kept unless it is the whole payload.
    fn take_payload(&mut self, part: &[u8], left: usize) -> bool {
        let is_whole = part.len() == left;
        if !is_whole || !self.partial.is_empty() {
            self.partial.extend_from_slice(part);
        }
        self.next = match is_whole {
            true => Next::Head,
            false => Next::Payload(left - part.len()),
        };
        is_whole
    }
}

impl Default for CapsuleReader {
    fn default() -> Self {
        Self::new()
    }
}

impl Next {
    /// Behind the head of a capsule.
    const fn of_capsule(head: H3FrameHead) -> Result<Self, CapsuleError> {
        match head {
            H3FrameHead {
                kind: DATAGRAM,
                length: 0,
            } => Err(CapsuleError::Context),
            H3FrameHead {
                kind: DATAGRAM,
                length,
            } => Ok(Self::Context(length)),
            H3FrameHead { length, .. } => Ok(Self::skipped(length)),
        }
    }

    /// Behind the number of a datagram's context, of which some may be missing.
    fn of_datagram(context: Option<u64>, left: u64) -> Result<Self, CapsuleError> {
        match context {
            None if left == 0 => Err(CapsuleError::Context),
            None => Ok(Self::Context(left)),
            Some(UDP) => match usize::try_from(left) {
                Ok(left) if left <= UDP_PAYLOAD_BYTES_MAX => Ok(Self::Payload(left)),
                _ => Err(CapsuleError::TooLarge { bytes: left }),
            },
            Some(_) => Ok(Self::skipped(left)),
        }
    }

    const fn skipped(left: u64) -> Self {
        match left {
            0 => Self::Head,
            _ => Self::Skipped(left),
        }
    }
}

/// The first `left` bytes of `input`, or all.
fn first(input: &[u8], left: u64) -> &[u8] {
    let length = as_usize(left);
    &input[..length.min(input.len())]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the contents of a body, in pieces that end at `cuts`.
    fn read(body: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Result<(), CapsuleError>) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
        cuts.push(body.len());
        cuts.sort_unstable();
        let (mut reader, mut seen, mut start) = (CapsuleReader::new(), Vec::new(), 0);
        for end in cuts {
            loop {
                match reader.advance(&body[start..end]) {
                    Err(error) => {
                        assert_eq!(reader.advance(b"x"), Err(error), "a failure was forgotten");
                        return (seen, reader.finish());
                    }
                    Ok((taken, Some(payload))) => {
                        start += taken;
                        seen.push(payload.to_vec());
                    }
                    Ok((taken, None)) => {
                        assert_eq!(taken, end - start, "input was left without a payload");
                        start = end;
                        break;
                    }
                }
            }
        }
        (seen, reader.finish())
    }

    fn capsule(kind: u64, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_head(kind, value.len(), &mut bytes);
        bytes.extend_from_slice(value);
        bytes
    }

    /// The capsules of a body, and what each of them gives.
    fn any_capsule() -> impl Strategy<Value = (Vec<u8>, Option<Vec<u8>>)> {
        let payload = || prop::collection::vec(any::<u8>(), 0..200);
        prop_oneof![
            3 => payload().prop_map(|payload| {
                let mut bytes = Vec::new();
                write_datagram(&payload, &mut bytes);
                (bytes, Some(payload))
            }),
            1 => (1_u64..1 << 62, payload()).prop_map(|(kind, value)| (capsule(kind, &value), None)),
            1 => (1_u8..0x40, payload()).prop_map(|(context, payload)| {
                (capsule(DATAGRAM, &[&[context], payload.as_slice()].concat()), None)
            }),
        ]
    }

    proptest! {
        #[test]
        fn for_all_datagrams_and_cuts_what_is_written_is_read(
            capsules in prop::collection::vec(any_capsule(), 0..8),
            cuts in prop::collection::vec(any::<usize>(), 0..8),
            is_cut in any::<bool>(),
        ) {
            let (body, payloads): (Vec<_>, Vec<_>) = capsules.into_iter().unzip();
            let (body, payloads) = (body.concat(), payloads.into_iter().flatten());
            let payloads: Vec<_> = payloads.collect();
            prop_assert_eq!(read(&body, &cuts), (payloads.clone(), Ok(())));
            // No capsule is of one byte.
            let end = body.len().saturating_sub(usize::from(is_cut));
            let (part, ended) = read(&body[..end], &cuts);
            prop_assert_eq!(ended.is_ok(), end == body.len());
            prop_assert!(payloads.starts_with(&part));
        }

        #[test]
        fn for_all_bytes_and_cuts_the_datagrams_are_the_same(
            body in prop::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 0..200),
            cuts in prop::collection::vec(any::<usize>(), 0..8),
        ) {
            prop_assert_eq!(read(&body, &cuts), read(&body, &[]));
        }
    }

    #[test]
    fn integers_may_be_longer_than_they_need_be() {
        let body = [0x40, 0, 0x80, 0, 0, 4, 0x40, 0, b'a', b'b'];
        assert_eq!(read(&body, &[3, 7, 9]), (vec![b"ab".to_vec()], Ok(())));
    }

    #[test]
    fn what_is_no_datagram_is_refused() {
        let of_context = |context: &[u8], bytes: usize| {
            let payload = vec![b'a'; bytes];
            capsule(DATAGRAM, &[context, &payload].concat())
        };
        let ends = |body: &[u8]| {
            let ended = read(body, &[]).1;
            assert_eq!(read(body, &[1, 2, 3]).1, ended, "cut");
            ended
        };
        let longest = UDP_PAYLOAD_BYTES_MAX;
        assert_eq!(ends(&of_context(&[0], longest)), Ok(()));
        assert_eq!(ends(&of_context(&[0x40, 0], longest)), Ok(()));
        let too_large = Err(CapsuleError::TooLarge { bytes: 65_528 });
        assert_eq!(ends(&of_context(&[0], longest + 1)), too_large);
        assert_eq!(ends(&of_context(&[0x40, 0], longest + 1)), too_large);
        assert_eq!(ends(&of_context(&[2], longest + 1)), Ok(()));
        for body in [&[0, 0][..], &[0, 1, 0x40], &[0, 3, 0xc0, 0, 0, 0]] {
            assert_eq!(ends(body), Err(CapsuleError::Context), "{body:?}");
        }
        for body in [&[0][..], &[0, 4], &[0, 4, 0, b'a'], &[9, 2, 1], &[0x40]] {
            assert_eq!(ends(body), Err(CapsuleError::Truncated), "{body:?}");
        }
    }

    #[test]
    fn what_means_nothing_is_not_held() {
        // A capsule of another type, and a datagram of another context.
        for head in [
            &[0x21, 0xc0, 0, 1, 0, 0, 0, 0, 0][..],
            &[0, 0x80, 0x10, 0, 0, 2],
        ] {
            let mut reader = CapsuleReader::new();
            for part in [head, &[0; 100_000], &[0; 100_000]] {
                assert_eq!(reader.advance(part), Ok((part.len(), None)));
            }
            assert_eq!(reader.partial.capacity(), 0);
            assert_eq!(reader.finish(), Err(CapsuleError::Truncated));
        }
    }
}
